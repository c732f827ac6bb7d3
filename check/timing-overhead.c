// SPDX-License-Identifier: GPL-2.0
/*
 * What reading the clock between the phases adds to what mprotect_toggle times.
 * A benchmark to be looked at, not a test: its figures are times.
 *
 *     cc -O2 -o build/timing-overhead check/timing-overhead.c &&
 *     build/timing-overhead
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define SIZE		(64UL << 20)
#define HUGE		(2UL << 20)
#define PAIRS		301
#define READS		1000000

static unsigned long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

/* One cycle, with the clock read between its phases or not. */
static void cycle(char *start, bool read_clock)
{
	size_t offset, page = sysconf(_SC_PAGESIZE);

	if (mprotect(start, SIZE, PROT_READ))
		abort();
	if (read_clock)
		now_ns();
	if (mprotect(start, SIZE, PROT_READ | PROT_WRITE))
		abort();
	if (read_clock)
		now_ns();
	for (offset = 0; offset < SIZE; offset += page)
		__atomic_store_n(start + offset, 1, __ATOMIC_RELAXED);
}

static int compare(const void *a, const void *b)
{
	const unsigned long long *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median_cycle(unsigned long long *ns)
{
	qsort(ns, PAIRS, sizeof(*ns), compare);
	return ns[PAIRS / 2];
}

/* With and without by turns, so that both see the same machine. */
static void measure(const char *name, char *start, double read_ns)
{
	static unsigned long long with[PAIRS], without[PAIRS];
	double with_ns, without_ns;
	unsigned long long begin;
	int i;

	cycle(start, true);
	for (i = 0; i < PAIRS; i++) {
		begin = now_ns();
		cycle(start, true);
		with[i] = now_ns() - begin;
		begin = now_ns();
		cycle(start, false);
		without[i] = now_ns() - begin;
	}
	with_ns = median_cycle(with);
	without_ns = median_cycle(without);
	/* Two reads inside, and half of each of those at its ends. */
	printf("overhead mapping=%s cycle_ns=%.0f measured_percent=%.3f reckoned_percent=%.3f\n",
	       name, without_ns, (with_ns / without_ns - 1) * 100,
	       3 * read_ns / without_ns * 100);
}

static char *map(int flags, int advice)
{
	char *start = mmap(NULL, SIZE + HUGE, PROT_READ | PROT_WRITE,
			   MAP_ANONYMOUS | flags, -1, 0);

	if (start == MAP_FAILED)
		abort();
	start = (char *)(((unsigned long)start + HUGE - 1) & ~(HUGE - 1));
	madvise(start, SIZE, advice);
	memset(start, 1, SIZE);
	return start;
}

int main(void)
{
	unsigned long long begin = now_ns();
	double read_ns;
	int i;

	for (i = 0; i < READS; i++)
		now_ns();
	read_ns = (double)(now_ns() - begin) / READS;
	printf("clock read_ns=%.1f\n", read_ns);
	measure("shared_base_pages", map(MAP_SHARED, MADV_NOHUGEPAGE), read_ns);
	measure("private_huge_pages", map(MAP_PRIVATE, MADV_HUGEPAGE), read_ns);
	return 0;
}
