// SPDX-License-Identifier: GPL-2.0
/*
 * Map and unmap small pieces of memory, with and without page faults: what user
 * space may rely on, and what one step costs.
 *
 * There are some slots, each with a mapping of its own. A step picks a slot,
 * writes to its memory, unmaps it, and maps another size in its place.
 */
#include "../kselftest_harness.h"
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include "vm_util.h"
#include "memory_room.h"
#include "page_state.h"
#include "rounds.h"
#include "test_program.h"

#define PREFIX		"MMAP_CHURN"
#define PROT_FULL	(PROT_READ | PROT_WRITE)

/*
 * Steps are done by the batch, all writes before all unmaps before all maps, so
 * that the clock is read four times a batch and not four times a step. The sizes
 * are those of a deck of cards, one for each step of a batch: every batch unmaps
 * all of them and maps all of them, so that batches can be compared.
 */
#define BATCH		16

/* The distance of the writes in the report of the regression in 6.1. */
#define WRITE_EVERY	128

/* For the tests that are not timed. */
#define TEST_BATCHES	100

#define SETTLE_STEPS	2048

/* As many page tables; few, as with large base pages they lie far apart. */
#define SPARSE_PAGES	16

/* For an emulated machine with a debug kernel: no test takes long elsewhere. */
#define TIMEOUT		600
/* A user may ask for any number of rounds. A round that hangs is found out. */
#define COST_TIMEOUT	36000

/* How memory comes and goes. */
struct way {
	const char *name;
	int flags;		/* of mmap() */
	bool touch;		/* before a slot is unmapped */
	bool grow;		/* slots are the end of one VMA */
};

/* The report's first one: VMAs alone, as no page is ever there. */
static const struct way map_only = {
	.name = "map_only",
	.flags = MAP_PRIVATE,
};

/* The report's second one: a fault for every page, and a page to be freed. */
static const struct way map_and_fault = {
	.name = "map_and_fault",
	.flags = MAP_PRIVATE,
	.touch = true,
};

/* The same pages without the exceptions: what clearing and mapping them costs. */
static const struct way populate = {
	.name = "populate",
	.flags = MAP_PRIVATE | MAP_POPULATE,
};

/* VMAs that never merge, with a file behind each, and shmem's faults. */
static const struct way shared = {
	.name = "shared",
	.flags = MAP_SHARED,
	.touch = true,
};

/* No VMA is made or freed: only the end of one moves, as that of a heap does. */
static const struct way brk_like = {
	.name = "brk_like",
	.flags = MAP_PRIVATE,
	.touch = true,
	.grow = true,
};

struct slot {
	char *start;
	size_t size;		/* 0 if it is not mapped */
	unsigned long pattern;	/* what fill_slot() wrote, 0 if nothing */
};

struct churn {
	const struct way *way;
	struct slot *slots;
	unsigned int nr_slots;
	/*
	 * Rows of slots, so long as a batch is, and the first one is the next
	 * batch. A column has slots of one size, that of the card, but for the
	 * first row: there the cards have been dealt anew.
	 */
	unsigned int *order;
	unsigned int turn[BATCH];	/* in which the columns come */
	size_t card[BATCH];		/* sizes */
	unsigned int batch;
	unsigned int random;
	unsigned long patterns;	/* how many have been written */
	char *heap;		/* a page that is always there, before the slots that grow */
};

/* Read by main() before any test runs. */
static struct rounds_plan plan;
static unsigned long nr_slots, max_kb;

/* What map_only costs, shared by all tests. */
static struct rounds_result *without_fault;

FIXTURE(mmap_churn)
{
	struct churn churn;
};

FIXTURE_VARIANT(mmap_churn)
{
	const struct way *way;
};

FIXTURE_VARIANT_ADD(mmap_churn, map_only) { .way = &map_only };
FIXTURE_VARIANT_ADD(mmap_churn, map_and_fault) { .way = &map_and_fault };
FIXTURE_VARIANT_ADD(mmap_churn, populate) { .way = &populate };
FIXTURE_VARIANT_ADD(mmap_churn, shared) { .way = &shared };
FIXTURE_VARIANT_ADD(mmap_churn, brk_like) { .way = &brk_like };

/* Mappings large enough for folios of many pages, where the machine has them. */
FIXTURE(mmap_churn_large)
{
	char *reservation;
	char *start;
	size_t size;
	size_t alignment;
};

FIXTURE_VARIANT(mmap_churn_large)
{
	const char *name;
	int flags;
	bool half;		/* too small for a PMD-mapped huge page */
};

FIXTURE_VARIANT_ADD(mmap_churn_large, private) {
	.name = "private",
	.flags = MAP_PRIVATE,
};

FIXTURE_VARIANT_ADD(mmap_churn_large, private_half) {
	.name = "private_half",
	.flags = MAP_PRIVATE,
	.half = true,
};

