// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/graph.h"

#include "base/order.h"
#include "base/vec.h"
#include "model/series.h"

#include <string.h>

#define FIRST_ROOM      64
#define RIVAL_LOOKS_MAX 256
#define RIVALS_MAX      8

struct graph_exit {
	uint64_t ts;
};

struct graph_thread {
	uint32_t tid;
	struct series segments, wakeups, handoffs, given, exits;
};

struct graph {
	struct graph_thread **threads; /* by tid, open addressing, at most half full */
	size_t thread_room, thread_cnt;
	struct series blocks; /* every block request, by completion */
	size_t series_bytes;
	bool bulk;
};

static size_t hash(uint64_t key, size_t room)
{
	return (size_t)(key * 0x9e3779b97f4a7c15ULL >> 20) & (room - 1);
}

_Static_assert(WL_STATE_RUNNING == 0, "states on the CPU come first");

bool state_is_on_cpu(uint8_t state)
{
	return state == WL_STATE_FAULT_MINOR || state == WL_STATE_FAULT_MAJOR || state <= WL_STATE_SOFTIRQ_RCU;
}

bool state_is_runnable(uint32_t state)
{
	return state == WL_STATE_RUNQ_WAKEUP || state == WL_STATE_RUNQ_PREEMPT;
}

bool state_is_blocked(uint32_t state)
{
	return state >= WL_STATE_BLOCKED_FUTEX && state <= WL_STATE_BLOCKED_OTHER;
}

bool state_is_interrupt(uint8_t state)
{
	return state_is_on_cpu(state) && state != WL_STATE_RUNNING && state != WL_STATE_FAULT_MINOR &&
	       state != WL_STATE_FAULT_MAJOR;
}

struct graph *graph__new(void)
{
	struct graph *graph = calloc(1, sizeof(*graph));

	if (graph)
		series__init(&graph->blocks, sizeof(struct graph_handoff), offsetof(struct graph_handoff, to_ts));
	return graph;
}

static void thread__free(struct graph_thread *thread)
{
	series__free(&thread->segments);
	series__free(&thread->wakeups);
	series__free(&thread->handoffs);
	series__free(&thread->given);
	series__free(&thread->exits);
	free(thread);
}

void graph__free(struct graph *graph)
{
	if (!graph)
		return;
	for (size_t i = 0; i < graph->thread_room; i++)
		if (graph->threads[i])
			thread__free(graph->threads[i]);
	free(graph->threads);
	series__free(&graph->blocks);
	free(graph);
}

/* Where the thread is, or could be put; the table is never full. */
static size_t thread_place(struct graph_thread *const *threads, size_t room, uint32_t tid)
{
	size_t at = hash(tid, room);

	while (threads[at] && threads[at]->tid != tid)
		at = (at + 1) & (room - 1);
	return at;
}

static struct graph_thread *thread_of(const struct graph *graph, uint32_t tid)
{
	return graph->thread_room ? graph->threads[thread_place(graph->threads, graph->thread_room, tid)] : NULL;
}

static int threads_resize(struct graph *graph, size_t room)
{
	struct graph_thread **threads = calloc(room, sizeof(struct graph_thread *));

	if (!threads)
		return -ENOMEM;
	for (size_t i = 0; i < graph->thread_room; i++)
		if (graph->threads[i])
			threads[thread_place(threads, room, graph->threads[i]->tid)] = graph->threads[i];
	free(graph->threads);
	graph->threads = threads;
	graph->thread_room = room;
	return 0;
}

static struct graph_thread *thread_made(struct graph *graph, uint32_t tid)
{
	struct graph_thread *thread = thread_of(graph, tid);

