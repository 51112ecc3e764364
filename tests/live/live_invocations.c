// SPDX-License-Identifier: GPL-2.0-or-later
/* Calls of probed functions, and every role: against what the workloads do and measure by themselves. */
#include "calls.h"
#include "harness.h"
#include "servers.h"
#include "session.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A worker that is in job_pop() when its probes come takes its first request unseen, and there are so many workers. */
#define TAKEN_UNSEEN 2
#define LOSSY        (WL_INTERVAL_LOSSY | WL_INTERVAL_TORN)

/* emitted = taken out of the rings + lost; taken = written + forgotten; written = in the shards. */
static void check_balance(const struct session *session)
{
	uint64_t received = session_number(session, "invocation_records");

	CHECKF(session->emitted[WL_LOSS_INVOCATION] == received + session->lost[WL_LOSS_INVOCATION],
	       "emitted %lu, received %lu, lost %lu", session->emitted[WL_LOSS_INVOCATION], received,
	       session->lost[WL_LOSS_INVOCATION]);
	CHECKF(received == session_number(session, "invocations_written") +
				   session_number(session, "invocations_forgotten"),
	       "%lu received, %s written, %s forgotten", received, session_key(session, "invocations_written"),
	       session_key(session, "invocations_forgotten"));
	CHECK(session_number(session, "invocations_written") == session->rows[SHARD_TABLE_INVOCATION]);
	CHECK(session_number(session, "probe_unreadable") == 0);
}

/* Every call's split sums, no call leaves its interval, and parents are there and enclose their children. */
static void check_calls(const struct calls_read *read)
{
	uint64_t uneven = 0, outside = 0, orphans = 0, torn = 0;

	for (size_t i = 0; i < read->interval_cnt; i++) {
		const struct sid_row *interval = &read->intervals[i];

		for (size_t j = 0; j < read->call_cnt; j++) {
			const struct call_row *call = &read->calls[j];

			if (call->sid == interval->sid)
				outside += call->begin_ts < interval->begin_ts || call->end_ts > interval->end_ts;
		}
	}
	for (size_t i = 0; i < read->call_cnt; i++) {
		const struct call_row *call = &read->calls[i];
		bool found = call->parent_func == UINT32_MAX;

		uneven += call->sum_ns != call->end_ts - call->begin_ts;
		torn += (call->flags & WL_INVOCATION_TORN) != 0;
		/* Parents come after their children, most often soon. */
		for (size_t j = i + 1; !found && j < read->call_cnt; j++) {
			const struct call_row *parent = &read->calls[j];

			if (parent->sid != call->sid || parent->tid != call->tid || parent->seq != call->parent_seq)
				continue;
			found = parent->func == call->parent_func && parent->depth + 1 == call->depth &&
				parent->begin_ts <= call->begin_ts && parent->end_ts >= call->end_ts;
			break;
		}
		orphans += !found;
	}
	CHECKF(!uneven, "%lu of %zu splits do not sum to the time of the call", uneven, read->call_cnt);
	CHECKF(!outside, "%lu of %zu calls leave their interval", outside, read->call_cnt);
	CHECKF(!orphans, "%lu of %zu calls have no parent where they say they have one", orphans, read->call_cnt);
	printf("(%zu calls in %zu intervals, %lu torn) ", read->call_cnt, read->interval_cnt, torn);
}

struct expected {
	const char *func, *parent;
	uint64_t cnt, flags;
};

static uint64_t calls_of(const struct calls_read *read, uint64_t sid, const struct expected *expected, size_t cnt)
{
	uint64_t calls = 0;

	for (size_t i = 0; i < cnt; i++)
		calls += calls_in(read, sid, calls_func(read, expected[i].func), 0);
	return calls;
}

