// SPDX-License-Identifier: GPL-2.0
/*
 * First looks for anything at all that differs between the points beside time: only if there is
 * nothing, times mean something. Then a change must be larger than what the points of one kernel
 * differ by, than what chance may do, and in counted mode than what timer ticks may do.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare_statistics.h"
#include "compare_verdict.h"

/* Figures have two decimals: the last one may differ for no reason but rounding. */
#define RESOLUTION	0.0101

const char *point_kernel(const struct point *point)
{
	return field_value(point->log.env, "kernel") ?: "unknown";
}

bool counts_instructions(const struct point *point)
{
	const char *clock = field_value(point->log.env, "clock");

	return clock && !strcmp(clock, "instructions");
}

const char *outcome_name(enum outcome outcome)
{
	static const char *const names[] = {
		[OUTCOME_MISSING] = "missing",
		[OUTCOME_OK] = "ok",
		[OUTCOME_NOT_OK] = "not ok",
		[OUTCOME_SKIP] = "skip",
		[OUTCOME_XFAIL] = "xfail",
		[OUTCOME_XPASS] = "xpass",
	};

	return names[outcome];
}

const char *verdict_name(enum verdict verdict)
{
	static const char *const names[] = {
		[VERDICT_SLOWER] = "slower",
		[VERDICT_FASTER] = "faster",
		[VERDICT_NO_CHANGE] = "no change",
		[VERDICT_NOT_COMPARABLE] = "not comparable",
	};

	return names[verdict];
}

int variant_key(const struct variant *variant, const char *key)
{
	unsigned int i;

	for (i = 0; i < variant->nr_keys; i++)
		if (!strcmp(variant->keys[i], key))
			return i;
	return -1;
}

int total_key(const struct variant *variant, bool counted)
{
	return variant_key(variant, counted ? "cycle_median_ns" : "cycle_ns");
}

int phase_name_length(const char *key)
{
	int length = strlen(key) - strlen("_ns");

	return key_suffix_is(key, "_median_ns") ? length - (int)strlen("_median") : length;
}

static bool key_is_phase(const char *key)
{
	return !key_is_total(key) && !key_suffix_is(key, "_median_ns") &&
	       !key_suffix_is(key, "_min_ns") && !key_suffix_is(key, "_max_ns") &&
	       !key_suffix_is(key, "_sd_ns");
}

/* In counted mode the median, where there is one: it forgets the cycles that a timer cut into. */
static int phase_key(const struct variant *variant, unsigned int phase, bool counted)
{
	const char *key = variant->keys[phase];
	char median[64];
	int index;

	if (!counted)
		return phase;
	snprintf(median, sizeof(median), "%.*s_median_ns", (int)(strlen(key) - 3), key);
	index = variant_key(variant, median);
	return index >= 0 ? index : (int)phase;
}

/* Always returns true, so that the finder of an obstacle can return with it. */
static bool obstruct(struct obstacle *obstacle, const char *field, int point, const char *value,
		     int other_point, const char *other_value)
{
	snprintf(obstacle->field, sizeof(obstacle->field), "%s", field);
	obstacle->points[0] = point;
	obstacle->points[1] = other_point;
	snprintf(obstacle->values[0], sizeof(obstacle->values[0]), "%s", value ?: "missing");
	snprintf(obstacle->values[1], sizeof(obstacle->values[1]), "%s", other_value ?: "missing");
	return true;
}

static bool obstruct_alone(struct obstacle *obstacle, const char *field, int point,
			   const char *value)
{
	return obstruct(obstacle, field, point, value, -1, "");
}

static bool strings_differ(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) != 0 : a != b;
}

