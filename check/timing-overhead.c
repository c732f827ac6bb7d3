// SPDX-License-Identifier: GPL-2.0
/*
 * What the timing adds to what it times: the cycles of rounds.c, which reads the
 * clock between the phases, against the same cycles timed as a whole.
 *
 * The difference is smaller than what either drifts by, so the cost of a read of
 * the clock is told as well, and what share that is. It is largest where a cycle
 * is short: huge pages. A benchmark to be looked at, not a test.
 */
#include "../rounds.c"

#define SIZE		(64UL << 20)
#define PMD_AT_MOST	(32UL << 20)
#define CLOCK_READS	1000

static int protect(void *start)
{
	return mprotect(start, SIZE, PROT_READ);
}

static int restore(void *start)
{
	return mprotect(start, SIZE, PROT_READ | PROT_WRITE);
}

static int touch(void *start)
{
	size_t page_size = sysconf(_SC_PAGESIZE);
	char *byte;

	for (byte = start; byte < (char *)start + SIZE; byte += page_size)
		__atomic_store_n(byte, 1, __ATOMIC_RELAXED);
	return 0;
}

static const struct phase phases[] = {
	{ "protect", protect },
	{ "restore", restore },
	{ "touch", touch },
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* Returns ns, and those of the shortest phase. */
static double time_with(const struct workload *workload, double *shortest)
{
	unsigned long long edges[ROUNDS_MAX_PHASES + 1];
	unsigned int phase;

	if (run_cycle(workload, edges))
		die("mprotect");
	*shortest = edges[1] - edges[0];
	for (phase = 1; phase < workload->nr_phases; phase++)
		if (edges[phase + 1] - edges[phase] < *shortest)
			*shortest = edges[phase + 1] - edges[phase];
	return edges[workload->nr_phases] - edges[0];
}

static double time_without(const struct workload *workload)
{
	unsigned long long start = now_ns();
	unsigned int phase;
	int ret = 0;

	for (phase = 0; phase < workload->nr_phases; phase++)
		ret |= workload->phases[phase].run(workload->context);
	if (ret)
		die("mprotect");
	return now_ns() - start;
}

static double clock_read_ns(void)
{
	double values[CLOCK_READS];
	int i, j;

	for (i = 0; i < CLOCK_READS; i++) {
		unsigned long long start = now_ns();

		for (j = 1; j < CLOCK_READS; j++)
			now_ns();
		values[i] = (double)(now_ns() - start) / CLOCK_READS;
	}
	return median_of(values, CLOCK_READS);
}

static double *new_values(unsigned long count)
{
	double *values = calloc(count, sizeof(*values));

	if (!values)
		die("calloc");
	return values;
}

/* Turn about, so that what drifts does so for both. */
static void compare(const char *variant, void *start, unsigned long cycles)
{
	struct workload workload = {
		.phases = phases,
		.nr_phases = ARRAY_SIZE(phases),
		.context = start,
	};
	double *with = new_values(cycles), *without = new_values(cycles);
	double *difference = new_values(cycles), *shortest = new_values(cycles);
	double clock_ns = clock_read_ns(), cycle_ns, phase_ns, difference_ns;
	unsigned int inner_reads = workload.nr_phases - 1;
	unsigned long i;

	time_without(&workload);
	for (i = 0; i < cycles; i++) {
		if (i % 2)
			with[i] = time_with(&workload, &shortest[i]);
		without[i] = time_without(&workload);
		if (i % 2 == 0)
			with[i] = time_with(&workload, &shortest[i]);
		difference[i] = with[i] - without[i];
	}
	cycle_ns = median_of(without, cycles);
	phase_ns = median_of(shortest, cycles);
	difference_ns = median_of(difference, cycles);

	printf("overhead variant=%s cycles=%lu", variant, cycles);
	printf(" with_ns=%.0f without_ns=%.0f", median_of(with, cycles), cycle_ns);
	printf(" difference_ns=%.0f difference_percent=%.3f",
	       difference_ns, 100 * difference_ns / cycle_ns);
	printf(" clock_read_ns=%.1f reads_of_cycle_percent=%.3f",
	       clock_ns, 100 * inner_reads * clock_ns / cycle_ns);
	printf(" shortest_phase_ns=%.0f read_of_phase_percent=%.3f\n",
	       phase_ns, 100 * clock_ns / phase_ns);
	free(with);
	free(without);
	free(difference);
	free(shortest);
}

static void *map(int flags)
{
	void *start = mmap(NULL, SIZE + PMD_AT_MOST, PROT_READ | PROT_WRITE,
			   MAP_ANONYMOUS | flags, -1, 0);

	if (start == MAP_FAILED)
		die("mmap");
	return (void *)(((unsigned long)start + PMD_AT_MOST - 1) / PMD_AT_MOST * PMD_AT_MOST);
}

static bool is_huge(void)
{
	FILE *file = fopen("/proc/self/smaps_rollup", "r");
	unsigned long kb = 0;
	char line[128];

	if (!file)
		return false;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "AnonHugePages: %lu", &kb) == 1)
			break;
	fclose(file);
	return kb >= SIZE >> 10;
}

int main(int argc, char **argv)
{
	unsigned long cycles = 1000;
	char *rest = "";
	void *start;

	if (argc == 2 && !strcmp(argv[1], "-h")) {
		printf("usage: %s [CYCLES]\n"
		       "Tells what the clock reads between phases add to a cycle (1000 cycles).\n",
		       argv[0]);
		return 0;
	}
	if (argc == 2)
		cycles = strtoul(argv[1], &rest, 10);
	if (argc > 2 || *rest || cycles < 1 || cycles > ROUNDS_MAX_CYCLES) {
		fprintf(stderr, "%s: takes a number of cycles from 1 to %d, or nothing for 1000\n",
			argv[0], ROUNDS_MAX_CYCLES);
		return 2;
	}
	rounds_pin(sched_getcpu());

	start = map(MAP_SHARED);
	madvise(start, SIZE, MADV_NOHUGEPAGE);
	touch(start);
	compare("shared_dirty", start, cycles);

	start = map(MAP_PRIVATE);
	madvise(start, SIZE, MADV_HUGEPAGE);
	touch(start);
	if (is_huge())
		compare("private_thp", start, cycles);
	else
		fprintf(stderr, "%s: no huge pages to be had\n", argv[0]);
	return 0;
}
