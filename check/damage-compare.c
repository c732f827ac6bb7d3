// SPDX-License-Identifier: GPL-2.0
/*
 * Damages the first two logs of a sound sandwich in every way a console does, one way at a time,
 * at every byte: no verdict may come out but "not comparable" and what the sound logs give.
 * Prints TAP.
 *
 *   damage-compare A.log B.log A.log
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../ab/compare_verdict.h"

#define NR_POINTS	3
#define NR_DAMAGED	2
#define MAX_NAMES	16

struct text {
	char *bytes;
	size_t length;
};

/* Puts what becomes of @from, damaged at @at, into @to, which has room for twice of it. */
typedef void damage_fn(struct text *to, const struct text *from, size_t at, const char *what);

static struct text texts[NR_POINTS];
static struct point points[NR_POINTS] = {
	{ .label = "A" },
	{ .label = "B", .is_b = true },
	{ .label = "A" },
};

static const struct sandwich sandwich = { points, NR_POINTS };
static const char *names[MAX_NAMES];
static enum verdict sound[MAX_NAMES];
static unsigned int nr_names;
static unsigned int nr_tests;
static bool all_ok = true;

static void die(const char *what)
{
	printf("Bail out! %s\n", what);
	exit(1);
}

static void append(struct text *to, const char *bytes, size_t length)
{
	memcpy(to->bytes + to->length, bytes, length);
	to->length += length;
}

static void cut(struct text *to, const struct text *from, size_t at, const char *what)
{
	(void)what;
	append(to, from->bytes, at);
}

static void insert(struct text *to, const struct text *from, size_t at, const char *what)
{
	append(to, from->bytes, at);
	append(to, what, strlen(what));
	append(to, from->bytes + at, from->length - at);
}

static void insert_nul(struct text *to, const struct text *from, size_t at, const char *what)
{
	(void)what;
	append(to, from->bytes, at);
	append(to, "", 1);
	append(to, from->bytes + at, from->length - at);
}

/* Deletes as many bytes as @what has. */
static void delete(struct text *to, const struct text *from, size_t at, const char *what)
{
	size_t left = from->length - at, length = strlen(what);

	if (length > left)
		length = left;
	append(to, from->bytes, at);
	append(to, from->bytes + at + length, left - length);
}

/* From here to the end of the line, once more. */
static void repeat(struct text *to, const struct text *from, size_t at, const char *what)
{
	const char *rest = from->bytes + at;
	const char *newline = memchr(rest, '\n', from->length - at);
	size_t length = newline ? newline + 1 - rest : 0;

	(void)what;
	append(to, from->bytes, at + length);
	append(to, rest, from->length - at);
}

static void read_text(struct log *log, const struct text *text)
{
	static int fd = -1;

	if (fd < 0)
		fd = memfd_create("log", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 0) ||
	    pwrite(fd, text->bytes, text->length, 0) != (ssize_t)text->length ||
	    lseek(fd, 0, SEEK_SET) || log_read(log, "log", fd))
		die("the log cannot be handed on");
}

static enum verdict judge(const char *name)
{
	struct comparison comparison;

	if (compare_variant(&sandwich, name, &comparison))
		die("out of memory");
	comparison_free(&comparison);
	return comparison.verdict;
}

/* Are all verdicts still those of the sound logs, or none? */
static bool is_safe(unsigned int point, size_t at)
{
	unsigned int i;

	for (i = 0; i < nr_names; i++) {
		enum verdict verdict = judge(names[i]);

		if (verdict == sound[i] || verdict == VERDICT_NOT_COMPARABLE)
			continue;
		printf("# log %u, byte %zu: %s is %s, not %s\n", point + 1, at, names[i],
		       verdict_name(verdict), verdict_name(sound[i]));
		return false;
	}
	return true;
}

static void try(const char *test, damage_fn *damage, const char *what)
{
	struct text text = { 0 };
	bool ok = true;
	unsigned int i;
	size_t at;

	for (i = 0; i < NR_DAMAGED && ok; i++) {
		struct log intact = points[i].log;

		text.bytes = malloc(2 * texts[i].length + strlen(what) + 1);
		if (!text.bytes)
			die("out of memory");
		for (at = 0; at < texts[i].length && ok; at++) {
			text.length = 0;
			damage(&text, &texts[i], at, what);
			read_text(&points[i].log, &text);
			ok = is_safe(i, at);
			log_free(&points[i].log);
		}
		points[i].log = intact;
		free(text.bytes);
	}
	printf("%sok %u - %s\n", ok ? "" : "not ", ++nr_tests, test);
	all_ok &= ok;
}

static void load(struct text *text, const char *path)
{
	FILE *file = fopen(path, "r");
	size_t size = 0;

	text->length = 0;
	if (file) {
		ssize_t got = getdelim(&text->bytes, &size, EOF, file);

		text->length = got > 0 ? got : 0;
		fclose(file);
	}
	if (!text->length)
		die("usage: damage-compare A.log B.log A.log");
}

int main(int argc, char **argv)
{
	const struct variant *variant;
	unsigned int i;

	if (argc != 1 + NR_POINTS)
		die("usage: damage-compare A.log B.log A.log");
	for (i = 0; i < NR_POINTS; i++) {
		load(&texts[i], argv[i + 1]);
		read_text(&points[i].log, &texts[i]);
	}
	for (variant = points[0].log.variants; variant; variant = variant->next) {
		if (nr_names == MAX_NAMES)
			die("too many variants");
		names[nr_names] = variant->name;
		sound[nr_names] = judge(variant->name);
		printf("# %s: %s\n", variant->name, verdict_name(sound[nr_names]));
		nr_names++;
	}

	try("cut off", cut, "");
	try("a kernel message", insert, "[    4.812345] random: crng init done\r\n");
	try("a kernel message without its time", insert, "random: crng init done\n");
	try("a line feed", insert, "\n");
	try("a color reset", insert, "\033[0m");
	try("a NUL", insert_nul, "");
	try("a line repeated", repeat, "");
	try("1 byte lost", delete, "1");
	try("2 bytes lost", delete, "12");
	try("4 bytes lost", delete, "1234");
	try("16 bytes lost", delete, "0123456789abcdef");
	printf("1..%u\n", nr_tests);
	for (i = 0; i < NR_POINTS; i++) {
		log_free(&points[i].log);
		free(texts[i].bytes);
	}
	return !all_ok;
}
