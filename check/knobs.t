#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Every knob of the selftest: what it takes, what it refuses, what it does.

. check/lib.sh

toggle=${1-build/mprotect_toggle}
cost=mprotect_toggle.shared_dirty.cost
newline='1
2'

# with KNOB=VALUE... [OPTION...]: the cost of one variant, small, but for what is asked
with()
{
	env MPROTECT_TOGGLE_SIZE_MB=1 MPROTECT_TOGGLE_CYCLES=1 MPROTECT_TOGGLE_ROUNDS=1 \
		MPROTECT_TOGGLE_WARMUP_ROUNDS=1 "$@" "$toggle" -r "${test-$cost}"
}

# refused KNOB MOST VALUE: tells the name, the value and what it takes, in one line
refused()
{
	refuses 1 "^$1 is '$(echo "$3" | head -n 1).*: it takes a whole number from 1 to $2\$" \
		env "$1=$3" "$toggle" -r $cost
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
	taken MPROTECT_TOGGLE_ROUNDS=1 && ! grep 'cycle_sd_ns' "$tmp/taken"
}

# More than any machine has: accepted, and the test skips.
skips_what_does_not_fit()
{
	with MPROTECT_TOGGLE_SIZE_MB=1048576 > "$tmp/taken"
	status=$?
	cat "$tmp/taken"
	[ $status -eq 4 ] && grep -q '^ok 1 .* # SKIP not enough free memory$' "$tmp/taken"
}

explains_itself()
{
	env MPROTECT_TOGGLE_SIZE_MB=0 "$toggle" -h
}

page_kb=$(($(getconf PAGESIZE) / 1024))

while read -r knob most; do
	for value in "" 0 00 -1 +1 1x x1 0x10 1e3 1.5 " " " 1" "1 " "1 2" "1,2" "$newline" \
		nan $((most + 1)) 4294967297 18446744073709551617 99999999999999999999; do
		ok "$knob refuses '$(printf %s "$value" | tr '\n' '/')'" \
			refused "MPROTECT_TOGGLE_$knob" "$most" "$value"
	done
	ok "$knob takes 1" taken "MPROTECT_TOGGLE_$knob=1"
done <<-EOT
SIZE_MB 1048576
CYCLES 100000
ROUNDS 1000
WARMUP_ROUNDS 1000
EOT

test=mprotect_toggle.shared_dirty.page_state
ok "the most of all together is taken" taken MPROTECT_TOGGLE_SIZE_MB=1048576 \
	MPROTECT_TOGGLE_CYCLES=100000 MPROTECT_TOGGLE_ROUNDS=1000 \
	MPROTECT_TOGGLE_WARMUP_ROUNDS=1000
test=$cost
ok "SIZE_MB is MiB" prints "^# cost .* pages=$((3072 / page_kb)) " MPROTECT_TOGGLE_SIZE_MB=3
ok "a SIZE_MB that no machine has is skipped" skips_what_does_not_fit
ok "CYCLES are recorded cycles" prints '^# round .* cycles=7 ' MPROTECT_TOGGLE_CYCLES=7
ok "zeros in front do not make it octal" prints '^# cost .* cycles=10 ' \
	MPROTECT_TOGGLE_CYCLES=010
ok "ROUNDS are recorded rounds" prints_rounds 3 MPROTECT_TOGGLE_ROUNDS=3
ok "WARMUP_ROUNDS are not recorded" prints_rounds 2 MPROTECT_TOGGLE_ROUNDS=2 \
	MPROTECT_TOGGLE_WARMUP_ROUNDS=3
ok "one round has no deviation" prints_no_deviation
ok "-h is not refused for a bad knob" explains_itself

done_testing