	if (thread)
		return thread;
	if (graph->thread_cnt * 2 >= graph->thread_room &&
	    threads_resize(graph, graph->thread_room ? graph->thread_room * 2 : FIRST_ROOM))
		return NULL;
	thread = calloc(1, sizeof(*thread));
	if (!thread)
		return NULL;
	thread->tid = tid;
	series__init(&thread->segments, sizeof(struct graph_segment), offsetof(struct graph_segment, begin_ts));
	series__init(&thread->wakeups, sizeof(struct graph_wakeup), offsetof(struct graph_wakeup, ts));
	series__init(&thread->handoffs, sizeof(struct graph_handoff), offsetof(struct graph_handoff, to_ts));
	series__init(&thread->given, sizeof(struct graph_given), offsetof(struct graph_given, from_ts));
	series__init(&thread->exits, sizeof(struct graph_exit), offsetof(struct graph_exit, ts));
	graph->threads[thread_place(graph->threads, graph->thread_room, tid)] = thread;
	graph->thread_cnt++;
	return thread;
}

static int add(struct graph *graph, struct series *series, const void *item)
{
	size_t before = series__bytes(series);
	int err = graph->bulk ? series__append(series, item) : series__add(series, item);

	graph->series_bytes += series__bytes(series) - before;
	return err;
}

int graph__add_segment(struct graph *graph, uint32_t tid, const struct graph_segment *segment)
{
	struct graph_thread *thread;

	if (!tid || segment->begin_ts > segment->end_ts || segment->state >= WL_STATE_CNT)
		return -EINVAL;
	if (segment->begin_ts == segment->end_ts)
		return 0;
	thread = thread_made(graph, tid);
	return thread ? add(graph, &thread->segments, segment) : -ENOMEM;
}

int graph__add_wakeup(struct graph *graph, uint32_t tid, const struct graph_wakeup *wakeup)
{
	struct graph_thread *thread;

	if (!tid || wakeup->context >= WL_CONTEXT_CNT || wakeup->certainty >= WL_CERTAINTY_CNT)
		return -EINVAL;
	thread = thread_made(graph, tid);
	return thread ? add(graph, &thread->wakeups, wakeup) : -ENOMEM;
}

static int add_given(struct graph *graph, const struct graph_handoff *handoff)
{
	struct graph_thread *thread = thread_made(graph, handoff->from_tid);
	const struct graph_given given = {handoff->from_ts, handoff->to_ts, handoff->sid, handoff->to_tid};

	return thread ? add(graph, &thread->given, &given) : -ENOMEM;
}

int graph__add_handoff(struct graph *graph, const struct graph_handoff *handoff)
{
	struct graph_thread *thread;
	int err = 0;

	if (handoff->kind >= WL_HANDOFF_CNT || handoff->certainty >= WL_CERTAINTY_CNT ||
	    (!handoff->from_tid && !handoff->to_tid))
		return -EINVAL;
	if (handoff->from_tid && handoff->to_tid && handoff->from_ts > handoff->to_ts)
		return -EINVAL;
	if (handoff->kind == WL_HANDOFF_BLOCK)
		err = add(graph, &graph->blocks, handoff);
	if (err || !handoff->to_tid)
		return err;
	if (handoff->kind == WL_HANDOFF_QUEUE && handoff->from_tid && handoff->sid)
		err = add_given(graph, handoff);
	if (err)
		return err;
	thread = thread_made(graph, handoff->to_tid);
	return thread ? add(graph, &thread->handoffs, handoff) : -ENOMEM;
}

int graph__add_exit(struct graph *graph, uint32_t tid, uint64_t ts)
{
	struct graph_thread *thread = tid ? thread_made(graph, tid) : NULL;
	const struct graph_exit gone = {ts};

	if (!tid)
		return -EINVAL;
	return thread ? add(graph, &thread->exits, &gone) : -ENOMEM;
}

void graph__bulk(struct graph *graph)
{
	graph->bulk = true;
}

void graph__settle(struct graph *graph)
{
	for (size_t i = 0; i < graph->thread_room; i++) {
		if (!graph->threads[i])
			continue;
		series__sort(&graph->threads[i]->segments);
		series__sort(&graph->threads[i]->wakeups);
		series__sort(&graph->threads[i]->handoffs);
		series__sort(&graph->threads[i]->given);
		series__sort(&graph->threads[i]->exits);
	}
	series__sort(&graph->blocks);
	graph->bulk = false;
}

