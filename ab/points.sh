# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What ab/aba, ab/history and ab/profile share: their options, the test they build, and the
# boots they make of it, telling progress on stderr. They have a usage().

me=ab/$(basename "$0")
top=$(cd "$(dirname "$0")/.." && pwd)

die() # MESSAGE [STATUS]
{
	echo "$me: $1" >&2
	exit "${2:-125}"
}

points_usage()
{
	cat <<-EOT
	  -n          count instructions instead of timing; boots at most 4 points at once
	  -t PROGRAM  the test, mprotect_toggle by default, or a path to a static one
	  -v VARIANT  only this; may be given more than once, or have commas in it
	  -a          all tests, not only page_state and cost
	  -s CPUS     CPUs of the guest
	  -m MIB      memory of the guest
	  -k WORDS    more of the kernel's command line (default preempt=none)
	  -T SECONDS  time limit of a boot (default 600 counted, 86400 timed)
	  -o DIR      where the logs go (default build/$1/...)
	Rounds: 3 to warm up, then 15 of 1000 cycles (mprotect_toggle, the report's protocol)
	or 100000 steps (mmap_churn); with -n 1, then 3 of 5 cycles of 32 MiB, or 5 of 1280
	steps. Variables such as MPROTECT_TOGGLE_ROUNDS change that.
	EOT
}

counted=no test=mprotect_toggle all_tests=no time_limit="" folder=""
variants=() boot_options=() logs=() labels=()

# A plugin for QEMU, with arguments. Each point has it write to $work/INDEX.counts.
plugin=""

# For what getopts finds; OPTARG is set.
points_option() # OPTION
{
	local given

	case $1 in
	h) usage; exit ;;
	n) counted=yes ;;
	t) test=$OPTARG ;;
	v) IFS=, read -ra given <<< "$OPTARG"; variants+=("${given[@]}") ;;
	a) all_tests=yes ;;
	s|m) boot_options+=("-$1" "$OPTARG") ;;
	k) boot_options+=(-k "$OPTARG") ;;
	T) time_limit=$OPTARG ;;
	o) folder=$OPTARG ;;
	:) die "-$OPTARG takes a value; see $me -h" 2 ;;
	*) die "there is no option -$OPTARG; see $me -h" 2 ;;
	esac
}

# Sets images[] to those of the kernels, and machine to what they are all for.
find_kernels() # KERNEL...
{
	local found

	images=() machine=""
	for kernel; do
		found=$("$top/ab/kernel" -m "$kernel") || exit $(($? == 2 ? 2 : 125))
		: "${machine:=${found%% *}}"
		[ "${found%% *}" = "$machine" ] ||
			die "$kernel is for ${found%% *}, $1 for $machine" 2
		images+=("${found#* }")
	done
}

# Several of these programs may run at a time, and each builds what it needs.
make_alone() # ARGUMENT...
{
	mkdir -p "$top/build" && flock "$top/build/making" make -s -C "$top" "$@" > /dev/null
}

# Sets binary to the test, built for the machine, and name to its name.
build_test()
{
	local output=$top/build/static cross=()

	name=$(basename "$test")
	if [ "$name" != "$test" ]; then
		binary=$test
		return
	fi
	if [ "$machine" != "$(uname -m)" ]; then
		output=$output-$machine
		cross=("CROSS_COMPILE=$machine-linux-gnu-" "ARCH=${machine/aarch64/arm64}")
	fi
	make_alone OUTPUT="$output" USERLDFLAGS=-static "${cross[@]}" ||
		die "cannot build $test"
	binary=$output/$test
	[ -x "$binary" ] || die "there is no test $test" 2
}

build_compare()
{
	make_alone build/compare || die "cannot build build/compare"
}

# A misspelt variant would only be missed after the boots.
check_variants()
{
	[ "$machine" = "$(uname -m)" ] || return 0
	for variant in "${variants[@]}"; do
		"$binary" -l 2>&1 | grep -qw -e "$variant" ||
			die "$name has no variant $variant; see $binary -l" 2
	done
}

# Sets words[] to the settings of the test, and rounds.
choose_settings()
{
	local prefix=${name^^} setting value

	words=()
	case $name,$counted in
	mmap_churn,yes) set -- SLOTS= MAX_KB= STEPS=1280 ROUNDS=5 WARMUP_ROUNDS=1 ;;
	mmap_churn,no) set -- SLOTS= MAX_KB= STEPS=100000 ROUNDS=15 WARMUP_ROUNDS=3 ;;
	*,yes) set -- SIZE_MB=32 CYCLES=5 ROUNDS=3 WARMUP_ROUNDS=1 ;;
	*) set -- SIZE_MB= CYCLES=1000 ROUNDS=15 WARMUP_ROUNDS=3 ;;
	esac
	for setting; do
		value=${prefix}_${setting%=*}
		value=${!value-${setting#*=}}
		[ -n "$value" ] || continue
		[[ $value =~ ^[1-9][0-9]*$ ]] ||
			die "${prefix}_${setting%=*} takes a whole number above 0, not '$value'" 2
		words+=("${prefix}_${setting%=*}=$value")
		[ "${setting%=*}" != ROUNDS ] || rounds=$value
	done
}

# Adds to words[] which tests to run.
choose_tests()
{
	case $all_tests,${#variants[@]} in
	yes,*) for variant in "${variants[@]}"; do words+=(-v "$variant"); done ;;
	no,0) words+=(-t page_state -t cost) ;;
	no,*)
		for variant in "${variants[@]}"; do
			words+=(-r "$name.$variant.page_state" -r "$name.$variant.cost")
		done
		;;
	esac
}

