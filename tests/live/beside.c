// SPDX-License-Identifier: GPL-2.0-or-later
#include "beside.h"
#include "disturbed.h"
#include "harness.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define TESTS_MAX 200
#define NOT_ENDED "the process in which it ran came to its end first"

struct beside_test {
	CU_pTest test;
	void (*run)(void);
};

static struct {
	struct beside_test tests[TESTS_MAX];
	unsigned int test_cnt;
	pid_t pid;
	FILE *checks; /* of the test that runs, in that process */
} beside;

/* --- in the process of its own ------------------------------------------------------------------------------------ */

/* `HELD LINE SIZE SIZE` and the two texts, whatever is in them. */
static void keep_check(bool held, const char *file, unsigned int line, const char *text)
{
	size_t file_sz = held ? 0 : strlen(file), text_sz = held ? 0 : strlen(text);

	fprintf(beside.checks, "%d %u %zu %zu\n", held, line, file_sz, text_sz);
	fwrite(file, 1, file_sz, beside.checks);
	fwrite(text, 1, text_sz, beside.checks);
	fflush(beside.checks);
}

static int run_one(unsigned int idx)
{
	unsigned int skipped = skip_cnt();
	struct machine_time begin, end;

	beside.checks = fopen(temp_path("beside-%u.checks", idx).s, "w");
	if (!beside.checks || !freopen(temp_path("beside-%u.out", idx).s, "w", stdout) ||
	    dup2(STDOUT_FILENO, STDERR_FILENO) < 0)
		return -errno;
	machine_time_now(&begin);
	beside.tests[idx].run();
	machine_time_now(&end);
	fflush(stdout);
	fprintf(beside.checks, "end %u %lu %lu %lu %lu %lu %lu\n", skip_cnt() - skipped, begin.ts, begin.stolen,
		begin.total, end.ts, end.stolen, end.total);
	return fclose(beside.checks) ? -errno : 0;
}

static int run_all(void)
{
	int err = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	checks_go_to(keep_check);
	for (unsigned int i = 0; i < beside.test_cnt && !err; i++)
		err = run_one(i);
	return err;
}

/* --- in CUnit's ----------------------------------------------------------------------------------------------------
 */

static int beside_start(void)
{
	fflush(stdout);
	beside.pid = fork();
	if (!beside.pid)
		_exit(run_all() ? 1 : 0);
	return beside.pid < 0 ? errno : 0;
}

static int beside_join(void)
{
	int status = 0;

	while (beside.pid > 0 && waitpid(beside.pid, &status, 0) < 0)
		if (errno != EINTR)
			return errno;
	return 0;
}

static void tell_output(unsigned int idx)
{
	char *text = file_read(temp_path("beside-%u.out", idx).s, NULL);

	if (text)
		fputs(text, stdout);
	free(text);
}

/* One kept check, told to CUnit: the number of bytes that it takes; 0 when there is none here. */
static size_t tell_check(const char *text, size_t sz)
{
	size_t file_sz, text_sz;
	struct path file = {0};
	unsigned int line;
	char what[4096];
	int held, head;

	if (sscanf(text, "%d %u %zu %zu%n", &held, &line, &file_sz, &text_sz, &head) != 4 ||
	    file_sz >= sizeof(file.s) || text_sz >= sizeof(what) || (size_t)head + 1 + file_sz + text_sz > sz)
		return 0;
	text += head + 1;
	memcpy(file.s, text, file_sz);
	memcpy(what, text + file_sz, text_sz);
	what[text_sz] = '\0';
	CU_assertImplementation(held, line, what, file.s, "", CU_FALSE);
	return (size_t)head + 1 + file_sz + text_sz;
}

/* Every test that ran there is this one here. */
static void beside_tell(void)
{
	size_t sz = 0, at = 0, told = 1;
	struct machine_time begin, end;
	unsigned int idx = 0, skipped = 0;
	char *checks;

	while (idx + 1 < beside.test_cnt && beside.tests[idx].test != CU_get_current_test())
		idx++;
	checks = file_read(temp_path("beside-%u.checks", idx).s, &sz);
	tell_output(idx);
	while (checks && told) {
		told = tell_check(checks + at, sz - at);
		at += told;
	}
	if (CHECKF(checks && sscanf(checks + at, "end %u %lu %lu %lu %lu %lu %lu", &skipped, &begin.ts, &begin.stolen,
				    &begin.total, &end.ts, &end.stolen, &end.total) == 7,
		   NOT_ENDED))
		disturbed_ran(&begin, &end);
	skips_add(skipped);
	free(checks);
}

static CU_pSuite first_active(CU_pSuite from, CU_pSuite end)
{
	while (from != end && !from->fActive)
		from = from->pNext;
	return from == end ? NULL : from;
}

void beside_prepare(CU_pSuite from, CU_pSuite first)
{
	from = first_active(from, first);
	first = first_active(first, NULL);
	if (!from || !first)
		return;
	for (CU_pSuite suite = first; suite; suite = suite->pNext) {
		for (CU_pTest test = suite->pTest; suite->fActive && test; test = test->pNext) {
			if (!test->fActive)
				continue;
			if (beside.test_cnt == TESTS_MAX)
				break; /* the others run in their turn */
			beside.tests[beside.test_cnt++] = (struct beside_test){test, test->pTestFunc};
			test->pTestFunc = beside_tell;
		}
	}
	from->pInitializeFunc = beside_start;
	first->pInitializeFunc = beside_join;
}
