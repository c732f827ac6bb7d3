// SPDX-License-Identifier: GPL-2.0
/*
 * Runs a program with less than it is used to: as another user, within limits, without
 * a system call, with all of its memory open to KSM.
 */
#include <errno.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef PR_SET_MEMORY_MERGE
#define PR_SET_MEMORY_MERGE	67
#endif

#define NOBODY			65534

static const char usage[] =
	"usage: confine [-k] [-l LIMIT=NUMBER] [-u] [-d SYSCALL] PROGRAM [ARGUMENT...]\n"
	"  -k  KSM may merge all of its memory, and its children's\n"
	"  -l  as= or data= bytes, nproc= processes\n"
	"  -u  as nobody, not as root\n"
	"  -d  with EPERM for userfaultfd or sched_setaffinity\n";

static const struct {
	const char *name;
	int number;
} syscalls[] = {
	{ "userfaultfd",	SYS_userfaultfd },
	{ "sched_setaffinity",	SYS_sched_setaffinity },
};

static const struct {
	const char *name;
	int resource;
} limits[] = {
	{ "as=",	RLIMIT_AS },
	{ "data=",	RLIMIT_DATA },
	{ "nproc=",	RLIMIT_NPROC },
};

static void fail(const char *what)
{
	fprintf(stderr, "confine: %s: %s\n", what, strerror(errno));
	exit(125);
}

static void wrong_usage(void)
{
	fprintf(stderr, "confine: wrong usage; see confine -h\n");
	exit(2);
}

/* A program of one architecture: no need to look at which one it is. */
static void deny(const char *name)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {
		.len = sizeof(filter) / sizeof(*filter),
		.filter = filter,
	};
	size_t i;

	for (i = 0; i < sizeof(syscalls) / sizeof(*syscalls); i++)
		if (!strcmp(name, syscalls[i].name))
			break;
	if (i == sizeof(syscalls) / sizeof(*syscalls))
		wrong_usage();
	filter[1].k = syscalls[i].number;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		fail("seccomp");
}

static void limit(const char *text)
{
	struct rlimit limit;
	size_t i, length;
	char *rest;

	for (i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		length = strlen(limits[i].name);
		if (strncmp(text, limits[i].name, length))
			continue;
		limit.rlim_cur = strtoul(text + length, &rest, 10);
		limit.rlim_max = limit.rlim_cur;
		if (rest == text + length || *rest)
			wrong_usage();
		if (setrlimit(limits[i].resource, &limit))
			fail("setrlimit");
		return;
	}
	wrong_usage();
}

static void become_nobody(void)
{
	if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
		fail("setuid");
}

int main(int argc, char **argv)
{
	int option;

	/* Options of the program are not ours. */
	while ((option = getopt(argc, argv, "+hkl:ud:")) != -1) {
		switch (option) {
		case 'h':
			fputs(usage, stdout);
			return 0;
		case 'k':
			if (prctl(PR_SET_MEMORY_MERGE, 1, 0, 0, 0))
				fail("PR_SET_MEMORY_MERGE");
			break;
		case 'l':
			limit(optarg);
			break;
		case 'u':
			become_nobody();
			break;
		case 'd':
			deny(optarg);
			break;
		default:
			wrong_usage();
		}
	}
	if (optind == argc)
		wrong_usage();
	execv(argv[optind], argv + optind);
	fail(argv[optind]);
	return 125;
}
