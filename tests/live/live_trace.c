// SPDX-License-Identifier: GPL-2.0-only
/*
 * Trace mode: workloads whose requests are late because of somebody else, through up to three hops.  The report has to
 * name the planted culprit by pid, tid and name, with a share that agrees with what the workload measured by itself;
 * the steps of every path have to sum to the latency; and what was emitted is written, forgotten or lost.
 */
#include "harness.h"
#include "net.h"
#include "servers.h"
#include "session.h"
#include "stall.h"
#include "walk.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SHARE_TOLERANCE 0.15
/* What is planted takes longer, everything else less. */
#define LATE_NS 4000000UL

/* emitted = taken out of the rings + lost; received = written + forgotten; written = in the shards. */
static void check_balance(const struct session *session)
{
	static const struct {
		enum wl_loss class;
		const char *key;
	} rings[] = {{WL_LOSS_SEGMENT, "segment_records"},
		     {WL_LOSS_WAKEUP, "wakeup_records"},
		     {WL_LOSS_EDGE, "edge_records"}};
	static const struct {
		const char *name;
		enum shard_table_id table;
	} tables[] = {
		{"segments", SHARD_TABLE_SEGMENT}, {"wakeups", SHARD_TABLE_WAKEUP}, {"handoffs", SHARD_TABLE_HANDOFF}};
	uint64_t received = 0, written = 0;

	for (size_t i = 0; i < sizeof(rings) / sizeof(rings[0]); i++)
		CHECKF(session->emitted[rings[i].class] ==
			       session_number(session, rings[i].key) + session->lost[rings[i].class],
		       "%s: emitted %lu, received %s, lost %lu", rings[i].key, session->emitted[rings[i].class],
		       session_key(session, rings[i].key), session->lost[rings[i].class]);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		char key[64];

		snprintf(key, sizeof(key), "%s_written", tables[i].name);
		CHECKF(session_number(session, key) == session->rows[tables[i].table], "%s %s, %lu rows", key,
		       session_key(session, key), session->rows[tables[i].table]);
		written += session_number(session, key);
		snprintf(key, sizeof(key), "%s_received", tables[i].name);
		received += session_number(session, key);
	}
	CHECKF(received == written + session_number(session, "detail_forgotten"),
	       "%lu received, %lu written, %s forgotten", received, written, session_key(session, "detail_forgotten"));
	CHECKF(session_number(session, "segments_received") + session_number(session, "detail_impossible") >=
		       session_number(session, "segment_records"),
	       "%s of %s segments", session_key(session, "segments_received"), session_key(session, "segment_records"));
	CHECKF(session_number(session, "detail_impossible") == 0, "%s impossible records",
	       session_key(session, "detail_impossible"));
}

static void check_paths(const char *name, const char *dir, uint64_t row_cnt)
{
	struct paths_seen seen;

	if (!CHECKF(walk_all(dir, LATE_NS, NULL, &seen), "%s: no detail", name))
		return;
	CHECK(!seen.failed_cnt);
	CHECKF(seen.cnt == row_cnt, "%s: %lu paths of %lu intervals", name, seen.cnt, row_cnt);
	CHECKF(!seen.uneven_cnt, "%s: %lu of %lu paths do not sum to the latency", name, seen.uneven_cnt, seen.cnt);
	CHECKF(seen.late_gap_cnt * 10 <= seen.late_cnt, "%s: %lu of %lu late paths have a gap", name, seen.late_gap_cnt,
	       seen.late_cnt);
}

/*
 * Lines of one culprit are taken together where a workload has several threads of that name; where nobody is to blame,
 * all of the category.
 */
static double culprit_share(json_object *report, const struct workload *workload, bool by_comm)
{
	json_object *lines = json_at(report, "path.lines");
	double share = 0;

	for (size_t i = 0; lines && i < json_object_array_length(lines); i++) {
		json_object *line = json_object_array_get_idx(lines, i);

		if (strcmp(json_text(line, "category"), workload->category) ||
		    (*workload->culprit_comm && strcmp(json_text(line, "culprit.comm"), workload->culprit_comm)))
			continue;
		if (by_comm || json_number(line, "culprit.tid") == json_number(workload->result, "culprit_tid"))
			share += json_number(line, "tail_share");
	}
	return share;
}