uint32_t graph__next_thread(const struct graph *graph, size_t *place)
{
	while (*place < graph->thread_room) {
		const struct graph_thread *thread = graph->threads[(*place)++];

		if (thread)
			return thread->tid;
	}
	return 0;
}

struct graph_segment *graph__segments(const struct graph *graph, uint32_t tid, uint64_t from_ts, uint64_t to_ts,
				      size_t *cnt)
{
	const struct graph_thread *thread = thread_of(graph, tid);
	const struct graph_segment *segment;
	size_t first, end;

	*cnt = 0;
	if (!thread)
		return NULL;
	end = series__below(&thread->segments, to_ts);
	first = series__up_to(&thread->segments, from_ts);
	/* The one that began before may reach into it. */
	if (first) {
		segment = series__at(&thread->segments, first - 1);
		first -= segment->end_ts > from_ts;
	}
	if (first >= end)
		return NULL;
	*cnt = end - first;
	return series__at(&thread->segments, first);
}

struct graph_segment *graph__segment_before(const struct graph *graph, uint32_t tid, uint64_t ts, size_t *before)
{
	const struct graph_thread *thread = thread_of(graph, tid);
	size_t cnt = thread ? series__below(&thread->segments, ts) : 0;

	*before = cnt ? cnt - 1 : 0;
	return cnt ? series__at(&thread->segments, cnt - 1) : NULL;
}

struct graph_wakeup *graph__wakeup_in(const struct graph *graph, uint32_t tid, uint64_t from_ts, uint64_t to_ts)
{
	const struct graph_thread *thread = thread_of(graph, tid);
	struct graph_wakeup *wakeup;
	size_t cnt = thread ? series__up_to(&thread->wakeups, to_ts) : 0;

	if (!cnt)
		return NULL;
	wakeup = series__at(&thread->wakeups, cnt - 1);
	return wakeup->ts >= from_ts ? wakeup : NULL;
}

/* The items with keys in [from, to] as one array. */
static void *stretch(const struct series *series, uint64_t from, uint64_t to, size_t *cnt)
{
	size_t first = series__below(series, from), end = series__up_to(series, to);

	*cnt = end > first ? end - first : 0;
	return *cnt ? series__at(series, first) : NULL;
}

struct graph_wakeup *graph__wakeups(const struct graph *graph, uint32_t tid, uint64_t from_ts, uint64_t to_ts,
				    size_t *cnt)
{
	const struct graph_thread *thread = thread_of(graph, tid);

	*cnt = 0;
	return thread ? stretch(&thread->wakeups, from_ts, to_ts, cnt) : NULL;
}

struct graph_handoff *graph__handoffs_to(const struct graph *graph, uint32_t tid, uint64_t from_ts, uint64_t to_ts,
					 size_t *cnt)
{
	const struct graph_thread *thread = thread_of(graph, tid);

	*cnt = 0;
	return thread ? stretch(&thread->handoffs, from_ts, to_ts, cnt) : NULL;
}

const struct graph_given *graph__given_by(const struct graph *graph, uint32_t tid, uint64_t from_ts, uint64_t to_ts,
					  size_t *cnt)
{
	const struct graph_thread *thread = thread_of(graph, tid);

	*cnt = 0;
	return thread ? stretch(&thread->given, from_ts, to_ts, cnt) : NULL;
}

bool graph__exit_in(const struct graph *graph, uint32_t tid, uint64_t from_ts, uint64_t to_ts)
{
	const struct graph_thread *thread = thread_of(graph, tid);
	size_t cnt = thread ? series__up_to(&thread->exits, to_ts) : 0;

	return cnt && series__key(&thread->exits, cnt - 1) >= from_ts;
}

