// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Each workload has one planted cause and measures its share by itself; the report has to name it first, with a share
 * that agrees.
 *
 * Both look at nearly the same requests: the workload is ready and in its warm-up when the recording is attached, only
 * then it begins to count, and the recording ends with the server.  What the recording has beyond that (the last
 * requests of the warm-up) is a few requests in thousands, none of them chosen by what it measured.  Everything is
 * kept: at these rates the default retention passes nothing over, and selection is not lowered, as the targets do
 * little.
 */
#include "harness.h"
#include "servers.h"
#include "session.h"
#include "stall.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SHARE_TOLERANCE 0.10
/* What else was there, for whoever has to find out why a test failed. */
static void show_breakdown(const struct workload *workload, json_object *report)
{
	json_object *lines = json_at(report, "breakdown");

	printf("\n    %s\n    reported:", json_object_to_json_string(workload->result));
	for (size_t i = 0; lines && i < json_object_array_length(lines); i++) {
		json_object *line = json_object_array_get_idx(lines, i);

		if (json_number(line, "tail_share") >= 0.005)
			printf(" %s %.3f", json_text(line, "category"), json_number(line, "tail_share"));
	}
	printf("\n");
}

static bool check_shares(const struct workload *workload, json_object *report)
{
	json_object *line = json_breakdown(report, workload->category);
	double outside = json_outside_share(json_at(report, "breakdown"), workload->category);
	double share = line ? json_number(line, "tail_share") : NAN;
	const char *first = json_text(report, "causes.0.category");
	/* What the machine did to it may be counted as the planted cause, or as something else. */
	double most = json_number(workload->result, "planted_share_most");
	bool good;

	good = CHECKF(!strcmp(json_text(report, "breakdown.0.category"), workload->category),
		      "%s: breakdown begins with %s", workload->name, json_text(report, "breakdown.0.category"));
	good &= CHECKF(!strcmp(first, workload->category), "%s: the first cause is %s: %s", workload->name, first,
		       json_text(report, "causes.0.what"));
	good &= CHECKF(share + outside >= workload->planted_share - SHARE_TOLERANCE && share <= most + SHARE_TOLERANCE,
		       "%s: planted %.3f to %.3f, reported %.3f of %s, %.3f from outside", workload->name,
		       workload->planted_share, most, share, workload->category, outside);
	if (!good)
		show_breakdown(workload, report);
	return good;
}

/* Where the workload says who makes its requests late and the category can know. */
static void check_culprit(const struct workload *workload, json_object *report)
{
	if (strcmp(workload->category, "runq") && strcmp(workload->category, "lock"))
		return;
	CHECKF(!strcmp(json_text(report, "causes.0.culprit.comm"), workload->culprit_comm), "%s, not %s",
	       json_text(report, "causes.0.culprit.comm"), workload->culprit_comm);
	CHECK(json_number(report, "causes.0.culprit.tid") == json_number(workload->result, "culprit_tid"));
}

struct stalled {
	const struct stall_watch *watch;
	uint64_t late_ns; /* the report's tail: it is what shares are of */
	uint64_t row_cnt;
	uint64_t late_cnt, uncertain_cnt; /* of the late ones, those whose events the kernel did not report in full */
};

static void take_stalled(void *owner, const struct interval *interval)
{
	struct stalled *stalled = owner;

	stalled->row_cnt += stall_watch__touched(stalled->watch, interval->begin_ts, interval->end_ts);
	if (interval->latency_ns < stalled->late_ns)
		return;
	stalled->late_cnt++;
	stalled->uncertain_cnt += (interval->flags & WL_INTERVAL_LOSSY) != 0;
}