static void check_report(const struct workload *workload, json_object *report, bool by_comm)
{
	double share = culprit_share(report, workload, by_comm);
	json_object *result = workload->result;
	bool good = true;

	good &= CHECKF(!strcmp(json_text(report, "causes.0.category"), workload->category),
		       "%s: the first cause is %s: %s", workload->name, json_text(report, "causes.0.category"),
		       json_text(report, "causes.0.what"));
	if (*workload->culprit_comm) {
		good &= CHECKF(!strcmp(json_text(report, "causes.0.culprit.comm"), workload->culprit_comm),
			       "%s: %s, not %s", workload->name, json_text(report, "causes.0.culprit.comm"),
			       workload->culprit_comm);
		good &= CHECKF(json_number(report, "causes.0.culprit.pid") == json_number(result, "culprit_pid"),
			       "%s: culprit's pid %.0f, not %.0f", workload->name,
			       json_number(report, "causes.0.culprit.pid"), json_number(result, "culprit_pid"));
	}
	if (!by_comm)
		good &= CHECKF(json_number(report, "causes.0.culprit.tid") == json_number(result, "culprit_tid"),
			       "%s: culprit's tid %.0f, not %.0f", workload->name,
			       json_number(report, "causes.0.culprit.tid"), json_number(result, "culprit_tid"));
	/* Where the workload knows what lock it is. */
	if (json_at(result, "lock"))
		good &= CHECKF(!strcmp(json_text(report, "path.lines.0.object"), json_text(result, "lock")),
			       "%s: the lock is %s, not %s", workload->name, json_text(report, "path.lines.0.object"),
			       json_text(result, "lock"));
	good &= CHECKF(fabs(share - workload->planted_share) <= SHARE_TOLERANCE, "%s: planted %.3f, %.3f of it by %s",
		       workload->name, workload->planted_share, share, workload->culprit_comm);
	if (!good)
		printf("\n    %s\n", json_object_to_json_string(result));
}

struct stalled {
	const struct stall_watch *watch;
	uint64_t row_cnt, late_cnt, uncertain_cnt;
};

static void take_stalled(void *owner, const struct interval *interval)
{
	struct stalled *stalled = owner;

	stalled->row_cnt += stall_watch__touched(stalled->watch, interval->begin_ts, interval->end_ts);
	if (interval->latency_ns < LATE_NS)
		return;
	stalled->late_cnt++;
	stalled->uncertain_cnt += (interval->flags & WL_INTERVAL_LOSSY) != 0;
}

static void chain_case(const char *name, unsigned int seconds, bool by_comm)
{
	struct stall_watch *watch = stall_watch__new();
	struct stalled stalled = {.watch = watch};
	struct recording recording = {0};
	struct workload workload;
	struct session session;
	json_object *report;
	char dir[64];

	/* What earlier tests have written is not to meet the disk of this one. */
	sync();
	/* The suite of counters has workloads of these names, too. */
	snprintf(dir, sizeof(dir), "trace-%s", name);
	if (!workload_start(&workload, name, seconds) ||
	    !recording_start(&recording, dir, workload.server_pid, "-d 60s --mode trace"))
		goto cleanup;
	workload_go(&workload);
	if (!workload_finish(&workload, seconds + 20))
		goto cleanup;
	stall_watch__stop(watch);
	CHECKF(process_wait(&recording.process, 10) == 0, "%s: %s", name, process_err(&recording.process));
	if (!session_read(&session, recording.dir.s, take_stalled, &stalled))
		goto cleanup;
	session_check(&session);
	session_check_no_loss(&session);
	check_balance(&session);
	check_paths(name, recording.dir.s, session.row_cnt);
	report = report_read(recording.dir.s, NULL);
	if (stalled.row_cnt)
		skip(name, "no shares to compare: the whole machine stood still during %lu of its requests",
		     stalled.row_cnt);
	else if (stalled.uncertain_cnt * 20 > stalled.late_cnt)
		skip(name, "no shares to compare: the kernel left out events of %lu of %lu late requests",
		     stalled.uncertain_cnt, stalled.late_cnt);
	else
		check_report(&workload, report, by_comm);
	json_object_put(report);
cleanup:
	recording_end(&recording);
	workload_end(&workload);
	stall_watch__free(watch);
}

#define CHAINS                      \
	CHAIN(mutex, 6, false)      \
	CHAIN(holder, 6, false)     \
	CHAIN(inversion, 6, false)  \
	CHAIN(chain_tcp, 6, false)  \
	CHAIN(chain_unix, 6, false) \
	CHAIN(stopworld, 6, false)  \
	CHAIN(pool, 8, false)       \
	CHAIN(relay, 6, false)      \
	CHAIN(requeue, 6, false)    \
	CHAIN(spurious, 6, false)   \
	CHAIN(reused, 6, false)     \
	CHAIN(message, 6, false)    \
	CHAIN(splice, 6, false)     \
	CHAIN(uring, 6, false)      \
	CHAIN(ringdisk, 6, true)    \
	CHAIN(neighbour, 8, true)

