/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Intervals that pass from thread to thread (roles begin, end, work, enqueue, dequeue).
 *
 * The numbers of a recorded interval are those of the thread that works for it, open_interval.tid; another one takes it
 * over.  Both may be at it at the same time, on two CPUs, so whoever changes them takes the interval first: tid is
 * OPEN_BUSY meanwhile.  What passes between is `queue` where the one before is known to have left the interval, and
 * `unknown` where it is not.
 */
#ifndef WHYLATE_BPF_WORK_H
#define WHYLATE_BPF_WORK_H

#include "handoff.h"
#include "interval.h"

struct task_key {
	u64 addr; /* key=, task= */
	u32 pid;
	u32 zero;
};

struct keyed_interval {
	u64 sid;
	u32 recorded;
	u32 type;
};

/* LRU: what nobody ends makes room, and is counted as abandoned at the end. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct task_key);
	__type(value, struct keyed_interval);
} keyed_intervals SEC(".maps") __weak;

struct queued_task {
	u64 sid;
	u64 from_ts;
	u64 queue;
	u64 context; /* behind this hand-off */
	u32 recorded;
	u32 type;
	u32 pid, tid;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct task_key);
	__type(value, struct queued_task);
} queued_tasks SEC(".maps") __weak;

/* The thread now works for none of the intervals that are known. */
static __always_inline void interval__leave(struct thread *thread)
{
	if (!thread->current_sid)
		return;
	thread__works_for(thread, 0, 0);
	thread__pause_current(thread);
	thread__served(thread, bpf_ktime_get_ns());
	thread->current_sid = 0;
	thread->current_recorded = 0;
}

/* Another thread's interval becomes this one's. */
static __noinline bool open__take_over(struct open_interval *open, struct thread *thread, u64 sid)
{
	bool queued;
	u64 now;
	u32 tid;

	if (!open || !thread)
		return false;
	tid = open__take(open);
	if (tid == OPEN_BUSY) {
		open->flags |= WL_INTERVAL_TORN;
		return false;
	}
	queued = open->handed_tid == tid;
	if (queued)
		bpf_map_update_elem(&handed_bases, &sid, &open->base, BPF_ANY);
	now = thread__snapshot(thread, &open->base, thread->recording == 0);
	if (!now) {
		open->flags |= WL_INTERVAL_TORN;
		now = bpf_ktime_get_ns();
	}
	open->handed_ns = queued && now > open->accounted_ts ? now - open->accounted_ts : 0;
	open__gap(open, queued || open->paused ? WL_STATE_QUEUE : WL_STATE_UNKNOWN, now);
	open->owned_ts = open->accounted_ts;
	open->paused = 0;
	open->hw_generation = thread->hw_generation - 1; /* what the other one counted is not to be had */
	note_taken(tid);
	thread->recording++;
	open__give(open, thread);
	return true;
}

/* From here on the thread works for the interval, which some thread has picked up. */
static __always_inline void interval__work_for(struct thread *thread, u64 sid, u32 type, bool recorded)
{
	struct open_interval *open;

	if (!sid) {
		interval__leave(thread);
		return;
	}
	open = recorded ? open_find(sid) : NULL;
	if (thread->current_sid == sid && (!open || open->tid == thread->tid))
		return;
	interval__resume(thread, sid, type, recorded);
	if (open && open->tid != thread->tid)
		thread->current_recorded = open__take_over(open, thread, sid);
}

static __always_inline struct task_key task_key_of(struct thread *thread, u64 addr)
{
	return (struct task_key){.addr = addr, .pid = thread->pid};
}

/* The interval that the thread has just picked up goes by the key. */
static __always_inline void keyed__begin(struct thread *thread, struct cpu_context *cpu, u64 key,
					 const struct pickup *pickup, bool recorded)
{
	struct keyed_interval keyed = {.sid = pickup->sid, .recorded = recorded, .type = pickup->type}, *before;
	struct task_key task = task_key_of(thread, key);

	before = bpf_map_lookup_elem(&keyed_intervals, &task);
	if (before)
		interval__abandon(thread, before->sid);
	else
		__sync_fetch_and_add(&cpu->keyed, 1);
	bpf_map_update_elem(&keyed_intervals, &task, &keyed, BPF_ANY);
}

