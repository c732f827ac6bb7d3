#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Every lie of check/liars.c, a kernel or a machine that misbehaves in one way, must
# be found out. The tests named here pass when nobody lies, and must fail, or skip,
# when that one thing is wrong, and say what it was.

. check/lib.sh

ksrc=${KSRC:-$(tree/get)}
unset KSRC
page_kb=$(($(getconf PAGESIZE) / 1024))
pages=$((8192 / page_kb))
denied="expected=SEGV_ACCERR seen=allowed"

# LIE TEST VERDICT WHAT: under this lie, this test fails and has the words WHAT in
# a line of its output, where * stands for any; or skips for the reason WHAT; or
# passes, with WHAT in its output if there is any. The names of tests lack the
# leading "mprotect_toggle.", or "mprotect_toggle" where they begin with "_". ALL
# tests pass if all results are as when nobody lies.
expected()
{
	cat <<-EOT
	does_nothing private.page_state fails phase=protected field=writable expected=0 seen=1
	does_nothing private.enforced fails phase=protected field=user_write $denied pages=$pages
	does_nothing private.enforced fails phase=protected field=kernel_write expected=EFAULT seen=allowed pages=$pages
	does_nothing private_none.enforced fails phase=protected field=user_read $denied pages=$pages
	does_nothing private_none.enforced fails phase=protected field=kernel_read expected=EFAULT seen=allowed pages=$pages
	does_nothing private.contents fails phase=inherited field=user_write $denied pages=$pages
	does_nothing private.partial fails phase=part_flipped field=vmas expected=3 seen=1
	does_nothing private.partial fails phase=part_flipped field=user_write $denied pages=$((pages / 2))
	does_nothing private.other_cpus fails phase=protected field=write_on_other_cpu $denied
	does_nothing shared_none.other_cpus fails phase=protected field=write_on_other_cpu $denied
	restores_nothing private.page_state fails phase=restored field=writable expected=1 seen=0
	restores_nothing private.page_state fails terminated unexpectedly by signal 11
	restores_nothing shared_dirty.enforced fails phase=restored field=user_write expected=allowed seen=SEGV_ACCERR pages=$pages
	restores_nothing shared_dirty.enforced fails phase=restored field=kernel_write expected=allowed seen=EFAULT pages=$pages
	restores_nothing private.contents fails terminated unexpectedly by signal 11
	restores_nothing private.partial fails phase=part_restored field=user_write expected=allowed seen=SEGV_ACCERR
	restores_nothing private.other_cpus fails phase=restored field=user_write expected=allowed seen=fault
	restores_nothing private.cost fails a round was killed by signal 11
	restores_nothing private.write_tracking_uffd_wp fails phase=released field=user_write expected=allowed seen=SEGV_ACCERR pages=$pages
	leaves_last_page private.page_state fails phase=protected field=vmas expected=1 seen=2
	leaves_last_page private.enforced fails phase=protected field=user_write $denied pages=1
	leaves_last_page private.contents fails phase=inherited field=user_write $denied pages=1
	leaves_last_page private.other_cpus fails phase=protected field=write_on_other_cpu $denied
	leaves_middle_page shared_dirty.page_state fails phase=protected field=vmas expected=1 seen=3
	leaves_middle_page shared_dirty.enforced fails phase=protected field=user_write $denied pages=1
	leaves_middle_page shared_none.enforced fails phase=protected field=kernel_read expected=EFAULT seen=allowed pages=1
	leaves_middle_page shared_dirty.contents fails phase=inherited field=user_write $denied pages=1
	leaves_middle_page private.partial fails phase=part_flipped field=user_write $denied pages=1
	leaves_middle_page private_thp.page_state fails phase=touched field=anon_huge_kb
	leaves_page_read_only shared_dirty.page_state fails phase=restored field=writable expected=1 seen=2
	leaves_page_read_only shared_dirty.enforced fails phase=restored field=user_write expected=allowed seen=SEGV_ACCERR pages=1
	leaves_page_read_only private.enforced fails phase=restored field=kernel_write expected=allowed seen=EFAULT pages=1
	leaves_page_read_only private.partial fails phase=part_restored field=user_write expected=allowed seen=SEGV_ACCERR pages=1
	leaves_page_read_only private.write_tracking_uffd_wp fails phase=restored field=write_to_uffd_wp expected=SIGBUS seen=other_signal pages=1
	leaves_page_read_only private.other_cpus fails phase=restored field=user_write expected=allowed seen=fault
	none_is_read private_none.enforced fails phase=protected field=user_read $denied pages=$pages
	none_is_read shared_none.enforced fails phase=protected field=kernel_read expected=EFAULT seen=allowed pages=$pages
	read_is_none private.enforced fails phase=protected field=user_read expected=allowed seen=SEGV_ACCERR pages=$pages
	read_is_none shared_dirty.enforced fails phase=protected field=kernel_read expected=allowed seen=EFAULT pages=$pages
	flips_too_far private.partial fails phase=part_flipped field=user_write expected=allowed seen=SEGV_ACCERR pages=1
	flips_too_far private_thp.partial fails phase=whole_pmds_flipped field=anon_huge_kb
	flips_too_far shared_thp.partial fails phase=whole_pmds_flipped field=shmem_huge_kb
	flips_too_little private.partial fails phase=part_flipped field=user_write $denied pages=1
	flips_too_little private_thp.partial fails phase=whole_pmds_flipped field=user_write $denied pages=1
	fails_once private.contents fails Expected * == flip_often(mapping, 8) (-12)
	fails_once _cow.private_cow.contents fails Expected * == flip_often(mapping, 4) (-12)
	fails_once private.partial fails error call=mprotect errno=12
	fails_once private.other_cpus fails Expected * == flip(mapping, variant->shape->lower) (-12)
	fails_once private.cost fails a system call failed in a cycle
	fails_later _cow.private_cow.contents fails Expected * == flip_often(mapping, 4) (-12)
	fails_to_protect_later private.contents fails Expected * == flip(mapping, variant->shape->lower) (-12)
	fails_to_restore_later private.contents fails Expected * == flip(mapping, PROT_FULL) (-12)
	fails_to_protect private.enforced fails Expected * == flip(mapping, lower) (-12)
	fails_to_protect private.page_state fails Expected 0 (0) == observe(&self->mapping, phase, &seen) (-12)
	fails_to_protect private.contents fails Expected * == flip_often(mapping, 8) (-12)
	fails_to_protect private.write_tracking_uffd_wp fails Expected * == flip(mapping, variant->shape->lower) (-12)
	fails_to_protect private.cost fails error call=mprotect errno=12
	fails_to_protect _private.private.dirty_survives fails Expected * == flip(mapping, variant->shape->lower) (-12)
	fails_to_restore private.enforced fails Expected * == flip(mapping, PROT_FULL) (-12)
	fails_to_restore private.partial fails error call=mprotect errno=12
	fails_to_restore private.other_cpus fails Expected * == flip(mapping, PROT_FULL) (-12)
	fails_to_restore private.write_tracking_uffd_wp fails Expected * == flip(mapping, PROT_FULL) (-12)
	fails_to_restore _private.private.dirty_survives fails Expected * == flip(mapping, PROT_FULL) (-12)
	slow ALL passes
	late private.other_cpus fails phase=protected field=write_on_other_cpu $denied
	late shared_none.other_cpus fails phase=protected field=write_on_other_cpu $denied

	zeroes_page private.enforced fails phase=restored field=contents expected=pattern seen=0x0 pages=1
	zeroes_page shared_dirty.contents fails phase=restored field=contents expected=pattern seen=0x0 pages=1
	zeroes_page private.contents fails phase=after_child field=contents expected=pattern * pages=1
	zeroes_page private_thp.partial fails phase=whole_pmds_restored field=contents expected=pattern * pages=1
	zeroes_page _private.private.dirty_survives fails phase=after_pageout field=contents expected=pattern seen=0x0 pages=1
	zeroes_page _cow.private_cow.contents fails phase=restored field=contents expected=pattern seen=0x0 pages=1
	swaps_pages private.contents fails phase=after_child field=contents expected=pattern * pages=2
	swaps_pages shared_thp.contents fails phase=after_child field=contents expected=pattern * pages=2
	unmaps_page private.page_state fails phase=protected field=size_kb
	unmaps_page private.page_state fails phase=protected field=rss_kb
	unmaps_page private.page_state fails phase=protected field=anon_kb
	unmaps_page shared_dirty.page_state fails phase=protected field=present expected=$pages seen=$((pages - 1))
	unmaps_page shared_dirty.page_state fails phase=protected field=file expected=$pages seen=$((pages - 1))
	unmaps_page private.enforced fails phase=protected field=user_read expected=allowed seen=signal:11,code:1,address:*
	unmaps_page private.write_tracking_uffd_wp fails phase=protected field=uffd_wp expected=1 seen=0 pages=1
	unmaps_page_later private.page_state fails phase=restored field=vmas expected=1 seen=2
	unmaps_page_later private.enforced fails terminated unexpectedly by signal 11
	unmaps_page_later private.write_tracking_uffd_wp fails phase=restored field=uffd_wp expected=1 seen=0 pages=1
	drops_page shared_dirty.page_state fails phase=restored field=present expected=$pages seen=$((pages - 1))
	drops_page shared_dirty.page_state fails phase=again field=faults expected=0 seen=1
	drops_page shared_dirty.cost fails page faults in every timed cycle
	drops_page private.contents fails phase=restored field=contents expected=pattern seen=0x0 pages=1
	loses_dirty private.page_state fails phase=protected field=dirty_kb expected=8192 seen=0
	loses_dirty private_thp.page_state fails phase=protected field=dirty_kb expected=8192 seen=0
	loses_dirty _private.private.dirty_survives fails phase=after_pageout field=contents expected=pattern seen=0x0 pages=*
	loses_dirty _private.private_none.dirty_survives fails phase=after_pageout field=contents expected=pattern seen=0x0 pages=*
	loses_dirty _private.private_thp.dirty_survives fails phase=after_pageout field=contents expected=pattern seen=0x0 pages=*
	loses_dirty _private.private_thp_pte.dirty_survives fails phase=after_pageout field=contents expected=pattern seen=0x0 pages=*
	faults_in_flip private.page_state fails phase=again field=faults expected=0 seen=2
	faults_in_flip shared_dirty.page_state fails phase=again field=faults expected=0 seen=2
	faults_in_flip private_thp.cost fails page faults in every timed cycle
	faults_after_flip private.page_state fails phase=again field=faults expected=0 seen=*
	faults_after_flip private_cow.cost fails page faults in every timed cycle
	copies_early private_cow.page_state fails phase=touched field=faults expected=$pages seen=0
	copies_early private_cow.page_state fails phase=restored field=exclusive expected=0 seen=$pages
	counts_faults_twice private_cow.page_state fails phase=touched field=faults expected=$pages seen=$((pages * 2))

	splits_vma private.page_state fails phase=protected field=vmas expected=1 seen=3
	splits_vma shared_dirty.page_state fails phase=restored field=writable expected=1 seen=3
	splits_vma private.enforced fails phase=after field=vmas expected=1 seen=3
	splits_vma private.contents fails phase=after field=vmas expected=1 seen=3
	splits_vma private.other_cpus fails phase=after field=vmas expected=1 seen=3
	splits_vma private.partial fails phase=part_restored field=vmas expected=1 seen=3
	splits_vma private.partial fails phase=part_flipped field=may_write expected=3 seen=5
	splits_vma_in_cycle private.cost fails phase=after_cycles field=vmas expected=1 seen=3
	splits_vma_in_cycle private.cost fails the page state changed in the timed cycles
	merges_neighbour private.page_state fails phase=populated field=size_kb
	merges_neighbour private_thp.page_state fails phase=restored field=size_kb
	merges_neighbour private.enforced fails phase=after field=size_kb
	splits_huge_page private_thp.page_state fails phase=restored field=anon_huge_kb
	splits_huge_page shared_thp.page_state fails phase=restored field=shmem_huge_kb
	splits_huge_page private_thp.enforced fails phase=after field=anon_huge_kb
	splits_huge_page shared_thp.enforced fails phase=after field=shmem_huge_kb
	splits_huge_page private_thp.contents fails phase=after field=anon_huge_kb
	splits_huge_page private_thp.other_cpus fails phase=after field=anon_huge_kb
	splits_huge_page private_thp.partial fails phase=whole_pmds_restored field=anon_huge_kb
	splits_huge_page private_thp.cost fails field=anon_huge_kb
	splits_huge_page_early private_thp.page_state skips no PMD-mapped huge pages to be had
	splits_huge_page_early shared_thp.page_state skips no PMD-mapped huge pages to be had
	splits_huge_page_early private_thp.cost skips no PMD-mapped huge pages to be had
	splits_huge_page_in_cycle private_thp.cost fails phase=after_cycles field=anon_huge_kb
	splits_huge_page_in_cycle shared_thp.cost fails phase=after_cycles field=shmem_huge_kb
	keeps_huge_pages private_thp_pte.page_state skips no huge pages mapped this way to be had
	keeps_huge_pages shared_thp_pte.cost skips no huge pages mapped this way to be had
	no_huge_pages private_thp.page_state skips no PMD-mapped huge pages to be had
	no_huge_pages shared_thp.page_state skips no PMD-mapped huge pages to be had
	no_huge_pages shared_thp_pte.page_state skips no PMD-mapped huge pages to be had
	no_huge_pages private.page_state passes
	no_pmd_size private_thp.page_state skips no transparent huge pages in this kernel
	no_pmd_size private.page_state passes

	shares_private _cow.private_cow.contents fails phase=written field=contents_in_child expected=pattern * pages=$pages
	shares_private _cow.private_cow.contents fails phase=written_again field=contents_in_child expected=pattern * pages=$pages
	shares_private private.page_state fails phase=populated field=anon_kb expected=8192 seen=0
	shares_private private.page_state fails phase=populated field=file expected=0 seen=$pages
	child_flips_parent private.contents fails phase=after_child field=user_write expected=allowed seen=SEGV_ACCERR pages=$pages
	child_flips_parent shared_dirty.contents fails phase=after_child field=user_write expected=allowed seen=SEGV_ACCERR pages=$pages
	child_is_not_protected private.contents fails phase=inherited field=user_write $denied pages=$pages
	child_dies private.contents fails Expected 0 (0) != check_in_child(mapping, check_inherited) (0)
	child_dies _cow.private_cow.contents fails error call=ask_the_child errno=32
	child_dies private_cow.page_state fails phase=populated field=exclusive expected=0 seen=$pages
	dies_in_round private.cost fails a round was killed by signal 9
	exits_in_round private.cost fails a round exited before its end
	hangs_in_round private.cost fails a round hung and was ended
	fork_fails private.cost fails fork failed: errno 11
	fork_fails private.contents fails error call=fork errno=11
	fork_fails private_cow.page_state fails error call=fork errno=11
	no_pidfd private.cost passes cost variant=private
	clock_stands_still private.cost passes cycle_ns=0.00
	clock_runs_fast private.cost passes early variant=private

	wrong_address private.enforced fails phase=protected field=user_write expected=SEGV_ACCERR seen=signal:11,code:2,address:*
	wrong_code private.enforced fails phase=protected field=user_write expected=SEGV_ACCERR seen=signal:11,code:1,address:*
	wrong_code private_none.enforced fails phase=protected field=user_read expected=SEGV_ACCERR seen=signal:11,code:1,address:*
	wrong_signal private.enforced fails phase=protected field=user_write expected=SEGV_ACCERR seen=signal:7,code:2,address:*
	wrong_signal private.write_tracking_uffd_wp fails phase=restored field=write_to_uffd_wp expected=SIGBUS seen=other_signal
	writes_nevertheless private.enforced fails phase=restored field=contents expected=pattern * pages=$pages
	writes_nevertheless private.other_cpus fails phase=protected field=contents expected=unchanged seen=changed
	kernel_access_allowed private.enforced fails phase=protected field=kernel_write expected=EFAULT seen=allowed pages=$pages
	kernel_access_allowed shared_none.enforced fails phase=protected field=kernel_read expected=EFAULT seen=allowed pages=$pages
	kernel_write_denied private.enforced fails phase=restored field=kernel_write expected=allowed seen=EFAULT pages=$pages
	kernel_read_denied private.enforced fails phase=restored field=kernel_read expected=allowed seen=EFAULT pages=$pages
	kernel_read_denied shared_dirty.enforced fails phase=protected field=kernel_read expected=allowed seen=EFAULT pages=$pages
	kernel_access_fails private.enforced fails phase=protected field=kernel_write expected=EFAULT seen=returned:-1,errno:5 pages=$pages
	pipes_break private.enforced fails phase=protected field=kernel_write expected=EFAULT seen=broken_pipe pages=$pages
	pipes_break _cow.private_cow.contents fails error call=ask_the_child errno=5

	reserve_fails private.page_state fails error call=mmap errno=12
	map_fails private.page_state fails error call=mmap errno=12
	small_map_fails private.page_state fails Expected * == rehearse(&self->mapping) (-12)
	small_map_fails private.cost fails no memory for the results: errno 12
	dontdump_fails private.page_state fails error call=madvise errno=12
	nohugepage_fails private.page_state fails error call=madvise errno=12
	nohugepage_fails private_thp_pte.page_state fails error call=madvise errno=12
	nohugepage_unknown private.page_state passes
	nohugepage_unknown private.cost passes
	hugepage_fails private_mthp.page_state fails error call=madvise errno=12
	dontneed_fails private_mthp.page_state fails error call=madvise errno=12
	free_fails _private.private.dirty_survives fails Expected * == madvise(mapping->start, mapping->size, MADV_FREE) (-1)
	pageout_fails _private.private.dirty_survives fails Expected * == madvise(mapping->start, mapping->size, MADV_PAGEOUT) (-1)
	pageout_keeps _private.private.dirty_survives skips MADV_PAGEOUT does not discard lazily freed pages
	split_fails private_thp_pte.page_state fails error call=mprotect errno=12
	pipe_fails private.enforced fails error call=pipe errno=24
	pipe2_fails private_cow.page_state fails error call=pipe2 errno=24
	thread_fails private.other_cpus fails Expected 0 (0) == pthread_create(*) (11)
	pin_fails private.other_cpus skips no right to choose the CPU
	thread_pin_fails private.other_cpus fails Expected * == writer.ready (-1)

	no_uffd private.write_tracking_uffd_wp skips no userfaultfd in this kernel, or no right to use it
	uffd_register_fails private.write_tracking_uffd_wp skips no write-protection by userfaultfd for this memory
	uffd_wp_fails private.write_tracking_uffd_wp fails Expected * == set_uffd_wp(uffd, mapping, true) (-1)
	uffd_wp_stays private.write_tracking_uffd_wp fails phase=released field=user_write expected=allowed seen=signal:7,* pages=$pages
	uffd_wp_release_fails private.write_tracking_uffd_wp fails Expected * == set_uffd_wp(uffd, mapping, false) (-1)
	uffd_wp_lost private.write_tracking_uffd_wp fails phase=protected field=uffd_wp expected=1 seen=0 pages=$pages
	uffd_wp_lost shared_dirty.write_tracking_uffd_wp fails phase=protected field=uffd_wp expected=1 seen=0 pages=$pages
	uffd_wp_lost_later private.write_tracking_uffd_wp fails phase=restored field=uffd_wp expected=1 seen=0 pages=$pages
	uffd_wp_lost_later private.write_tracking_uffd_wp fails phase=restored field=write_to_uffd_wp expected=SIGBUS seen=allowed pages=$pages
	soft_dirty private.write_tracking_soft_dirty passes
	soft_dirty shared_dirty.write_tracking_soft_dirty passes
	soft_dirty private_thp_pte.write_tracking_soft_dirty passes excess variant=private_thp_pte phase=restored field=soft_dirty pages=0
	soft_dirty_lost private.write_tracking_soft_dirty fails phase=protected field=soft_dirty expected=1 seen=0 pages=1
	soft_dirty_lost private_thp_pte.write_tracking_soft_dirty fails phase=protected field=soft_dirty expected=1 seen=0 pages=1
	soft_dirty_added private.write_tracking_soft_dirty fails phase=restored field=soft_dirty expected=0 seen=1 pages=1
	soft_dirty_added private_thp_pte.write_tracking_soft_dirty passes excess variant=private_thp_pte phase=restored field=soft_dirty pages=1
	soft_dirty_fails private.write_tracking_soft_dirty fails Expected * == flip_often(mapping, 1) (-12)

	smaps_missing private.page_state skips no smaps or pagemap in /proc
	smaps_missing private_thp.cost skips no smaps or pagemap in /proc
	smaps_forbidden private.page_state fails error call=page_state_read errno=13
	smaps_forbidden private_thp.page_state fails error call=page_state_read errno=13
	smaps_forbidden_later private.page_state fails Expected 0 (0) == observe(&self->mapping, phase, &seen) (-13)
	smaps_forbidden_later private.enforced fails error call=page_state_read errno=13
	smaps_forbidden_later private.partial fails error call=page_state_read errno=13
	smaps_forbidden_later private.cost fails error call=page_state_read errno=13
	smaps_fails private.page_state fails error call=page_state_read errno=5
	smaps_fails shared_thp.page_state fails error call=page_state_read errno=5
	smaps_cut_in_entry private.page_state fails field=rss_kb expected=8192 seen=unknown
	smaps_cut_in_entry private_thp.page_state fails smaps lacks a field
	smaps_cut_before_entry private.page_state fails error call=page_state_read
	smaps_cut_before_entry private_thp.page_state fails error call=page_state_read
	smaps_swaps_entries private.page_state fails phase=populated field=rss_kb expected=8192 seen=0
	smaps_large_neighbours private.page_state passes
	smaps_large_neighbours shared_thp.page_state passes
	smaps_large_neighbours private.partial passes
	smaps_large_neighbours private.cost passes
	smaps_hex_field private.page_state passes
	smaps_no_size private.page_state fails phase=populated field=size_kb expected=8192 seen=unknown
	smaps_no_size private.cost fails phase=after_cycles field=size_kb expected=unknown seen=unknown
	smaps_no_kernel_page private.page_state fails phase=populated field=kernel_page_kb expected=$page_kb seen=unknown
	smaps_no_mmu_page private.page_state fails phase=populated field=mmu_page_kb expected=$page_kb seen=unknown
	smaps_no_rss private.page_state fails phase=populated field=rss_kb expected=8192 seen=unknown
	smaps_no_shared_dirty private.page_state fails phase=populated field=dirty_kb expected=8192 seen=unknown
	smaps_no_private_dirty private.page_state fails phase=populated field=dirty_kb expected=8192 seen=unknown
	smaps_no_anonymous shared_dirty.page_state fails phase=populated field=anon_kb expected=0 seen=unknown
	smaps_no_anon_huge private.page_state fails smaps lacks a field
	smaps_no_anon_huge private.page_state fails field=anon_huge_kb expected=0 seen=unknown
	smaps_no_anon_huge private_thp.page_state fails smaps lacks a field
	smaps_no_shmem_huge private.page_state fails field=shmem_huge_kb expected=0 seen=unknown
	smaps_no_shmem_huge shared_thp.page_state fails smaps lacks a field
	smaps_no_swap private.page_state fails phase=populated field=swap_kb expected=0 seen=unknown
	smaps_no_eligible private.page_state passes
	smaps_no_flags private.page_state fails phase=populated field=writable expected=1 seen=unknown
	smaps_no_flags private.page_state fails phase=populated field=may_write expected=1 seen=unknown
	smaps_no_number private.page_state fails phase=populated field=rss_kb expected=8192 seen=unknown
	smaps_no_may_write private.page_state fails phase=protected field=may_write expected=1 seen=0
	smaps_other_kernel_page private.page_state fails phase=populated field=kernel_page_kb
	smaps_other_mmu_page private.page_state fails phase=populated field=mmu_page_kb
	swaps private.page_state skips the machine is short of memory and swaps
	swaps_later private.page_state skips the machine is short of memory and swaps
	swaps_later private.cost skips the machine is short of memory and swaps
	swaps_later private.enforced passes

	pagemap_missing private.page_state skips no smaps or pagemap in /proc
	pagemap_forbidden private.page_state fails error call=page_state_read errno=13
	pagemap_fails private.page_state fails error call=page_state_read errno=5
	pagemap_fails_later private.page_state fails Expected 0 (0) == observe(&self->mapping, phase, &seen) (-5)
	pagemap_fails_later private.write_tracking_uffd_wp fails Expected 0 (0) == find_wrong_bits(mapping, PM_UFFD_WP, ALL, 1, &tally) (-5)
	pagemap_short private.page_state fails error call=page_state_read errno=5
	pagemap_shared_page private.page_state fails phase=protected field=exclusive expected=$pages seen=$((pages - 1))
	pagemap_no_pfn private.page_state passes
	pagemap_no_pfn private.cost passes folio=unverified
	pagemap_no_pfn private_thp_pte.page_state passes
	pagemap_no_pfn private_mthp.page_state skips no folios of 64 KiB to be had
	kpageflags_forbidden private.cost passes folio=unverified
	folios_of_64k private.page_state skips the machine insists on large folios
	folios_of_64k private_thp_pte.page_state skips no huge pages mapped this way to be had
	folios_of_64k private_mthp.page_state passes
	folios_of_64k private_mthp.enforced passes
	folios_of_64k private_mthp.contents passes
	folios_of_64k private_mthp.partial passes
	folios_of_64k private_mthp.other_cpus passes
	folios_of_64k private_mthp.write_tracking_uffd_wp passes
	folios_of_64k private_mthp.cost passes cost variant=private_mthp
	folios_of_64k _private.private_mthp.dirty_survives passes
	folios_of_64k_later private.page_state fails phase=protected field=folio_kb

	little_memory private.page_state skips not enough free memory
	little_memory_in_round private.cost skips not enough free memory
	strict_overcommit private.page_state skips not enough memory within the overcommit limit
	small_cgroup2 private.page_state skips not enough memory within the memory cgroup limit
	small_cgroup1 shared_thp.page_state skips not enough memory within the memory cgroup limit
	EOT
}

