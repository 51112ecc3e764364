/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The open calls of probed functions, per thread.
 *
 * A call is known by its frame: the stack pointer at the function's first instruction.  Stacks grow down, so whatever
 * lies at or below the frame of a call that begins or ends is over: what has not returned by itself was unwound past.
 * That holds within one stack only.  A thread may have several (coroutines, signals), which are told apart by the
 * mapping that they lie in: calls on another stack are left alone, and flagged, because the thread is not there.
 */
#ifndef WHYLATE_BPF_CALL_H
#define WHYLATE_BPF_CALL_H

#include "context.h"
#include "probe_spec.h"
#include "ring.h"
#include "thread.h"

#define CALLS_MAX WL_FUNC_DEPTH
#define CALL_GONE (~0U) /* in place of a spec: its place is not free yet */
#define CALL_NONE (~0U) /* no such place */

struct call {
	u64 frame;
	u64 stack; /* where the mapping of its stack ends */
	u64 sid;   /* the interval that it is an invocation of, 0: it is none, or none any more */
	u64 begin_ts;
	u64 call_addr;
	u64 object;
	u64 seq, parent_seq;
	u64 length_ns[WL_SPLIT_CNT]; /* of the thread, at the entry */
	u64 values[SPEC_OPERANDS];   /* operands as they were at the entry */
	u32 spec;                    /* index, or CALL_GONE */
	u32 func, parent_func;
	u32 depth;
	u32 flags;     /* enum wl_invocation_flag */
	u32 enclosing; /* place of the innermost invocation at or above it, CALL_NONE */
	u32 uretprobe;
	u32 zero;
};

/* The moment and what the thread's time until then consists of. */
struct split {
	u64 ts;
	u64 length_ns[WL_SPLIT_CNT];
};

/*
 * What a look through the open calls is for.  It lies here and not on the stack, of which there are 512 bytes for a
 * program and all that it calls.
 */
struct call_search {
	u64 frame, stack, sid;
	struct split now;
	u32 cnt;        /* calls when it began */
	u32 left;       /* of them, those that are left */
	u32 spec, func; /* of the call that begins or returns */
	u32 found;      /* place of the one that returns, CALL_NONE */
	u32 returns;
	u32 hijacked; /* the return address at the frame is a uretprobe's */
	u32 flags;
};

struct calls {
	struct call_search search;
	u64 stack_begin, stack_end; /* the mapping of the stack that was last seen */
	u64 seq;
	u32 cnt;
	u32 zero;
	struct call calls[CALLS_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct calls);
} call_stacks SEC(".maps") __weak;

#define SPLIT_RUNNING  (RUNNING_STATES | bit(WL_STATE_FAULT_MINOR))
#define SPLIT_RUNNABLE (RUNQ_STATES | bit(WL_STATE_THROTTLED))
#define SPLIT_INTERRUPTED                                                                                      \
	(bit(WL_STATE_IRQ_HARD) | bit(WL_STATE_IRQ_VECTOR) | bit(WL_STATE_IRQ_TIMER) | bit(WL_STATE_IRQ_IPI) | \
	 SOFTIRQ_STATES)

static __always_inline enum wl_split split_of(u32 state)
{
	if (bit(state) & SPLIT_RUNNING)
		return WL_SPLIT_RUNNING;
	if (bit(state) & SPLIT_RUNNABLE)
		return WL_SPLIT_RUNNABLE;
	if (bit(state) & SPLIT_INTERRUPTED)
		return WL_SPLIT_INTERRUPTED;
	switch (state) {
	case WL_STATE_BLOCKED_FUTEX:
		return WL_SPLIT_LOCK;
	case WL_STATE_BLOCKED_DISK:
		return WL_SPLIT_DISK;
	case WL_STATE_BLOCKED_NET:
	case WL_STATE_BLOCKED_POLL:
		return WL_SPLIT_NET;
	case WL_STATE_BLOCKED_SLEEP:
		return WL_SPLIT_SLEEP;
	case WL_STATE_FAULT_MAJOR:
		return WL_SPLIT_FAULT;
	}
	return WL_SPLIT_OTHER;
}

static __always_inline void split__sum(struct split *split, const u64 *length_ns)
{
	for (int i = 0; i < WL_SPLIT_CNT; i++)
		split->length_ns[i] = 0;
#pragma unroll
	for (int i = 0; i < STATE_SLOTS; i++)
		split->length_ns[split_of(i)] += *(volatile const u64 *)&length_ns[i];
}

/* False: interrupts never left it alone. */
static __noinline int split__take(struct split *split, struct thread *thread)
{
	if (!split || !thread)
		return 0;
	for (int tries = 0; tries < 4; tries++) {
		u64 word = *(volatile u64 *)&thread->word;
		u64 now = bpf_ktime_get_ns(), under_way_ns;
		u32 state = word_state(word);

		if (now < word_ts(word))
			now = word_ts(word);
		split__sum(split, thread->length_ns);
		if (*(volatile u64 *)&thread->word != word)
			continue;
		under_way_ns = now - word_ts(word);
		/* At a probe the thread runs: it is in no other state. */
		split->length_ns[state == WL_STATE_RUNNING ? WL_SPLIT_RUNNING : WL_SPLIT_INTERRUPTED] += under_way_ns;
		split->ts = now;
		return 1;
	}
	split->ts = bpf_ktime_get_ns();
	return 0;
}

