// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../kselftest.h"
#include "vm_util.h"
#include "page_state.h"

#define PFN_MASK	(BIT_ULL(55) - 1)
#define COMPOUND_TAIL	BIT_ULL(16)	/* KPF_COMPOUND_TAIL */
#define CHUNK		512		/* entries read from pagemap at once */
#define PATIENCE	2000		/* looks at pages that are being migrated */
#define FRAMES		4		/* from kpageflags: few, for memory is fragmented */

static const char * const field_names[PAGE_STATE_NR_FIELDS] = {
	[PAGE_STATE_VMAS]		= "vmas",
	[PAGE_STATE_SIZE_KB]		= "size_kb",
	[PAGE_STATE_RSS_KB]		= "rss_kb",
	[PAGE_STATE_REFERENCED_KB]	= "referenced_kb",
	[PAGE_STATE_DIRTY_KB]		= "dirty_kb",
	[PAGE_STATE_ANON_KB]		= "anon_kb",
	[PAGE_STATE_ANON_HUGE_KB]	= "anon_huge_kb",
	[PAGE_STATE_SHMEM_HUGE_KB]	= "shmem_huge_kb",
	[PAGE_STATE_KERNEL_PAGE_KB]	= "kernel_page_kb",
	[PAGE_STATE_MMU_PAGE_KB]	= "mmu_page_kb",
	[PAGE_STATE_SWAP_KB]		= "swap_kb",
	[PAGE_STATE_THP_ELIGIBLE]	= "thp_eligible",
	[PAGE_STATE_WRITABLE]		= "writable",
	[PAGE_STATE_MAY_WRITE]		= "may_write",
	[PAGE_STATE_PRESENT]		= "present",
	[PAGE_STATE_FILE]		= "file",
	[PAGE_STATE_EXCLUSIVE]		= "exclusive",
	[PAGE_STATE_FOLIO_KB]		= "folio_kb",
	[PAGE_STATE_FAULTS]		= "faults",
};

static const struct {
	const char *name;
	enum page_state_field field;
} smaps_lines[] = {
	{ "Size",		PAGE_STATE_SIZE_KB },
	{ "KernelPageSize",	PAGE_STATE_KERNEL_PAGE_KB },
	{ "MMUPageSize",	PAGE_STATE_MMU_PAGE_KB },
	{ "Rss",		PAGE_STATE_RSS_KB },
	{ "Referenced",		PAGE_STATE_REFERENCED_KB },
	{ "Shared_Dirty",	PAGE_STATE_DIRTY_KB },
	{ "Private_Dirty",	PAGE_STATE_DIRTY_KB },
	{ "Anonymous",		PAGE_STATE_ANON_KB },
	{ "AnonHugePages",	PAGE_STATE_ANON_HUGE_KB },
	{ "ShmemPmdMapped",	PAGE_STATE_SHMEM_HUGE_KB },
	{ "Swap",		PAGE_STATE_SWAP_KB },
	{ "THPeligible",	PAGE_STATE_THP_ELIGIBLE },
};

static const struct {
	const char *name;
	enum page_state_field field;
} vm_flags[] = {
	{ "wr",			PAGE_STATE_WRITABLE },
	{ "mw",			PAGE_STATE_MAY_WRITE },
};

/* The lines met so far in one entry of smaps. */
struct smaps_entry {
	bool line[ARRAY_SIZE(smaps_lines)];
	bool flags;
};

static void add(struct page_state *state, enum page_state_field field,
		long long value)
{
	long long *sum = &state->field[field];

	if (*sum == PAGE_STATE_UNKNOWN)
		return;
	if (field == PAGE_STATE_KERNEL_PAGE_KB ||
	    field == PAGE_STATE_MMU_PAGE_KB)
		*sum = value > *sum ? value : *sum;
	else
		*sum += value;
}

static void add_vm_flags(struct page_state *state, char *flags)
{
	char *flag, *position;
	size_t i;

	for (flag = strtok_r(flags, "\n ", &position); flag;
	     flag = strtok_r(NULL, "\n ", &position))
		for (i = 0; i < ARRAY_SIZE(vm_flags); i++)
			if (!strcmp(flag, vm_flags[i].name))
				add(state, vm_flags[i].field, 1);
}

static void add_line(struct page_state *state, struct smaps_entry *entry,
		     char *line)
{
	char *value = strchr(line, ':'), *rest;
	long long number;
	size_t i;

	if (!value)
		return;
	*value++ = '\0';
	if (!strcmp(line, "VmFlags")) {
		entry->flags = true;
		add_vm_flags(state, value);
		return;
	}
	for (i = 0; i < ARRAY_SIZE(smaps_lines); i++) {
		if (strcmp(line, smaps_lines[i].name))
			continue;
		number = strtoll(value, &rest, 10);
		if (rest == value || number < 0)
			return;
		entry->line[i] = true;
		add(state, smaps_lines[i].field, number);
	}
}