/* Of all intervals that nothing happened to; in so many of them nobody may have been seen at work. */
static void check_counts(const struct calls_read *read, size_t unseen_max, const struct expected *expected, size_t cnt)
{
	uint64_t wrong = 0, looked_at = 0, unseen = 0;

	for (size_t i = 0; i < read->interval_cnt; i++) {
		if (read->intervals[i].flags & LOSSY)
			continue;
		looked_at++;
		if (unseen < unseen_max && !calls_of(read, read->intervals[i].sid, expected, cnt)) {
			unseen++;
			continue;
		}
		for (size_t j = 0; j < cnt; j++) {
			uint64_t got = calls_in(read, read->intervals[i].sid, calls_func(read, expected[j].func),
						expected[j].flags);

			if (got == expected[j].cnt)
				continue;
			if (!wrong++)
				CHECKF(false, "%s with flags %lu: %lu calls in interval %zu, not %lu", expected[j].func,
				       expected[j].flags, got, i, expected[j].cnt);
		}
	}
	CHECKF(!wrong && looked_at > 100, "%lu wrong counts in %lu intervals", wrong, looked_at);
}

/* Each stands higher in the call graph than what it calls. */
static void check_heights(const struct calls_read *read)
{
	static const char *const chain[] = {"call_leaf", "call_mid", "handle_call"};
	uint64_t below = 0, height;

	for (size_t i = 0; i < sizeof(chain) / sizeof(chain[0]); i++, below = height + 1) {
		int func = calls_func(read, chain[i]);

		height = func < 0 ? UINT64_MAX : read->heights[func];
		CHECKF(height != UINT64_MAX && height >= below, "%s stands at %ld, over %lu", chain[i], (long)height,
		       below);
	}
}

static bool record_workload(struct recording *recording, const char *as, struct workload *workload, const char *name,
			    const char *list, const char *more)
{
	struct path symbols = temp_path("invocations.txt");

	if (!CHECK(!file_write(symbols.s, list, strlen(list))) || !workload_start(workload, name, 3) ||
	    !recording_start(recording, as, workload->server_pid, "-s %s -d 60s --tail none --budget 100%% %s",
			     symbols.s, more))
		return false;
	workload_go(workload);
	return workload_finish(workload, 30) && CHECK(process_wait(&recording->process, 10) == 0);
}

/* A call that sleeps and does nothing else for long is blocked for nothing else. */
static void check_waits(const struct calls_read *read, const char *sleeper)
{
	uint64_t blocked_ns = 0, sleep_ns = 0, too_long = 0;
	int func = calls_func(read, sleeper);

	for (size_t i = 0; i < read->call_cnt; i++) {
		const struct call_row *call = &read->calls[i];

		too_long += call->waits_ns > call->blocked_ns;
		blocked_ns += (int)call->func == func ? call->blocked_ns : 0;
		sleep_ns += (int)call->func == func ? call->sleep_ns : 0;
	}
	CHECKF(!too_long, "%lu calls waited for longer than they were blocked", too_long);
	CHECKF(sleep_ns && 20 * sleep_ns >= 19 * blocked_ns, "%s slept for %lu of %lu ns", sleeper, sleep_ns,
	       blocked_ns);
}

static void test_known_calls(void)
{
	static const struct expected expected[] = {
		{"call_leaf", NULL, 9, 0},
		{"call_mid", NULL, 2, 0},
		{"call_recursing", NULL, 6, 0},
		{"call_jumping", NULL, 3, WL_INVOCATION_ABANDONED},
		{"call_deep", NULL, WL_FUNC_DEPTH, 0},
		{"call_deep", NULL, 1, WL_INVOCATION_DEEP},
	};
	struct recording recording = {0};
	struct calls_read read = {0};
	struct workload workload;
	struct session session;

	/* What runs on the coroutines' stacks has a test of its own. */
	if (!record_workload(&recording, "calls", &workload, "calls",
			     "interval handle_call\nfunction call_leaf\nfunction call_mid\nfunction call_recursing\n"
			     "function call_jumping\nfunction call_deep\n",
			     ""))
		goto cleanup;
	if (!session_read(&session, recording.dir.s, NULL, NULL) || !calls_read_dir(&read, recording.dir.s))
		goto cleanup;
	session_check(&session);
	check_balance(&session);
	CHECKF(session.row_cnt >= workload.intervals, "%lu rows, %lu requests", session.row_cnt, workload.intervals);
	check_calls(&read);
	check_counts(&read, 0, expected, sizeof(expected) / sizeof(expected[0]));
	check_heights(&read);
	check_waits(&read, "call_mid");
	CHECK(session.lost[WL_LOSS_DEPTH] >= (session.row_cnt - 1) * 16);
	for (size_t i = 0; i < read.call_cnt; i++)
		if (!CHECK(read.calls[i].has_call_addr))
			break;
cleanup:
	calls_free(&read);
	recording_end(&recording);
	workload_end(&workload);
}

