// SPDX-License-Identifier: GPL-2.0
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../kselftest.h"
#include "rounds.h"

#define MAX_ROUNDS		1000

/* Before the recorded cycles: the first one faults what it must, once. */
#define UNRECORDED_CYCLES	3

/* So many in a row are not all disturbed by what the machine does beside us. */
#define CYCLES_TO_JUDGE_BY	64

/*
 * With nothing asked for: the cycles of all rounds of a variant take so long at
 * most, and the rounds as a whole, with what comes before the cycles.
 */
#define ENOUGH_NS		400000000ULL
#define ENOUGH_IN_ALL_NS	2000000000ULL
#define FEWEST_CYCLES		3

/*
 * A round that did nothing in two such times in a row hangs. One could just be
 * the time for which the whole test was stopped.
 */
#define HANG_MS			15000

/* What a round leaves for its parent, in memory that both share. */
struct round {
	unsigned long progress;
	unsigned long cycles;
	long faults;
	long least_faults;	/* of a cycle */
	long long system_ns;
	int result;		/* a KSFT_ code */
	char why[128];
	/* A row of plan->cycles for each phase, then one for the cycle. */
	unsigned long long ns[];
};

/* ns per unit: the phases, then the cycle. */
struct figures {
	double mean[ROUNDS_MAX_PHASES + 1];
	double median[ROUNDS_MAX_PHASES + 1];
	double least;		/* of the cycle */
	double system;
	double faults;
};

unsigned long knob_read(const char *prefix, const char *name,
			unsigned long otherwise, unsigned long most, bool *asked)
{
	unsigned long number;
	char variable[64];
	const char *text;

	snprintf(variable, sizeof(variable), "%s_%s", prefix, name);
	text = getenv(variable);
	if (!text)
		return otherwise;

	/* Digits only, and few enough for a 32-bit long. */
	if (*text && strspn(text, "0123456789") == strlen(text) && strlen(text) < 10) {
		number = strtoul(text, NULL, 10);
		if (number >= 1 && number <= most) {
			if (asked)
				*asked = true;
			return number;
		}
	}
	fprintf(stderr, "%s is '", variable);
	for (; *text; text++)
		fputc(isprint((unsigned char)*text) ? *text : '?', stderr);
	fprintf(stderr, "': it takes a whole number from 1 to %lu\n", most);
	exit(KSFT_FAIL);
}

void rounds_read_plan(const char *prefix, struct rounds_plan *plan)
{
	plan->asked = false;
	plan->rounds = knob_read(prefix, "ROUNDS", 5, MAX_ROUNDS, &plan->asked);
	plan->warmup_rounds = knob_read(prefix, "WARMUP_ROUNDS", 1, MAX_ROUNDS,
					&plan->asked);
	plan->cpu = sched_getcpu();
}

int rounds_pin(int cpu)
{
	size_t size = CPU_ALLOC_SIZE(cpu + 1);
	cpu_set_t *set = CPU_ALLOC(cpu + 1);
	int ret;

	if (!set)
		return -ENOMEM;
	CPU_ZERO_S(size, set);
	CPU_SET_S(cpu, size, set);
	ret = sched_setaffinity(0, size, set) ? -errno : 0;
	CPU_FREE(set);
	return ret;
}

static unsigned long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

/* Add what the process has used up so far, or with @sign -1 take it away. */
static void add_usage(struct round *round, int sign)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	round->faults += sign * (usage.ru_minflt + usage.ru_majflt);
	round->system_ns += sign * (usage.ru_stime.tv_sec * 1000000000LL +
				    usage.ru_stime.tv_usec * 1000LL);
}

/* One cycle. Nothing may come between two edges but what is timed. */
static int run_cycle(const struct workload *workload, unsigned long long *edges)
{
	unsigned int phase;
	int ret = 0;

	edges[0] = now_ns();
	for (phase = 0; phase < workload->nr_phases; phase++) {
		ret |= workload->phases[phase].run(workload->context);
		edges[phase + 1] = now_ns();
	}
	return ret;
}

static void record(const struct workload *workload,
		   const struct rounds_plan *plan, struct round *round,
		   const unsigned long long *edges)
{
	unsigned long long *cell = round->ns + round->cycles;
	unsigned int phase;

	for (phase = 0; phase < workload->nr_phases; phase++, cell += plan->cycles)
		*cell = edges[phase + 1] - edges[phase];
	*cell = edges[phase] - edges[0];
	round->cycles++;
}

