// SPDX-License-Identifier: GPL-2.0-or-later
/* Waits for a lock whose end is not what it seems: woken in vain, or by their own timeout. */
#include "model/path_internal.h"

#define AGAIN_LOOKS_MAX 8
#define RETRIES_MAX     64
#define RETRY_RUN_NS    500000ULL
#define RETRY_REACH_NS  1000000000ULL

/*
 * A task that does not own the lock woke the thread, which found the same owner and waited again: the wake-up does not
 * end the wait.
 */
bool walk__woken_in_vain(const struct walk *walk, const struct frame *frame, const struct graph_segment *wait,
			 const struct graph_wakeup *wakeup)
{
	const struct graph_segment *next, *owner;
	size_t cnt, owner_cnt;

	if (wait->state != WL_STATE_BLOCKED_FUTEX || !wait->owner_tid || wait->owner_tid == wakeup->waker_tid)
		return false;
	next = graph__segments(walk->graph, frame->tid, wakeup->ts, walk->look_ts, &cnt);
	for (size_t i = 0; i < cnt && i < AGAIN_LOOKS_MAX; i++) {
		if (next[i].begin_ts < wakeup->ts || !state_is_blocked(next[i].state))
			continue;
		if (next[i].state != wait->state || next[i].object != wait->object ||
		    next[i].owner_tid != wait->owner_tid)
			return false;
		/* A tid that was read out of the process may be one of its own namespace. */
		owner = graph__segments(walk->graph, wait->owner_tid, wait->begin_ts, wakeup->ts, &owner_cnt);
		return owner_cnt && owner->pid == wait->pid;
	}
	return false;
}

/* Between two tries the thread is runnable, or runs for a moment. */
static bool is_between_tries(const struct graph_segment *segment)
{
	return state_is_runnable(segment->state) || state_is_interrupt(segment->state) ||
	       (state_is_on_cpu(segment->state) && segment->end_ts - segment->begin_ts <= RETRY_RUN_NS);
}

/*
 * A wait for a lock that ran into its timeout goes on as the next wait for the same lock, or for another word of the
 * same condition variable: the task that ends the last of them kept it from the thread all the time.
 */
struct graph_wakeup *walk__last_waker(const struct walk *walk, const struct frame *frame,
				      const struct graph_segment *wait, struct graph_wakeup *timeout)
{
	size_t cnt;
	const struct graph_segment *segments;

	if (wait->state != WL_STATE_BLOCKED_FUTEX)
		return timeout;
	segments = graph__segments(walk->graph, frame->tid, wait->end_ts, wait->end_ts + RETRY_REACH_NS, &cnt);
	for (size_t i = 0; i < cnt && i < RETRIES_MAX; i++) {
		struct graph_wakeup *wakeup;
		size_t doings_cnt;

		if (is_between_tries(&segments[i]))
			continue;
		if (segments[i].state != WL_STATE_BLOCKED_FUTEX ||
		    !graph_is_same_futex(segments[i].object, wait->object))
			return timeout;
		wakeup = graph__wakeup_in(walk->graph, frame->tid, segments[i].begin_ts + 1, segments[i].end_ts);
		if (!wakeup || !wakeup->waker_tid || wakeup->waker_tid == frame->tid)
			continue;
		graph__segments(walk->graph, wakeup->waker_tid, wait->begin_ts, wait->end_ts, &doings_cnt);
		return doings_cnt ? wakeup : timeout;
	}
	return timeout;
}
