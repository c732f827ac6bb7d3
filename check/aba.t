#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# ab/aba: whole sandwiches of kernels whose difference is known.

. check/lib.sh

# All that ab/aba must remove is below this.
export TMPDIR="$tmp/tmp"
mkdir "$TMPDIR"

# sandwich NAME A B OPTION...: leaves its logs in $tmp/NAME, and what it prints beside them
sandwich()
{
	name=$1 a=$2 b=$3
	shift 3
	ab/aba -o "$tmp/$name" "$@" "$a" "$b" > "$tmp/$name.out" 2> "$tmp/$name.err"
	status=$?
	cat "$tmp/$name.err" "$tmp/$name.out"
	return $status
}

# says NAME VARIANT VERDICT [LOW HIGH]: the last line on the variant, whose change is between
# the two
says()
{
	grep "^$2 " "$tmp/$1.out"
	grep "^$2 " "$tmp/$1.out" | tail -n 1 | grep -q "$3" || return
	[ $# -eq 3 ] || awk -v variant="$2" -v low="$4" -v high="$5" \
		'$1 == variant { change = $2 + 0 } END { exit !(change > low && change < high) }' \
		"$tmp/$1.out"
}

# Two boots of a kernel give the same figures, and so nothing to tell apart.
repeats() # NAME
{
	for point in 1 3; do
		tr -d '\r' < "$tmp/$1/$point-A.log" | grep -E '^# (round|cost|state) ' \
			> "$tmp/$point"
	done
	[ -s "$tmp/1" ] && same "$tmp/1" "$tmp/3" &&
		exits 0 build/compare "$tmp/$1/1-A.log" "$tmp/$1/3-A.log"
}

# NAME LOG...: these logs and no other
has_logs()
{
	name=$1
	shift
	printf '%s\n' "$@" > "$tmp/expected"
	(cd "$tmp/$name" && ls) | same "$tmp/expected" -
}

# Each point's rounds and cycles are the ones asked for, and time is not counted.
has_rounds() # NAME CYCLES ROUNDS
{
	for log in "$tmp/$1"/*; do
		tr -d '\r' < "$log" | grep "^# env " | grep -v clock=instructions &&
			[ "$(tr -d '\r' < "$log" | grep -c "^# round .* cycles=$2 ")" -eq "$3" ] ||
			return
	done
}

tells_progress()
{
	cat "$tmp/$1.err"
	grep "point 1 of 3 (A, $2)" "$tmp/$1.err" && grep "point 2 of 3 (B, $3)" "$tmp/$1.err" &&
		grep "^ab/aba: point 3 of 3 (A, $2) ended after [0-9]" "$tmp/$1.err"
}

# A point that fails ends it all, with what ab/boot says.
fails()
{
	exits 125 ab/aba -n -v shared_dirty -m 8 -o "$tmp/fails" "$kernel" "$kernel" \
		2> "$tmp/stderr"
	status=$?
	cat "$tmp/stderr"
	[ $status -eq 0 ] && grep "^ab/boot: the guest crashed" "$tmp/stderr" && nothing_is_left
}

interrupted()
{
	setsid perl -e "\$SIG{INT} = 'DEFAULT'; exec @ARGV" \
		ab/aba -n -v shared_dirty -o "$tmp/interrupted" "$kernel" "$kernel" &
	pid=$!
	until grep -qs "Linux version" "$tmp/interrupted/1-A.log"; do
		kill -0 $pid 2> /dev/null || break
		sleep 0.1
	done
	kill -s INT -- -$pid
	wait $pid
	status=$?
	echo "exit $status"
	[ $status -eq 130 ] && nothing_is_left
}

# kernels VERSION...: true if all can be had, else $missing says which cannot
kernels()
{
	for kernel; do
		missing="kernel $kernel cannot be fetched"
		ab/kernel "$kernel" > /dev/null || return
	done
}

ok "-h" exits 0 ab/aba -h
ok "refuses one kernel" refuses 2 "takes two kernels" ab/aba 7.3
ok "refuses an unknown option" refuses 2 "no option -z" ab/aba -z 7.3 7.3
ok "refuses an option without its value" refuses 2 "-v takes a value" ab/aba -v
ok "refuses no sandwich" refuses 2 "-p takes a whole number" ab/aba -p 0 7.3 7.3
ok "refuses a kernel that is none" refuses 2 "nowhere is no" ab/aba nowhere 7.3

if kernels 7.3; then
	ok "refuses rounds that are no number" refuses 2 "ROUNDS takes a whole number" \
		env MPROTECT_TOGGLE_ROUNDS=many ab/aba -n -T 5 7.3 7.3
	ok "refuses a test that is none" refuses 2 "no test nothing" ab/aba -n -T 5 -t nothing 7.3 7.3
	ok "refuses a variant that is none" \
		refuses 2 "no variant shared_dusty" ab/aba -n -T 5 -v shared_dusty 7.3 7.3
	ok "a point that fails" fails
	ok "Ctrl-C leaves nothing behind" interrupted
	export MPROTECT_TOGGLE_SIZE_MB=1 MPROTECT_TOGGLE_ROUNDS=2 MPROTECT_TOGGLE_CYCLES=3
	sandwich timed 7.3 7.3 -T 600 -v private -p 2 > "$tmp/timed.all"
	unset MPROTECT_TOGGLE_SIZE_MB MPROTECT_TOGGLE_ROUNDS MPROTECT_TOGGLE_CYCLES
	ok "two sandwiches, timed" has_logs timed 1-A.log 2-B.log 3-A.log 4-B.log 5-A.log
	ok "rounds and cycles as in the environment" has_rounds timed 3 2
	export MMAP_CHURN_STEPS=48 MMAP_CHURN_ROUNDS=2
	sandwich churn 7.3 7.3 -T 600 -t mmap_churn -v map_only > "$tmp/churn.all"
	unset MMAP_CHURN_STEPS MMAP_CHURN_ROUNDS
	ok "mmap_churn, timed" has_logs churn 1-A.log 2-B.log 3-A.log
	ok "its rounds and steps" has_rounds churn 3 2
	ok "its verdict" says churn map_only %
else
	skip "sandwiches of 7.3" "$missing"
fi

if kernels 6.16.12 6.17.13; then
	ok "6.17 is slower than 6.16" exits 1 sandwich batch 6.16.12 6.17.13 -n \
		-v shared_dirty,private -v shared_thp_pte,private_thp
	ok "shared_dirty: about 121 % slower" says batch shared_dirty slower 115 127
	ok "private: about 83 % slower" says batch private slower 78 88
	ok "shared_thp_pte: about 27 % faster" says batch shared_thp_pte faster -31 -23
	ok "private_thp: about even" says batch private_thp "" -4 4
	ok "A, B, A" has_logs batch 1-A.log 2-B.log 3-A.log
	ok "fresh boots of a kernel give the same figures" repeats batch
	ok "progress" tells_progress batch 6.16.12 6.17.13
else
	skip "6.16.12 and 6.17.13" "$missing"
fi

if kernels 7.0.13 7.1.13; then
	ok "7.1 is not slower than 7.0" exits 0 sandwich faster 7.0.13 7.1.13 -n -v shared_dirty
	ok "shared_dirty: about 3 % faster" says faster shared_dirty faster -4 -2
else
	skip "7.0.13 and 7.1.13" "$missing"
fi

if kernels 7.1.13 7.3.4; then
	ok "7.3 is slower than 7.1" \
		exits 1 sandwich dirty 7.1.13 7.3.4 -n -v shared_dirty,private_thp
	ok "shared_dirty: about 4 % slower" says dirty shared_dirty slower 3 5
	ok "private_thp: not comparable" says dirty private_thp "not comparable.*dirty_kb"
else
	skip "7.1.13 and 7.3.4" "$missing"
fi

done_testing
