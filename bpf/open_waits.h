/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The longest waits that an interval met, out of those that its thread remembers. */
#ifndef WHYLATE_BPF_OPEN_WAITS_H
#define WHYLATE_BPF_OPEN_WAITS_H

#include "thread.h"

static __always_inline void copy_longest(struct wl_wait *longest, struct wait_list *list, u64 since_ts)
{
	struct past_wait *past = wait_list__longest(list, since_ts);

	if (past && past->wait.length_ns > longest->length_ns)
		*longest = past->wait;
}

/* What the thread waited for since then, as far as it is longer than what is known of the interval. */
VERIFIED_ONCE int open__take_waits(struct open_interval *open, struct thread *thread, u64 since_ts)
{
	struct past_runq *past;

	if (!open || !thread)
		return 0;
	past = wait_list__longest(&thread->runq, since_ts);
	if (past && past->wait_ns > open->go_runq_ns) {
		open->go_runq_ns = past->wait_ns;
		open->go_culprit = past->culprit;
	}
	copy_longest(&open->go_lock, &thread->lock, since_ts);
	copy_longest(&open->go_other, &thread->other, since_ts);
	copy_longest(&open->go_fault, &thread->fault, since_ts);
	if (later(thread->lost_ts, thread->suspect_ts) > since_ts)
		open->flags |= WL_INTERVAL_LOSSY;
	return 0;
}

#endif
