// SPDX-License-Identifier: GPL-2.0
/*
 * A library to preload into mmap_churn. It misbehaves as a broken kernel or a poor
 * machine would, in the one way that LIE names. LIE=list lists them.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include "kselftest.h"

/* The function that ours stands before. */
#define REAL(function)	((__typeof__(function) *)dlsym(RTLD_NEXT, #function))

#define PROT_FULL	(PROT_READ | PROT_WRITE)

/* What comes before are not slots, and some slots may be right. */
#define HONEST_CALLS	30

struct lie {
	const char *name;

	/* Instead of mapping a slot, after it, and instead of unmapping one. */
	int (*flags)(int flags);
	void *(*map)(void *start, size_t size, int flags);
	void (*mapped)(char *start, size_t size);
	int (*unmap)(char *start, size_t size);

	/* A file that is another one, or with no text cannot be opened. */
	const char *path;
	const char *text;

	bool counts_up;		/* a fault more at every look */
	bool refuses_prctl;
};

static const struct lie *lie;
static unsigned int calls;
static size_t page_size;

static char *earlier;		/* a slot that was mapped some time ago */
static size_t earlier_size;

static int never_populates(int flags)
{
	return flags & ~MAP_POPULATE;
}

static int always_populates(int flags)
{
	return flags | MAP_POPULATE;
}

static int private_not_shared(int flags)
{
	return flags & MAP_SHARED ? (flags & ~MAP_SHARED) | MAP_PRIVATE : flags;
}

static void *fail_map(void *start, size_t size, int flags)
{
	(void)start;
	(void)size;
	(void)flags;
	errno = ENOMEM;
	return MAP_FAILED;
}

static void *map_over_earlier(void *start, size_t size, int flags)
{
	if (calls % 10 || !earlier || earlier_size < size)
		return REAL(mmap)(start, size, PROT_FULL, flags, -1, 0);
	return earlier;
}

static void leave_stale_word(char *start, size_t size)
{
	start[size - 8] = 0x5a;
}

static void leave_stale_word_unread(char *start, size_t size)
{
	/* Where the first byte of a page is written to, and later set to 0. */
	if (calls % 2)
		leave_stale_word(start, size);
}

static void split_by_page(char *start, size_t size)
{
	size_t offset;

	for (offset = 0; offset < size; offset += 2 * page_size)
		madvise(start + offset, page_size, MADV_DONTFORK);
}

static void keep_apart(char *start, size_t size)
{
	madvise(start, size, calls % 2 ? MADV_DONTDUMP : MADV_DODUMP);
}