/* How long a request was with the device between from_ts and to_ts. */
static uint64_t served_ns(const struct graph_handoff *request, uint64_t from_ts, uint64_t to_ts)
{
	uint64_t end_ts = request->to_ts < to_ts ? request->to_ts : to_ts;
	uint64_t begin_ts = request->service_ns < request->to_ts ? request->to_ts - request->service_ns : 0;

	begin_ts = begin_ts > from_ts ? begin_ts : from_ts;
	return end_ts > begin_ts ? end_ts - begin_ts : 0;
}

/* The requests of one process: how long the device was at any of them. */
struct rival {
	struct graph_handoff *longest;
	uint64_t longest_ns, total_ns;
	uint64_t end_ts; /* of the latest: what lies before is counted */
};

static struct rival *rival_of(struct rival *rivals, const struct graph_handoff *request)
{
	for (int i = 0; i < RIVALS_MAX; i++)
		if (!rivals[i].longest || rivals[i].longest->from_pid == request->from_pid)
			return &rivals[i];
	return NULL;
}

struct graph_handoff *graph__block_rival(const struct graph *graph, uint32_t device, uint32_t pid, uint64_t from_ts,
					 uint64_t to_ts, uint64_t *ns)
{
	struct rival rivals[RIVALS_MAX] = {0}, *rival, *worst = rivals;
	size_t at = series__up_to(&graph->blocks, from_ts);
	bool only = device == GRAPH_ONLY_DEVICE;

	/* By their ends, so that of each only what came after the one before it is new. */
	for (size_t looks = 0; at < graph->blocks.cnt && looks < RIVAL_LOOKS_MAX; at++, looks++) {
		struct graph_handoff *request = series__at(&graph->blocks, at);
		uint64_t request_ns = served_ns(request, from_ts, to_ts);

		if (device == GRAPH_ONLY_DEVICE && request_ns)
			device = request->device;
		else if (only && request_ns && request->device != device)
			return NULL;
		if (request->device != device || !request->from_tid || request->from_pid == pid)
			continue;
		rival = rival_of(rivals, request);
		if (!rival || !request_ns)
			continue;
		rival->total_ns += served_ns(request, rival->end_ts > from_ts ? rival->end_ts : from_ts, to_ts);
		rival->end_ts = request->to_ts;
		if (!rival->longest || request_ns > rival->longest_ns) {
			rival->longest_ns = request_ns;
			rival->longest = request;
		}
	}
	for (rival = rivals; rival < rivals + RIVALS_MAX; rival++)
		if (rival->total_ns > worst->total_ns)
			worst = rival;
	*ns = worst->total_ns;
	return worst->longest;
}

struct graph_handoff *graph__blocks(const struct graph *graph, uint64_t from_ts, uint64_t to_ts, size_t *cnt)
{
	size_t first = series__up_to(&graph->blocks, from_ts), end = series__up_to(&graph->blocks, to_ts);

	*cnt = end > first ? end - first : 0;
	return *cnt ? series__at(&graph->blocks, first) : NULL;
}

static size_t drop(struct graph *graph, struct series *series, size_t cnt)
{
	size_t before = series__bytes(series);

	if (cnt)
		series__drop(series, cnt);
	graph->series_bytes -= before - series__bytes(series);
	return cnt;
}

/* Segments do not overlap, so that those that ended before ts are the first ones; the last of them may reach over it.
 */
static size_t ended_before(const struct series *segments, uint64_t ts)
{
	size_t cnt = series__below(segments, ts);

	while (cnt && ((const struct graph_segment *)series__at(segments, cnt - 1))->end_ts >= ts)
		cnt--;
	return cnt;
}

static bool is_empty(const struct graph_thread *thread)
{
	return !thread->segments.cnt && !thread->wakeups.cnt && !thread->handoffs.cnt && !thread->given.cnt &&
	       !thread->exits.cnt;
}

