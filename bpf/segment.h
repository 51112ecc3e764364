/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Trace mode: the stretches of a followed thread leave as records.  Everything here folds away when cfg_knobs.trace is
 * not set.
 */
#ifndef WHYLATE_BPF_SEGMENT_H
#define WHYLATE_BPF_SEGMENT_H

#include "context.h"
#include "words.h"

#define STATE_OF(word) ((u32)((word) & STATE_MASK))

/* What the agent was told of a task that is not followed: a tid may be another's by now, or its name another. */
struct named_task {
	u64 comm[WL_COMM_LEN / 8];
	u64 pid;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, struct named_task);
} named SEC(".maps") __weak;

/* The agent is told whose pid and tid these are, unless it was told before. */
static __noinline int task__name(u32 pid, u32 tid, const char *comm)
{
	struct named_task task = {.pid = pid}, *known;
	struct wl_task_record *record;

	if (!comm || !tid)
		return 0;
	bpf_probe_read_kernel(task.comm, sizeof(task.comm), comm);
	known = bpf_map_lookup_elem(&named, &tid);
	if (known && known->pid == task.pid && known->comm[0] == task.comm[0] && known->comm[1] == task.comm[1])
		return 0;
	bpf_map_update_elem(&named, &tid, &task, BPF_ANY);
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
	__builtin_memcpy(record->comm, task.comm, sizeof(record->comm));
	ring__submit(record);
	return 0;
}

/* The runnable segment under way: who has had the CPU instead. */
static __always_inline void segment__blame(struct thread *thread, struct runner *runner, u64 ran_ns)
{
	thread->other_pid = runner->pid;
	thread->other_tid = runner->as_tid;
	thread->other_ns = ran_ns;
	task__name(runner->pid, runner->tid, runner->comm);
}

/* What is sent of a segment besides its bounds and its thread. */
struct segment_facts {
	u32 state, flags;
	u64 object;
	u64 other_ns;
	u32 other_pid, other_tid;
	u32 sysno;
	u32 more; /* words of the rest, as in WL_SEGMENT_WORD() */
};

static __always_inline void segment__describe(struct segment_facts *facts, struct thread *thread, u64 begin_ts,
					      bool blocked)
{
	facts->flags = thread->suspect_ts >= begin_ts ? WL_SEGMENT_SUSPECT : 0;
	facts->object = facts->other_ns = 0;
	facts->other_pid = facts->other_tid = 0;
	facts->sysno = -1;
	facts->more = 0;
	if (bit(facts->state) & BLOCKED_STATES) {
		facts->object = thread->wait.object;
		facts->sysno = thread->wait.sysno;
		facts->other_tid = thread->wait.owner_tid;
		facts->more = 2;
	} else if (bit(facts->state) & RUNQ_STATES && thread->other_tid) {
		facts->other_ns = thread->other_ns;
		facts->other_pid = thread->other_pid;
		facts->other_tid = thread->other_tid;
		facts->more = 2;
	} else if (bit(facts->state) & RUNQ_STATES) {
		facts->flags |= thread->other_ns ? WL_SEGMENT_IDLE : 0;
	} else if (bit(facts->state) &
		   (bit(STATE_FAULT_PENDING) | bit(WL_STATE_FAULT_MINOR) | bit(WL_STATE_FAULT_MAJOR))) {
		facts->object = thread->fault_addr;
		facts->flags |= blocked ? WL_SEGMENT_OFF_CPU : 0;
		facts->more = 1;
	}
}

/* False: it does not fit into words. */
static __always_inline bool segment__pack(struct segment_facts *facts, struct thread *thread, u64 begin_ts, u64 end_ts)
{
	struct word_writer writer;

	if (!WL_WORD_FITS(end_ts - begin_ts, WL_WORD_LENGTH_BITS) || !words__take(&writer))
		return false;
	words__of(&writer, thread);
	words__for(&writer, thread->segment_sid, thread->segment_type);
	words__at(&writer, begin_ts);
	words__put(&writer, WL_SEGMENT_WORD(facts->state, facts->flags, facts->more, end_ts - begin_ts));
	if (facts->more == 2 && bit(facts->state) & RUNQ_STATES) {
		words__put(&writer, facts->other_ns);
		words__put(&writer, (u64)facts->other_pid << 32 | facts->other_tid);
	} else if (facts->more == 2) {
		words__put(&writer, facts->object);
		words__put(&writer, (u64)facts->sysno << 32 | facts->other_tid);
	} else if (facts->more == 1) {
		words__put(&writer, facts->object);
	}
	writer.ring->ts = end_ts;
	words__end(&writer, WL_LOSS_SEGMENT);
	return true;
}

/* The stretch that began with `word` ends now. */
VERIFIED_ONCE int segment__send(struct thread *thread, u64 word, u64 now, bool blocked)
{
	struct segment_facts facts = {.state = STATE_OF(word)};
	struct wl_segment_record *record;
	u64 begin_ts = word >> STATE_BITS;

	if (!thread || now <= begin_ts)
		return 0;
	segment__describe(&facts, thread, begin_ts, blocked);
	if (segment__pack(&facts, thread, begin_ts, now))
		return 0;
	record = ring__reserve_many(WL_LOSS_SEGMENT, WL_RECORD_SEGMENT, sizeof(*record));
	if (!record) {
		thread->lost_ts = now;
		return 0;
	}
	record->begin_ts = begin_ts;
	record->end_ts = now;
	record->sid = thread->segment_sid;
	record->object = facts.object;
	record->other_ns = facts.other_ns;
	record->pid = thread->pid;
	record->tid = thread->tid;
	record->state = facts.state;
	record->flags = facts.flags | (thread->outside ? WL_SEGMENT_OUTSIDE : 0);
	record->sysno = facts.sysno;
	record->other_pid = facts.other_pid;
	record->other_tid = facts.other_tid;
	record->type = thread->segment_sid ? thread->segment_type : 0;
	ring__submit(record);
	return 0;
}

#endif
