// SPDX-License-Identifier: GPL-2.0
/*
 * Makes memory scarce, or fragmented, for those beside it. Prints "ready" once it
 * is so, and goes on until it is killed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

/* Of every so many pages one cannot be moved: no folio of 64 KiB fits between. */
#define PIN_EVERY	16

static const char usage[] =
	"usage: memory-hog press|fragment MIB\n"
	"  press     writes to so much memory, and gives back a half for a second, again and again\n"
	"  fragment  takes so much, and gives all back but pages that cannot be moved\n";

static void fail(const char *what)
{
	fprintf(stderr, "memory-hog: %s: %s\n", what, strerror(errno));
	exit(1);
}

static char *take(size_t size)
{
	char *start = mmap(NULL, size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (start == MAP_FAILED)
		fail("mmap");
	if (madvise(start, size, MADV_NOHUGEPAGE))
		fail("madvise");
	return start;
}

static void ready(void)
{
	puts("ready");
	fflush(stdout);
}

/* Pages that compress to a half or so. */
static void write_pages(char *start, size_t size, size_t page_size)
{
	static unsigned int number = 1;
	size_t page, i;

	for (page = 0; page < size; page += page_size) {
		for (i = 0; i < page_size / 2; i += sizeof(number)) {
			number = number * 1664525 + 1013904223;
			memcpy(start + page + i, &number, sizeof(number));
		}
	}
}

/* Who looks for room finds some now and then. */
static void press(char *start, size_t size, size_t page_size)
{
	write_pages(start, size, page_size);
	ready();
	for (;;) {
		if (madvise(start + size / 2, size / 2, MADV_DONTNEED))
			fail("madvise");
		sleep(1);
		write_pages(start, size, page_size);
	}
}

/*
 * What is left of whole huge pages would be given to those who ask for them first.
 * Takes as many as there are, if huge pages are allowed.
 */
static void take_huge_pages(size_t size)
{
	const size_t huge = 2UL << 20;
	char *start = take(size), *end = start + size;

	if (madvise(start, size, MADV_HUGEPAGE))
		fail("madvise");
	for (start += huge - (unsigned long)start % huge; start < end; start += huge)
		*start = 1;
}

/* A page in a pipe stays where it is, as the pipe refers to it. */
static void fragment(char *start, size_t size, size_t page_size)
{
	size_t step = PIN_EVERY * page_size, offset, room = 0;
	struct iovec page = { .iov_len = page_size };
	int pipe_fds[2];

	write_pages(start, size, page_size);
	for (offset = 0; offset < size; offset += step, room--) {
		if (!room) {
			if (pipe(pipe_fds))
				fail("pipe");
			room = 16;
		}
		page.iov_base = start + offset;
		if (vmsplice(pipe_fds[1], &page, 1, 0) != (ssize_t)page_size)
			fail("vmsplice");
		if (madvise(start + offset + page_size, step - page_size, MADV_DONTNEED))
			fail("madvise");
	}
	take_huge_pages(size / 8);
	ready();
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	size_t page_size = sysconf(_SC_PAGESIZE), size;
	char *rest;

	if (argc == 2 && !strcmp(argv[1], "-h")) {
		fputs(usage, stdout);
		return 0;
	}
	if (argc == 3) {
		size = strtoul(argv[2], &rest, 10) << 20;
		if (size && !*rest && !strcmp(argv[1], "press"))
			press(take(size), size, page_size);
		if (size && !*rest && !strcmp(argv[1], "fragment"))
			fragment(take(size), size, page_size);
	}
	fprintf(stderr, "memory-hog: takes press or fragment, and MiB above 0\n");
	return 2;
}
