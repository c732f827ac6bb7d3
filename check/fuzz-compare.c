// SPDX-License-Identifier: GPL-2.0
/*
 * Feeds three logs, split at lines of "====", to all of compare but its main(): whatever they are,
 * it may not crash, leak or take long, and only a finite change may be called one.
 *
 * To fuzz for ten minutes, with what is in corpus/ to begin with, and new finds going there:
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
 *	-Dfuzz_one_input=LLVMFuzzerTestOneInput -o fuzz check/fuzz-*.c ab/compare_*.c -lm
 *   ./fuzz -max_total_time=600 -max_len=16384 corpus/
 *
 * With -DREPLAY instead, and without "fuzzer", it is a program that runs through the files it is
 * given and prints how many they were.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../ab/compare_notes.h"
#include "../ab/compare_print.h"

#define NR_POINTS	3
#define ROUNDING	0.000001
#define SEPARATOR	"\n====\n"

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void read_bytes(struct log *log, const void *bytes, size_t length)
{
	static int fd = -1;

	if (fd < 0)
		fd = memfd_create("log", MFD_CLOEXEC);
	require(fd >= 0 && !ftruncate(fd, 0));
	require(pwrite(fd, bytes, length, 0) == (ssize_t)length && !lseek(fd, 0, SEEK_SET));
	require(!log_read(log, "log", fd));
}

static void check_comparison(const struct comparison *comparison)
{
	if (comparison->verdict == VERDICT_NOT_COMPARABLE) {
		require(*comparison->obstacle.field && *comparison->obstacle.values[0]);
		return;
	}
	require(isfinite(comparison->change) && isfinite(comparison->change_first_dropped));
	/* All but equal when nothing varies. */
	require(comparison->low <= comparison->change + ROUNDING);
	require(comparison->high >= comparison->change - ROUNDING);
	require(isfinite(comparison->drift) && comparison->spread >= 0);
}

/* Called by libFuzzer, under the name it wants. */
int fuzz_one_input(const char *data, size_t size)
{
	struct point points[NR_POINTS] = {
		{ .label = "A" }, { .label = "B", .is_b = true }, { .label = "A" }
	};
	const struct sandwich sandwich = { .points = points, .nr_points = NR_POINTS };
	static struct comparison comparisons[LOG_MAX_VARIANTS];
	static const char *names[LOG_MAX_VARIANTS];
	struct report report = { .sandwich = &sandwich, .comparisons = comparisons };
	const struct variant *variant;
	unsigned int i;
	size_t length;
	char *notes, *text = NULL;
	FILE *out;

	for (i = 0; i < NR_POINTS; i++) {
		const char *end = size ? memmem(data, size, SEPARATOR, strlen(SEPARATOR)) : NULL;

		length = end ? (size_t)(end - data) + 1 : size;
		read_bytes(&points[i].log, data, length);
		data += length;
		size -= length;
		if (end) {
			data += strlen(SEPARATOR) - 1;
			size -= strlen(SEPARATOR) - 1;
		}
	}

	variant = points[0].log.variants;
	for (; variant; variant = variant->next) {
		names[report.nr_comparisons] = variant->name;
		require(!compare_variant(&sandwich, variant->name,
					 &comparisons[report.nr_comparisons]));
		check_comparison(&comparisons[report.nr_comparisons++]);
	}
	notes = make_notes(&sandwich);
	report.notes = notes;
	out = open_memstream(&text, &length);
	require(notes && out);
	print_text(&report, out);
	print_json(&report, out);
	print_rounds(&sandwich, names, report.nr_comparisons, out);
	print_points(&report, out);
	require(!fclose(out));

	free(text);
	free(notes);
	for (i = 0; i < report.nr_comparisons; i++)
		comparison_free(&comparisons[i]);
	for (i = 0; i < NR_POINTS; i++)
		log_free(&points[i].log);
	return 0;
}

#ifdef REPLAY
int main(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++) {
		FILE *file = fopen(argv[i], "r");
		char *bytes = NULL;
		size_t size = 0;
		ssize_t got;

		require(file);
		got = getdelim(&bytes, &size, EOF, file);
		fuzz_one_input(bytes, got > 0 ? got : 0);
		free(bytes);
		fclose(file);
	}
	printf("%d\n", argc - 1);
	return 0;
}
#endif