/* Frees threads of which nothing is left.  Taking one out breaks the chains of places, so the table is made anew. */
static void sweep_threads(struct graph *graph, size_t empty_cnt)
{
	struct graph_thread **threads;
	size_t room = graph->thread_room;

	while (room > FIRST_ROOM && (graph->thread_cnt - empty_cnt) * 4 < room)
		room /= 2;
	threads = calloc(room, sizeof(struct graph_thread *));
	/* Empty ones are no harm. */
	if (!threads)
		return;
	for (size_t i = 0; i < graph->thread_room; i++) {
		struct graph_thread *thread = graph->threads[i];

		if (thread && is_empty(thread))
			thread__free(thread);
		else if (thread)
			threads[thread_place(threads, room, thread->tid)] = thread;
	}
	free(graph->threads);
	graph->threads = threads;
	graph->thread_room = room;
	graph->thread_cnt -= empty_cnt;
}

size_t graph__forget(struct graph *graph, uint64_t ts)
{
	size_t dropped = 0, empty_cnt = 0;

	for (size_t i = 0; i < graph->thread_room; i++) {
		struct graph_thread *thread = graph->threads[i];

		if (!thread)
			continue;
		dropped += drop(graph, &thread->segments, ended_before(&thread->segments, ts));
		dropped += drop(graph, &thread->wakeups, series__below(&thread->wakeups, ts));
		dropped += drop(graph, &thread->handoffs, series__below(&thread->handoffs, ts));
		drop(graph, &thread->given, series__below(&thread->given, ts));
		drop(graph, &thread->exits, series__below(&thread->exits, ts));
		empty_cnt += is_empty(thread);
	}
	drop(graph, &graph->blocks, series__below(&graph->blocks, ts));
	if (empty_cnt)
		sweep_threads(graph, empty_cnt);
	return dropped;
}

size_t graph__bytes(const struct graph *graph)
{
	return sizeof(*graph) + graph->series_bytes + graph->thread_room * sizeof(*graph->threads) +
	       graph->thread_cnt * sizeof(**graph->threads);
}

uint64_t graph__oldest_ts(const struct graph *graph)
{
	uint64_t oldest_ts = UINT64_MAX;

	for (size_t i = 0; i < graph->thread_room; i++)
		if (graph->threads[i] && graph->threads[i]->segments.cnt &&
		    series__key(&graph->threads[i]->segments, 0) < oldest_ts)
			oldest_ts = series__key(&graph->threads[i]->segments, 0);
	return oldest_ts;
}

static uint64_t last_key(const struct series *series)
{
	return series->cnt ? series__key(series, series->cnt - 1) : 0;
}

/* Nothing that is there is younger. */
static uint64_t newest_ts(const struct graph *graph)
{
	uint64_t newest = last_key(&graph->blocks);

	for (size_t i = 0; i < graph->thread_room; i++) {
		const struct graph_thread *thread = graph->threads[i];
		const struct graph_segment *last;
		uint64_t ts = 0;

		if (!thread)
			continue;
		if (thread->segments.cnt) {
			last = series__at(&thread->segments, thread->segments.cnt - 1);
			ts = last->end_ts;
		}
		ts = last_key(&thread->wakeups) > ts ? last_key(&thread->wakeups) : ts;
		ts = last_key(&thread->handoffs) > ts ? last_key(&thread->handoffs) : ts;
		newest = ts > newest ? ts : newest;
	}
	return newest;
}

size_t graph__shrink(struct graph *graph, size_t bytes_max)
{
	uint64_t cut_ts = 0, newest = newest_ts(graph);
	size_t dropped = 0;

	while (graph__bytes(graph) > bytes_max) {
		uint64_t oldest_ts = graph__oldest_ts(graph);

		/* A segment that began early and goes on must not hold up the cut. */
		cut_ts = oldest_ts > cut_ts ? oldest_ts : cut_ts;
		if (cut_ts >= newest)
			return dropped + graph__forget(graph, UINT64_MAX);
		/* An eighth of what is left at a time: little is dropped needlessly. */
		cut_ts += (newest - cut_ts) / 8 + 1;
		dropped += graph__forget(graph, cut_ts);
	}
	return dropped;
}
