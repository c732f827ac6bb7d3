// SPDX-License-Identifier: GPL-2.0
/* Columns with a header, for ministat, gnuplot, datamash and awk. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "compare_print.h"

/* Keys, each once, in the order they come. */
struct key_list {
	const char **keys;
	unsigned int nr;
};

static void add_keys(struct key_list *list, const struct variant *variant)
{
	const char **grown;
	unsigned int i, j;

	for (i = 0; i < variant->nr_keys; i++) {
		for (j = 0; j < list->nr && strcmp(list->keys[j], variant->keys[i]); j++)
			;
		if (j < list->nr)
			continue;
		grown = realloc(list->keys, (list->nr + 1) * sizeof(*grown));
		if (!grown)
			return;
		list->keys = grown;
		list->keys[list->nr++] = variant->keys[i];
	}
}

static void print_value(const struct round *round, int key, FILE *out)
{
	if (key < 0)
		fputs(" NA", out);
	else
		fprintf(out, " %.10g", round->ns[key]);
}

static unsigned long print_rounds_of_point(const struct sandwich *sandwich, unsigned int index,
					   const char *name, const struct key_list *list, FILE *out)
{
	const struct point *point = &sandwich->points[index];
	const struct variant *variant = log_variant(&point->log, name);
	const struct round *round;
	unsigned int i;

	if (!variant)
		return 0;
	for (round = variant->rounds; round; round = round->next) {
		fprintf(out, "%u %s %s %s %lld", index + 1, point->label, point_kernel(point),
			name, round->number);
		print_value(round, total_key(variant, counts_instructions(point)), out);
		for (i = 0; i < list->nr; i++)
			print_value(round, variant_key(variant, list->keys[i]), out);
		fputc('\n', out);
	}
	return variant->nr_rounds;
}

unsigned long print_rounds(const struct sandwich *sandwich, const char *const *names,
			   unsigned int nr_names, FILE *out)
{
	struct key_list list = { 0 };
	unsigned long nr_rounds = 0;
	unsigned int i, j;

	for (i = 0; i < nr_names; i++) {
		for (j = 0; j < sandwich->nr_points; j++) {
			const struct variant *variant =
				log_variant(&sandwich->points[j].log, names[i]);

			if (variant)
				add_keys(&list, variant);
		}
	}

	fputs("#point label kernel variant round figure", out);
	for (i = 0; i < list.nr; i++)
		fprintf(out, " %s", list.keys[i]);
	fputc('\n', out);
	for (i = 0; i < nr_names; i++)
		for (j = 0; j < sandwich->nr_points; j++)
			nr_rounds += print_rounds_of_point(sandwich, j, names[i], &list, out);
	free(list.keys);
	return nr_rounds;
}

unsigned long print_points(const struct report *report, FILE *out)
{
	const struct point *points = report->sandwich->points;
	unsigned long nr_rows = 0;
	unsigned int i, j;

	fputs("#point label kernel variant rounds mean sd low high unit change verdict\n", out);
	for (i = 0; i < report->nr_comparisons; i++) {
		const struct comparison *comparison = &report->comparisons[i];

		if (comparison->verdict == VERDICT_NOT_COMPARABLE)
			continue;
		for (j = 0; j < report->sandwich->nr_points; j++, nr_rows++) {
			const struct point_figures *figures = &comparison->points[j];

			fprintf(out, "%u %s %s %s %u %.4f %.4f %.4f %.4f ", j + 1,
				points[j].label, point_kernel(&points[j]), comparison->variant,
				figures->rounds, figures->mean, figures->deviation,
				figures->mean - figures->half_interval,
				figures->mean + figures->half_interval);
			fprintf(out, "%s/%s %.4f %s\n",
				counts_instructions(points) ? "instructions" : "ns",
				*comparison->unit ? comparison->unit : "unit", comparison->change,
				comparison->verdict == VERDICT_NO_CHANGE ? "no_change" :
				verdict_name(comparison->verdict));
		}
	}
	return nr_rows;
}
