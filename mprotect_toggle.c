// SPDX-License-Identifier: GPL-2.0
/*
 * Flip the protection of a range and back: what user space may rely on, and
 * what one flip costs.
 *
 * A cycle is mprotect() of the whole range to a lower protection, mprotect()
 * back to read and write, and a write to every page.
 */
#include "../kselftest_harness.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "vm_util.h"
#include "memory_room.h"
#include "page_state.h"
#include "rounds.h"
#include "test_program.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE	25
#endif
#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT	21
#endif
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY	1
#endif
#ifndef UFFD_FEATURE_WP_HUGETLBFS_SHMEM
#define UFFD_FEATURE_WP_HUGETLBFS_SHMEM	0x1000
#endif

#define PREFIX		"MPROTECT_TOGGLE"
#define PROT_FULL	(PROT_READ | PROT_WRITE)

/* Enough of every kind of page to check. What is timed is of the user's size. */
#define TEST_MB		8

/* For an emulated machine with a debug kernel: no test takes long elsewhere. */
#define TIMEOUT		600
/* A user may ask for any number of rounds. A round that hangs is found out. */
#define COST_TIMEOUT	36000

enum folios {
	BASE_PAGES,
	FOLIOS_OF_64K,
	PMD_MAPPED,
	PTE_MAPPED,		/* PMD-sized folios, mapped by PTEs */
};

/* How a mapping is made, and to which protection it is flipped. */
struct shape {
	const char *name;
	bool shared;
	enum folios folios;
	bool cow;		/* a live child still shares the pages */
	bool in_parts;		/* but only every second eighth of a huge page */
	int lower;
};

static const struct shape shared_dirty = {
	.name = "shared_dirty",
	.shared = true,
	.lower = PROT_READ,
};

static const struct shape shared_none = {
	.name = "shared_none",
	.shared = true,
	.lower = PROT_NONE,
};

static const struct shape shared_thp = {
	.name = "shared_thp",
	.shared = true,
	.folios = PMD_MAPPED,
	.lower = PROT_READ,
};

static const struct shape shared_thp_pte = {
	.name = "shared_thp_pte",
	.shared = true,
	.folios = PTE_MAPPED,
	.lower = PROT_READ,
};

static const struct shape private = {
	.name = "private",
	.lower = PROT_READ,
};

static const struct shape private_none = {
	.name = "private_none",
	.lower = PROT_NONE,
};

static const struct shape private_cow = {
	.name = "private_cow",
	.cow = true,
	.lower = PROT_READ,
};

static const struct shape private_cow_thp = {
	.name = "private_cow_thp",
	.folios = PMD_MAPPED,
	.cow = true,
	.lower = PROT_READ,
};

static const struct shape private_cow_part = {
	.name = "private_cow_part",
	.folios = PTE_MAPPED,
	.cow = true,
	.in_parts = true,
	.lower = PROT_READ,
};

static const struct shape private_thp = {
	.name = "private_thp",
	.folios = PMD_MAPPED,
	.lower = PROT_READ,
};

static const struct shape private_thp_none = {
	.name = "private_thp_none",
	.folios = PMD_MAPPED,
	.lower = PROT_NONE,
};

static const struct shape private_thp_pte = {
	.name = "private_thp_pte",
	.folios = PTE_MAPPED,
	.lower = PROT_READ,
};

static const struct shape private_mthp = {
	.name = "private_mthp",
	.folios = FOLIOS_OF_64K,
	.lower = PROT_READ,
};

/* A child that shares the pages as they were when it was forked. */
struct sharer {
	pid_t pid;
	int request;
	int reply;
};

struct mapping {
	const struct shape *shape;
	char *reservation;
	size_t reservation_size;
	char *start;
	size_t size;
	size_t pages;
	size_t pmd_size;	/* 0 without transparent huge pages */
	unsigned long pattern;	/* what fill() has written, 0 if nothing */
	struct page_state made;	/* before any flip */
	long long migrated;	/* pages of the machine, before @made */
	struct sharer sharer;
};

/* Points of a cycle at which the page state is looked at. */
enum state_phase {
	POPULATED,
	PROTECTED,
	RESTORED,
	TOUCHED,
	NR_STATE_PHASES
};

static const char * const state_phase_names[] = {
	[POPULATED]	= "populated",
	[PROTECTED]	= "protected",
	[RESTORED]	= "restored",
	[TOUCHED]	= "touched",
};

/* Read by main() before any test runs. */
static struct rounds_plan plan;
static unsigned long size_mb;

FIXTURE(mprotect_toggle)
{
	struct mapping mapping;
};

FIXTURE_VARIANT(mprotect_toggle)
{
	const struct shape *shape;
};

FIXTURE_VARIANT_ADD(mprotect_toggle, shared_dirty) { .shape = &shared_dirty };
FIXTURE_VARIANT_ADD(mprotect_toggle, shared_none) { .shape = &shared_none };
FIXTURE_VARIANT_ADD(mprotect_toggle, shared_thp) { .shape = &shared_thp };
FIXTURE_VARIANT_ADD(mprotect_toggle, shared_thp_pte) { .shape = &shared_thp_pte };
FIXTURE_VARIANT_ADD(mprotect_toggle, private) { .shape = &private };
FIXTURE_VARIANT_ADD(mprotect_toggle, private_none) { .shape = &private_none };
FIXTURE_VARIANT_ADD(mprotect_toggle, private_cow) { .shape = &private_cow };
FIXTURE_VARIANT_ADD(mprotect_toggle, private_thp) { .shape = &private_thp };
FIXTURE_VARIANT_ADD(mprotect_toggle, private_thp_none) { .shape = &private_thp_none };
FIXTURE_VARIANT_ADD(mprotect_toggle, private_thp_pte) { .shape = &private_thp_pte };
FIXTURE_VARIANT_ADD(mprotect_toggle, private_mthp) { .shape = &private_mthp };

/* MADV_FREE does nothing to pages that a child still shares: no private_cow. */
FIXTURE(mprotect_toggle_private)
{
	struct mapping mapping;
	bool pinned;		/* to one CPU, before it was made */
};

FIXTURE_VARIANT(mprotect_toggle_private)
{
	const struct shape *shape;
};

FIXTURE_VARIANT_ADD(mprotect_toggle_private, private) { .shape = &private };
FIXTURE_VARIANT_ADD(mprotect_toggle_private, private_none) { .shape = &private_none };
FIXTURE_VARIANT_ADD(mprotect_toggle_private, private_thp) { .shape = &private_thp };
FIXTURE_VARIANT_ADD(mprotect_toggle_private, private_thp_none) { .shape = &private_thp_none };
FIXTURE_VARIANT_ADD(mprotect_toggle_private, private_thp_pte) { .shape = &private_thp_pte };
FIXTURE_VARIANT_ADD(mprotect_toggle_private, private_mthp) { .shape = &private_mthp };

FIXTURE(mprotect_toggle_cow)
{
	struct mapping mapping;
};

FIXTURE_VARIANT(mprotect_toggle_cow)
{
	const struct shape *shape;
};

FIXTURE_VARIANT_ADD(mprotect_toggle_cow, private_cow) { .shape = &private_cow };
FIXTURE_VARIANT_ADD(mprotect_toggle_cow, private_cow_thp) { .shape = &private_cow_thp };
FIXTURE_VARIANT_ADD(mprotect_toggle_cow, private_cow_part) { .shape = &private_cow_part };

/* Pages that are not as they should be, told in one line however many. */
struct tally {
	unsigned long pages;
	const char *first;
	char seen[64];
};

static void tally_add(struct tally *tally, const char *page, const char *seen)
{
	if (!tally->pages++) {
		tally->first = page;
		snprintf(tally->seen, sizeof(tally->seen), "%s", seen);
	}
}

/* Returns true if no page was tallied. */
static bool tally_report(const struct tally *tally, const struct mapping *mapping,
			 const char *phase, const char *field, const char *expected)
{
	char where[64];

	if (!tally->pages)
		return true;
	snprintf(where, sizeof(where), "pages=%lu first=%p", tally->pages, tally->first);
	ksft_print_msg("mismatch variant=%s phase=%s field=%s expected=%s seen=%s %s\n",
		       mapping->shape->name, phase, field, expected, tally->seen, where);
	return false;
}

static char *page_at(const struct mapping *mapping, size_t page)
{
	return mapping->start + page * psize();
}

static int flip(const struct mapping *mapping, int prot)
{
	return mprotect(mapping->start, mapping->size, prot) ? -errno : 0;
}

/* Write one byte in every page. */
static void touch(const struct mapping *mapping)
{
	char *end = mapping->start + mapping->size, *byte;
	size_t page_size = psize();

	for (byte = mapping->start; byte < end; byte += page_size)
		__atomic_store_n(byte, 1, __ATOMIC_RELAXED);
}

/* The word that a page is full of. */
static unsigned long pattern_word(unsigned long pattern, size_t page)
{
	return (pattern << 24 | page) * 0x9e3779b1UL;
}

/* What is at an offset in that page. */
static char pattern_byte(unsigned long pattern, size_t page, size_t offset)
{
	unsigned long word = pattern_word(pattern, page);
	char bytes[sizeof(word)];

	memcpy(bytes, &word, sizeof(word));
	return bytes[offset % sizeof(word)];
}

/* Fill every page with words of its own. */
static void fill(struct mapping *mapping, unsigned long pattern)
{
	size_t page, i, words = psize() / sizeof(unsigned long);

	for (page = 0; page < mapping->pages; page++) {
		unsigned long *word = (unsigned long *)page_at(mapping, page);

		for (i = 0; i < words; i++)
			word[i] = pattern_word(pattern, page);
	}
	mapping->pattern = pattern;
}

/* Write to every page what is there already. */
static void write_again(const struct mapping *mapping, size_t first, size_t pages)
{
	size_t page;

	for (page = first; page < first + pages; page++)
		__atomic_store_n(page_at(mapping, page),
				 pattern_byte(mapping->pattern, page, 0), __ATOMIC_RELAXED);
}

