// SPDX-License-Identifier: GPL-2.0
/*
 * Compares two kernels by the logs of their boots: reads the logs, compares variant by variant,
 * prints what came of it, and exits so that "git bisect run" understands it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <unistd.h>

#include "compare_notes.h"
#include "compare_print.h"

#define MAX_POINTS	99

enum {
	EXIT_NONE_SLOWER = 0,
	EXIT_SOME_SLOWER = 1,
	EXIT_USAGE = 2,
	EXIT_CANNOT_TELL = 125,
};

enum format {
	FORMAT_TEXT,
	FORMAT_JSON,
	FORMAT_ROUNDS,
	FORMAT_POINTS,
};

struct options {
	enum format format;
	const char *labels[MAX_POINTS];
	unsigned int nr_labels;
	const char *variants[LOG_MAX_VARIANTS];
	unsigned int nr_variants;
	char **logs;
	unsigned int nr_logs;
};

static const char help[] =
"Usage: compare [options] LOG LOG LOG...\n"
"\n"
"Compares two kernels, A and B, by logs of fresh boots of A, B, A... in this order.\n"
"A log is the console output, or just the output, of a test that prints rounds.\n"
"\n"
"  --label NAME    name the points: twice, for A and B, or once for each log, where\n"
"                  the first name is that of all A points\n"
"  --variant NAME  compare this variant only; may be given more than once\n"
"  --json          print JSON\n"
"  --rounds        print all rounds as columns; the 6th is the figure that decides\n"
"  --points        print each point of what can be compared as columns: mean and interval\n"
"  -h, --help      print this\n"
"\n"
"A change counts if it is larger than the points of one kernel differ, and if its 95 %\n"
"confidence interval (Welch, on rounds) excludes 0; in counted mode, it must also be larger\n"
"than what timer ticks can make of a median. Exit status:\n"
"  0    no variant is slower\n"
"  1    some variant is slower\n"
"  125  cannot tell: no variant is slower, but one cannot be compared, or there is none\n"
"  2    wrong usage\n"
"With --rounds and --points it is 0 if there is anything to print, else 125.\n";

static noreturn void wrong_usage(const char *what, const char *which)
{
	fprintf(stderr, "compare: %s%s; compare -h says what is accepted\n", what, which);
	exit(EXIT_USAGE);
}

static void add_label(struct options *options, const char *label)
{
	if (!*label || strpbrk(label, " \t\r\n"))
		wrong_usage("a label is one word, not ", *label ? label : "nothing");
	if (options->nr_labels == MAX_POINTS)
		wrong_usage("too many labels at ", label);
	options->labels[options->nr_labels++] = label;
}

static void add_variant(struct options *options, const char *variant)
{
	if (options->nr_variants == LOG_MAX_VARIANTS)
		wrong_usage("too many variants at ", variant);
	options->variants[options->nr_variants++] = variant;
}

static void check_labels(const struct options *options)
{
	const char *b = NULL;
	unsigned int i;

	if (!options->nr_labels)
		return;
	if (options->nr_labels != 2 && options->nr_labels != options->nr_logs)
		wrong_usage("labels are for A and B, or for each log", "");
	for (i = 1; i < options->nr_labels; i++) {
		if (!strcmp(options->labels[i], options->labels[0]))
			continue;
		if (b && strcmp(options->labels[i], b))
			wrong_usage("there are two kernels, so no third label: ",
				    options->labels[i]);
		b = options->labels[i];
	}
	if (!b && options->nr_logs > 1)
		wrong_usage("all labels are the same: ", options->labels[0]);
}

static void parse_options(int argc, char **argv, struct options *options)
{
	enum { OPTION_JSON = 256, OPTION_ROUNDS, OPTION_POINTS, OPTION_LABEL, OPTION_VARIANT };
	static const struct option long_options[] = {
		{ "json", no_argument, NULL, OPTION_JSON },
		{ "rounds", no_argument, NULL, OPTION_ROUNDS },
		{ "points", no_argument, NULL, OPTION_POINTS },
		{ "label", required_argument, NULL, OPTION_LABEL },
		{ "variant", required_argument, NULL, OPTION_VARIANT },
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	int option;

	while ((option = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
		switch (option) {
		case OPTION_JSON:
			options->format = FORMAT_JSON;
			break;
		case OPTION_ROUNDS:
			options->format = FORMAT_ROUNDS;
			break;
		case OPTION_POINTS:
			options->format = FORMAT_POINTS;
			break;
		case OPTION_LABEL:
			add_label(options, optarg);
			break;
		case OPTION_VARIANT:
			add_variant(options, optarg);
			break;
		case 'h':
			fputs(help, stdout);
			exit(fflush(stdout) ? EXIT_CANNOT_TELL : EXIT_NONE_SLOWER);
		case ':':
			wrong_usage("a name is missing after ", argv[optind - 1]);
		default:
			wrong_usage("unknown option ", argv[optind - 1]);
		}
	}

	options->logs = argv + optind;
	options->nr_logs = argc - optind;
	if (options->nr_logs < (options->format == FORMAT_ROUNDS ? 1 : 2))
		wrong_usage("too few logs", "");
	if (options->nr_logs > MAX_POINTS)
		wrong_usage("too many logs", "");
	check_labels(options);
}

static void label_points(const struct options *options, struct point *points)
{
	unsigned int i;

	for (i = 0; i < options->nr_logs; i++) {
		points[i].label = i % 2 ? "B" : "A";
		if (options->nr_labels)
			points[i].label = options->labels[i % options->nr_labels];
		points[i].is_b = strcmp(points[i].label, points[0].label) != 0;
	}
}

/* What is wrong with a log is said once, here, and kept in the log for the verdicts. */
static void read_log(struct log *log, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || log_read(log, path, fd)) {
		log->path = path;
		snprintf(log->broken, sizeof(log->broken), "cannot be read: %s", strerror(errno));
		fprintf(stderr, "compare: %s: %s\n", path, log->broken);
	} else if (*log->broken) {
		fprintf(stderr, "compare: %s: %s\n", path, log->broken);
	} else if (log->nr_damaged) {
		fprintf(stderr, "compare: %s: %s", path, log->first_damage);
		if (log->nr_damaged > 1)
			fprintf(stderr, " (and %lu more such lines)", log->nr_damaged - 1);
		fputc('\n', stderr);
	} else if (!log->variants) {
		fprintf(stderr, "compare: %s: no rounds of any test in it\n", path);
	}
	if (fd >= 0)
		close(fd);
}

