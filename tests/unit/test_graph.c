// SPDX-License-Identifier: GPL-2.0-or-later
#include "graph_fixture.h"
#include "unit.h"

#include <errno.h>

static void what_comes_late_is_put_in_order(void)
{
	struct graph *graph = graph__new();
	struct graph_segment *segments;
	struct graph_wakeup *wakeup;
	size_t cnt, before;

	fixture_segment(graph, 7, 10, 20, WL_STATE_RUNNING, 1);
	fixture_segment(graph, 7, 40, 50, WL_STATE_RUNNING, 3);
	fixture_segment(graph, 7, 20, 30, WL_STATE_RUNNING, 2);
	fixture_segment(graph, 7, 0, 10, WL_STATE_RUNNING, 4);
	fixture_segment(graph, 7, 30, 30, WL_STATE_RUNNING, 9); /* empty */
	segments = graph__segments(graph, 7, 0, 100, &cnt);
	CU_ASSERT_EQUAL_FATAL(cnt, 4);
	for (size_t i = 1; i < cnt; i++)
		CU_ASSERT(segments[i - 1].begin_ts < segments[i].begin_ts);
	segments = graph__segments(graph, 7, 15, 25, &cnt);
	CU_ASSERT(cnt == 2 && segments[0].sid == 1 && segments[1].sid == 2);
	segments = graph__segments(graph, 7, 20, 21, &cnt);
	CU_ASSERT(cnt == 1 && segments[0].sid == 2);
	CU_ASSERT_PTR_NULL(graph__segments(graph, 7, 30, 40, &cnt));
	CU_ASSERT_PTR_NULL(graph__segments(graph, 8, 0, 100, &cnt));
	CU_ASSERT_EQUAL(graph__segment_before(graph, 7, 40, &before)->sid, 2);
	CU_ASSERT_EQUAL(before, 2);
	CU_ASSERT_PTR_NULL(graph__segment_before(graph, 7, 0, &before));

	fixture_wakeup(graph, 7, 30, 8);
	fixture_wakeup(graph, 7, 5, 9);
	wakeup = graph__wakeup_in(graph, 7, 1, 29);
	CU_ASSERT(wakeup && wakeup->waker_tid == 9);
	CU_ASSERT_PTR_NULL(graph__wakeup_in(graph, 7, 6, 29));
	CU_ASSERT(graph__wakeup_in(graph, 7, 30, 30) != NULL);
	graph__free(graph);
}

static void in_bulk_the_order_does_not_matter(void)
{
	struct graph *graph = graph__new();
	struct graph_segment *segments;
	size_t cnt, sorted = 0;

	graph__bulk(graph);
	for (uint64_t i = 0; i < 1000; i++)
		fixture_segment(graph, 7, 10 * (i * 617 % 1000), 10 * (i * 617 % 1000) + 10, WL_STATE_RUNNING, i + 1);
	for (uint64_t i = 1000; i; i--)
		fixture_wakeup(graph, 7, i, 8);
	graph__settle(graph);
	segments = graph__segments(graph, 7, 0, 10000, &cnt);
	CU_ASSERT_EQUAL_FATAL(cnt, 1000);
	for (size_t i = 0; i < cnt; i++)
		sorted += segments[i].begin_ts == 10 * i;
	CU_ASSERT_EQUAL(sorted, 1000);
	CU_ASSERT_EQUAL(graph__wakeup_in(graph, 7, 0, 500)->ts, 500);
	graph__free(graph);
}

static void what_makes_no_sense_is_refused(void)
{
	struct graph *graph = graph__new();
	struct graph_segment segment = {.begin_ts = 20, .end_ts = 10};
	struct graph_wakeup wakeup = {.context = WL_CONTEXT_CNT};
	struct graph_handoff handoff = {.kind = WL_HANDOFF_CNT, .to_tid = 1};

	CU_ASSERT_EQUAL(graph__add_segment(graph, 1, &segment), -EINVAL);
	segment.end_ts = 30;
	CU_ASSERT_EQUAL(graph__add_segment(graph, 0, &segment), -EINVAL);
	segment.state = WL_STATE_CNT;
	CU_ASSERT_EQUAL(graph__add_segment(graph, 1, &segment), -EINVAL);
	CU_ASSERT_EQUAL(graph__add_wakeup(graph, 1, &wakeup), -EINVAL);
	wakeup = (struct graph_wakeup){.certainty = WL_CERTAINTY_CNT};
	CU_ASSERT_EQUAL(graph__add_wakeup(graph, 1, &wakeup), -EINVAL);
	CU_ASSERT_EQUAL(graph__add_handoff(graph, &handoff), -EINVAL);
	handoff = (struct graph_handoff){.kind = WL_HANDOFF_PIPE};
	CU_ASSERT_EQUAL(graph__add_handoff(graph, &handoff), -EINVAL);
	handoff = (struct graph_handoff){.from_tid = 1, .from_ts = 5, .to_tid = 2, .to_ts = 4};
	CU_ASSERT_EQUAL(graph__add_handoff(graph, &handoff), -EINVAL);
	CU_ASSERT_EQUAL(graph__add_exit(graph, 0, 1), -EINVAL);
	graph__free(graph);
	graph__free(NULL);
}

