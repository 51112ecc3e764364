// SPDX-License-Identifier: GPL-2.0-or-later
/* Intervals from a symbol list. */
#include "harness.h"
#include "servers.h"
#include "session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct calls {
	uint64_t other_cnt;
};

static void take_call(void *owner, const struct interval *interval)
{
	struct calls *calls = owner;

	calls->other_cnt += !interval->type || !strstr(interval->type, "handle_request");
}

/* Recursion counts once: the target counts its outermost calls. */
static void test_function(void)
{
	struct path symbols = temp_path("function.txt");
	struct recording recording = {0};
	struct calls calls = {0};
	struct workload workload;
	struct session session;
	json_object *report, *line;

	CHECK(!file_write(symbols.s, "interval handle_request\n", 24));
	if (!workload_start(&workload, "uprobe_target", 5) ||
	    !recording_start(&recording, "function", workload.server_pid, "-s %s -d 60s --budget 100%%", symbols.s))
		goto cleanup;
	workload_go(&workload);
	if (!workload_finish(&workload, 30))
		goto cleanup;
	CHECK(process_wait(&recording.process, 10) == 0);
	if (!session_read(&session, recording.dir.s, take_call, &calls))
		goto cleanup;
	session_check(&session);
	session_check_no_loss(&session);
	CHECK(!calls.other_cnt);
	/*
	 * Seen but not counted: the calls of the warm-up after the recording was attached, which is a few dozen
	 * milliseconds at a thousand a second.
	 */
	CHECKF(session.row_cnt >= workload.intervals && session.row_cnt <= workload.intervals + workload.intervals / 20,
	       "%lu rows, %lu calls", session.row_cnt, workload.intervals);
	report = report_read(recording.dir.s, NULL);
	line = json_breakdown(report, workload.category);
	CHECK(!strcmp(json_text(report, "causes.0.category"), workload.category));
	CHECKF(fabs(json_number(line, "tail_share") - workload.planted_share) <= 0.10, "planted %.3f, reported %.3f",
	       workload.planted_share, json_number(line, "tail_share"));
	json_object_put(report);
cleanup:
	recording_end(&recording);
	workload_end(&workload);
}

struct calls_by_pid {
	pid_t pid[2];
	uint64_t cnt[2], other_cnt;
};

static void take_by_pid(void *owner, const struct interval *interval)
{
	struct calls_by_pid *by_pid = owner;

	if (interval->pid == (uint32_t)by_pid->pid[0])
		by_pid->cnt[0]++;
	else if (interval->pid == (uint32_t)by_pid->pid[1])
		by_pid->cnt[1]++;
	else
		by_pid->other_cnt++;
}

/* A file that two processes run has its probes once: each call of either is one interval. */
static void test_function_of_two_processes(void)
{
	struct path symbols = temp_path("function-two.txt");
	struct workload workloads[2] = {0};
	struct calls_by_pid by_pid = {0};
	struct recording recording = {0};
	struct session session;
	char target[64], args[600];

	CHECK(!file_write(symbols.s, "interval handle_request\n", 24));
	for (int i = 0; i < 2; i++) {
		if (!workload_start(&workloads[i], "uprobe_target", 3))
			goto cleanup;
		by_pid.pid[i] = workloads[i].server_pid;
	}
	snprintf(target, sizeof(target), "-p %d,%d", by_pid.pid[0], by_pid.pid[1]);
	snprintf(args, sizeof(args), "-s %s --rate 100%% --duty 100%% --tail none --budget 100%%", symbols.s);
	if (!recording_start_by(&recording, "function-two", target, args))
		goto cleanup;
	for (int i = 0; i < 2; i++)
		workload_go(&workloads[i]);
	for (int i = 0; i < 2; i++)
		if (!workload_finish(&workloads[i], 30))
			goto cleanup;
	recording_stop(&recording);
	if (!session_read(&session, recording.dir.s, take_by_pid, &by_pid))
		goto cleanup;
	session_check(&session);
	session_check_no_loss(&session);
	CHECK(!by_pid.other_cnt);
	for (int i = 0; i < 2; i++) {
		uint64_t intervals = workloads[i].intervals;

		CHECKF(by_pid.cnt[i] >= intervals && by_pid.cnt[i] <= intervals + intervals / 20,
		       "%lu rows of the %d. process, %lu calls", by_pid.cnt[i], i + 1, intervals);
	}
cleanup:
	recording_end(&recording);
	for (int i = 0; i < 2; i++)
		workload_end(&workloads[i]);
}

/* No return probe in a Go program: it would break its stacks. */
static void test_go_binary(void)
{
	struct path binary = built_path("safety/goroutines");
	struct process process;

	if (!is_there(binary.s)) {
		skip("go_binary", "%s was not built: there is no Go", binary.s);
		return;
	}
	CHECKF(whylate(&process, 60, "probes plan -e %s main.main", binary.s) == 0, "%s", process_err(&process));
	CHECKF(strstr(process_out(&process), "entry +0x") && !strstr(process_out(&process), "exit  return probe"), "%s",
	       process_out(&process));
	process_end(&process);
}

/* A goroutine's entry and another one's exit would be taken for a call: no interval of a Go function, but its time. */
static void test_go_roles(void)
{
	struct path binary = built_path("safety/goroutines"), list = temp_path("go-roles.txt");
	static const char *const refused[] = {"interval main.sinks\n",
					      "begin main.down key=arg0\nend main.sinks key=tid\n"};
	struct process process;

	if (!is_there(binary.s)) {
		skip("go_roles", "%s was not built: there is no Go", binary.s);
		return;
	}
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		CHECK(!file_write(list.s, refused[i], strlen(refused[i])));
		CHECK(whylate(&process, 60, "probes check -e %s -s %s", binary.s, list.s) == 1);
		CHECKF(strstr(process_out(&process), "goroutines") != NULL, "%s", process_out(&process));
		process_end(&process);
	}
	CHECK(!file_write(list.s, "function main.down\n", strlen("function main.down\n")));
	CHECKF(whylate(&process, 60, "probes check -e %s -s %s", binary.s, list.s) == 0, "%s", process_out(&process));
	CHECKF(strstr(process_out(&process), "goroutines") != NULL, "%s", process_out(&process));
	process_end(&process);
}

static const struct live_test tests[] = {
	{"function", test_function, SHORT},
	{"function_of_two_processes", test_function_of_two_processes, REST},
	{"go_roles", test_go_roles, SHORT},
	{"go_binary", test_go_binary, SHORT},
};

int suite_functions(void)
{
	return live_suite("functions", tests, sizeof(tests) / sizeof(tests[0]));
}