static bool logs_differ(const struct sandwich *sandwich, struct obstacle *obstacle)
{
	static const char *const must_agree[] = {
		"machine", "page_kb", "pmd_kb", "cpus", "clock",
	};
	const struct point *points = sandwich->points;
	unsigned int i, j, first_b = 0;
	char field[32];

	for (i = 0; i < sandwich->nr_points; i++) {
		if (*points[i].log.broken)
			return obstruct_alone(obstacle, "log", i, points[i].log.broken);
		if (!points[i].log.variants)
			return obstruct_alone(obstacle, "log", i, "no rounds in it");
		if (!points[i].log.env)
			return obstruct_alone(obstacle, "env", i, "missing");
		if (points[i].is_b && !first_b)
			first_b = i;
	}
	for (i = 1; i < sandwich->nr_points; i++) {
		const struct fields *env = points[i].log.env, *first = points[0].log.env;
		unsigned int same = points[i].is_b ? first_b : 0;

		for (j = 0; j < sizeof(must_agree) / sizeof(*must_agree); j++) {
			const char *value = field_value(env, must_agree[j]);
			const char *first_value = field_value(first, must_agree[j]);

			if (!strings_differ(value, first_value))
				continue;
			snprintf(field, sizeof(field), "env %s", must_agree[j]);
			return obstruct(obstacle, field, 0, first_value, i, value);
		}
		first = points[same].log.env;
		if (strings_differ(field_value(env, "kernel"), field_value(first, "kernel")))
			return obstruct(obstacle, "env kernel", same, field_value(first, "kernel"),
					i, field_value(env, "kernel"));
	}
	return false;
}

/* Is there anything about the variant at each point, and all of it sound? */
static bool variants_lack(const struct sandwich *sandwich, struct variant *const *variants,
			  struct obstacle *obstacle)
{
	unsigned int i;

	for (i = 0; i < sandwich->nr_points; i++)
		if (variants[i] && variants[i]->damage)
			return obstruct_alone(obstacle, "log", i, variants[i]->damage);
	for (i = 0; i < sandwich->nr_points; i++)
		if (!variants[i])
			return obstruct_alone(obstacle, "variant", i, "not there");
	return false;
}

/* Was the variant measured at each point, and did all that was measured reach us? */
static bool rounds_lack(const struct sandwich *sandwich, struct variant *const *variants,
			struct obstacle *obstacle)
{
	char rounds[2][24];
	unsigned int i;

	for (i = 0; i < sandwich->nr_points; i++) {
		unsigned int nr = variants[i]->nr_rounds, first_nr = variants[0]->nr_rounds;

		snprintf(rounds[0], sizeof(rounds[0]), first_nr ? "%u" : "none", first_nr);
		snprintf(rounds[1], sizeof(rounds[1]), nr ? "%u" : "none", nr);
		if (nr != first_nr)
			return obstruct(obstacle, "rounds", 0, rounds[0], i, rounds[1]);
		if (!nr)
			return obstruct_alone(obstacle, "rounds", i, "none");
		if (nr < 2)
			return obstruct_alone(obstacle, "rounds", i, "one alone has no interval");
		if (!variants[i]->has_cost)
			return obstruct_alone(obstacle, "cost", i, "missing, the log is cut off");
	}
	return false;
}

static bool state_differs(int point, const struct fields *first, const struct fields *state,
			  struct obstacle *obstacle)
{
	const char *phase = field_value(first, "phase"), *value = field_value(state, "phase");
	char field[128];
	unsigned int i;

	if (strings_differ(phase, value))
		return obstruct(obstacle, "state phase", 0, phase, point, value);
	for (i = 0; i < first->nr + state->nr; i++) {
		const char *key = i < first->nr ? first->at[i].key : state->at[i - first->nr].key;

		value = field_value(state, key);
		if (!strings_differ(field_value(first, key), value))
			continue;
		snprintf(field, sizeof(field), "state %s %s", phase, key);
		return obstruct(obstacle, field, 0, field_value(first, key), point, value);
	}
	return false;
}

static bool states_differ(const struct sandwich *sandwich, struct variant *const *variants,
			  struct obstacle *obstacle)
{
	const struct fields *first, *state;
	unsigned int i;

