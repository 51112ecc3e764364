// SPDX-License-Identifier: GPL-2.0-or-later
#include "again.h"
#include "disturbed.h"
#include "harness.h"

#include <CUnit/CUnit.h>
#include <CUnit/TestRun.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define RUNS         2
#define UNSTABLE_MAX 1

static bool is_noted(const struct again *again, const char *name)
{
	for (size_t i = 0; i < again->cnt; i++)
		if (!strcmp(again->names[i], name))
			return true;
	return false;
}

void again_note(struct again *again)
{
	const CU_FailureRecord *failure = CU_get_failure_list();

	memset(again, 0, sizeof(*again));
	again->suites_failed = CU_get_number_of_suites_failed() != 0;
	for (; failure; failure = failure->pNext) {
		if (!failure->pTest || strlen(failure->pTest->pName) >= AGAIN_NAME_LEN) {
			again->suites_failed = true;
			continue;
		}
		if (is_noted(again, failure->pTest->pName))
			continue;
		if (again->cnt == AGAIN_MAX) {
			again->too_many = true;
			return;
		}
		again->disturbed_by[again->cnt] = disturbed_by(failure->pTest->pName);
		strcpy(again->names[again->cnt++], failure->pTest->pName);
	}
}

/* This program with the test's name alone. Its output goes to a file, which is printed if the test fails. */
static bool passes_alone(const char *name, int run)
{
	struct path out = temp_path("again-%s-%d.out", name, run);
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		int fd = open(out.s, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

		unsetenv("CI");
		if (fd >= 0 && dup2(fd, STDOUT_FILENO) >= 0 && dup2(fd, STDERR_FILENO) >= 0)
			execl("/proc/self/exe", "run", name, (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return false;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return true;
	{
		char *text = file_read(out.s, NULL);

		printf("%s alone, run %d:\n%s\n", name, run, text ? text : "no output");
		free(text);
	}
	return false;
}

bool again_passes(const struct again *again)
{
	size_t unstable = 0, well = 0;

	if (again->too_many || again->suites_failed || !again->cnt)
		return false;
	for (size_t i = 0; i < again->cnt; i++) {
		const char *name = again->names[i], *why = again->disturbed_by[i];
		int passed = 0;

		while (passed < RUNS && passes_alone(name, passed + 1))
			passed++;
		if (passed < RUNS)
			printf("FAILED %s again, alone\n", name);
		else if (why)
			printf("DISTURBED %s: failed while %s, passed %d times alone\n", name, why, RUNS);
		else
			printf("UNSTABLE %s: failed in the whole run, passed %d times alone\n", name, RUNS);
		well += passed == RUNS;
		unstable += passed == RUNS && !why;
	}
	return well == again->cnt && unstable <= UNSTABLE_MAX;
}