/* Does the child share this page? Both kinds come first in some huge page. */
static bool is_shared(const struct mapping *mapping, size_t page)
{
	size_t huge_pages = mapping->pmd_size / psize();

	if (!mapping->shape->in_parts)
		return mapping->shape->cow;
	return (page * 8 / huge_pages + page / huge_pages) % 2;
}

/* Count the pages, all or the shared ones, that do not hold what fill() wrote. */
static void find_wrong_pages(const struct mapping *mapping, bool shared_only,
			     struct tally *tally)
{
	size_t page, i, words = psize() / sizeof(unsigned long);
	char seen[32];

	for (page = 0; page < mapping->pages; page++) {
		unsigned long *word = (unsigned long *)page_at(mapping, page);
		unsigned long expected = pattern_word(mapping->pattern, page);

		if (shared_only && !is_shared(mapping, page))
			continue;
		for (i = 0; i < words && word[i] == expected; i++)
			;
		if (i == words)
			continue;
		snprintf(seen, sizeof(seen), "0x%lx", word[i]);
		tally_add(tally, page_at(mapping, page), seen);
	}
}

/* Every page must hold what fill() wrote. */
static bool check_contents(const struct mapping *mapping, const char *phase)
{
	struct tally tally = {};

	find_wrong_pages(mapping, false, &tally);
	return tally_report(&tally, mapping, phase, "contents", "pattern");
}

/* A fault that try_access() provoked. */
static __thread struct {
	sigjmp_buf jump;
	bool armed;
	int signal;
	int code;
	void *address;
} caught;

static void catch_fault(int signal_number, siginfo_t *info, void *context)
{
	(void)context;
	if (!caught.armed) {
		/* Not ours: die of it when it happens again. */
		signal(signal_number, SIG_DFL);
		return;
	}
	caught.armed = false;
	caught.signal = signal_number;
	caught.code = info->si_code;
	caught.address = info->si_addr;
	siglongjmp(caught.jump, 1);
}

static void catch_faults(void)
{
	struct sigaction action = {
		.sa_sigaction = catch_fault,
		.sa_flags = SA_SIGINFO | SA_NODEFER,
	};

	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
}

static void access_byte(char *address, bool write, char value)
{
	char seen;

	if (write) {
		__atomic_store_n(address, value, __ATOMIC_RELAXED);
	} else {
		seen = __atomic_load_n(address, __ATOMIC_RELAXED);
		/* Used, so that the read is not optimized away. */
		asm volatile("" : : "r" (seen) : "memory");
	}
}

/*
 * Read the byte at @address or write @value to it. Returns true if that went
 * through, false if it faulted.
 */
static bool try_access(char *address, bool write, char value)
{
	if (sigsetjmp(caught.jump, 0))
		return false;
	caught.armed = true;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	access_byte(address, write, value);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	caught.armed = false;
	return true;
}

enum access {
	USER_READ,
	USER_WRITE,
	KERNEL_READ,
	KERNEL_WRITE,
};

static const char * const access_names[] = {
	[USER_READ]	= "user_read",
	[USER_WRITE]	= "user_write",
	[KERNEL_READ]	= "kernel_read",
	[KERNEL_WRITE]	= "kernel_write",
};

#define ALLOWED		"allowed"
#define DENIED_USER	"SEGV_ACCERR"
#define DENIED_KERNEL	"EFAULT"

/* What comes of a user access, in a word. */
static const char *user_access(char *address, bool write, char value,
			       char *word, size_t size)
{
	if (try_access(address, write, value))
		return ALLOWED;
	if (caught.signal == SIGSEGV && caught.code == SEGV_ACCERR &&
	    caught.address == address)
		return DENIED_USER;
	snprintf(word, size, "signal:%d,code:%d,address:%p",
		 caught.signal, caught.code, caught.address);
	return word;
}

/* The same of an access by the kernel, on behalf of read() and write(). */
static const char *kernel_access(const int *pipe_fds, char *address, bool write_it,
				 char value, char *word, size_t size)
{
	ssize_t ret;
	int error;

	if (write_it && write(pipe_fds[1], &value, 1) != 1)
		return "broken_pipe";
	ret = write_it ? read(pipe_fds[0], address, 1) : write(pipe_fds[1], address, 1);
	error = errno;

	/* A byte that has not been read yet must not stay in the pipe. */
	if ((write_it ? ret != 1 : ret == 1) && read(pipe_fds[0], &value, 1) != 1)
		return "broken_pipe";
	if (ret == 1)
		return ALLOWED;
	if (ret < 0 && error == EFAULT)
		return DENIED_KERNEL;
	snprintf(word, size, "returned:%zd,errno:%d", ret, error);
	return word;
}

/*
 * Every page from @first on, @pages of them, must allow the access or deny it.
 * What is written is what fill() wrote.
 */
static bool check_access(const struct mapping *mapping, size_t first,
			 size_t pages, enum access access, bool allow,
			 const char *phase)
{
	bool by_kernel = access == KERNEL_READ || access == KERNEL_WRITE;
	bool write_it = access == USER_WRITE || access == KERNEL_WRITE;
	const char *expected, *seen;
	struct tally tally = {};
	int pipe_fds[2];
	char word[64];
	size_t page;

	expected = allow ? ALLOWED : by_kernel ? DENIED_KERNEL : DENIED_USER;
	if (pipe(pipe_fds)) {
		ksft_print_msg("error call=pipe errno=%d\n", errno);
		return false;
	}
	for (page = first; page < first + pages; page++) {
		/* Not always the first byte: a fault tells the very address. */
		size_t offset = page * 61 % psize();
		char *address = page_at(mapping, page) + offset;
		char value = pattern_byte(mapping->pattern, page, offset);

		if (by_kernel)
			seen = kernel_access(pipe_fds, address, write_it, value,
					     word, sizeof(word));
		else
			seen = user_access(address, write_it, value,
					   word, sizeof(word));
		if (strcmp(seen, expected))
			tally_add(&tally, address, seen);
	}
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	return tally_report(&tally, mapping, phase, access_names[access], expected);
}

/* All pages must allow what @prot says, and nothing else. */
static bool check_protection(const struct mapping *mapping, int prot,
			     const char *phase)
{
	bool write = prot & PROT_WRITE, read = prot & PROT_READ;
	bool ok;

	ok = check_access(mapping, 0, mapping->pages, USER_WRITE, write, phase);
	ok &= check_access(mapping, 0, mapping->pages, KERNEL_WRITE, write, phase);
	ok &= check_access(mapping, 0, mapping->pages, USER_READ, read, phase);
	ok &= check_access(mapping, 0, mapping->pages, KERNEL_READ, read, phase);
	return ok;
}

static long count_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

static int enter(const struct mapping *mapping, enum state_phase phase)
{
	switch (phase) {
	case PROTECTED:
		return flip(mapping, mapping->shape->lower);
	case RESTORED:
		return flip(mapping, PROT_FULL);
	case TOUCHED:
		touch(mapping);
		return 0;
	default:
		return 0;
	}
}

/*
 * A process faults in its code and stack as it goes. Go through a cycle with a
 * page that does not matter, so that only the pages that do are left to fault.
 */
static int rehearse(const struct mapping *mapping)
{
	struct mapping page = *mapping;
	enum state_phase phase;
	char stack[32768];
	int ret = 0;

	memset(stack, 0, sizeof(stack));
	/* Used, so that it is not optimized away. */
	asm volatile("" : : "r" (stack) : "memory");
	page.size = psize();
	page.start = mmap(NULL, page.size, PROT_FULL, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page.start == MAP_FAILED)
		return -errno;
	count_faults();
	for (phase = POPULATED; phase < NR_STATE_PHASES; phase++)
		ret |= enter(&page, phase);
	munmap(page.start, page.size);
	return ret;
}

/* Enter a phase and read the page state in it. */
static int observe(const struct mapping *mapping, enum state_phase phase,
		   struct page_state *state)
{
	long faults;
	int ret;

	faults = count_faults();
	ret = enter(mapping, phase);
	faults = count_faults() - faults;
	if (!ret)
		ret = page_state_read(mapping->start, mapping->size, state);
	state->field[PAGE_STATE_FAULTS] = faults;
	return ret;
}

static long long folio_kb(const struct mapping *mapping)
{
	switch (mapping->shape->folios) {
	case FOLIOS_OF_64K:
		return 64;
	case PMD_MAPPED:
	case PTE_MAPPED:
		return mapping->pmd_size / 1024;
	default:
		return psize() / 1024;
	}
}

/* What the page state must be in a phase. */
static void expect_state(const struct mapping *mapping, enum state_phase phase,
			 struct page_state *expected)
{
	const struct shape *shape = mapping->shape;
	long long size_kb = mapping->size / 1024, pages = mapping->pages;
	long long huge_kb = shape->folios == PMD_MAPPED ? size_kb : 0;
	long long shared = !shape->cow || phase == TOUCHED ? 0 :
			   shape->in_parts ? pages / 2 : pages;

	*expected = (struct page_state) { .field = {
		[PAGE_STATE_VMAS]		= 1,
		[PAGE_STATE_SIZE_KB]		= size_kb,
		[PAGE_STATE_RSS_KB]		= size_kb,
		[PAGE_STATE_REFERENCED_KB]	= PAGE_STATE_ANY,
		[PAGE_STATE_DIRTY_KB]		= size_kb,
		[PAGE_STATE_ANON_KB]		= shape->shared ? 0 : size_kb,
		[PAGE_STATE_ANON_HUGE_KB]	= shape->shared ? 0 : huge_kb,
		[PAGE_STATE_SHMEM_HUGE_KB]	= shape->shared ? huge_kb : 0,
		[PAGE_STATE_KERNEL_PAGE_KB]	= psize() / 1024,
		[PAGE_STATE_MMU_PAGE_KB]	= psize() / 1024,
		[PAGE_STATE_SWAP_KB]		= 0,
		[PAGE_STATE_THP_ELIGIBLE]	= PAGE_STATE_ANY,
		[PAGE_STATE_WRITABLE]		= phase != PROTECTED,
		[PAGE_STATE_MAY_WRITE]		= 1,
		[PAGE_STATE_PRESENT]		= pages,
		[PAGE_STATE_FILE]		= shape->shared ? pages : 0,
		[PAGE_STATE_EXCLUSIVE]		= pages - shared,
		[PAGE_STATE_FOLIO_KB]		= folio_kb(mapping),
		[PAGE_STATE_FAULTS]		= PAGE_STATE_ANY,
	} };
}

