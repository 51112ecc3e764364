// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/call_times.h"

#include "base/order.h"

#include <errno.h>
#include <stdlib.h>

/* Numbers of 32 bits may have run over in between. */
ORDER(compare_calls, struct call, BY(a->tid, b->tid), BY(a->begin_ts, b->begin_ts), BY((int32_t)(a->seq - b->seq), 0));

void calls_sort(struct call *calls, size_t cnt)
{
	if (cnt > 1)
		qsort(calls, cnt, sizeof(*calls), compare_calls);
}

/*
 * Who encloses whom, by what is under way on a thread when a call begins.  A call that outlasts the one around it (it
 * was abandoned, or its times were lost) is cut to it.
 */
static void make_nest(struct call_times *times, const struct call *calls, size_t cnt)
{
	uint32_t top = TREE_NONE;

	for (uint32_t i = 0; i < cnt; i++) {
		if (i && calls[i].tid != calls[i - 1].tid)
			top = TREE_NONE;
		while (top != TREE_NONE && times->nest.items[top].end_ts <= calls[i].begin_ts)
			top = times->nest.items[top].parent;
		times->nest.items[i].parent = top;
		times->nest.items[i].node = TREE_NONE;
		times->nest.items[i].begin_ts = calls[i].begin_ts;
		times->nest.items[i].end_ts = calls[i].end_ts > calls[i].begin_ts ? calls[i].end_ts : calls[i].begin_ts;
		if (top != TREE_NONE && times->nest.items[i].end_ts > times->nest.items[top].end_ts)
			times->nest.items[i].end_ts = times->nest.items[top].end_ts;
		top = i;
	}
}

/* The first stretch that ends after ts. */
static size_t stretch_after(const struct call_stretch *stretches, size_t cnt, uint64_t ts)
{
	return search_first(0, cnt, middle, stretches[middle].end_ts > ts);
}

/* How much of the path was on that thread between two times.  Mostly there is one stretch, or few. */
static uint64_t time_on_path(const struct call_stretch *stretches, size_t cnt, uint32_t tid, uint64_t begin_ts,
			     uint64_t end_ts)
{
	uint64_t sum_ns = 0;

	for (size_t s = stretch_after(stretches, cnt, begin_ts); s < cnt && stretches[s].begin_ts < end_ts; s++) {
		uint64_t from = stretches[s].begin_ts > begin_ts ? stretches[s].begin_ts : begin_ts;
		uint64_t to = stretches[s].end_ts < end_ts ? stretches[s].end_ts : end_ts;

		if (stretches[s].tid == tid && to > from)
			sum_ns += to - from;
	}
	return sum_ns;
}

/* The place of a node in times->times, which gets one if it has none. */
static int place_of(struct call_times *times, uint32_t node, size_t *place)
{
	if (vec_extend(&times->places, (size_t)node + 1))
		return -ENOMEM;
	/* Of an earlier interval: its round is over. */
	if (times->places.items[node] >> 32 != times->round) {
		if (vec_push(&times->times, ((struct tree_time){.node = node})))
			return -ENOMEM;
		times->places.items[node] = times->round << 32 | (times->times.cnt - 1);
	}
	*place = (size_t)(times->places.items[node] & UINT32_MAX);
	return 0;
}

static uint64_t part_of(uint64_t ns, uint64_t part_ns, uint64_t whole_ns)
{
	return part_ns == whole_ns ? ns : (uint64_t)((unsigned __int128)ns * part_ns / whole_ns);
}

/* ns of the call at a node; its split is cut in proportion, and what does not fit is `running`. */
static int add_time(struct call_times *times, uint32_t node, const struct call *call, uint64_t ns, bool counts)
{
	uint64_t whole_ns = call->end_ts > call->begin_ts ? call->end_ts - call->begin_ts : 0, rest_ns = ns;
	struct tree_time *time;
	size_t place;

	if (place_of(times, node, &place))
		return -ENOMEM;
	time = &times->times.items[place];
	time->calls += counts;
	time->ns += ns;
	for (int d = TREE_RUNNABLE; d < TREE_DOING_CNT; d++) {
		uint64_t part_ns = whole_ns ? part_of(call->doing_ns[d], ns, whole_ns) : 0;

		part_ns = part_ns < rest_ns ? part_ns : rest_ns;
		time->doing_ns[d] += part_ns;
		rest_ns -= part_ns;
	}
	time->doing_ns[TREE_RUNNING] += rest_ns;
	return 0;
}

/* The node of a call made from `parent`, or `parent` where the tree has no room. */
static int node_of(struct call_times *times, struct variance_tree *tree, uint32_t parent, const struct call *call,
		   bool behind, uint32_t *node)
{
	const struct tree_call made = {.func = call->func, .call_addr = call->call_addr, .behind = behind};
	int err = variance_tree__node(tree, parent, &made, node);

	times->skipped += err == -E2BIG;
	return err == -E2BIG ? 0 : err;
}