static void forgetting_gives_memory_back(void)
{
	struct graph *graph = graph__new();
	size_t empty = graph__bytes(graph), full, cnt, dropped;

	for (uint64_t i = 0; i < 20; i++)
		for (uint32_t tid = 1; tid <= 10000; tid++) {
			fixture_segment(graph, tid, i * 100 + tid % 50, i * 100 + 90, WL_STATE_RUNNING, 0);
			if (i % 4 == 0)
				fixture_wakeup(graph, tid, i * 100 + 1, tid + 1);
			if (i % 5 == 0)
				fixture_handoff(graph, WL_HANDOFF_BLOCK, tid, i * 100, tid + 1, i * 100 + 1, 0);
		}
	CU_ASSERT_EQUAL(graph__add_exit(graph, 3, 500), 0);
	full = graph__bytes(graph);
	CU_ASSERT(full > 10000 * 20 * sizeof(struct graph_segment));
	CU_ASSERT_EQUAL(graph__oldest_ts(graph), 0);
	dropped = graph__forget(graph, 1000);
	CU_ASSERT_EQUAL(dropped, 10000 * (10 + 3 + 2));
	CU_ASSERT(graph__bytes(graph) < full);
	CU_ASSERT_EQUAL(graph__oldest_ts(graph), 1000);
	CU_ASSERT_FALSE(graph__exit_in(graph, 3, 0, 1000));
	CU_ASSERT(graph__segments(graph, 5000, 1000, 1100, &cnt) && cnt == 1);

	/* Half of what is left, then nothing. */
	full = graph__bytes(graph);
	graph__shrink(graph, full / 2);
	CU_ASSERT(graph__bytes(graph) <= full / 2 && graph__bytes(graph) > full / 8);
	CU_ASSERT(graph__segments(graph, 5000, 1900, 2000, &cnt) && cnt == 1);
	graph__shrink(graph, 0);
	CU_ASSERT(graph__bytes(graph) < empty + 64 * 1024);
	CU_ASSERT_EQUAL(graph__oldest_ts(graph), UINT64_MAX);
	fixture_segment(graph, 5000, 5000, 5001, WL_STATE_RUNNING, 0);
	CU_ASSERT(graph__segments(graph, 5000, 0, 6000, &cnt) && cnt == 1);
	graph__free(graph);
}

/* A thread that has been blocked for an hour must not keep the rest of the hour in memory. */
static void one_long_wait_does_not_stop_the_forgetting(void)
{
	struct graph *graph = graph__new();
	size_t bytes_max = 64 * 1024, cnt;

	for (uint64_t i = 0; i < 10000; i++)
		fixture_segment(graph, 2, i * 10, i * 10 + 10, WL_STATE_RUNNING, 0);
	fixture_segment(graph, 1, 0, 100000, WL_STATE_BLOCKED_FUTEX, 0);
	graph__shrink(graph, bytes_max);
	CU_ASSERT(graph__bytes(graph) <= bytes_max);
	CU_ASSERT(graph__segments(graph, 1, 0, 10, &cnt) && cnt == 1);
	CU_ASSERT(graph__segments(graph, 2, 99990, 100000, &cnt) && cnt == 1);
	graph__free(graph);
}

int suite_graph(void)
{
	static const struct unit_test tests[] = {
		{"what comes late is put in order", what_comes_late_is_put_in_order},
		{"in bulk the order does not matter", in_bulk_the_order_does_not_matter},
		{"what makes no sense is refused", what_makes_no_sense_is_refused},
		{"forgetting gives memory back", forgetting_gives_memory_back},
		{"one long wait does not stop the forgetting", one_long_wait_does_not_stop_the_forgetting},
	};

	return unit_suite("graph", tests, sizeof(tests) / sizeof(tests[0]));
}
