/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Because of whom a goroutine that was ready waited for a thread, and the longest waits of its interval. */
#ifndef WHYLATE_BPF_GOROUTINE_WAITS_H
#define WHYLATE_BPF_GOROUTINE_WAITS_H

#include "goroutine_records.h"

/* Who had the thread since then, and for how long; else who had its CPU while the thread was ready, if that is known.
 */
static __always_inline void goroutine__note_by(struct goroutine *goroutine, const struct thread *thread, u64 since_ts)
{
	goroutine->by_ns = 0;
	goroutine->by_tid = goroutine->by_pid = 0;
	if (thread->left_ts > since_ts) {
		goroutine->by_ns = thread->left_ts - later(since_ts, thread->left_since_ts);
		goroutine->by_tid = thread->left_tid;
		goroutine->by_pid = thread->pid;
	} else if (cfg_knobs.trace && thread->other_tid && thread->switched_in_ts > since_ts) {
		goroutine->by_ns = thread->other_ns;
		goroutine->by_tid = thread->other_tid;
		goroutine->by_pid = thread->other_pid;
	}
}

/* It was ready for so long since then. */
VERIFIED_ONCE int open__note_runq(struct open_interval *open, struct thread *thread, struct goroutine *goroutine,
				  u64 since_ts, u64 ready_ns)
{
	struct past_runq *past;

	if (!open || !thread || !goroutine || ready_ns <= open->go_runq_ns || ready_ns < WAIT_NAMED_NS)
		return 0;
	if (goroutine->by_tid && goroutine->by_pid == thread->pid) {
		open->go_culprit.length_ns = goroutine->by_ns;
		open->go_culprit.pid = goroutine->by_pid;
		open->go_culprit.tid = goroutine->by_tid;
		bpf_get_current_comm(open->go_culprit.comm, sizeof(open->go_culprit.comm));
	} else {
		/* The thread itself waited for its CPU. */
		past = wait_list__longest(&thread->runq, since_ts);
		if (!past)
			return 0;
		open->go_culprit = past->culprit;
	}
	open->go_runq_ns = ready_ns;
	return 0;
}

static __always_inline void open__note_wait(struct open_interval *open, const struct goroutine *goroutine, u64 wait_ns)
{
	u32 state = wait_state(goroutine->wait);
	struct wl_wait *longest = state == WL_STATE_BLOCKED_FUTEX ? &open->go_lock : &open->go_other;

	if (wait_ns <= longest->length_ns || wait_ns < WAIT_NAMED_NS)
		return;
	longest->length_ns = wait_ns;
	longest->object = WL_GO_WAIT | goroutine->wait;
	longest->state = state;
	longest->sysno = -1;
	longest->owner_tid = goroutine->waker_tid;
}

/* It was ready since then only, not since its wait began. */
static __always_inline void goroutine__limit_by(struct goroutine *goroutine, const struct thread *thread, u64 ready_ts)
{
	if (goroutine->by_pid == thread->pid && thread->left_ts <= ready_ts)
		goroutine__note_by(goroutine, thread, ready_ts);
	if (goroutine->by_ns > goroutine->to_ts - ready_ts)
		goroutine->by_ns = goroutine->to_ts - ready_ts;
}

#endif