/* Pages of the machine that were to be migrated so far. Goes up and never down. */
static long long migrated_pages(void)
{
	return page_state_proc_figure("/proc/vmstat", "pgmigrate_success") +
	       page_state_proc_figure("/proc/vmstat", "pgmigrate_fail");
}

/* Let who has isolated a page, to migrate or reclaim it, come to an end. */
static void give_way(void)
{
	const struct timespec time = { .tv_nsec = 1000000 };

	nanosleep(&time, NULL);
}

/* A machine that migrates pages splits the folios that it finds no room for. */
static void allow_for_migration(const struct mapping *mapping,
				struct page_state *expected)
{
	if (migrated_pages() == mapping->migrated)
		return;
	expected->field[PAGE_STATE_FOLIO_KB] = PAGE_STATE_ANY;
	expected->field[PAGE_STATE_ANON_HUGE_KB] = PAGE_STATE_ANY;
	expected->field[PAGE_STATE_SHMEM_HUGE_KB] = PAGE_STATE_ANY;
}

/*
 * A page that is being migrated is neither here nor there: if the page state is
 * not as expected, ask again. What is wrong stays wrong.
 */
static void ask_again(const struct mapping *mapping, struct page_state *expected,
		      struct page_state *seen)
{
	struct page_state again;
	int tries;

	for (tries = 0; tries < 20 && page_state_differs(expected, seen); tries++) {
		give_way();
		if (page_state_read(mapping->start, mapping->size, &again))
			return;
		again.field[PAGE_STATE_FAULTS] = seen->field[PAGE_STATE_FAULTS];
		*seen = again;
	}
	if (page_state_differs(expected, seen))
		allow_for_migration(mapping, expected);
}

/* Compare with what must be, but for what only root may see. */
static bool check_state(const struct mapping *mapping, enum state_phase phase,
			struct page_state *seen)
{
	struct page_state expected;

	expect_state(mapping, phase, &expected);
	if (seen->field[PAGE_STATE_FOLIO_KB] == PAGE_STATE_UNKNOWN)
		expected.field[PAGE_STATE_FOLIO_KB] = PAGE_STATE_ANY;
	ask_again(mapping, &expected, seen);
	return page_state_matches(&expected, seen, mapping->shape->name,
				  state_phase_names[phase]);
}

static bool is_swapped(const struct page_state *state)
{
	return state->field[PAGE_STATE_SWAP_KB] > 0;
}

#define SWAPPED		"the machine is short of memory and swaps"
#define NO_SMAPS	"no smaps or pagemap in /proc"

static int call_failed(const char *call, const char **why)
{
	ksft_print_msg("error call=%s errno=%d\n", call, errno);
	*why = "a system call failed that must not";
	return KSFT_FAIL;
}

/*
 * Reserve address space and map in its middle, aligned, with room on both
 * sides. Neighbours that must not be dumped never merge with the mapping.
 */
