#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Every knob of the selftests: what it takes, what it refuses, what it does.

. check/lib.sh

toggle=${1-build/mprotect_toggle}
churn=${2-build/mmap_churn}
newline='1
2'

# Which selftest, and the cost of one variant of it, small, but for what is asked.
of_mprotect_toggle()
{
	program=$toggle
	prefix=MPROTECT_TOGGLE
	cost=mprotect_toggle.shared_dirty.cost
	test=$cost
	small="${prefix}_SIZE_MB=1 ${prefix}_CYCLES=1 ${prefix}_ROUNDS=1 ${prefix}_WARMUP_ROUNDS=1"
}

of_mmap_churn()
{
	program=$churn
	prefix=MMAP_CHURN
	cost=mmap_churn.map_only.cost
	test=$cost
	small="${prefix}_SLOTS=20 ${prefix}_STEPS=1 ${prefix}_ROUNDS=1 ${prefix}_WARMUP_ROUNDS=1"
}

# with KNOB=VALUE... [OPTION...]
with()
{
	# shellcheck disable=SC2086 # several
	env $small "$@" "$program" -r "$test"
}

# refused KNOB MOST VALUE: tells the name, the value and what it takes, in one line
refused()
{
	refuses 1 "^$1 is '$(echo "$3" | head -n 1).*: it takes a whole number from 1 to $2\$" \
		env "$1=$3" "$program" -r "$cost"
}

# taken KNOB=VALUE...: accepted, and the test passes
taken()
{
	with "$@" > "$tmp/taken"
	status=$?
	cat "$tmp/taken"
	[ $status -eq 0 ] && grep -q '^ok 1 [^ ]*$' "$tmp/taken"
}

# prints PATTERN KNOB=VALUE...
prints()
{
	pattern=$1
	shift
	taken "$@" && grep -qE "$pattern" "$tmp/taken"
}

# prints_rounds NUMBER KNOB=VALUE...
prints_rounds()
{
	number=$1
	shift
	taken "$@" && [ "$(grep -c '^# round ' "$tmp/taken")" -eq "$number" ] &&
		grep -q "^# cost .* rounds=$number " "$tmp/taken"
}

# One round has no deviation.
prints_no_deviation()
{
	taken "${prefix}_ROUNDS=1" && ! grep 'cycle_sd_ns' "$tmp/taken"
}

# skips REASON KNOB=VALUE...: accepted, and the test skips for that reason
skips()
{
	reason=$1
	shift
	with "$@" > "$tmp/taken"
	status=$?
	cat "$tmp/taken"
	[ $status -eq 4 ] && grep -q "^ok 1 .* # SKIP $reason\$" "$tmp/taken"
}

explains_itself()
{
	env "${prefix}_ROUNDS=0" "$program" -h
}

page_kb=$(($(getconf PAGESIZE) / 1024))

while read -r program knob most; do
	of_"$program"
	for value in "" 0 00 -1 +1 1x x1 0x10 1e3 1.5 " " " 1" "1 " "1 2" "1,2" "$newline" \
		nan $((most + 1)) 4294967297 18446744073709551617 99999999999999999999; do
		ok "$knob refuses '$(printf %s "$value" | tr '\n' '/')'" \
			refused "${prefix}_$knob" "$most" "$value"
	done
	ok "$knob takes 1" taken "${prefix}_$knob=1"
done <<-EOT
mprotect_toggle SIZE_MB 1048576
mprotect_toggle CYCLES 100000
mprotect_toggle ROUNDS 1000
mprotect_toggle WARMUP_ROUNDS 1000
mmap_churn SLOTS 1048576
mmap_churn MAX_KB 1024
mmap_churn STEPS 16000000
mmap_churn ROUNDS 1000
mmap_churn WARMUP_ROUNDS 1000
EOT

of_mprotect_toggle
test=mprotect_toggle.shared_dirty.page_state
ok "the most of all together is taken" taken MPROTECT_TOGGLE_SIZE_MB=1048576 \
	MPROTECT_TOGGLE_CYCLES=100000 MPROTECT_TOGGLE_ROUNDS=1000 \
	MPROTECT_TOGGLE_WARMUP_ROUNDS=1000
test=$cost
ok "SIZE_MB is MiB" prints "^# cost .* pages=$((3072 / page_kb)) " MPROTECT_TOGGLE_SIZE_MB=3
ok "a SIZE_MB that no machine has is skipped" \
	skips "not enough free memory" MPROTECT_TOGGLE_SIZE_MB=1048576
ok "CYCLES are recorded cycles" prints '^# round .* cycles=7 ' MPROTECT_TOGGLE_CYCLES=7
ok "zeros in front do not make it octal" prints '^# cost .* cycles=10 ' \
	MPROTECT_TOGGLE_CYCLES=010
ok "ROUNDS are recorded rounds" prints_rounds 3 MPROTECT_TOGGLE_ROUNDS=3
ok "WARMUP_ROUNDS are not recorded" prints_rounds 2 MPROTECT_TOGGLE_ROUNDS=2 \
	MPROTECT_TOGGLE_WARMUP_ROUNDS=3
ok "one round has no deviation" prints_no_deviation
ok "-h is not refused for a bad knob" explains_itself

of_mmap_churn
test=mmap_churn.map_only.contents
ok "the most of all together is taken" taken MMAP_CHURN_MAX_KB=1024 MMAP_CHURN_STEPS=16000000 \
	MMAP_CHURN_ROUNDS=1000 MMAP_CHURN_WARMUP_ROUNDS=1000
test=$cost
ok "SLOTS are so many, and MAX_KB is the largest" prints \
	"^# state .* slots=1 size_kb=$((8 > page_kb ? 8 : page_kb)) " \
	MMAP_CHURN_SLOTS=1 MMAP_CHURN_MAX_KB=8
ok "SLOTS that are more than may be mapped are skipped" \
	skips "too few mappings allowed by vm.max_map_count" MMAP_CHURN_SLOTS=1048576
ok "STEPS are in whole batches" prints '^# round .* cycles=3 steps=16 ' MMAP_CHURN_STEPS=33
ok "a batch has no more steps than there are slots" prints \
	'^# round .* cycles=5 steps=3 ' MMAP_CHURN_STEPS=15 MMAP_CHURN_SLOTS=3
ok "ROUNDS are recorded rounds" prints_rounds 3 MMAP_CHURN_ROUNDS=3
ok "WARMUP_ROUNDS are not recorded" prints_rounds 2 MMAP_CHURN_ROUNDS=2 \
	MMAP_CHURN_WARMUP_ROUNDS=3
ok "one round has no deviation" prints_no_deviation
ok "-h is not refused for a bad knob" explains_itself

done_testing