/*
 * Functions in windows: the probes stay while the other hooks come and go.  Of the requests that are looked at none
 * lacks a call, and all calls are counted meanwhile, so that how many requests there were is known but for the one
 * under way at either end.
 */
static void test_in_windows(void)
{
	static const struct expected expected[] = {
		{"hash_row", NULL, 2, 0},   {"probe_bucket", NULL, 2, 0}, {"match_row", NULL, 4, 0},
		{"unpack_row", NULL, 4, 0}, {"compare_keys", NULL, 4, 0}, {"sort_rows", NULL, 1, 0},
	};
	struct recording recording = {0};
	struct calls_read read = {0};
	struct workload workload;
	struct session session;
	double seen, truth;

	if (!record_workload(&recording, "calls-windows", &workload, "deep",
			     "function hash_row\nfunction probe_bucket\nfunction match_row\nfunction unpack_row\n"
			     "function compare_keys\nfunction sort_rows\n",
			     "--rate 40% --duty 40%"))
		goto cleanup;
	if (!session_read(&session, recording.dir.s, NULL, NULL) || !calls_read_dir(&read, recording.dir.s))
		goto cleanup;
	session_check(&session);
	check_balance(&session);
	check_calls(&read);
	check_counts(&read, 0, expected, sizeof(expected) / sizeof(expected[0]));
	CHECKF(session_number(&session, "windows") >= 2, "%s windows", session_key(&session, "windows"));
	/* The kernel leaves out some, here and there. */
	CHECKF(session.lost[WL_LOSS_MISSED_SWITCH] < session.emitted[WL_LOSS_MISSED_SWITCH] / 20,
	       "%lu of %lu switches missed", session.lost[WL_LOSS_MISSED_SWITCH],
	       session.emitted[WL_LOSS_MISSED_SWITCH]);
	printf("(%lu of %lu switches missed) ", session.lost[WL_LOSS_MISSED_SWITCH],
	       session.emitted[WL_LOSS_MISSED_SWITCH]);
	truth = (double)read.entries[calls_func(&read, "sort_rows")];
	seen = (double)session_number(&session, "intervals_seen");
	CHECKF(seen > truth / 2 && seen < truth * 2, "%.0f requests by the weights of windows, %.0f by calls", seen,
	       truth);
cleanup:
	calls_free(&read);
	recording_end(&recording);
	workload_end(&workload);
}

/* Calls on stacks of their own, mapped apart or within the thread's: flagged, and nobody's parents. */
static void test_stack_switches(void)
{
	static const struct expected expected[] = {
		{"call_coroutine", NULL, 2, WL_INVOCATION_TORN},
		{"call_leaf", NULL, 9, 0},
		{"call_leaf", NULL, 2, WL_INVOCATION_LOST_PARENT},
	};
	struct recording recording = {0};
	struct calls_read read = {0};
	struct workload workload;
	int coroutine;

	if (!record_workload(&recording, "calls-stacks", &workload, "calls",
			     "interval handle_call\nfunction call_leaf\nfunction call_mid\nfunction call_coroutine\n",
			     "--rate 100%"))
		goto cleanup;
	if (!calls_read_dir(&read, recording.dir.s))
		goto cleanup;
	check_calls(&read);
	check_counts(&read, 0, expected, sizeof(expected) / sizeof(expected[0]));
	coroutine = calls_func(&read, "call_coroutine");
	for (size_t i = 0; i < read.call_cnt; i++)
		if (!CHECK((int)read.calls[i].parent_func != coroutine))
			break;
cleanup:
	calls_free(&read);
	recording_end(&recording);
	workload_end(&workload);
}

