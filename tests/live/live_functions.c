// SPDX-License-Identifier: GPL-2.0-only
/* Intervals from a symbol list. */
#include "harness.h"
#include "servers.h"
#include "session.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* The first Go program in the usual places; "" if there is none. */
static struct path go_binary_find(void)
{
	static const char script[] =
		"for f in /usr/lib/go-*/bin/go /usr/local/go/bin/go /usr/local/bin/* /usr/bin/*; do "
		"[ -f \"$f\" ] && [ -x \"$f\" ] && readelf -SW \"$f\" 2>/dev/null | grep -q gopclntab && "
		"printf %s \"$f\" && exit; done";
	const char *const argv[] = {"sh", "-c", script, NULL};
	struct path path = {""};
	struct process process;

	if (!process_launch_argv(&process, NULL, argv) && process_wait(&process, 60) >= 0)
		snprintf(path.s, sizeof(path.s), "%s", process_out(&process));
	process_end(&process);
	return path;
}

/* Loaded, and stopped before its first instruction: whatever program it is, it does nothing. */
static pid_t start_stopped(const char *path)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execl(path, path, (char *)NULL);
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFSTOPPED(status) ? pid : -1;
}

/* A Go binary is refused: a return probe would break its stacks. */
static void test_go_binary(void)
{
	struct path symbols = temp_path("go.txt"), dir = temp_path("go"), binary = go_binary_find();
	struct process process;
	pid_t pid;

	if (!*binary.s) {
		skip("go_binary", "there is no Go binary on this machine");
		return;
	}
	CHECK(!file_write(symbols.s, "interval main.main\n", 19));
	pid = start_stopped(binary.s);
	if (!CHECKF(pid > 0, "%s", binary.s))
		return;
	CHECK(whylate(&process, 60, "record -p %d -s %s -d 1s -o %s", (int)pid, symbols.s, dir.s) == 1);
	said_one_line(&process, "Go", NULL);
	CHECK(!is_there(dir.s));
	process_end(&process);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static const struct live_test tests[] = {
	{"function", test_function},
	{"go_binary", test_go_binary},
};

int suite_functions(void)
{
	return live_suite("functions", tests, sizeof(tests) / sizeof(tests[0]));
}
