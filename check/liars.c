// SPDX-License-Identifier: GPL-2.0
/*
 * A library to preload into mprotect_toggle. It misbehaves as a broken kernel or
 * a poor machine would, in the one way that LIE names. LIE=list lists them.
 *
 * What the harness does is left alone: a lie begins with the mapping under test.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "kselftest.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE	25
#endif

/* The function that ours stands before. */
#define REAL(function)	((__typeof__(function) *)dlsym(RTLD_NEXT, #function))

/* The mapping under test is larger than any other. */
#define LARGE		(1024 * 1024)
#define PROT_FULL	(PROT_READ | PROT_WRITE)

#define SMAPS		"/proc/self/smaps"
#define PAGEMAP		"/proc/self/pagemap"
#define KPAGEFLAGS	"/proc/kpageflags"
#define MEMINFO		"/proc/meminfo"

/* Of an entry of pagemap and of kpageflags. */
#define ENTRY		sizeof(unsigned long long)
#define SOFT_DIRTY	0x0080000000000000ULL
#define EXCLUSIVE	0x0100000000000000ULL
#define PFN_MASK	0x007fffffffffffffULL
#define COMPOUND_TAIL	0x0000000000010000ULL

/* Where an entry of smaps is. */
enum place {
	BEFORE,
	INSIDE,
	AFTER,
};

struct file {
	const char *path;
	const char *text;	/* NULL: cannot be opened */
};

struct lie {
	const char *name;
	const char *what;

	/* Not before the first flip of the mapping. */
	bool later;

	/* Instead of a flip, and after it. */
	int (*flip)(char *start, size_t size, int prot);
	unsigned int fails_at;
	void (*protected)(char *start, size_t size);
	void (*restored)(char *start, size_t size);

	/* Instead of mapping it, and of advice on it. */
	void *(*map)(void *start, size_t size, int prot, int flags);
	int (*advise)(void *start, size_t size, int advice);

	/* A call that fails; with an error of 0, it only says that it worked. */
	const char *refused;
	long argument;
	int error;

	/* Also with other memory than the mapping. */
	bool anywhere;

	/* Files that are others. */
	const struct file *files;
	bool in_child;		/* only in a child of a test */

	/* A line of smaps in the entry of the mapping, and what comes instead. */
	const char *line;
	const char *instead;
	/* Every line of smaps. False ends the file. */
	bool (*smaps)(FILE *edited, const char *line, enum place place);

	/* An entry of pagemap, and one of kpageflags. */
	void (*pagemap)(unsigned long long *entry, size_t page);
	void (*kpageflags)(unsigned long long *flags, unsigned long long pfn);
	bool short_pagemap;

	/* Before the handler of a fault; returns the signal that it is told of. */
	int (*fault)(siginfo_t *info);
	/* Instead of read() and write() of a byte of the mapping. */
	ssize_t (*access)(bool write_it, int fd, char *byte);

	/* After a call of the test: in the child, in the parent. */
	void (*forked)(void);
	void (*waited)(void);
	void (*told_time)(struct timespec *time);
	void (*told_usage)(struct rusage *usage);
};

static const struct lie *lie;

static struct {
	char *start;
	size_t size;
	size_t page;
	int prot;
} range;

static unsigned int flips;	/* of this process and those it came from */
static bool in_child;

/* What a child has flipped, for its parent to see. */
static struct {
	char *start;
	size_t size;
	int prot;
} *mailbox;

static int pagemap_fd = -1, kpageflags_fd = -1;
static struct uffdio_writeprotect wp;
static int wp_fd = -1;

static bool is_ours(const void *address)
{
	return range.size && (char *)address >= range.start &&
	       (char *)address < range.start + range.size;
}

/* A page that is neither the first nor the last one, nor the first of a PMD. */
static char *middle(char *start, size_t size)
{
	return start + size / 2 / range.page * range.page + 3 * range.page;
}

static int set(char *start, size_t size, int prot)
{
	return syscall(SYS_mprotect, start, size, prot);
}

/* Instead of a flip. */

static int flip_nothing(char __always_unused *start,
			size_t __always_unused size,
			int __always_unused prot)
{
	return 0;
}

static int flip_down_only(char *start, size_t size, int prot)
{
	return prot & PROT_WRITE ? 0 : set(start, size, prot);
}

static int flip_all_but_last(char *start, size_t size, int prot)
{
	return set(start, size - range.page, prot);
}

static int flip_all_but_middle(char *start, size_t size, int prot)
{
	char *page = middle(start, size), *next = page + range.page;

	return set(start, page - start, prot) | set(next, start + size - next, prot);
}

static int flip_to_read(char *start, size_t size, int prot)
{
	return set(start, size, prot | PROT_READ);
}

static int flip_to_none(char *start, size_t size, int prot)
{
	return set(start, size, prot & PROT_WRITE ? prot : PROT_NONE);
}

static int flip_more(char *start, size_t size, int prot)
{
	if (start > range.start) {
		start -= range.page;
		size += range.page;
	}
	if (start + size < range.start + range.size)
		size += range.page;
	return set(start, size, prot);
}

static int flip_fewer(char *start, size_t size, int prot)
{
	if (size < range.size)
		size -= range.page;
	return set(start, size, prot);
}

static int fail_once(char *start, size_t size, int prot)
{
	if (flips == lie->fails_at) {
		errno = ENOMEM;
		return -1;
	}
	return set(start, size, prot);
}

