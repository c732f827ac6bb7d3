# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
#
# What the tests of this folder share: sourced by them from the project's root.
# Each gets an empty folder of its own, $tmp, which is gone when it ends.

set -u

# A test makes its own use of make, whoever calls it.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES CC LLVM CROSS_COMPILE ARCH OUTPUT \
	USERCFLAGS USERLDFLAGS
export LC_ALL=C

top=$(pwd)
mkdir -p "$top/build/check"
tmp=$(mktemp -d "$top/build/check/$(basename "$0").XXXXXX") || exit
trap 'at_exit; rm -rf "$tmp"' EXIT
trap 'exit 130' INT
trap 'exit 143' HUP TERM

# For a test to redefine, if it has more to put away than $tmp.
at_exit()
{
	:
}

tests=0

# ok WHAT COMMAND...: a test point, which holds if the command succeeds. What the
# command printed is shown if it does not.
ok()
{
	tests=$((tests + 1))
	what=$1
	shift
	if "$@" > "$tmp/output" 2>&1; then
		echo "ok $tests - $what"
	else
		echo "not ok $tests - $what"
		sed 's/^/#   /' "$tmp/output"
	fi
}

# skip WHAT REASON: a test point that cannot be had here
skip()
{
	tests=$((tests + 1))
	echo "ok $tests - $1 # SKIP $2"
}

# make, but for what more than one test or ab/ program makes
make_alone()
{
	flock "$top/build/making" make -s "$@" > /dev/null
}

not()
{
	! "$@"
}

# exits STATUS COMMAND...: the command exits so
exits()
{
	expected=$1
	shift
	"$@"
	status=$?
	echo "exit $status, not $expected"
	[ $status -eq "$expected" ]
}

# refuses STATUS PATTERN COMMAND...: the command exits so, with one line on stderr
# that has the pattern in it, and nothing on stdout
refuses()
{
	expected=$1
	pattern=$2
	shift 2
	"$@" > "$tmp/refusal.out" 2> "$tmp/refusal"
	status=$?
	echo "exit $status, not $expected, or not one line with '$pattern':"
	cat "$tmp/refusal.out" "$tmp/refusal"
	[ $status -eq "$expected" ] && [ ! -s "$tmp/refusal.out" ] &&
		[ "$(wc -l < "$tmp/refusal")" -eq 1 ] && grep -q -e "$pattern" "$tmp/refusal"
}

# For a test that has $TMPDIR to itself: no process and no file is left there.
nothing_is_left()
{
	left=$(grep -ls "$TMPDIR" /proc/[0-9]*/cmdline; ls "$TMPDIR")
	echo "left: $left"
	[ -z "$left" ]
}

same()
{
	diff -u "$1" "$2"
}

# Names, modes, times and contents of all that is in a folder.
manifest()
{
	(cd "$1" && find . -printf '%p %m %s %T@ %l\n' | sort &&
		find . -type f -print0 | sort -z | xargs -0 sha256sum)
}

# files KIND: what tree/files has of that kind
files()
{
	awk -v kind="$1" '$2 == kind { print $3 }' tree/files
}

done_testing()
{
	echo "1..$tests"
}
