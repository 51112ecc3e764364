// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A thread gives the interval to a pool and gets it back.  How it gets it back is often not known: a loop that takes a
 * whole list under the lock takes its first item by that, and the others by their links later.
 */
#include "model/path_internal.h"

#define GIVEN_LOOKS_MAX  64
#define TAKERS_MAX       8
#define DOINGS_LOOKS_MAX 4096

/* The last time that the thread gave the interval to another one, which had it before until_ts; NULL: never. */
static const struct graph_given *given_by(const struct walk *walk, uint32_t tid, uint64_t from_ts, uint64_t until_ts)
{
	size_t cnt;
	const struct graph_given *given = graph__given_by(walk->graph, tid, from_ts, until_ts, &cnt);

	for (size_t i = 0; i < cnt && i < GIVEN_LOOKS_MAX; i++) {
		const struct graph_given *last = &given[cnt - 1 - i];

		if (last->sid == walk->interval->sid && last->to_tid != tid && last->to_ts <= until_ts)
			return last;
	}
	return NULL;
}

/* When the thread last ran for the interval in that time; from_ts: it did not. */
static uint64_t ran_until(const struct walk *walk, uint32_t tid, uint64_t from_ts, uint64_t until_ts)
{
	size_t cnt;
	const struct graph_segment *segments = graph__segments(walk->graph, tid, from_ts, until_ts, &cnt);

	for (size_t i = 0; i < cnt && i < DOINGS_LOOKS_MAX; i++) {
		const struct graph_segment *last = &segments[cnt - 1 - i];

		if (last->sid == walk->interval->sid && state_is_on_cpu(last->state))
			return last->end_ts < until_ts ? last->end_ts : until_ts;
	}
	return from_ts;
}

static struct graph_handoff *handoff_of(const struct walk *walk, uint32_t tid, const struct graph_given *given)
{
	return newest_handoff(walk->graph, tid, given->to_ts, given->to_ts, GIVEN_LOOKS_MAX, last,
			      last->kind == WL_HANDOFF_QUEUE && last->sid == given->sid &&
				      last->from_ts == given->from_ts);
}

bool walk__find_taker(const struct walk *walk, struct frame *frame)
{
	const struct graph_given *taken = given_by(walk, frame->tid, frame->low_ts, frame->at_ts), *next;
	uint64_t until_ts;

	frame->generator = NULL;
	if (!taken)
		return false;
	for (int i = 0; i < TAKERS_MAX; i++) {
		/* The thread has it back when its own segments get the sid. */
		next = given_by(walk, taken->to_tid, taken->to_ts, frame->own_end_ts);
		if (!next || next->from_ts > frame->at_ts)
			break;
		if (next->to_tid == frame->tid) {
			frame->generator = handoff_of(walk, frame->tid, next);
			break;
		}
		if (next->to_ts > frame->at_ts)
			break;
		taken = next;
	}
	until_ts = frame->generator ? next->from_ts : ran_until(walk, taken->to_tid, taken->to_ts, frame->at_ts);
	if (until_ts <= taken->to_ts)
		return false;
	frame->next_tid = taken->to_tid;
	frame->queue_ts = until_ts > frame->low_ts ? until_ts : frame->low_ts;
	return true;
}
