/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Decides, for one variant at all points, whether B is slower than A.
 */
#ifndef COMPARE_VERDICT_H
#define COMPARE_VERDICT_H

#include "compare_log.h"

/**
 * struct point - one boot of one kernel
 * @label: of its kernel, "A" and "B" unless the user has better names
 * @is_b: is it the second of the two kernels?
 * @log: what it printed
 */
struct point {
	const char *label;
	bool is_b;
	struct log log;
};

/**
 * struct sandwich - the points of a comparison
 * @points: in boot order; the first is an A
 * @nr_points: how many
 */
struct sandwich {
	struct point *points;
	unsigned int nr_points;
};

enum verdict {
	VERDICT_SLOWER,
	VERDICT_FASTER,
	VERDICT_NO_CHANGE,
	VERDICT_NOT_COMPARABLE,
};

/**
 * struct obstacle - why a variant cannot be compared
 * @field: what differs, or is wrong
 * @points: where, as indices; the second is -1 if one point alone is at fault
 * @values: what it is there
 */
struct obstacle {
	char field[128];
	int points[2];
	char values[2][160];
};

/**
 * struct point_figures - what a variant cost at one point
 * @rounds: number of rounds
 * @mean: of the rounds' figures
 * @deviation: their standard deviation (n-1)
 * @half_interval: half of the mean's 95 % confidence interval
 * @phases: means of the rounds' figures for each phase
 */
struct point_figures {
	unsigned int rounds;
	double mean;
	double deviation;
	double half_interval;
	double *phases;
};

/**
 * struct comparison - one variant, compared
 * @variant: its name
 * @verdict: is B slower than A?
 * @reason: what decided it, in a few words; "" if the figures speak for themselves
 * @obstacle: why it is not comparable; the rest is valid only if it is
 * @key: the figure that decides, a key of the round lines
 * @unit: of what it is the cost, "" if that is not known
 * @nr_phases: number of phases
 * @phase_keys: their figures, keys of the round lines
 * @points: for each point
 * @midpoint: mean of the A points
 * @b: mean of the B points
 * @change: B against the midpoint in percent
 * @change_first_dropped: the same without each point's first round
 * @low: lower end of @change's 95 % confidence interval
 * @high: its upper end
 * @drift: from the first A to the last in percent; NAN if there is one A only
 * @spread: most that points of one kernel differ in percent; a change must be larger
 * @timer: in counted mode, most that timer ticks can move a median; a change must be larger
 * @phase_midpoints: mean of the A points for each phase
 * @phase_changes: B against that in percent; NAN where that is 0
 * @nr_states: how many page states of the variant were compared at each point
 * @nr_failed_tests: how many tests of the variant fail, at every point
 */
struct comparison {
	const char *variant;
	enum verdict verdict;
	const char *reason;
	struct obstacle obstacle;

	const char *key;
	const char *unit;
	unsigned int nr_phases;
	const char **phase_keys;
	struct point_figures *points;

	double midpoint;
	double b;
	double change;
	double change_first_dropped;
	double low;
	double high;
	double drift;
	double spread;
	double timer;
	double *phase_midpoints;
	double *phase_changes;

	unsigned int nr_states;
	unsigned int nr_failed_tests;
};

/** point_kernel() - Return: the kernel release of a point. */
const char *point_kernel(const struct point *point);

/** counts_instructions() - Are the nanoseconds at this point in fact instructions? */
bool counts_instructions(const struct point *point);

/** variant_key() - Return: index of a key of the variant's rounds, -1 if it is none. */
int variant_key(const struct variant *variant, const char *key);

/** total_key() - Return: index of the key of the figure that decides, -1 if there is none. */
int total_key(const struct variant *variant, bool counted);

/** phase_name_length() - Return: how much of a phase's key is its name. */
int phase_name_length(const char *key);

/** outcome_name() - Return: a test's outcome in words. */
const char *outcome_name(enum outcome outcome);

/** verdict_name() - Return: a verdict in words. */
const char *verdict_name(enum verdict verdict);

/**
 * compare_variant() - Compare one variant.
 * @sandwich: all points
 * @name: of the variant
 * @comparison: to be filled; comparison_free() it
 *
 * Return: 0, or -1 when out of memory.
 */
int compare_variant(const struct sandwich *sandwich, const char *name,
		    struct comparison *comparison);

/** comparison_free() - Free all that compare_variant() has allocated. */
void comparison_free(struct comparison *comparison);

#endif