static int fail_protect(char *start, size_t size, int prot)
{
	if (!(prot & PROT_WRITE)) {
		errno = ENOMEM;
		return -1;
	}
	return set(start, size, prot);
}

static int fail_restore(char *start, size_t size, int prot)
{
	if (prot & PROT_WRITE) {
		errno = ENOMEM;
		return -1;
	}
	return set(start, size, prot);
}

static int flip_slowly(char *start, size_t size, int prot)
{
	int ret;

	usleep(1000);
	ret = set(start, size, prot);
	usleep(1000);
	return ret;
}

static pthread_t late_thread;
static bool is_late;
static struct {
	char *start;
	size_t size;
	int prot;
} late;

static void *flip_now(void __always_unused *argument)
{
	usleep(10000);
	set(late.start, late.size, late.prot);
	return NULL;
}

static int flip_late(char *start, size_t size, int prot)
{
	if (is_late)
		pthread_join(late_thread, NULL);
	is_late = !(prot & PROT_WRITE);
	if (!is_late)
		return set(start, size, prot);
	late.start = start;
	late.size = size;
	late.prot = prot;
	return REAL(pthread_create)(&late_thread, NULL, flip_now, NULL) ? -1 : 0;
}

static int fault_and_flip(char *start, size_t size, int prot)
{
	char *page = REAL(mmap)(NULL, range.page, PROT_FULL,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	__atomic_store_n(page, 1, __ATOMIC_RELAXED);
	munmap(page, range.page);
	return set(start, size, prot);
}

static int flip_parent_too(char *start, size_t size, int prot)
{
	if (in_child) {
		mailbox->start = start;
		mailbox->size = size;
		mailbox->prot = prot;
	}
	return set(start, size, prot);
}

static int die_in_cycle(char *start, size_t size, int prot)
{
	if (flips == 5)
		raise(SIGKILL);
	return set(start, size, prot);
}

static int exit_in_cycle(char *start, size_t size, int prot)
{
	if (flips == 5)
		_exit(0);
	return set(start, size, prot);
}

static int stop(char *start, size_t size, int prot)
{
	raise(SIGSTOP);
	return set(start, size, prot);
}

/* After a flip. */

static void leave_read_only(char *start, size_t size)
{
	set(middle(start, size), range.page, PROT_READ);
}

static void zero_page(char *start, size_t size)
{
	memset(middle(start, size), 0, range.page);
}

static void swap_pages(char *start, size_t size)
{
	char *a = middle(start, size), *b = start, byte;
	size_t i;

	for (i = 0; i < range.page; i++) {
		byte = a[i];
		a[i] = b[i];
		b[i] = byte;
	}
}

static void unmap_page(char *start, size_t size)
{
	munmap(middle(start, size), range.page);
}

static void drop_page(char *start, size_t size)
{
	REAL(madvise)(middle(start, size), range.page, MADV_DONTNEED);
}

static void lose_dirty(char *start, size_t size)
{
	REAL(madvise)(start, size, MADV_FREE);
}

static void split_vma(char *start, size_t size)
{
	REAL(madvise)(middle(start, size), range.page, MADV_DONTDUMP);
}

static void split_vma_in_cycle(char *start, size_t size)
{
	if (flips > 6)
		split_vma(start, size);
}

/* Forbidden first: else shared memory goes back to PMDs. */
static void split_huge_page(char *start, size_t size)
{
	char *page = middle(start, size);

	REAL(madvise)(range.start, range.size, MADV_NOHUGEPAGE);
	set(page, range.page, PROT_READ);
	set(page, range.page, PROT_FULL);
}

static void split_huge_page_in_cycle(char *start, size_t size)
{
	if (flips > 6)
		split_huge_page(start, size);
}

static void touch_pages(char *start, size_t size)
{
	char *byte;

	for (byte = start; byte < start + size; byte += range.page)
		__atomic_store_n(byte, __atomic_load_n(byte, __ATOMIC_RELAXED),
				 __ATOMIC_RELAXED);
}

/* The pages of private memory are then read-only until they fault. */
static void share_for_a_while(char __always_unused *start,
			      size_t __always_unused size)
{
	pid_t child = REAL(fork)();

	if (!child)
		_exit(0);
	REAL(waitpid)(child, NULL, 0);
}

static void lose_uffd_wp(char __always_unused *start,
			 size_t __always_unused size)
{
	struct uffdio_writeprotect range_wp = wp;

	range_wp.mode = 0;
	if (wp_fd >= 0)
		REAL(ioctl)(wp_fd, UFFDIO_WRITEPROTECT, &range_wp);
}

/* Instead of mapping and advice. */

static void *map_shared(void *start, size_t size, int prot, int flags)
{
	return REAL(mmap)(start, size, prot, (flags & ~MAP_PRIVATE) | MAP_SHARED, -1, 0);
}

static void *map_more(void *start, size_t size, int prot, int flags)
{
	return REAL(mmap)(start, size + range.page, prot, flags, -1, 0);
}

/* The page behind the mapping only stays the same VMA with the same advice. */
static int advise_more(void *start, size_t size, int advice)
{
	if (size == range.size)
		size += range.page;
	return REAL(madvise)(start, size, advice);
}

static int advise_no_huge_pages(void *start, size_t size, int advice)
{
	if (advice == MADV_HUGEPAGE || advice == MADV_COLLAPSE)
		advice = MADV_NOHUGEPAGE;
	return REAL(madvise)(start, size, advice);
}

static int collapse_and_split(void *start, size_t size, int advice)
{
	int ret = REAL(madvise)(start, size, advice);

	if (!ret && advice == MADV_COLLAPSE)
		split_huge_page(start, size);
	return ret;
}

/* Every line of smaps. */

static bool cut_in_entry(FILE *edited, const char *line, enum place place)
{
	if (place == INSIDE && !strncmp(line, "Rss:", 4))
		return false;
	fputs(line, edited);
	return true;
}

static bool cut_before_entry(FILE *edited, const char *line, enum place place)
{
	if (place == INSIDE)
		return false;
	fputs(line, edited);
	return true;
}

static bool is_header(const char *line, unsigned long *start, unsigned long *end)
{
	return sscanf(line, "%lx-%lx", start, end) == 2;
}

/* The mapping's entry and the next one change places. */
static bool swap_headers(FILE *edited, const char *line, enum place place)
{
	static char header[256];
	unsigned long start, end;

	if (place == BEFORE || !is_header(line, &start, &end)) {
		fputs(line, edited);
	} else if (place == INSIDE) {
		snprintf(header, sizeof(header), "%s", line);
		fputs("0-1000 ---p 00000000 00:00 0\n", edited);
	} else {
		fputs(*header ? header : line, edited);
		*header = '\0';
	}
	return true;
}

static bool inflate_neighbours(FILE *edited, const char *line, enum place place)
{
	const char *colon = strchr(line, ':');
	unsigned long start, end;

	if (place == INSIDE || !colon || is_header(line, &start, &end))
		fputs(line, edited);
	else if (!strncmp(line, "VmFlags", 7))
		fputs("VmFlags: rd wr mr mw me\n", edited);
	else
		fprintf(edited, "%.*s: 123 kB\n", (int)(colon - line), line);
	return true;
}

static bool add_hex_field(FILE *edited, const char *line, enum place place)
{
	if (place == INSIDE && !strncmp(line, "Rss:", 4))
		fputs("Faded-Beads:           0 kB\n", edited);
	fputs(line, edited);
	return true;
}

static bool has_soft_dirty(FILE *edited, const char *line,
			   enum place __always_unused place)
{
	if (strncmp(line, "VmFlags:", 8))
		fputs(line, edited);
	else
		fprintf(edited, "VmFlags: sd %s", line + 8);
	return true;
}

/* Entries of pagemap and of kpageflags. */

static void pagemap_shared_page(unsigned long long *entry, size_t page)
{
	if (page == 3)
		*entry &= ~EXCLUSIVE;
}

static void pagemap_no_pfn(unsigned long long *entry, size_t __always_unused page)
{
	*entry &= ~PFN_MASK;
}

/* Page frames in a row, where there are none. */
static void pagemap_pfn_is_page(unsigned long long *entry, size_t page)
{
	*entry = (*entry & ~PFN_MASK) | (1ULL << 32) | page;
}

static void kpageflags_of_64k(unsigned long long *flags, unsigned long long pfn)
{
	*flags = pfn % ((1 << 16) / range.page) ? COMPOUND_TAIL : 0;
}

/* The test writes to every second page: this is what it waits for. */
static void set_soft_dirty(unsigned long long *entry, size_t page)
{
	*entry &= ~SOFT_DIRTY;
	if (page % 2)
		*entry |= SOFT_DIRTY;
}

static void lose_soft_dirty(unsigned long long *entry, size_t page)
{
	set_soft_dirty(entry, page);
	if (page == 3)
		*entry &= ~SOFT_DIRTY;
}

static void add_soft_dirty(unsigned long long *entry, size_t page)
{
	set_soft_dirty(entry, page);
	if (page == 4)
		*entry |= SOFT_DIRTY;
}

/* Faults. */

static int tell_next_address(siginfo_t *info)
{
	info->si_addr = (char *)info->si_addr + 1;
	return info->si_signo;
}

static int tell_not_mapped(siginfo_t *info)
{
	info->si_code = SEGV_MAPERR;
	return info->si_signo;
}

static int tell_other_signal(siginfo_t *info)
{
	return info->si_signo == SIGSEGV ? SIGBUS : SIGSEGV;
}

static char *page_of(char *address)
{
	return address - ((uintptr_t)address & (range.page - 1));
}

static int write_nevertheless(siginfo_t *info)
{
	char *address = info->si_addr;

	if (is_ours(address) && !(range.prot & PROT_WRITE)) {
		set(page_of(address), range.page, PROT_FULL);
		*address ^= 0x55;
		set(page_of(address), range.page, range.prot);
	}
	return info->si_signo;
}

static ssize_t access_nevertheless(bool write_it, int fd, char *byte)
{
	ssize_t ret;

	set(page_of(byte), range.page, PROT_FULL);
	ret = write_it ? REAL(read)(fd, byte, 1) : REAL(write)(fd, byte, 1);
	set(page_of(byte), range.page, range.prot);
	return ret;
}

/* Other calls. */

static void make_writable(void)
{
	set(range.start, range.size, PROT_FULL);
}

static void die(void)
{
	raise(SIGKILL);
}

static void obey_child(void)
{
	if (mailbox->size)
		set(mailbox->start, mailbox->size, mailbox->prot);
	mailbox->size = 0;
}

static void stand_still(struct timespec *time)
{
	memset(time, 0, sizeof(*time));
}

/* A second for a millisecond. */
static void run_fast(struct timespec *time)
{
	time->tv_sec = time->tv_sec * 1000 + time->tv_nsec / 1000000;
	time->tv_nsec = time->tv_nsec % 1000000 * 1000;
}

static void count_twice(struct rusage *usage)
{
	usage->ru_minflt *= 2;
	usage->ru_majflt *= 2;
}

#define FILES(...)	((const struct file[]) { __VA_ARGS__, {} })
#define LITTLE_MEMORY	"MemTotal: 2000 kB\nMemFree: 1500 kB\nMemAvailable: 1000 kB\n"

static const struct lie lies[] = {
	/* Flips that are not what was asked for. */
	{ "does_nothing", "mprotect() does nothing", .flip = flip_nothing },
	{ "restores_nothing", "only lowers the protection", .flip = flip_down_only },
	{ "leaves_last_page", "leaves the last page alone", .flip = flip_all_but_last },
	{ "leaves_middle_page", "leaves a page in the middle alone",
	  .flip = flip_all_but_middle },
	{ "leaves_page_read_only", "restores all pages but one",
	  .restored = leave_read_only },
	{ "none_is_read", "takes PROT_NONE for PROT_READ", .flip = flip_to_read },
	{ "read_is_none", "takes PROT_READ for PROT_NONE", .flip = flip_to_none },
	{ "flips_too_far", "flips the pages beside a part, too", .flip = flip_more },
	{ "flips_too_little", "leaves the last page of a part", .flip = flip_fewer },
	{ "fails_once", "the third flip fails", .flip = fail_once, .fails_at = 3 },
	{ "fails_later", "the ninth flip fails", .flip = fail_once, .fails_at = 9 },
	{ "fails_to_protect_later", "the 17th flip fails", .flip = fail_once,
	  .fails_at = 17 },
	{ "fails_to_restore_later", "the 18th flip fails", .flip = fail_once,
	  .fails_at = 18 },
	{ "fails_to_protect", "never lowers the protection", .flip = fail_protect },
	{ "fails_to_restore", "never raises the protection", .flip = fail_restore },
	{ "slow", "right, but slow", .flip = flip_slowly, .anywhere = true },
	{ "late", "returns before it protects", .flip = flip_late },

	/* Pages that are not what they were. */
	{ "zeroes_page", "loses what is in a page", .restored = zero_page },
	{ "swaps_pages", "takes one page for another", .restored = swap_pages },
	{ "unmaps_page", "unmaps a page while protecting", .protected = unmap_page },
	{ "unmaps_page_later", "unmaps a page while restoring", .restored = unmap_page },
	{ "drops_page", "a page is gone: shared memory faults it in again",
	  .restored = drop_page },
	{ "loses_dirty", "pages are clean while protected", .protected = lose_dirty },
	{ "faults_in_flip", "a flip faults", .flip = fault_and_flip },
	{ "faults_after_flip", "private pages fault again, once a cycle",
	  .restored = share_for_a_while },
	{ "copies_early", "a flip copies the pages that a child shares",
	  .restored = touch_pages },
	{ "counts_faults_twice", "each page fault is two", .told_usage = count_twice },

	/* Mappings that are not what they were. */
	{ "splits_vma", "three VMAs while protected, and after", .protected = split_vma },
	{ "splits_vma_in_cycle", "the same, but only in the timed cycles",
	  .restored = split_vma_in_cycle },
	{ "merges_neighbour", "the VMA is larger than the mapping", .map = map_more,
	  .advise = advise_more },
	{ "splits_huge_page", "a huge page is split while restoring",
	  .restored = split_huge_page },
	{ "splits_huge_page_early", "a huge page is split while populating",
	  .advise = collapse_and_split },
	{ "splits_huge_page_in_cycle", "a huge page is split in the timed cycles",
	  .restored = split_huge_page_in_cycle },
	{ "keeps_huge_pages", "flips of one page do nothing, and split nothing",
	  .refused = "mprotect" },
	{ "no_huge_pages", "no huge pages are given", .advise = advise_no_huge_pages },
	{ "no_pmd_size", "there are no huge pages in this kernel", .error = ENOENT,
	  .files = FILES({ "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", NULL }) },

	/* Children. */
	{ "shares_private", "private memory is shared", .map = map_shared },
	{ "child_flips_parent", "what a child flips is flipped in its parent",
	  .flip = flip_parent_too, .waited = obey_child },
	{ "child_is_not_protected", "a child gets the pages writable",
	  .forked = make_writable },
	{ "child_dies", "a child of a test is killed", .forked = die },
	{ "dies_in_round", "a round is killed in its cycles", .flip = die_in_cycle },
	{ "exits_in_round", "a round exits in its cycles", .flip = exit_in_cycle },
	{ "hangs_in_round", "a round hangs", .flip = stop },
	{ "fork_fails", "no more processes", .refused = "fork", .error = EAGAIN },
	{ "no_pidfd", "no right to use pidfd_open()",
	  .refused = "syscall", .argument = SYS_pidfd_open, .error = EPERM },
	{ "clock_stands_still", "the time is always 0", .told_time = stand_still },
	{ "clock_runs_fast", "a second for a millisecond", .told_time = run_fast },

	/* Faults and accesses by the kernel. */
	{ "wrong_address", "a fault is told of the next byte", .fault = tell_next_address },
	{ "wrong_code", "a fault is told of unmapped memory", .fault = tell_not_mapped },
	{ "wrong_signal", "SIGBUS for SIGSEGV and the reverse", .fault = tell_other_signal },
	{ "writes_nevertheless", "a write faults, and lands",
	  .fault = write_nevertheless },
	{ "kernel_access_allowed", "read() and write() overrule the protection",
	  .access = access_nevertheless },
	{ "kernel_write_denied", "read() into the mapping never works",
	  .refused = "read", .error = EFAULT },
	{ "kernel_read_denied", "write() from the mapping never works",
	  .refused = "write", .error = EFAULT },
	{ "kernel_access_fails", "read() into the mapping fails otherwise",
	  .refused = "read", .error = EIO },
	{ "pipes_break", "no write() works", .refused = "write", .anywhere = true,
	  .error = EIO },

	/* Calls that fail. */
	{ "reserve_fails", "no address space", .refused = "mmap",
	  .argument = MAP_NORESERVE, .error = ENOMEM },
	{ "map_fails", "the mapping cannot be made", .refused = "mmap",
	  .argument = MAP_FIXED, .error = ENOMEM },
	{ "small_map_fails", "no other memory", .refused = "mmap", .error = ENOMEM },
	{ "dontdump_fails", "no MADV_DONTDUMP", .refused = "madvise",
	  .argument = MADV_DONTDUMP, .anywhere = true, .error = ENOMEM },
	{ "nohugepage_fails", "no MADV_NOHUGEPAGE", .refused = "madvise",
	  .argument = MADV_NOHUGEPAGE, .error = ENOMEM },
	{ "nohugepage_unknown", "a kernel without huge pages", .refused = "madvise",
	  .argument = MADV_NOHUGEPAGE, .error = EINVAL },
	{ "hugepage_fails", "no MADV_HUGEPAGE", .refused = "madvise",
	  .argument = MADV_HUGEPAGE, .error = ENOMEM },
	{ "dontneed_fails", "no MADV_DONTNEED", .refused = "madvise",
	  .argument = MADV_DONTNEED, .error = ENOMEM },
	{ "free_fails", "no MADV_FREE", .refused = "madvise",
	  .argument = MADV_FREE, .error = EINVAL },
	{ "pageout_fails", "no MADV_PAGEOUT", .refused = "madvise",
	  .argument = MADV_PAGEOUT, .error = EINVAL },
	{ "pageout_keeps", "MADV_PAGEOUT does nothing", .refused = "madvise",
	  .argument = MADV_PAGEOUT, .anywhere = true },
	{ "split_fails", "flips of one page fail", .refused = "mprotect",
	  .error = ENOMEM },
	{ "pipe_fails", "no pipe()", .refused = "pipe", .error = EMFILE },
	{ "pipe2_fails", "no pipe2()", .refused = "pipe2", .error = EMFILE },
	{ "thread_fails", "no threads", .refused = "pthread_create", .error = EAGAIN },
	{ "pin_fails", "no right to choose the CPU", .refused = "sched_setaffinity",
	  .error = EPERM },
	{ "thread_pin_fails", "no right to choose the CPU of a thread",
	  .refused = "sched_setaffinity", .argument = true, .error = EPERM },

	/* Tracking of writes. */
	{ "no_uffd", "no right to use userfaultfd",
	  .refused = "syscall", .argument = SYS_userfaultfd, .error = EPERM },
	{ "uffd_register_fails", "no write-protection by userfaultfd",
	  .refused = "ioctl", .argument = UFFDIO_REGISTER, .error = EINVAL },
	{ "uffd_wp_fails", "it does not write-protect",
	  .refused = "ioctl", .argument = UFFDIO_WRITEPROTECT, .error = EAGAIN },
	{ "uffd_wp_stays", "write-protection is not taken back",
	  .refused = "ioctl", .argument = UFFDIO_WRITEPROTECT, .later = true },
	{ "uffd_wp_release_fails", "taking it back fails", .later = true,
	  .refused = "ioctl", .argument = UFFDIO_WRITEPROTECT, .error = EAGAIN },
	{ "uffd_wp_lost", "protecting takes back write-protection",
	  .protected = lose_uffd_wp },
	{ "uffd_wp_lost_later", "restoring takes back write-protection",
	  .restored = lose_uffd_wp },
	{ "soft_dirty", "soft-dirty tracking that works, where there is none",
	  .smaps = has_soft_dirty, .pagemap = set_soft_dirty },
	{ "soft_dirty_lost", "a page that was written is not soft-dirty",
	  .smaps = has_soft_dirty, .pagemap = lose_soft_dirty },
	{ "soft_dirty_fails", "a flip fails under soft-dirty tracking",
	  .smaps = has_soft_dirty, .pagemap = set_soft_dirty, .flip = fail_protect },
	{ "soft_dirty_added", "a page that was not written is soft-dirty",
	  .smaps = has_soft_dirty, .pagemap = add_soft_dirty },

	/* What smaps tells. */
	{ "smaps_missing", "a kernel without smaps", .error = ENOENT,
	  .files = FILES({ SMAPS, NULL }) },
	{ "smaps_forbidden", "no right to read smaps", .error = EACCES,
	  .files = FILES({ SMAPS, NULL }) },
	{ "smaps_forbidden_later", "the same, but not from the start", .later = true,
	  .error = EACCES, .files = FILES({ SMAPS, NULL }) },
	{ "smaps_fails", "reading smaps fails",
	  .files = FILES({ SMAPS, "/proc/self/mem" }) },
	{ "smaps_cut_in_entry", "smaps ends in mid-entry", .smaps = cut_in_entry },
	{ "smaps_cut_before_entry", "smaps ends before the mapping",
	  .smaps = cut_before_entry },
	{ "smaps_swaps_entries", "a neighbour's numbers", .smaps = swap_headers },
	{ "smaps_large_neighbours", "neighbours that have more of everything",
	  .smaps = inflate_neighbours },
	{ "smaps_hex_field", "a field with a name that looks like an address range",
	  .smaps = add_hex_field },
	{ "smaps_no_size", "no Size", .line = "Size:" },
	{ "smaps_no_kernel_page", "no KernelPageSize", .line = "KernelPageSize:" },
	{ "smaps_no_mmu_page", "no MMUPageSize", .line = "MMUPageSize:" },
	{ "smaps_no_rss", "no Rss", .line = "Rss:" },
	{ "smaps_no_shared_dirty", "no Shared_Dirty", .line = "Shared_Dirty:" },
	{ "smaps_no_private_dirty", "no Private_Dirty", .line = "Private_Dirty:" },
	{ "smaps_no_anonymous", "no Anonymous", .line = "Anonymous:" },
	{ "smaps_no_anon_huge", "no AnonHugePages", .line = "AnonHugePages:" },
	{ "smaps_no_shmem_huge", "no ShmemPmdMapped", .line = "ShmemPmdMapped:" },
	{ "smaps_no_swap", "no Swap", .line = "Swap:" },
	{ "smaps_no_eligible", "no THPeligible", .line = "THPeligible:" },
	{ "smaps_no_flags", "no VmFlags", .line = "VmFlags:" },
	{ "smaps_no_number", "Rss has no number", .line = "Rss:",
	  .instead = "Rss: kB\n" },
	{ "smaps_no_may_write", "the mapping may not become writable again",
	  .line = "VmFlags:", .instead = "VmFlags: rd wr mr me\n" },
	{ "smaps_other_kernel_page", "another page size", .line = "KernelPageSize:",
	  .instead = "KernelPageSize: 2048 kB\n" },
	{ "smaps_other_mmu_page", "another page size of the MMU", .line = "MMUPageSize:",
	  .instead = "MMUPageSize: 2048 kB\n" },
	{ "swaps", "a page is swapped out", .line = "Swap:", .instead = "Swap: 4 kB\n" },
	{ "swaps_later", "the same, but not from the start", .later = true,
	  .line = "Swap:", .instead = "Swap: 4 kB\n" },

	/* What pagemap and kpageflags tell. */
	{ "pagemap_missing", "a kernel without pagemap", .error = ENOENT,
	  .files = FILES({ PAGEMAP, NULL }) },
	{ "pagemap_forbidden", "no right to read pagemap", .error = EACCES,
	  .files = FILES({ PAGEMAP, NULL }) },
	{ "pagemap_fails", "reading pagemap fails", .refused = "pread", .error = EIO },
	{ "pagemap_fails_later", "the same, but not from the start", .later = true,
	  .refused = "pread", .error = EIO },
	{ "pagemap_short", "pagemap gives half of what is read", .short_pagemap = true },
	{ "pagemap_shared_page", "a page that another process maps", .later = true,
	  .pagemap = pagemap_shared_page },
	{ "pagemap_no_pfn", "no right to see page frames", .pagemap = pagemap_no_pfn },
	{ "kpageflags_forbidden", "no right to read kpageflags", .error = EACCES,
	  .files = FILES({ KPAGEFLAGS, NULL }) },
	{ "folios_of_64k", "all folios are of 64 KiB",
	  .pagemap = pagemap_pfn_is_page, .kpageflags = kpageflags_of_64k },
	{ "folios_of_64k_later", "they become so while protecting", .later = true,
	  .pagemap = pagemap_pfn_is_page, .kpageflags = kpageflags_of_64k },

	/* What a poor machine has left. */
	{ "little_memory", "no memory is free",
	  .files = FILES({ MEMINFO, LITTLE_MEMORY }) },
	{ "little_memory_in_round", "the same, but only in a child of a test",
	  .in_child = true, .files = FILES({ MEMINFO, LITTLE_MEMORY }) },
	{ "strict_overcommit", "all that may be committed is",
	  .files = FILES({ "/proc/sys/vm/overcommit_memory", "2\n" },
			 { MEMINFO, "CommitLimit: 4096000 kB\nCommitted_AS: 4096000 kB\n" }) },
	{ "small_cgroup2", "a memory cgroup (v2) around ours is full",
	  .files = FILES({ "/proc/self/cgroup", "0::/box/job\n" },
			 { "/proc/self/mountinfo",
			   "9 8 0:26 / /none rw - tmpfs none rw\n"
			   "30 9 0:26 / /none/cgroup rw - cgroup2 none rw\n" },
			 { "/none/cgroup/box/memory.max", "8388608\n" },
			 { "/none/cgroup/box/memory.current", "8380000\n" },
			 { "/none/cgroup/box/job/memory.max", "max\n" }) },
	{ "small_cgroup1", "a memory cgroup (v1) around ours is full",
	  .files = FILES({ "/proc/self/cgroup", "4:cpu:/\n3:memory:/outside/job\n0::/\n" },
			 { "/proc/self/mountinfo",
			   "30 9 0:26 /outside /none/memory rw - cgroup none rw,memory\n" },
			 { "/none/memory/memory.limit_in_bytes", "8388608\n" },
			 { "/none/memory/memory.usage_in_bytes", "8380000\n" }) },
};

static void list_lies(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(lies); i++)
		printf("%-26s %s\n", lies[i].name, lies[i].what);
	exit(0);
}

