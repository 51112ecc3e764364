// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/invocations.h"

#include "base/order.h"
#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* So many intervals that have ended are remembered for what comes late. */
#define ENDED_MAX 16384
#define NO_GROUP  UINT32_MAX

enum group_fate {
	GROUP_OPEN,      /* its interval has not ended yet */
	GROUP_KEPT,      /* to be written at the next advance, or as it comes */
	GROUP_DROPPED,   /* retention passed it over */
	GROUP_FORGOTTEN, /* there was no room for it, and its interval has not ended yet */
};

/* The calls of one interval. */
struct group {
	uint64_t sid;
	uint64_t end_ts; /* once it has ended */
	uint64_t missing;
	enum group_fate fate;
	uint32_t next_in_bucket;
	uint32_t older, newer; /* among those of its list: waiting, or ended */
	bool is_ended;         /* in the list of those that have ended */
	VEC(struct wl_invocation_record) calls;
};

/* Oldest first. */
struct group_list {
	uint32_t oldest, newest;
	size_t cnt;
};

struct invocations {
	struct invocations_opts opts;
	VEC(struct group) groups; /* the places; free ones are linked by next_in_bucket */
	uint32_t free_group;
	uint32_t *buckets;
	size_t bucket_cnt;
	struct group_list waiting, ended;
	VEC(uint32_t) settling; /* ended and kept since the last advance */
	uint64_t calls_bytes;
	struct invocations_counts counts;
	struct shard_row row;
};

struct invocations *invocations__new(const struct invocations_opts *opts)
{
	struct invocations *invocations = calloc(1, sizeof(*invocations));

	if (!invocations)
		return NULL;
	invocations->opts = *opts;
	invocations->free_group = NO_GROUP;
	invocations->waiting.oldest = invocations->waiting.newest = NO_GROUP;
	invocations->ended = invocations->waiting;
	invocations->bucket_cnt = 4 * ENDED_MAX;
	invocations->buckets = malloc(invocations->bucket_cnt * sizeof(*invocations->buckets));
	if (!invocations->buckets) {
		free(invocations);
		return NULL;
	}
	memset(invocations->buckets, 0xff, invocations->bucket_cnt * sizeof(*invocations->buckets));
	return invocations;
}

void invocations__free(struct invocations *invocations)
{
	if (!invocations)
		return;
	for (size_t i = 0; i < invocations->groups.cnt; i++)
		vec_free(&invocations->groups.items[i].calls);
	vec_free(&invocations->groups);
	vec_free(&invocations->settling);
	free(invocations->buckets);
	free(invocations);
}

/* --- groups ------------------------------------------------------------------------------------------------------- */

static uint32_t *bucket_of(const struct invocations *invocations, uint64_t sid)
{
	/* Fibonacci hashing: sids differ in their lower bits by CPU and above by order. */
	return &invocations->buckets[(sid * 0x9e3779b97f4a7c15ULL >> 32) % invocations->bucket_cnt];
}

static uint32_t find_group(const struct invocations *invocations, uint64_t sid)
{
	uint32_t idx = *bucket_of(invocations, sid);

	while (idx != NO_GROUP && invocations->groups.items[idx].sid != sid)
		idx = invocations->groups.items[idx].next_in_bucket;
	return idx;
}

static void list_add(struct invocations *invocations, struct group_list *list, uint32_t idx)
{
	struct group *group = &invocations->groups.items[idx];

	group->older = list->newest;
	group->newer = NO_GROUP;
	if (list->newest == NO_GROUP)
		list->oldest = idx;
	else
		invocations->groups.items[list->newest].newer = idx;
	list->newest = idx;
	list->cnt++;
}

static void list_remove(struct invocations *invocations, struct group_list *list, uint32_t idx)
{
	const struct group *group = &invocations->groups.items[idx];

	if (group->older == NO_GROUP)
		list->oldest = group->newer;
	else
		invocations->groups.items[group->older].newer = group->newer;
	if (group->newer == NO_GROUP)
		list->newest = group->older;
	else
		invocations->groups.items[group->newer].older = group->older;
	list->cnt--;
}

static void drop_calls(struct invocations *invocations, struct group *group)
{
	invocations->calls_bytes -= group->calls.room * sizeof(*group->calls.items);
	vec_free(&group->calls);
}

static void remove_group(struct invocations *invocations, uint32_t idx)
{
	struct group *group = &invocations->groups.items[idx];
	uint32_t *link = bucket_of(invocations, group->sid);

	list_remove(invocations, group->is_ended ? &invocations->ended : &invocations->waiting, idx);
	drop_calls(invocations, group);
	while (*link != idx)
		link = &invocations->groups.items[*link].next_in_bucket;
	*link = group->next_in_bucket;
	group->next_in_bucket = invocations->free_group;
	invocations->free_group = idx;
}