	for (i = 1; i < sandwich->nr_points; i++) {
		first = variants[0]->states;
		state = variants[i]->states;
		while (first || state) {
			if (state_differs(i, first, state, obstacle))
				return true;
			first = first->next;
			state = state->next;
		}
	}
	return false;
}

static bool test_differs(int point, int other, const struct sandwich *sandwich,
			 const char *variant, struct obstacle *obstacle)
{
	const struct log *log = &sandwich->points[point].log;
	const struct log *other_log = &sandwich->points[other].log;
	const struct test *test;
	char field[128];

	for (test = log->tests; test; test = test->next) {
		enum outcome outcome = log_outcome(other_log, test->name);

		if (!test_is_of_variant(test->name, variant))
			continue;
		snprintf(field, sizeof(field), "test %s", test->name);
		if (test->twice)
			return obstruct_alone(obstacle, field, point,
					      "there twice: two runs in one log");
		if (outcome != test->outcome)
			return obstruct(obstacle, field, point, outcome_name(test->outcome),
					other, outcome_name(outcome));
	}
	return false;
}

static bool tests_differ(const struct sandwich *sandwich, const char *variant,
			 struct obstacle *obstacle)
{
	unsigned int i;

	for (i = 1; i < sandwich->nr_points; i++)
		if (test_differs(0, i, sandwich, variant, obstacle) ||
		    test_differs(i, 0, sandwich, variant, obstacle))
			return true;
	return false;
}

/* Faults are the fewest of all rounds: what else the machine does can add some to a round. */
static long long least_faults(const struct variant *variant)
{
	const struct round *round;
	long long least = variant->rounds->counts[COUNT_FAULTS];

	for (round = variant->rounds; round; round = round->next)
		if (round->counts[COUNT_FAULTS] < least)
			least = round->counts[COUNT_FAULTS];
	return least;
}

static bool count_differs(enum round_count which, long long first, int point, long long count,
			  struct obstacle *obstacle)
{
	char texts[2][24];

	if (count == first)
		return false;
	snprintf(texts[0], sizeof(texts[0]), "%lld", first);
	snprintf(texts[1], sizeof(texts[1]), "%lld", count);
	return obstruct(obstacle, round_count_names[which], 0, first < 0 ? NULL : texts[0],
			point, count < 0 ? NULL : texts[1]);
}

/* Did all rounds at all points do the same? A round that ended early did not. */
static bool counts_differ(const struct sandwich *sandwich, struct variant *const *variants,
			  struct obstacle *obstacle)
{
	const struct round *first = variants[0]->rounds, *round;
	unsigned int i, j;

	for (i = 0; i < sandwich->nr_points; i++) {
		for (round = variants[i]->rounds; round; round = round->next)
			for (j = 0; j < COUNT_FAULTS; j++)
				if (count_differs(j, first->counts[j], i, round->counts[j],
						  obstacle))
					return true;
		if (count_differs(COUNT_FAULTS, least_faults(variants[0]), i,
				  least_faults(variants[i]), obstacle))
			return true;
	}
	return false;
}

static bool keys_differ(const struct sandwich *sandwich, struct variant *const *variants,
			struct obstacle *obstacle)
{
	unsigned int i, j;

	for (i = 1; i < sandwich->nr_points; i++) {
		for (j = 0; j < variants[0]->nr_keys || j < variants[i]->nr_keys; j++) {
			const char *first = NULL, *key = NULL;

			if (j < variants[0]->nr_keys)
				first = variants[0]->keys[j];
			if (j < variants[i]->nr_keys)
				key = variants[i]->keys[j];
			if (strings_differ(first, key))
				return obstruct(obstacle, "key of a round", 0, first, i, key);
		}
	}
	return false;
}

