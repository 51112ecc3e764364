/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What happens to a followed thread: changes of state, the shadow stack, snapshots, waits worth naming. */
#ifndef WHYLATE_BPF_THREAD_H
#define WHYLATE_BPF_THREAD_H

#include "context.h"
#include "hw.h"
#include "segment.h"

/* A wait shorter than this is not worth naming anybody for. */
#define WAIT_NAMED_NS 2000

/*
 * Does anything ask what the thread is at?  A selected interval that waits for it, perhaps, or is open on it.  If not,
 * an unselected one comes and goes without so much as a look at the clock.
 */
static __always_inline bool thread__is_watched(struct thread *thread)
{
	return cfg_knobs.trace || thread->recording || controls.expected;
}

static __always_inline u32 word_state(u64 word)
{
	return word & STATE_MASK;
}

static __always_inline u64 word_ts(u64 word)
{
	return word >> STATE_BITS;
}

static __always_inline u64 later(u64 one_ts, u64 two_ts)
{
	return one_ts > two_ts ? one_ts : two_ts;
}

/* An entry of the history, by how many came after it. */
static __always_inline u64 *thread__past(struct thread *thread, u32 after)
{
	return &thread->history[(thread->history_pos - 1 - after) & (HISTORY_LEN - 1)];
}

/*
 * Moves the thread to `state` and returns when.  An interrupt between the read of the word and the swap has moved it on
 * meanwhile: then the swap fails and is tried again.  Three interrupts in those few instructions do not happen; if they
 * did, the time would stay with the state under way and nothing would be counted twice.
 */
static __always_inline u64 thread__enter(struct thread *thread, u32 state)
{
	u64 now = 0;

	for (int tries = 0; tries < 4; tries++) {
		u64 old = *(volatile u64 *)&thread->word;
		u64 word;
		u32 left = word_state(old);

		now = bpf_ktime_get_ns();
		if (now < word_ts(old)) /* another CPU's clock was ahead */
			now = word_ts(old);
		word = now << STATE_BITS | state;
		if (__sync_val_compare_and_swap(&thread->word, old, word) != old)
			continue;
		thread->length_ns[left] += now - word_ts(old);
		if (cfg_knobs.hw)
			hw__switch(thread, left == WL_STATE_RUNNING, state == WL_STATE_RUNNING);
		if (left != state)
			thread->history[thread->history_pos++ & (HISTORY_LEN - 1)] = word;
		if (cfg_knobs.trace)
			segment__send(thread, old, now, thread->blocked);
		break;
	}
	return now;
}

/* The segment under way ends here, and the thread goes on in the same state: an edge begins here. */
static __always_inline void thread__cut(struct thread *thread)
{
	if (cfg_knobs.trace && !at_rest())
		thread__enter(thread, word_state(thread->word));
}

/* From here on the thread works for that interval, 0 for none. */
static __always_inline void thread__works_for(struct thread *thread, u64 sid, u32 type)
{
	if (!cfg_knobs.trace)
		return;
	thread__cut(thread);
	thread->segment_sid = sid;
	thread->segment_type = type;
}

static __always_inline bool state_has_cpu(u32 state)
{
	return bit(state) & (RUNNING_STATES | SOFTIRQ_STATES | bit(WL_STATE_IRQ_HARD) | bit(WL_STATE_IRQ_VECTOR) |
			     bit(WL_STATE_IRQ_TIMER) | bit(WL_STATE_IRQ_IPI));
}

/*
 * There are kernels on which sched_switch goes unreported now and then (seen on a 6.18 guest, for perf as well: around
 * the switches to one of the hypervisor's agents).  A thread that runs without having been switched in is put right
 * here, at the first hook that meets it; the time since its last known state stays with that state, and its intervals
 * are flagged.  For how long it has had the CPU nobody knows.
 */
VERIFIED_ONCE int thread__missed_switch(struct thread *thread, struct cpu_context *cpu)
{
	if (!thread || !cpu)
		return 0;
	if (cpu->runner_pos)
		__sync_fetch_and_add(&cpu->loss[WL_LOSS_MISSED_SWITCH].lost, 1);
	cpu__runs(cpu, bpf_get_current_task_btf(), bpf_ktime_get_ns());
	cpu->followed = 1;
	thread->blocked = 0;
	if (!state_has_cpu(word_state(thread->word))) {
		thread->suspect_ts = bpf_ktime_get_ns();
		thread->suspect_ts = thread__enter(thread, thread->run_state);
	}
	return 0;
}

/*
 * The running thread if it is followed.  Most tasks are not, which the CPU's own context tells, if it knows the task
 * that runs; otherwise its storage does.
 */
static __always_inline struct thread *current_thread(struct cpu_context *cpu)
{
	struct task_struct *task = bpf_get_current_task_btf();
	bool known = cpu__runner(cpu)->tid == (u32)task->pid;
	struct thread *thread;

	if (known && !cpu->followed)
		return NULL;
	thread = thread_of(task);
	if (thread && (!known || !state_has_cpu(word_state(thread->word))))
		thread__missed_switch(thread, cpu);
	return thread;
}

/* The state under way turns out to have been another one, since the last cut if there was one. */
static __always_inline void thread__relabel(struct thread *thread, u32 state)
{
	u64 *last = thread__past(thread, 0);

	thread->word = (thread->word & ~(u64)STATE_MASK) | state;
	if (word_ts(*last) != word_ts(thread->word))
		last = &thread->history[thread->history_pos++ & (HISTORY_LEN - 1)];
	*last = thread->word;
}

