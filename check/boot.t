#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# ab/boot tells apart what can become of a guest, and leaves nothing behind.

. check/lib.sh

# All that ab/boot must remove is below this.
export TMPDIR="$tmp/tmp"
mkdir "$TMPDIR"

# A boot of the program below, all that it prints going to $tmp/log.
boot()
{
	ab/boot "$image" -o "$tmp/log" "$@"
}

# refuses STATUS PATTERN, of ab/boot, which names itself or ab/kernel
refuses_boot()
{
	status=$1 pattern=$2
	shift 2
	refuses "$status" "^ab/[a-z]*: .*$pattern" ab/boot "$@"
}

silently()
{
	"$@" > "$tmp/silence" 2>&1
	status=$?
	cat "$tmp/silence"
	[ ! -s "$tmp/silence" ] && return $status
}

# fails PATTERN ARGUMENT...: the boot fails, and the first line on stderr says why
fails()
{
	pattern=$1
	shift
	exits 125 boot "$@" > "$tmp/stdout" 2> "$tmp/stderr"
	status=$?
	cat "$tmp/stdout" "$tmp/stderr"
	[ $status -eq 0 ] && head -n 1 "$tmp/stderr" | grep "^ab/boot: .*$pattern"
}

# QEMU fails to start a kernel, and then it does not.
has_one_more_try()
{
	mkdir "$tmp/bin"
	cat > "$tmp/bin/qemu-system-x86_64" <<-EOT
	#!/bin/sh
	PATH=\${PATH#*:}
	if mkdir "$tmp/failed" 2> /dev/null; then
		echo "Kernel panic - not syncing: of two CPUs"
	else
		exec qemu-system-x86_64 "\$@"
	fi
	EOT
	chmod +x "$tmp/bin/qemu-system-x86_64"
	PATH=$tmp/bin:$PATH exits 0 boot -- "$tmp/guest" 0 2> "$tmp/stderr"
	status=$?
	cat "$tmp/stderr"
	[ $status -eq 0 ] && [ "$(wc -l < "$tmp/stderr")" -eq 1 ] &&
		grep "one more try" "$tmp/stderr" && ! grep "of two CPUs" "$tmp/log"
}

told_program()
{
	tr -d '\r' < "$tmp/log" | grep -x "# told 0, SETTING is some"
}

is_whole()
{
	tr -d '\r' < "$tmp/log" > "$tmp/text"
	grep "Linux version" "$tmp/text" &&
		[ "$(grep -cx '# line [0-9]*' "$tmp/text")" -eq 2000 ] &&
		grep -x "ab-init: ended with exit code 0" "$tmp/text"
}

prints_log()
{
	ab/boot -n "$image" -- "$tmp/guest" 0 > "$tmp/log" && is_whole
}

# Twice the same, to the byte, but for what comes from the BIOS's clock.
repeats()
{
	boot -n -- "$tmp/guest" 0 && mv "$tmp/log" "$tmp/first" &&
		boot -n -- "$tmp/guest" 0 && cmp "$tmp/first" "$tmp/log"
}

# interrupted SIGNAL STATUS: a signal to the process group of a running ab/boot, as by
# Ctrl-C, leaves no process and no file.
interrupted()
{
	rm -f "$tmp/log"
	# A shell's background job ignores SIGINT unless something undoes that.
	setsid perl -e "\$SIG{INT} = 'DEFAULT'; exec @ARGV" \
		ab/boot "$image" -o "$tmp/log" -- "$tmp/guest" hang &
	pid=$!
	until grep -qs "Linux version" "$tmp/log"; do
		kill -0 $pid 2> /dev/null || break
		sleep 0.1
	done
	kill -s "$1" -- -$pid
	wait $pid
	status=$?
	left=$(grep -ls "$TMPDIR" /proc/[0-9]*/cmdline; ls "$TMPDIR")
	echo "exit $status, not $2, or left: $left"
	[ $status -eq "$2" ] && [ -z "$left" ]
}

nothing_is_left()
{
	[ -z "$(ls "$TMPDIR")" ]
}

cat > "$tmp/guest.c" <<'EOT'
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void sysrq(char key)
{
	int fd = open("/proc/sysrq-trigger", O_WRONLY);

	if (write(fd, &key, 1) < 0)
		perror("sysrq");
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	const char *setting = getenv("SETTING");
	char *memory;

	printf("# told %s, SETTING is %s\n", what, setting ? setting : "unset");
	if (!strcmp(what, "hang"))
		pause();
	if (!strcmp(what, "slow"))
		sleep(25);
	if (!strcmp(what, "panic"))
		sysrq('c');
	if (!strcmp(what, "reset"))
		sysrq('b');
	if (!strcmp(what, "signal"))
		raise(SIGUSR1);
	while (!strcmp(what, "hog")) {
		memory = malloc(1 << 20);
		if (memory)
			memset(memory, 1, 1 << 20);
	}
	if (!strcmp(what, "files"))
		return access("/test/guest.c", R_OK) || access("/test/dynamic", X_OK);
	for (int i = 0; i < 2000; i++)
		printf("# line %d\n", i);
	return atoi(what);
}
EOT
cat > "$tmp/stuck.c" <<'EOT'
#include <unistd.h>

int main(void)
{
	for (;;)
		pause();
}
EOT
cc -static -O2 -o "$tmp/stuck" "$tmp/stuck.c" &&
	cc -static -O2 -o "$tmp/guest" "$tmp/guest.c" &&
	cc -O2 -o "$tmp/dynamic" "$tmp/guest.c" || exit

version=7.3
if ! image=$(ab/kernel $version); then
	echo "1..0 # SKIP kernel $version cannot be fetched"
	exit
fi

ok "-h" exits 0 ab/boot -h
ok "refuses to do without a kernel" refuses_boot 2 "lacks a kernel"
ok "refuses a kernel that is none" \
	refuses_boot 2 "is no kernel image" "$tmp/guest.c" -- "$tmp/guest"
ok "refuses a kernel that is not there" refuses_boot 2 "nowhere is no" nowhere -- "$tmp/guest"
ok "refuses to do without a program" refuses_boot 2 "lacks a program" "$image" -n
ok "refuses a program that is not there" refuses_boot 2 "no file nowhere" "$image" -- nowhere
ok "refuses a program that is none" refuses_boot 2 "no binary" "$image" -- "$tmp/guest.c"
ok "refuses a dynamic program" refuses_boot 2 "not static" "$image" -- "$tmp/dynamic"
ok "refuses an unknown option" refuses_boot 2 "no option -z" "$image" -z -- "$tmp/guest"
ok "refuses an option without its value" refuses_boot 2 "-m takes a value" "$image" -m
ok "refuses memory that is no number" \
	refuses_boot 2 "-m takes a whole number above 0, not '1G'" "$image" -m 1G -- "$tmp/guest"
ok "refuses to count on two CPUs" \
	refuses_boot 2 "on one CPU, not on 2" "$image" -n -s 2 -- "$tmp/guest"
ok "refuses a file that is not there" \
	refuses_boot 2 "no file nowhere" "$image" -f nowhere -- "$tmp/guest"
ok "refuses a log that cannot be written" \
	refuses_boot 2 "cannot write" "$image" -o "$tmp/none/log" -- "$tmp/guest"

ok "a program succeeds" silently boot -- "$tmp/guest" SETTING=some 0
ok "it has its arguments and its environment" told_program
ok "its log is whole" is_whole
ok "without -o the log is on stdout" prints_log
ok "it has the files it is given" \
	boot -f "$tmp/guest.c" -f "$tmp/dynamic" -- "$tmp/guest" files
ok "and no others" exits 1 boot -f "$tmp/guest.c" -- "$tmp/guest" files
ok "a program fails" exits 1 boot -- "$tmp/guest" 3
ok "a program skips, counted" exits 4 boot -n -- "$tmp/guest" 4
ok "a program is ended by a signal" \
	refuses 1 "guest was ended by signal 10" boot -- "$tmp/guest" signal
ok "counted boots are the same" repeats

ok "a hang" fails "the guest hung: no end after 5 s" -T 5 -- "$tmp/guest" hang
ok "its last lines are shown" grep "^  | .*[a-z]" "$tmp/stderr"
ok "a kernel that hangs before the program" \
	fails "the guest hung: its kernel took 8 s" -s 1 -S 8 -f "$tmp/stuck" -k rdinit=/test/stuck \
	-- "$tmp/guest"
ok "a program takes longer than its kernel may" exits 0 boot -S 20 -- "$tmp/guest" slow
ok "a panic" fails "the kernel panicked .*sysrq" -- "$tmp/guest" panic
ok "the OOM killer" fails "ran out of memory, 256 MiB (.*guest" -m 256 -- "$tmp/guest" hog
ok "a reset" fails "the guest crashed" -- "$tmp/guest" reset
ok "a kernel that does not get there" \
	fails "the kernel panicked .*mount root" -s 1 -k rdinit=/nowhere -- "$tmp/guest"
ok "a crash before the first line" fails "the guest crashed" -s 1 -m 8 -T 10 -- "$tmp/guest"
ok "with two CPUs it has one more try" has_one_more_try
ok "and no third" fails "one more try" -k rdinit=/nowhere -- "$tmp/guest"
ok "which tells what was seen" grep "the kernel panicked .*mount root" "$tmp/stderr"

ok "Ctrl-C leaves nothing behind" interrupted INT 130
ok "SIGTERM leaves nothing behind" interrupted TERM 143
ok "SIGHUP leaves nothing behind" interrupted HUP 129
ok "no boot left a file" nothing_is_left

done_testing
