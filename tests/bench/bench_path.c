// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How long critical paths take: paths_make() and report_make() over made-up intervals in which everything happens that
 * a path can meet (1 million intervals in under a minute on two cores).
 *
 *	bench_path [INTERVALS [THREADS]]
 *
 * One line on stdout.  Making the data is not counted.
 */
#include "analysis/paths.h"
#include "base/clock.h"
#include "base/names.h"

#include <stdio.h>
#include <stdlib.h>

#define SESSION_ID 1

static uint64_t random_state = 1;

static uint64_t random_u64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void *must(void *memory)
{
	if (!memory) {
		fprintf(stderr, "bench_path: no memory\n");
		exit(1);
	}
	return memory;
}

static void must_work(int err)
{
	if (err) {
		fprintf(stderr, "bench_path: error %d\n", err);
		exit(1);
	}
}

static void put_segment(struct graph *graph, uint32_t tid, uint64_t begin_ts, uint64_t end_ts, enum wl_state state,
			uint64_t sid)
{
	const struct graph_segment segment = {
		.begin_ts = begin_ts,
		.end_ts = end_ts,
		.sid = sid,
		.object = state == WL_STATE_BLOCKED_FUTEX ? 0x1000 + tid % 16 : 0,
		.pid = 1,
		.by_pid = 2,
		.by_tid = 2,
		.cpu = GRAPH_NO_CPU,
		.state = (uint8_t)state,
	};

	must_work(graph__add_segment(graph, tid, &segment));
}

/* One interval on a thread: queued, run, wait for a lock or for data of the next thread, run, preempted, run. */
static uint64_t put_interval(struct graph *graph, uint32_t tid, uint32_t next_tid, uint64_t ts, uint64_t sid,
			     uint64_t *begin_ts)
{
	uint64_t wait_ns = 1000 + random_u64() % (random_u64() % 50 ? 2000 : 200000);
	bool lock = random_u64() % 2;
	struct graph_wakeup wakeup = {.cpu = GRAPH_NO_CPU, .context = lock ? WL_CONTEXT_TASK : WL_CONTEXT_SOFTIRQ};
	struct graph_handoff handoff = {.from_tid = next_tid, .from_pid = 1, .to_tid = tid, .to_pid = 1};

	*begin_ts = ts;
	put_segment(graph, tid, ts, ts + 500, WL_STATE_BLOCKED_POLL, 0);
	put_segment(graph, tid, ts + 500, ts + 700, WL_STATE_RUNQ_WAKEUP, 0);
	put_segment(graph, tid, ts + 700, ts + 1500, WL_STATE_RUNNING, sid);
	ts += 1500;
	put_segment(graph, tid, ts, ts + wait_ns, lock ? WL_STATE_BLOCKED_FUTEX : WL_STATE_BLOCKED_NET, sid);
	ts += wait_ns;
	wakeup.ts = ts;
	wakeup.waker_pid = lock;
	wakeup.waker_tid = lock ? next_tid : 0;
	must_work(graph__add_wakeup(graph, tid, &wakeup));
	handoff.from_ts = ts - 100;
	handoff.to_ts = ts + 300;
	if (!lock)
		must_work(graph__add_handoff(graph, &handoff));
	put_segment(graph, tid, ts, ts + 200, WL_STATE_RUNQ_WAKEUP, sid);
	put_segment(graph, tid, ts + 200, ts + 900, WL_STATE_RUNNING, sid);
	put_segment(graph, tid, ts + 900, ts + 1200, WL_STATE_RUNQ_PREEMPT, sid);
	put_segment(graph, tid, ts + 1200, ts + 2000, WL_STATE_RUNNING, sid);
	return ts + 2000;
}

static void make_traces(struct traces *traces, struct dataset *dataset, size_t cnt, uint32_t thread_cnt)
{
	struct trace_session session = {.id = SESSION_ID, .graph = must(graph__new())};
	uint64_t *at_ts = must(calloc(thread_cnt, sizeof(*at_ts)));
	uint32_t id;

	dataset->row_cnt = cnt;
	for (size_t i = 0; i < cnt; i++) {
		uint32_t tid = 10 + (uint32_t)(i % thread_cnt), next_tid = 10 + (uint32_t)((i + 1) % thread_cnt);
		struct trace_interval interval = {.weight = 1};
		uint64_t begin_ts, end_ts;

		end_ts = put_interval(session.graph, tid, next_tid, at_ts[i % thread_cnt], i + 1, &begin_ts);
		at_ts[i % thread_cnt] = end_ts + random_u64() % 3000;
		interval.base = (struct graph_interval){
			.sid = i + 1,
			.begin_ts = begin_ts,
			.pickup_ts = begin_ts + 700,
			.end_ts = end_ts,
			.pid = 1,
			.tid = tid,
			.end_tid = tid,
		};
		must_work(idmap__id(&session.interval_ids, i + 1, 0, &id));
		must_work(vec_push(&session.first_intervals, (uint32_t)i));
		must_work(vec_push(&traces->intervals, interval));
		dataset->sid[i] = i + 1;
		dataset->begin_ts[i] = begin_ts;
		dataset->latency_ns[i] = end_ts - begin_ts;
		dataset->weight[i] = 1;
	}
	must_work(idmap__id(&traces->session_ids, SESSION_ID, 0, &id));
	must_work(vec_push(&traces->sessions, session));
	free(at_ts);
}

int main(int argc, char **argv)
{
	size_t cnt = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
	uint32_t thread_cnt = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 64;
	const char *strings[] = {""};
	uint64_t session_id = SESSION_ID;
	struct dataset dataset = {.pid = -1, .strings = strings, .string_cnt = 1, .session_ids = &session_id};
	struct report_opts opts = {.tail = 0.99, .seed = 1, .slowest = 10};
	struct traces traces = {0};
	struct report report;
	struct paths paths;
	uint64_t begin_ts, walked_ts, end_ts;
	uint32_t empty;

	if (!cnt || thread_cnt < 2) {
		fprintf(stderr, "usage: bench_path [INTERVALS [THREADS]]\n");
		return 2;
	}
	dataset.session_cnt = 1;
	dataset.arena = must(arena__new());
	dataset.sid = must(calloc(cnt, sizeof(uint64_t)));
	dataset.begin_ts = must(calloc(cnt, sizeof(uint64_t)));
	dataset.latency_ns = must(calloc(cnt, sizeof(uint64_t)));
	dataset.weight = must(calloc(cnt, sizeof(double)));
	dataset.type = must(calloc(cnt, sizeof(uint32_t)));
	dataset.session = must(calloc(cnt, sizeof(uint32_t)));
	traces.arena = traces.strings.arena = must(arena__new());
	must_work(intern__id(&traces.strings, "", &empty));
	make_traces(&traces, &dataset, cnt, thread_cnt);
	begin_ts = monotonic_ns();
	must_work(paths_make(&paths, &traces, &dataset, NULL));
	walked_ts = monotonic_ns();
	opts.paths = &paths;
	must_work(report_make(&report, &dataset, &opts));
	end_ts = monotonic_ns();
	printf("%zu intervals on %u threads walked in %.2f s, %.1f entries each; ranked in %.2f s; %zu lines\n",
	       paths.walked, thread_cnt, (double)(walked_ts - begin_ts) / 1e9,
	       (double)paths.entries.cnt / (double)paths.walked, (double)(end_ts - walked_ts) / 1e9,
	       report.path->line_cnt);
	return 0;
}