# A test that fails prints no more lines than that.
most_lines=30

full_name()
{
	case $1 in
	_*) echo "mprotect_toggle$1" ;;
	*) echo "mprotect_toggle.$1" ;;
	esac
}

# Runs the tests that are to find out a lie; all tests where nobody lies.
run()
{
	lie=$1
	set --
	while read -r of test _; do
		[ "$of" = "$lie" ] && [ "$test" != ALL ] && set -- "$@" -r "$(full_name "$test")"
	done < "$tmp/expected"
	set -- MPROTECT_TOGGLE_SIZE_MB=8 "$toggle" "$@"
	[ "$lie" = none ] || set -- LIE="$lie" "$@"
	# Only who asked for nothing may get less.
	[ "$lie" = clock_runs_fast ] ||
		set -- MPROTECT_TOGGLE_CYCLES=2 MPROTECT_TOGGLE_ROUNDS=1 "$@"

	timeout 120 env LD_PRELOAD="$tmp/liars.so" "$@" > "$tmp/$lie.log" 2>&1 &
	child=$!
	wait $child
	echo $? > "$tmp/$lie.status"
}

# work NUMBER OF: runs its share of the lies
work()
{
	trap 'kill $child; exit' TERM
	awk -v number="$1" -v of="$2" 'NR % of == number' "$tmp/lies" > "$tmp/share.$1"
	while read -r lie; do
		run "$lie"
	done < "$tmp/share.$1"
}