static void leak_vma(char *start, size_t size)
{
	(void)start;
	(void)size;
	REAL(mmap)(NULL, page_size, calls % 2 ? PROT_NONE : PROT_READ,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* A page more of what was there from the start. */
static char *hoard;
#define HOARD	(64UL << 20)

static void leak_page(char *start, size_t size)
{
	static size_t used;

	(void)start;
	(void)size;
	hoard[used] = 1;
	used = (used + page_size) % HOARD;
}

static void lose_written_page(char *start, size_t size)
{
	if (earlier && earlier != start)
		madvise(earlier, page_size, MADV_DONTNEED);
	(void)size;
}

static void copy_written_page(char *start, size_t size)
{
	if (earlier && earlier != start && earlier_size > page_size)
		memcpy(earlier, earlier + page_size, page_size);
	(void)size;
}

static int leave_mapped(char *start, size_t size)
{
	(void)start;
	(void)size;
	return 0;
}

static int leave_last_page(char *start, size_t size)
{
	return size > page_size ? REAL(munmap)(start, size - page_size) : 0;
}

static int only_empty(char *start, size_t size)
{
	return madvise(start, size, MADV_DONTNEED);
}

static int fail_unmap(char *start, size_t size)
{
	(void)start;
	(void)size;
	errno = ENOMEM;
	return -1;
}

static const struct lie lies[] = {
	{ .name = "none" },
	{ .name = "map_fails", .map = fail_map },
	{ .name = "map_overlaps", .map = map_over_earlier },
	{ .name = "map_leaves_stale_word", .mapped = leave_stale_word },
	{ .name = "map_leaves_some_stale", .mapped = leave_stale_word_unread },
	{ .name = "map_splits", .mapped = split_by_page },
	{ .name = "map_does_not_merge", .mapped = keep_apart },
	{ .name = "map_leaks_vma", .mapped = leak_vma },
	{ .name = "map_leaks_page", .mapped = leak_page },
	{ .name = "map_loses_page", .mapped = lose_written_page },
	{ .name = "map_copies_page", .mapped = copy_written_page },
	{ .name = "never_populates", .flags = never_populates },
	{ .name = "always_populates", .flags = always_populates },
	{ .name = "private_not_shared", .flags = private_not_shared },
	{ .name = "unmap_does_nothing", .unmap = leave_mapped },
	{ .name = "unmap_leaves_last_page", .unmap = leave_last_page },
	{ .name = "unmap_only_empties", .unmap = only_empty },
	{ .name = "unmap_fails", .unmap = fail_unmap },
	{ .name = "faults_more", .counts_up = true },
	{ .name = "prctl_fails", .refuses_prctl = true },
	{ .name = "no_smaps", .path = "/proc/self/smaps" },
	{ .name = "no_status", .path = "/proc/self/status" },
	{ .name = "empty_status", .path = "/proc/self/status", .text = "" },
	{ .name = "pages_uncounted", .path = "/proc/self/status",
	  .text = "VmRSS:	 9000000 kB\nVmPTE:	      64 kB\n" },
	{ .name = "page_tables_grow", .path = "/proc/self/status",
	  .text = "VmPTE:	%8u kB\n" },
	{ .name = "few_mappings", .path = "/proc/sys/vm/max_map_count", .text = "300\n" },
};

static void __attribute__((constructor)) choose_lie(void)
{
	const char *name = getenv("LIE");
	size_t i;

	page_size = sysconf(_SC_PAGESIZE);
	if (name && !strcmp(name, "list")) {
		for (i = 0; i < ARRAY_SIZE(lies); i++)
			puts(lies[i].name);
		exit(0);
	}
	for (i = 0; i < ARRAY_SIZE(lies); i++)
		if (name && !strcmp(name, lies[i].name))
			lie = &lies[i];
	if (!lie) {
		fputs("LIE names no lie\n", stderr);
		exit(1);
	}
	/* PROT_EXEC, so that nothing else merges with it. */
	hoard = REAL(mmap)(NULL, HOARD, PROT_FULL | PROT_EXEC,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

/* Ours is any mapping that the program makes: it makes none beside slots for long. */
void *mmap(void *start, size_t size, int prot, int flags, int fd, off_t offset)
{
	bool lying = prot == PROT_FULL && ++calls > HONEST_CALLS;
	void *mapped;

	if (lying && lie->flags)
		flags = lie->flags(flags);
	if (lying && lie->map)
		mapped = lie->map(start, size, flags);
	else
		mapped = REAL(mmap)(start, size, prot, flags, fd, offset);
	if (lying && lie->mapped && mapped != MAP_FAILED)
		lie->mapped(mapped, size);
	if (calls % 40 == 1) {
		earlier = mapped;
		earlier_size = size;
	}
	return mapped;
}

int munmap(void *start, size_t size)
{
	if (start == earlier)
		earlier = NULL;
	if (calls > HONEST_CALLS && lie->unmap)
		return lie->unmap(start, size);
	return REAL(munmap)(start, size);
}

FILE *fopen(const char *path, const char *mode)
{
	static unsigned int opened;
	FILE *file;

	if (!lie->path || strcmp(path, lie->path))
		return REAL(fopen)(path, mode);
	if (!lie->text) {
		errno = ENOENT;
		return NULL;
	}
	file = tmpfile();
	fprintf(file, lie->text, ++opened);
	rewind(file);
	return file;
}

int getrusage(__rusage_who_t who, struct rusage *usage)
{
	static long extra;
	int ret = REAL(getrusage)(who, usage);

	if (lie->counts_up)
		usage->ru_minflt += ++extra;
	return ret;
}

int prctl(int option, ...)
{
	if (lie->refuses_prctl && option == PR_SET_THP_DISABLE) {
		errno = EINVAL;
		return -1;
	}
	/* What else is asked of it here takes one argument that matters. */
	return option == PR_SET_THP_DISABLE ? REAL(prctl)(option, 1, 0, 0, 0) :
	       option == PR_SET_PDEATHSIG ? REAL(prctl)(option, 9) : 0;
}