static void workload_case(const char *name, unsigned int seconds)
{
	struct stall_watch *watch = stall_watch__new();
	struct stalled stalled = {.watch = watch};
	struct recording recording = {0};
	struct workload workload;
	struct session session;
	json_object *report = NULL;

	if (!workload_start(&workload, name, seconds) ||
	    !recording_start(&recording, name, workload.server_pid, "-d 60s --duty 100%%"))
		goto cleanup;
	workload_go(&workload);
	if (!workload_finish(&workload, seconds + 20))
		goto cleanup;
	stall_watch__stop(watch);
	CHECKF(process_wait(&recording.process, 10) == 0, "%s: %s", name, process_err(&recording.process));
	CHECK(strstr(process_err(&recording.process), "the target exited") != NULL);
	report = report_read(recording.dir.s, NULL);
	stalled.late_ns = (uint64_t)json_number(report, "latency.p99_ns");
	if (!session_read(&session, recording.dir.s, take_stalled, &stalled))
		goto cleanup;
	session_check(&session);
	session_check_no_loss(&session);
	CHECKF(session_number(&session, "intervals_seen") >= workload.intervals, "%s seen of %lu",
	       session_key(&session, "intervals_seen"), workload.intervals);
	if (stalled.row_cnt)
		skip(name, "no shares to compare: the whole machine stood still during %lu of its requests",
		     stalled.row_cnt);
	else if (stalled.uncertain_cnt * 20 > stalled.late_cnt)
		skip(name, "no shares to compare: the kernel left out events of %lu of %lu late requests",
		     stalled.uncertain_cnt, stalled.late_cnt);
	else if (check_shares(&workload, report))
		check_culprit(&workload, report);
cleanup:
	json_object_put(report);
	recording_end(&recording);
	workload_end(&workload);
	stall_watch__free(watch);
}

#define WORKLOADS                    \
	WORKLOAD(cpu, 5, REST)       \
	WORKLOAD(sleep, 5, REST)     \
	WORKLOAD(preempt, 6, SHORT)  \
	WORKLOAD(mutex, 6, SHORT)    \
	WORKLOAD(fsync, 6, SHORT)    \
	WORKLOAD(minfault, 5, REST)  \
	WORKLOAD(majfault, 6, REST)  \
	WORKLOAD(upstream, 5, REST)  \
	WORKLOAD(eventloop, 7, REST) \
	WORKLOAD(softirq, 7, REST)   \
	WORKLOAD(timer_irq, 7, REST) \
	WORKLOAD(throttle, 7, REST)

#define WORKLOAD(name, seconds, form)          \
	static void test_##name(void)          \
	{                                      \
		workload_case(#name, seconds); \
	}
WORKLOADS
#undef WORKLOAD

/* A recording that ends before the load, and the same in one go. */
static void test_shorter_than_load(void)
{
	struct process process;
	struct recording recording;
	struct workload workload;
	struct session session;
	json_object *report;

	if (!workload_start(&workload, "mutex", 30))
		goto cleanup;
	workload_go(&workload);
	if (!recording_start(&recording, "shorter", workload.server_pid, "-d 2s"))
		goto cleanup_recording;
	CHECK(process_wait(&recording.process, 10) == 0);
	if (!session_read(&session, recording.dir.s, NULL, NULL))
		goto cleanup_recording;
	session_check(&session);
	session_check_no_loss(&session);
	report = report_read(recording.dir.s, NULL);
	/* It began when it said so and lasts as long as it was told: what lies between is the agent's own work. */
	CHECKF(fabs(json_number(report, "session.duration_s") - 2) < 0.5, "%f s",
	       json_number(report, "session.duration_s"));
	CHECK(!strcmp(json_text(report, "breakdown.0.category"), "lock"));
	json_object_put(report);

	/* In windows of 3 s in all, some eight of 30 ms, the lock may not be met. */
	CHECK(whylate(&process, 30, "diagnose -p %d -d 3s --budget 100%% --json -q", (int)workload.server_pid) == 0);
	report = json_tokener_parse(process_out(&process));
	report_check_schema(report);
	CHECK(!strcmp(json_text(report, "causes.0.category"), "lock"));
	CHECK(!strcmp(json_text(report, "causes.0.culprit.comm"), "compactor"));
	json_object_put(report);
	process_end(&process);
	CHECK(process_runs(&workload.process));
cleanup_recording:
	recording_end(&recording);
cleanup:
	workload_end(&workload);
}

static const struct live_test tests[] = {
#define WORKLOAD(name, seconds, form) {#name, test_##name, form},
	WORKLOADS
#undef WORKLOAD
	{"shorter_than_load", test_shorter_than_load, REST},
};

int suite_workloads(void)
{
	return live_suite("workloads", tests, sizeof(tests) / sizeof(tests[0]));
}