/* Runs a cycle and counts its page faults. */
static int count_cycle(const struct workload *workload, struct round *round,
		       unsigned long long *edges, const char **why)
{
	long faults = round->faults;

	if (workload->next)
		workload->next(workload->context);
	add_usage(round, -1);
	if (run_cycle(workload, edges)) {
		*why = "a system call failed in a cycle";
		return KSFT_FAIL;
	}
	add_usage(round, 1);
	if (round->faults - faults < round->least_faults)
		round->least_faults = round->faults - faults;
	round->progress++;
	return KSFT_PASS;
}

/* More cycles, where all of few had page faults: they may find one that has fewer. */
static int look_for_least_faults(const struct workload *workload, struct round *round,
				 const char **why)
{
	unsigned long long edges[ROUNDS_MAX_PHASES + 1];
	const long long system_ns = round->system_ns;
	const long faults = round->faults;
	int ret = KSFT_PASS;
	unsigned long i;

	for (i = round->cycles; i < CYCLES_TO_JUDGE_BY && round->least_faults &&
	     ret == KSFT_PASS; i++)
		ret = count_cycle(workload, round, edges, why);
	round->faults = faults;
	round->system_ns = system_ns;
	return ret;
}

/* The cycles of a round. Returns a KSFT_ code. */
static int run_cycles(const struct workload *workload,
		      const struct rounds_plan *plan, struct round *round,
		      const char **why)
{
	unsigned long long edges[ROUNDS_MAX_PHASES + 1], start = 0, enough;
	unsigned long i;

	enough = ENOUGH_NS / (plan->rounds + plan->warmup_rounds);
	for (i = 0; i < UNRECORDED_CYCLES + plan->cycles; i++) {
		/* Unrecorded cycles do all the same, to fault the code in too. */
		if (i <= UNRECORDED_CYCLES) {
			round->cycles = 0;
			round->faults = 0;
			round->least_faults = LONG_MAX;
			round->system_ns = 0;
			start = now_ns();
		}
		if (count_cycle(workload, round, edges, why) != KSFT_PASS)
			return KSFT_FAIL;
		record(workload, plan, round, edges);
		if (!plan->asked && round->cycles >= FEWEST_CYCLES &&
		    edges[workload->nr_phases] - start > enough)
			break;
	}
	return look_for_least_faults(workload, round, why);
}

/* What the child of a round does. Its exit status says nothing. */
static void run_round(const struct workload *workload,
		      const struct rounds_plan *plan, struct round *round,
		      size_t size, bool first)
{
	const char *why = "";
	int result;

	/* Writing the results must not fault between the cycles. */
	memset(round->ns, 0, size - sizeof(*round));
	rounds_pin(plan->cpu);

	result = workload->prepare(workload->context, first, &why);
	round->progress++;
	if (result == KSFT_PASS)
		result = run_cycles(workload, plan, round, &why);
	if (result == KSFT_PASS)
		result = workload->finish(workload->context, &why);
	snprintf(round->why, sizeof(round->why), "%s", why);
	round->result = result;
}

/*
 * Wait for the child of a round. Returns its wait status, or -ETIMEDOUT after
 * ending one that hangs.
 */
static int wait_for_round(pid_t child, const struct round *round)
{
	unsigned long before = 0, progress;
	int idle = 0, status = 0;
	struct pollfd pollfd = {
		.fd = syscall(SYS_pidfd_open, child, 0),
		.events = POLLIN,
	};

	while (pollfd.fd >= 0 && idle < 2) {
		if (poll(&pollfd, 1, HANG_MS) > 0)
			break;
		progress = __atomic_load_n(&round->progress, __ATOMIC_RELAXED);
		idle = progress == before ? idle + 1 : 0;
		before = progress;
	}
	if (pollfd.fd >= 0)
		close(pollfd.fd);
	if (idle == 2)
		kill(child, SIGKILL);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return idle == 2 ? -ETIMEDOUT : status;
}

static int __printf(2, 3) fail(struct rounds_result *result,
			       const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(result->why, sizeof(result->why), format, arguments);
	va_end(arguments);
	return KSFT_FAIL;
}

