/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Spin locks of user space: a thread that spins uses its CPU and does nothing, what it waits for is the owner of the
 * lock.  Nothing says who that is, so it is inferred: a thread that had no CPU while the other one was seen to spin,
 * and got one right before that ended.  Absences of one kind (the thread's name, what it waited for, whether it did so
 * for a request) are believed where most spins end with one, and as long times before them do not.  A thread of the
 * same process comes first; of another process, which shares the lock's memory, it takes fewer of the other times.
 * Where the owner changes while a thread spins, each has the time of its own absence.
 */
#ifndef WHYLATE_ANALYSIS_SPINS_H
#define WHYLATE_ANALYSIS_SPINS_H

#include "analysis/samples.h"

/* One thread spun for a lock of another one, by the clock and the numbers of their graph. */
struct spin {
	const struct trace_session *session;
	uint32_t tid, owner_tid;
	uint64_t from_ts, to_ts;
};

struct spins {
	VEC(struct spin) items; /* by graph, tid and end */
	VEC(struct spin) seen;  /* likewise all that were seen, also those for which no owner is known; owner_tid 0 */
};

/* 0 or -ENOMEM; spins_free() in either case.  samples may be NULL. */
int spins_find(struct spins *spins, const struct traces *traces, const struct samples *samples);
void spins_free(struct spins *spins);
/* The owner of the lock for which the thread spun during most of [from_ts, to_ts); 0: it did not, or none is known. */
uint32_t spins_owner(const struct spins *spins, const struct trace_session *session, uint32_t tid, uint64_t from_ts,
		     uint64_t to_ts);
/* Was the thread seen to spin during most of that time, with a CPU or without? */
bool spins_seen(const struct spins *spins, const struct trace_session *session, uint32_t tid, uint64_t from_ts,
		uint64_t to_ts);

#endif