static bool figures_lack(const struct sandwich *sandwich, struct variant *const *variants,
			 struct obstacle *obstacle)
{
	bool counted = counts_instructions(&sandwich->points[0]);
	int key = total_key(variants[0], counted);
	const struct round *round;
	unsigned int i;

	if (key < 0)
		return obstruct_alone(obstacle, counted ? "cycle_median_ns" : "cycle_ns", 0,
				      "missing");
	for (i = 0; i < sandwich->nr_points; i++)
		for (round = variants[i]->rounds; round; round = round->next)
			if (!(round->ns[key] > 0))
				return obstruct_alone(obstacle, variants[0]->keys[key], i, "0");
	return false;
}

/* The page state comes before all that is measured: what differs there explains the rest. */
static bool find_obstacle(const struct sandwich *sandwich, const char *name,
			  struct variant *const *variants, struct obstacle *obstacle)
{
	return logs_differ(sandwich, obstacle) ||
	       variants_lack(sandwich, variants, obstacle) ||
	       states_differ(sandwich, variants, obstacle) ||
	       rounds_lack(sandwich, variants, obstacle) ||
	       tests_differ(sandwich, name, obstacle) ||
	       counts_differ(sandwich, variants, obstacle) ||
	       keys_differ(sandwich, variants, obstacle) ||
	       figures_lack(sandwich, variants, obstacle);
}

/* Returns the number of rounds. */
static unsigned int get_values(const struct variant *variant, int key, double *values)
{
	const struct round *round;
	unsigned int nr = 0;

	for (round = variant->rounds; round; round = round->next)
		values[nr++] = round->ns[key];
	return nr;
}

static unsigned int count_points(const struct sandwich *sandwich, bool is_b)
{
	unsigned int i, nr = 0;

	for (i = 0; i < sandwich->nr_points; i++)
		nr += sandwich->points[i].is_b == is_b;
	return nr;
}

static double percent(double value, double of)
{
	return of > 0 ? 100 * value / of : NAN;
}

/* The mean of one kernel's points. */
static double mean_of_points(const struct sandwich *sandwich, bool is_b, const double *figures)
{
	double sum = 0;
	unsigned int i;

	for (i = 0; i < sandwich->nr_points; i++)
		if (sandwich->points[i].is_b == is_b)
			sum += figures[i];
	return sum / count_points(sandwich, is_b);
}

/* How far the points of one kernel lie apart, against the first of them, in percent. */
static double spread_of_points(const struct sandwich *sandwich, bool is_b, const double *means)
{
	double least = INFINITY, most = 0, first = 0;
	unsigned int i;

	for (i = 0; i < sandwich->nr_points; i++) {
		if (sandwich->points[i].is_b != is_b)
			continue;
		if (first == 0)
			first = means[i];
		least = fmin(least, means[i]);
		most = fmax(most, means[i]);
	}
	return percent(most - least, first);
}

/* From the first A to the last. */
static double drift_of_points(const struct sandwich *sandwich, const double *means)
{
	unsigned int i, last = 0;

	for (i = 1; i < sandwich->nr_points; i++)
		if (!sandwich->points[i].is_b)
			last = i;
	return last ? percent(means[last] - means[0], means[0]) : NAN;
}

/* Where a cycle is some steps, no two cycles are the same, but every round does the same. */
static double spread_of_rounds(const double *values, unsigned int nr)
{
	double least = values[0], most = values[0];
	unsigned int i;

	for (i = 1; i < nr; i++) {
		least = fmin(least, values[i]);
		most = fmax(most, values[i]);
	}
	return most - least;
}

/*
 * How far the timer can move a median, where instructions are counted. A boot of the same kernel
 * hits the same cycles, so that the A points do not show it, but another kernel has its ticks
 * elsewhere. In cycles that are all the same, the rounds may not show it either: as no cycle takes
 * less than the least, at least half of them take no more than twice what the mean is above it.
 * One round that something else hit does not count.
 */