/* Intervals go first: their calls leave as long as half the ring is free. */
static __always_inline void *invocation__reserve(void)
{
	void *ring = ring__of_cpu(bpf_get_smp_processor_id());
	struct cpu_context *cpu = this_cpu();

	if (!cpu || !ring)
		return NULL;
	if (bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) <= 2 * cfg_knobs.ring_wake_bytes)
		return ring__reserve(WL_LOSS_INVOCATION, WL_RECORD_INVOCATION, sizeof(struct wl_invocation_record));
	__sync_fetch_and_add(&cpu->loss[WL_LOSS_INVOCATION].emitted, 1);
	count_loss(cpu, WL_LOSS_INVOCATION);
	return NULL;
}

/* The invocation ends at `end`; lengths partition its time, whatever happened. */
static __noinline int call__send(struct call *call, struct thread *thread, struct split *end, u32 flags)
{
	struct wl_invocation_record *record;
	u64 left_ns;

	if (!call || !thread || !end)
		return 0;
	record = invocation__reserve();
	if (!record) {
		thread->lost_ts = bpf_ktime_get_ns();
		return 0;
	}
	flags |= call->flags;
	if (thread->suspect_ts > call->begin_ts)
		flags |= WL_INVOCATION_SUSPECT;
	record->sid = call->sid;
	record->begin_ts = call->begin_ts;
	record->end_ts = end->ts > call->begin_ts ? end->ts : call->begin_ts;
	record->call_addr = call->call_addr;
	record->object = call->object;
	record->seq = call->seq;
	record->parent_seq = call->parent_seq;
	left_ns = record->end_ts - record->begin_ts;
	for (int i = WL_SPLIT_CNT - 1; i >= 0; i--) {
		u64 length_ns = end->length_ns[i] - call->length_ns[i];

		if (length_ns > left_ns) {
			length_ns = left_ns;
			flags |= WL_INVOCATION_TORN;
		}
		left_ns -= length_ns;
		record->length_ns[i] = length_ns;
	}
	if (left_ns) {
		record->length_ns[WL_SPLIT_RUNNING] += left_ns;
		flags |= WL_INVOCATION_TORN;
	}
	record->pid = thread->pid;
	record->tid = thread->tid;
	record->func = call->func;
	record->parent_func = call->parent_func;
	record->depth = call->depth;
	record->flags = flags;
	ring__submit(record);
	return 0;
}

static __always_inline struct call *calls__at(struct calls *calls, u32 place)
{
	barrier_var(place);
	return &calls->calls[place & (CALLS_MAX - 1)];
}

/* The places at the top whose calls are gone are free. */
static __always_inline void calls__set_cnt(struct calls *calls, struct thread *thread, u32 cnt)
{
	calls->cnt = cnt;
	thread->call_cnt = cnt;
}

/* For the callbacks of bpf_loop(). */
struct call_walk {
	struct calls *calls;
	struct thread *thread;
};

/* Invocations of search.sid, or of all (0), end where they are. */
static long end_call(u32 back, struct call_walk *walk)
{
	struct call_search *search = &walk->calls->search;
	struct call *call = calls__at(walk->calls, search->cnt - 1 - back);

	if (call->spec == CALL_GONE || !call->sid || (search->sid && call->sid != search->sid))
		return 0;
	call__send(call, walk->thread, &search->now, search->flags);
	call->sid = 0;
	return 0;
}

static __always_inline void calls__walk(struct call_walk *walk, void *callback)
{
	u32 cnt = walk->calls->cnt;

	walk->calls->search.cnt = cnt;
	bpf_loop(cnt < CALLS_MAX ? cnt : CALLS_MAX, callback, walk, 0);
}

/*
 * The interval ends at end_ts, when the thread's lengths were these: so do its calls that are open on the thread.
 * Without them (the thread, or its program, is at its end) all calls end now, and none returns any more.
 */
static __noinline int calls__end(struct thread *thread, u64 sid, u64 end_ts, const u64 *length_ns)
{
	struct call_walk walk = {.thread = thread};
	struct call_search *search;

	if (!thread || !thread->call_cnt)
		return 0;
	walk.calls = bpf_task_storage_get(&call_stacks, bpf_get_current_task_btf(), 0, 0);
	if (!walk.calls)
		return 0;
	search = &walk.calls->search;
	search->sid = sid;
	if (length_ns) {
		search->flags = WL_INVOCATION_CLIPPED;
		search->now.ts = end_ts;
		split__sum(&search->now, length_ns);
		calls__walk(&walk, end_call);
		return 0;
	}
	search->flags = WL_INVOCATION_ABANDONED;
	split__take(&search->now, thread);
	calls__walk(&walk, end_call);
	walk.calls->stack_begin = walk.calls->stack_end = 0;
	calls__set_cnt(walk.calls, thread, 0);
	return 0;
}

static __always_inline void thread__end_calls(struct thread *thread)
{
	if (cfg_knobs.probes)
		calls__end(thread, 0, 0, NULL);
	thread->acquire_object = 0;
}

#endif
