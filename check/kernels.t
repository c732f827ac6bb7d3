#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# What check/kernels makes of logs, without a boot.

. check/lib.sh

# log ROW PROGRAM LINE...: with a plan for so many results
log()
{
	file=$tmp/logs/$1.$2.log
	shift 2
	{
		echo "TAP version 13"
		echo "1..$#"
		printf '%s\r\n' "$@"
	} > "$file"
}

# What a row of 7.1 has to be: the one known failure, in two tests.
fresh()
{
	rm -rf "$tmp/logs"
	mkdir "$tmp/logs"
	log 7.1 mprotect_toggle "ok 1 mprotect_toggle.private.cost" \
		"not ok 2 mprotect_toggle.private_thp.page_state" \
		"not ok 3 mprotect_toggle_private.private_thp.dirty_survives"
	log 7.1 mmap_churn "ok 1 mmap_churn.shared.cost"
	log 7.3,1cpu mprotect_toggle "ok 1 mprotect_toggle.private.cost" \
		"ok 2 mprotect_toggle.private.other_cpus # SKIP only one CPU to run on"
	log 7.3,1cpu mmap_churn "ok 1 mmap_churn.shared.cost"
}

# judges STATUS PATTERN: what is printed has the pattern in it
judges()
{
	exits "$1" check/kernels -n -o "$tmp/logs" 7.1 7.3,1cpu > "$tmp/table"
	status=$?
	cat "$tmp/table"
	[ $status -eq 0 ] && grep -q -e "$2" "$tmp/table"
}

fresh
ok "what is known fails nothing" judges 0 "^4 passed, 0 failed"
ok "and is explained" judges 0 "7.1: a PMD-mapped huge page loses its dirty bit"
ok "a table has a row each" judges 0 "^7.3,1cpu  *ok .* skip$"
log 7.1 mmap_churn "not ok 1 mmap_churn.shared.cost"
ok "a failure that is not known" judges 1 "^NOT KNOWN: 7.1 mmap_churn.shared.cost: fail"
fresh
log 7.1 mmap_churn "ok 1 mmap_churn.shared.cost # SKIP only one CPU to run on"
ok "a skip that is not known" judges 1 "^NOT KNOWN: 7.1 mmap_churn.shared.cost: skip only one CPU"
fresh
log 7.3,1cpu mprotect_toggle "ok 1 mprotect_toggle.private.other_cpus # SKIP no smaps in /proc"
ok "a skip for another reason" judges 1 "other_cpus: skip no smaps in /proc"
fresh
log 7.1 mprotect_toggle "ok 1 mprotect_toggle.private_thp.page_state" \
	"ok 2 mprotect_toggle_private.private_thp.dirty_survives"
ok "a known failure that passes" judges 1 "^NOT KNOWN: 7.1: passes, but should not"
fresh
sed -i '$d' "$tmp/logs/7.1.mprotect_toggle.log"
ok "a log that is cut off" judges 1 "^NOT KNOWN: 7.1 results: fail 2 of 3"
fresh
rm "$tmp/logs/7.1.mmap_churn.log"
ok "a log that is not there" judges 1 "^NOT KNOWN: 7.1 results: fail 0 of 0"
fresh
echo "mmap_churn: the guest crashed" > "$tmp/logs/7.1.failed"
ok "a boot that failed" judges 1 "^NOT KNOWN: 7.1 boot: fail mmap_churn: the guest crashed"

ok "-h" exits 0 check/kernels -h
ok "-l lists rows" sh -c "check/kernels -l | grep -q '^7.3,arm64,16k '"
ok "refuses a row that is none" refuses 2 "no row 5.10" check/kernels 5.10
ok "refuses an unknown option" refuses 2 "no option -x" check/kernels -x
ok "refuses no jobs" refuses 2 "whole number above 0" check/kernels -j 0

done_testing