static __attribute__((constructor)) void choose_lie(void)
{
	const char *name = getenv("LIE");
	size_t i;

	range.page = sysconf(_SC_PAGESIZE);
	if (!name)
		return;
	if (!strcmp(name, "list"))
		list_lies();
	for (i = 0; i < ARRAY_SIZE(lies); i++)
		if (!strcmp(name, lies[i].name))
			lie = &lies[i];
	if (!lie) {
		fprintf(stderr, "LIE is '%s': LIE=list lists what it takes\n", name);
		exit(2);
	}
	mailbox = REAL(mmap)(NULL, sizeof(*mailbox), PROT_FULL,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static bool is_time(void)
{
	return lie && (!lie->later || flips);
}

/* Sets errno and @ret if the lie is that this call fails. */
static bool refuses(const char *call, long argument, int *ret)
{
	if (!is_time() || !lie->refused || strcmp(lie->refused, call) ||
	    lie->argument != argument)
		return false;
	errno = lie->error;
	*ret = lie->error ? -1 : 0;
	return true;
}

static bool refuses_memory(const char *call, long argument, const void *start, int *ret)
{
	return (is_ours(start) || (lie && lie->anywhere)) && refuses(call, argument, ret);
}

/* The calls. */

static int flip(char *start, size_t size, int prot)
{
	void (*after)(char *start, size_t size);
	int ret;

	range.prot = prot;
	flips++;
	ret = lie->flip ? lie->flip(start, size, prot) : set(start, size, prot);
	after = prot & PROT_WRITE ? lie->restored : lie->protected;
	if (!ret && after)
		after(start, size);
	return ret;
}

int mprotect(void *start, size_t size, int prot)
{
	int ret;

	if (lie && lie->flip && lie->anywhere)
		return lie->flip(start, size, prot);
	if (lie && is_ours(start) && size >= LARGE)
		return flip(start, size, prot);
	if (refuses_memory("mprotect", 0, start, &ret))
		return ret;
	return set(start, size, prot);
}

static bool refuses_map(size_t size, int flags)
{
	int ret;

	if (size >= LARGE)
		return refuses("mmap", flags & (MAP_FIXED | MAP_NORESERVE), &ret);
	/* Only what a test asks for once it has its mapping. */
	return range.size && refuses("mmap", 0, &ret);
}

void *mmap(void *start, size_t size, int prot, int flags, int fd, off_t offset)
{
	bool is_range = size >= LARGE && flags & MAP_FIXED;
	void *ret;

	if (refuses_map(size, flags))
		return MAP_FAILED;
	if (is_range && lie && lie->map)
		ret = lie->map(start, size, prot, flags);
	else
		ret = REAL(mmap)(start, size, prot, flags, fd, offset);
	if (is_range && ret != MAP_FAILED) {
		range.start = ret;
		range.size = size;
	}
	return ret;
}

int madvise(void *start, size_t size, int advice)
{
	int ret;

	if (refuses_memory("madvise", advice, start, &ret))
		return ret;
	if (lie && lie->advise && is_ours(start))
		return lie->advise(start, size, advice);
	return REAL(madvise)(start, size, advice);
}

/* The file that stands for another one. */
static const struct file *find_file(const char *path)
{
	const struct file *file;

	if (!is_time() || !lie->files || (lie->in_child && !in_child))
		return NULL;
	for (file = lie->files; file->path; file++)
		if (!strcmp(file->path, path))
			return file;
	return NULL;
}

static bool edit_line(FILE *edited, const char *line, enum place place)
{
	if (lie->smaps)
		return lie->smaps(edited, line, place);
	if (place == INSIDE && !strncmp(line, lie->line, strlen(lie->line)))
		line = lie->instead ?: "";
	fputs(line, edited);
	return true;
}

static FILE *open_edited_smaps(void)
{
	static char *text;
	FILE *smaps = REAL(fopen)(SMAPS, "r"), *edited;
	unsigned long first = (unsigned long)range.start, start, end;
	enum place place = BEFORE;
	size_t size = 0, text_size;
	char *line = NULL;

	if (!smaps)
		return NULL;
	free(text);
	edited = open_memstream(&text, &text_size);
	while (getline(&line, &size, smaps) > 0) {
		if (is_header(line, &start, &end))
			place = end <= first ? BEFORE :
				start < first + range.size ? INSIDE : AFTER;
		if (!edit_line(edited, line, place))
			break;
	}
	free(line);
	fclose(smaps);
	fclose(edited);
	return fmemopen(text, text_size, "r");
}

FILE *fopen(const char *path, const char *mode)
{
	const struct file *file = find_file(path);

	if (file && !file->text) {
		errno = lie->error;
		return NULL;
	}
	if (file && *file->text != '/')
		return fmemopen((void *)file->text, strlen(file->text), "r");
	if (is_time() && (lie->smaps || lie->line) && !strcmp(path, SMAPS))
		return open_edited_smaps();
	return REAL(fopen)(file ? file->text : path, mode);
}

int open(const char *path, int flags, ...)
{
	const struct file *file = find_file(path);
	int fd;

	if (file) {
		errno = lie->error;
		return -1;
	}
	/* A lie needs no right to see the truth. */
	if (lie && lie->kpageflags && !strcmp(path, KPAGEFLAGS))
		fd = REAL(open)("/dev/null", flags);
	else
		fd = REAL(open)(path, flags); /* Nobody here makes a file: no mode. */
	/* A number may have been the other file's before that was closed. */
	if (!strcmp(path, PAGEMAP))
		pagemap_fd = fd;
	else if (pagemap_fd == fd)
		pagemap_fd = -1;
	if (!strcmp(path, KPAGEFLAGS))
		kpageflags_fd = fd;
	else if (kpageflags_fd == fd)
		kpageflags_fd = -1;
	return fd;
}

static void edit_pagemap(unsigned long long *entries, size_t nr_entries, size_t first)
{
	size_t i;

	for (i = first; i < first + nr_entries; i++)
		if (is_ours((char *)(i * range.page)))
			lie->pagemap(&entries[i - first],
				     i - (uintptr_t)range.start / range.page);
}

static void edit_kpageflags(unsigned long long *flags, size_t nr_flags, unsigned long long first)
{
	size_t i;

	for (i = 0; i < nr_flags; i++)
		lie->kpageflags(&flags[i], first + i);
}

ssize_t pread(int fd, void *buffer, size_t size, off_t offset)
{
	ssize_t bytes;
	int ret;

	if (is_time() && fd == kpageflags_fd && lie->kpageflags) {
		edit_kpageflags(buffer, size / ENTRY, offset / ENTRY);
		return size;
	}
	if (!is_time() || fd != pagemap_fd)
		return REAL(pread)(fd, buffer, size, offset);
	if (refuses("pread", 0, &ret))
		return ret;
	bytes = REAL(pread)(fd, buffer, lie->short_pagemap ? size / 2 : size, offset);
	if (bytes > 0 && lie->pagemap)
		edit_pagemap(buffer, bytes / ENTRY, offset / ENTRY);
	return bytes;
}

ssize_t read(int fd, void *buffer, size_t size)
{
	int ret;

	if (refuses_memory("read", 0, buffer, &ret))
		return ret;
	if (lie && lie->access && is_ours(buffer))
		return lie->access(true, fd, buffer);
	return REAL(read)(fd, buffer, size);
}

ssize_t write(int fd, const void *buffer, size_t size)
{
	int ret;

	if (refuses_memory("write", 0, buffer, &ret))
		return ret;
	if (lie && lie->access && is_ours(buffer))
		return lie->access(false, fd, (char *)buffer);
	return REAL(write)(fd, buffer, size);
}

int pipe(int fds[2])
{
	int ret;

	return refuses("pipe", 0, &ret) ? ret : REAL(pipe)(fds);
}

int pipe2(int fds[2], int flags)
{
	int ret;

	return refuses("pipe2", 0, &ret) ? ret : REAL(pipe2)(fds, flags);
}

pid_t fork(void)
{
	bool of_test = range.size;
	siginfo_t info;
	pid_t child;
	int ret;

	if (of_test && refuses("fork", 0, &ret))
		return ret;
	child = REAL(fork)();
	if (!child && of_test) {
		in_child = true;
		if (lie && lie->forked)
			lie->forked();
	}
	/* The test must not be quicker than a child that dies. */
	if (child > 0 && of_test && lie && lie->forked == die)
		waitid(P_PID, child, &info, WEXITED | WNOWAIT);
	return child;
}

pid_t waitpid(pid_t child, int *status, int options)
{
	pid_t ret = REAL(waitpid)(child, status, options);

	if (lie && lie->waited && range.size)
		lie->waited();
	return ret;
}

static void (*handlers[NSIG])(int signal_number, siginfo_t *info, void *context);

static void handle_fault(int signal_number, siginfo_t *info, void *context)
{
	handlers[signal_number](lie->fault(info), info, context);
}

int sigaction(int signal_number, const struct sigaction *action, struct sigaction *old)
{
	struct sigaction ours;

	if (!lie || !lie->fault || !action || !(action->sa_flags & SA_SIGINFO))
		return REAL(sigaction)(signal_number, action, old);
	ours = *action;
	handlers[signal_number] = ours.sa_sigaction;
	ours.sa_sigaction = handle_fault;
	return REAL(sigaction)(signal_number, &ours, old);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
		   void *(*start)(void *argument), void *argument)
{
	int ret;

	if (refuses("pthread_create", 0, &ret))
		return errno;
	return REAL(pthread_create)(thread, attributes, start, argument);
}

int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set)
{
	int ret;

	if (refuses("sched_setaffinity", gettid() != getpid(), &ret))
		return ret;
	return REAL(sched_setaffinity)(pid, size, set);
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list arguments;
	void *argument;
	int ret;

	va_start(arguments, request);
	argument = va_arg(arguments, void *);
	va_end(arguments);

	if (refuses("ioctl", request, &ret))
		return ret;
	if (request == UFFDIO_WRITEPROTECT) {
		wp = *(struct uffdio_writeprotect *)argument;
		wp_fd = fd;
	}
	return REAL(ioctl)(fd, request, argument);
}

/* As many arguments as a system call can have, whether they were given or not. */
long syscall(long number, ...)
{
	va_list arguments;
	long argument[6];
	int ret, i;

	va_start(arguments, number);
	for (i = 0; i < 6; i++)
		argument[i] = va_arg(arguments, long);
	va_end(arguments);

	if (range.size && refuses("syscall", number, &ret))
		return ret;
	return REAL(syscall)(number, argument[0], argument[1], argument[2],
			     argument[3], argument[4], argument[5]);
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
	int ret = REAL(clock_gettime)(clock, time);

	if (lie && lie->told_time)
		lie->told_time(time);
	return ret;
}

int getrusage(__rusage_who_t who, struct rusage *usage)
{
	int ret = REAL(getrusage)(who, usage);

	if (lie && lie->told_usage)
		lie->told_usage(usage);
	return ret;
}
