/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records of trace mode, made up, and the rows that the model makes of them. */
#ifndef WHYLATE_TESTS_RECORD_FIXTURE_H
#define WHYLATE_TESTS_RECORD_FIXTURE_H

#include "model/trace.h"

#include <stdbool.h>
#include <stdint.h>

#define MS 1000000ULL
#define US 1000ULL

/* What was written: counts, the first 64 segments, the last hand-off. */
struct record_rows {
	uint32_t cnt[SHARD_TABLE_CNT];
	uint32_t tids[64];
	uint64_t begin_ts[64], sids[64];
	char types[64][16], by_comms[64][24];
	bool has_by_tid[64];
	uint32_t handoff_from, handoff_to;
	uint64_t handoff_from_ts, handoff_to_ts;
	char handoff_certainty[16];
	char handoff_kind[16], handoff_from_addr[64];
	bool has_seq;
};

/* A trace whose rows are noted in *rows. */
struct trace *record_trace(struct record_rows *rows, struct thread_names *names, uint64_t memory);
/* All are of process 1. */
void record_segment(struct trace *trace, uint32_t tid, uint64_t begin_ts, uint64_t end_ts, uint32_t state,
		    uint64_t sid);
void record_wakeup(struct trace *trace, uint32_t tid, uint64_t ts, uint32_t waker_tid, uint32_t context,
		   uint64_t io_ts);
/* Waits for a futex that owner_tid owns, 0: nobody. */
void record_futex_wait(struct trace *trace, uint32_t tid, uint64_t begin_ts, uint64_t end_ts, uint32_t owner_tid);
/* Of any process; creator_tid 0: it existed. */
void record_task(struct trace *trace, uint32_t event, uint32_t pid, uint32_t tid, uint64_t ts, uint32_t creator_tid);
/* Picked up when it began. */
void record_interval(struct trace *trace, uint64_t sid, uint32_t tid, uint32_t end_tid, uint64_t begin_ts,
		     uint64_t end_ts, bool keep);
/* Of type tcp:80, kept. */
void record_request(struct trace *trace, uint64_t sid, uint32_t tid, uint64_t begin_ts, uint64_t pickup_ts,
		    uint64_t end_ts);

#endif