static double timer_share(const struct variant *variant, int key, double *values)
{
	int mean = variant_key(variant, "cycle_ns"), least = variant_key(variant, "cycle_min_ns");
	const struct round *round;
	unsigned int nr = 0;

	if (variant->rounds->counts[COUNT_STEPS] >= 0) {
		nr = get_values(variant, key, values);
		return 2 * spread_of_rounds(values, nr);
	}
	if (mean < 0 || least < 0)
		return 0;
	for (round = variant->rounds; round; round = round->next)
		values[nr++] = 2 * (round->ns[mean] - round->ns[least]);
	return sample_median(values, nr);
}

static void compare_totals(const struct sandwich *sandwich, struct variant *const *variants,
			   int key, double *values, double *means, struct comparison *comparison)
{
	bool counted = counts_instructions(&sandwich->points[0]);
	struct estimate difference = { 0 };
	double half, a, b;
	unsigned int i;

	for (i = 0; i < sandwich->nr_points; i++) {
		struct point_figures *figures = &comparison->points[i];
		bool is_b = sandwich->points[i].is_b;
		double share = 1.0 / count_points(sandwich, is_b);
		struct estimate alone = { 0 };

		figures->rounds = get_values(variants[i], key, values);
		figures->mean = sample_mean(values, figures->rounds);
		figures->deviation = sample_deviation(values, figures->rounds);
		add_mean(&alone, 1, values, figures->rounds);
		figures->half_interval = half_interval(&alone);
		add_mean(&difference, is_b ? share : -share, values, figures->rounds);
		means[i] = sample_mean(values + 1, figures->rounds - 1);
		if (counted)
			comparison->timer = fmax(comparison->timer,
						 timer_share(variants[i], key, values));
	}
	a = mean_of_points(sandwich, false, means);
	b = mean_of_points(sandwich, true, means);
	comparison->change_first_dropped = percent(b - a, a);

	for (i = 0; i < sandwich->nr_points; i++)
		means[i] = comparison->points[i].mean;
	a = mean_of_points(sandwich, false, means);
	b = mean_of_points(sandwich, true, means);
	half = half_interval(&difference);
	comparison->midpoint = a;
	comparison->b = b;
	comparison->change = percent(b - a, a);
	comparison->low = percent(difference.value - half, a);
	comparison->high = percent(difference.value + half, a);
	comparison->drift = drift_of_points(sandwich, means);
	comparison->spread = fmax(spread_of_points(sandwich, false, means),
				  spread_of_points(sandwich, true, means));
}

static void compare_phase(const struct sandwich *sandwich, struct variant *const *variants,
			  int key, double *values, double *means, struct comparison *comparison)
{
	unsigned int phase = comparison->nr_phases++, i, nr;
	double a;

	for (i = 0; i < sandwich->nr_points; i++) {
		nr = get_values(variants[i], key, values);
		means[i] = sample_mean(values, nr);
		comparison->points[i].phases[phase] = means[i];
	}
	a = mean_of_points(sandwich, false, means);
	comparison->phase_keys[phase] = variants[0]->keys[key];
	comparison->phase_midpoints[phase] = a;
	comparison->phase_changes[phase] =
		percent(mean_of_points(sandwich, true, means) - a, a);
}

static const char *unit_of(const struct round *round)
{
	if (round->counts[COUNT_STEPS] >= 0)
		return "step";
	return round->counts[COUNT_PAGES] >= 0 ? "page" : "";
}

static int compare_figures(const struct sandwich *sandwich, struct variant *const *variants,
			   struct comparison *comparison)
{
	bool counted = counts_instructions(&sandwich->points[0]);
	unsigned int nr_keys = variants[0]->nr_keys, i;
	int key = total_key(variants[0], counted), ret = -1;
	double *values, *means;

