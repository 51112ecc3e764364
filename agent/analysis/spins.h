/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Spin locks of user space: a thread that spins uses its CPU and does nothing, what it waits for is the owner of the
 * lock.  Nothing says who that is, so it is inferred: the thread of the same process that had no CPU as long as the
 * other one was seen to spin, and got one right before that ended, again and again, and not likewise at other times.
 */
#ifndef WHYLATE_ANALYSIS_SPINS_H
#define WHYLATE_ANALYSIS_SPINS_H

#include "analysis/samples.h"

/* One thread that spun, by the clock and the numbers of its graph. */
struct spin {
	const struct trace_session *session;
	uint32_t group, tid, pid;
	uint64_t first_ts, last_ts; /* of its samples in the loop */
	uint64_t until_ts;          /* it had gone on by then */
	uint32_t owner_tid;         /* of the graph, 0: not known */
};

struct spins {
	VEC(struct spin) items; /* with a known owner, by graph, tid and time */
};

/* 0 or -ENOMEM; spins_free() in either case.  samples may be NULL. */
int spins_find(struct spins *spins, const struct traces *traces, const struct samples *samples);
void spins_free(struct spins *spins);
/* The owner of the lock for which the thread spun during most of [from_ts, to_ts); 0: it did not, or none is known. */
uint32_t spins_owner(const struct spins *spins, const struct trace_session *session, uint32_t tid, uint64_t from_ts,
		     uint64_t to_ts);

#endif
