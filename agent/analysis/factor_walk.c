// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/factor_walk.h"

#include "base/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

int factor_walk__init(struct factor_walk *walk, const struct invocations *invocations, const struct dataset *dataset,
		      const struct paths *paths, uint32_t round)
{
	*walk = (struct factor_walk){
		.invocations = invocations,
		.dataset = dataset,
		.paths = paths,
		.round = round,
		.tree = variance_tree__new(),
	};
	return walk->tree ? 0 : -ENOMEM;
}

int factor_walk__sample(struct factor_walk *walk, const struct samples *samples)
{
	walk->samples = calloc(1, sizeof(*walk->samples));
	if (!walk->samples)
		return -ENOMEM;
	return sample_walk__init(walk->samples, walk->tree, samples, walk->dataset, walk->paths);
}

void factor_walk__free(struct factor_walk *walk)
{
	if (walk->samples)
		sample_walk__free(walk->samples);
	free(walk->samples);
	variance_tree__free(walk->tree);
	call_times__free(&walk->times);
	vec_free(&walk->stretches);
	vec_free(&walk->calls);
	vec_free(&walk->understood);
	vec_free(&walk->out);
	vec_free(&walk->own);
	path__clear(&walk->path);
	free(walk->others.order);
	free(walk->others.around);
	free(walk->others.taken);
	*walk = (struct factor_walk){0};
}

static bool is_in_round(const struct factor_walk *walk, uint32_t row)
{
	const struct invocations *invocations = walk->invocations;
	uint32_t session = walk->dataset->session[row];
	uint64_t begin_ts = walk->dataset->begin_ts[row], end_ts = begin_ts + walk->dataset->latency_ns[row];
	const struct invocation_round *round = invocations_last_round(invocations, session);

	if (begin_ts < invocations_settled_ts(invocations, session))
		return false;
	if (!round)
		return true;
	for (size_t i = 0; walk->round != WALK_LAST_ROUND && i < invocations->rounds.cnt; i++)
		if (invocations->rounds.items[i].session == session &&
		    invocations->rounds.items[i].number == walk->round)
			round = &invocations->rounds.items[i];
	return begin_ts >= round->begin_ts && end_ts <= round->end_ts;
}

struct session_call {
	uint32_t session, call;
	uint32_t tid, seq;
	uint64_t begin_ts;
};

ORDER(compare_session_calls, struct session_call, BY(a->session, b->session), BY(a->tid, b->tid),
      BY(a->begin_ts, b->begin_ts), BY((int32_t)(a->seq - b->seq), 0));

static uint32_t session_of_call(const struct factor_walk *walk, uint32_t call)
{
	return invocations_session(walk->invocations, walk->dataset, &walk->invocations->calls[call]);
}

/* All calls thread by thread, and which encloses which there. */
static int order_others(struct factor_walk *walk)
{
	const struct invocations *invocations = walk->invocations;
	size_t cnt = invocations->call_cnt;
	struct session_call *sorted;
	uint32_t top = NONE;

	if (walk->others.order)
		return 0;
	sorted = malloc((cnt + 1) * sizeof(*sorted));
	walk->others.order = malloc((cnt + 1) * sizeof(*walk->others.order));
	walk->others.around = malloc((cnt + 1) * sizeof(*walk->others.around));
	walk->others.taken = calloc(cnt + 1, sizeof(*walk->others.taken));
	if (!sorted || !walk->others.order || !walk->others.around || !walk->others.taken) {
		free(sorted);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < cnt; i++)
		sorted[i] = (struct session_call){session_of_call(walk, i), i, invocations->calls[i].tid,
						  invocations->calls[i].seq, invocations->calls[i].begin_ts};
	if (cnt)
		qsort(sorted, cnt, sizeof(*sorted), compare_session_calls);
	for (uint32_t i = 0; i < cnt; i++) {
		if (i && (sorted[i].session != sorted[i - 1].session || sorted[i].tid != sorted[i - 1].tid))
			top = NONE;
		while (top != NONE && invocations->calls[walk->others.order[top]].end_ts <= sorted[i].begin_ts)
			top = walk->others.around[top];
		walk->others.order[i] = sorted[i].call;
		walk->others.around[i] = top;
		top = i;
	}
	free(sorted);
	return 0;
}