	values = calloc(variants[0]->nr_rounds, sizeof(*values));
	means = calloc(sandwich->nr_points, sizeof(*means));
	comparison->points = calloc(sandwich->nr_points, sizeof(*comparison->points));
	comparison->phase_keys = calloc(nr_keys, sizeof(*comparison->phase_keys));
	comparison->phase_midpoints = calloc(nr_keys, sizeof(double));
	comparison->phase_changes = calloc(nr_keys, sizeof(double));
	if (!values || !means || !comparison->points || !comparison->phase_keys ||
	    !comparison->phase_midpoints || !comparison->phase_changes)
		goto out;
	comparison->points->phases = calloc((size_t)sandwich->nr_points * nr_keys, sizeof(double));
	if (!comparison->points->phases)
		goto out;
	for (i = 1; i < sandwich->nr_points; i++)
		comparison->points[i].phases = comparison->points->phases + (size_t)i * nr_keys;

	comparison->key = variants[0]->keys[key];
	comparison->unit = unit_of(variants[0]->rounds);
	compare_totals(sandwich, variants, key, values, means, comparison);
	for (i = 0; i < nr_keys; i++)
		if (key_is_phase(variants[0]->keys[i]))
			compare_phase(sandwich, variants, phase_key(variants[0], i, counted),
				      values, means, comparison);
	ret = 0;
out:
	free(values);
	free(means);
	return ret;
}

static void decide(struct comparison *comparison)
{
	bool drift_known = !isnan(comparison->drift);

	comparison->verdict = VERDICT_NO_CHANGE;
	if (fabs(comparison->b - comparison->midpoint) <= RESOLUTION) {
		comparison->reason = "equal, but for rounding";
	} else if (comparison->low <= 0 && comparison->high >= 0) {
		comparison->reason = "the interval includes 0";
	} else if (fabs(comparison->change) <= comparison->spread) {
		comparison->reason = "not larger than the drift";
	} else if (fabs(comparison->b - comparison->midpoint) <= comparison->timer) {
		comparison->reason = "not larger than the timer's share";
	} else {
		comparison->verdict = comparison->change > 0 ? VERDICT_SLOWER : VERDICT_FASTER;
		comparison->reason = drift_known ? "" : "if nothing drifted";
	}
}

static unsigned int count_failed_tests(const struct log *log, const char *variant)
{
	const struct test *test;
	unsigned int nr = 0;

	for (test = log->tests; test; test = test->next)
		nr += test->outcome == OUTCOME_NOT_OK && test_is_of_variant(test->name, variant);
	return nr;
}

static unsigned int count_states(const struct variant *variant)
{
	const struct fields *state;
	unsigned int nr = 0;

	for (state = variant->states; state; state = state->next)
		nr++;
	return nr;
}

int compare_variant(const struct sandwich *sandwich, const char *name,
		    struct comparison *comparison)
{
	struct variant **variants;
	unsigned int i;
	int ret = 0;

	memset(comparison, 0, sizeof(*comparison));
	comparison->variant = name;
	comparison->verdict = VERDICT_NOT_COMPARABLE;
	comparison->reason = "";

	variants = calloc(sandwich->nr_points, sizeof(*variants));
	if (!variants)
		return -1;
	for (i = 0; i < sandwich->nr_points; i++)
		variants[i] = log_variant(&sandwich->points[i].log, name);

	if (!find_obstacle(sandwich, name, variants, &comparison->obstacle)) {
		comparison->nr_states = count_states(variants[0]);
		comparison->nr_failed_tests =
			count_failed_tests(&sandwich->points[0].log, name);
		ret = compare_figures(sandwich, variants, comparison);
		if (!ret)
			decide(comparison);
	}
	if (ret)
		comparison_free(comparison);
	free(variants);
	return ret;
}

void comparison_free(struct comparison *comparison)
{
	if (comparison->points)
		free(comparison->points->phases);
	free(comparison->points);
	free(comparison->phase_keys);
	free(comparison->phase_midpoints);
	free(comparison->phase_changes);
}
