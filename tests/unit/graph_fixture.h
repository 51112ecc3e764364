/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Schedules by hand, in short words, and paths over them. */
#ifndef WHYLATE_TESTS_GRAPH_FIXTURE_H
#define WHYLATE_TESTS_GRAPH_FIXTURE_H

#include "model/path.h"

/* Every thread is of process 1 unless told otherwise. */
#define FIXTURE_PID 1

void fixture_segment(struct graph *graph, uint32_t tid, uint64_t begin_ts, uint64_t end_ts, enum wl_state state,
		     uint64_t sid);
/* A wait for a lock: at `object`, held by `owner_tid`. */
void fixture_lock_wait(struct graph *graph, uint32_t tid, uint64_t begin_ts, uint64_t end_ts, uint64_t sid,
		       uint64_t object, uint32_t owner_tid);
/* Runnable, while by_tid of process by_pid ran. */
void fixture_runnable(struct graph *graph, uint32_t tid, uint64_t begin_ts, uint64_t end_ts, uint64_t sid,
		      uint32_t by_pid, uint32_t by_tid);
/* By a task; waker_tid 0: by a softirq. */
void fixture_wakeup(struct graph *graph, uint32_t tid, uint64_t ts, uint32_t waker_tid);
void fixture_handoff(struct graph *graph, enum wl_handoff kind, uint32_t from_tid, uint64_t from_ts, uint32_t to_tid,
		     uint64_t to_ts, uint64_t sid);

/* Picked up by `tid` and ended on it. */
struct graph_interval fixture_interval(uint64_t sid, uint64_t begin_ts, uint64_t pickup_ts, uint64_t end_ts,
				       uint32_t tid);

/* The steps partition the interval; asserts. */
void fixture_partitions(const struct path *path, const struct graph_interval *interval);
/* Walks, asserts that it is a partition, and that the steps read like this: "queue@2 0-10; oncpu@1 10-20", … */
void fixture_expect(const struct graph *graph, const struct graph_interval *interval, uint32_t flags,
		    const char *steps);

#endif
