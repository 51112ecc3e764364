// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Page, comparison, segments, watch and top as a user has them of a PostgreSQL under load.  Statements take less than a
 * millisecond, until a session begins to hold a row for 50 ms, eight times a second, which one statement in five wants
 * to update: those are late, and the session's own pg_sleep().
 */
#include "harness.h"
#include "postgres.h"
#include "servers.h"
#include "session.h"

#include <glob.h>
#include <json-c/json.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ                            \
	"\\set aid random(1, 100000)\n" \
	"SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n"
#define WRITE "UPDATE pgbench_branches SET bbalance = bbalance + 1 WHERE bid = 1;\n"
#define HOLD  "BEGIN;\n" WRITE "SELECT pg_sleep(0.05);\nEND;\n"

#define PAGE_MAX (3 << 20)

struct views {
	struct postgres postgres;
	struct process load, holder;
	struct path dir; /* the recording: quiet for its first half, then rows are held */
};

static bool put_script(const struct views *views, const char *name, const char *text)
{
	char path[700];

	snprintf(path, sizeof(path), "%s/%s.sql", views->postgres.home.s, name);
	return CHECK(!file_write(path, text, strlen(text)) && !chmod(path, 0644));
}

static bool begin_load(struct views *views, struct process *process, const char *scripts, unsigned int clients,
		       unsigned int rate)
{
	struct launch launch = {.user = "postgres", .cpu = ANY_CPU, .cwd = views->postgres.home.s};

	return !process_launch(process, &launch,
			       "%s/pgbench -h 127.0.0.1 -p %d -n -M simple %s -c %u -j 1 -R %u -T 120 postgres",
			       views->postgres.bin.s, views->postgres.port, scripts, clients, rate);
}

static bool begin_holding(struct views *views)
{
	return begin_load(views, &views->holder, "-f hold.sql", 1, 8);
}

/* --- watch ---------------------------------------------------------------------------------------------------------
 */

/* The one event's directory; "": there is none. */
static struct path event_of(struct path dir)
{
	struct path event = {""};
	char pattern[600];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/[0-9]*", dir.s);
	if (!glob(pattern, 0, NULL, &found)) {
		if (CHECKF(found.gl_pathc == 1, "%zu events", found.gl_pathc))
			snprintf(event.s, sizeof(event.s), "%s", found.gl_pathv[0]);
		globfree(&found);
	}
	return event;
}

static void check_event(struct path event, struct path told)
{
	static const char *const names[] = {"report.txt", "report.json", "report.html"};
	char path[700], *text;
	size_t sz;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", event.s, names[i]);
		text = file_read(path, &sz);
		CHECKF(text && sz > 1000 && sz < PAGE_MAX, "%s: %zu bytes", path, text ? sz : 0);
		if (text && !strcmp(names[i], "report.html"))
			CHECK(!strncmp(text, "<!DOCTYPE html>", 15) && strstr(text, "id=\"data\""));
		if (text && !strcmp(names[i], "report.txt"))
			CHECKF(strstr(text, "are late"), "%.600s", text);
		free(text);
	}
	text = file_read(told.s, &sz);
	CHECKF(text && strstr(text, "p99>20ms for 2s") && strstr(text, event.s), "told '%s'", text ? text : "nothing");
	free(text);
}

/* Nothing while all is well; an event as soon as rows are held, with its reports and a command's run. */
static void test_watch(struct views *views)
{
	struct path events = temp_path("events"), told = temp_path("told"), tell = temp_path("tell");
	char pid[16], script[1400];
	const char *const argv[] = {whylate_path(), "watch",  "-p",     pid,     "--when",   "p99>20ms for 2s",
				    "-o",           events.s, "--mode", "trace", "--stacks", "--budget",
				    "100%",         "--exec", tell.s,   NULL};
	struct launch launch = {.cpu = ANY_CPU};
	struct process watch = {0};

	snprintf(pid, sizeof(pid), "%d", views->postgres.process.pid);
	snprintf(script, sizeof(script), "#!/bin/sh\necho \"$WHYLATE_WHEN $1\" >%s\n", told.s);
	if (!CHECK(!file_write(tell.s, script, strlen(script)) && !chmod(tell.s, 0755) && !file_write(told.s, "", 0) &&
		   !chmod(told.s, 0666)) ||
	    process_launch_argv(&watch, &launch, argv))
		goto cleanup;
	sleep_ms(4000);
	CHECKF(process_runs(&watch) && !strstr(process_err(&watch), "is met"), "%s", process_err(&watch));
	if (!begin_holding(views))
		goto cleanup;
	CHECKF(process_says(&watch, true, "is met", "is met", 20), "%s", process_err(&watch));
	sleep_ms(2000);
	/* An event under way is kept with what there is. */
	process_signal(&watch, SIGTERM);
	CHECKF(process_wait(&watch, 30) == 0, "%s", process_err(&watch));
	check_event(event_of(events), told);
cleanup:
	process_end(&watch);
	process_end(&views->holder);
}

