// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare_notes.h"

static const struct point *first_b(const struct sandwich *sandwich)
{
	const struct point *point = sandwich->points;

	while (!point->is_b)
		point++;
	return point;
}

static void note_order(const struct sandwich *sandwich, FILE *notes)
{
	const struct point *points = sandwich->points;
	unsigned int i, j, nr_a = 0, last = sandwich->nr_points - 1;

	for (i = 0; i <= last; i++)
		nr_a += !points[i].is_b;
	if (nr_a < 2) {
		fprintf(notes, "only one %s: how far the machine drifted cannot be known\n",
			points->label);
		return;
	}
	for (i = 0, j = last; i < j; i++, j--) {
		if (points[i].is_b == points[j].is_b)
			continue;
		fputs("the points are not in symmetric order: a steady drift looks like a change\n",
		      notes);
		return;
	}
}

static void note_same_log(const struct sandwich *sandwich, FILE *notes)
{
	unsigned int i, j;

	for (i = 1; i < sandwich->nr_points; i++)
		for (j = 0; j < i; j++)
			if (!strcmp(sandwich->points[i].log.path, sandwich->points[j].log.path)) {
				fprintf(notes, "%s is given more than once\n",
					sandwich->points[i].log.path);
				return;
			}
}

static void note_kernels(const struct sandwich *sandwich, FILE *notes)
{
	const struct point *a = sandwich->points, *b = first_b(sandwich);
	const char *kernel = field_value(a->log.env, "kernel");
	const char *b_kernel = field_value(b->log.env, "kernel");

	if (kernel && b_kernel && !strcmp(kernel, b_kernel))
		fprintf(notes, "%s and %s are of the same kernel release, %s\n", a->label, b->label,
			kernel);
}

static void note_env(const struct sandwich *sandwich, FILE *notes)
{
	const struct point *points = sandwich->points;
	const struct fields *first = points->log.env;
	unsigned int i, j;

	for (i = 1; first && i < sandwich->nr_points; i++) {
		const struct fields *env = points[i].log.env;

		for (j = 0; env && j < env->nr; j++) {
			const char *key = env->at[j].key, *value = env->at[j].value;
			const char *first_value = field_value(first, key);

			if (!strcmp(key, "kernel") ||
			    (first_value && !strcmp(first_value, value)))
				continue;
			fprintf(notes, "env %s: %s %s, %s %s\n", key, points->label,
				first_value ?: "missing", points[i].label, value);
		}
	}
}

static bool test_is_of_any_variant(const struct log *log, const char *name)
{
	const struct variant *variant;

	for (variant = log->variants; variant; variant = variant->next)
		if (test_is_of_variant(name, variant->name))
			return true;
	return false;
}

/* A test of a variant is compared with the variant. */
static void note_tests(const struct sandwich *sandwich, FILE *notes)
{
	const struct point *points = sandwich->points;
	const struct test *test;
	unsigned int i;

	for (i = 1; i < sandwich->nr_points; i++) {
		for (test = points->log.tests; test; test = test->next) {
			enum outcome outcome = log_outcome(&points[i].log, test->name);

			if (outcome == test->outcome || outcome == OUTCOME_MISSING ||
			    test_is_of_any_variant(&points->log, test->name))
				continue;
			fprintf(notes, "test %s: %s %s, %s %s\n", test->name, points->label,
				outcome_name(test->outcome), points[i].label,
				outcome_name(outcome));
			return;
		}
	}
}

static void note_variants_without_rounds(const struct sandwich *sandwich, FILE *notes)
{
	const struct variant *variant, *other;
	unsigned int i;

	for (variant = sandwich->points->log.variants; variant; variant = variant->next) {
		for (i = 0; i < sandwich->nr_points; i++) {
			other = log_variant(&sandwich->points[i].log, variant->name);
			if (other && (other->nr_rounds || other->damage))
				break;
		}
		if (i == sandwich->nr_points)
			fprintf(notes, "%s has no rounds at any point\n", variant->name);
	}
}

char *make_notes(const struct sandwich *sandwich)
{
	char *text = NULL;
	size_t size;
	FILE *notes = open_memstream(&text, &size);

	if (!notes)
		return NULL;
	if (counts_instructions(sandwich->points))
		fputs("instructions are counted: no cache miss, TLB miss or stall can be seen\n",
		      notes);
	note_order(sandwich, notes);
	note_same_log(sandwich, notes);
	note_kernels(sandwich, notes);
	note_env(sandwich, notes);
	note_tests(sandwich, notes);
	note_variants_without_rounds(sandwich, notes);
	if (fclose(notes)) {
		free(text);
		return NULL;
	}
	return text;
}