/* Calls of the threads that the path is on itself. */
static int add_own(struct call_times *times, struct variance_tree *tree, const struct call *calls, size_t call_cnt,
		   const struct call_stretch *stretches, size_t stretch_cnt)
{
	for (size_t i = 0; i < call_cnt; i++) {
		uint32_t around = times->nest.items[i].parent, parent = TREE_ROOT, node;
		uint64_t ns = time_on_path(stretches, stretch_cnt, calls[i].tid, times->nest.items[i].begin_ts,
					   times->nest.items[i].end_ts);

		if (!ns)
			continue;
		/* Whoever encloses a call that is on the path is so as well. */
		if (around != TREE_NONE)
			parent = times->nest.items[around].node;
		if (node_of(times, tree, parent, &calls[i], false, &node))
			return -ENOMEM;
		times->nest.items[i].node = node;
		if (node != parent && add_time(times, node, &calls[i], ns, true))
			return -ENOMEM;
	}
	return 0;
}

/* The last call on that thread that begins by ts, TREE_NONE: none. */
static uint32_t last_begun(const struct call *calls, size_t cnt, uint32_t tid, uint64_t ts)
{
	size_t low =
		search_first(0, cnt, middle,
			     !(calls[middle].tid < tid || (calls[middle].tid == tid && calls[middle].begin_ts <= ts)));

	return low && calls[low - 1].tid == tid ? (uint32_t)low - 1 : TREE_NONE;
}

/* The innermost call under way on that thread. */
static uint32_t innermost(const struct call_times *times, const struct call *calls, size_t cnt, uint32_t tid,
			  uint64_t ts)
{
	uint32_t call = last_begun(calls, cnt, tid, ts);

	while (call != TREE_NONE && times->nest.items[call].end_ts <= ts)
		call = times->nest.items[call].parent;
	return call;
}

struct behind {
	const struct call *calls;
	size_t call_cnt;
	struct call_stretch stretch;
	uint32_t base; /* node of the call that waits */
	bool goes_on;  /* the stretch before was behind the same thread: what was under way then has been counted */
};

/* One call of the other thread, those around it first; *node is its node behind the base. */
static int add_behind(struct call_times *times, struct variance_tree *tree, const struct behind *behind, uint32_t call,
		      uint32_t *node)
{
	uint64_t from = behind->stretch.begin_ts, to = behind->stretch.end_ts;
	uint32_t path[TREE_DEPTH_MAX], depth = 0, parent = behind->base;

	for (uint32_t at = call; at != TREE_NONE && depth < TREE_DEPTH_MAX; at = times->nest.items[at].parent)
		path[depth++] = at;
	while (depth--) {
		if (node_of(times, tree, parent, &behind->calls[path[depth]], parent == behind->base, node))
			return -ENOMEM;
		parent = *node;
	}
	from = times->nest.items[call].begin_ts > from ? times->nest.items[call].begin_ts : from;
	to = times->nest.items[call].end_ts < to ? times->nest.items[call].end_ts : to;
	if (to <= from || *node == behind->base)
		return 0;
	return add_time(times, *node, &behind->calls[call], to - from,
			!behind->goes_on || behind->calls[call].begin_ts >= behind->stretch.begin_ts);
}

/* What the thread did for which the own one waited: the calls that enclose the stretch's begin, and later ones. */
static int add_other(struct call_times *times, struct variance_tree *tree, const struct behind *behind)
{
	const struct call_stretch *stretch = &behind->stretch;
	uint32_t first = last_begun(behind->calls, behind->call_cnt, stretch->behind_tid, stretch->begin_ts);
	uint32_t around = innermost(times, behind->calls, behind->call_cnt, stretch->behind_tid, stretch->begin_ts);
	uint32_t chain[TREE_DEPTH_MAX], depth = 0, node;
	int err = 0;

	for (uint32_t at = around; at != TREE_NONE && depth < TREE_DEPTH_MAX; at = times->nest.items[at].parent)
		chain[depth++] = at;
	while (depth-- && !err)
		err = add_behind(times, tree, behind, chain[depth], &node);
	if (first == TREE_NONE)
		for (first = 0; first < behind->call_cnt && behind->calls[first].tid != stretch->behind_tid; first++)
			;
	else
		first++;
	for (uint32_t i = first; i < behind->call_cnt && !err; i++) {
		if (behind->calls[i].tid != stretch->behind_tid || behind->calls[i].begin_ts >= stretch->end_ts)
			break;
		err = add_behind(times, tree, behind, i, &node);
	}
	return err;
}

/*
 * The call that waits in a stretch, and the part of the stretch in which it is the innermost one: all of it, since a
 * thread that waits calls nothing, unless clocks or records were off.
 */
static uint32_t waits_in(const struct call_times *times, const struct call *calls, size_t cnt,
			 struct call_stretch *stretch)
{
	uint32_t waits = innermost(times, calls, cnt, stretch->tid, stretch->begin_ts);
	uint32_t last = last_begun(calls, cnt, stretch->tid, stretch->begin_ts), next = 0;