/* A sum that lacks an addend is not known. */
static void end_entry(struct page_state *state, const struct smaps_entry *entry)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(smaps_lines); i++)
		if (!entry->line[i])
			state->field[smaps_lines[i].field] = PAGE_STATE_UNKNOWN;
	for (i = 0; i < ARRAY_SIZE(vm_flags); i++)
		if (!entry->flags)
			state->field[vm_flags[i].field] = PAGE_STATE_UNKNOWN;
}

static int read_smaps(unsigned long start, unsigned long end, struct page_state *state)
{
	struct smaps_entry entry;
	unsigned long vma_start, vma_end;
	char permissions[5] = "";
	bool inside = false;
	size_t length = 0;
	char *line = NULL;
	int ret = 0;
	FILE *file;

	file = fopen("/proc/self/smaps", "r");
	if (!file)
		return -errno;
	while (getline(&line, &length, file) > 0) {
		if (sscanf(line, "%lx-%lx%*1[ ]%4[rwxsp-]",
			   &vma_start, &vma_end, permissions) != 3) {
			if (inside)
				add_line(state, &entry, line);
			continue;
		}
		if (inside)
			end_entry(state, &entry);
		inside = vma_start < end && vma_end > start;
		if (inside) {
			memset(&entry, 0, sizeof(entry));
			state->field[PAGE_STATE_VMAS]++;
		}
	}
	if (inside)
		end_entry(state, &entry);
	/* All that is asked for is mapped: smaps that lacks it has an end missing. */
	if (ferror(file) || !state->field[PAGE_STATE_VMAS])
		ret = -EIO;
	free(line);
	fclose(file);
	return ret;
}

/* Consecutive page frames, whose flags are read at once. */
struct frame_block {
	unsigned long long first;
	ssize_t bytes;
	unsigned long long flags[FRAMES];
};

/* Does a folio begin at this page frame? Returns 1, 0, or -1 for not known. */
static int is_folio_start(int kpageflags, struct frame_block *block,
			  unsigned long long pfn)
{
	unsigned long long first = pfn / FRAMES * FRAMES;

	if (block->first != first) {
		block->first = first;
		block->bytes = pread(kpageflags, block->flags, sizeof(block->flags),
				     first * sizeof(first));
	}
	/* The last block of memory may be a short one. */
	if (block->bytes < (ssize_t)((pfn - first + 1) * sizeof(first)))
		return -1;
	return !(block->flags[pfn - first] & COMPOUND_TAIL);
}

/* How many folios begin among the pages that are present, or -1. */
static long count_folios(int kpageflags, struct frame_block *block,
			 const unsigned long long *entries, size_t nr_entries)
{
	long folios = 0;
	size_t i;

	for (i = 0; i < nr_entries; i++) {
		unsigned long long pfn = entries[i] & PFN_MASK;
		int start;

		if (!(entries[i] & PM_PRESENT))
			continue;
		/* Page frame numbers read as 0 without CAP_SYS_ADMIN. */
		start = pfn ? is_folio_start(kpageflags, block, pfn) : -1;
		if (start < 0)
			return -1;
		folios += start;
	}
	return folios;
}

/*
 * A page that is being migrated looks swapped out, but not for long. Ask for it alone:
 * when all are asked for again, it may be another one's turn.
 */
static void await_migration(int pagemap, size_t page, unsigned long long *entry,
			    unsigned int *patience)
{
	unsigned long long again;

	while (!(*entry & PM_PRESENT) && *entry & PM_SWAP && *patience) {
		(*patience)--;
		sched_yield();
		if (pread(pagemap, &again, sizeof(again),
			  (off_t)page * sizeof(again)) == sizeof(again))
			*entry = again;
	}
}

static int read_pagemap(unsigned long start, unsigned long end, bool with_folios,
			struct page_state *state)
{
	size_t page = start / psize(), pages = (end - start) / psize();
	struct frame_block block = { .first = -1ULL };
	long folios, all_folios = 0;
	unsigned long long entries[CHUNK];
	unsigned int patience = PATIENCE;
	int pagemap, kpageflags;
	size_t i, nr_entries;
	int ret = 0;

	pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (pagemap < 0)
		return -errno;
	kpageflags = with_folios ? open("/proc/kpageflags", O_RDONLY | O_CLOEXEC) : -1;

