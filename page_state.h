/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the kernel says of a range of the calling process: smaps sums, pagemap
 * counts, number of VMAs.
 */
#ifndef PAGE_STATE_H
#define PAGE_STATE_H

#include <stdbool.h>
#include <stddef.h>

enum page_state_field {
	PAGE_STATE_VMAS,
	PAGE_STATE_SIZE_KB,
	PAGE_STATE_RSS_KB,
	PAGE_STATE_REFERENCED_KB,
	PAGE_STATE_DIRTY_KB,
	PAGE_STATE_ANON_KB,
	PAGE_STATE_ANON_HUGE_KB,
	PAGE_STATE_SHMEM_HUGE_KB,
	PAGE_STATE_KERNEL_PAGE_KB,
	PAGE_STATE_MMU_PAGE_KB,
	PAGE_STATE_SWAP_KB,
	PAGE_STATE_THP_ELIGIBLE,
	PAGE_STATE_WRITABLE,
	PAGE_STATE_MAY_WRITE,
	PAGE_STATE_PRESENT,
	PAGE_STATE_FILE,
	PAGE_STATE_EXCLUSIVE,
	PAGE_STATE_FOLIO_KB,
	PAGE_STATE_FAULTS,
	PAGE_STATE_NR_FIELDS
};

/* The kernel did not say. Never equal to anything, itself included. */
#define PAGE_STATE_UNKNOWN	(-1)
/* In what is expected: whatever the kernel says will do. */
#define PAGE_STATE_ANY		(-2)

/**
 * struct page_state - the page state of a range
 * @field: *_KB fields are in KiB and sums over the VMAs that overlap the range,
 *	but for the page sizes, which are the largest seen, and the folio size,
 *	which is the mean; VMAS, THP_ELIGIBLE, WRITABLE and MAY_WRITE count VMAs;
 *	PRESENT, FILE and EXCLUSIVE count pages of the range; FAULTS is the
 *	caller's to fill in
 */
struct page_state {
	long long field[PAGE_STATE_NR_FIELDS];
};

/**
 * page_state_read() - ask the kernel for the page state of a range
 * @start: first byte, on a page boundary
 * @size: length in bytes, in whole pages
 * @state: where it goes; a field that the kernel does not tell is
 *	PAGE_STATE_UNKNOWN, as FAULTS always is
 *
 * A VMA that reaches out of the range is summed up whole: then SIZE_KB is
 * larger than the range, which tells that a neighbour has been merged with it.
 *
 * Return: 0, or a negative errno; -ENOENT where the kernel has no smaps or
 * pagemap or /proc is not mounted.
 */
int page_state_read(const void *start, size_t size, struct page_state *state);

/**
 * page_state_read_process() - ask smaps for all VMAs of the process
 * @state: where it goes; what pagemap tells is PAGE_STATE_UNKNOWN
 *
 * Return: like page_state_read().
 */
int page_state_read_process(struct page_state *state);

/**
 * page_state_present() - count the pages of a range that are present
 * @start: first byte, on a page boundary
 * @size: length in bytes, in whole pages
 *
 * Return: how many pages, or a negative errno.
 */
long page_state_present(const void *start, size_t size);

/**
 * page_state_proc_figure() - a figure of /proc/self/status, /proc/meminfo or /proc/vmstat
 * @path: of the file
 * @name: of its line, such as "VmPTE"; pages in "VmRSS" are counted whether or not
 *	a VMA has them, unlike those in smaps
 *
 * Return: KiB, of /proc/vmstat what it counts, or PAGE_STATE_UNKNOWN.
 */
long long page_state_proc_figure(const char *path, const char *name);

/**
 * page_state_differs() - compare a page state with what it must be, quietly
 * @expected: what it must be; PAGE_STATE_ANY accepts everything
 * @seen: what it is
 *
 * Return: true if a field is not as expected.
 */
bool page_state_differs(const struct page_state *expected,
			const struct page_state *seen);

/**
 * page_state_matches() - compare a page state with what it must be
 * @expected: what it must be; PAGE_STATE_ANY accepts everything
 * @seen: what it is
 * @variant: for the message
 * @phase: for the message
 *
 * Prints one diagnostic line for each field that differs.
 *
 * Return: true if every field is as expected.
 */
bool page_state_matches(const struct page_state *expected,
			const struct page_state *seen,
			const char *variant, const char *phase);

/**
 * page_state_print() - print the page state as one diagnostic line
 * @state: what to print
 * @variant: for the line
 * @phase: for the line
 *
 * REFERENCED_KB is left out: reclaim changes it as it likes.
 */
void page_state_print(const struct page_state *state,
		      const char *variant, const char *phase);

#endif /* PAGE_STATE_H */
