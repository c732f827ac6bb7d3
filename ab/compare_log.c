// SPDX-License-Identifier: GPL-2.0
/*
 * Reads the log of one boot: picks the diagnostics and the test results of a KTAP test program
 * out of whatever else a console has to say.
 *
 * A serial console is shared with the kernel, which may write into the middle of a line. So a
 * line counts only if all of it makes sense, and a variant's rounds count only if its cost line,
 * the last one, agrees with them: that finds what no look at a single line can, a lost line or
 * a digit that got lost in a number.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "compare_log.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* The largest thing stored is a string of one line. */
#define CHUNK_BYTES	(2 * LINE_MAX_BYTES)
#define ROUND_MAX	1000000000LL
/* A thousand seconds a page: no machine is that slow. */
#define NS_MAX		1e12
/* Figures have two decimals; a mean of rounded figures, rounded again, is off by this at most. */
#define ROUNDING	0.0101

const char *const round_count_names[NR_ROUND_COUNTS] = {
	[COUNT_PAGES] = "pages",
	[COUNT_CYCLES] = "cycles",
	[COUNT_STEPS] = "steps",
	[COUNT_FAULTS] = "faults",
};

/* Where in the log we are, and what was seen there that later lines depend on. */
struct reader {
	struct log *log;
	unsigned long line;
	/* Noise hit a line after its "not": the next "ok" may be its rest. */
	bool torn_not;
	/* The test that the harness said FAIL of: the result after that is "not ok". */
	char failed[256];
};

/* One line, split. The strings are in the line's buffer. */
struct pairs {
	unsigned int nr;
	struct field at[LINE_MAX_FIELDS];
	const char *variant;
	/* What is wrong with the line, NULL if nothing is. */
	const char *error;
};

struct chunk {
	struct chunk *next;
	size_t used;
	long long words[CHUNK_BYTES / sizeof(long long)];
};

/* Returns zeroed memory that lives as long as the log does, NULL if the log has had its share. */
static void *store(struct log *log, size_t bytes)
{
	struct chunk *chunk = log->chunks;
	void *mem;

	bytes = (bytes + sizeof(long long) - 1) / sizeof(long long) * sizeof(long long);
	if (!chunk || sizeof(chunk->words) - chunk->used < bytes) {
		if (log->bytes + sizeof(*chunk) > LOG_MAX_BYTES)
			return NULL;
		chunk = calloc(1, sizeof(*chunk));
		if (!chunk)
			return NULL;
		chunk->next = log->chunks;
		log->chunks = chunk;
		log->bytes += sizeof(*chunk);
	}
	mem = (char *)chunk->words + chunk->used;
	chunk->used += bytes;
	return mem;
}

static const char *store_string(struct log *log, const char *string)
{
	size_t bytes = strlen(string) + 1;
	char *copy = store(log, bytes);

	if (copy)
		memcpy(copy, string, bytes);
	return copy;
}

static void say(char *buffer, size_t size, const struct reader *reader, const char *what,
		const char *which)
{
	snprintf(buffer, size, "line %lu: %s %s", reader->line, what, which);
}

/* Nothing in this log counts any more. The first reason is the one that is kept. */
static void break_log(struct reader *reader, const char *what, const char *which)
{
	struct log *log = reader->log;

	if (!*log->broken)
		say(log->broken, sizeof(log->broken), reader, what, which);
}

/* This line does not count, and neither does the variant it is about, if that is known. */
static void drop_line(struct reader *reader, struct variant *variant, const char *what,
		      const char *which)
{
	struct log *log = reader->log;
	char damage[sizeof(log->first_damage)];

	if (!log->nr_damaged++)
		say(log->first_damage, sizeof(log->first_damage), reader, what, which);
	if (variant && !variant->damage) {
		say(damage, sizeof(damage), reader, what, which);
		variant->damage = store_string(log, damage) ?: "damaged lines";
	}
}

const char *field_value(const struct fields *fields, const char *key)
{
	unsigned int i;

	for (i = 0; fields && i < fields->nr; i++)
		if (!strcmp(fields->at[i].key, key))
			return fields->at[i].value;
	return NULL;
}

struct variant *log_variant(const struct log *log, const char *name)
{
	struct variant *variant;

	for (variant = log->variants; variant; variant = variant->next)
		if (!strcmp(variant->name, name))
			return variant;
	return NULL;
}

