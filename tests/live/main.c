// SPDX-License-Identifier: GPL-2.0-only
/* The live suite: root, real BPF, real servers.  With arguments only the suites or tests of these names are run. */
#include "harness.h"

#include <CUnit/Basic.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *reason_to_skip_all(void)
{
	if (geteuid())
		return "not root: BPF programs cannot be loaded";
	if (!is_there("/sys/kernel/btf/vmlinux"))
		return "this kernel has no BTF";
	return NULL;
}

static bool is_named(const char *suite, const char *test, char **names)
{
	for (; *names; names++)
		if (!strcmp(*names, suite) || !strcmp(*names, test))
			return true;
	return false;
}

static void choose(char **names)
{
	CU_pTestRegistry registry = CU_get_registry();

	for (CU_pSuite suite = registry->pSuite; suite; suite = suite->pNext) {
		bool any = false;

		for (CU_pTest test = suite->pTest; test; test = test->pNext) {
			test->fActive = is_named(suite->pName, test->pName, names);
			any |= test->fActive;
		}
		suite->fActive = any;
	}
	/* What nobody asked for is not a failure. */
	CU_set_fail_on_inactive(CU_FALSE);
}

static int run_suites(char **names)
{
	unsigned int failures;

	if (CU_initialize_registry())
		return 1;
#define SUITE(name)                                                                      \
	if (suite_##name()) {                                                            \
		fprintf(stderr, "cannot add suite " #name ": %s\n", CU_get_error_msg()); \
		return 1;                                                                \
	}
#include "suites.def"
#undef SUITE
	if (*names)
		choose(names);
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	printf("%u live tests skipped\n", skip_cnt());
	failures = CU_get_number_of_failures() + CU_get_number_of_suites_failed();
	CU_cleanup_registry();
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

	(void)argc;
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
