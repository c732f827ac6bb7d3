#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# ab/history: the table, from boots whose figures are known.

. check/lib.sh

# All that ab/history must remove is below this.
export TMPDIR="$tmp/tmp"
mkdir "$TMPDIR"

history()
{
	ab/history -n -v shared_dirty,private_thp -o "$tmp/logs" "$@" 6.16.12 6.17.13 7.3.4 \
		> "$tmp/table" 2> "$tmp/stderr"
	status=$?
	cat "$tmp/stderr" "$tmp/table"
	return $status
}

# Each row has what the cost lines of its log say, rounded as they are: of all words that
# are numbers, the figures are those with two decimals.
has_figures()
{
	for log in "$tmp/logs/1-6.16.12.log" "$tmp/logs/2-6.17.13.log" "$tmp/logs/3-7.3.4.log"; do
		kernel=${log#*-}
		tr -d '\r' < "$log" |
		awk -v kernel="${kernel%.log}" '/^# cost / {
			for (i = 1; i <= NF; i++) {
				split($i, pair, "=")
				value[pair[1]] = pair[2]
			}
			print kernel, value["variant"], value["cycle_median_ns"]
		}'
	done > "$tmp/expected"
	[ "$(wc -l < "$tmp/expected")" -eq 6 ] || return
	while read -r kernel variant median; do
		awk -v kernel="$kernel" -v variant="$variant" -v median="$median" '
			$1 == "kernel" && !at {
				for (i = 2; i <= NF; i++)
					if ($i == variant)
						at = i - 1
			}
			$1 == kernel {
				for (i = 2; i <= NF; i++)
					if ($i ~ /^[0-9]+\.[0-9][0-9]$/ && ++figures == at) {
						print kernel, variant, $i, median
						off = $i - median
						exit !(off < 0.2 && off > -0.2)
					}
				exit 1
			}' "$tmp/table" || return
	done < "$tmp/expected"
}

has_change()
{
	grep -E '^6\.16\.12 +[0-9.]+ +[0-9.]+ \* *$' "$tmp/table" &&
		grep -E '^6\.17\.13 +[0-9.]+ \+1[12][0-9]\.[0-9] % ' "$tmp/table" &&
		grep -E '^7\.3\.4 +[0-9.]+ \+[0-9.]+ % ' "$tmp/table"
}

# Up to 7.1 private_thp loses the dirty bit; 7.3 does not.
marks_failures()
{
	cat "$tmp/table"
	[ "$(grep -c '^[67].* \* *$' "$tmp/table")" -eq 2 ] &&
		grep '^\* a test of this variant failed' "$tmp/table" &&
		! grep '^7\.3\.4 .*\*' "$tmp/table"
}

markdown()
{
	ab/history -n -v shared_dirty -o "$tmp/markdown-logs" --markdown 7.3.4 > "$tmp/table" || return
	cat "$tmp/table"
	sed -n 1p "$tmp/table" | grep -x '| kernel | shared_dirty |' &&
		sed -n 2p "$tmp/table" | grep -x '| --- | --- |' &&
		sed -n 3p "$tmp/table" | grep -xE '\| 7\.3\.4 \| [0-9]+\.[0-9]+ \|'
}

# with fault, without, difference
churn()
{
	MMAP_CHURN_STEPS=160 MMAP_CHURN_ROUNDS=2 ab/history -n -t mmap_churn \
		-v map_only,map_and_fault -o "$tmp/churn-logs" 7.3.4 > "$tmp/table" || return
	cat "$tmp/table"
	grep '^kernel  *with fault  *without  *difference$' "$tmp/table" &&
		grep '^instructions/step; ' "$tmp/table" &&
		awk '$1 == "7.3.4" && NF == 4 {
			off = $2 - $3 - $4
			found = off < 0.02 && off > -0.02 && $4 > 0
		} END { exit !found }' "$tmp/table"
}

nothing_is_left()
{
	[ -z "$(ls "$TMPDIR")" ]
}

# An image that says it is one, and does nothing.
dead_kernel()
{
	head -c 1000000 "$1" > "$tmp/dead"
	exits 125 ab/history -n -T 5 -v shared_dirty -o "$tmp/dead-logs" "$tmp/dead"
}

ok "-h" exits 0 ab/history -h
ok "refuses to do without a kernel" refuses 2 "takes kernels" ab/history -n
ok "refuses an unknown option" refuses 2 "no option -z" ab/history -z 7.3
ok "refuses an unknown long option" refuses 2 "no option --mark" ab/history --mark 7.3
ok "refuses a kernel that is none" refuses 2 "nowhere is no" ab/history nowhere

for kernel in 6.16.12 6.17.13 7.3.4; do
	if ! ab/kernel "$kernel" > /dev/null; then
		skip "tables" "kernel $kernel cannot be fetched"
		done_testing
		exit
	fi
done

ok "refuses a variant that is none" \
	refuses 2 "no variant shared_dusty" ab/history -n -T 5 -v shared_dusty 7.3.4
ok "a table" history
ok "has the figures of the logs" has_figures
ok "has changes from the row above" has_change
ok "marks failed tests" marks_failures
ok "a table in Markdown" markdown
ok "mmap_churn, in the form of its report" churn
ok "a kernel that does not boot" dead_kernel "$(ab/kernel 7.3.4)"
ok "no boot left a file" nothing_is_left

done_testing
