/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The record with which an interval leaves: all of it, or in brief, as words or as a record of its own. */
#ifndef WHYLATE_BPF_INTERVAL_SEND_H
#define WHYLATE_BPF_INTERVAL_SEND_H

#include "first.h"
#include "open_waits.h"
#include "opens.h"
#include "ring.h"
#include "thread.h"

/* What every record of an interval begins with. */
static __always_inline void open__fill_brief(struct wl_brief_record *record, const struct open_interval *open,
					     const struct thread *thread, u64 sid)
{
	record->sid = sid;
	record->begin_ts = open->begin_ts;
	record->pickup_ts = open->pickup_ts;
	record->end_ts = open->accounted_ts;
	record->pid = open->pid;
	record->tid = open->picker_tid;
	record->end_tid = thread->tid;
	record->type = open->type;
	record->rate = open->rate;
	record->flags = open->flags;
	record->conn = open->conn;
	record->first_len = 0;
	record->first_total = open->first_total;
}

VERIFIED_ONCE int open__send(struct open_interval *open, struct thread *thread, u64 sid, u32 chance)
{
	struct wl_interval_record *record;

	if (!open || !thread)
		return 0;
	record = ring__reserve(WL_LOSS_INTERVAL, WL_RECORD_INTERVAL,
			       cfg_knobs.first_bytes ? sizeof(*record) + WL_FIRST_MAX : sizeof(*record));
	if (!record) {
		thread->lost_ts = bpf_ktime_get_ns();
		return 0;
	}
	open__fill_brief((struct wl_brief_record *)record, open, thread, sid);
	if (cfg_knobs.first_bytes)
		record->first_len = open__copy_first(open, record->first);
	record->hw_epoch = open->hw_epoch;
	record->chance = chance;
	record->queue_sid = open->queue_sid;
	record->queue_sid_ns = open->queue_sid_ns;
	record->context = open->context;
	__builtin_memset(&record->culprit, 0, sizeof(record->culprit));
	__builtin_memset(&record->lock, 0, sizeof(record->lock));
	__builtin_memset(&record->blocked, 0, sizeof(record->blocked));
	__builtin_memset(&record->fault, 0, sizeof(record->fault));
	if (thread->goroutine) {
		if (open->tid == thread->tid)
			open__take_waits(open, thread, later(open->owned_ts, thread->entered_ts));
		record->culprit = open->go_culprit;
		record->lock = open->go_lock;
		record->blocked = open->go_other;
		record->fault = open->go_fault;
	} else if (open->tid == thread->tid) {
		bool moved = open->owned_ts != open->pickup_ts;
		struct past_runq *past = wait_list__longest(&thread->runq, moved ? open->owned_ts : open->begin_ts);

		if (past)
			record->culprit = past->culprit;
		copy_longest(&record->lock, &thread->lock, open->owned_ts);
		copy_longest(&record->blocked, &thread->other, open->owned_ts);
		copy_longest(&record->fault, &thread->fault, open->owned_ts);
	}
	if (cfg_knobs.first_bytes)
		open__read_thread_context(open, thread->pid);
	__builtin_memcpy(&record->trace, &open->trace, sizeof(record->trace));
	for (int i = 0; i < WL_HW_SLOTS; i++)
		record->hw[i] = open->sum.hw[i];
	for (int i = 0; i < WL_STATE_CNT; i++) {
		record->length_ns[i] = open->sum.length_ns[i];
		record->count[i] = open->sum.count[i];
	}
	record->length_ns[WL_STATE_RUNNING] += open->sum.length_ns[STATE_FAULT_PENDING];
	for (int i = 0; i < WL_TALLY_CNT; i++)
		record->tally[i] = open->sum.tally[i];
	record->zero = 0;
	ring__submit(record);
	return 0;
}

/* False: it does not fit into words. */
static __always_inline bool open__pack_brief(struct open_interval *open, struct thread *thread, u64 sid)
{
	u64 before_ns = open->pickup_ts - open->begin_ts, work_ns = open->accounted_ts - open->pickup_ts, after_ns;
	struct word_writer writer;

	if (!WL_WORD_FITS(before_ns, 32) || !WL_WORD_FITS(work_ns, 32) || !words__take(&writer))
		return false;
	if (cfg_knobs.trace && cfg_knobs.first_bytes)
		words__put_first(&writer, open);
	words__of(&writer, thread);
	after_ns = open->accounted_ts - writer.ring->ts;
	if (!WL_WORD_FITS(after_ns, WL_BRIEF_AFTER_BITS)) {
		words__at(&writer, open->accounted_ts);
		after_ns = 0;
	}
	words__put(&writer, WL_BRIEF_WORD(open->flags, after_ns));
	words__put(&writer, sid);
	words__put(&writer, (u64)open->type << 32 | open->rate);
	words__put(&writer, before_ns << 32 | work_ns);
	words__put(&writer, (u64)open->pid << 32 | open->picker_tid);
	words__end(&writer, WL_LOSS_INTERVAL);
	return true;
}

/* Of one that is not kept: that it was, and how long it took. */
VERIFIED_ONCE int open__send_brief(struct open_interval *open, struct thread *thread, u64 sid)
{
	struct wl_brief_record *record;

	if (!open || !thread || open__pack_brief(open, thread, sid))
		return 0;
	record = ring__reserve(WL_LOSS_INTERVAL, WL_RECORD_BRIEF,
			       cfg_knobs.trace && cfg_knobs.first_bytes ? sizeof(*record) + WL_FIRST_MAX
									: sizeof(*record));
	if (!record) {
		thread->lost_ts = bpf_ktime_get_ns();
		return 0;
	}
	open__fill_brief(record, open, thread, sid);
	if (cfg_knobs.trace && cfg_knobs.first_bytes)
		record->first_len = open__copy_first(open, record->first);
	ring__submit(record);
	return 0;
}

#endif