/* The mask tells older verifiers (6.1) what the comparison before it tells newer ones; the barrier keeps it there. */
static __always_inline u32 *nest_place(struct thread *thread, u32 level)
{
	barrier_var(level);
	return &thread->nest[level & (NEST_MAX - 1)];
}

/*
 * The shadow stack of VarMRI §4.3, kept with the thread instead of the CPU: whatever nests on a CPU nests on the thread
 * that runs there, and on a PREEMPT_RT kernel a softirq that is switched out goes on with its thread.  No lengths are
 * needed on it, because thread__enter() gives every nanosecond to the innermost level alone.
 */
static __always_inline void nest__push(struct thread *thread, u32 state)
{
	u32 level = thread->nest_level++;

	if (level < NEST_MAX)
		*nest_place(thread, level) = thread->run_state;
	thread->run_state = state;
	thread->count[state & STATE_MASK]++;
	thread__enter(thread, state);
}

/*
 * The level is given up only after its place was read: an interrupt in between would find the place free and write the
 * state into it that is about to end, which would then never end.
 */
static __always_inline void nest__pop(struct thread *thread)
{
	u32 level = thread->nest_level;

	if (!level) /* began before the thread was followed */
		return;
	level--;
	if (level < NEST_MAX)
		thread->run_state = *nest_place(thread, level);
	barrier();
	thread->nest_level = level;
	thread__enter(thread, thread->run_state);
}

/*
 * The same kernels leave out the end of an interrupt: the thread would be in it for ever.  Where a thread is seen to be
 * at its own business, it has ended; the stretch under way was the thread's own.
 */
VERIFIED_ONCE int thread__missed_exit(struct thread *thread)
{
	struct cpu_context *cpu = this_cpu();
	u32 state;

	if (!thread || !cpu)
		return 0;
	__sync_fetch_and_add(&cpu->loss[WL_LOSS_MISSED_SWITCH].lost, 1);
	cpu->nested = 0;
	thread->nest_level = 0;
	thread->run_state = WL_STATE_RUNNING;
	state = word_state(thread->word);
	if (state_has_cpu(state) && state != WL_STATE_RUNNING)
		thread__relabel(thread, WL_STATE_RUNNING);
	thread->suspect_ts = bpf_ktime_get_ns();
	return 0;
}

/* The thread makes a call or leaves its CPU: no interrupt is on top of it. */
static __always_inline void thread__in_no_interrupt(struct thread *thread)
{
	if (thread->nest_level && !thread->in_fault)
		thread__missed_exit(thread);
}

/*
 * Copies the counters as they are at one instant, which is returned: the state under way counts up to then, so that the
 * lengths of two snapshots differ by exactly the time between them.  0 if interrupts never left it alone.  `fresh`:
 * nothing was being recorded on the thread until now.
 */
VERIFIED_ONCE u64 thread__snapshot(struct thread *thread, struct snapshot *snapshot, bool fresh)
{
	if (!thread || !snapshot)
		return 0;
	for (int tries = 0; tries < 4; tries++) {
		u64 word = *(volatile u64 *)&thread->word;
		u64 now = bpf_ktime_get_ns();

		if (now < word_ts(word))
			now = word_ts(word);
		for (int i = 0; i < STATE_SLOTS; i++) {
			snapshot->length_ns[i] = *(volatile u64 *)&thread->length_ns[i];
			snapshot->count[i] = *(volatile u32 *)&thread->count[i];
		}
		for (int i = 0; i < WL_TALLY_CNT; i++)
			snapshot->tally[i] = thread->tally[i];
		if (cfg_knobs.hw)
			hw__snapshot(thread, snapshot->hw, fresh);
		if (*(volatile u64 *)&thread->word != word)
			continue;
		snapshot->length_ns[word_state(word)] += now - word_ts(word);
		return now;
	}
	return 0;
}

/* The place for a wait of that length: see struct wait_list. */
#define wait_list__push(list, field, length)                                                    \
	({                                                                                      \
		u32 cnt = (list)->cnt, head = (list)->head;                                     \
		for (u32 i = 0; i < WAITS_MAX && cnt; i++) {                                    \
			if ((list)->waits[(head + cnt - 1) & (WAITS_MAX - 1)].field > (length)) \
				break;                                                          \
			cnt--;                                                                  \
		}                                                                               \
		if (cnt >= WAITS_MAX) {                                                         \
			cnt = WAITS_MAX - 1;                                                    \
			(list)->head = ++head;                                                  \
		}                                                                               \
		(list)->cnt = cnt + 1;                                                          \
		&(list)->waits[(head + cnt) & (WAITS_MAX - 1)];                                 \
	})

/* The longest wait that ended after since_ts, or NULL. */
#define wait_list__longest(list, since_ts)                                                           \
	({                                                                                           \
		typeof(&(list)->waits[0]) longest = NULL;                                            \
		for (u32 i = 0; i < WAITS_MAX && i < (list)->cnt; i++) {                             \
			typeof(longest) past = &(list)->waits[((list)->head + i) & (WAITS_MAX - 1)]; \
			if (past->end_ts > (since_ts)) {                                             \
				longest = past;                                                      \
				break;                                                               \
			}                                                                            \
		}                                                                                    \
		longest;                                                                             \
	})

static __always_inline void wait_list__note(struct wait_list *list, struct wl_wait *wait, u64 end_ts)
{
	struct past_wait *past = wait_list__push(list, wait.length_ns, wait->length_ns);

	past->end_ts = end_ts;
	past->wait = *wait;
}

#endif