# How far a boot is, by its log: a number from 0 to 1, and words.
how_far() # LOG
{
	{ [ ! -e "$1" ] || tr -d '\r' < "$1"; } | awk -v rounds="$rounds" '
		/^1\.\.[0-9]/ { plan = substr($0, 4) + 0 }
		/^(not )?ok / { ended++; round = 0 }
		/^# round / {
			split($3, variant, "=")
			split($4, pair, "=")
			round = pair[2]
		}
		END {
			if (!plan)
				print 0, "starting"
			else if (round)
				printf "%f %s round %d of %d\n", (ended + round / rounds) / plan,
					variant[2], round, rounds
			else
				printf "%f test %d of %d\n", ended / plan,
					ended < plan ? ended + 1 : plan, plan
		}'
}

minutes() # SECONDS
{
	printf '%d:%02d' $(($1 / 60)) $(($1 % 60))
}

# One line: what runs, how long it took so far, and about how long it will. A terminal has
# it written over each time.
tell_progress()
{
	local line="" far text sum=$ended elapsed=$((SECONDS - began))

	for i in "${!running[@]}"; do
		read -r far text <<< "$(how_far "${logs[i]}")"
		sum=$(awk "BEGIN { print $sum + $far }")
		line+="point $((i + 1)) of ${#logs[@]} (${labels[i]}): $text; "
	done
	line+="$(minutes $elapsed) so far"
	line+=$(awk -v sum="$sum" -v all=${#logs[@]} -v elapsed=$elapsed 'BEGIN {
		if (sum > 0.1)
			printf ", about %d s to go", elapsed * (all - sum) / sum }')
	if [ -t 2 ]; then
		printf '\r%s: %s\033[K' "$me" "$line" >&2
	else
		echo "$me: $line" >&2
	fi
}

stop_points()
{
	[ ${#running[@]} -eq 0 ] || kill "${running[@]}" 2> /dev/null
	wait
	rm -rf "$work"
}

start_point() # INDEX
{
	local options=("${boot_options[@]}")

	[ -z "$plugin" ] || options+=(-P "$plugin,out=${work//,/,,}/$1.counts")
	rm -f "${logs[$1]}"
	"$top/ab/boot" "${images[$1]}" "${options[@]}" -o "${logs[$1]}" -- \
		"$binary" "${words[@]}" 2> "$work/$1" &
	running[$1]=$!
}

# Of a point that has ended.
end_point() # INDEX
{
	local status=0

	wait "${running[$1]}" || status=$?
	unset "running[$1]"
	ended=$((ended + 1))
	[ ! -t 2 ] || printf '\r\033[K' >&2
	echo "$me: point $(($1 + 1)) of ${#logs[@]} (${labels[$1]}) ended after" \
		"$(minutes $((SECONDS - began)))" >&2
	cat "$work/$1" >&2
	case $status in
	0|1|4) ;;
	2) exit 2 ;;
	*) exit 125 ;;
	esac
}

# Boots each of images[] and fills logs[], which must be paths with labels[] for them. In
# counted mode what else the machine does makes no difference, and points may run together.
run_points()
{
	local next=0 most=1 tell_at tell_every

	if [ $counted = yes ]; then
		boot_options+=(-n)
		most=$(nproc)
		[ "$most" -le 4 ] || most=4
	fi
	: "${time_limit:=$([ $counted = yes ] && echo 600 || echo 86400)}"
	boot_options+=(-T "$time_limit")

	running=() ended=0 began=$SECONDS tell_at=$SECONDS tell_every=10
	[ ! -t 2 ] || tell_every=1
	work=$(mktemp -d) || exit 125
	trap stop_points EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
	mkdir -p "$folder" || die "cannot make $folder" 2

	while [ $ended -lt ${#images[@]} ]; do
		while [ ${#running[@]} -lt "$most" ] && [ $next -lt ${#images[@]} ]; do
			start_point $next
			next=$((next + 1))
		done
		sleep 0.2
		for i in "${!running[@]}"; do
			kill -0 "${running[i]}" 2> /dev/null || end_point "$i"
		done
		if [ ${#running[@]} -gt 0 ] && [ $SECONDS -ge $tell_at ]; then
			tell_progress
			tell_at=$((SECONDS + tell_every))
		fi
	done
}