/* Run one round in a process of its own. Returns a KSFT_ code. */
static int start_round(const struct workload *workload,
		       const struct rounds_plan *plan, struct round *round,
		       size_t size, bool first, struct rounds_result *result)
{
	pid_t parent = getpid(), child;
	int status;

	memset(round, 0, sizeof(*round));
	round->result = -1;
	fflush(stdout);
	child = fork();
	if (child < 0)
		return fail(result, "fork failed: errno %d", errno);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == parent)
			run_round(workload, plan, round, size, first);
		fflush(stdout);
		_exit(0);
	}
	status = wait_for_round(child, round);
	if (status == -ETIMEDOUT)
		return fail(result, "a round hung and was ended");
	if (WIFSIGNALED(status))
		return fail(result, "a round was killed by signal %d",
			    WTERMSIG(status));
	if (WEXITSTATUS(status) || round->result < 0)
		return fail(result, "a round exited before its end");
	snprintf(result->why, sizeof(result->why), "%s", round->why);
	return round->result;
}

static int compare_ns(const void *a, const void *b)
{
	const unsigned long long *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int compare_double(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double mean_of(const double *values, unsigned long count)
{
	double sum = 0;
	unsigned long i;

	for (i = 0; i < count; i++)
		sum += values[i];
	return sum / count;
}

/* Sorts the values. */
static double median_of(double *values, unsigned long count)
{
	qsort(values, count, sizeof(*values), compare_double);
	return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* Sorts what the round recorded. */
static void get_figures(const struct workload *workload,
			const struct rounds_plan *plan, struct round *round,
			struct figures *figures)
{
	unsigned long i, count = round->cycles;
	unsigned int row;

	for (row = 0; row <= workload->nr_phases; row++) {
		unsigned long long *ns = round->ns + row * plan->cycles, sum = 0;

		qsort(ns, count, sizeof(*ns), compare_ns);
		for (i = 0; i < count; i++)
			sum += ns[i];
		figures->mean[row] = (double)sum / count / workload->units;
		figures->median[row] = (ns[(count - 1) / 2] + ns[count / 2]) / 2.0 /
				       workload->units;
		figures->least = (double)ns[0] / workload->units;
	}
	figures->system = (double)round->system_ns / count / workload->units;
	figures->faults = (double)round->faults / count / workload->units;
}

static const char *row_name(const struct workload *workload, unsigned int row)
{
	return row < workload->nr_phases ? workload->phases[row].name : "cycle";
}

static int append_rows(char *text, size_t size, const struct workload *workload,
		       const char *suffix, const double *values)
{
	unsigned int row;
	int length = 0;

	for (row = 0; row <= workload->nr_phases; row++)
		length += snprintf(text + length, size - length, " %s%s=%.2f",
				   row_name(workload, row), suffix, values[row]);
	return length;
}

static int append_usage(char *text, size_t size, const struct workload *workload,
			double system, double faults)
{
	/* The unit is a plural. */
	int singular = strlen(workload->unit) - 1;

	if (!workload->usage)
		return 0;
	return snprintf(text, size, " sys_ns=%.2f faults_per_%.*s=%.4f", system,
			singular, workload->unit, faults);
}

static void print_round(const struct workload *workload, unsigned long number,
			const struct round *round, const struct figures *figures)
{
	char text[512];
	int length;

	length = append_rows(text, sizeof(text), workload, "_ns", figures->mean);
	length += append_rows(text + length, sizeof(text) - length, workload,
			      "_median_ns", figures->median);
	length += append_usage(text + length, sizeof(text) - length, workload,
			       figures->system, figures->faults);
	snprintf(text + length, sizeof(text) - length,
		 " cycle_min_ns=%.2f faults=%ld", figures->least, round->faults);
	ksft_print_msg("round variant=%s round=%lu cycles=%lu %s=%lu%s\n",
		       workload->variant, number, round->cycles, workload->unit,
		       workload->units, text);
}

/* Standard deviation of a sample; 0 where it has one value. */
static double deviation_of(const double *values, unsigned long count)
{
	double mean = mean_of(values, count), sum = 0;
	unsigned long i;

	for (i = 0; i < count; i++)
		sum += (values[i] - mean) * (values[i] - mean);
	return count > 1 ? sqrt(sum / (count - 1)) : 0;
}

static void print_cost(const struct workload *workload, unsigned long rounds,
		       unsigned long cycles, const struct figures *figures,
		       struct rounds_result *result)
{
	double means[ROUNDS_MAX_PHASES + 1], medians[ROUNDS_MAX_PHASES + 1];
	double least = figures[0].least, system = 0;
	double values[MAX_ROUNDS];
	char text[512];
	unsigned int row;
	unsigned long i;
	int length;

	for (row = 0; row <= workload->nr_phases; row++) {
		for (i = 0; i < rounds; i++)
			values[i] = figures[i].mean[row];
		means[row] = mean_of(values, rounds);
		result->cycle_ns = means[row];
		result->cycle_sd_ns = deviation_of(values, rounds);
		for (i = 0; i < rounds; i++)
			values[i] = figures[i].median[row];
		medians[row] = median_of(values, rounds);
		result->cycle_median_ns = medians[row];
	}
	for (i = 0; i < rounds; i++) {
		least = figures[i].least < least ? figures[i].least : least;
		system += figures[i].system / rounds;
		result->faults += figures[i].faults / rounds;
	}

	length = append_rows(text, sizeof(text), workload, "_ns", means);
	/* One round has no deviation: the key is left out. */
	if (rounds > 1)
		length += snprintf(text + length, sizeof(text) - length,
				   " cycle_sd_ns=%.2f", result->cycle_sd_ns);
	length += append_rows(text + length, sizeof(text) - length, workload,
			      "_median_ns", medians);
	length += append_usage(text + length, sizeof(text) - length, workload,
			       system, result->faults);
	snprintf(text + length, sizeof(text) - length, " cycle_min_ns=%.2f", least);
	ksft_print_msg("cost variant=%s rounds=%lu cycles=%lu %s=%lu%s\n",
		       workload->variant, rounds, cycles, workload->unit,
		       workload->units, text);
}

static void print_early(const struct workload *workload,
			const struct rounds_plan *plan, unsigned long rounds,
			unsigned long cycles)
{
	if (rounds == plan->rounds && cycles == plan->cycles)
		return;
	ksft_print_msg("early variant=%s rounds=%lu of_rounds=%lu cycles=%lu of_cycles=%lu\n",
		       workload->variant, rounds, plan->rounds, cycles, plan->cycles);
}

/* All rounds, with the results of the recorded ones in @figures. */
static int run_all(const struct workload *workload,
		   const struct rounds_plan *plan, struct round *round,
		   size_t size, struct figures *figures,
		   struct rounds_result *result)
{
	unsigned long i, recorded = 0, cycles = plan->cycles;
	unsigned long long start = now_ns();
	int ret;

	for (i = 0; i < plan->warmup_rounds + plan->rounds; i++) {
		bool warmup = i < plan->warmup_rounds;

		ret = start_round(workload, plan, round, size,
				  i == plan->warmup_rounds, result);
		if (ret != KSFT_PASS)
			return ret;
		if (warmup)
			continue;
		if (!recorded || round->least_faults < result->least_faults)
			result->least_faults = round->least_faults;
		cycles = round->cycles < cycles ? round->cycles : cycles;
		get_figures(workload, plan, round, &figures[recorded]);
		print_round(workload, recorded + 1, round, &figures[recorded]);
		recorded++;
		if (!plan->asked && now_ns() - start > ENOUGH_IN_ALL_NS)
			break;
	}
	print_early(workload, plan, recorded, cycles);
	print_cost(workload, recorded, cycles, figures, result);
	return KSFT_PASS;
}

int rounds_run(const struct workload *workload, const struct rounds_plan *plan,
	       struct rounds_result *result)
{
	size_t size = sizeof(struct round) + sizeof(unsigned long long) *
		      (workload->nr_phases + 1) * plan->cycles;
	struct figures *figures = calloc(plan->rounds, sizeof(*figures));
	struct round *round = mmap(NULL, size, PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int ret;

	memset(result, 0, sizeof(*result));
	if (!figures || round == MAP_FAILED)
		ret = fail(result, "no memory for the results: errno %d", errno);
	else
		ret = run_all(workload, plan, round, size, figures, result);
	if (round != MAP_FAILED)
		munmap(round, size);
	free(figures);
	return ret;
}
