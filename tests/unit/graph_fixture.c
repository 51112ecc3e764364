// SPDX-License-Identifier: GPL-2.0-or-later
#include "graph_fixture.h"

#include "base/names.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

/* There are millions: only a failure is an assertion. */
static void expect_taken(int err)
{
	if (err)
		CU_FAIL("the graph did not take it");
}

void fixture_segment(struct graph *graph, uint32_t tid, uint64_t begin_ts, uint64_t end_ts, enum wl_state state,
		     uint64_t sid)
{
	const struct graph_segment segment = {
		.begin_ts = begin_ts,
		.end_ts = end_ts,
		.sid = sid,
		.pid = FIXTURE_PID,
		.cpu = GRAPH_NO_CPU,
		.state = (uint8_t)state,
	};

	expect_taken(graph__add_segment(graph, tid, &segment));
}

void fixture_lock_wait(struct graph *graph, uint32_t tid, uint64_t begin_ts, uint64_t end_ts, uint64_t sid,
		       uint64_t object, uint32_t owner_tid)
{
	const struct graph_segment segment = {
		.begin_ts = begin_ts,
		.end_ts = end_ts,
		.sid = sid,
		.object = object,
		.pid = FIXTURE_PID,
		.owner_tid = owner_tid,
		.cpu = GRAPH_NO_CPU,
		.state = WL_STATE_BLOCKED_FUTEX,
	};

	expect_taken(graph__add_segment(graph, tid, &segment));
}

void fixture_runnable(struct graph *graph, uint32_t tid, uint64_t begin_ts, uint64_t end_ts, uint64_t sid,
		      uint32_t by_pid, uint32_t by_tid)
{
	const struct graph_segment segment = {
		.begin_ts = begin_ts,
		.end_ts = end_ts,
		.sid = sid,
		.pid = FIXTURE_PID,
		.by_pid = by_pid,
		.by_tid = by_tid,
		.cpu = GRAPH_NO_CPU,
		.state = WL_STATE_RUNQ_PREEMPT,
	};

	expect_taken(graph__add_segment(graph, tid, &segment));
}

void fixture_wakeup(struct graph *graph, uint32_t tid, uint64_t ts, uint32_t waker_tid)
{
	const struct graph_wakeup wakeup = {
		.ts = ts,
		.waker_pid = waker_tid ? FIXTURE_PID : 0,
		.waker_tid = waker_tid,
		.cpu = GRAPH_NO_CPU,
		.context = waker_tid ? WL_CONTEXT_TASK : WL_CONTEXT_SOFTIRQ,
	};

	expect_taken(graph__add_wakeup(graph, tid, &wakeup));
}

void fixture_handoff(struct graph *graph, enum wl_handoff kind, uint32_t from_tid, uint64_t from_ts, uint32_t to_tid,
		     uint64_t to_ts, uint64_t sid)
{
	const struct graph_handoff handoff = {
		.from_ts = from_ts,
		.to_ts = to_ts,
		.sid = sid,
		.from_pid = FIXTURE_PID,
		.from_tid = from_tid,
		.to_pid = FIXTURE_PID,
		.to_tid = to_tid,
		.kind = (uint8_t)kind,
	};

	expect_taken(graph__add_handoff(graph, &handoff));
}

struct graph_interval fixture_interval(uint64_t sid, uint64_t begin_ts, uint64_t pickup_ts, uint64_t end_ts,
				       uint32_t tid)
{
	return (struct graph_interval){
		.sid = sid,
		.begin_ts = begin_ts,
		.pickup_ts = pickup_ts,
		.end_ts = end_ts,
		.pid = FIXTURE_PID,
		.tid = tid,
		.end_tid = tid,
	};
}

void fixture_partitions(const struct path *path, const struct graph_interval *interval)
{
	uint64_t at_ts = interval->begin_ts, wrong = 0;

	for (size_t i = 0; i < path->steps.cnt; i++) {
		const struct path_step *step = &path->steps.items[i];

		wrong += step->begin_ts != at_ts || step->end_ts <= step->begin_ts;
		wrong += step->category >= WL_CATEGORY_CNT || step->sure >= WL_CATEGORY_CNT ||
			 step->wait >= WL_CATEGORY_CNT || step->state >= WL_STATE_CNT ||
			 step->certainty >= WL_CERTAINTY_CNT || step->depth >= PATH_DEPTH_MAX;
		at_ts = step->end_ts;
	}
	CU_ASSERT(at_ts == interval->end_ts && !wrong);
}

/* CATEGORY@TID, <CULPRIT where there is one, #OBJECT, BEGIN-END. */
static void describe(char *text, size_t sz, const struct path *path)
{
	size_t len = 0;

	*text = '\0';
	for (size_t i = 0; i < path->steps.cnt && len < sz; i++) {
		const struct path_step *step = &path->steps.items[i];
		char culprit[16] = "", object[24] = "";

		if (step->culprit_tid)
			snprintf(culprit, sizeof(culprit), "<%u", step->culprit_tid);
		if (step->object)
			snprintf(object, sizeof(object), "#%llu", (unsigned long long)step->object);
		len += (size_t)snprintf(text + len, sz - len, "%s%s@%u%s%s %llu-%llu", i ? "; " : "",
					category_name(step->category), step->tid, culprit, object,
					(unsigned long long)step->begin_ts, (unsigned long long)step->end_ts);
	}
}

void fixture_expect(const struct graph *graph, const struct graph_interval *interval, uint32_t flags, const char *steps)
{
	struct path path = {0};
	char text[2048];

	CU_ASSERT_EQUAL(path_walk(&path, graph, interval), 0);
	fixture_partitions(&path, interval);
	describe(text, sizeof(text), &path);
	if (strcmp(text, steps))
		fprintf(stderr, "expected %s\n     got %s\n", steps, text);
	CU_ASSERT_STRING_EQUAL(text, steps);
	CU_ASSERT_EQUAL(path.flags, flags);
	path__clear(&path);
}