static bool is_listed(const char *const *names, unsigned int nr, const char *name)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

/* All variants that have rounds at some point, unless the user wants certain ones. */
static const char **choose_variants(const struct options *options,
				    const struct sandwich *sandwich, unsigned int *nr)
{
	const struct variant *variant;
	const char **names;
	unsigned int i, most = options->nr_variants;

	for (i = 0; i < sandwich->nr_points; i++)
		most += sandwich->points[i].log.nr_variants;
	names = calloc(most + 1, sizeof(*names));
	*nr = 0;
	if (!names)
		return NULL;
	for (i = 0; i < options->nr_variants; i++)
		if (!is_listed(names, *nr, options->variants[i]))
			names[(*nr)++] = options->variants[i];
	if (*nr)
		return names;

	for (i = 0; i < sandwich->nr_points; i++) {
		variant = sandwich->points[i].log.variants;
		for (; variant; variant = variant->next)
			if ((variant->nr_rounds || variant->damage) &&
			    !is_listed(names, *nr, variant->name))
				names[(*nr)++] = variant->name;
	}
	return names;
}

static int exit_status(const struct comparison *comparisons, unsigned int nr)
{
	int status = nr ? EXIT_NONE_SLOWER : EXIT_CANNOT_TELL;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		if (comparisons[i].verdict == VERDICT_SLOWER)
			return EXIT_SOME_SLOWER;
		if (comparisons[i].verdict == VERDICT_NOT_COMPARABLE)
			status = EXIT_CANNOT_TELL;
	}
	return status;
}

static int cannot_tell(const char *why)
{
	fprintf(stderr, "compare: %s\n", why);
	return EXIT_CANNOT_TELL;
}

/* Compares and prints. Returns the exit status. */
static int compare(enum format format, const struct sandwich *sandwich, const char *const *names,
		   unsigned int nr)
{
	struct comparison *comparisons = calloc(nr + 1, sizeof(*comparisons));
	char *notes = make_notes(sandwich);
	struct report report = {
		.sandwich = sandwich,
		.comparisons = comparisons,
		.nr_comparisons = nr,
		.notes = notes,
	};
	unsigned int i;
	bool failed;

	failed = !comparisons || !notes;
	for (i = 0; i < nr && !failed; i++)
		failed = compare_variant(sandwich, names[i], &comparisons[i]);
	if (failed)
		return cannot_tell("out of memory");

	report.status = exit_status(comparisons, nr);
	if (format == FORMAT_TEXT)
		print_text(&report, stdout);
	else if (format == FORMAT_JSON)
		print_json(&report, stdout);
	else
		report.status = print_points(&report, stdout) ? EXIT_NONE_SLOWER : EXIT_CANNOT_TELL;

	for (i = 0; i < nr; i++)
		comparison_free(&comparisons[i]);
	free(comparisons);
	free(notes);
	return report.status;
}

int main(int argc, char **argv)
{
	static struct options options;
	static struct point points[MAX_POINTS];
	struct sandwich sandwich = { .points = points };
	const char **names;
	unsigned int i, nr;
	int status;

	parse_options(argc, argv, &options);
	sandwich.nr_points = options.nr_logs;
	label_points(&options, points);
	for (i = 0; i < options.nr_logs; i++)
		read_log(&points[i].log, options.logs[i]);

	names = choose_variants(&options, &sandwich, &nr);
	if (!names)
		return cannot_tell("out of memory");
	if (options.format != FORMAT_ROUNDS)
		status = compare(options.format, &sandwich, names, nr);
	else if (print_rounds(&sandwich, names, nr, stdout))
		status = EXIT_NONE_SLOWER;
	else
		status = EXIT_CANNOT_TELL;
	if (!nr)
		cannot_tell("there are no rounds to compare");
	if (fflush(stdout) || ferror(stdout))
		status = cannot_tell("the output cannot be written");

	for (i = 0; i < options.nr_logs; i++)
		log_free(&points[i].log);
	free(names);
	return status;
}