/* False: it began before the recording, made room for another one, or has ended. */
static __always_inline bool keyed__find(struct thread *thread, u64 key, struct keyed_interval *found)
{
	struct task_key task = task_key_of(thread, key);
	struct keyed_interval *keyed = bpf_map_lookup_elem(&keyed_intervals, &task);

	if (!keyed)
		return false;
	*found = *keyed;
	return true;
}

/* It goes by that key no more. False: see above, or another thread was faster. */
static __always_inline bool keyed__take(struct thread *thread, u64 key, struct keyed_interval *found)
{
	struct task_key task = task_key_of(thread, key);
	struct cpu_context *cpu = this_cpu();

	if (!keyed__find(thread, key, found) || bpf_map_delete_elem(&keyed_intervals, &task))
		return false;
	if (cpu)
		__sync_fetch_and_sub(&cpu->keyed, 1);
	return true;
}

/* The context in which the interval comes out of a queue that the running thread puts it into. */
VERIFIED_ONCE u64 queue_context(u64 sid)
{
	struct open_interval *open = open_find(sid);

	return open ? context__behind(open->context, WL_HANDOFF_QUEUE) : 0;
}

static __always_inline void queue_goes_on(const struct queued_task *queued)
{
	struct open_interval *open = queued->context ? open_find(queued->sid) : NULL;

	if (open)
		open->context = queued->context;
}

/*
 * The task is part of the interval that the thread works for.  What the thread did for the interval until now is
 * accounted: if it turns to something else, the task, and the interval with it, has been in the queue from now on.
 */
static __always_inline void task__enqueued(struct thread *thread, u64 addr, u64 queue)
{
	struct queued_task queued = {
		.sid = thread->current_sid,
		.recorded = thread->current_recorded,
		.type = thread->segment_type,
		.queue = queue,
		.pid = thread->pid,
		.tid = thread->tid,
	};
	struct task_key task = task_key_of(thread, addr);

	/* What the thread did until now is complete: a path may go on there. */
	thread__cut(thread);
	queued.from_ts = interval__hand_over(thread);
	queued.context = queued.recorded ? queue_context(queued.sid) : 0;
	bpf_map_update_elem(&queued_tasks, &task, &queued, BPF_ANY);
}

static __noinline int queue__send(struct queued_task *queued, struct thread *thread, u64 addr)
{
	struct wl_queue_record *record;

	if (!queued || !thread)
		return 0;
	/* From this moment on what the thread does is the interval's. */
	thread__works_for(thread, queued->sid, queued->type);
	record = ring__reserve(WL_LOSS_EDGE, WL_RECORD_QUEUE, sizeof(*record));
	if (!record) {
		thread->lost_ts = bpf_ktime_get_ns();
		return 0;
	}
	record->from_ts = queued->from_ts;
	record->to_ts = word_ts(thread->word);
	record->sid = queued->sid;
	record->queue = queued->queue;
	record->task = addr;
	record->from_pid = queued->pid;
	record->from_tid = queued->tid;
	record->to_pid = thread->pid;
	record->to_tid = thread->tid;
	ring__submit(record);
	return 0;
}

/* What passes a place that may be a queue's, as a record of which only this is set. */
static __noinline int queue__watch(struct thread *thread, u32 func, u64 value, u64 lock)
{
	struct wl_queue_record *record;

	if (!thread)
		return 0;
	record = ring__reserve(WL_LOSS_EDGE, WL_RECORD_QUEUE, sizeof(*record));
	if (!record)
		return 0;
	record->from_ts = record->to_ts = bpf_ktime_get_ns();
	record->sid = func;
	record->queue = lock;
	record->task = value;
	record->from_pid = record->to_pid = thread->pid;
	record->from_tid = record->to_tid = thread->tid;
	ring__submit(record);
	return 0;
}

/* The interval of the task, or none if the task was not seen coming.  False: the queue was empty. */
static __always_inline bool task__dequeued(struct thread *thread, u64 addr, struct keyed_interval *next)
{
	struct task_key task = task_key_of(thread, addr);
	struct queued_task *found = bpf_map_lookup_elem(&queued_tasks, &task);

	if (!addr)
		return false;
	if (!found)
		return true;
	next->sid = found->sid;
	next->recorded = found->recorded;
	next->type = found->type;
	queue_goes_on(found);
	if (cfg_knobs.trace)
		queue__send(found, thread, addr);
	bpf_map_delete_elem(&queued_tasks, &task);
	return true;
}

#endif
