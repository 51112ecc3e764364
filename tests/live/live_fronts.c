// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Requests that go through queues, processes and hosts, by the commands that docs/CASES.md shows, shorter: each
 * compares what the tool says with what the programs log themselves, and ends with 1 where that is not the same.
 */
#include "harness.h"
#include "servers.h"

#include <stdio.h>
#include <string.h>

static void test_command(const char *name, const char *command, const char *said)
{
	struct process process;

	if (program_missing(name, "python3"))
		return;
	process_start(&process, "%s", command);
	CHECKF(process_wait(&process, 150) == 0, "%s%s", process_out(&process), process_err(&process));
	if (!strncmp(process_out(&process), "SKIP ", strlen("SKIP ")))
		skip(name, "%s", process_out(&process));
	else
		CHECKF(strstr(process_out(&process), said) != NULL, "%s", process_out(&process));
	process_end(&process);
}

static void test_stages(void)
{
	test_command("fronts_stages", "tests/bench/haboob/run --seconds 2", "write stage: ");
}

static void test_multiplexed(void)
{
	test_command("fronts_multiplexed", "tests/bench/multiplex --kinds threads --requests 300", "ambiguous");
}

static void test_multiplexed_loop(void)
{
	test_command("fronts_multiplexed_loop", "tests/bench/multiplex --kinds loop,batch --requests 600", "ambiguous");
}

static void test_bookstore(void)
{
	/* Beside another test a few statements have no asker; none has another one's. */
	test_command("fronts_bookstore", "tests/bench/bookstore/run --engine myisam --seconds 8 --right 0.99",
		     "admin_confirm");
}

static const struct live_test tests[] = {
	{"fronts_stages", test_stages, SHORT},
	{"fronts_multiplexed", test_multiplexed, SHORT},
	{"fronts_multiplexed_loop", test_multiplexed_loop, REST},
	{"fronts_bookstore", test_bookstore, REST},
};

int suite_fronts(void)
{
	return live_suite("fronts", tests, sizeof(tests) / sizeof(tests[0]));
}
