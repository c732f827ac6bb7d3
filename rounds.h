/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Runs a workload in fresh processes, times its phases, prints the figures.
 */
#ifndef ROUNDS_H
#define ROUNDS_H

#include <stdbool.h>

#define ROUNDS_MAX_PHASES	3
#define ROUNDS_MAX_CYCLES	1000000

/**
 * struct phase - one part of a cycle
 * @name: the figures are printed as NAME_ns
 * @run: does it once; returns 0 or a negative errno
 */
struct phase {
	const char *name;
	int (*run)(void *context);
};

/**
 * struct workload - what a round does
 * @variant: its name in the output
 * @unit: what a phase handles many of in one cycle, in the plural
 * @units: how many; times are printed per unit
 * @phases: the phases of a cycle, in order
 * @nr_phases: how many, ROUNDS_MAX_PHASES at most
 * @next: called before every cycle, untimed; may be NULL
 * @usage: also print the system time and the page faults per unit
 * @prepare: called first in the process of a round, sets up what the phases
 *	need; @first is true in the first recorded round; returns a KSFT_ code,
 *	and but for KSFT_PASS a constant text in @why
 * @finish: called after the last cycle, says whether what the phases left is
 *	right; returns like @prepare
 * @context: handed to all of them
 */
struct workload {
	const char *variant;
	const char *unit;
	unsigned long units;
	const struct phase *phases;
	unsigned int nr_phases;
	void (*next)(void *context);
	bool usage;
	int (*prepare)(void *context, bool first, const char **why);
	int (*finish)(void *context, const char **why);
	void *context;
};

/**
 * struct rounds_plan - how much is measured
 * @cycles: recorded cycles in a round
 * @rounds: recorded rounds
 * @warmup_rounds: rounds before them, that are not recorded
 * @asked: the user set one of these, so all are done however long they take;
 *	else a slow machine does fewer
 * @cpu: the CPU that every round is pinned to
 */
struct rounds_plan {
	unsigned long cycles;
	unsigned long rounds;
	unsigned long warmup_rounds;
	bool asked;
	int cpu;
};

/**
 * struct rounds_result - what came of the rounds
 * @why: if not KSFT_PASS, what went wrong or is lacking
 * @least_faults: page faults in the cycle that had the fewest, of those recorded and,
 *	where they are few, of more: what the machine does beside us can add some, and
 *	a kernel that needs them has them in every cycle
 * @cycle_ns: of a cycle, per unit: the mean of the rounds' means
 * @cycle_sd_ns: their standard deviation, 0 for a single round
 * @cycle_median_ns: the median of the rounds' medians
 * @faults: page faults per unit
 */
struct rounds_result {
	char why[128];
	long least_faults;
	double cycle_ns;
	double cycle_sd_ns;
	double cycle_median_ns;
	double faults;
};

/**
 * knob_read() - read a whole number that the user may set
 * @prefix: the variable's name is PREFIX_NAME
 * @name: see @prefix
 * @otherwise: what it is where the variable is not set
 * @most: the largest number it takes; the smallest is 1
 * @asked: set to true where the variable is set; may be NULL
 *
 * Ends the program with a message on stderr if the variable is set to anything
 * else.
 *
 * Return: the number.
 */
unsigned long knob_read(const char *prefix, const char *name,
			unsigned long otherwise, unsigned long most, bool *asked);

/**
 * rounds_read_plan() - read the numbers of rounds from the environment
 * @prefix: see knob_read()
 * @plan: where they go; the cycles are the caller's to fill in,
 *	ROUNDS_MAX_CYCLES at most
 */
void rounds_read_plan(const char *prefix, struct rounds_plan *plan);

/**
 * rounds_pin() - pin the calling thread to a CPU
 * @cpu: its number
 *
 * Return: 0 or a negative errno.
 */
int rounds_pin(int cpu);

/**
 * rounds_run() - run all rounds of a workload and print their figures
 * @workload: what to run
 * @plan: how much of it
 * @result: what came of it
 *
 * Prints a "round" line a round and a "cost" line, in ns per unit. No child is
 * left when it returns, whatever became of the rounds.
 *
 * Return: KSFT_PASS, KSFT_SKIP or KSFT_FAIL.
 */
int rounds_run(const struct workload *workload, const struct rounds_plan *plan,
	       struct rounds_result *result);

#endif /* ROUNDS_H */