static int map_apart(struct mapping *mapping, size_t alignment, const char **why)
{
	int flags = MAP_ANONYMOUS | (mapping->shape->shared ? MAP_SHARED : MAP_PRIVATE);
	unsigned long start;
	char *address;

	mapping->reservation_size = mapping->size + 2 * alignment;
	address = mmap(NULL, mapping->reservation_size, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (address == MAP_FAILED)
		return call_failed("mmap", why);
	mapping->reservation = address;
	if (madvise(address, mapping->reservation_size, MADV_DONTDUMP))
		return call_failed("madvise", why);

	start = (unsigned long)address + psize();
	start = (start + alignment - 1) / alignment * alignment;
	mapping->start = mmap((void *)start, mapping->size, PROT_FULL,
			      flags | MAP_FIXED, -1, 0);
	if (mapping->start == MAP_FAILED)
		return call_failed("mmap", why);
	return KSFT_PASS;
}

/* Without transparent huge pages there is nothing to forbid. */
static int forbid_huge_pages(const struct mapping *mapping, const char **why)
{
	if (madvise(mapping->start, mapping->size, MADV_NOHUGEPAGE) && errno != EINVAL)
		return call_failed("madvise", why);
	return KSFT_PASS;
}

/* Whether it worked is read back from the kernel, so errors do not matter. */
static void collapse(const struct mapping *mapping)
{
	size_t offset;
	int tries;

	for (offset = 0; offset < mapping->size; offset += mapping->pmd_size)
		for (tries = 0; tries < 3; tries++)
			if (!madvise(mapping->start + offset, mapping->pmd_size,
				     MADV_COLLAPSE) || errno != EAGAIN)
				break;
}

static enum page_state_field huge_field(const struct mapping *mapping)
{
	return mapping->shape->shared ? PAGE_STATE_SHMEM_HUGE_KB :
					PAGE_STATE_ANON_HUGE_KB;
}

/* Read the page state. Returns a KSFT_ code. */
static int read_state(const struct mapping *mapping, struct page_state *state,
		      const char **why)
{
	int ret = page_state_read(mapping->start, mapping->size, state);

	if (!ret)
		return KSFT_PASS;
	*why = NO_SMAPS;
	if (ret == -ENOENT)
		return KSFT_SKIP;
	errno = -ret;
	return call_failed("page_state_read", why);
}

#define FIELD(name)	(1UL << PAGE_STATE_##name)

/* Compare only some fields with what they must be in a phase. */
static bool check_fields(const struct mapping *mapping, enum state_phase phase,
			 unsigned long fields, const char *phase_name)
{
	struct page_state expected, seen;
	enum page_state_field field;
	const char *why;

	if (read_state(mapping, &seen, &why) != KSFT_PASS)
		return false;
	if (is_swapped(&seen))
		return true;
	expect_state(mapping, phase, &expected);
	for (field = 0; field < PAGE_STATE_NR_FIELDS; field++)
		if (!(fields & 1UL << field))
			expected.field[field] = PAGE_STATE_ANY;
	ask_again(mapping, &expected, &seen);
	return page_state_matches(&expected, &seen, mapping->shape->name, phase_name);
}

/* The shape must still be what it was, after a test that leaves it alone. */
static bool check_shape(const struct mapping *mapping)
{
	return check_fields(mapping, RESTORED, FIELD(VMAS) | FIELD(SIZE_KB) |
			    FIELD(ANON_HUGE_KB) | FIELD(SHMEM_HUGE_KB), "after");
}

static int populate_huge(const struct mapping *mapping, const char **why)
{
	struct page_state state;
	int ret;

	if (!mapping->shape->shared)
		madvise(mapping->start, mapping->size, MADV_HUGEPAGE);
	touch(mapping);
	collapse(mapping);
	touch(mapping);

	ret = read_state(mapping, &state, why);
	if (ret != KSFT_PASS)
		return ret;
	/* What smaps does not tell is not the machine's choice. */
	if (state.field[huge_field(mapping)] == (long long)mapping->size / 1024 ||
	    state.field[huge_field(mapping)] == PAGE_STATE_UNKNOWN)
		return KSFT_PASS;
	*why = "no PMD-mapped huge pages to be had";
	return KSFT_SKIP;
}

/*
 * Split the PMD mapping of huge folios. Without forbidding huge pages first,
 * shared memory goes back to PMDs at the next fault.
 */
static int populate_huge_by_pte(const struct mapping *mapping, const char **why)
{
	size_t offset;
	int ret;

	ret = populate_huge(mapping, why);
	if (ret == KSFT_PASS)
		ret = forbid_huge_pages(mapping, why);
	if (ret != KSFT_PASS)
		return ret;
	for (offset = 0; offset < mapping->size; offset += mapping->pmd_size) {
		if (mprotect(mapping->start + offset, psize(), PROT_READ) ||
		    mprotect(mapping->start + offset, psize(), PROT_FULL))
			return call_failed("mprotect", why);
	}
	/* Only a write makes the PTEs of shared memory present and dirty. */
	touch(mapping);
	return KSFT_PASS;
}

/*
 * Folios of 64 KiB, one by one: a VMA that is no larger has no room for larger ones,
 * whatever else the machine allows.
 */
static int populate_64k_once(const struct mapping *mapping, const char **why)
{
	const size_t folio = 1 << 16;
	long wanted = mapping->size / folio, faults;
	struct mapping piece = *mapping;
	struct page_state state;
	int ret;

	if (psize() >= folio) {
		*why = "base pages are not smaller than 64 KiB";
		return KSFT_SKIP;
	}
	ret = forbid_huge_pages(mapping, why);
	if (ret != KSFT_PASS)
		return ret;
	/* The pieces need an anon_vma in common, for older kernels to merge them again. */
	piece.size = psize();
	touch(&piece);
	if (madvise(piece.start, psize(), MADV_DONTNEED))
		return call_failed("madvise", why);
	piece.size = folio;
	faults = count_faults();
	for (; piece.start < mapping->start + mapping->size; piece.start += folio) {
		if (madvise(piece.start, folio, MADV_HUGEPAGE))
			return call_failed("madvise", why);
		touch(&piece);
		ret = forbid_huge_pages(&piece, why);
		if (ret != KSFT_PASS)
			return ret;
	}
	faults = count_faults() - faults;

	/* Who may not see folios can still count faults: one each, and few else. */
	ret = read_state(mapping, &state, why);
	if (ret != KSFT_PASS)
		return ret;
	if (state.field[PAGE_STATE_FOLIO_KB] == 64 ||
	    (state.field[PAGE_STATE_FOLIO_KB] == PAGE_STATE_UNKNOWN &&
	     faults >= wanted && faults <= wanted + wanted / 64 + 2))
		return KSFT_PASS;
	*why = "no folios of 64 KiB to be had";
	return KSFT_SKIP;
}

/* The machine may be making a huge page of them just then. */
static int populate_64k(const struct mapping *mapping, const char **why)
{
	int tries, ret = KSFT_SKIP;

	for (tries = 0; tries < 3 && ret == KSFT_SKIP; tries++) {
		if (madvise(mapping->start, mapping->size, MADV_DONTNEED))
			return call_failed("madvise", why);
		ret = populate_64k_once(mapping, why);
	}
	return ret;
}

static int populate_as_shaped(struct mapping *mapping, const char **why)
{
	switch (mapping->shape->folios) {
	case FOLIOS_OF_64K:
		return populate_64k(mapping, why);
	case PMD_MAPPED:
		return populate_huge(mapping, why);
	case PTE_MAPPED:
		return populate_huge_by_pte(mapping, why);
	default:
		if (forbid_huge_pages(mapping, why) != KSFT_PASS)
			return KSFT_FAIL;
		touch(mapping);
		return KSFT_PASS;
	}
}

static int populate(struct mapping *mapping, const char **why)
{
	int ret = populate_as_shaped(mapping, why);

	if (ret == KSFT_PASS && mapping->shape->cow)
		fill(mapping, 1);
	return ret;
}

/*
 * The folios must be what the shape says, or the machine cannot offer it.
 * What else the page state must be is for the tests to say.
 */
static int prove_shape(struct mapping *mapping, const char **why)
{
	struct page_state seen, expected;
	long long seen_folio_kb;
	int ret;

	mapping->migrated = migrated_pages();
	ret = read_state(mapping, &seen, why);
	if (ret != KSFT_PASS)
		return ret;
	if (is_swapped(&seen)) {
		*why = SWAPPED;
		return KSFT_SKIP;
	}
	expect_state(mapping, POPULATED, &expected);
	ask_again(mapping, &expected, &seen);
	mapping->made = seen;
	seen_folio_kb = seen.field[PAGE_STATE_FOLIO_KB];
	if (seen.field[PAGE_STATE_ANON_HUGE_KB] ==
	    expected.field[PAGE_STATE_ANON_HUGE_KB] &&
	    seen.field[PAGE_STATE_SHMEM_HUGE_KB] ==
	    expected.field[PAGE_STATE_SHMEM_HUGE_KB] &&
	    (seen_folio_kb == PAGE_STATE_UNKNOWN ||
	     seen_folio_kb == expected.field[PAGE_STATE_FOLIO_KB]))
		return KSFT_PASS;

	/* Not to be taken for a choice of the machine's. */
	if (seen.field[PAGE_STATE_ANON_HUGE_KB] == PAGE_STATE_UNKNOWN ||
	    seen.field[PAGE_STATE_SHMEM_HUGE_KB] == PAGE_STATE_UNKNOWN) {
		check_state(mapping, POPULATED, &seen);
		*why = "smaps lacks a field";
		return KSFT_FAIL;
	}
	switch (mapping->shape->folios) {
	case FOLIOS_OF_64K:
		*why = "no folios of 64 KiB to be had";
		break;
	case BASE_PAGES:
		*why = "the machine insists on large folios";
		break;
	default:
		*why = "no huge pages mapped this way to be had";
	}
	return KSFT_SKIP;
}

/* What the sharer does: say how many pages have changed, whenever asked. */
static void __noreturn share(const struct mapping *mapping, int request, int reply)
{
	char byte;

	while (read(request, &byte, 1) == 1) {
		struct tally tally = {};

		find_wrong_pages(mapping, true, &tally);
		if (write(reply, &tally, sizeof(tally)) != sizeof(tally))
			break;
	}
	_exit(0);
}

/* Give advice on what the child is not to have. */
static int advise_unshared(const struct mapping *mapping, int advice)
{
	size_t eighth = mapping->pmd_size / psize() / 8, page;

	for (page = 0; page < mapping->pages; page += eighth)
		if (!is_shared(mapping, page) &&
		    madvise(page_at(mapping, page), eighth * psize(), advice))
			return -errno;
	return 0;
}

static int start_sharer(struct mapping *mapping, const char **why)
{
	int request[2], reply[2];
	pid_t parent = getpid();

	if (pipe2(request, O_CLOEXEC) || pipe2(reply, O_CLOEXEC))
		return call_failed("pipe2", why);
	if (mapping->shape->in_parts && advise_unshared(mapping, MADV_DONTFORK))
		return call_failed("madvise", why);
	fflush(stdout);
	mapping->sharer.pid = fork();
	if (mapping->sharer.pid < 0)
		return call_failed("fork", why);
	if (!mapping->sharer.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(0);
		close(request[1]);
		share(mapping, request[0], reply[1]);
	}
	close(request[0]);
	close(reply[1]);
	mapping->sharer.request = request[1];
	mapping->sharer.reply = reply[0];
	if (mapping->shape->in_parts && advise_unshared(mapping, MADV_DOFORK))
		return call_failed("madvise", why);
	return KSFT_PASS;
}

static void end_sharer(struct sharer *sharer)
{
	if (sharer->pid <= 0)
		return;
	close(sharer->request);
	close(sharer->reply);
	waitpid(sharer->pid, NULL, 0);
	sharer->pid = 0;
}

/* The child must still see what was there when it was forked. */
static bool check_sharer(const struct mapping *mapping, const char *phase)
{
	struct tally tally;

	if (write(mapping->sharer.request, "?", 1) != 1 ||
	    read(mapping->sharer.reply, &tally, sizeof(tally)) != sizeof(tally)) {
		ksft_print_msg("error call=ask_the_child errno=%d\n", errno);
		return false;
	}
	return tally_report(&tally, mapping, phase, "contents_in_child", "pattern");
}

/* 0 if the shape needs huge pages and there are none. */
static size_t alignment_of(const struct shape *shape)
{
	return shape->folios == BASE_PAGES ? psize() : read_pmd_pagesize();
}

/* The size of a mapping, in whole pages of its kind. */
static size_t size_of(const struct shape *shape, unsigned long mb)
{
	size_t alignment = alignment_of(shape);

	return ((mb << 20) + alignment - 1) / alignment * alignment;
}

/*
 * Make a mapping of a shape, of @mb MiB or a little more. Returns a KSFT_ code,
 * and but for KSFT_PASS a constant text in @why.
 */
static int mapping_create(struct mapping *mapping, const struct shape *shape,
			  unsigned long mb, const char **why)
{
	size_t alignment = alignment_of(shape);
	unsigned long long size;
	int ret;

	memset(mapping, 0, sizeof(*mapping));
	*why = "no transparent huge pages in this kernel";
	if (!alignment)
		return KSFT_SKIP;
	mapping->shape = shape;
	mapping->pmd_size = read_pmd_pagesize();
	mapping->size = size_of(shape, mb);
	mapping->pages = mapping->size / psize();

	size = mapping->size;
	*why = memory_room_lacks(shape->cow ? 2 * size : size, !shape->shared,
				 size + 2 * alignment);
	if (*why)
		return KSFT_SKIP;

	ret = map_apart(mapping, alignment, why);
	if (ret == KSFT_PASS)
		ret = populate(mapping, why);
	if (ret == KSFT_PASS && shape->cow)
		ret = start_sharer(mapping, why);
	if (ret == KSFT_PASS)
		ret = prove_shape(mapping, why);
	return ret;
}

static void mapping_destroy(struct mapping *mapping)
{
	end_sharer(&mapping->sharer);
	if (mapping->reservation)
		munmap(mapping->reservation, mapping->reservation_size);
	mapping->reservation = NULL;
}

static void teardown(struct mapping *mapping)
{
	mapping_destroy(mapping);
	test_program_end_test();
}

/* What the setup of every fixture does. */
static void setup(struct __test_metadata *_metadata, struct mapping *mapping,
		  const struct shape *shape)
{
	const char *why = "";
	int ret;

	test_program_begin_test(plan.cpu);
	catch_faults();
	/* A child that has died is found out when it is asked. */
	signal(SIGPIPE, SIG_IGN);
	ret = mapping_create(mapping, shape, size_mb < TEST_MB ? size_mb : TEST_MB,
			     &why);
	if (ret == KSFT_SKIP) {
		teardown(mapping);
		SKIP(return, "%s", why);
	}
	ASSERT_EQ(KSFT_PASS, ret)
		TH_LOG("%s", why);
}

FIXTURE_SETUP(mprotect_toggle)
{
	setup(_metadata, &self->mapping, variant->shape);
}

FIXTURE_TEARDOWN(mprotect_toggle)
{
	teardown(&self->mapping);
}

FIXTURE_SETUP(mprotect_toggle_private)
{
	/* Reclaim passes by pages that wait on another CPU to be put on a list. */
	self->pinned = !rounds_pin(plan.cpu);
	setup(_metadata, &self->mapping, variant->shape);
}

FIXTURE_TEARDOWN(mprotect_toggle_private)
{
	teardown(&self->mapping);
}

FIXTURE_SETUP(mprotect_toggle_cow)
{
	setup(_metadata, &self->mapping, variant->shape);
}

FIXTURE_TEARDOWN(mprotect_toggle_cow)
{
	teardown(&self->mapping);
}

/*
 * A cycle must not fault, but for the first touch of pages that a child shares:
 * these fault one by one. What the machine does beside us, such as migrating
 * pages, adds faults now and then; a kernel that needs them has them in every
 * cycle.
 */
static bool check_faults(const struct mapping *mapping, long first_touch)
{
	long pages = mapping->pages, least = LONG_MAX, faults;
	const char *name = mapping->shape->name;
	enum state_phase phase;
	char text[64];
	int cycles;

	snprintf(text, sizeof(text), "expected=%ld seen=%ld", pages, first_touch);
	if (mapping->shape->cow &&
	    (first_touch < pages || first_touch > pages + pages / 64)) {
		ksft_print_msg("mismatch variant=%s phase=touched field=faults %s\n", name, text);
		return false;
	}
	for (cycles = 0; cycles < 50 && least; cycles++) {
		faults = count_faults();
		for (phase = PROTECTED; phase < NR_STATE_PHASES; phase++)
			if (enter(mapping, phase))
				return false;
		faults = count_faults() - faults;
		least = faults < least ? faults : least;
	}
	if (!least)
		return true;
	snprintf(text, sizeof(text), "expected=0 seen=%ld", least);
	ksft_print_msg("mismatch variant=%s phase=again field=faults %s\n", name, text);
	return false;
}

/* In every phase of a cycle the kernel says of the pages what it must. */
TEST_F_TIMEOUT(mprotect_toggle, page_state, TIMEOUT)
{
	struct page_state seen;
	enum state_phase phase;

	ASSERT_EQ(0, rehearse(&self->mapping));
	for (phase = POPULATED; phase < NR_STATE_PHASES; phase++) {
		ASSERT_EQ(0, observe(&self->mapping, phase, &seen));
		if (is_swapped(&seen) && !_metadata->exit_code)
			SKIP(return, SWAPPED);
		EXPECT_TRUE(check_state(&self->mapping, phase, &seen));
	}
	EXPECT_TRUE(check_faults(&self->mapping, seen.field[PAGE_STATE_FAULTS]));
}

/* What the protection denies is denied, in every page, to user and kernel. */
TEST_F_TIMEOUT(mprotect_toggle, enforced, TIMEOUT)
{
	struct mapping *mapping = &self->mapping;
	int lower = variant->shape->lower;

	fill(mapping, 2);
	ASSERT_EQ(0, flip(mapping, lower));
	EXPECT_TRUE(check_protection(mapping, lower, "protected"));
	ASSERT_EQ(0, flip(mapping, PROT_FULL));
	EXPECT_TRUE(check_contents(mapping, "restored"));
	EXPECT_TRUE(check_protection(mapping, PROT_FULL, "restored"));
	EXPECT_TRUE(check_shape(mapping));
}

/* Flip and back, many times. Returns 0 or a negative errno. */
static int flip_often(const struct mapping *mapping, int times)
{
	int ret = 0;

	while (times-- && !ret) {
		ret = flip(mapping, mapping->shape->lower);
		if (!ret)
			ret = flip(mapping, PROT_FULL);
	}
	return ret;
}

/* Run @check in a child. Returns what it returned, false if it died. */
static bool check_in_child(const struct mapping *mapping,
			   bool (*check)(const struct mapping *mapping))
{
	int status = 0;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child) {
		bool ok = check(mapping);

		fflush(stdout);
		_exit(!ok);
	}
	if (child < 0 || waitpid(child, &status, 0) != child) {
		ksft_print_msg("error call=fork errno=%d\n", errno);
		return false;
	}
	if (WIFSIGNALED(status))
		ksft_print_msg("error child_killed_by_signal=%d\n", WTERMSIG(status));
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

static bool check_inherited(const struct mapping *mapping)
{
	return check_access(mapping, 0, mapping->pages, USER_WRITE, false, "inherited");
}

static bool check_own_flip(const struct mapping *mapping)
{
	return !flip(mapping, mapping->shape->lower) && check_inherited(mapping);
}

/* What is in the pages survives, and a child's flips are its own affair. */
TEST_F_TIMEOUT(mprotect_toggle, contents, TIMEOUT)
{
	struct mapping *mapping = &self->mapping;

	fill(mapping, 2);
	ASSERT_EQ(0, flip_often(mapping, 8));
	EXPECT_TRUE(check_contents(mapping, "restored"));
	EXPECT_TRUE(check_shape(mapping));

	fill(mapping, 3);
	ASSERT_EQ(0, flip(mapping, variant->shape->lower));
	EXPECT_TRUE(check_in_child(mapping, check_inherited));
	ASSERT_EQ(0, flip(mapping, PROT_FULL));
	EXPECT_TRUE(check_in_child(mapping, check_own_flip));
	EXPECT_TRUE(check_access(mapping, 0, mapping->pages, USER_WRITE, true,
				 "after_child"));
	EXPECT_TRUE(check_contents(mapping, "after_child"));
}

/* Huge pages that lose their PMD mapping when a part is flipped. */
static size_t cut_pmds(const struct mapping *mapping, size_t start, size_t end)
{
	size_t pmd = mapping->pmd_size;

	if (!pmd || (!(start % pmd) && !(end % pmd)))
		return 0;
	return !!(start % pmd) + !!(end % pmd) -
	       (start % pmd && end % pmd && start / pmd == end / pmd);
}

/* Page state while a part of the range has another protection, or had. */
static bool check_part_state(const struct mapping *mapping, size_t cut,
			     long long vmas, const char *phase)
{
	bool huge = mapping->shape->folios == PMD_MAPPED;
	struct page_state expected, seen;
	enum page_state_field field;
	long long huge_kb;
	const char *why;

	if (read_state(mapping, &seen, &why) != KSFT_PASS)
		return false;
	for (field = 0; field < PAGE_STATE_NR_FIELDS; field++)
		expected.field[field] = PAGE_STATE_ANY;
	huge_kb = huge ? (mapping->size - cut * mapping->pmd_size) / 1024 : 0;
	expected.field[PAGE_STATE_VMAS] = vmas;
	expected.field[PAGE_STATE_SIZE_KB] = mapping->size / 1024;
	expected.field[PAGE_STATE_WRITABLE] = vmas == 1 ? 1 : 2;
	expected.field[PAGE_STATE_MAY_WRITE] = vmas;
	expected.field[huge_field(mapping)] = huge_kb;
	ask_again(mapping, &expected, &seen);
	return page_state_matches(&expected, &seen, mapping->shape->name, phase);
}

/* Flip a part of the range and back. */
static bool check_part(const struct mapping *mapping, size_t start, size_t end,
		       const char *flipped, const char *restored)
{
	size_t first = start / psize(), pages = (end - start) / psize();
	size_t cut = cut_pmds(mapping, start, end);
	int lower = mapping->shape->lower;
	bool ok;

	if (mprotect(mapping->start + start, end - start, lower)) {
		ksft_print_msg("error call=mprotect errno=%d\n", errno);
		return false;
	}
	/* Before any access: a fault may map huge pages again. */
	ok = check_part_state(mapping, cut, 3, flipped);
	ok &= check_access(mapping, 0, first, USER_WRITE, true, flipped);
	ok &= check_access(mapping, first, pages, USER_WRITE, false, flipped);
	ok &= check_access(mapping, first + pages, mapping->pages - first - pages,
			   USER_WRITE, true, flipped);

	if (mprotect(mapping->start + start, end - start, PROT_FULL)) {
		ksft_print_msg("error call=mprotect errno=%d\n", errno);
		return false;
	}
	ok &= check_part_state(mapping, cut, 1, restored);
	ok &= check_access(mapping, 0, mapping->pages, USER_WRITE, true, restored);
	ok &= check_contents(mapping, restored);
	return ok;
}

/*
 * Few pages may be flushed from the TLB one by one, and those of a large folio at
 * once. All were written to just before, so they are there.
 */
static bool check_few_pages(const struct mapping *mapping)
{
	int lower = mapping->shape->lower;
	size_t pages, first;
	bool ok = true;

	for (pages = 1; pages <= 16 && ok; pages++) {
		char *start;

		first = pages * 67 % (mapping->pages - pages);
		start = page_at(mapping, first);
		write_again(mapping, first, pages);
		if (mprotect(start, pages * psize(), lower)) {
			ksft_print_msg("error call=mprotect errno=%d\n", errno);
			return false;
		}
		ok = check_access(mapping, first, pages, USER_WRITE, false, "few_flipped");
		if (mprotect(start, pages * psize(), PROT_FULL)) {
			ksft_print_msg("error call=mprotect errno=%d\n", errno);
			return false;
		}
	}
	return ok;
}

/* A part that goes from PROT_NONE to PROT_READ differs from the rest by little. */
static bool check_part_by_steps(const struct mapping *mapping, size_t start, size_t end)
{
	size_t first = start / psize(), pages = (end - start) / psize();
	struct page_state expected, seen;
	enum page_state_field field;
	const char *why;
	bool ok;

	if (mprotect(mapping->start + start, end - start, PROT_NONE) ||
	    mprotect(mapping->start + start, end - start, PROT_READ)) {
		ksft_print_msg("error call=mprotect errno=%d\n", errno);
		return false;
	}
	if (read_state(mapping, &seen, &why) != KSFT_PASS)
		return false;
	for (field = 0; field < PAGE_STATE_NR_FIELDS; field++)
		expected.field[field] = PAGE_STATE_ANY;
	expected.field[PAGE_STATE_VMAS] = 3;
	expected.field[PAGE_STATE_WRITABLE] = 2;
	ok = page_state_matches(&expected, &seen, mapping->shape->name, "part_by_steps");
	ok &= check_access(mapping, first, pages, USER_WRITE, false, "part_by_steps");
	return !mprotect(mapping->start + start, end - start, PROT_FULL) && ok;
}

/* A flip of a part changes that part, and leaves the rest alone. */
TEST_F_TIMEOUT(mprotect_toggle, partial, TIMEOUT)
{
	struct mapping *mapping = &self->mapping;
	size_t pmd = mapping->pmd_size, quarter = mapping->size / 4;

	fill(mapping, 2);
	if (pmd && mapping->size >= 3 * pmd) {
		EXPECT_TRUE(check_part(mapping, pmd, mapping->size - pmd,
				       "whole_pmds_flipped", "whole_pmds_restored"));
	}
	EXPECT_TRUE(check_part(mapping, quarter + psize(), 3 * quarter + psize(),
			       "part_flipped", "part_restored"));
	EXPECT_TRUE(check_part_by_steps(mapping, quarter, 2 * quarter));
	EXPECT_TRUE(check_few_pages(mapping));
}

/*
 * The pages that the writer of other_cpus keeps in its TLB: few enough to all
 * stay there, and far enough apart to be of different huge pages.
 */
#define HOT_PAGES	16
#define OTHER_CPU_FLIPS	32

enum order {
	WRITE,		/* all the while */
	TRY,		/* once: every write must fault */
	STOP,
};

/* A thread that writes on another CPU. */
struct writer {
	pthread_t thread;
	int cpu;
	/* Atomic: */
	char *pages[HOT_PAGES];
	enum order order;
	int ready;		/* 1, or a negative errno */
	unsigned long passes;
	unsigned long tries;
	/* Read after the thread has been joined: */
	struct tally let_through;
};

static char *hot_page(struct writer *writer, int i)
{
	return __atomic_load_n(&writer->pages[i], __ATOMIC_RELAXED);
}

static void try_once(struct writer *writer)
{
	int i;

	for (i = 0; i < HOT_PAGES; i++)
		if (try_access(hot_page(writer, i), true, 'x'))
			tally_add(&writer->let_through, hot_page(writer, i), ALLOWED);
}

static void *write_on_other_cpu(void *argument)
{
	struct writer *writer = argument;
	unsigned long pass = 0;
	enum order order;
	int i, ret;

	ret = rounds_pin(writer->cpu);
	__atomic_store_n(&writer->ready, ret ?: 1, __ATOMIC_SEQ_CST);

	for (;;) {
		order = __atomic_load_n(&writer->order, __ATOMIC_SEQ_CST);
		if (order == STOP)
			return NULL;
		if (order == TRY) {
			try_once(writer);
			__atomic_store_n(&writer->order, WRITE, __ATOMIC_SEQ_CST);
			__atomic_fetch_add(&writer->tries, 1, __ATOMIC_SEQ_CST);
		}
		pass++;
		for (i = 0; i < HOT_PAGES; i++)
			if (!try_access(hot_page(writer, i), true, pass))
				break;
		if (i == HOT_PAGES)
			__atomic_fetch_add(&writer->passes, 1, __ATOMIC_SEQ_CST);
	}
}

static void wait_for(const unsigned long *counter, unsigned long value)
{
	while (__atomic_load_n(counter, __ATOMIC_SEQ_CST) < value)
		sched_yield();
}

/* A CPU that the caller may run on and that is not @cpu, or -1. */
static int find_other_cpu(int cpu)
{
	const int most = 8192;
	cpu_set_t *allowed = CPU_ALLOC(most);
	size_t size = CPU_ALLOC_SIZE(most);
	int other = -1, i;

	if (allowed && !sched_getaffinity(0, size, allowed))
		for (i = 0; i < most && other < 0; i++)
			if (i != cpu && CPU_ISSET_S(i, size, allowed))
				other = i;
	if (allowed)
		CPU_FREE(allowed);
	return other;
}

/* Other pages for every flip: the first and the last one among them. */
static void choose_hot_pages(const struct mapping *mapping, struct writer *writer,
			     size_t flips)
{
	size_t i, stride = mapping->pages / HOT_PAGES, page;

	for (i = 0; i < HOT_PAGES; i++) {
		page = i * stride + flips % stride;
		if (i == HOT_PAGES - 1)
			page = mapping->pages - 1 - flips % stride;
		__atomic_store_n(&writer->pages[i], page_at(mapping, page),
				 __ATOMIC_RELAXED);
	}
}

static void read_hot_pages(struct writer *writer, char *bytes)
{
	int i;

	for (i = 0; i < HOT_PAGES; i++)
		bytes[i] = __atomic_load_n(writer->pages[i], __ATOMIC_SEQ_CST);
}

/* All hot pages must be writable, else the writer would never get through. */
static bool check_hot_pages(const struct mapping *mapping, struct writer *writer)
{
	struct tally tally = {};
	int i;

	for (i = 0; i < HOT_PAGES; i++)
		if (!try_access(hot_page(writer, i), true, 'y'))
			tally_add(&tally, hot_page(writer, i), "fault");
	return tally_report(&tally, mapping, "restored", "user_write", ALLOWED);
}

/* When the protecting call returns, the writes of another CPU have ended. */
TEST_F_TIMEOUT(mprotect_toggle, other_cpus, TIMEOUT)
{
	struct mapping *mapping = &self->mapping;
	bool readable = variant->shape->lower & PROT_READ;
	char before[HOT_PAGES], after[HOT_PAGES];
	struct tally changed = {};
	struct writer writer = {};
	size_t flips;
	int i;

	writer.cpu = find_other_cpu(plan.cpu);
	if (writer.cpu < 0)
		SKIP(return, "only one CPU to run on");
	if (rounds_pin(plan.cpu))
		SKIP(return, "no right to choose the CPU");
	choose_hot_pages(mapping, &writer, 0);
	ASSERT_EQ(0, pthread_create(&writer.thread, NULL, write_on_other_cpu, &writer));
	while (!__atomic_load_n(&writer.ready, __ATOMIC_SEQ_CST))
		sched_yield();
	ASSERT_EQ(1, writer.ready);

	for (flips = 0; flips < OTHER_CPU_FLIPS; flips++) {
		choose_hot_pages(mapping, &writer, flips);
		ASSERT_TRUE(check_hot_pages(mapping, &writer));
		/* The second pass from here on has these pages in the TLB. */
		wait_for(&writer.passes, __atomic_load_n(&writer.passes, __ATOMIC_SEQ_CST) + 3);

		ASSERT_EQ(0, flip(mapping, variant->shape->lower));
		if (readable)
			read_hot_pages(&writer, before);
		__atomic_store_n(&writer.order, TRY, __ATOMIC_SEQ_CST);
		wait_for(&writer.tries, flips + 1);
		if (readable)
			read_hot_pages(&writer, after);
		ASSERT_EQ(0, flip(mapping, PROT_FULL));

		for (i = 0; readable && i < HOT_PAGES; i++)
			if (before[i] != after[i])
				tally_add(&changed, writer.pages[i], "changed");
	}
	__atomic_store_n(&writer.order, STOP, __ATOMIC_SEQ_CST);
	ASSERT_EQ(0, pthread_join(writer.thread, NULL));
	EXPECT_TRUE(tally_report(&writer.let_through, mapping, "protected",
				 "write_on_other_cpu", DENIED_USER));
	EXPECT_TRUE(tally_report(&changed, mapping, "protected",
				 "contents", "unchanged"));
	EXPECT_TRUE(check_shape(mapping));
}

/*
 * Does MADV_PAGEOUT discard clean pages that have been freed lazily? If not,
 * nothing can be lost, and nothing can be seen.
 */
static bool pageout_discards(void)
{
	const size_t size = 64 * psize();
	struct page_state state = {};
	bool discards;
	char *start;

	start = mmap(NULL, size, PROT_FULL, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (start == MAP_FAILED)
		return false;
	madvise(start, size, MADV_NOHUGEPAGE);
	memset(start, 1, size);
	discards = !madvise(start, size, MADV_FREE) &&
		   !madvise(start, size, MADV_PAGEOUT) &&
		   !page_state_read(start, size, &state) &&
		   state.field[PAGE_STATE_PRESENT] == 0 &&
		   state.field[PAGE_STATE_SWAP_KB] == 0;
	munmap(start, size);
	return discards;
}

/* In pages; without huge pages there are base pages only. */
static size_t folio_pages(const struct mapping *mapping)
{
	return folio_kb(mapping) * 1024 / psize();
}

static void write_last_pages(struct mapping *mapping)
{
	size_t folio = folio_pages(mapping), page;

	mapping->pattern = 3;
	for (page = folio - 1; page < mapping->pages; page += folio)
		*page_at(mapping, page) = pattern_byte(3, page, 0);
}

static bool check_last_pages(const struct mapping *mapping, const char *phase)
{
	size_t folio = folio_pages(mapping), page;
	struct tally tally = {};
	char seen[8];

	for (page = folio - 1; page < mapping->pages; page += folio) {
		char byte = *page_at(mapping, page);

		if (byte == pattern_byte(3, page, 0))
			continue;
		snprintf(seen, sizeof(seen), "0x%02x", (unsigned char)byte);
		tally_add(&tally, page_at(mapping, page), seen);
	}
	return tally_report(&tally, mapping, phase, "contents", "pattern");
}

static bool check_figure(const struct mapping *mapping, const char *phase,
			 const char *field, long long expected, long long seen)
{
	if (seen == expected)
		return true;
	ksft_print_msg("mismatch variant=%s phase=%s field=%s expected=%lld seen=%lld\n",
		       mapping->shape->name, phase, field, expected, seen);
	return false;
}

/*
 * Read a field of the page state some times, each time after advice on the mapping
 * if there is any, and take the fewest. Returns 0 or a negative errno.
 */
static int read_fewest(const struct mapping *mapping, enum page_state_field field,
		       int advice, long long *fewest)
{
	struct page_state state;
	int tries, ret;

	*fewest = LLONG_MAX;
	for (tries = 0; tries < 4 && *fewest; tries++) {
		if (advice && madvise(mapping->start, mapping->size, advice))
			return -errno;
		ret = page_state_read(mapping->start, mapping->size, &state);
		if (ret)
			return ret;
		if (state.field[field] < *fewest)
			*fewest = state.field[field];
	}
	return 0;
}

/*
 * Free the range lazily, flip it and reclaim it. Tells how much was dirty after the
 * flip, and what stayed. All that passes over what is isolated to be migrated, so
 * where pages were, it is done again. Elsewhere once: reclaim splits huge pages that
 * it does not get. Returns 0 or a negative errno.
 */
static int free_flip_reclaim(const struct mapping *mapping, long long *dirty_kb,
			     long long *present)
{
	const long long migrated = migrated_pages();
	int tries, ret = 0;

	*dirty_kb = LLONG_MAX;
	*present = LLONG_MAX;
	for (tries = 0; tries < 16 && !ret; tries++) {
		if (tries)
			give_way();
		if (madvise(mapping->start, mapping->size, MADV_FREE))
			return -errno;
		ret = flip_often(mapping, 1);
		if (!ret)
			ret = read_fewest(mapping, PAGE_STATE_DIRTY_KB, 0, dirty_kb);
		if (!ret)
			ret = read_fewest(mapping, PAGE_STATE_PRESENT, MADV_PAGEOUT,
					  present);
		if ((!ret && !*dirty_kb && !*present) || migrated_pages() == migrated)
			break;
	}
	return ret;
}

/* A page written to after it was freed lazily is not clean, flipped or not. */
TEST_F_TIMEOUT(mprotect_toggle_private, dirty_survives, TIMEOUT)
{
	struct mapping *mapping = &self->mapping;

	if (!pageout_discards())
		SKIP(return, "MADV_PAGEOUT does not discard lazily freed pages");

	fill(mapping, 2);
	ASSERT_EQ(0, madvise(mapping->start, mapping->size, MADV_FREE));
	fill(mapping, 3);
	ASSERT_EQ(0, flip(mapping, variant->shape->lower));
	ASSERT_EQ(0, madvise(mapping->start, mapping->size, MADV_PAGEOUT));
	ASSERT_EQ(0, flip(mapping, PROT_FULL));
	EXPECT_TRUE(check_contents(mapping, "after_pageout"));

	/* Where one page of a folio was written to, that page is not clean. */
	fill(mapping, 2);
	ASSERT_EQ(0, madvise(mapping->start, mapping->size, MADV_FREE));
	write_last_pages(mapping);
	ASSERT_EQ(0, flip(mapping, variant->shape->lower));
	ASSERT_EQ(0, madvise(mapping->start, mapping->size, MADV_PAGEOUT));
	ASSERT_EQ(0, flip(mapping, PROT_FULL));
	EXPECT_TRUE(check_last_pages(mapping, "last_pages_after_pageout"));
}

/* A page that nobody wrote to after it was freed lazily is clean, flipped or not. */
TEST_F_TIMEOUT(mprotect_toggle_private, stays_clean, TIMEOUT)
{
	struct mapping *mapping = &self->mapping;
	long long dirty_kb, present;

	if (!self->pinned)
		SKIP(return, "no right to choose the CPU");
	if (!pageout_discards())
		SKIP(return, "MADV_PAGEOUT does not discard lazily freed pages");

	fill(mapping, 2);
	ASSERT_EQ(0, free_flip_reclaim(mapping, &dirty_kb, &present));
	EXPECT_TRUE(check_figure(mapping, "restored", "dirty_kb", 0, dirty_kb));
	EXPECT_TRUE(check_figure(mapping, "after_pageout", "present", 0, present));
}

static int clear_referenced(void)
{
	int file = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC), ret = 0;

	if (file < 0)
		return -errno;
	if (write(file, "1", 1) != 1)
		ret = -errno;
	close(file);
	return ret;
}

/*
 * Referenced pages after a flip of pages that were not, and after one of pages that
 * were. Reclaim clears the bit as well, migration sets it, and others than we may read
 * the memory: many tries.
 */
static int count_referenced(const struct mapping *mapping, long long *without,
			    long long *with)
{
	long long size_kb = mapping->size / 1024, seen;
	struct page_state state;
	int tries, ret = 0;

	*without = size_kb;
	*with = 0;
	for (tries = 0; tries < 64 && (*without || *with < size_kb) && !ret; tries++) {
		ret = clear_referenced();
		ret = ret ? ret : flip_often(mapping, 1);
		ret = ret ? ret : page_state_read(mapping->start, mapping->size, &state);
		if (ret)
			return ret;
		seen = state.field[PAGE_STATE_REFERENCED_KB];
		*without = seen < *without ? seen : *without;
		touch(mapping);
		ret = flip_often(mapping, 1);
		ret = ret ? ret : page_state_read(mapping->start, mapping->size, &state);
		seen = state.field[PAGE_STATE_REFERENCED_KB];
		*with = seen > *with ? seen : *with;
		give_way();
	}
	return ret;
}

/* A page is referenced if it was accessed, flipped or not. */
TEST_F_TIMEOUT(mprotect_toggle, referenced, TIMEOUT)
{
	struct mapping *mapping = &self->mapping;
	long long without, with;

	if (access("/proc/self/clear_refs", W_OK))
		SKIP(return, "no clear_refs in /proc");
	ASSERT_EQ(0, count_referenced(mapping, &without, &with));
	EXPECT_TRUE(check_figure(mapping, "restored", "referenced_kb", 0, without));
	EXPECT_TRUE(check_figure(mapping, "touched_and_restored", "referenced_kb",
				 mapping->size / 1024, with));
}

/* Sizes of the process that a flip and back leaves alone, in KiB. */
struct sizes {
	long long mapped;
	long long data;
	long long committed;	/* of the whole machine */
};

static void read_sizes(struct sizes *sizes)
{
	sizes->mapped = page_state_proc_figure("/proc/self/status", "VmSize");
	sizes->data = page_state_proc_figure("/proc/self/status", "VmData");
	sizes->committed = page_state_proc_figure("/proc/meminfo", "Committed_AS");
}

#define ACCOUNTED_FLIPS	64

/* Memory is accounted for once, however often it is flipped. */
TEST_F_TIMEOUT(mprotect_toggle, accounting, TIMEOUT)
{
	struct mapping *mapping = &self->mapping;
	long long size_kb = mapping->size / 1024, growth = LLONG_MAX;
	struct sizes before, after;
	int tries;

	read_sizes(&before);
	if (before.mapped == PAGE_STATE_UNKNOWN || before.committed == PAGE_STATE_UNKNOWN)
		SKIP(return, "no status or meminfo in /proc");
	/* Others commit memory, too, and give it back. */
	for (tries = 0; tries < 3 && growth > 0; tries++) {
		read_sizes(&before);
		ASSERT_EQ(0, flip_often(mapping, ACCOUNTED_FLIPS));
		read_sizes(&after);
		if (after.committed - before.committed < growth)
			growth = after.committed - before.committed;
	}
	EXPECT_TRUE(check_figure(mapping, "restored", "process_size_kb",
				 before.mapped, after.mapped));
	EXPECT_TRUE(check_figure(mapping, "restored", "process_data_kb",
				 before.data, after.data));
	/* Charged for at every flip, it would have grown by twice as much. */
	if (growth < ACCOUNTED_FLIPS / 2 * size_kb)
		growth = 0;
	EXPECT_TRUE(check_figure(mapping, "restored", "committed_growth_kb", 0, growth));
}

/* Pages that should have a bit set in pagemap and have not, and the reverse. */
struct bit_tally {
	struct tally missing;
	struct tally excess;
};

enum which {
	NONE,
	ODD,			/* every second unit of so many pages */
	ALL,
};

/* Returns 0 or a negative errno. */
static int find_wrong_bits(const struct mapping *mapping, unsigned long long bit,
			   enum which which, size_t unit, struct bit_tally *tally)
{
	int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	off_t first = (unsigned long)mapping->start / psize();
	unsigned long long entry;
	int ret = 0;
	size_t page;

	memset(tally, 0, sizeof(*tally));
	if (pagemap < 0)
		return -errno;
	for (page = 0; page < mapping->pages && !ret; page++) {
		char *address = page_at(mapping, page);
		bool expected = which == ALL || (which == ODD && page / unit % 2);
		bool set;

		if (pread(pagemap, &entry, sizeof(entry),
			  (first + page) * sizeof(entry)) != sizeof(entry)) {
			ret = -EIO;
			break;
		}
		set = entry & bit;
		if (expected && !set)
			tally_add(&tally->missing, address, "0");
		else if (!expected && set)
			tally_add(&tally->excess, address, "1");
	}
	close(pagemap);
	return ret;
}

/* A page that was written to is soft-dirty, flipped or not, and no other is. */
TEST_F_TIMEOUT(mprotect_toggle, write_tracking_soft_dirty, TIMEOUT)
{
	struct mapping *mapping = &self->mapping;
	enum folios folios = variant->shape->folios;
	struct bit_tally tally;
	size_t page, unit = 1;

	if (!softdirty_supported())
		SKIP(return, "no soft-dirty tracking in this kernel");
	if (folios == PMD_MAPPED)
		unit = mapping->pmd_size / psize();

	clear_softdirty();
	ASSERT_EQ(0, flip_often(mapping, 1));
	for (page = unit; page < mapping->pages; page += 2 * unit)
		*page_at(mapping, page) = 1;
	ASSERT_EQ(0, flip(mapping, variant->shape->lower));
	ASSERT_EQ(0, find_wrong_bits(mapping, PM_SOFT_DIRTY, ODD, unit, &tally));
	EXPECT_TRUE(tally_report(&tally.missing, mapping, "protected", "soft_dirty", "1"));
	ASSERT_EQ(0, flip(mapping, PROT_FULL));
	ASSERT_EQ(0, find_wrong_bits(mapping, PM_SOFT_DIRTY, ODD, unit, &tally));
	EXPECT_TRUE(tally_report(&tally.missing, mapping, "restored", "soft_dirty", "1"));

	/*
	 * Since mprotect() changes the PTEs of a large folio in batches (6.17),
	 * x86 makes all of a batch soft-dirty: pte_mkdirty() does, and
	 * modify_prot_start_ptes() calls it to gather the dirty bits. User space
	 * has to put up with too many soft-dirty pages, as new mappings are
	 * soft-dirty too, so this is told and does not fail.
	 */
	if (folios == PTE_MAPPED || folios == FOLIOS_OF_64K) {
		ksft_print_msg("excess variant=%s phase=restored field=soft_dirty pages=%lu\n",
			       variant->shape->name, tally.excess.pages);
		return;
	}
	EXPECT_TRUE(tally_report(&tally.excess, mapping, "restored", "soft_dirty", "0"));
}

static int set_uffd_wp(int uffd, const struct mapping *mapping, bool protect)
{
	struct uffdio_writeprotect range = {
		.range.start = (unsigned long)mapping->start,
		.range.len = mapping->size,
		.mode = protect ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};

	return ioctl(uffd, UFFDIO_WRITEPROTECT, &range);
}

/* Every write must be held up by userfaultfd, which then raises SIGBUS. */
static bool check_writes_held_up(const struct mapping *mapping)
{
	struct tally tally = {};
	size_t page;

	for (page = 0; page < mapping->pages; page++) {
		char *address = page_at(mapping, page);

		if (try_access(address, true, 'x'))
			tally_add(&tally, address, ALLOWED);
		else if (caught.signal != SIGBUS)
			tally_add(&tally, address, "other_signal");
	}
	return tally_report(&tally, mapping, "restored", "write_to_uffd_wp", "SIGBUS");
}

/* Write-protection by userfaultfd outlives a flip. */
TEST_F_TIMEOUT(mprotect_toggle, write_tracking_uffd_wp, TIMEOUT)
{
	struct mapping *mapping = &self->mapping;
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_SIGBUS,
	};
	size_t few = 3 * psize();
	struct bit_tally tally;
	int uffd;

	if (variant->shape->shared)
		api.features |= UFFD_FEATURE_WP_HUGETLBFS_SHMEM;
	uffd = syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	if (uffd < 0)
		SKIP(return, "no userfaultfd in this kernel, or no right to use it");
	if (ioctl(uffd, UFFDIO_API, &api) ||
	    uffd_register(uffd, mapping->start, mapping->size, false, true, false))
		SKIP(return, "no write-protection by userfaultfd for this memory");

	ASSERT_EQ(0, set_uffd_wp(uffd, mapping, true));
	ASSERT_EQ(0, flip(mapping, variant->shape->lower));
	ASSERT_EQ(0, find_wrong_bits(mapping, PM_UFFD_WP, ALL, 1, &tally));
	EXPECT_TRUE(tally_report(&tally.missing, mapping, "protected", "uffd_wp", "1"));
	ASSERT_EQ(0, flip(mapping, PROT_FULL));
	ASSERT_EQ(0, find_wrong_bits(mapping, PM_UFFD_WP, ALL, 1, &tally));
	EXPECT_TRUE(tally_report(&tally.missing, mapping, "restored", "uffd_wp", "1"));
	/* A part, which splits a huge page. */
	ASSERT_EQ(0, mprotect(mapping->start + few, few, variant->shape->lower));
	ASSERT_EQ(0, mprotect(mapping->start + few, few, PROT_FULL));
	ASSERT_EQ(0, find_wrong_bits(mapping, PM_UFFD_WP, ALL, 1, &tally));
	EXPECT_TRUE(tally_report(&tally.missing, mapping, "part_restored", "uffd_wp", "1"));
	EXPECT_TRUE(check_writes_held_up(mapping));

	ASSERT_EQ(0, set_uffd_wp(uffd, mapping, false));
	ASSERT_EQ(0, flip_often(mapping, 1));
	ASSERT_EQ(0, find_wrong_bits(mapping, PM_UFFD_WP, NONE, 1, &tally));
	EXPECT_TRUE(tally_report(&tally.excess, mapping, "released", "uffd_wp", "0"));
	EXPECT_TRUE(check_access(mapping, 0, mapping->pages, USER_WRITE, true, "released"));
	close(uffd);
}