static struct test *find_test(const struct log *log, const char *name)
{
	struct test *test;

	for (test = log->tests; test; test = test->next)
		if (!strcmp(test->name, name))
			return test;
	return NULL;
}

enum outcome log_outcome(const struct log *log, const char *name)
{
	const struct test *test = find_test(log, name);

	return test ? test->outcome : OUTCOME_MISSING;
}

bool test_is_of_variant(const char *name, const char *variant)
{
	size_t length = strlen(variant);
	const char *part, *end;

	for (part = name; part; part = end ? end + 1 : NULL) {
		end = strchr(part, '.');
		if ((end ? (size_t)(end - part) : strlen(part)) == length &&
		    !memcmp(part, variant, length))
			return true;
	}
	return false;
}

bool key_suffix_is(const char *key, const char *suffix)
{
	size_t key_length = strlen(key), length = strlen(suffix);

	return key_length > length && !strcmp(key + key_length - length, suffix);
}

bool key_is_total(const char *key)
{
	return !strcmp(key, "cycle_ns") || !strcmp(key, "cycle_median_ns");
}

static bool is_word(const char *word, const char *others)
{
	if (!isalpha((unsigned char)*word))
		return false;
	while (isalnum((unsigned char)*word) || (*word && strchr(others, *word)))
		word++;
	return !*word;
}

