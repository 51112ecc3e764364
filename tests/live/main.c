// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The live suite: root, real BPF, real servers.
 *
 *     run [--short|--rest] [--beside] [NAME…]
 *
 * --short and --rest run the tests of that form (harness.h).  With names, only suites and tests of these names are run,
 * one after the other; without, or with --beside, those that bear it run beside each other.
 */
#include "again.h"
#include "beside.h"
#include "disturbed.h"
#include "harness.h"

#include <CUnit/Basic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define FAILURES_PRINTED 12
#define FAILURE_LEN      600

static const char *reason_to_skip_all(void)
{
	if (geteuid())
		return "not root: BPF programs cannot be loaded";
	if (!is_there("/sys/kernel/btf/vmlinux"))
		return "this kernel has no BTF";
	return NULL;
}

static bool is_named(const char *name, char **names)
{
	for (; *names; names++)
		if (!strcmp(*names, name))
			return true;
	return false;
}

static void choose(char **names)
{
	CU_pTestRegistry registry = CU_get_registry();

	for (CU_pSuite suite = registry->pSuite; suite; suite = suite->pNext) {
		bool any = false;

		for (CU_pTest test = suite->pTest; test; test = test->pNext) {
			/* A suite's name stands for what is chosen of it. */
			test->fActive =
				is_named(test->pName, names) || (test->fActive && is_named(suite->pName, names));
			any |= test->fActive;
		}
		suite->fActive = any;
	}
}

enum suite_group { ALONE, WORKING, WAITING, GROUP_CNT };

/* The first suite of each group into `first`: 0, or -1 and an error that is printed. */
static int add_suites(CU_pSuite first[GROUP_CNT])
{
	static const struct {
		const char *name;
		enum suite_group group;
		int (*add)(void);
	} suites[] = {
#define SUITE(name, group) {#name, group, suite_##name},
#include "suites.def"
#undef SUITE
	};

	for (int group = ALONE; group < GROUP_CNT; group++) {
		for (size_t i = 0; i < sizeof(suites) / sizeof(suites[0]); i++) {
			if ((int)suites[i].group != group)
				continue;
			if (suites[i].add())
				return -1;
			if (!first[group])
				first[group] = CU_get_suite(suites[i].name);
		}
	}
	return 0;
}

/* Once more, and last: of a long log often only the end is kept. */
static void print_failures(void)
{
	const CU_FailureRecord *failure = CU_get_failure_list();
	unsigned int left = FAILURES_PRINTED;

	for (; failure && left; failure = failure->pNext, left--)
		printf("FAILED %s: %s:%u: %.*s\n", failure->pTest ? failure->pTest->pName : failure->pSuite->pName,
		       failure->strFileName, failure->uiLineNumber, FAILURE_LEN, failure->strCondition);
	if (failure)
		printf("and more above\n");
}

static bool took(char ***args, const char *option)
{
	if (!**args || strcmp(**args, option))
		return false;
	++*args;
	return true;
}

static int run_suites(char **names)
{
	bool beside, all;
	CU_pSuite first[GROUP_CNT] = {0};
	struct again again;
	unsigned int failures;

	if (took(&names, "--short"))
		live_choose(SHORT);
	else if (took(&names, "--rest"))
		live_choose(REST);
	beside = took(&names, "--beside") || !*names;
	all = !*names;
	if (CU_initialize_registry() || add_suites(first))
		return 1;
	if (!all)
		choose(names);
	/* What nobody asked for is not a failure. */
	CU_set_fail_on_inactive(CU_FALSE);
	if (beside)
		beside_prepare(first[WORKING], first[WAITING]);
	CU_basic_set_mode(CU_BRM_VERBOSE);
	disturbed_open();
	CU_basic_run_tests();
	disturbed_close();
	printf("%u live tests skipped\n", skip_cnt());
	if (all)
		live_print_left_out();
	print_failures();
	failures = CU_get_number_of_failures() + CU_get_number_of_suites_failed();
	again_note(&again);
	CU_cleanup_registry();
	if (failures && all && getenv("CI") && again_passes(&again))
		failures = 0;
	return failures ? 1 : 0;
}

static volatile sig_atomic_t child_pid;

static void pass_on(int signal_no)
{
	if (child_pid)
		kill(child_pid, signal_no);
}

/* The suites run in a child, so that whatever becomes of it somebody is left to clean up. */
int main(int argc, char **argv)
{
	const char *reason = reason_to_skip_all();
	int status = 0;
	pid_t pid;

	if (argc > 1 && !strcmp(argv[1], "--within"))
		return units_main(argc - 1, argv + 1);
	if (reason) {
		printf("SKIP live: %s\n", reason);
		return 0;
	}
	if (temp_open()) {
		perror("a temporary directory");
		return 1;
	}
	if (whylate_copy()) {
		temp_remove();
		return 1;
	}
	fflush(stdout);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGPIPE, SIG_IGN);
		status = run_suites(argv + 1);
		fflush(stdout);
		_exit(status);
	}
	child_pid = pid;
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, pass_on);
	while (pid > 0 && waitpid(pid, &status, 0) != pid)
		;
	temp_remove();
	if (pid < 0 || WIFSIGNALED(status))
		fprintf(stderr, "the live suite was ended by a signal\n");
	return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