/* A child never sees what its parent writes, however often that flips. */
TEST_F_TIMEOUT(mprotect_toggle_cow, contents, TIMEOUT)
{
	struct mapping *mapping = &self->mapping;

	EXPECT_TRUE(check_fields(mapping, POPULATED, FIELD(EXCLUSIVE), "shared"));
	ASSERT_EQ(0, flip_often(mapping, 4));
	EXPECT_TRUE(check_fields(mapping, RESTORED, FIELD(EXCLUSIVE), "restored"));
	EXPECT_TRUE(check_contents(mapping, "restored"));
	/* A write to a part of a page takes a copy of the rest. */
	write_again(mapping, 0, mapping->pages);
	EXPECT_TRUE(check_contents(mapping, "copied"));
	fill(mapping, 2);
	EXPECT_TRUE(check_sharer(mapping, "written"));
	ASSERT_EQ(0, flip_often(mapping, 4));
	fill(mapping, 3);
	EXPECT_TRUE(check_sharer(mapping, "written_again"));
	EXPECT_TRUE(check_contents(mapping, "written_again"));
}

/* Nor is it seen before any flip. */
TEST_F_TIMEOUT(mprotect_toggle_cow, contents_unflipped, TIMEOUT)
{
	struct mapping *mapping = &self->mapping;

	fill(mapping, 2);
	EXPECT_TRUE(check_sharer(mapping, "written_unflipped"));
}

