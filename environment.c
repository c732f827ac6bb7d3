// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "../kselftest.h"
#include "vm_util.h"
#include "environment.h"

#define THP_DIRECTORY	"/sys/kernel/mm/transparent_hugepage/"
#define CLOCKSOURCE	"/sys/devices/system/clocksource/clocksource0/current_clocksource"

#ifdef __clang__
#define COMPILER	"clang-" __clang_version__
#else
#define COMPILER	"gcc-" __VERSION__
#endif

/* The first line of a file, or "unknown". */
static char *read_line(const char *path, char *line, size_t size)
{
	FILE *file = fopen(path, "r");

	if (!file || !fgets(line, size, file))
		snprintf(line, size, "unknown");
	if (file)
		fclose(file);
	line[strcspn(line, "\n")] = '\0';
	return line;
}

/* The choice in brackets of a file such as "always [madvise] never". */
static char *read_choice(const char *path, char *line, size_t size)
{
	char *choice = strchr(read_line(path, line, size), '[');

	if (!choice)
		return line;
	choice++;
	choice[strcspn(choice, "]")] = '\0';
	return choice;
}

/* A value must not have blanks in it. */
static char *first_word(char *text)
{
	text[strcspn(text, " \t")] = '\0';
	return text;
}

static const char *virtualized(void)
{
	const char *found = "unknown";
	char line[4096];
	FILE *file;

	if (!access("/sys/hypervisor/type", F_OK))
		return "yes";
	file = fopen("/proc/cpuinfo", "r");
	if (!file)
		return found;
	while (fgets(line, sizeof(line), file)) {
		/* Only x86 tells, in the line of its features. */
		if (strncmp(line, "flags", 5))
			continue;
		found = strstr(line, " hypervisor") ? "yes" : "no";
		break;
	}
	fclose(file);
	return found;
}

static void append(char *line, size_t size, const char *key, const char *value)
{
	size_t length = strlen(line);

	snprintf(line + length, size - length, " %s=%s", key, value);
}

static void append_number(char *line, size_t size, const char *key,
			  unsigned long long value)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", value);
	append(line, size, key, text);
}

void environment_print(int cpu)
{
	char line[768] = "", text[256], compiler[] = COMPILER;
	const char *clock = getenv("KSELFTEST_CLOCK");
	struct utsname name;

	uname(&name);
	append(line, sizeof(line), "kernel", first_word(name.release));
	append(line, sizeof(line), "machine", first_word(name.machine));
	append_number(line, sizeof(line), "page_kb", psize() / 1024);
	append_number(line, sizeof(line), "pmd_kb", read_pmd_pagesize() / 1024);
	append_number(line, sizeof(line), "cpu", cpu);
	append_number(line, sizeof(line), "cpus", sysconf(_SC_NPROCESSORS_ONLN));
	append(line, sizeof(line), "clocksource",
	       first_word(read_line(CLOCKSOURCE, text, sizeof(text))));
	append(line, sizeof(line), "hypervisor", virtualized());
	append(line, sizeof(line), "thp",
	       read_choice(THP_DIRECTORY "enabled", text, sizeof(text)));
	append(line, sizeof(line), "shmem_thp",
	       read_choice(THP_DIRECTORY "shmem_enabled", text, sizeof(text)));
	append(line, sizeof(line), "compiler", first_word(compiler));
	/* An emulator that counts instructions says so to the test it starts. */
	if (clock && *clock) {
		snprintf(text, sizeof(text), "%s", clock);
		append(line, sizeof(line), "clock", first_word(text));
	}
	ksft_print_msg("env%s\n", line);
}
