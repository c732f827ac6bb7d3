/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What one log says: the console output of one boot that ran a test program, or its stdout.
 */
#ifndef COMPARE_LOG_H
#define COMPARE_LOG_H

#include <stdbool.h>
#include <stddef.h>

/* Longer lines are noise; more of anything is not the output of one run. */
#define LINE_MAX_BYTES		32768
#define LINE_MAX_FIELDS		64
#define LOG_MAX_BYTES		(4 << 20)
#define LOG_MAX_TESTS		4096
#define LOG_MAX_VARIANTS	256

/* What a round did. Times compare only where all of this is the same. */
enum round_count {
	COUNT_PAGES,
	COUNT_CYCLES,
	COUNT_STEPS,
	COUNT_FAULTS,
	NR_ROUND_COUNTS,
};

extern const char *const round_count_names[NR_ROUND_COUNTS];

struct field {
	const char *key;
	const char *value;
};

/* The key=value pairs of one line, in the order of the line. */
struct fields {
	struct fields *next;
	unsigned int nr;
	struct field at[];
};

/* A round line. ns[] goes with keys[] of the variant; a count that is not given is -1. */
struct round {
	struct round *next;
	long long number;
	long long counts[NR_ROUND_COUNTS];
	double ns[];
};

struct variant {
	struct variant *next;
	const char *name;

	struct fields *states, **states_end;

	unsigned int nr_keys;
	const char **keys;
	struct round *rounds, **rounds_end;
	unsigned int nr_rounds;
	long long last_round;
	/* The cost line ends the rounds: without it the log was cut. */
	bool has_cost;

	/* Why this variant's lines cannot be trusted, NULL if they can. */
	const char *damage;
};

enum outcome {
	OUTCOME_MISSING,
	OUTCOME_OK,
	OUTCOME_NOT_OK,
	OUTCOME_SKIP,
	OUTCOME_XFAIL,
	OUTCOME_XPASS,
};

struct test {
	struct test *next;
	const char *name;
	enum outcome outcome;
	bool twice;
};

struct log {
	const char *path;
	struct fields *env;
	struct variant *variants, **variants_end;
	unsigned int nr_variants;
	struct test *tests, **tests_end;
	unsigned int nr_tests;

	/* Why nothing in this log can be trusted, empty if it can. */
	char broken[160];
	/* Damaged lines, all of them dropped, and what was wrong with the first. */
	unsigned long nr_damaged;
	char first_damage[160];

	struct chunk *chunks;
	size_t bytes;
};

/**
 * log_read() - Read a log to its end, in bounded memory.
 * @log: to be filled; log_free() it, whatever is returned
 * @path: names the log in messages; kept, not copied
 * @fd: where to read it from, a pipe will do
 *
 * A line that console noise, a full disk or a power cut has damaged is dropped and counted,
 * never guessed at. What was wrong is in @broken, @first_damage and each variant's @damage.
 *
 * Return: 0, or -1 with errno set when @fd cannot be read.
 */
int log_read(struct log *log, const char *path, int fd);

/** log_free() - Free all that log_read() has stored. */
void log_free(struct log *log);

/** log_variant() - Return: the variant of that name, or NULL. */
struct variant *log_variant(const struct log *log, const char *name);

/** log_outcome() - Return: how the test of that name ended. */
enum outcome log_outcome(const struct log *log, const char *name);

/** field_value() - Return: the value of a key, NULL if there is none or @fields is NULL. */
const char *field_value(const struct fields *fields, const char *key);

/** test_is_of_variant() - Is @name, as in fixture.variant.test, a test of this variant? */
bool test_is_of_variant(const char *name, const char *variant);

/** key_suffix_is() - Does a key end like this? */
bool key_suffix_is(const char *key, const char *suffix);

/** key_is_total() - Is this the time of a whole cycle, all phases together? */
bool key_is_total(const char *key);

#endif