static bool is_printable(const char *string)
{
	while (*string > ' ' && *string <= '~')
		string++;
	return !*string;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool is_control(char c)
{
	return iscntrl((unsigned char)c) && c != '\t';
}

/* Splits at blanks and at the first '='. The first fault is in pairs->error. */
static void split_pairs(char *rest, struct pairs *pairs)
{
	unsigned int i;
	char *value;

	pairs->nr = 0;
	pairs->variant = NULL;
	pairs->error = NULL;

	for (;;) {
		char *key;

		while (is_blank(*rest))
			rest++;
		if (!*rest)
			return;
		key = rest;
		while (*rest && !is_blank(*rest))
			rest++;
		if (*rest)
			*rest++ = '\0';

		value = strchr(key, '=');
		if (value)
			*value++ = '\0';
		if (!value || !*value || !is_word(key, "_") || !is_printable(value)) {
			pairs->error = "not all of it is key=value";
			/* Which variant it is about may still come. */
			continue;
		}
		for (i = 0; i < pairs->nr && strcmp(pairs->at[i].key, key); i++)
			;
		if (i < pairs->nr) {
			pairs->error = "the same key twice";
			continue;
		}
		if (pairs->nr == LINE_MAX_FIELDS) {
			pairs->error = "more keys than a line has";
			continue;
		}
		if (!strcmp(key, "variant")) {
			if (is_word(value, "_-"))
				pairs->variant = value;
			else
				pairs->error = "no name of a variant";
		}
		pairs->at[pairs->nr].key = key;
		pairs->at[pairs->nr].value = value;
		pairs->nr++;
	}
}

static const char *pair_value(const struct pairs *pairs, const char *key)
{
	unsigned int i;

	for (i = 0; i < pairs->nr; i++)
		if (!strcmp(pairs->at[i].key, key))
			return pairs->at[i].value;
	return NULL;
}

/* Returns -1 for anything but a whole number that fits. */
static long long whole_number(const char *string)
{
	size_t digits = string ? strspn(string, "0123456789") : 0;

	if (!digits || digits > 18 || string[digits])
		return -1;
	return strtoll(string, NULL, 10);
}

/* Returns NAN for anything but a number with two decimals: else a digit or the point got lost. */
static double figure(const char *string)
{
	size_t whole = strspn(string, "0123456789");
	double value;

	if (!whole || string[whole] != '.' || strspn(string + whole + 1, "0123456789") != 2 ||
	    string[whole + 3])
		return NAN;
	value = strtod(string, NULL);
	return value <= NS_MAX ? value : NAN;
}

static struct fields *store_fields(struct log *log, const struct pairs *pairs)
{
	struct fields *fields;
	unsigned int i;

	fields = store(log, sizeof(*fields) + pairs->nr * sizeof(*fields->at));
	for (i = 0; fields && i < pairs->nr; i++) {
		fields->at[i].key = store_string(log, pairs->at[i].key);
		fields->at[i].value = store_string(log, pairs->at[i].value);
		if (!fields->at[i].key || !fields->at[i].value)
			return NULL;
		fields->nr++;
	}
	return fields;
}

static struct variant *get_variant(struct reader *reader, const char *name)
{
	struct variant *variant = log_variant(reader->log, name);
	struct log *log = reader->log;

	if (variant)
		return variant;
	if (log->nr_variants < LOG_MAX_VARIANTS) {
		variant = store(log, sizeof(*variant));
		name = store_string(log, name);
	}
	if (!variant || !name) {
		break_log(reader, "too many for one run:", "variants");
		return NULL;
	}
	variant->name = name;
	variant->states_end = &variant->states;
	variant->rounds_end = &variant->rounds;
	*log->variants_end = variant;
	log->variants_end = &variant->next;
	log->nr_variants++;
	return variant;
}

static void too_long(struct reader *reader)
{
	break_log(reader, "too many for one run:", "lines");
}

static void take_env(struct reader *reader, const struct pairs *pairs)
{
	struct log *log = reader->log;
	const char *value;
	unsigned int i;

	if (!log->env) {
		log->env = store_fields(log, pairs);
		if (!log->env)
			too_long(reader);
		return;
	}

	/* Two programs in one boot say the same, but for the CPU each was pinned to. */
	for (i = 0; i < pairs->nr; i++) {
		value = field_value(log->env, pairs->at[i].key);
		if (!strcmp(pairs->at[i].key, "cpu"))
			continue;
		if (!value || strcmp(value, pairs->at[i].value))
			break_log(reader, "two runs in one log: other env", pairs->at[i].key);
	}
}

static void take_state(struct reader *reader, const struct pairs *pairs)
{
	struct variant *variant;
	struct fields *state;

	if (!pairs->variant || !pair_value(pairs, "phase")) {
		drop_line(reader, NULL, "a state without its", "variant or phase");
		return;
	}
	variant = get_variant(reader, pairs->variant);
	if (!variant)
		return;
	state = store_fields(reader->log, pairs);
	if (!state) {
		too_long(reader);
		return;
	}
	*variant->states_end = state;
	variant->states_end = &state->next;
}

static bool is_time(const char *key)
{
	return key_suffix_is(key, "_ns");
}

static unsigned int count_times(const struct pairs *pairs)
{
	unsigned int i, nr = 0;

	for (i = 0; i < pairs->nr; i++)
		nr += is_time(pairs->at[i].key);
	return nr;
}

/* The first round says which times a round has. */
static bool store_keys(struct log *log, struct variant *variant, const struct pairs *pairs)
{
	unsigned int i, nr = 0;

	variant->keys = store(log, count_times(pairs) * sizeof(*variant->keys));
	if (!variant->keys)
		return false;
	for (i = 0; i < pairs->nr; i++) {
		if (!is_time(pairs->at[i].key))
			continue;
		variant->keys[nr] = store_string(log, pairs->at[i].key);
		if (!variant->keys[nr])
			return false;
		nr++;
	}
	variant->nr_keys = nr;
	return true;
}

/* Returns NAN if there is none. */
static double pair_figure(const struct pairs *pairs, const char *prefix, const char *suffix)
{
	const char *value;
	char key[64];

	snprintf(key, sizeof(key), "%s%s", prefix, suffix);
	value = pair_value(pairs, key);
	return value ? figure(value) : NAN;
}

/*
 * Can these be mean, median and minimum of the same cycles? Half of them at least are as long as
 * the median, so it is at most twice the mean. Comparing with NAN, what is not given, is false.
 */
static bool is_sound(const struct pairs *pairs, const char *prefix)
{
	double mean = pair_figure(pairs, prefix, "_ns");
	double median = pair_figure(pairs, prefix, "_median_ns");
	double least = pair_figure(pairs, prefix, "_min_ns");

	return !(least > mean + ROUNDING) && !(least > median + ROUNDING) &&
	       !(median > 2 * mean + ROUNDING);
}

/* Returns what is wrong with the figures of a round line, NULL if nothing is. */
static const char *round_fault(const struct variant *variant, const struct pairs *pairs)
{
	unsigned int i, nr = 0;

	for (i = 0; i < NR_ROUND_COUNTS; i++) {
		const char *value = pair_value(pairs, round_count_names[i]);

		if (value && whole_number(value) < 0)
			return round_count_names[i];
	}
	for (i = 0; i < pairs->nr; i++) {
		const char *key = pairs->at[i].key;

		if (!is_time(key))
			continue;
		if (isnan(figure(pairs->at[i].value)))
			return key;
		if (variant->nr_rounds &&
		    (nr >= variant->nr_keys || strcmp(variant->keys[nr], key)))
			return key;
		nr++;
	}
	if (!is_sound(pairs, "cycle"))
		return "minimum, median or mean";
	return !nr || (variant->nr_rounds && nr != variant->nr_keys) ? "number of times" : NULL;
}

static void take_round(struct reader *reader, const struct pairs *pairs)
{
	long long number = whole_number(pair_value(pairs, "round"));
	struct log *log = reader->log;
	struct variant *variant;
	struct round *round;
	unsigned int i, nr = 0;
	const char *fault;

	if (!pairs->variant || number < 0 || number > ROUND_MAX) {
		drop_line(reader, pairs->variant ? log_variant(log, pairs->variant) : NULL,
			  "a round without its", "variant or number");
		return;
	}
	variant = get_variant(reader, pairs->variant);
	if (!variant)
		return;

	if (variant->has_cost || (variant->nr_rounds && number <= variant->last_round)) {
		drop_line(reader, variant, "two runs in one log: again a round of",
			  variant->name);
		return;
	}
	if (variant->nr_rounds && number != variant->last_round + 1)
		drop_line(reader, variant, "before this round one is missing of", variant->name);

	fault = round_fault(variant, pairs);
	if (fault) {
		drop_line(reader, variant, "a round with an impossible", fault);
		return;
	}
	if (!variant->nr_rounds && !store_keys(log, variant, pairs)) {
		too_long(reader);
		return;
	}
	round = store(log, sizeof(*round) + variant->nr_keys * sizeof(*round->ns));
	if (!round) {
		too_long(reader);
		return;
	}
	round->number = number;
	for (i = 0; i < NR_ROUND_COUNTS; i++)
		round->counts[i] = whole_number(pair_value(pairs, round_count_names[i]));
	for (i = 0; i < pairs->nr; i++)
		if (is_time(pairs->at[i].key))
			round->ns[nr++] = figure(pairs->at[i].value);

	*variant->rounds_end = round;
	variant->rounds_end = &round->next;
	variant->nr_rounds++;
	variant->last_round = number;
}

/* Are there rounds on both sides of the value: may it be their median? */
static bool may_be_median(const struct variant *variant, unsigned int key, double value)
{
	const struct round *round;
	unsigned int below = 0, above = 0;

	for (round = variant->rounds; round; round = round->next) {
		below += round->ns[key] <= value + ROUNDING;
		above += round->ns[key] >= value - ROUNDING;
	}
	return 2 * below >= variant->nr_rounds && 2 * above >= variant->nr_rounds;
}

/* Does a figure of the cost line follow from those of the rounds? */
static bool cost_agrees(const struct variant *variant, unsigned int key, double value)
{
	const struct round *round;
	double sum = 0, least = INFINITY;

	if (key_suffix_is(variant->keys[key], "_median_ns"))
		return may_be_median(variant, key, value);

	for (round = variant->rounds; round; round = round->next) {
		sum += round->ns[key];
		least = fmin(least, round->ns[key]);
	}
	if (key_suffix_is(variant->keys[key], "_min_ns"))
		return fabs(value - least) <= ROUNDING;
	return fabs(value - sum / variant->nr_rounds) <= ROUNDING;
}

static void take_cost(struct reader *reader, const struct pairs *pairs)
{
	long long rounds = whole_number(pair_value(pairs, "rounds"));
	struct variant *variant = NULL;
	const char *value;
	unsigned int i;

	if (pairs->variant)
		variant = log_variant(reader->log, pairs->variant);
	if (!variant || rounds < 0) {
		drop_line(reader, variant, "a cost without its", "rounds");
		return;
	}
	if (variant->has_cost) {
		drop_line(reader, variant, "two runs in one log: again the cost of",
			  variant->name);
		return;
	}
	variant->has_cost = true;
	if (rounds != variant->nr_rounds) {
		drop_line(reader, variant, "this cost is of more or fewer rounds than there are of",
			  variant->name);
		return;
	}
	for (i = 0; i < variant->nr_keys; i++) {
		value = pair_value(pairs, variant->keys[i]);
		if (value && !cost_agrees(variant, i, figure(value))) {
			drop_line(reader, variant, "the rounds give another", variant->keys[i]);
			return;
		}
		if (!value && key_is_total(variant->keys[i])) {
			drop_line(reader, variant, "a cost without its", variant->keys[i]);
			return;
		}
	}
}

/* A line of the grammar's. Other words are nobody's business, unless they look like a torn line. */
static void take_diagnostic(struct reader *reader, const char *word, char *rest, bool whole)
{
	static const struct {
		const char *word;
		void (*take)(struct reader *reader, const struct pairs *pairs);
	} diagnostics[] = {
		{ "env", take_env },
		{ "state", take_state },
		{ "round", take_round },
		{ "cost", take_cost },
	};
	struct variant *variant = NULL;
	struct pairs pairs;
	unsigned int i;
	bool ours;

	for (i = 0; i < ARRAY_SIZE(diagnostics) && strcmp(diagnostics[i].word, word); i++)
		;
	ours = i < ARRAY_SIZE(diagnostics);
	split_pairs(rest, &pairs);
	if (!whole)
		pairs.error = "cut off or torn";

	if (ours && !pairs.error) {
		diagnostics[i].take(reader, &pairs);
		return;
	}
	if (!ours && (!pairs.variant || (is_word(word, "_") && !pairs.error)))
		return;
	if (ours && pairs.variant)
		variant = log_variant(reader->log, pairs.variant);
	drop_line(reader, variant, "damaged:", pairs.error ?: "the rest of another line");
}

static void store_test(struct reader *reader, const char *name, enum outcome outcome)
{
	struct log *log = reader->log;
	struct test *test = find_test(log, name);

	if (test) {
		test->twice = true;
		return;
	}
	if (log->nr_tests < LOG_MAX_TESTS) {
		test = store(log, sizeof(*test));
		name = store_string(log, name);
	}
	if (!test || !name) {
		break_log(reader, "too many for one run:", "test results");
		return;
	}
	test->name = name;
	test->outcome = outcome;
	*log->tests_end = test;
	log->tests_end = &test->next;
	log->nr_tests++;
}

/* What follows "ok": a number, a name, perhaps a directive. */
static void take_result(struct reader *reader, char *rest, enum outcome outcome, bool whole)
{
	static const struct {
		const char *word;
		enum outcome outcome;
	} directives[] = {
		{ "SKIP", OUTCOME_SKIP },
		{ "XFAIL", OUTCOME_XFAIL },
		{ "XPASS", OUTCOME_XPASS },
	};
	size_t digits = strspn(rest, "0123456789");
	char *name, *hash, *end, *directive = NULL;
	unsigned int i;

	if (!digits || !is_blank(rest[digits]))
		return;
	name = rest + digits + strspn(rest + digits, " ");
	if (!strncmp(name, "- ", 2))
		name += 2;

	hash = *name == '#' ? name : strstr(name, " #");
	if (hash) {
		directive = strchr(hash, '#') + 1;
		*hash = '\0';
		/* "#  text" is a remark, "# text" a directive. */
		if (!strncmp(directive, "  ", 2))
			directive = NULL;
		else
			directive += strspn(directive, " ");
	}
	for (end = name + strlen(name); end > name && is_blank(end[-1]); end--)
		end[-1] = '\0';

	if (outcome == OUTCOME_OK && !(directive && !strncasecmp(directive, "XFAIL", 5)) &&
	    (reader->torn_not || (*name && !strcmp(name, reader->failed)))) {
		reader->torn_not = false;
		drop_line(reader, NULL, "damaged: perhaps a \"not\" was torn off", name);
		return;
	}
	if (!whole) {
		drop_line(reader, NULL, "damaged:", "a result that is cut off or torn");
		return;
	}
	if (directive && outcome == OUTCOME_OK) {
		for (i = 0; i < ARRAY_SIZE(directives); i++)
			if (!strncasecmp(directive, directives[i].word, strlen(directives[i].word)))
				break;
		if (i == ARRAY_SIZE(directives)) {
			drop_line(reader, NULL, "damaged: the end of", name);
			return;
		}
		outcome = directives[i].outcome;
		/* Programs without a harness print the name of a skipped test last. */
		if (!*name) {
			name = directive + strlen(directives[i].word);
			name += strspn(name, " ");
		}
	}
	if (*name)
		store_test(reader, name, outcome);
}

/* The harness says "         FAIL  name", then the result. */
static void note_failure(struct reader *reader, const char *text)
{
	text += strspn(text, " ");
	if (!strncmp(text, "FAIL  ", 6))
		snprintf(reader->failed, sizeof(reader->failed), "%s", text + 6);
}

/* Returns how long an escape sequence, as terminals take them, is; 0 if this is none. */
static size_t escape_length(const char *text, size_t length)
{
	size_t i = 2;

	if (length < 2 || text[0] != '\033')
		return 0;
	if (text[1] != '[')
		return 2;
	while (i < length && text[i] >= ' ' && text[i] <= '?')
		i++;
	return i < length ? i + 1 : i;
}

/* Steps over what a terminal would not show. */
static char *skip_invisible(char *text, const char *end)
{
	while (text < end) {
		size_t length = escape_length(text, end - text);

		if (!length && (*text == '\0' || *text == '\r'))
			length = 1;
		if (!length)
			break;
		text += length;
	}
	return text;
}

/*
 * @end can be written to. A line is not @whole if the log ends in it, or if it is longer than
 * any line of ours.
 */
static void take_line(struct reader *reader, char *line, char *end, bool whole)
{
	bool diagnostic, result, torn_not;
	char *word, *tail;

	line = skip_invisible(line, end);
	*end = '\0';
	word = line;
	while (word[0] == '#' && word[1] == ' ')
		word += 2;
	diagnostic = word > line;
	torn_not = !strncmp(word, "not", 3) && (!word[3] || word[3] == ' ' || word[3] == '[') &&
		   strncmp(word, "not ok ", 7);
	result = !strncmp(word, "ok ", 3) || !strncmp(word, "not ok ", 7);

	/* Most of a console log ends here. */
	reader->torn_not |= torn_not;
	if (!diagnostic && !result && !memmem(line, end - line, "variant=", 8))
		return;

	/* A carriage return or a color reset behind the last value is not part of it. */
	for (tail = word; tail < end && !is_control(*tail); tail++)
		;
	/* Elsewhere it is noise: a NUL may stand for a character that a serial line lost. */
	if (skip_invisible(tail, end) < end)
		whole = false;
	*tail = '\0';

	if (result && *word == 'o') {
		take_result(reader, word + 3, OUTCOME_OK, whole);
	} else if (result) {
		reader->torn_not = false;
		take_result(reader, word + 7, OUTCOME_NOT_OK, whole);
	} else if (diagnostic) {
		char *rest = word + strcspn(word, " \t");

		if (*rest)
			*rest++ = '\0';
		if (*word)
			take_diagnostic(reader, word, rest, whole);
		else
			note_failure(reader, rest);
	} else {
		take_diagnostic(reader, "", word, whole);
	}
}

/*
 * The last line, or one too long to be ours, is handed on without its end. A log that does not
 * count is not read any further.
 */
static int read_lines(struct reader *reader, int fd)
{
	static char buffer[LINE_MAX_BYTES + 1];
	const size_t size = sizeof(buffer) - 1;
	bool inside_long_line = false;
	size_t used = 0;

	for (;;) {
		ssize_t got = read(fd, buffer + used, size - used);
		char *line = buffer, *end, *newline;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		end = buffer + used + got;

		while ((newline = memchr(line, '\n', end - line))) {
			reader->line++;
			if (!inside_long_line)
				take_line(reader, line, newline, true);
			inside_long_line = false;
			line = newline + 1;
		}
		used = end - line;
		if (used == size || (!got && used)) {
			reader->line++;
			if (!inside_long_line)
				take_line(reader, line, end, false);
			reader->line--;
			inside_long_line = true;
			used = 0;
		}
		if (!got || *reader->log->broken)
			return 0;
		memmove(buffer, line, used);
	}
}

int log_read(struct log *log, const char *path, int fd)
{
	struct reader reader = { .log = log };

	memset(log, 0, sizeof(*log));
	log->path = path;
	log->variants_end = &log->variants;
	log->tests_end = &log->tests;
	return read_lines(&reader, fd);
}

void log_free(struct log *log)
{
	while (log->chunks) {
		struct chunk *chunk = log->chunks;

		log->chunks = chunk->next;
		free(chunk);
	}
}
