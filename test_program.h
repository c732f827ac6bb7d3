/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the test programs add to the harness. It keeps its counts in static
 * variables of the file that includes it, so this is included by the same file.
 */
#ifndef TEST_PROGRAM_H
#define TEST_PROGRAM_H

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "environment.h"

#ifndef PR_SET_MEMORY_MERGE
#define PR_SET_MEMORY_MERGE	67
#endif

/* Shared by main() and all tests. */
static struct {
	bool env_printed;
	/* Atomic: */
	pid_t running;		/* process group of the test that runs, or 0 */
	bool ending;		/* a signal ends them all */
} *test_program;

/* The process that this was before a fork made it a child. */
static pid_t test_program_parent;

/*
 * Whoever kills the program, with a signal that it cannot pass on, means its tests,
 * too. Between it and them are processes of the harness.
 */
static void test_program_end_with_parent(void)
{
	pid_t parent = test_program_parent;

	test_program_parent = getpid();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(KSFT_FAIL);
}

/* The harness exits with 0 when all it ran was skipped, or could not be told. */
static void test_program_check_results(void)
{
	if (fflush(stdout) || ferror(stdout))
		_exit(KSFT_FAIL);
	if (ksft_test_num() && ksft_cnt.ksft_xskip == ksft_test_num())
		_exit(KSFT_SKIP);
}

/* The harness runs each test in a process group that a signal does not reach. */
static void test_program_end_test_too(int signal_number)
{
	pid_t running;

	__atomic_store_n(&test_program->ending, true, __ATOMIC_SEQ_CST);
	running = __atomic_load_n(&test_program->running, __ATOMIC_SEQ_CST);
	if (running && running != getpgrp())
		kill(-running, SIGKILL);
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

/* Those of the harness for a test, and those that a test makes: a round, a child. */
#define TEST_PROGRAM_CHILDREN	4

/* A process that cannot be made is no fault of the kernel's. */
static void test_program_check_processes(void)
{
	pid_t children[TEST_PROGRAM_CHILDREN];
	bool enough = true;
	int i;

	for (i = 0; i < TEST_PROGRAM_CHILDREN && enough; i++) {
		children[i] = fork();
		if (!children[i])
			for (;;)
				pause();
		enough = children[i] > 0;
	}
	while (i--) {
		if (children[i] < 0)
			continue;
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
	if (!enough)
		ksft_exit_skip("too few processes allowed\n");
}

/* To be called by main(), before any test runs. */
static void test_program_start(void)
{
	test_program = mmap(NULL, sizeof(*test_program), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (test_program == MAP_FAILED)
		ksft_exit_fail_perror("mmap");
	atexit(test_program_check_results);
	/* Pages that are alike must stay our own. Without KSM nothing merges them. */
	prctl(PR_SET_MEMORY_MERGE, 0, 0, 0, 0);
	test_program_parent = getpid();
	pthread_atfork(NULL, NULL, test_program_end_with_parent);
	/* Who starts us may ignore what becomes of children: the harness must not. */
	signal(SIGCHLD, SIG_DFL);
	signal(SIGHUP, test_program_end_test_too);
	signal(SIGINT, test_program_end_test_too);
	signal(SIGTERM, test_program_end_test_too);
	test_program_check_processes();
}

/* To be called by the setup of every test. The first one prints the "env" line. */
static void test_program_begin_test(int cpu)
{
	__atomic_store_n(&test_program->running, getpgrp(), __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&test_program->ending, __ATOMIC_SEQ_CST))
		_exit(KSFT_FAIL);
	if (!test_program->env_printed) {
		test_program->env_printed = true;
		environment_print(cpu);
	}
}

/* To be called by the teardown of every test, and when its setup skips it. */
static void test_program_end_test(void)
{
	__atomic_store_n(&test_program->running, 0, __ATOMIC_SEQ_CST);
}

#endif /* TEST_PROGRAM_H */
