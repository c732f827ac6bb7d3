#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Every lie of check/churn-liars.c, a kernel or a machine that misbehaves in one way,
# must be found out by mmap_churn. The tests named here pass when nobody lies.

. check/lib.sh

churn=${1-build/mmap_churn}
ksrc=${KSRC:-$(tree/get)}
export MMAP_CHURN_STEPS=64 MMAP_CHURN_ROUNDS=1 MMAP_CHURN_SLOTS=256

# LIE VARIANT.TEST VERDICT WHAT: under this lie the test fails, and has the words WHAT
# in a line of its output, where * stands for any; or it skips for the reason WHAT.
expected()
{
	cat <<-EOT
	none map_only.page_state passes
	map_fails map_only.contents fails error call=mmap errno=12
	map_overlaps map_and_fault.page_state fails phase=mapped field=overlaps expected=0 seen=
	map_overlaps map_only.cost fails slots overlap after the timed cycles
	map_leaves_stale_word map_only.contents fails phase=fresh field=contents expected=0x0 seen=0x5a words=1
	map_leaves_stale_word populate.contents fails phase=fresh field=contents expected=0x0 seen=0x5a words=1
	map_leaves_stale_word shared.contents fails phase=fresh field=contents expected=0x0 seen=0x5a words=1
	map_leaves_stale_word brk_like.contents fails phase=fresh field=contents expected=0x0 seen=0x5a words=1
	map_leaves_stale_word map_only.page_state fails phase=touched field=present expected=0
	map_leaves_some_stale map_and_fault.contents fails phase=fresh field=contents expected=0x0 seen=0x5a words=1
	map_leaves_some_stale map_and_fault.page_state fails phase=mapped field=present expected=0 seen=
	map_splits map_and_fault.page_state fails phase=mapped field=vmas expected=at_most_
	map_splits shared.page_state fails phase=mapped field=vmas expected=
	map_does_not_merge brk_like.page_state fails phase=mapped field=vmas expected=
	map_leaks_vma map_only.page_state fails phase=*mapped field=vmas expected=
	map_leaks_page map_only.page_state fails phase=unmapped field=rss_kb expected=at_most_
	map_loses_page map_and_fault.contents fails phase=kept field=contents expected=0x* seen=0x0
	map_copies_page map_and_fault.contents fails phase=kept field=contents expected=0x* seen=0x
	never_populates populate.page_state fails phase=touched field=present expected=* seen=
	never_populates populate.faults fails phase=touch field=faults expected=0 seen=
	always_populates map_only.page_state fails phase=touched field=present expected=0 seen=
	always_populates map_and_fault.page_state fails phase=mapped field=present expected=0 seen=
	always_populates map_and_fault.faults fails phase=map field=faults expected=0 seen=
	always_populates map_and_fault.faults fails phase=touch field=faults_that_lack expected=at_most_0 seen=
	always_populates shared.faults fails phase=touch field=faults_that_lack expected=at_most_0 seen=
	always_populates map_only.cost fails page faults in every timed cycle
	private_not_shared shared.page_state fails phase=mapped field=vmas expected=
	unmap_does_nothing map_only.page_state fails phase=unmapped field=size_kb expected=at_most_
	unmap_does_nothing map_only.contents fails phase=unmapped field=access expected=EFAULT
	unmap_does_nothing map_and_fault.contents fails phase=unmapped field=access expected=EFAULT
	unmap_leaves_last_page map_and_fault.contents fails phase=unmapped field=access expected=EFAULT
	unmap_leaves_last_page map_and_fault.page_state fails phase=*mapped field=vmas expected=
	unmap_only_empties shared.contents fails phase=unmapped field=access expected=EFAULT
	unmap_only_empties map_only.page_state fails phase=unmapped field=size_kb expected=at_most_
	unmap_fails map_only.contents fails Expected 1 (1) == right (0)
	unmap_fails map_only.faults fails Expected 0 (0) == ret (-12)
	unmap_fails map_only.cost fails a system call failed in a cycle
	faults_more map_only.faults fails phase=map field=faults expected=0 seen=1
	faults_more map_and_fault.faults fails phase=touch field=faults_over_one_a_page expected=at_most_0 seen=1
	faults_more map_and_fault.faults fails phase=touch_again field=faults expected=0 seen=1
	faults_more populate.faults fails phase=map field=faults_over_one_a_page expected=at_most_0 seen=1
	faults_more populate.faults fails phase=touch field=faults expected=0 seen=1
	faults_more map_only.cost fails page faults in every timed cycle
	prctl_fails map_only.page_state fails Expected 0 (0) == only_base_pages()
	prctl_fails map_only.cost fails error call=prctl errno=22
	prctl_fails map_only.faults fails Expected 0 (0) == only_base_pages()
	no_smaps map_only.page_state skips no smaps or pagemap in /proc
	no_status map_only.page_state fails phase=unmapped field=page_table_kb expected=at_least_1 seen=-1
	empty_status map_only.page_state fails phase=unmapped field=page_table_kb expected=at_least_1 seen=-1
	pages_uncounted map_only.page_state fails phase=unmapped field=counted_rss_kb expected=at_most_
	page_tables_grow map_only.page_state fails phase=unmapped field=page_table_kb expected=at_most_
	few_mappings shared.contents skips too few mappings allowed by vm.max_map_count
	EOT
}

# tells LIE TEST VERDICT WHAT
tells()
{
	LIE=$1 LD_PRELOAD=$tmp/liars.so "$churn" -r "mmap_churn.$2" > "$tmp/log" 2>&1
	status=$?
	cat "$tmp/log"
	case $3 in
	passes) [ $status -eq 0 ] && grep -q '^ok 1 [^ ]*$' "$tmp/log" ;;
	fails)
		[ $status -eq 1 ] && grep -q '^not ok 1 ' "$tmp/log" &&
			grep -q "$(echo "$4" | sed 's/[][.*()]/\\&/g; s/\\\*/.*/g')" "$tmp/log" &&
			[ "$(wc -l < "$tmp/log")" -lt 20 ]
		;;
	skips) [ $status -eq 4 ] && grep -qx "ok 1 mmap_churn.$2 # SKIP $4" "$tmp/log" ;;
	esac
}

cc -Wall -Wextra -O2 -D_GNU_SOURCE -shared -fPIC -o "$tmp/liars.so" \
	-isystem "$ksrc/tools/testing/selftests" check/churn-liars.c -ldl || exit
expected > "$tmp/expected"
LIE=list LD_PRELOAD=$tmp/liars.so env true | sort > "$tmp/lies"
awk '{ print $1 }' "$tmp/expected" | sort -u > "$tmp/told"
ok "every lie has a test" same "$tmp/lies" "$tmp/told"
ok "all pass when nobody lies" env LIE=none LD_PRELOAD="$tmp/liars.so" "$churn"
while read -r lie test verdict what; do
	ok "$lie: $test $verdict: $what" tells "$lie" "$test" "$verdict" "$what"
done < "$tmp/expected"

done_testing