/* NO_GROUP: out of memory. */
static uint32_t add_group(struct invocations *invocations, uint64_t sid)
{
	uint32_t idx = invocations->free_group, *bucket = bucket_of(invocations, sid);
	struct group group = {.sid = sid};

	if (idx != NO_GROUP) {
		invocations->free_group = invocations->groups.items[idx].next_in_bucket;
		invocations->groups.items[idx] = group;
	} else {
		idx = invocations->groups.cnt;
		if (idx == NO_GROUP || vec_push(&invocations->groups, group))
			return NO_GROUP;
	}
	invocations->groups.items[idx].next_in_bucket = *bucket;
	*bucket = idx;
	list_add(invocations, &invocations->waiting, idx);
	return idx;
}

static void end_group(struct invocations *invocations, uint32_t idx)
{
	list_remove(invocations, &invocations->waiting, idx);
	invocations->groups.items[idx].is_ended = true;
	list_add(invocations, &invocations->ended, idx);
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static void set(struct shard_row *row, uint32_t column, uint64_t value, bool is_null)
{
	row->values[column].u64 = value;
	if (is_null)
		shard_row__set_null(row, column);
}

/* What cannot be true is nothing to write down: false. */
static bool make_row(struct shard_row *row, const struct wl_invocation_record *call, uint64_t interval_end_ts)
{
	static const uint32_t columns[WL_SPLIT_CNT] = {
		[WL_SPLIT_RUNNING] = INVOCATION_RUNNING_NS,
		[WL_SPLIT_RUNNABLE] = INVOCATION_RUNNABLE_NS,
		[WL_SPLIT_INTERRUPTED] = INVOCATION_INTERRUPTED_NS,
		[WL_SPLIT_LOCK] = INVOCATION_LOCK_NS,
		[WL_SPLIT_DISK] = INVOCATION_DISK_NS,
		[WL_SPLIT_NET] = INVOCATION_NET_NS,
		[WL_SPLIT_SLEEP] = INVOCATION_SLEEP_NS,
		[WL_SPLIT_FAULT] = INVOCATION_FAULT_NS,
	};
	uint64_t blocked_ns = 0;
	uint32_t flags = call->flags;
	uint64_t left_ns;

	/* Called after the interval had ended on another thread: it is not of the interval. */
	if (call->end_ts < call->begin_ts || call->begin_ts >= interval_end_ts)
		return false;
	if (call->end_ts > interval_end_ts)
		flags |= WL_INVOCATION_OUTLIVED;
	memset(row->nulls, 0, sizeof(row->nulls));
	left_ns = call->end_ts - call->begin_ts;
	for (int i = WL_SPLIT_CNT - 1; i >= 0; i--) {
		uint64_t length_ns = call->length_ns[i];

		if (length_ns > left_ns) {
			length_ns = left_ns;
			flags |= WL_INVOCATION_TORN;
		}
		left_ns -= length_ns;
		blocked_ns += i >= WL_SPLIT_BLOCKED ? length_ns : 0;
		if (i != WL_SPLIT_OTHER)
			set(row, columns[i], length_ns, false);
	}
	set(row, INVOCATION_BLOCKED_NS, blocked_ns, false);
	if (left_ns) {
		row->values[INVOCATION_RUNNING_NS].u64 += left_ns;
		flags |= WL_INVOCATION_TORN;
	}
	set(row, INVOCATION_SID, call->sid, false);
	set(row, INVOCATION_PID, call->pid, false);
	set(row, INVOCATION_TID, call->tid, false);
	set(row, INVOCATION_FUNC, call->func, false);
	set(row, INVOCATION_PARENT_FUNC, call->parent_func, call->parent_func == WL_FUNC_NONE);
	set(row, INVOCATION_SEQ, call->seq, false);
	set(row, INVOCATION_PARENT_SEQ, call->parent_seq, call->parent_seq == WL_SEQ_NONE);
	set(row, INVOCATION_DEPTH, call->depth, false);
	set(row, INVOCATION_CALL_ADDR, call->call_addr, !call->call_addr);
	set(row, INVOCATION_BEGIN_TS, call->begin_ts, false);
	set(row, INVOCATION_END_TS, call->end_ts, false);
	set(row, INVOCATION_OBJECT, call->object, !call->object);
	set(row, INVOCATION_FLAGS, flags, false);
	return true;
}

static int write_call(struct invocations *invocations, const struct wl_invocation_record *call,
		      uint64_t interval_end_ts)
{
	if (!make_row(&invocations->row, call, interval_end_ts)) {
		invocations->counts.forgotten++;
		invocations->counts.impossible++;
		return 0;
	}
	invocations->counts.written++;
	return invocations->opts.append(invocations->opts.owner, SHARD_TABLE_INVOCATION, &invocations->row);
}

/* By thread and end; what ends together ends from the inside out. */
ORDER(call_cmp, struct wl_invocation_record, BY(a->pid, b->pid), BY(a->tid, b->tid), BY(a->end_ts, b->end_ts),
      BY(b->seq, a->seq));

static int write_group(struct invocations *invocations, struct group *group)
{
	size_t cnt = group->calls.cnt;
	int err = 0;

	if (cnt)
		qsort(group->calls.items, cnt, sizeof(*group->calls.items), call_cmp);
	invocations->counts.waiting -= cnt;
	for (size_t i = 0; !err && i < cnt; i++)
		err = write_call(invocations, &group->calls.items[i], group->end_ts);
	drop_calls(invocations, group);
	return err;
}

/* --- records ------------------------------------------------------------------------------------------------------ */

static void forget_calls(struct invocations *invocations, struct group *group, bool missed)
{
	invocations->counts.waiting -= group->calls.cnt;
	invocations->counts.forgotten += group->calls.cnt;
	if (missed)
		group->missing += group->calls.cnt;
	drop_calls(invocations, group);
}

size_t invocations__bytes(const struct invocations *invocations)
{
	return invocations->calls_bytes + invocations->groups.room * sizeof(struct group) +
	       invocations->bucket_cnt * sizeof(*invocations->buckets);
}

/* Whole intervals go, the oldest first; what is about to be written is not among them. */
static void make_room(struct invocations *invocations)
{
	uint32_t idx = invocations->waiting.oldest;

	while (idx != NO_GROUP && invocations->calls_bytes > invocations->opts.memory) {
		struct group *group = &invocations->groups.items[idx];
		uint32_t newer = group->newer;

		if (group->calls.room) {
			forget_calls(invocations, group, true);
			group->fate = GROUP_FORGOTTEN;
		}
		idx = newer;
	}
	/* Those of which only the name is left, and whose interval never ended. */
	while (invocations->waiting.cnt > ENDED_MAX &&
	       invocations->groups.items[invocations->waiting.oldest].fate == GROUP_FORGOTTEN)
		remove_group(invocations, invocations->waiting.oldest);
}

static int add_call(struct invocations *invocations, uint32_t idx, const struct wl_invocation_record *record)
{
	struct group *group = &invocations->groups.items[idx];
	size_t room = group->calls.room;
	int err = vec_push(&group->calls, *record);

	invocations->calls_bytes += (group->calls.room - room) * sizeof(*group->calls.items);
	if (!err)
		invocations->counts.waiting++;
	return err;
}

int invocations__take(struct invocations *invocations, const struct wl_invocation_record *record)
{
	uint32_t idx = find_group(invocations, record->sid);
	struct group *group;
	int err;

	invocations->counts.received++;
	if (idx == NO_GROUP)
		idx = add_group(invocations, record->sid);
	if (idx == NO_GROUP) {
		invocations->counts.forgotten++;
		return -ENOMEM;
	}
	group = &invocations->groups.items[idx];
	switch (group->fate) {
	case GROUP_DROPPED:
		invocations->counts.forgotten++;
		return 0;
	case GROUP_FORGOTTEN:
		group->missing++;
		invocations->counts.forgotten++;
		return 0;
	default:
		break;
	}
	err = add_call(invocations, idx, record);
	if (err) {
		invocations->counts.forgotten++;
		return err;
	}
	/* Late: the next advance writes it. */
	if (group->fate == GROUP_KEPT && group->calls.cnt == 1)
		err = vec_push(&invocations->settling, idx);
	if (invocations->calls_bytes > invocations->opts.memory)
		make_room(invocations);
	return err;
}

int invocations__interval(struct invocations *invocations, uint64_t sid, uint64_t end_ts, bool keep, bool *complete)
{
	uint32_t idx = find_group(invocations, sid);
	struct group *group;

	*complete = true;
	if (idx == NO_GROUP)
		idx = add_group(invocations, sid);
	if (idx == NO_GROUP)
		return -ENOMEM;
	group = &invocations->groups.items[idx];
	if (group->is_ended) /* a sid is not used twice */
		return 0;
	end_group(invocations, idx);
	group->end_ts = end_ts;
	if (group->missing && keep) {
		*complete = false;
		invocations->counts.missing += group->missing;
	}
	if (!keep) {
		group->fate = GROUP_DROPPED;
		forget_calls(invocations, group, false);
		return 0;
	}
	group->fate = GROUP_KEPT;
	return group->calls.cnt ? vec_push(&invocations->settling, idx) : 0;
}

int invocations__advance(struct invocations *invocations, uint64_t polled_ts)
{
	size_t later = 0;
	int err = 0;

	for (size_t i = 0; !err && i < invocations->settling.cnt; i++) {
		uint32_t idx = invocations->settling.items[i];
		struct group *group = &invocations->groups.items[idx];

		if (group->end_ts > polled_ts)
			invocations->settling.items[later++] = idx;
		else
			err = write_group(invocations, group);
	}
	invocations->settling.cnt = later;
	while (invocations->ended.cnt > ENDED_MAX && !invocations->groups.items[invocations->ended.oldest].calls.room)
		remove_group(invocations, invocations->ended.oldest);
	return err;
}

int invocations__finish(struct invocations *invocations)
{
	int err = invocations__advance(invocations, UINT64_MAX);

	for (uint32_t idx = invocations->waiting.oldest; idx != NO_GROUP; idx = invocations->groups.items[idx].newer)
		forget_calls(invocations, &invocations->groups.items[idx], true);
	return err;
}

void invocations__counts(const struct invocations *invocations, struct invocations_counts *counts)
{
	*counts = invocations->counts;
}