static int take_other(struct factor_walk *walk, uint32_t row, uint32_t place)
{
	uint32_t call = walk->others.order[place];

	if (walk->others.taken[call] == walk->others.stamp || walk->invocations->calls[call].row == row)
		return 0;
	walk->others.taken[call] = walk->others.stamp;
	return vec_push(&walk->calls, walk->invocations->calls[call]);
}

/* The first place whose call is on a later thread, or begins after ts on this one. */
static uint32_t place_after(const struct factor_walk *walk, uint32_t session, uint32_t tid, uint64_t ts)
{
	const struct call *calls = walk->invocations->calls;
	const uint32_t *order = walk->others.order;

	return search_first(0, (uint32_t)walk->invocations->call_cnt, at,
			    (BY(session_of_call(walk, order[at]), session) ?: BY(calls[order[at]].tid, tid)
									  ?: BY(calls[order[at]].begin_ts, ts)) > 0);
}

/* What another thread was in between two times, whatever interval it was for. */
static int take_others(struct factor_walk *walk, uint32_t row, uint32_t tid, uint64_t begin_ts, uint64_t end_ts)
{
	uint32_t session = walk->dataset->session[row], after, at;
	int err = order_others(walk);

	if (err)
		return err;
	after = place_after(walk, session, tid, begin_ts);
	at = after ? after - 1 : NONE;
	if (at != NONE && (session_of_call(walk, walk->others.order[at]) != session ||
			   walk->invocations->calls[walk->others.order[at]].tid != tid))
		at = NONE;
	for (; at != NONE && !err; at = walk->others.around[at])
		if (walk->invocations->calls[walk->others.order[at]].end_ts > begin_ts)
			err = take_other(walk, row, at);
	for (at = after; at < walk->invocations->call_cnt && !err; at++) {
		const struct call *call = &walk->invocations->calls[walk->others.order[at]];

		if (call->tid != tid || session_of_call(walk, walk->others.order[at]) != session ||
		    call->begin_ts >= end_ts)
			break;
		err = take_other(walk, row, at);
	}
	return err;
}

/* The steps of the critical path as stretches; what was queued is not among them. */
static int stretches_of_path(struct factor_walk *walk, uint32_t row)
{
	const struct traces *traces = walk->paths->traces;
	const struct trace_interval *interval = &traces->intervals.items[walk->paths->interval_of[row]];
	uint32_t own_tid = interval->base.end_tid;
	size_t cnt;
	int err = path_walk(&walk->path, traces->sessions.items[interval->session].graph, &interval->base);

	if (err)
		return err;
	cnt = walk->path.steps.cnt;
	if (vec_reserve(&walk->stretches, cnt))
		return -ENOMEM;
	walk->stretches.cnt = cnt;
	/* Backwards: who waits is who goes on after the wait. */
	for (size_t i = cnt; i-- > 0 && !err;) {
		const struct path_step *step = &walk->path.steps.items[i];
		bool other = step->depth && step->certainty != WL_CERTAINTY_AMBIGUOUS;

		if (!step->depth)
			own_tid = step->tid;
		walk->stretches.items[i] = (struct call_stretch){
			.begin_ts = step->begin_ts,
			.end_ts = step->end_ts,
			.tid = own_tid,
			.behind_tid = other && step->tid != own_tid ? step->tid : 0,
		};
		if (step->category == WL_CATEGORY_QUEUE && !step->depth) {
			walk->interval.queue_ns += step->end_ts - step->begin_ts;
			walk->stretches.items[i].tid = 0;
		} else if (walk->stretches.items[i].behind_tid) {
			err = take_others(walk, row, step->tid, step->begin_ts, step->end_ts);
		}
	}
	return err;
}

static int own_stretches(struct factor_walk *walk, uint32_t row)
{
	const struct invocation_row *threads = &walk->invocations->rows[row];
	uint64_t begin_ts = walk->dataset->begin_ts[row], end_ts = begin_ts + walk->dataset->latency_ns[row];

	walk->interval.queue_ns = threads->pickup_ts - begin_ts;
	return call_stretches_make(&walk->stretches, walk->calls.items, walk->calls.cnt, threads->pickup_ts, end_ts,
				   threads->tid, threads->end_tid);
}

static void fill_interval(struct factor_walk *walk, uint32_t row)
{
	const struct dataset *dataset = walk->dataset;

	walk->interval = (struct tree_interval){
		.weight = dataset->weight[row],
		.latency_ns = dataset->latency_ns[row],
	};
	for (int c = 0; c < WL_CATEGORY_CNT; c++) {
		enum tree_doing doing = category_doing(c);

		if (doing != TREE_DOING_CNT && dataset->category_ns[c])
			walk->interval.doing_ns[doing] += dataset->category_ns[c][row];
	}
}

