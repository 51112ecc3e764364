/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Trace mode: the stretches of a followed thread leave as records.  Everything here folds away when cfg_knobs.trace is
 * not set.
 */
#ifndef WHYLATE_BPF_SEGMENT_H
#define WHYLATE_BPF_SEGMENT_H

#include "context.h"
#include "ring.h"

#define STATE_OF(word) ((u32)((word) & STATE_MASK))

/* Tasks that are not followed and were named to the agent. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, u32);
} named SEC(".maps") __weak;

/* The agent is told whose pid and tid these are, unless it was told before. */
static __noinline int task__name(u32 pid, u32 tid, const char *comm)
{
	struct wl_task_record *record;
	u32 *known, one = 1;

	if (!comm || !tid)
		return 0;
	known = bpf_map_lookup_elem(&named, &tid);
	if (known)
		return 0;
	bpf_map_update_elem(&named, &tid, &one, BPF_ANY);
	record = ring__reserve(WL_LOSS_TASK, WL_RECORD_TASK, sizeof(*record));
	if (!record)
		return 0;
	record->ts = bpf_ktime_get_ns();
	record->event = WL_TASK_NAMED;
	record->pid = pid;
	record->tid = tid;
	record->parent_pid = 0;
	record->creator_tid = 0;
	record->outside = 1;
	bpf_probe_read_kernel(record->comm, sizeof(record->comm), comm);
	ring__submit(record);
	return 0;
}

/* The runnable segment under way: who has had the CPU instead. */
static __always_inline void segment__blame(struct thread *thread, struct runner *runner, u64 ran_ns)
{
	thread->other_pid = runner->pid;
	thread->other_tid = runner->tid;
	thread->other_ns = ran_ns;
	task__name(runner->pid, runner->tid, runner->comm);
}

/* The stretch that began with `word` ends now. */
static __noinline int segment__send(struct thread *thread, u64 word, u64 now, bool blocked)
{
	struct wl_segment_record *record;
	u64 begin_ts = word >> STATE_BITS;
	u32 state = STATE_OF(word);

	if (!thread || now <= begin_ts)
		return 0;
	record = ring__reserve(WL_LOSS_SEGMENT, WL_RECORD_SEGMENT, sizeof(*record));
	if (!record)
		return 0;
	record->begin_ts = begin_ts;
	record->end_ts = now;
	record->sid = thread->segment_sid;
	record->object = 0;
	record->other_ns = 0;
	record->pid = thread->pid;
	record->tid = thread->tid;
	record->state = state;
	record->flags =
		(thread->suspect_ts >= begin_ts ? WL_SEGMENT_SUSPECT : 0) | (thread->outside ? WL_SEGMENT_OUTSIDE : 0);
	record->sysno = -1;
	record->other_pid = 0;
	record->other_tid = 0;
	record->type = thread->segment_sid ? thread->segment_type : 0;
	if (bit(state) & BLOCKED_STATES) {
		record->object = thread->wait.object;
		record->sysno = thread->wait.sysno;
		record->other_tid = thread->wait.owner_tid;
	} else if (bit(state) & RUNQ_STATES) {
		record->other_ns = thread->other_tid ? thread->other_ns : 0;
		record->other_pid = thread->other_pid;
		record->other_tid = thread->other_tid;
	} else if (state == STATE_FAULT_PENDING || state == WL_STATE_FAULT_MINOR || state == WL_STATE_FAULT_MAJOR) {
		record->object = thread->fault_addr;
		record->flags |= blocked ? WL_SEGMENT_OFF_CPU : 0;
	}
	ring__submit(record);
	return 0;
}

#endif