FIXTURE_VARIANT_ADD(mmap_churn_large, shared) {
	.name = "shared",
	.flags = MAP_SHARED,
};

/* Pages so far apart that each takes a page table of its own. */
FIXTURE(mmap_churn_sparse)
{
	size_t distance;
};

FIXTURE_VARIANT(mmap_churn_sparse)
{
	const char *name;
	int flags;
};

FIXTURE_VARIANT_ADD(mmap_churn_sparse, private) {
	.name = "private",
	.flags = MAP_PRIVATE,
};

FIXTURE_VARIANT_ADD(mmap_churn_sparse, shared) {
	.name = "shared",
	.flags = MAP_SHARED,
};

/* Marsaglia's xorshift32: the same numbers on every machine and libc. */
static unsigned int next_random(struct churn *churn)
{
	churn->random ^= churn->random << 13;
	churn->random ^= churn->random >> 17;
	churn->random ^= churn->random << 5;
	return churn->random;
}

static size_t card_size(unsigned int card, unsigned int batch)
{
	size_t bytes = ((card + 1) * max_kb * 1024 + batch - 1) / batch;

	return (bytes + psize() - 1) / psize() * psize();
}

static void swap(unsigned int *a, unsigned int *b)
{
	unsigned int kept = *a;

	*a = *b;
	*b = kept;
}

static void shuffle(struct churn *churn, unsigned int *list, unsigned int count)
{
	unsigned int i;

	for (i = count; i > 1; i--)
		swap(&list[i - 1], &list[next_random(churn) % i]);
}

/* Choose the slots of the next batch, all different, and their new sizes. */
static void choose_batch(void *context)
{
	struct churn *churn = context;
	unsigned int column, rows;

	shuffle(churn, churn->turn, churn->batch);
	/* Only at its end can a VMA grow and shrink. */
	if (churn->way->grow)
		return;
	for (column = 0; column < churn->batch; column++) {
		rows = (churn->nr_slots - column + churn->batch - 1) / churn->batch;
		swap(&churn->order[column],
		     &churn->order[column + next_random(churn) % rows * churn->batch]);
	}
	shuffle(churn, churn->order, churn->batch);
}

/* The slot that comes at this place of the batch. */
static struct slot *batch_slot(const struct churn *churn, unsigned int place)
{
	unsigned int column = churn->way->grow ? place : churn->turn[place];

	return &churn->slots[churn->order[column]];
}

static int map_slot(const struct churn *churn, struct slot *slot, size_t size)
{
	int flags = churn->way->flags | MAP_ANONYMOUS;
	char *address = NULL;

	if (churn->way->grow) {
		flags |= MAP_FIXED_NOREPLACE;
		address = slot == churn->slots ? churn->heap + psize() :
						 slot[-1].start + slot[-1].size;
	}
	slot->start = mmap(address, size, PROT_FULL, flags, -1, 0);
	if (slot->start == MAP_FAILED)
		return -errno;
	slot->size = size;
	slot->pattern = 0;
	return 0;
}

static int unmap_slot(struct slot *slot)
{
	if (slot->size && munmap(slot->start, slot->size))
		return -errno;
	slot->size = 0;
	return 0;
}

static void touch_slot(const struct slot *slot)
{
	char *byte, *end = slot->start + slot->size;

	for (byte = slot->start; byte < end; byte += WRITE_EVERY)
		__atomic_store_n(byte, 1, __ATOMIC_RELAXED);
}

static int touch_phase(void *context)
{
	const struct churn *churn = context;
	unsigned int i;

	for (i = 0; i < churn->batch; i++)
		touch_slot(batch_slot(churn, i));
	return 0;
}

/* From the last one to the first: a VMA shrinks at its end. */
static int unmap_phase(void *context)
{
	const struct churn *churn = context;
	unsigned int i = churn->batch;
	int ret = 0;

	while (i-- && !ret)
		ret = unmap_slot(batch_slot(churn, i));
	return ret;
}

static int map_phase(void *context)
{
	const struct churn *churn = context;
	unsigned int i;
	int ret = 0;

	for (i = 0; i < churn->batch && !ret; i++)
		ret = map_slot(churn, batch_slot(churn, i), churn->card[churn->turn[i]]);
	return ret;
}

static int map_all(struct churn *churn)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < churn->nr_slots && !ret; i++)
		ret = map_slot(churn, &churn->slots[churn->order[i]],
			       churn->card[i % churn->batch]);
	return ret;
}

static int unmap_all(struct churn *churn)
{
	unsigned int i = churn->nr_slots;
	int ret = 0;

	while (i-- && !ret)
		ret = unmap_slot(&churn->slots[i]);
	return ret;
}

/* Do a batch of steps. Returns 0 or a negative errno. */
static int churn_once(struct churn *churn)
{
	int ret;

	choose_batch(churn);
	if (churn->way->touch)
		touch_phase(churn);
	ret = unmap_phase(churn);
	return ret ? ret : map_phase(churn);
}

