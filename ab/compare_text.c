// SPDX-License-Identifier: GPL-2.0
/* Tables for people: one a variant, then a summary. */
#define _GNU_SOURCE
#include <math.h>
#include <string.h>

#include "compare_print.h"

#define MEAN_WIDTH	11
#define DEVIATION_WIDTH	9
#define PHASE_WIDTH	10
#define SUMMARY_WIDTH	12

/* Widths of the columns left of the figures, and of all that is there. */
struct stub {
	int label;
	int kernel;
	int all;
};

static int max_int(int a, int b)
{
	return a > b ? a : b;
}

static int column_width(const char *phase_key)
{
	return max_int(PHASE_WIDTH, phase_name_length(phase_key) + 1);
}

static const char *label_of_b(const struct sandwich *sandwich)
{
	const struct point *point = sandwich->points;

	while (!point->is_b)
		point++;
	return point->label;
}

static struct stub measure_stub(const struct sandwich *sandwich)
{
	struct stub stub = { .label = strlen("point"), .kernel = strlen("kernel") };
	unsigned int i;

	for (i = 0; i < sandwich->nr_points; i++) {
		stub.label = max_int(stub.label, strlen(sandwich->points[i].label));
		stub.kernel = max_int(stub.kernel, strlen(point_kernel(&sandwich->points[i])));
	}
	stub.all = max_int(stub.label + stub.kernel + strlen("    rounds"),
			   stub.label + strlen("drift, first to last "));
	return stub;
}

/* Prints two texts as one, filled up to the width of the stub. */
static void print_stub(const struct stub *stub, const char *text, const char *more, FILE *out)
{
	int width = fprintf(out, "  %s%s", text, more);

	fprintf(out, "%*s", max_int(stub->all + 2 - width, 0), "");
}

static void print_percent(double value, int width, FILE *out)
{
	if (isnan(value))
		fprintf(out, "%*s", width, "unknown");
	else
		fprintf(out, "%+*.2f %%", max_int(width - 2, 0), fabs(value) < 0.005 ? 0 : value);
}

static void print_points_table(const struct report *report, const struct comparison *comparison,
			       const struct stub *stub, FILE *out)
{
	const struct point *points = report->sandwich->points;
	int rounds_width = stub->all - stub->label - stub->kernel - 2;
	unsigned int i, phase;

	fprintf(out, "  %-*s  %-*s%*s%*s%*s", stub->label, "point", stub->kernel, "kernel",
		rounds_width, "rounds", MEAN_WIDTH, "mean", DEVIATION_WIDTH, "SD");
	for (phase = 0; phase < comparison->nr_phases; phase++) {
		const char *key = comparison->phase_keys[phase];
		int length = phase_name_length(key);

		fprintf(out, "%*s%.*s", column_width(key) - length, "", length, key);
	}
	fputc('\n', out);

	for (i = 0; i < report->sandwich->nr_points; i++) {
		const struct point_figures *figures = &comparison->points[i];

		fprintf(out, "  %-*s  %-*s%*u%*.3f%*.3f", stub->label, points[i].label,
			stub->kernel, point_kernel(&points[i]), rounds_width, figures->rounds,
			MEAN_WIDTH, figures->mean, DEVIATION_WIDTH, figures->deviation);
		for (phase = 0; phase < comparison->nr_phases; phase++)
			fprintf(out, "%*.2f", column_width(comparison->phase_keys[phase]),
				figures->phases[phase]);
		fputc('\n', out);
	}
}

static void print_change(const struct report *report, const struct comparison *comparison,
			 const struct stub *stub, FILE *out)
{
	const struct sandwich *sandwich = report->sandwich;
	unsigned int phase;

	print_stub(stub, "midpoint of ", sandwich->points->label, out);
	fprintf(out, "%*.3f%*s", MEAN_WIDTH, comparison->midpoint, DEVIATION_WIDTH, "");
	for (phase = 0; phase < comparison->nr_phases; phase++)
		fprintf(out, "%*.2f", column_width(comparison->phase_keys[phase]),
			comparison->phase_midpoints[phase]);
	fputc('\n', out);

	print_stub(stub, label_of_b(sandwich), " against it", out);
	print_percent(comparison->change, MEAN_WIDTH, out);
	fprintf(out, "%*s", DEVIATION_WIDTH, "");
	for (phase = 0; phase < comparison->nr_phases; phase++)
		print_percent(comparison->phase_changes[phase],
			      column_width(comparison->phase_keys[phase]), out);
	fputc('\n', out);

	print_stub(stub, "95 % interval", "", out);
	print_percent(comparison->low, MEAN_WIDTH, out);
	fputs(" to ", out);
	print_percent(comparison->high, 0, out);
	fputc('\n', out);

	print_stub(stub, "first rounds dropped", "", out);
	print_percent(comparison->change_first_dropped, MEAN_WIDTH, out);
	fputc('\n', out);

	print_stub(stub, "drift, first to last ", sandwich->points->label, out);
	print_percent(comparison->drift, MEAN_WIDTH, out);
	if (sandwich->nr_points > 3)
		fprintf(out, "; points of one kernel differ by %.2f %%", comparison->spread);
	fputc('\n', out);

	if (counts_instructions(sandwich->points)) {
		print_stub(stub, "timer's share, at most", "", out);
		fprintf(out, "%*.3f\n", MEAN_WIDTH, comparison->timer);
	}

	print_stub(stub, "page state", "", out);
	fputs(comparison->nr_states ? "   the same at every point" : "   unknown", out);
	if (comparison->nr_failed_tests)
		fprintf(out, ", and so are the tests that failed: %u",
			comparison->nr_failed_tests);
	fputc('\n', out);
}

