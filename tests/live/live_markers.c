// SPDX-License-Identifier: GPL-2.0-or-later
/* Intervals by the markers of whylate/annotate.h: found by themselves, from one thread to another. */
#include "harness.h"
#include "servers.h"
#include "session.h"

#include "shard/columns.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct marked {
	uint64_t other_cnt;
};

static void take_marked(void *owner, const struct interval *interval)
{
	struct marked *marked = owner;

	marked->other_cnt += !interval->type || !strstr(interval->type, "whylate");
}

/* No symbol list, and no socket in the program.  (Budget: it does so little itself that looking at it is much.) */
static void test_found_by_themselves(void)
{
	struct recording recording = {0};
	struct marked marked = {0};
	struct workload workload;
	struct session session;
	json_object *report, *line;

	if (!workload_start(&workload, "markers", 5) ||
	    !recording_start(&recording, "markers", workload.server_pid, "-d 60s --budget 100%%"))
		goto cleanup;
	workload_go(&workload);
	if (!workload_finish(&workload, 30))
		goto cleanup;
	CHECKF(process_wait(&recording.process, 10) == 0, "%s", process_err(&recording.process));
	if (!session_read(&session, recording.dir.s, take_marked, &marked))
		goto cleanup;
	session_check(&session);
	session_check_no_loss(&session);
	CHECKF(!marked.other_cnt, "%lu of other types", marked.other_cnt);
	CHECKF(session.row_cnt >= workload.intervals &&
		       session.row_cnt <= workload.intervals + workload.intervals / 5 + 50,
	       "%lu rows, %lu tasks", session.row_cnt, workload.intervals);
	report = report_read(recording.dir.s, NULL);
	line = json_breakdown(report, workload.category);
	CHECKF(!strcmp(json_text(report, "causes.0.category"), workload.category), "%s",
	       json_text(report, "causes.0.what"));
	CHECKF(fabs(json_number(line, "tail_share") - workload.planted_share) <= 0.10, "planted %.3f, reported %.3f",
	       workload.planted_share, json_number(line, "tail_share"));
	json_object_put(report);
cleanup:
	recording_end(&recording);
	workload_end(&workload);
}

struct traced {
	uint64_t row_cnt, wrong_cnt;
};

/* The workload's trace begins with "traced!!", and its span is the rest of it. */
static void take_traced(void *owner, const struct interval *interval)
{
	const struct shard_block_column *trace = block_column(interval->block, "trace_id", SHARD_STR);
	const struct shard_block_column *span = block_column(interval->block, "span_id", SHARD_STR);
	const char *id = !trace || column_is_null(trace, interval->row) ? "" : trace->values[interval->row].str;
	struct traced *traced = owner;

	traced->row_cnt++;
	traced->wrong_cnt += strncmp(id, "7472616365642121", 16) || !span || column_is_null(span, interval->row) ||
			     strcmp(id + 16, span->values[interval->row].str);
}

static void test_thread_context(void)
{
	struct recording recording = {0};
	struct workload workload;
	struct traced traced = {0};
	struct session session;

	if (!workload_start(&workload, "traced", 1) ||
	    !recording_start(&recording, "traced", workload.server_pid, "--tail none --duty 100%% --budget 100%%"))
		goto cleanup;
	workload_go(&workload);
	if (!workload_finish(&workload, 20))
		goto cleanup;
	recording_stop(&recording);
	if (!session_read(&session, recording.dir.s, take_traced, &traced))
		goto cleanup;
	session_check(&session);
	CHECKF(traced.row_cnt >= workload.intervals, "%lu rows of %lu", traced.row_cnt, workload.intervals);
	CHECKF(!traced.wrong_cnt, "%lu of %lu without their trace", traced.wrong_cnt, traced.row_cnt);
cleanup:
	recording_end(&recording);
	workload_end(&workload);
}

static const struct live_test tests[] = {
	{"markers", test_found_by_themselves},
	{"thread_context", test_thread_context},
};

int suite_markers(void)
{
	return live_suite("markers", tests, sizeof(tests) / sizeof(tests[0]));
}