/* --- a recording ---------------------------------------------------------------------------------------------------
 */

static bool record(struct views *views)
{
	struct process process = {0};
	bool good;

	views->dir = temp_path("views");
	good = !process_start(&process,
			      "%s record -p %d -o %s -d 10s --mode trace --stacks --budget 100%% --duty 100%%",
			      whylate_path(), views->postgres.process.pid, views->dir.s) &&
	       process_says(&process, true, "recording", "recording", 20);
	sleep_ms(5000);
	good = good && begin_holding(views) && CHECKF(process_wait(&process, 60) == 0, "%s", process_err(&process));
	process_end(&process);
	process_end(&views->holder);
	return good;
}

/* In a browser, where there is one: nothing is on its console. */
static void open_page(const char *page)
{
	struct process process = {0};

	if (access("/usr/bin/chromium", X_OK) || access("tests/browser/shots", X_OK)) {
		skip("views in a browser",
		     "chromium is not installed (scripts/setup.sh test), or this is not the source");
		return;
	}
	if (!process_start(&process, "tests/browser/shots %s %s", page, temp_path("shot").s))
		CHECKF(process_wait(&process, 60) == 0 && strstr(process_out(&process), "no console error"), "%s%s",
		       process_out(&process), process_err(&process));
	process_end(&process);
}

static void test_page(const struct views *views)
{
	struct path page = temp_path("page.html");
	struct process process = {0};
	struct stat st = {0};

	CHECKF(whylate(&process, 60, "report %s --html %s", views->dir.s, page.s) == 0, "%s", process_err(&process));
	CHECKF(strstr(process_out(&process), "pg_sleep") || strstr(process_out(&process), "pgbench_branches"), "%s",
	       process_out(&process));
	CHECKF(!stat(page.s, &st) && st.st_size > 50000 && st.st_size < PAGE_MAX, "%ld bytes", (long)st.st_size);
	process_end(&process);
	open_page(page.s);
}

static void test_compare(const struct views *views)
{
	struct process process = {0};
	json_object *told, *functions = NULL;

	CHECKF(whylate(&process, 60, "compare %s@0s-4s %s@6s-10s --json", views->dir.s, views->dir.s) == 4, "%s",
	       process_err(&process));
	told = json_tokener_parse(process_out(&process));
	CHECKF(told && json_object_object_get_ex(told, "functions", &functions) &&
		       json_object_array_length(functions) > 3,
	       "%.500s", process_out(&process));
	if (told)
		json_object_put(told);
	process_end(&process);
	CHECKF(whylate(&process, 60, "compare %s@6s-10s %s@0s-4s", views->dir.s, views->dir.s) == 0, "%s%s",
	       process_out(&process), process_err(&process));
	CHECKF(strstr(process_out(&process), "B is better"), "%.800s", process_out(&process));
	process_end(&process);
}

/* The worst second is one in which rows were held. */
static void test_segments(const struct views *views)
{
	struct process process = {0};
	json_object *told, *difference = NULL, *events = NULL;

	CHECKF(whylate(&process, 60, "report --segments 2s --json %s", views->dir.s) == 0, "%s", process_err(&process));
	told = json_tokener_parse(process_out(&process));
	if (CHECKF(told != NULL, "%.300s", process_out(&process))) {
		CHECKF(json_number(told, "worst") >= 2, "segment %.0f", json_number(told, "worst"));
		CHECKF(json_object_object_get_ex(told, "difference", &difference) &&
			       json_object_object_get_ex(difference, "tail_events", &events) &&
			       json_object_array_length(events) > 0,
		       "%.600s", process_out(&process));
		json_object_put(told);
	}
	process_end(&process);
}

