#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The Makefile: every compiler and knob it takes, and the runner.

. check/lib.sh

ksrc=${KSRC:-$(tree/get)}
unset KSRC

# build DIR ARGUMENT...: builds into the folder, without a word from the compiler;
# vm_util.c is not ours, and built without our warnings.
build()
{
	dir=$tmp/$1
	shift
	make OUTPUT="$dir" KSRC="$ksrc" USERCFLAGS=-Werror "$@" > "$dir.log" 2>&1
	status=$?
	cat "$dir.log"
	[ $status -eq 0 ] && ! grep -i warning "$dir.log" && [ -x "$dir/mprotect_toggle" ]
}

# builds_for MACHINE DIR ARGUMENT...: and what comes out is for that machine
builds_for()
{
	machine=$1
	shift
	build "$@" && readelf -h "$tmp/$1/mprotect_toggle" | grep "Machine:.*$machine"
}

is_static()
{
	build "$@" && ! readelf -l "$tmp/$1/mprotect_toggle" | grep INTERP
}

builds_with_tree()
{
	old=$(tree/get "$1") && build "$1" KSRC="$old"
}

builds_nothing()
{
	before=$(manifest "$tmp/gcc")
	build gcc CC=gcc && [ "$(manifest "$tmp/gcc")" = "$before" ]
}

builds_anew()
{
	build gcc CC=clang && grep 'CC.*vm_util' "$tmp/gcc.log" && grep 'CC.*mprotect' "$tmp/gcc.log"
}

shows_commands()
{
	build verbose V=1 && grep -e ' -Wall -Wextra -O2 .* mprotect_toggle.c ' "$tmp/verbose.log"
}

manifest "$ksrc" > "$tmp/before"

ok "gcc is silent" build gcc CC=gcc
ok "building again builds nothing" builds_nothing
ok "another compiler builds anew" builds_anew
ok "clang is silent" build clang CC=clang
ok "LLVM=1 builds" build llvm LLVM=1
ok "gcc for 32-bit x86 is silent" builds_for 80386 i686 CROSS_COMPILE=i686-linux-gnu-
ok "gcc for arm64 is silent" builds_for AArch64 arm64 CROSS_COMPILE=aarch64-linux-gnu-
ok "USERLDFLAGS=-static makes it static" is_static static USERLDFLAGS=-static
ok "V=1 shows the commands" shows_commands
ok "builds with the 6.12 tree" builds_with_tree 6.12
ok "builds with the 7.2 tree" builds_with_tree 7.2

# A project whose program never ends, and whose settings give it one second.
mkdir "$tmp/project"
cp Makefile ./*.c ./*.h "$tmp/project"
echo timeout=1 > "$tmp/project/settings"
cat > "$tmp/project/mprotect_toggle.c" <<-EOT
#include <unistd.h>

int main(void)
{
	pause();
}
EOT

runs_out_of_time()
{
	make -C "$tmp/project" --no-print-directory KSRC="$ksrc" run_tests > "$tmp/run" || return
	cat "$tmp/run"
	grep '^not ok 1 selftests: mm: mprotect_toggle # TIMEOUT 1 seconds' "$tmp/run"
}

has_a_plan()
{
	[ "$(grep -v '^  CC' "$tmp/run" | head -n 2)" = "TAP version 13
1..$(files program | wc -l)" ]
}

ok "run_tests obeys our settings, and a test that fails does not fail make" runs_out_of_time
ok "run_tests prints KTAP with a plan" has_a_plan

manifest "$ksrc" > "$tmp/after"
ok "the kernel tree is as it was" same "$tmp/before" "$tmp/after"

ok "refuses what is no kernel tree" sh -c "make KSRC='$tmp' 2>&1 | grep 'no kernel source tree'"

# What compares logs does without a kernel tree.
cp -R ab "$tmp/project"
ok "build/compare needs no kernel tree" make -C "$tmp/project" build/compare
ok "build/compare is built" [ -x "$tmp/project/build/compare" ]

done_testing