#define EVERY_ROLE                                                                        \
	"begin request_begin key=arg0 name=job\nend request_end key=arg0\n"               \
	"enqueue job_push queue=arg0 task=arg1\ndequeue job_pop queue=arg0 task=retval\n" \
	"acquire store_lock object=arg0\nrelease store_unlock object=arg0\nfunction stage_work\n"

/* Those that the workload counted, too: not its warm-up, which may have met other weather. */
struct queued {
	uint64_t since_ts, cnt, ns;
};

static void take_queued(void *owner, const struct interval *interval)
{
	struct queued *queued = owner;

	if (interval->begin_ts < queued->since_ts)
		return;
	queued->cnt++;
	queued->ns += interval->ns[WL_STATE_QUEUE];
}

static void check_stages(const struct workload *workload, const struct session *session, const struct queued *queued,
			 const char *dir)
{
	double queue_ns = queued->cnt ? (double)queued->ns / queued->cnt : 0;
	double measured_ns = json_number(workload->result, "queue_mean_ns");
	json_object *report = report_read(dir, NULL);

	CHECKF(fabs(queue_ns / measured_ns - 1) < 0.25, "queue: %.0f ns measured, %.0f ns recorded", measured_ns,
	       queue_ns);
	CHECKF(session->ns[WL_STATE_UNKNOWN] * 50 < session->latency_sum_ns, "%lu ns are not known",
	       session->ns[WL_STATE_UNKNOWN]);
	CHECKF(session->moved_cnt * 10 > session->row_cnt * 9, "%lu of %lu moved", session->moved_cnt,
	       session->row_cnt);
	CHECK(!strcmp(json_text(report, "causes.0.category"), "lock"));
	CHECKF(!strcmp(json_text(report, "causes.0.culprit.comm"), "compactor"), "%s",
	       json_text(report, "causes.0.culprit.comm"));
	json_object_put(report);
}

/* Requests that go through a queue and wait for a lock that only the symbol list knows. */
static void stages(const char *more)
{
	static const struct expected expected[] = {{"stage_work", NULL, 1, 0}, {"store_lock", NULL, 1, 0}};
	struct recording recording = {0};
	struct calls_read read = {0};
	struct workload workload;
	struct session session;
	struct queued queued = {0};
	bool trace = *more;
	int lock;

	if (!record_workload(&recording, *more ? "stages-trace" : "stages", &workload, "stages", EVERY_ROLE, more))
		goto cleanup;
	queued.since_ts = workload.go_ts;
	if (!session_read(&session, recording.dir.s, take_queued, &queued) || !calls_read_dir(&read, recording.dir.s))
		goto cleanup;
	session_check(&session);
	check_balance(&session);
	CHECKF(session.row_cnt >= workload.intervals, "%lu rows, %lu requests", session.row_cnt, workload.intervals);
	check_calls(&read);
	check_counts(&read, TAKEN_UNSEEN, expected, sizeof(expected) / sizeof(expected[0]));
	check_stages(&workload, &session, &queued, recording.dir.s);
	lock = calls_func(&read, "store_lock");
	for (size_t i = 0; i < read.call_cnt; i++)
		if ((int)read.calls[i].func == lock &&
		    !CHECK(read.calls[i].object == read.calls[0].object || read.calls[i].object))
			break;
	if (trace)
		CHECK(session.rows[SHARD_TABLE_HANDOFF] > 0);
cleanup:
	calls_free(&read);
	recording_end(&recording);
	workload_end(&workload);
}

static void test_stages(void)
{
	stages("");
}

static void test_stages_trace(void)
{
	stages("--mode trace --budget 100%");
}

static const struct live_test tests[] = {
	{"known_calls", test_known_calls, SHORT},      {"in_windows", test_in_windows, REST},
	{"stack_switches", test_stack_switches, REST}, {"stages", test_stages, SHORT},
	{"stages_trace", test_stages_trace, REST},
};

int suite_invocations(void)
{
	return live_suite("invocations", tests, sizeof(tests) / sizeof(tests[0]));
}
