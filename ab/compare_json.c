// SPDX-License-Identifier: GPL-2.0
/* One JSON object for programs. What is not known is null. */
#define _GNU_SOURCE
#include <math.h>
#include <string.h>

#include "compare_print.h"

/* A byte beyond ASCII is taken for Latin-1: the name of a file may be anything. */
static void print_bytes(const char *bytes, size_t length, FILE *out)
{
	size_t i;

	fputc('"', out);
	for (i = 0; i < length; i++) {
		unsigned char byte = bytes[i];

		if (byte == '"' || byte == '\\')
			fprintf(out, "\\%c", byte);
		else if (byte < ' ' || byte > '~')
			fprintf(out, "\\u%04x", byte);
		else
			fputc(byte, out);
	}
	fputc('"', out);
}

static void print_string(const char *string, FILE *out)
{
	print_bytes(string, strlen(string), out);
}

static void print_number(double value, FILE *out)
{
	if (isfinite(value))
		fprintf(out, "%.6f", value);
	else
		fputs("null", out);
}

static void print_member(const char *key, double value, FILE *out)
{
	fprintf(out, ", \"%s\": ", key);
	print_number(value, out);
}

static void print_phases(const char *key, const struct comparison *comparison,
			 const double *values, FILE *out)
{
	unsigned int phase;

	fprintf(out, ", \"%s\": {", key);
	for (phase = 0; phase < comparison->nr_phases; phase++) {
		const char *phase_key = comparison->phase_keys[phase];

		fputs(phase ? ", " : "", out);
		print_bytes(phase_key, phase_name_length(phase_key), out);
		fputs(": ", out);
		print_number(values[phase], out);
	}
	fputc('}', out);
}

static void print_obstacle(const struct obstacle *obstacle, FILE *out)
{
	unsigned int i;

	fputs(", \"field\": ", out);
	print_string(obstacle->field, out);
	fputs(", \"at\": [", out);
	for (i = 0; i < 2 && obstacle->points[i] >= 0; i++) {
		fprintf(out, "%s{\"point\": %d, \"value\": ", i ? ", " : "",
			obstacle->points[i] + 1);
		print_string(obstacle->values[i], out);
		fputc('}', out);
	}
	fputc(']', out);
}

static void print_figures(const struct report *report, const struct comparison *comparison,
			  FILE *out)
{
	unsigned int i;

	fputs(", \"reason\": ", out);
	print_string(comparison->reason, out);
	fputs(", \"figure\": ", out);
	print_string(comparison->key, out);
	fputs(", \"unit\": ", out);
	print_string(comparison->unit, out);
	print_member("midpoint", comparison->midpoint, out);
	print_member("b", comparison->b, out);
	print_member("change_percent", comparison->change, out);
	print_member("low_percent", comparison->low, out);
	print_member("high_percent", comparison->high, out);
	print_member("first_dropped_percent", comparison->change_first_dropped, out);
	print_member("drift_percent", comparison->drift, out);
	print_member("spread_percent", comparison->spread, out);
	print_member("timer_share", comparison->timer, out);
	print_phases("phases_midpoint", comparison, comparison->phase_midpoints, out);
	print_phases("phases_change_percent", comparison, comparison->phase_changes, out);
	fprintf(out, ", \"page_states_same\": %u, \"failed_tests\": %u, \"points\": [",
		comparison->nr_states, comparison->nr_failed_tests);
	for (i = 0; i < report->sandwich->nr_points; i++) {
		const struct point_figures *figures = &comparison->points[i];

		fprintf(out, "%s\n    {\"point\": %u, \"rounds\": %u", i ? "," : "", i + 1,
			figures->rounds);
		print_member("mean", figures->mean, out);
		print_member("sd", figures->deviation, out);
		print_member("half_interval", figures->half_interval, out);
		print_phases("phases", comparison, figures->phases, out);
		fputc('}', out);
	}
	fputc(']', out);
}

static void print_point(const struct point *point, unsigned int number, FILE *out)
{
	const struct fields *env = point->log.env;
	unsigned int i;

	fprintf(out, "{\"point\": %u, \"label\": ", number);
	print_string(point->label, out);
	fprintf(out, ", \"is_b\": %s, \"log\": ", point->is_b ? "true" : "false");
	print_string(point->log.path, out);
	fputs(", \"env\": {", out);
	for (i = 0; env && i < env->nr; i++) {
		fputs(i ? ", " : "", out);
		print_string(env->at[i].key, out);
		fputs(": ", out);
		print_string(env->at[i].value, out);
	}
	fputs("}}", out);
}

static void print_variant(const struct report *report, const struct comparison *comparison,
			  FILE *out)
{
	fputs("{\"variant\": ", out);
	print_string(comparison->variant, out);
	fputs(", \"verdict\": ", out);
	print_string(verdict_name(comparison->verdict), out);
	if (comparison->verdict == VERDICT_NOT_COMPARABLE)
		print_obstacle(&comparison->obstacle, out);
	else
		print_figures(report, comparison, out);
	fputc('}', out);
}

void print_json(const struct report *report, FILE *out)
{
	const struct sandwich *sandwich = report->sandwich;
	const char *note, *end;
	unsigned int i;

	fprintf(out, "{\"status\": %d, \"clock\": \"%s\",\n \"notes\": [", report->status,
		counts_instructions(sandwich->points) ? "instructions" : "time");
	for (note = report->notes; (end = strchr(note, '\n')); note = end + 1) {
		fputs(note == report->notes ? "\n  " : ",\n  ", out);
		print_bytes(note, end - note, out);
	}
	fputs("],\n \"points\": [", out);
	for (i = 0; i < sandwich->nr_points; i++) {
		fputs(i ? ",\n  " : "\n  ", out);
		print_point(&sandwich->points[i], i + 1, out);
	}
	fputs("],\n \"variants\": [", out);
	for (i = 0; i < report->nr_comparisons; i++) {
		fputs(i ? ",\n  " : "\n  ", out);
		print_variant(report, &report->comparisons[i], out);
	}
	fputs("]}\n", out);
}
