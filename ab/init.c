// SPDX-License-Identifier: GPL-2.0
/*
 * PID 1 in the guest that ab/boot starts: mounts what the tests need, waits
 * until the kernel has nothing left to do, runs the command in /command and
 * ends the guest.
 *
 * /command holds VARIABLE=value words, the program and its arguments, each
 * ended by a NUL byte. What became of the program is told on the console by a
 * line that begins with "ab-init: ".
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "told.h"

#define CLOCKSOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"
#define MTHP_POLICY "/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled"

/* The syslog(2) action, and a level at which errors and worse are shown. */
#define SYSLOG_ACTION_CONSOLE_LEVEL	8
#define SHOW_ERRORS			4

#define MAX_WORDS		256
#define WINDOW_MS		100
#define QUIET_WINDOWS		5
#define MAX_WINDOWS		300

/* Puts the start of a file into text as a string; empty if it is unreadable. */
static void read_text(const char *path, char *text, size_t size)
{
	ssize_t length = -1;
	int fd = open(path, O_RDONLY);

	if (fd >= 0) {
		length = read(fd, text, size - 1);
		close(fd);
	}
	text[length > 0 ? length : 0] = '\0';
}

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	/* Where the kernel has no such setting the tests find that out. */
	if (fd < 0)
		return;
	if (write(fd, text, strlen(text)) < 0)
		printf("ab-init: %s takes no %s: %s\n", path, text, strerror(errno));
	close(fd);
}

static void mount_at(const char *type, const char *path, mode_t mode)
{
	mkdir(path, mode);
	/* A small kernel may lack one: the tests that need it say so. */
	if (mount(type, path, type, 0, NULL))
		printf("ab-init: no %s: %s\n", path, strerror(errno));
}

/* Lines as the program writes them: no carriage returns, no echo. */
static void make_console_raw(void)
{
	struct termios console;

	if (tcgetattr(STDOUT_FILENO, &console))
		return;
	cfmakeraw(&console);
	tcsetattr(STDOUT_FILENO, TCSANOW, &console);
}

/* Ticks that the CPUs were not idle since boot, or -1 if that cannot be known. */
static long long busy_ticks(void)
{
	long long user, nice, system, idle, iowait, irq, softirq;
	char text[512];

	read_text("/proc/stat", text, sizeof(text));
	if (sscanf(text, "cpu %lld %lld %lld %lld %lld %lld %lld", &user, &nice,
		   &system, &idle, &iowait, &irq, &softirq) != 7)
		return -1;
	return user + nice + system + irq + softirq;
}

/* x86 changes its clock once it has calibrated it, about a second after boot. */
static bool clock_is_early(void)
{
	char text[64];

	read_text(CLOCKSOURCE, text, sizeof(text));
	return strstr(text, "-early");
}

/*
 * Waits until the kernel is done with what booting leaves to kernel threads,
 * which would be measured together with the test.
 */
static void settle(void)
{
	const struct timespec window = { .tv_nsec = WINDOW_MS * 1000000L };
	long long before = busy_ticks();
	int quiet = 0;

	for (int i = 0; i < MAX_WINDOWS; i++) {
		long long now;

		nanosleep(&window, NULL);
		now = busy_ticks();
		if (now < 0)
			break;
		/* The one tick is for looking. */
		quiet = now - before > 1 || clock_is_early() ? 0 : quiet + 1;
		if (quiet == QUIET_WINDOWS) {
			printf("ab-init: settled after %d ms\n", (i + 1) * WINDOW_MS);
			return;
		}
		before = now;
	}
	printf("ab-init: not settled\n");
}

/* Reads what is there, though nobody needs it: see ab/told.h. */
static void tell(const char *place)
{
	asm volatile("" : : "r" (*place));
}

/* Tells the plugin of ab/profile which symbols the kernel has. */
static void tell_symbols(void)
{
	const char *told = mmap((void *)TOLD, TOLD_SIZE, PROT_READ,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	static unsigned char text[65536];
	ssize_t length, i;
	int fd;

	write_text("/proc/sys/kernel/kptr_restrict", "0");
	fd = open("/proc/kallsyms", O_RDONLY);
	if (fd < 0 || told == MAP_FAILED) {
		printf("ab-init: no symbols: %s\n", strerror(errno));
		return;
	}
	while ((length = read(fd, text, sizeof(text))) > 0)
		for (i = 0; i < length; i++)
			tell(told + text[i]);
	tell(told);
	close(fd);
}

/* Splits /command into its words, NULL behind the last; false if it is not right. */
static bool read_command(char **words)
{
	static char text[65536];
	int count = 0;
	char *word;

	read_text("/command", text, sizeof(text));
	for (word = text; *word; word += strlen(word) + 1) {
		if (count == MAX_WORDS)
			return false;
		words[count++] = word;
	}
	words[count] = NULL;
	return count > 0;
}

/* Becomes the program, with the environment that the command gives it and no other. */
static void execute(char **words)
{
	clearenv();
	setenv("PATH", "/", 1);
	while (*words && strchr(*words, '='))
		putenv(*words++);
	setsid();
	if (*words)
		execv(*words, words);
	printf("ab-init: cannot run %s: %s\n", *words ? *words : "nothing", strerror(errno));
	fflush(stdout);
	_exit(127);
}

/* Waits for the program and for all that lost their parent meanwhile. */
static int wait_for(pid_t program)
{
	int status;
	pid_t pid;

	do {
		pid = wait(&status);
	} while (pid != program && (pid > 0 || errno == EINTR));
	return status;
}

static void report(int status)
{
	if (WIFSIGNALED(status))
		printf("ab-init: ended by signal %d\n", WTERMSIG(status));
	else
		printf("ab-init: ended with exit code %d\n", WEXITSTATUS(status));
}

int main(void)
{
	char *words[MAX_WORDS + 1];
	pid_t program;

	if (getpid() != 1) {
		fprintf(stderr, "init: runs only as PID 1 of the guest that ab/boot starts\n");
		return 2;
	}

	setvbuf(stdout, NULL, _IOLBF, 0);
	make_console_raw();
	mount_at("proc", "/proc", 0555);
	mount_at("sysfs", "/sys", 0555);
	mount_at("devtmpfs", "/dev", 0755);
	mount_at("tmpfs", "/dev/shm", 01777);
	mount_at("tmpfs", "/tmp", 01777);
	write_text(MTHP_POLICY, "madvise");

	if (!read_command(words)) {
		printf("ab-init: cannot read /command\n");
		goto end;
	}
	if (getenv("ab_plugin"))
		tell_symbols();
	settle();
	klogctl(SYSLOG_ACTION_CONSOLE_LEVEL, NULL, SHOW_ERRORS);

	printf("ab-init: started\n");
	program = fork();
	if (program < 0) {
		printf("ab-init: cannot fork: %s\n", strerror(errno));
		goto end;
	}
	if (!program)
		execute(words);
	report(wait_for(program));
	kill(-1, SIGKILL);
end:
	tcdrain(STDOUT_FILENO);
	reboot(RB_AUTOBOOT);
	return 1;
}
