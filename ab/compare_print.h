/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Prints what was compared: for people, for programs, and as columns.
 */
#ifndef COMPARE_PRINT_H
#define COMPARE_PRINT_H

#include <stdio.h>

#include "compare_verdict.h"

/**
 * struct report - all there is to print
 * @sandwich: the points
 * @comparisons: the variants that were compared, or should have been
 * @nr_comparisons: how many
 * @notes: as make_notes() returns them
 * @status: the exit status that follows from all verdicts
 */
struct report {
	const struct sandwich *sandwich;
	const struct comparison *comparisons;
	unsigned int nr_comparisons;
	const char *notes;
	int status;
};

/** print_text() - Print tables, and a summary with one line a variant. */
void print_text(const struct report *report, FILE *out);

/** print_json() - Print one object; what is not known is null. */
void print_json(const struct report *report, FILE *out);

/**
 * print_rounds() - Print all rounds as columns, whether they can be compared or not.
 * @sandwich: the points; one is enough
 * @names: of the variants
 * @nr_names: how many
 * @out: where to print
 *
 * Return: how many rounds.
 */
unsigned long print_rounds(const struct sandwich *sandwich, const char *const *names,
			   unsigned int nr_names, FILE *out);

/**
 * print_points() - Print a row for each point of each variant that was compared, as columns.
 *
 * Return: how many rows.
 */
unsigned long print_points(const struct report *report, FILE *out);

#endif