/* What a round of the cost test works on. */
struct toggle {
	const struct shape *shape;
	struct mapping mapping;
	struct page_state before;
};

static int protect_phase(void *context)
{
	const struct toggle *toggle = context;

	return flip(&toggle->mapping, toggle->shape->lower);
}

static int restore_phase(void *context)
{
	const struct toggle *toggle = context;

	return flip(&toggle->mapping, PROT_FULL);
}

static int touch_phase(void *context)
{
	const struct toggle *toggle = context;

	touch(&toggle->mapping);
	return 0;
}

static const struct phase toggle_phases[] = {
	{ "protect", protect_phase },
	{ "restore", restore_phase },
	{ "touch", touch_phase },
};

static int prepare_round(void *context, bool first, const char **why)
{
	struct toggle *toggle = context;
	struct mapping *mapping = &toggle->mapping;
	struct page_state state;
	enum state_phase phase;
	int ret;

	ret = mapping_create(mapping, toggle->shape, size_mb, why);
	if (ret != KSFT_PASS)
		return ret;
	toggle->before = mapping->made;
	if (rehearse(mapping))
		return call_failed("mprotect", why);
	for (phase = POPULATED; phase < NR_STATE_PHASES; phase++) {
		/* Reading the state takes longer than a cycle does. */
		if (!first) {
			if (enter(mapping, phase))
				return call_failed("mprotect", why);
			continue;
		}
		if (observe(mapping, phase, &state))
			return call_failed("page_state_read", why);
		page_state_print(&state, toggle->shape->name,
				 state_phase_names[phase]);
	}
	return KSFT_PASS;
}