static size_t lines_of(const char *text)
{
	size_t cnt = 0;

	for (; *text; text++)
		cnt += *text == '\n';
	return cnt;
}

/* Live, with the figures of the load, and replayed. */
static void test_top(struct views *views)
{
	struct process process = {0};
	const char *last = NULL;
	double rate = 0;

	if (!begin_holding(views))
		return;
	CHECKF(whylate(&process, 30, "top -p %d --window 5s --budget 100%% --duty 100%% 1s 4",
		       views->postgres.process.pid) == 0,
	       "%s", process_err(&process));
	for (const char *line = strchr(process_out(&process), '\n'); line && line[1]; line = strchr(line + 1, '\n'))
		last = line + 1;
	CHECKF(last && sscanf(last, "%*s %lf", &rate) == 1 && rate > 100 && rate < 2000 && strstr(last, " ms"), "%s",
	       process_out(&process));
	process_end(&process);
	process_end(&views->holder);
	CHECKF(whylate(&process, 30, "top %s 1s", views->dir.s) == 0, "%s", process_err(&process));
	CHECKF(lines_of(process_out(&process)) >= 6, "%s", process_out(&process));
	process_end(&process);
}

static bool views_start(struct views *views, const char *name)
{
	struct process process = {0};
	char line[128];
	bool good;

	if (!postgres_find(&views->postgres, name) || !postgres_start(&views->postgres, name, "-c fsync=off"))
		return false;
	snprintf(line, sizeof(line), "pgbench -h 127.0.0.1 -p %d -i -q -s 1 postgres", views->postgres.port);
	good = as_postgres(&views->postgres, &process, 60, line) && put_script(views, "read", READ) &&
	       put_script(views, "write", WRITE) && put_script(views, "hold", HOLD) &&
	       begin_load(views, &views->load, "-f read.sql@8 -f write.sql@2", 4, 400);
	process_end(&process);
	if (good)
		sleep_ms(1000);
	return good;
}

static void views_end(struct views *views)
{
	process_end(&views->holder);
	process_end(&views->load);
	postgres_end(&views->postgres);
}

static void test_views(void)
{
	struct views views = {0};

	if (views_start(&views, "pgviews") && record(&views)) {
		test_page(&views);
		test_compare(&views);
		test_segments(&views);
		test_top(&views);
	}
	views_end(&views);
}

static void test_views_watch(void)
{
	struct views views = {0};

	if (views_start(&views, "pgwatch"))
		test_watch(&views);
	views_end(&views);
}

/* Live, into a pipe: a line a second, the planted root in one of them (others are the machine's). */
static void test_top_root(void)
{
	struct workload workload = {0};
	struct process process = {0};
	const char *line = NULL;
	double rate = 0;

	if (!workload_start(&workload, "mutex", 12))
		goto cleanup;
	CHECKF(whylate(&process, 20, "top -p %d --window 10s --budget 100%% --duty 100%% 1s 5", workload.server_pid) ==
		       0,
	       "%s", process_err(&process));
	line = strchr(process_out(&process), '\n');
	CHECKF(!strncmp(process_out(&process), "time ", 5) && line, "%s", process_out(&process));
	/* The last line: on a busy machine the agent reads the first requests after the first line. */
	for (const char *next = line; next && next[1]; next = strchr(next + 1, '\n'))
		line = next;
	CHECKF(line && sscanf(line + 1, "%*s %lf", &rate) == 1 && rate > 10, "%s", process_out(&process));
	CHECKF(strstr(process_out(&process), "compactor"), "%s", process_out(&process));
cleanup:
	process_end(&process);
	workload_end(&workload);
}

static const struct live_test tests[] = {
	{"views", test_views, SHORT},
	{"views_watch", test_views_watch, REST},
	{"top", test_top_root, REST},
};

int suite_views(void)
{
	return live_suite("views", tests, sizeof(tests) / sizeof(tests[0]));
}