# Most lies take no time, and one takes 30 seconds, doing nothing.
run_all()
{
	share=$(($(nproc) + 2))
	for number in $(seq 0 $((share - 1))); do
		work "$number" $share &
		workers="$workers $!"
	done
	run none
	wait
}

workers=
child=
at_exit()
{
	# shellcheck disable=SC2086 # numbers
	kill $child $workers 2> /dev/null
	wait
}

# What a run printed about one test.
about()
{
	awk -v name="$2" '$1 == "#" && $2 == "RUN" { on = $3 == name } on' "$tmp/$1.log"
}

# Who runs the same test and does not lie: nobody, or who gives what the machine
# lacks.
honest()
{
	case $1 in
	*soft_dirty) echo soft_dirty ;;
	*mthp*) echo folios_of_64k ;;
	*) echo none ;;
	esac
}

# has_words WORDS: in a line of stdin, but for where in the source that comes from
has_words()
{
	words=$(echo "$1" | sed 's/[][().+?^$|{}\\]/\\&/g; s/\*/.*/g')
	sed 's/^# [a-z_]*\.c:[0-9]*:[a-z_]*://' | grep -Eq "(^| )$words( |\$)"
}

# What its result was: passed, failed, or the reason for which it was skipped.
result_of()
{
	about "$1" "$2" |
	sed -n 's/^ok .* # SKIP //p; s/^ok [0-9]* [^ ]*$/passed/p; s/^not ok .*/failed/p'
}