static int finish_round(void *context, const char **why)
{
	struct toggle *toggle = context;
	struct mapping *mapping = &toggle->mapping;
	struct page_state after;
	int ret = KSFT_PASS;

	if (page_state_read(mapping->start, mapping->size, &after))
		return call_failed("page_state_read", why);
	/* Faults belong to the cycles, and who may not see folios never does. */
	toggle->before.field[PAGE_STATE_FAULTS] = PAGE_STATE_ANY;
	/* Touched since, and no longer the child's. */
	if (toggle->shape->cow)
		toggle->before.field[PAGE_STATE_EXCLUSIVE] = mapping->pages;
	if (after.field[PAGE_STATE_FOLIO_KB] == PAGE_STATE_UNKNOWN)
		toggle->before.field[PAGE_STATE_FOLIO_KB] = PAGE_STATE_ANY;
	toggle->before.field[PAGE_STATE_REFERENCED_KB] = PAGE_STATE_ANY;
	ask_again(mapping, &toggle->before, &after);
	if (is_swapped(&after)) {
		*why = SWAPPED;
		ret = KSFT_SKIP;
	} else if (!page_state_matches(&toggle->before, &after, toggle->shape->name,
				       "after_cycles")) {
		*why = "the page state changed in the timed cycles";
		ret = KSFT_FAIL;
	}
	mapping_destroy(mapping);
	return ret;
}