#define CHAIN(name, seconds, by_comm)                \
	static void test_##name(void)                \
	{                                            \
		chain_case(#name, seconds, by_comm); \
	}
CHAINS
#undef CHAIN

/*
 * Everything is in order although rings are far too small for it: a page has room for some fifty requests, which Redis
 * answers faster than the agent comes round.
 */
static void test_tiny_rings(void)
{
	struct recording recording = {0};
	struct process load = {0};
	struct session session;
	struct paths_seen seen;
	struct redis redis;

	if (!redis_start(&redis, ANY_CPU) ||
	    !recording_start(&recording, "trace-tiny", redis.process.pid,
			     "--mode trace --ring-size 4K --max-loss 100%%") ||
	    !redis_load_start(&load, &redis, ANY_CPU, 50000, 20) || !CHECK(process_wait(&load, 60) == 0))
		goto cleanup;
	CHECKF(recording_stop(&recording) == 0, "%s", process_err(&recording.process));
	if (!session_read(&session, recording.dir.s, NULL, NULL))
		goto cleanup;
	CHECK(session.lost[WL_LOSS_SEGMENT] > 0);
	check_balance(&session);
	CHECK(strstr(process_err(&recording.process), " segment") != NULL);
	if (CHECK(walk_all(recording.dir.s, LATE_NS, NULL, &seen)))
		CHECKF(!seen.uneven_cnt, "%lu of %lu paths do not sum to the latency", seen.uneven_cnt, seen.cnt);
cleanup:
	process_end(&load);
	recording_end(&recording);
	redis_end(&redis);
}

/* With a tail and hardly any baseline, most detail is forgotten, and what is kept is whole. */
static void test_tail(void)
{
	struct recording recording = {0};
	struct workload workload;
	struct session session;

	if (!workload_start(&workload, "mutex", 30) || !recording_start(&recording, "trace-tail", workload.server_pid,
									"-d 6s --mode trace --tail p95 --baseline 5"))
		goto cleanup;
	workload_go(&workload);
	CHECKF(process_wait(&recording.process, 20) == 0, "%s", process_err(&recording.process));
	if (!session_read(&session, recording.dir.s, NULL, NULL))
		goto cleanup;
	session_check(&session);
	check_balance(&session);
	CHECKF(session_number(&session, "segments_written") * 10 < session_number(&session, "segments_received") * 9,
	       "%s of %s segments are written", session_key(&session, "segments_written"),
	       session_key(&session, "segments_received"));
	check_paths("tail", recording.dir.s, session.row_cnt);
cleanup:
	recording_end(&recording);
	workload_end(&workload);
}

/* Nobody outside may be followed: said, counted, and the chain ends at the process. */
static void test_scope_limit(void)
{
	struct recording recording = {0};
	struct workload workload;
	struct session session;

	if (!workload_start(&workload, "chain_tcp", 30) ||
	    !recording_start(&recording, "trace-scope", workload.server_pid, "-d 2s --mode trace --scope 0"))
		goto cleanup;
	workload_go(&workload);
	CHECKF(process_wait(&recording.process, 20) == 0, "%s", process_err(&recording.process));
	if (!session_read(&session, recording.dir.s, NULL, NULL))
		goto cleanup;
	CHECK(session.lost[WL_LOSS_SCOPE] > 0);
	CHECK(strstr(process_err(&recording.process), "--scope") != NULL);
	check_balance(&session);
cleanup:
	recording_end(&recording);
	workload_end(&workload);
}

/* Counters mode leaves the tables of trace mode alone. */
static void test_counters(void)
{
	struct recording recording = {0};
	struct workload workload;
	struct session session;

	if (!workload_start(&workload, "chain_tcp", 30) ||
	    !recording_start(&recording, "trace-counters", workload.server_pid, "-d 2s"))
		goto cleanup;
	workload_go(&workload);
	CHECK(process_wait(&recording.process, 20) == 0);
	if (!session_read(&session, recording.dir.s, NULL, NULL))
		goto cleanup;
	CHECK(session.row_cnt > 0);
	CHECK(!session.rows[SHARD_TABLE_SEGMENT] && !session.rows[SHARD_TABLE_WAKEUP] &&
	      !session.rows[SHARD_TABLE_HANDOFF]);
	CHECK(!session.emitted[WL_LOSS_SEGMENT] && !session.emitted[WL_LOSS_WAKEUP] && !session.emitted[WL_LOSS_EDGE]);
	CHECK(!strcmp(session_key(&session, "mode"), "counters"));
cleanup:
	recording_end(&recording);
	workload_end(&workload);
}

static const struct live_test tests[] = {
#define CHAIN(name, seconds, by_comm) {"trace_" #name, test_##name},
	CHAINS
#undef CHAIN
	{"trace_tiny_rings", test_tiny_rings},
	{"trace_tail", test_tail},
	{"trace_scope_limit", test_scope_limit},
	{"trace_counters", test_counters},
};

int suite_trace(void)
{
	return live_suite("trace", tests, sizeof(tests) / sizeof(tests[0]));
}