void doing_spread(uint64_t doing_ns[TREE_DOING_CNT], const uint64_t like_ns[TREE_DOING_CNT])
{
	uint64_t blocked_ns = 0, all_ns = 0, left_ns;

	for (int d = TREE_BLOCKED; d < TREE_DOING_CNT; d++) {
		blocked_ns += doing_ns[d];
		all_ns += like_ns[d];
		doing_ns[d] = 0;
	}
	left_ns = blocked_ns;
	for (int d = TREE_BLOCKED; d < TREE_OTHER && all_ns; d++) {
		doing_ns[d] = (uint64_t)((unsigned __int128)blocked_ns * like_ns[d] / all_ns);
		left_ns -= doing_ns[d];
	}
	doing_ns[TREE_OTHER] = left_ns;
}

bool factor_is_named(const char *name, const char *function, bool *body)
{
	size_t len = strlen(function);

	*body = !strncmp(name, function, len) && !strcmp(name + len, FACTOR_ITSELF);
	return *body || !strcmp(name, function);
}

int factor_walk__take_out(struct factor_walk *walk, const char *name)
{
	const struct invocations *invocations = walk->invocations;
	int found = 0;
	bool body;

	if (vec_extend(&walk->understood, invocations->symbols.cnt))
		return -ENOMEM;
	for (uint32_t func = 0; func < invocations->symbols.cnt; func++) {
		if (!factor_is_named(name, invocations_name(invocations, func), &body))
			continue;
		walk->understood.items[func] |= body ? WALK_OUT_BODY : WALK_OUT_ALL;
		found = 1;
	}
	return found;
}

static uint8_t out_of(const struct factor_walk *walk, const struct tree_node *node)
{
	return node->call.func < walk->understood.cnt ? walk->understood.items[node->call.func] : 0;
}

/* Which nodes are taken out as a whole; parents come before their children. */
static int note_nodes(struct factor_walk *walk)
{
	size_t cnt = variance_tree__node_cnt(walk->tree);
	struct tree_node node;

	for (uint32_t id = (uint32_t)walk->out.cnt; id < cnt; id++) {
		bool out;

		variance_tree__node_at(walk->tree, id, &node);
		out = node.parent != TREE_NONE && node.part == TREE_FUNCTION &&
		      (walk->out.items[node.parent] || (out_of(walk, &node) & WALK_OUT_ALL));
		if (vec_push(&walk->out, out))
			return -ENOMEM;
	}
	return 0;
}

/* Its place in walk->times, NONE: it does not occur. */
static uint32_t place_of(const struct factor_walk *walk, uint32_t node)
{
	uint64_t place = node < walk->times.places.cnt ? walk->times.places.items[node] : 0;

	return place >> 32 == walk->times.round ? (uint32_t)place : NONE;
}

static void subtract(uint64_t *ns, uint64_t doing_ns[TREE_DOING_CNT], const struct tree_time *less, bool estimated)
{
	uint64_t rest_ns;

	if (estimated) {
		*ns -= less->ns;
		for (int d = 0; d < TREE_DOING_CNT; d++)
			doing_ns[d] -= less->doing_ns[d];
		return;
	}
	*ns -= less->ns < *ns ? less->ns : *ns;
	rest_ns = *ns;
	for (int d = TREE_DOING_CNT - 1; d >= 0; d--) {
		doing_ns[d] -= less->doing_ns[d] < doing_ns[d] ? less->doing_ns[d] : doing_ns[d];
		doing_ns[d] = doing_ns[d] < rest_ns ? doing_ns[d] : rest_ns;
		rest_ns -= doing_ns[d];
	}
	doing_ns[TREE_RUNNING] += rest_ns;
}

/* Takes the time out of a node, all around it, and the interval. */
static void take_time_out(struct factor_walk *walk, uint32_t node, const struct tree_time *less)
{
	struct tree_interval *interval = &walk->interval;
	uint64_t worked_ns = interval->latency_ns - interval->queue_ns;
	struct tree_node at;

	for (; node != TREE_ROOT; node = at.parent) {
		uint32_t place = place_of(walk, node);

		variance_tree__node_at(walk->tree, node, &at);
		if (place != NONE)
			subtract(&walk->times.times.items[place].ns, walk->times.times.items[place].doing_ns, less,
				 walk->samples);
	}
	subtract(&worked_ns, interval->doing_ns, less, walk->samples);
	/* Estimates may be more than there is. */
	interval->latency_ns = interval->queue_ns + ((int64_t)worked_ns > 0 ? worked_ns : 0);
}