results_of()
{
	sed -n 's/^\(ok\|not ok\) [0-9]*/\1/p' "$tmp/$1.log"
}

finds_out()
{
	lie=$1
	name=$(full_name "$2")
	result=$(result_of "$lie" "$name")
	about "$lie" "$name"
	case $3 in
	fails) [ "$result" = failed ] || return ;;
	skips) [ "$result" = "$4" ] && return ;;
	passes) [ "$result" = passed ] || return ;;
	esac
	about "$lie" "$name" | has_words "$4" || return
	[ "$(about "$lie" "$name" | sed '/^not ok /q' | wc -l)" -le $most_lines ]
}

changes_nothing()
{
	results_of none > "$tmp/results"
	results_of "$1" | same "$tmp/results" -
}

# The exit status tells of a failure, and of a run that was all skipped.
ends_right()
{
	awk '/^not ok / { failed = 1 } /^ok / && !/ # SKIP / { passed = 1 }
	     END { print failed ? 1 : passed ? 0 : 4 }' "$tmp/$1.log" | same - "$tmp/$1.status"
}

builds()
{
	make OUTPUT="$tmp/build" KSRC="$ksrc" &&
		cc -Wall -Wextra -O2 -D_GNU_SOURCE -shared -fPIC -o "$tmp/liars.so" \
			-isystem "$ksrc/tools/testing/selftests" check/liars.c -ldl -lpthread
}

toggle=${1-$tmp/build/mprotect_toggle}
ok "builds" builds
expected | grep . > "$tmp/expected"
LIE=list LD_PRELOAD=$tmp/liars.so env true | awk '{ print $1 }' | sort > "$tmp/lies"
awk '{ print $1 }' "$tmp/expected" | sort -u > "$tmp/told"
ok "every lie has a test" same "$tmp/lies" "$tmp/told"
run_all

while read -r lie test verdict what; do
	if [ "$test" = ALL ]; then
		ok "$lie: $test $verdict" changes_nothing "$lie"
		continue
	fi
	honest=$(honest "$test")
	without=passed
	[ "$lie" = "$honest" ] || without=$(result_of "$honest" "$(full_name "$test")")
	case $without in
	passed) ok "$lie: $test $verdict: $what" finds_out "$lie" "$test" "$verdict" "$what" ;;
	failed) skip "$lie: $test $verdict: $what" "fails here without a lie" ;;
	*) skip "$lie: $test $verdict: $what" "$without" ;;
	esac
done < "$tmp/expected"

while read -r lie; do
	ok "$lie: exit status" ends_right "$lie"
done < "$tmp/lies"

done_testing