/* "A 65536, B 0"; where one kernel's points differ, or one is alone, with the log it is in. */
static void print_obstacle(const struct report *report, const struct obstacle *obstacle, FILE *out)
{
	const struct point *points = report->sandwich->points;
	bool alone = obstacle->points[1] < 0;
	unsigned int i;

	fprintf(out, "%s: ", obstacle->field);
	for (i = 0; i < (alone ? 1 : 2); i++) {
		const struct point *point = &points[obstacle->points[i]];

		fprintf(out, "%s%s ", i ? ", " : "", point->label);
		if (alone || points[obstacle->points[0]].is_b == points[obstacle->points[1]].is_b)
			fprintf(out, "(%s) ", point->log.path);
		fputs(obstacle->values[i], out);
	}
}

static void print_verdict(const struct report *report, const struct comparison *comparison,
			  FILE *out)
{
	fputs(verdict_name(comparison->verdict), out);
	if (comparison->verdict == VERDICT_NOT_COMPARABLE) {
		fputs(": ", out);
		print_obstacle(report, &comparison->obstacle, out);
	} else if (*comparison->reason) {
		fprintf(out, " (%s)", comparison->reason);
	}
	fputc('\n', out);
}

static void print_table(const struct report *report, const struct comparison *comparison,
			const struct stub *stub, FILE *out)
{
	fputs(comparison->variant, out);
	if (comparison->verdict != VERDICT_NOT_COMPARABLE) {
		bool counted = counts_instructions(report->sandwich->points);

		fputs(counted ? ", instructions" : ", ns", out);
		if (*comparison->unit)
			fprintf(out, " per %s", comparison->unit);
		fputs(counted ? ", medians of the rounds\n" : "\n", out);
		print_points_table(report, comparison, stub, out);
		print_change(report, comparison, stub, out);
	} else {
		fputc('\n', out);
	}
	print_stub(stub, "verdict", "", out);
	fputs("   ", out);
	print_verdict(report, comparison, out);
	fputc('\n', out);
}

static void print_summary(const struct report *report, FILE *out)
{
	int width = strlen("variant");
	unsigned int i;

	for (i = 0; i < report->nr_comparisons; i++)
		width = max_int(width, strlen(report->comparisons[i].variant));

	fprintf(out, "%-*s%*s%*s   verdict\n", width, "variant", SUMMARY_WIDTH, "change",
		SUMMARY_WIDTH, "drift");
	for (i = 0; i < report->nr_comparisons; i++) {
		const struct comparison *comparison = &report->comparisons[i];

		fprintf(out, "%-*s", width, comparison->variant);
		if (comparison->verdict == VERDICT_NOT_COMPARABLE) {
			fprintf(out, "%*s%*s", SUMMARY_WIDTH, "-", SUMMARY_WIDTH, "-");
		} else {
			print_percent(comparison->change, SUMMARY_WIDTH, out);
			print_percent(comparison->drift, SUMMARY_WIDTH, out);
		}
		fputs("   ", out);
		print_verdict(report, comparison, out);
	}
}

void print_text(const struct report *report, FILE *out)
{
	const struct sandwich *sandwich = report->sandwich;
	struct stub stub = measure_stub(sandwich);
	const char *note, *end;
	unsigned int i;

	for (i = 0; i < sandwich->nr_points; i++)
		fprintf(out, "%-*s  %-*s  %s\n", stub.label, sandwich->points[i].label,
			stub.kernel, point_kernel(&sandwich->points[i]),
			sandwich->points[i].log.path);
	for (note = report->notes; (end = strchr(note, '\n')); note = end + 1)
		fprintf(out, "note: %.*s\n", (int)(end - note), note);
	if (!report->nr_comparisons)
		return;
	fputc('\n', out);

	for (i = 0; i < report->nr_comparisons; i++)
		print_table(report, &report->comparisons[i], &stub, out);
	print_summary(report, out);
}