static int call_failed(const char *call, int error, const char **why)
{
	ksft_print_msg("error call=%s errno=%d\n", call, error);
	*why = "a system call failed that must not";
	return KSFT_FAIL;
}

static const char *lacks(const struct churn *churn)
{
	unsigned long long bytes = churn->nr_slots * (max_kb * 1024ULL + psize());
	FILE *file = fopen("/proc/sys/vm/max_map_count", "r");
	unsigned long most = ULONG_MAX;

	if (file && fscanf(file, "%lu", &most) != 1)
		most = ULONG_MAX;
	if (file)
		fclose(file);
	/* The program and its libraries take some. */
	if (most < churn->nr_slots + 256)
		return "too few mappings allowed by vm.max_map_count";
	return memory_room_lacks(bytes, churn->way->flags & MAP_PRIVATE, bytes);
}

/*
 * Address space that nobody else comes to: well below where the kernel places
 * what has no place of its own.
 */
static int map_heap(struct churn *churn, const char **why)
{
	size_t below = sizeof(long) == 4 ? 64UL << 20 : 1UL << 30;
	char *top = mmap(NULL, psize(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (top == MAP_FAILED)
		return call_failed("mmap", errno, why);
	munmap(top, psize());
	churn->heap = mmap(top - below, psize(), PROT_FULL,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (churn->heap == MAP_FAILED)
		return call_failed("mmap", errno, why);
	*churn->heap = 1;
	return KSFT_PASS;
}

/* Returns a KSFT_ code, and but for KSFT_PASS a constant text in @why. */
static int churn_create(struct churn *churn, const struct way *way, const char **why)
{
	unsigned int i;
	int ret;

	memset(churn, 0, sizeof(*churn));
	churn->way = way;
	churn->random = 2463534242U;
	churn->batch = nr_slots < BATCH ? nr_slots : BATCH;
	churn->nr_slots = way->grow ? churn->batch : nr_slots;
	*why = lacks(churn);
	if (*why)
		return KSFT_SKIP;

	churn->slots = calloc(churn->nr_slots, sizeof(*churn->slots));
	churn->order = calloc(churn->nr_slots, sizeof(*churn->order));
	if (!churn->slots || !churn->order)
		return call_failed("calloc", errno, why);
	for (i = 0; i < churn->nr_slots; i++)
		churn->order[i] = i;
	for (i = 0; i < churn->batch; i++) {
		churn->turn[i] = i;
		churn->card[i] = card_size(i, churn->batch);
	}

	if (way->grow) {
		ret = map_heap(churn, why);
		if (ret != KSFT_PASS)
			return ret;
	}
	ret = map_all(churn);
	return ret ? call_failed("mmap", -ret, why) : KSFT_PASS;
}

static void churn_destroy(struct churn *churn)
{
	if (churn->slots)
		unmap_all(churn);
	if (churn->heap)
		munmap(churn->heap, psize());
	free(churn->slots);
	free(churn->order);
	memset(churn, 0, sizeof(*churn));
}

FIXTURE_SETUP(mmap_churn)
{
	const char *why = "";
	int ret;

	test_program_begin_test(plan.cpu);
	ret = churn_create(&self->churn, variant->way, &why);
	if (ret == KSFT_SKIP) {
		test_program_end_test();
		SKIP(return, "%s", why);
	}
	ASSERT_EQ(KSFT_PASS, ret)
		TH_LOG("%s", why);
}

FIXTURE_TEARDOWN(mmap_churn)
{
	churn_destroy(&self->churn);
	test_program_end_test();
}

static bool differs(const struct churn *churn, const char *phase, const char *field,
		    const char *relation, long long expected, long long seen)
{
	ksft_print_msg("mismatch variant=%s phase=%s field=%s expected=%s%lld seen=%lld\n",
		       churn->way->name, phase, field, relation, expected, seen);
	return false;
}

static bool check_equal(const struct churn *churn, const char *phase,
			const char *field, long long expected, long long seen)
{
	return seen == expected ||
	       differs(churn, phase, field, "", expected, seen);
}

static bool check_at_most(const struct churn *churn, const char *phase,
			  const char *field, long long most, long long seen)
{
	return seen <= most ||
	       differs(churn, phase, field, "at_most_", most, seen);
}

static bool check_at_least(const struct churn *churn, const char *phase,
			   const char *field, long long least, long long seen)
{
	return seen >= least ||
	       differs(churn, phase, field, "at_least_", least, seen);
}

static int compare_slots(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* No two slots may share a page. */
static bool check_apart(const struct churn *churn)
{
	struct slot *sorted = calloc(churn->nr_slots, sizeof(*sorted));
	long overlaps = 0;
	unsigned int i;

	if (!sorted)
		return false;
	memcpy(sorted, churn->slots, churn->nr_slots * sizeof(*sorted));
	qsort(sorted, churn->nr_slots, sizeof(*sorted), compare_slots);
	for (i = 1; i < churn->nr_slots; i++)
		overlaps += sorted[i - 1].start + sorted[i - 1].size > sorted[i].start;
	free(sorted);
	return check_equal(churn, "mapped", "overlaps", 0, overlaps);
}

static long pages_of(const struct churn *churn)
{
	long pages = 0;
	unsigned int i;

	for (i = 0; i < churn->nr_slots; i++)
		pages += churn->slots[i].size / psize();
	return pages;
}

/* Pages of the slots that are present, or a negative errno. */
static long present_pages(const struct churn *churn)
{
	long present, all = 0;
	unsigned int i;

	for (i = 0; i < churn->nr_slots; i++) {
		present = page_state_present(churn->slots[i].start, churn->slots[i].size);
		if (present < 0)
			return present;
		all += present;
	}
	return all;
}

/* All pages of the slots are present once they were needed, and none before. */
static bool check_present(const struct churn *churn)
{
	const struct way *way = churn->way;
	bool needed = way->touch || way->flags & MAP_POPULATE;
	long expected = needed ? pages_of(churn) : 0, seen;

	if (way->touch && !check_equal(churn, "mapped", "present", 0,
				       present_pages(churn)))
		return false;
	if (way->touch) {
		unsigned int i;

		for (i = 0; i < churn->nr_slots; i++)
			touch_slot(&churn->slots[i]);
	}
	seen = present_pages(churn);
	return check_equal(churn, "touched", "present", expected, seen);
}

/* Private memory merges with what is beside it, shared memory never does. */
static bool check_vmas(const struct churn *churn, long long before, long long seen)
{
	const struct way *way = churn->way;

	if (way->grow)
		return check_equal(churn, "mapped", "vmas", before, seen);
	if (way->flags & MAP_SHARED)
		return check_equal(churn, "mapped", "vmas", before + churn->nr_slots, seen);
	return check_at_most(churn, "mapped", "vmas", before + churn->nr_slots, seen);
}

/* What the process has when all is unmapped. */
struct leftover {
	long long vmas;
	long long size_kb;
	long long rss_kb;
	long long counted_kb;	/* the same, as the kernel keeps count */
	long long page_table_kb;
};

static int read_leftover(struct leftover *left)
{
	struct page_state state;
	int ret;

	ret = page_state_read_process(&state);
	left->vmas = state.field[PAGE_STATE_VMAS];
	left->size_kb = state.field[PAGE_STATE_SIZE_KB];
	left->rss_kb = state.field[PAGE_STATE_RSS_KB];
	left->counted_kb = page_state_proc_figure("/proc/self/status", "VmRSS");
	left->page_table_kb = page_state_proc_figure("/proc/self/status", "VmPTE");
	return ret;
}

/* Map all, churn, unmap all, and say what is left. */
static bool burst(struct churn *churn, struct leftover *left)
{
	struct leftover before;
	struct page_state state;
	int i;

	if (unmap_all(churn) || read_leftover(&before) || map_all(churn))
		return false;
	for (i = 0; i < TEST_BATCHES; i++)
		if (churn_once(churn))
			return false;
	if (page_state_read_process(&state) ||
	    !check_vmas(churn, before.vmas, state.field[PAGE_STATE_VMAS]) ||
	    !check_apart(churn))
		return false;
	if (unmap_all(churn) || map_all(churn) || !check_present(churn))
		return false;

	if (unmap_all(churn) || read_leftover(left))
		return false;
	return check_equal(churn, "unmapped", "vmas", before.vmas, left->vmas);
}

/*
 * The kernel counts by CPU, and adds up when a CPU has got to a batch of pages.
 * Pages of three kinds are counted, on the CPU of the fork and on ours.
 */
static long long count_error_kb(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	long batch = cpus > 32 ? 2 * cpus : 64;

	return 3 * 2 * batch * (psize() / 1024);
}

/*
 * Slots that merge can be given folios that reach over several of them. How many
 * faults and how many pages there are, and what they cost, would then be a matter
 * of the machine's policy.
 */
static int only_base_pages(void)
{
	return prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) ? -errno : 0;
}

/* Nothing is left of what was unmapped, and nothing grows. */
TEST_F_TIMEOUT(mmap_churn, page_state, TIMEOUT)
{
	struct churn *churn = &self->churn;
	struct leftover first, second;
	struct page_state state;

	if (page_state_read_process(&state) == -ENOENT ||
	    page_state_present(churn->slots[0].start, psize()) == -ENOENT)
		SKIP(return, "no smaps or pagemap in /proc");
	rounds_pin(plan.cpu);
	ASSERT_EQ(0, only_base_pages());
	/* At first the process also faults its own code, data and heap in. */
	ASSERT_TRUE(burst(churn, &first));
	ASSERT_TRUE(burst(churn, &first));
	ASSERT_TRUE(burst(churn, &second));

	EXPECT_TRUE(check_at_most(churn, "unmapped", "size_kb",
				  first.size_kb, second.size_kb));
	EXPECT_TRUE(check_at_most(churn, "unmapped", "rss_kb",
				  first.rss_kb, second.rss_kb));
	EXPECT_TRUE(check_at_most(churn, "unmapped", "counted_rss_kb",
				  second.rss_kb + count_error_kb(), second.counted_kb));
	EXPECT_TRUE(check_at_least(churn, "unmapped", "page_table_kb",
				   1, second.page_table_kb));
	EXPECT_TRUE(check_at_most(churn, "unmapped", "page_table_kb",
				  first.page_table_kb, second.page_table_kb));
}

/* The word that a page of a slot is full of: its own, and never 0. */
static unsigned long pattern_word(unsigned long pattern, size_t page)
{
	return (pattern << 12 | page) * 0x9e3779b1UL;
}

static void fill_slot(struct churn *churn, struct slot *slot)
{
	unsigned long *word = (unsigned long *)slot->start;
	size_t i, words = psize() / sizeof(*word);

	slot->pattern = ++churn->patterns;
	for (i = 0; i < slot->size / sizeof(*word); i++)
		word[i] = pattern_word(slot->pattern, i / words);
}

/* All words of a slot must be what was written there last, or else 0. */
static bool check_slot(const struct churn *churn, const struct slot *slot,
		       const char *phase)
{
	const unsigned long *word = (unsigned long *)slot->start;
	size_t i, words = psize() / sizeof(*word), wrong = 0;
	unsigned long expected;
	const void *first = NULL;
	char text[96];

	for (i = 0; i < slot->size / sizeof(*word); i++) {
		expected = slot->pattern ? pattern_word(slot->pattern, i / words) : 0;
		if (word[i] == expected)
			continue;
		if (!wrong++) {
			first = &word[i];
			snprintf(text, sizeof(text), "expected=0x%lx seen=0x%lx",
				 expected, word[i]);
		}
	}
	if (!wrong)
		return true;
	ksft_print_msg("mismatch variant=%s phase=%s field=contents %s words=%zu first=%p\n",
		       churn->way->name, phase, text, wrong, first);
	return false;
}

static bool check_batch(const struct churn *churn, const char *phase)
{
	bool same = true;
	unsigned int i;

	for (i = 0; i < churn->batch && same; i++)
		same = check_slot(churn, batch_slot(churn, i), phase);
	return same;
}

/*
 * A page that is written to before it was read is another one than a page that
 * was read first, and so is one that nobody will look at again.
 */
static void write_first(struct slot *slot)
{
	unsigned long *word = (unsigned long *)slot->start;
	size_t i, words = psize() / sizeof(*word);

	for (i = 0; i < slot->size / sizeof(*word); i += words) {
		__atomic_store_n(&word[i], 1, __ATOMIC_RELAXED);
		__atomic_store_n(&word[i], 0, __ATOMIC_RELAXED);
	}
}

/* What was unmapped is gone: an access by the kernel, for us, finds nothing. */
static bool check_gone(const struct churn *churn, int pipe_end,
		       const struct slot *slot, size_t size)
{
	char *address;

	for (address = slot->start; address < slot->start + size; address += psize()) {
		if (write(pipe_end, address, 1) == -1 && errno == EFAULT)
			continue;
		ksft_print_msg("mismatch variant=%s phase=%s expected=EFAULT first=%p\n",
			       churn->way->name, "unmapped field=access", address);
		return false;
	}
	return true;
}

/* Unmap the batch, and see that it is gone. */
static bool unmap_batch(struct churn *churn, int pipe_end)
{
	size_t sizes[BATCH];
	unsigned int i;

	for (i = 0; i < churn->batch; i++)
		sizes[i] = batch_slot(churn, i)->size;
	if (unmap_phase(churn))
		return false;
	for (i = 0; i < churn->batch; i++)
		if (!check_gone(churn, pipe_end, batch_slot(churn, i), sizes[i]))
			return false;
	return true;
}

/* Replace what a batch of slots holds. */
static bool refill_batch(struct churn *churn, int pipe_end)
{
	unsigned int i;

	choose_batch(churn);
	if (!check_batch(churn, "kept") || !unmap_batch(churn, pipe_end) ||
	    map_phase(churn))
		return false;
	for (i = 1; i < churn->batch; i += 2)
		write_first(batch_slot(churn, i));
	if (!check_batch(churn, "fresh"))
		return false;
	for (i = 0; i < churn->batch; i++)
		fill_slot(churn, batch_slot(churn, i));
	return true;
}

/* A fresh mapping is all 0, and what is written there stays until it is unmapped. */
TEST_F_TIMEOUT(mmap_churn, contents, TIMEOUT)
{
	struct churn *churn = &self->churn;
	bool right = true;
	int pipe_ends[2];
	unsigned int i;

	ASSERT_EQ(0, pipe(pipe_ends));
	for (i = 0; i < TEST_BATCHES && right; i++)
		right = refill_batch(churn, pipe_ends[1]);
	ASSERT_TRUE(right);
	for (i = 0; i < churn->nr_slots && right; i++)
		right = check_slot(churn, &churn->slots[i], "kept");
	EXPECT_TRUE(right);
	close(pipe_ends[0]);
	close(pipe_ends[1]);
}

/* What a page table maps; a PMD-mapped huge page is as large. */
static size_t pmd_size(void)
{
	return psize() / sizeof(long long) * psize();
}

FIXTURE_SETUP(mmap_churn_large)
{
	size_t huge = read_pmd_pagesize();
	const char *why;

	test_program_begin_test(plan.cpu);
	self->alignment = huge ? huge : pmd_size();
	self->size = variant->half ? self->alignment / 2 : self->alignment;
	why = memory_room_lacks(self->size, variant->flags & MAP_PRIVATE,
				self->size + self->alignment);
	if (why) {
		test_program_end_test();
		SKIP(return, "%s", why);
	}
	self->reservation = mmap(NULL, self->size + self->alignment, PROT_NONE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ASSERT_NE(MAP_FAILED, self->reservation);
	self->start = (char *)(((unsigned long)self->reservation + self->alignment - 1) /
			       self->alignment * self->alignment);
}

FIXTURE_TEARDOWN(mmap_churn_large)
{
	munmap(self->reservation, self->size + self->alignment);
	test_program_end_test();
}

/* All words must be 0. */
static bool check_zero(const char *variant, const char *start, size_t size)
{
	const unsigned long *word = (const unsigned long *)start, *first = NULL;
	size_t i, wrong = 0;
	char text[64];

	for (i = 0; i < size / sizeof(*word); i++) {
		if (!word[i])
			continue;
		if (!wrong++)
			first = &word[i];
	}
	if (!wrong)
		return true;
	snprintf(text, sizeof(text), "seen=0x%lx words=%zu first=%p", *first, wrong, first);
	ksft_print_msg("mismatch variant=%s phase=fresh field=contents expected=0x0 %s\n",
		       variant, text);
	return false;
}

/*
 * A large folio that was full comes back empty, whether its first fault is a read or
 * a write. The one that was unmapped last is likely to be taken again.
 */
TEST_F_TIMEOUT(mmap_churn_large, contents, TIMEOUT)
{
	unsigned int i, times = self->size > 16UL << 20 ? 2 : 16;
	int flags = variant->flags | MAP_ANONYMOUS | MAP_FIXED;
	bool right = true;
	char *start;

	for (i = 0; i < times && right; i++) {
		size_t middle = self->size / 2 + i * psize();

		start = mmap(self->start, self->size, PROT_FULL, flags, -1, 0);
		ASSERT_EQ(self->start, start);
		/* Where there are no large folios, the pages must be 0, too. */
		madvise(start, self->size, MADV_HUGEPAGE);
		if (i % 2) {
			__atomic_store_n(start + middle, 1, __ATOMIC_RELAXED);
			__atomic_store_n(start + middle, 0, __ATOMIC_RELAXED);
		}
		right = check_zero(variant->name, start, self->size);
		memset(start, 0x55, self->size);
		ASSERT_EQ(0, munmap(start, self->size));
	}
	EXPECT_TRUE(right);
}

FIXTURE_SETUP(mmap_churn_sparse)
{
	const char *why;

	test_program_begin_test(plan.cpu);
	self->distance = pmd_size();
	why = memory_room_lacks(SPARSE_PAGES * psize(), variant->flags & MAP_PRIVATE,
				SPARSE_PAGES * self->distance);
	if (why) {
		test_program_end_test();
		SKIP(return, "%s", why);
	}
}

FIXTURE_TEARDOWN(mmap_churn_sparse)
{
	test_program_end_test();
}

/* The page tables of sparse memory are given back with it. */
TEST_F_TIMEOUT(mmap_churn_sparse, page_tables, TIMEOUT)
{
	size_t size = SPARSE_PAGES * self->distance, page;
	int flags = variant->flags | MAP_ANONYMOUS | MAP_FIXED;
	long long before, mapped, after;
	char *start, *address;

	ASSERT_EQ(0, only_base_pages());
	before = page_state_proc_figure("/proc/self/status", "VmPTE");
	if (before == PAGE_STATE_UNKNOWN)
		SKIP(return, "no status in /proc");
	/* Only what can be written to counts for overcommit. */
	start = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, start);
	for (page = 0; page < SPARSE_PAGES; page++) {
		address = start + page * self->distance;
		ASSERT_EQ(address, mmap(address, psize(), PROT_FULL, flags, -1, 0));
		*address = 1;
	}
	mapped = page_state_proc_figure("/proc/self/status", "VmPTE");
	ASSERT_EQ(0, munmap(start, size));
	after = page_state_proc_figure("/proc/self/status", "VmPTE");

	/* Were they not there, they could not be missed. */
	EXPECT_LE(before + SPARSE_PAGES / 2 * psize() / 1024, mapped)
		TH_LOG("%lld KiB of page tables before, %lld while mapped", before, mapped);
	EXPECT_GE(before, after)
		TH_LOG("%lld KiB of page tables before, %lld after", before, after);
}

static long count_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

/*
 * Faults of a batch, and of several batches the fewest: what the machine does
 * beside us can add some, and a kernel that needs them always has them.
 */
struct batch_faults {
	long map;
	long map_excess;	/* over one for each page */
	long first;		/* touch */
	long first_excess;
	long first_lack;	/* under one for each page, or the fewest there can be */
	long again;		/* touch */
};

static long least(long a, long b)
{
	return a < b ? a : b;
}

static int count_batch_faults(struct churn *churn, struct batch_faults *fewest)
{
	long map, first, again, pages = 0, must;
	unsigned int i;
	int ret;

	choose_batch(churn);
	ret = unmap_phase(churn);
	if (ret)
		return ret;
	map = count_faults();
	ret = map_phase(churn);
	map = count_faults() - map;
	if (ret)
		return ret;
	for (i = 0; i < churn->batch; i++)
		pages += batch_slot(churn, i)->size / psize();
	first = count_faults();
	touch_phase(churn);
	first = count_faults() - first;
	again = count_faults();
	touch_phase(churn);
	again = count_faults() - again;

	/* shmem may be told to take large folios whatever we say: one a slot. */
	must = churn->way->flags & MAP_SHARED ? (long)churn->batch : pages;
	fewest->map = least(fewest->map, map);
	fewest->map_excess = least(fewest->map_excess, map - pages);
	fewest->first = least(fewest->first, first);
	fewest->first_excess = least(fewest->first_excess, first - pages);
	fewest->first_lack = least(fewest->first_lack, must - first);
	fewest->again = least(fewest->again, again);
	return 0;
}

/* Each page faults once, when it is first needed, and for nothing else. */
TEST_F_TIMEOUT(mmap_churn, faults, TIMEOUT)
{
	struct batch_faults fewest = {
		LONG_MAX, LONG_MAX, LONG_MAX, LONG_MAX, LONG_MAX, LONG_MAX
	};
	struct churn *churn = &self->churn;
	int i, ret = 0;

	ASSERT_EQ(0, only_base_pages());
	for (i = 0; i < TEST_BATCHES && !ret; i++)
		ret = count_batch_faults(churn, &fewest);
	ASSERT_EQ(0, ret);
	if (variant->way->flags & MAP_POPULATE) {
		EXPECT_TRUE(check_at_most(churn, "map", "faults_over_one_a_page", 0,
					  fewest.map_excess));
		EXPECT_TRUE(check_equal(churn, "touch", "faults", 0, fewest.first));
		return;
	}
	EXPECT_TRUE(check_equal(churn, "map", "faults", 0, fewest.map));
	EXPECT_TRUE(check_at_most(churn, "touch", "faults_over_one_a_page", 0,
				  fewest.first_excess));
	EXPECT_TRUE(check_at_most(churn, "touch", "faults_that_lack", 0,
				  fewest.first_lack));
	EXPECT_TRUE(check_equal(churn, "touch_again", "faults", 0, fewest.again));
}

/* At first the slots are in order, and merge. That does not last. */
static int settle(struct churn *churn)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < SETTLE_STEPS / churn->batch && !ret; i++)
		ret = churn_once(churn);
	return ret;
}

/* So that two kernels can be seen to have been given the same work. */
static void print_state(const struct churn *churn)
{
	long pages = pages_of(churn), present = present_pages(churn);
	char text[24] = "unknown";

	if (present >= 0)
		snprintf(text, sizeof(text), "%ld", present);
	ksft_print_msg("state variant=%s phase=mapped slots=%u size_kb=%ld present=%s\n",
		       churn->way->name, churn->nr_slots, pages * (psize() / 1024), text);
}

static int prepare_round(void *context, bool first, const char **why)
{
	struct churn *churn = context;
	int ret = only_base_pages();

	if (ret)
		return call_failed("prctl", -ret, why);
	ret = churn_create(churn, churn->way, why);
	if (ret != KSFT_PASS)
		return ret;
	if (first)
		print_state(churn);
	ret = settle(churn);
	return ret ? call_failed("mmap", -ret, why) : KSFT_PASS;
}

static int finish_round(void *context, const char **why)
{
	struct churn *churn = context;
	int ret = check_apart(churn) ? KSFT_PASS : KSFT_FAIL;

	*why = "slots overlap after the timed cycles";
	churn_destroy(churn);
	return ret;
}

/* What the reporter had to subtract by hand, from two runs. */
static void print_fault_cost(const struct rounds_result *with)
{
	const struct rounds_result *without = without_fault;
	double difference = with->cycle_ns - without->cycle_ns;
	double median = with->cycle_median_ns - without->cycle_median_ns;
	double deviation = hypot(with->cycle_sd_ns, without->cycle_sd_ns);
	char step[160], medians[160], fault[160];

	if (!without->cycle_ns || with->faults <= 0)
		return;
	snprintf(step, sizeof(step), "with_ns=%.2f without_ns=%.2f difference_ns=%.2f",
		 with->cycle_ns, without->cycle_ns, difference);
	snprintf(fault, sizeof(fault), "fault_ns=%.2f fault_sd_ns=%.2f fault_median_ns=%.2f",
		 difference / with->faults, deviation / with->faults, median / with->faults);
	snprintf(medians, sizeof(medians), "with_median_ns=%.2f without_median_ns=%.2f",
		 with->cycle_median_ns, without->cycle_median_ns);
	ksft_print_msg("fault %s %s faults_per_step=%.4f %s\n", step, medians, with->faults,
		       fault);
}

static const struct phase churn_phases[] = {
	{ "touch", touch_phase },
	{ "unmap", unmap_phase },
	{ "map", map_phase },
};

/* Tell what a step costs. Without a touch there is no fault; time never fails. */
TEST_F_TIMEOUT(mmap_churn, cost, COST_TIMEOUT)
{
	bool touch = variant->way->touch;
	struct churn churn = { .way = variant->way };
	struct workload workload = {
		.variant = variant->way->name,
		.unit = "steps",
		.units = self->churn.batch,
		.phases = touch ? churn_phases : churn_phases + 1,
		.nr_phases = ARRAY_SIZE(churn_phases) - !touch,
		.next = choose_batch,
		.usage = true,
		.prepare = prepare_round,
		.finish = finish_round,
		.context = &churn,
	};
	struct rounds_result result;
	int ret;

	/* Every round makes its own. */
	churn_destroy(&self->churn);
	ret = rounds_run(&workload, &plan, &result);
	if (ret == KSFT_SKIP)
		SKIP(return, "%s", result.why);
	ASSERT_EQ(KSFT_PASS, ret)
		TH_LOG("%s", result.why);
	if (variant->way == &map_only) {
		*without_fault = result;
		EXPECT_EQ(0, result.least_faults)
			TH_LOG("page faults in every timed cycle");
	}
	if (variant->way == &map_and_fault)
		print_fault_cost(&result);
}

static void print_usage(const char *program)
{
	printf("Usage: %s [-l] [-t|-T|-v|-V|-f|-F|-r NAME]...\n"
	       "Maps and unmaps small pieces of memory, and checks and times it.\n"
	       "  -l  list the tests\n"
	       "  -t, -v, -f NAME  run this test, variant, fixture; capitals: all but this\n"
	       "  -r FIXTURE.VARIANT.TEST  run this one\n"
	       "Environment, whole numbers:\n"
	       "  " PREFIX "_SLOTS          mappings at a time (1024)\n"
	       "  " PREFIX "_MAX_KB         largest mapping in KiB (32)\n"
	       "  " PREFIX "_STEPS          recorded steps in a round (3200)\n"
	       "  " PREFIX "_ROUNDS         recorded rounds (5)\n"
	       "  " PREFIX "_WARMUP_ROUNDS  rounds before them (1)\n", program);
}

int main(int argc, char **argv)
{
	const unsigned long most_steps = (unsigned long)ROUNDS_MAX_CYCLES * BATCH;
	unsigned long steps, batch;

	if (argc == 2 && !strcmp(argv[1], "-h")) {
		print_usage(argv[0]);
		return KSFT_PASS;
	}
	nr_slots = knob_read(PREFIX, "SLOTS", 1024, 1 << 20, NULL);
	max_kb = knob_read(PREFIX, "MAX_KB", 32, 1024, NULL);
	rounds_read_plan(PREFIX, &plan);
	steps = knob_read(PREFIX, "STEPS", 3200, most_steps, &plan.asked);
	/* Whole batches, and one at least. */
	batch = nr_slots < BATCH ? nr_slots : BATCH;
	plan.cycles = (steps + batch - 1) / batch;
	if (plan.cycles > ROUNDS_MAX_CYCLES)
		plan.cycles = ROUNDS_MAX_CYCLES;

	without_fault = mmap(NULL, sizeof(*without_fault), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (without_fault == MAP_FAILED)
		ksft_exit_fail_perror("mmap");
	test_program_start();
	return test_harness_run(argc, argv);
}
