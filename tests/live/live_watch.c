// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * An armed watch on a server that becomes slow: tests/workloads/episodes answers in 0.2 ms until it stalls all of its
 * connections.  The program of --exec says what it was given, as which user, and what that user can read.
 */
#include "harness.h"
#include "servers.h"
#include "session.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WHEN "p99>100ms for 4s of tcp*"

/* Its output is a file that the test made for it: that user may write nowhere else. */
static const char tell[] = "#!/bin/sh\n"
			   "exec >%s\n"
			   "env\n"
			   "echo ids $(id -u) $(id -g) $(id -G)\n"
			   "grep -E 'CapEff|NoNewPrivs' /proc/self/status\n"
			   "echo words $# \"$1\"\n"
			   "echo page $(head -c 15 \"$WHYLATE_HTML\")\n"
			   "grep -q staller \"$WHYLATE_REPORT\" && echo text names it\n"
			   "head -c 1 \"$WHYLATE_JSON\"\n"
			   "echo end\n";

struct watched {
	struct workload workload;
	struct process watch;
	struct path home, tell, told;
};

static bool put_program(struct watched *watched)
{
	char script[1400];

	watched->tell = temp_path("watch-tell");
	watched->told = temp_path("watch-told");
	snprintf(script, sizeof(script), tell, watched->told.s);
	return CHECK(!file_write(watched->tell.s, script, strlen(script)) && !chmod(watched->tell.s, 0755) &&
		     !file_write(watched->told.s, "", 0) && !chmod(watched->told.s, 0666));
}

static bool start_server(struct watched *watched)
{
	bool good;

	setenv("EPISODES_EVERY_MS", "7000", 1);
	setenv("EPISODES_STALL_MS", "1500", 1);
	good = workload_start(&watched->workload, "episodes", 100);
	unsetenv("EPISODES_EVERY_MS");
	unsetenv("EPISODES_STALL_MS");
	if (good)
		workload_go(&watched->workload);
	return good;
}

/* Its events go to a relative path: what the program is given must be found from its own working directory. */
static bool start_watch(struct watched *watched)
{
	struct launch launch = {.cpu = ANY_CPU, .cwd = watched->home.s};
	char pid[16];
	const char *const argv[] = {whylate_path(), "watch",  "-p",     pid,      "--when",        WHEN,
				    "-o",           "events", "--mode", "trace",  "--stacks",      "--budget",
				    "100%",         "--duty", "100%",   "--exec", watched->tell.s, "--user",
				    "nobody",       NULL};
	bool good;

	snprintf(pid, sizeof(pid), "%d", (int)watched->workload.server_pid);
	setenv("WATCH_CALLER", "must not be seen", 1);
	good = !process_launch_argv(&watched->watch, &launch, argv);
	unsetenv("WATCH_CALLER");
	return good;
}

/* The rest of the line that begins so; "": there is none. */
static const char *line_of(const char *text, const char *begin)
{
	static char line[1024];
	const char *at = text;
	size_t len = strlen(begin);

	line[0] = '\0';
	while (at && strncmp(at, begin, len)) {
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	if (at)
		snprintf(line, sizeof(line), "%.*s", (int)strcspn(at + len, "\n"), at + len);
	return line;
}

#define CHECK_LINE(text, begin, value) CHECKF(!strcmp(line_of(text, begin), value), "%s", text)

static void check_facts(const char *told, const char *event)
{
	char value[700];
	unsigned long value_ns;

	CHECK_LINE(told, "ids ", "65534 65534 65534");
	CHECK_LINE(told, "CapEff:\t", "0000000000000000");
	CHECK_LINE(told, "NoNewPrivs:\t", "1");
	CHECK_LINE(told, "WHYLATE_WHEN=", WHEN);
	CHECK_LINE(told, "WHYLATE_DIR=", event);
	snprintf(value, sizeof(value), "1 %s", event);
	CHECK_LINE(told, "words ", value);
	snprintf(value, sizeof(value), "%s/report.txt", event);
	CHECK_LINE(told, "WHYLATE_REPORT=", value);
	snprintf(value, sizeof(value), "%s/report.json", event);
	CHECK_LINE(told, "WHYLATE_JSON=", value);
	snprintf(value, sizeof(value), "%s/report.html", event);
	CHECK_LINE(told, "WHYLATE_HTML=", value);
	value_ns = strtoul(line_of(told, "WHYLATE_VALUE_NS="), NULL, 10);
	CHECKF(value_ns > 100 * NS_PER_MS && value_ns < 10 * NS_PER_SEC, "%s", told);
	CHECK(!strstr(told, "WATCH_CALLER"));
	CHECK_LINE(told, "page ", "<!DOCTYPE html>");
	CHECKF(strstr(told, "text names it") && strstr(told, "\n{end"), "%s", told);
}

/* The planted cause, told by the report that the program was given. */
static void check_report(const char *event)
{
	char path[700], *text;
	json_object *report;

	snprintf(path, sizeof(path), "%s/report.json", event);
	text = file_read(path, NULL);
	report = text ? json_tokener_parse(text) : NULL;
	if (CHECKF(report, "%s", path)) {
		const char *kind = json_text(report, "causes.0.root.kind");

		CHECKF(kind && !strcmp(kind, "timer"), "%s", kind ? kind : "none");
		json_object_put(report);
	}
	free(text);
}

static void check_told(struct watched *watched)
{
	char *told = file_read(watched->told.s, NULL), *event = told ? strdup(line_of(told, "WHYLATE_DIR=")) : NULL;

	if (CHECKF(event && event[0] == '/' && strstr(event, "/events/"), "%s, stderr: %s", told,
		   process_err(&watched->watch))) {
		check_facts(told, event);
		check_report(event);
	}
	free(event);
	free(told);
}

static void test_watch_exec(void)
{
	struct watched watched = {.home = temp_unused("watch-home")};

	if (!CHECK(!mkdir(watched.home.s, 0755)) || !put_program(&watched) || !start_server(&watched) ||
	    !start_watch(&watched))
		goto cleanup;
	CHECKF(process_says(&watched.watch, true, "is met", NULL, 60), "%s", process_err(&watched.watch));
	sleep_ms(2000);
	/* An event under way is kept with what there is. */
	process_signal(&watched.watch, SIGTERM);
	CHECKF(process_wait(&watched.watch, 60) == 0, "%s", process_err(&watched.watch));
	CHECKF(!strstr(process_err(&watched.watch), "no whole"), "%s", process_err(&watched.watch));
	check_told(&watched);
cleanup:
	process_end(&watched.watch);
	workload_end(&watched.workload);
}

/* Not at the first event, weeks later. */
static void test_watch_refuses(void)
{
	struct path locked = temp_unused("watch-locked"), program = locked;
	struct process process = {0};

	strcat(program.s, "/tell");
	if (!CHECK(!mkdir(locked.s, 0700)) ||
	    !CHECK(!file_write(program.s, "#!/bin/sh\n", 10) && !chmod(program.s, 0755)))
		return;
	CHECK(whylate(&process, 20, "watch -p %d --when p99>1s -o %s --exec %s --user nobody", (int)getpid(),
		      temp_path("watch-none").s, program.s) == 2);
	CHECK(said_one_line(&process, "cannot run it", "'nobody'"));
	process_end(&process);
}

static const struct live_test tests[] = {
	{"watch/exec", test_watch_exec, SHORT},
	{"watch/refuses", test_watch_refuses, SHORT},
};

int suite_watch(void)
{
	return live_suite("watch", tests, sizeof(tests) / sizeof(tests[0]));
}
