/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which running task delays selected intervals: those in its CPU's run queue, and those that wait for it.  Kept by the
 * scheduler's hooks where stacks are sampled (cfg_knobs.stacks); everything here folds away otherwise.
 *
 *   run queue   per CPU: selected intervals of the followed threads in it, and threads in it that have none yet
 *   owed        per task: selected intervals whose threads wait for a futex that it owns
 *   waiting     selected intervals whose threads are blocked, and controls.expected: those that no thread has picked up
 *
 * A wake-up is told under the lock of the run queue that takes the thread, a switch under that of its own; so the
 * counts of a thread that is queued are those of the CPU in thread->queued_cpu, which a migration moves.
 */
#ifndef WHYLATE_BPF_DELAY_H
#define WHYLATE_BPF_DELAY_H

#include "context.h"

/* window << 32 | intervals << 16 | threads without one.  What an earlier window left counts as nothing. */
struct run_queue {
	u64 word;
	u64 pad[CACHE_LINE / sizeof(u64) - 1];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct run_queue);
} run_queues SEC(".maps") __weak;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, u32);
} owed SEC(".maps") __weak;

#define QUEUED_MAX 0xffff

static __always_inline u32 queued_intervals(u64 word)
{
	return word >> 16 & QUEUED_MAX;
}

static __always_inline u32 queued_threads(u64 word)
{
	return word & QUEUED_MAX;
}

static __always_inline u64 run_queue__word(u32 cpu)
{
	struct run_queue *queue = bpf_map_lookup_elem(&run_queues, &cpu);
	u64 word = queue ? *(volatile u64 *)&queue->word : 0;

	return word >> 32 == controls.window ? word : 0;
}

static __always_inline s32 bounded(s32 cnt)
{
	return cnt < 0 ? 0 : cnt > QUEUED_MAX ? QUEUED_MAX : cnt;
}

/* A CPU that migrates a thread to another one does not hold the other's lock. */
VERIFIED_ONCE int run_queue__add(u32 cpu, s32 intervals, s32 threads)
{
	struct run_queue *queue = bpf_map_lookup_elem(&run_queues, &cpu);

	if (!queue)
		return 0;
	for (int tries = 0; tries < 8; tries++) {
		u64 old = *(volatile u64 *)&queue->word, word;
		u64 known = old >> 32 == controls.window ? old : 0;

		word = (u64)controls.window << 32 | (u64)bounded((s32)queued_intervals(known) + intervals) << 16 |
		       (u64)bounded((s32)queued_threads(known) + threads);
		if (__sync_val_compare_and_swap(&queue->word, old, word) == old)
			break;
	}
	return 0;
}

/* The CPU has nothing to run: whatever the counts say, an unreported switch has left it there. */
static __always_inline void run_queue__idles(u32 cpu)
{
	struct run_queue *queue;

	if (!cfg_knobs.stacks)
		return;
	queue = bpf_map_lookup_elem(&run_queues, &cpu);
	if (queue && (u32) * (volatile u64 *)&queue->word)
		*(volatile u64 *)&queue->word = (u64)controls.window << 32;
}

static __always_inline void delay__queue(struct thread *thread, u32 cpu)
{
	if (!cfg_knobs.stacks || thread->queued_cpu)
		return;
	thread->queued_cpu = cpu + 1;
	thread->queued_cnt = thread->recording;
	run_queue__add(cpu, thread->queued_cnt, !thread->queued_cnt);
}

static __always_inline void delay__unqueue(struct thread *thread)
{
	u32 cpu = thread->queued_cpu;

	if (!cfg_knobs.stacks || !cpu)
		return;
	thread->queued_cpu = 0;
	run_queue__add(cpu - 1, -(s32)thread->queued_cnt, -!thread->queued_cnt);
}

static __always_inline void delay__migrate(struct thread *thread, u32 cpu)
{
	u32 old = thread->queued_cpu;

	if (!old || old == cpu + 1)
		return;
	thread->queued_cpu = cpu + 1;
	run_queue__add(old - 1, -(s32)thread->queued_cnt, -!thread->queued_cnt);
	run_queue__add(cpu, thread->queued_cnt, !thread->queued_cnt);
}

VERIFIED_ONCE int owed__add(u32 tid, s32 cnt)
{
	u32 none = 0, *known;

	if (cnt > 0)
		bpf_map_update_elem(&owed, &tid, &none, BPF_NOEXIST);
	known = bpf_map_lookup_elem(&owed, &tid);
	if (!known)
		return 0;
	__sync_fetch_and_add(known, cnt);
	__sync_fetch_and_add(&controls.owed_cnt, cnt);
	return 0;
}

/* The thread gives up its CPU to wait; owner_tid: for that thread, 0: for nobody that is known. */
static __always_inline void delay__block(struct thread *thread, u32 owner_tid)
{
	u32 cnt = thread->recording;

	if (!cfg_knobs.stacks || !cnt || thread->blocked_cnt)
		return;
	thread->blocked_cnt = cnt;
	__sync_fetch_and_add(&controls.waiting, cnt);
	thread->owed_tid = owner_tid;
	if (owner_tid)
		owed__add(owner_tid, cnt);
}

static __always_inline void delay__unblock(struct thread *thread)
{
	u32 cnt = thread->blocked_cnt;

	if (!cfg_knobs.stacks || !cnt)
		return;
	thread->blocked_cnt = 0;
	*(volatile u64 *)&controls.waited_ts = bpf_ktime_get_ns();
	__sync_fetch_and_add(&controls.waiting, -cnt);
	if (thread->owed_tid)
		owed__add(thread->owed_tid, -(s32)cnt);
}

/* Selected intervals that go on in no thread: for which thread they wait is known of some of them only. */
static __always_inline u32 hidden_cnt(void)
{
	s32 waiting = *(volatile s32 *)&controls.waiting, expected = *(volatile s32 *)&controls.expected;

	return (waiting > 0 ? waiting : 0) + (expected > 0 ? expected : 0);
}

static __always_inline u32 owed__cnt(u32 tid)
{
	u32 *known;

	if (!*(volatile u32 *)&controls.owed_cnt)
		return 0;
	known = bpf_map_lookup_elem(&owed, &tid);
	return known ? *known : 0;
}

/*
 * How many selected intervals the running task delays, at most.  A followed thread, of the target or one that serves
 * it, may be what any interval waits for that goes on nowhere: owner and order are known of locks only.  So all of them
 * count while there is such an interval, which is at most a sample per tick and CPU.
 */
static __always_inline u32 delays_of(struct task_struct *task, struct thread *thread)
{
	u64 word = run_queue__word(bpf_get_smp_processor_id());
	u32 hidden = hidden_cnt(), threads = queued_threads(word), cnt = queued_intervals(word);

	/* Those that are to be picked up by a thread in the queue, as far as there are any. */
	if (thread)
		return cnt + thread->recording + hidden;
	cnt += threads < hidden ? threads : hidden;
	return cnt + owed__cnt(task->pid);
}

#endif