/* Tell what a flip costs. It must not fault pages; its time never fails. */
TEST_F_TIMEOUT(mprotect_toggle, cost, COST_TIMEOUT)
{
	struct toggle toggle = { .shape = variant->shape };
	struct workload workload = {
		.variant = variant->shape->name,
		.unit = "pages",
		.units = size_of(variant->shape, size_mb) / psize(),
		.phases = toggle_phases,
		.nr_phases = ARRAY_SIZE(toggle_phases),
		.prepare = prepare_round,
		.finish = finish_round,
		.context = &toggle,
	};
	struct rounds_result result;
	int ret;

	/* Every round makes its own. */
	mapping_destroy(&self->mapping);
	ret = rounds_run(&workload, &plan, &result);
	if (ret == KSFT_SKIP)
		SKIP(return, "%s", result.why);
	ASSERT_EQ(KSFT_PASS, ret)
		TH_LOG("%s", result.why);
	EXPECT_EQ(0, result.least_faults)
		TH_LOG("page faults in every timed cycle");
}

static void print_usage(const char *program)
{
	printf("Usage: %s [-l] [-t|-T|-v|-V|-f|-F|-r NAME]...\n"
	       "Flips the protection of a range and back, and checks and times it.\n"
	       "  -l  list the tests\n"
	       "  -t, -v, -f NAME  run this test, variant, fixture; capitals: all but this\n"
	       "  -r FIXTURE.VARIANT.TEST  run this one\n"
	       "Environment, whole numbers:\n"
	       "  " PREFIX "_SIZE_MB        size of the mapping in MiB (64)\n"
	       "  " PREFIX "_CYCLES         recorded cycles in a round (50)\n"
	       "  " PREFIX "_ROUNDS         recorded rounds (5)\n"
	       "  " PREFIX "_WARMUP_ROUNDS  rounds before them (1)\n", program);
}

int main(int argc, char **argv)
{
	/* Half of what a 32-bit address space could hold, twice. */
	const unsigned long most_mb = sizeof(long) == 4 ? 512 : 1UL << 20;

	if (argc == 2 && !strcmp(argv[1], "-h")) {
		print_usage(argv[0]);
		return KSFT_PASS;
	}
	size_mb = knob_read(PREFIX, "SIZE_MB", 64, most_mb, NULL);
	rounds_read_plan(PREFIX, &plan);
	plan.cycles = knob_read(PREFIX, "CYCLES", 50, 100000, &plan.asked);
	test_program_start();
	return test_harness_run(argc, argv);
}