/* The interval as if it had spent no time in what is understood. */
static int take_understood_out(struct factor_walk *walk)
{
	size_t cnt = walk->times.times.cnt, left = 0;
	struct tree_node node;

	if (note_nodes(walk))
		return -ENOMEM;
	walk->own.cnt = 0;
	if (vec_reserve(&walk->own, cnt))
		return -ENOMEM;
	if (cnt)
		memcpy(walk->own.items, walk->times.times.items, cnt * sizeof(*walk->own.items));
	walk->own.cnt = cnt;
	for (size_t i = 0; i < cnt; i++) {
		const struct tree_time *time = &walk->times.times.items[i];
		uint32_t above;

		variance_tree__node_at(walk->tree, time->node, &node);
		above = node.parent == TREE_ROOT ? NONE : place_of(walk, node.parent);
		if (above != NONE)
			subtract(&walk->own.items[above].ns, walk->own.items[above].doing_ns, time, walk->samples);
	}
	for (size_t i = 0; i < cnt; i++) {
		struct tree_time whole = walk->times.times.items[i];

		variance_tree__node_at(walk->tree, whole.node, &node);
		if (walk->out.items[whole.node] && !walk->out.items[node.parent])
			take_time_out(walk, whole.node, &whole);
		else if (!walk->out.items[whole.node] && (out_of(walk, &node) & WALK_OUT_BODY))
			take_time_out(walk, whole.node, &walk->own.items[i]);
	}
	for (size_t i = 0; i < cnt; i++)
		if (!walk->out.items[walk->times.times.items[i].node])
			walk->times.times.items[left++] = walk->times.times.items[i];
	walk->times.times.cnt = left;
	return 0;
}

static int row_of_samples(struct factor_walk *walk, uint32_t row)
{
	int err;

	if (walk->dataset->flags[row] & WL_INTERVAL_LOSSY) {
		walk->lossy++;
		return 0;
	}
	fill_interval(walk, row);
	err = sample_walk__row(walk->samples, walk->tree, row, &walk->times, &walk->interval.queue_ns);
	if (err <= 0)
		return err;
	walk->interval.noise = walk->samples->times.noise.items;
	walk->interval.noise_cnt = walk->samples->times.noise.cnt;
	return walk->understood.cnt && take_understood_out(walk) ? -ENOMEM : 1;
}

int factor_walk__row(struct factor_walk *walk, uint32_t row)
{
	const struct invocations *invocations = walk->invocations;
	bool by_path = walk->paths && walk->paths->ranked[row];
	size_t cnt;
	int err;

	if (walk->samples)
		return row_of_samples(walk, row);
	cnt = invocations->first[row + 1] - invocations->first[row];
	if (!is_in_round(walk, row))
		return 0;
	if ((walk->dataset->flags[row] & WL_INTERVAL_LOSSY) || !invocations->rows[row].tid) {
		walk->lossy++;
		return 0;
	}
	walk->calls.cnt = walk->stretches.cnt = 0;
	walk->others.stamp++;
	if (vec_reserve(&walk->calls, cnt + 1))
		return -ENOMEM;
	if (cnt)
		memcpy(walk->calls.items, invocations->calls + invocations->first[row], cnt * sizeof(struct call));
	walk->calls.cnt = cnt;
	fill_interval(walk, row);
	err = by_path ? stretches_of_path(walk, row) : own_stretches(walk, row);
	if (err)
		return err == -EINVAL ? 0 : err;
	for (size_t i = 0; i < walk->calls.cnt; i++)
		if (walk->calls.items[i].unsplit)
			doing_spread(walk->calls.items[i].doing_ns, walk->interval.doing_ns);
	if (walk->calls.cnt > cnt)
		calls_sort(walk->calls.items, walk->calls.cnt);
	err = call_times__make(&walk->times, walk->tree, walk->calls.items, walk->calls.cnt, walk->stretches.items,
			       walk->stretches.cnt);
	if (!err && walk->understood.cnt)
		err = take_understood_out(walk);
	return err ? err : 1;
}