	for (; pages; pages -= nr_entries, page += nr_entries) {
		ssize_t bytes;

		nr_entries = pages < CHUNK ? pages : CHUNK;
		bytes = nr_entries * sizeof(entries[0]);
		ret = pread(pagemap, entries, bytes, (off_t)page * sizeof(entries[0]));
		if (ret != bytes) {
			ret = ret < 0 ? -errno : -EIO;
			break;
		}
		ret = 0;
		for (i = 0; i < nr_entries; i++) {
			await_migration(pagemap, page + i, &entries[i], &patience);
			if (!(entries[i] & PM_PRESENT))
				continue;
			state->field[PAGE_STATE_PRESENT]++;
			state->field[PAGE_STATE_FILE] += !!(entries[i] & PM_FILE);
			state->field[PAGE_STATE_EXCLUSIVE] +=
				!!(entries[i] & PM_MMAP_EXCLUSIVE);
		}
		if (all_folios < 0)
			continue;
		folios = count_folios(kpageflags, &block, entries, nr_entries);
		all_folios = folios < 0 ? -1 : all_folios + folios;
	}
	if (all_folios > 0)
		state->field[PAGE_STATE_FOLIO_KB] =
			state->field[PAGE_STATE_PRESENT] * (psize() / 1024) / all_folios;
	else
		state->field[PAGE_STATE_FOLIO_KB] = PAGE_STATE_UNKNOWN;

	if (kpageflags >= 0)
		close(kpageflags);
	close(pagemap);
	return ret;
}

int page_state_read(const void *start, size_t size, struct page_state *state)
{
	unsigned long from = (unsigned long)start;
	int ret;

	memset(state, 0, sizeof(*state));
	state->field[PAGE_STATE_FAULTS] = PAGE_STATE_UNKNOWN;
	ret = read_smaps(from, from + size, state);
	if (ret)
		return ret;
	return read_pagemap(from, from + size, true, state);
}

int page_state_read_process(struct page_state *state)
{
	enum page_state_field field;

	memset(state, 0, sizeof(*state));
	for (field = PAGE_STATE_PRESENT; field < PAGE_STATE_NR_FIELDS; field++)
		state->field[field] = PAGE_STATE_UNKNOWN;
	return read_smaps(0, ULONG_MAX, state);
}

long page_state_present(const void *start, size_t size)
{
	unsigned long from = (unsigned long)start;
	struct page_state state = {};
	int ret;

	ret = read_pagemap(from, from + size, false, &state);
	return ret ? ret : state.field[PAGE_STATE_PRESENT];
}

long long page_state_proc_figure(const char *path, const char *name)
{
	FILE *file = fopen(path, "r");
	long long figure = PAGE_STATE_UNKNOWN;
	size_t length = strlen(name);
	char line[128];

	if (!file)
		return figure;
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, name, length) &&
		    (line[length] == ':' || line[length] == ' '))
			figure = strtoll(line + length + 1, NULL, 10);
	fclose(file);
	return figure;
}

static const char *to_text(long long value, char *text, size_t size)
{
	if (value == PAGE_STATE_UNKNOWN)
		return "unknown";
	snprintf(text, size, "%lld", value);
	return text;
}

static bool is_as_expected(long long expected, long long seen)
{
	return expected == PAGE_STATE_ANY ||
	       (expected == seen && seen != PAGE_STATE_UNKNOWN);
}

bool page_state_differs(const struct page_state *expected,
			const struct page_state *seen)
{
	size_t i;

	for (i = 0; i < PAGE_STATE_NR_FIELDS; i++)
		if (!is_as_expected(expected->field[i], seen->field[i]))
			return true;
	return false;
}

bool page_state_matches(const struct page_state *expected,
			const struct page_state *seen,
			const char *variant, const char *phase)
{
	char expected_text[24], seen_text[24];
	bool same = true;
	size_t i;

	for (i = 0; i < PAGE_STATE_NR_FIELDS; i++) {
		long long want = expected->field[i], have = seen->field[i];

		if (is_as_expected(want, have))
			continue;
		same = false;
		ksft_print_msg("mismatch variant=%s phase=%s field=%s expected=%s seen=%s\n",
			       variant, phase, field_names[i],
			       to_text(want, expected_text, sizeof(expected_text)),
			       to_text(have, seen_text, sizeof(seen_text)));
	}
	return same;
}

void page_state_print(const struct page_state *state,
		      const char *variant, const char *phase)
{
	char line[512], text[24];
	int length = 0;
	size_t i;

	for (i = 0; i < PAGE_STATE_NR_FIELDS; i++) {
		long long value = state->field[i];

		if (i == PAGE_STATE_REFERENCED_KB)
			continue;
		if (i == PAGE_STATE_FOLIO_KB && value == PAGE_STATE_UNKNOWN)
			length += snprintf(line + length, sizeof(line) - length,
					   " folio=unverified");
		else
			length += snprintf(line + length, sizeof(line) - length,
					   " %s=%s", field_names[i],
					   to_text(value, text, sizeof(text)));
	}
	ksft_print_msg("state variant=%s phase=%s%s\n", variant, phase, line);
}