	if (last != TREE_NONE)
		next = last + 1;
	else
		while (next < cnt && calls[next].tid != stretch->tid)
			next++;
	if (next < cnt && calls[next].tid == stretch->tid && calls[next].begin_ts < stretch->end_ts)
		stretch->end_ts = calls[next].begin_ts;
	if (waits != TREE_NONE && times->nest.items[waits].end_ts < stretch->end_ts)
		stretch->end_ts = times->nest.items[waits].end_ts;
	return waits;
}

int call_times__make(struct call_times *times, struct variance_tree *tree, const struct call *calls, size_t call_cnt,
		     const struct call_stretch *stretches, size_t stretch_cnt)
{
	struct behind behind = {.calls = calls, .call_cnt = call_cnt};
	int err;

	times->times.cnt = 0;
	times->round++;
	if (vec_extend(&times->nest, call_cnt))
		return -ENOMEM;
	make_nest(times, calls, call_cnt);
	err = add_own(times, tree, calls, call_cnt, stretches, stretch_cnt);
	for (size_t s = 0; s < stretch_cnt && !err; s++) {
		uint32_t waits;

		if (!stretches[s].behind_tid)
			continue;
		behind.stretch = stretches[s];
		behind.goes_on = s && stretches[s - 1].behind_tid == stretches[s].behind_tid;
		waits = waits_in(times, calls, call_cnt, &behind.stretch);
		behind.base = waits == TREE_NONE ? TREE_ROOT : times->nest.items[waits].node;
		/* The tree had no room for it, or it is cut away: what the other thread did has no place either. */
		if (behind.base != TREE_NONE)
			err = add_other(times, tree, &behind);
	}
	return err;
}

void call_times__free(struct call_times *times)
{
	vec_free(&times->times);
	vec_free(&times->places);
	vec_free(&times->nest);
	*times = (struct call_times){0};
}

struct outermost {
	uint64_t begin_ts, end_ts;
	uint32_t tid;
};

ORDER(compare_outermost, struct outermost, BY(a->begin_ts, b->begin_ts), BY(a->tid, b->tid));

struct sweep {
	call_stretches *stretches;
	size_t first; /* of the interval's */
	uint64_t at_ts;
	uint32_t idle_tid;
	VEC(struct outermost) calls;
	VEC(struct outermost) open; /* under way, in the order of their begins */
};

static int emit(struct sweep *sweep, uint64_t until_ts, uint32_t tid)
{
	call_stretches *stretches = sweep->stretches;

	if (until_ts <= sweep->at_ts)
		return 0;
	if (stretches->cnt > sweep->first && stretches->items[stretches->cnt - 1].tid == tid) {
		stretches->items[stretches->cnt - 1].end_ts = until_ts;
	} else if (vec_push(stretches,
			    ((struct call_stretch){.begin_ts = sweep->at_ts, .end_ts = until_ts, .tid = tid}))) {
		return -ENOMEM;
	}
	sweep->at_ts = until_ts;
	return 0;
}

/* Everything until ts. */
static int advance(struct sweep *sweep, uint64_t ts)
{
	while (sweep->open.cnt && sweep->open.items[sweep->open.cnt - 1].end_ts <= ts) {
		const struct outermost *last = &sweep->open.items[--sweep->open.cnt];

		if (emit(sweep, last->end_ts, last->tid))
			return -ENOMEM;
	}
	return emit(sweep, ts, sweep->open.cnt ? sweep->open.items[sweep->open.cnt - 1].tid : sweep->idle_tid);
}

static int find_outermost(struct sweep *sweep, const struct call *calls, size_t call_cnt)
{
	uint64_t end_ts = 0;

	for (size_t i = 0; i < call_cnt; i++) {
		const struct outermost call = {calls[i].begin_ts, calls[i].end_ts, calls[i].tid};

		if (i && calls[i].tid == calls[i - 1].tid && calls[i].begin_ts < end_ts)
			continue;
		end_ts = calls[i].end_ts;
		if (vec_push(&sweep->calls, call))
			return -ENOMEM;
	}
	vec_sort(&sweep->calls, compare_outermost);
	return 0;
}

int call_stretches_make(call_stretches *stretches, const struct call *calls, size_t call_cnt, uint64_t pickup_ts,
			uint64_t end_ts, uint32_t tid, uint32_t end_tid)
{
	struct sweep sweep = {.stretches = stretches, .first = stretches->cnt, .at_ts = pickup_ts, .idle_tid = tid};
	bool one_thread = tid == end_tid;
	int err = 0;

	for (size_t i = 0; i < call_cnt && one_thread; i++)
		one_thread = calls[i].tid == tid;
	if (one_thread)
		return emit(&sweep, end_ts, tid);
	err = find_outermost(&sweep, calls, call_cnt);
	for (size_t i = 0; i < sweep.calls.cnt && !err; i++) {
		const struct outermost *call = &sweep.calls.items[i];

		if (call->end_ts <= pickup_ts || call->begin_ts >= end_ts)
			continue;
		err = advance(&sweep, call->begin_ts);
		if (call->tid == end_tid)
			sweep.idle_tid = end_tid;
		if (!err)
			err = vec_push(&sweep.open, *call);
	}
	if (!err)
		err = advance(&sweep, end_ts);
	vec_free(&sweep.calls);
	vec_free(&sweep.open);
	return err;
}
