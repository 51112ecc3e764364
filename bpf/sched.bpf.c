// SPDX-License-Identifier: GPL-2.0-or-later
/* When a followed thread runs, wants to run, and waits: sched_switch, sched_waking, sched_wakeup. */
#include "compat.h"
#include "delay.h"
#include "goroutine.h"
#include "lock.h"
#include "poll.h"
#include "thread.h"
#include "wait.h"
#include "wakeup.h"

/* Whatever it waits for inside a call that acquires a lock is the lock. */
static __always_inline u32 wait_of(struct task_struct *task, struct thread *thread)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	u32 state = blocked_state(task, &thread->wait);

	if (thread->waits_for_mmap) {
		thread->wait.object = WL_MMAP_LOCK;
		thread->wait.owner_tid = thread->mmap_owner_tid;
		thread->wait.state = state = WL_STATE_BLOCKED_FUTEX;
	} else if (cfg_knobs.probes && regs && lock__waited_for(thread, PT_REGS_SP(regs)))
		thread->wait.state = state = WL_STATE_BLOCKED_FUTEX;
	return state;
}

/* It has asked on a connection of its own, and how it waits for replies is not known yet. */
static __always_inline bool may_be_loop(const struct thread *thread)
{
	return thread->asks && thread->asks < ASKS_UNKNOWN && !thread->is_loop;
}

/* An event loop, between events. */
static __always_inline bool waits_in_loop(struct thread *thread, u32 state)
{
	u32 nr = thread->wait.sysno, class;

	if (state != WL_STATE_BLOCKED_POLL || nr >= KNOB_SYSCALLS)
		return false;
	class = cfg_knobs.wait_class[nr & (KNOB_SYSCALLS - 1)];
	if (class == WAIT_LOOP)
		return true;
	if ((class != WAIT_POLL && class != WAIT_SELECT) || !may_be_loop(thread) || thread->polls >= ASKS_UNKNOWN)
		return false;
	thread->polls++;
	return polls_clients(class);
}

static __always_inline void switched_out(struct task_struct *task, struct thread *thread, bool runnable)
{
	bool faults = thread->in_fault && !thread->waits_for_mmap;
	u32 state;

	if (!cfg_knobs.rt)
		thread__in_no_interrupt(thread);
	if (!runnable && cfg_knobs.goroutines)
		goroutine__switched_out(task, thread);
	thread->last_cpu = thread->wait_cpu = bpf_get_smp_processor_id();
	thread->tally[runnable ? WL_TALLY_SWITCH_INVOLUNTARY : WL_TALLY_SWITCH_VOLUNTARY]++;
	thread->wait_since_ts = 0;
	if (runnable) {
		state = task_is_throttled(task) ? WL_STATE_THROTTLED : WL_STATE_RUNQ_PREEMPT;
		thread->count[state]++;
		if (state != WL_STATE_THROTTLED)
			delay__queue(thread, thread->last_cpu);
		thread__enter(thread, state);
		return;
	}
	if (faults) {
		state = STATE_FAULT_PENDING; /* the fault's wait is part of the fault */
	} else if (!thread->recording && !cfg_knobs.trace && !may_be_loop(thread)) {
		/* Nobody will ask for more. */
		state = task_is_stopped(task) ? WL_STATE_BLOCKED_STOPPED : WL_STATE_BLOCKED_OTHER;
	} else {
		state = wait_of(task, thread);
	}
	thread->count[state & STATE_MASK]++;
	if ((thread->recording || cfg_knobs.trace) && !faults)
		thread->wait_since_ts = thread__enter(thread, state);
	else
		thread__enter(thread, state);
	/* Where a goroutine waits for bytes, the runtime's threads do for all of them. */
	if (!thread->is_go && waits_in_loop(thread, state))
		thread->is_loop = 1;
	delay__block(thread, state == WL_STATE_BLOCKED_FUTEX ? thread->wait.owner_tid : 0);
	/* Last: a waker that sees it set may move the state on at once. */
	*(volatile u32 *)&thread->blocked = 1;
}

/* Looks back through those that ran on a CPU since since_ts. */
struct runner_search {
	struct cpu_context *cpu;
	u64 since_ts, end_ts;
	u64 longest_ns; /* the longest turn of one task that is not the thread */
	u64 ran_ns;     /* and what its earlier turns add to it */
	u32 thread_tid;
	u32 longest_tid; /* 0: none yet */
	u32 longest_pos;
	u32 zero;
};

/* One turn further back. A callback of bpf_loop(), because the verifier would walk every path through an open loop. */
static long look_back(u32 back, struct runner_search *search)
{
	struct cpu_context *cpu = search->cpu;
	u32 pos = (cpu->runner_pos - 1 - back) & (RUNNERS_MAX - 1);
	struct runner *runner = &cpu->runners[pos];
	u64 from_ts = runner->since_ts > search->since_ts ? runner->since_ts : search->since_ts;
	u64 length_ns = search->end_ts > from_ts ? search->end_ts - from_ts : 0;

	if (runner->tid && runner->tid == search->longest_tid) {
		search->ran_ns += length_ns;
	} else if (runner->tid && runner->tid != search->thread_tid && length_ns > search->longest_ns) {
		search->longest_ns = search->ran_ns = length_ns;
		search->longest_tid = runner->tid;
		search->longest_pos = pos;
	}
	search->end_ts = from_ts;
	return runner->since_ts <= search->since_ts;
}

/*
 * Who of those that ran on that CPU since since_ts ran longest, taking a task's turns together: where cpu->runners has
 * it, + 1; 0: nobody.
 */
VERIFIED_ONCE u32 ran_longest(struct cpu_context *cpu, u32 thread_tid, u64 since_ts, u64 now, u64 *ran_ns)
{
	struct runner_search search = {.cpu = cpu, .since_ts = since_ts, .end_ts = now, .thread_tid = thread_tid};

	if (!cpu || !ran_ns)
		return 0;
	bpf_loop(RUNNERS_MAX, look_back, &search, 0);
	*ran_ns = search.ran_ns;
	return search.longest_tid ? (search.longest_pos & (RUNNERS_MAX - 1)) + 1 : 0;
}

/* It had no task to run since then, as far as was seen. */
static __always_inline bool cpu__idles(struct cpu_context *cpu, u64 since_ts)
{
	struct runner *runner = cpu__runner(cpu);

	return cpu->runner_pos && !runner->tid && runner->since_ts <= since_ts;
}

/*
 * The thread has wanted a CPU since word_ts(word) and gets this one now.  The culprit is who ran longest meanwhile: on
 * this CPU, or on the one in whose queue the thread waited before it was moved over here.
 */
VERIFIED_ONCE int note_runq(struct thread *thread, u64 word, u64 now, struct cpu_context *here)
{
	u64 since_ts = word_ts(word), wait_ns = now - since_ts, ran_ns = 0, there_ns = 0;
	struct cpu_context *ran_on = here, *there;
	struct runner *culprit;
	struct past_runq *slot;
	u32 key = 0, longest, longest_there;

	if (!thread || !here || now < since_ts || wait_ns < WAIT_NAMED_NS)
		return 0;
	if (thread->wait_cpu == bpf_get_smp_processor_id() && cpu__idles(here, since_ts)) {
		thread->other_ns = wait_ns;
		slot = wait_list__push(&thread->runq, wait_ns, wait_ns);
		slot->end_ts = now;
		slot->wait_ns = wait_ns;
		__builtin_memset(&slot->culprit, 0, sizeof(slot->culprit));
		slot->culprit.length_ns = wait_ns;
		return 0;
	}
	longest = ran_longest(here, thread->kernel_tid, since_ts, now, &ran_ns);
	if (thread->wait_cpu != bpf_get_smp_processor_id()) {
		there = bpf_map_lookup_percpu_elem(&cpus, &key, thread->wait_cpu);
		longest_there = there ? ran_longest(there, thread->kernel_tid, since_ts, now, &there_ns) : 0;
		if (longest_there && there_ns > ran_ns) {
			ran_ns = there_ns;
			longest = longest_there;
			ran_on = there;
		}
	}
	if (!ran_ns || !longest || !ran_on)
		return 0;
	culprit = &ran_on->runners[(longest - 1) & (RUNNERS_MAX - 1)];
	if (cfg_knobs.trace)
		segment__blame(thread, culprit, ran_ns);
	slot = wait_list__push(&thread->runq, wait_ns, wait_ns);
	slot->end_ts = now;
	slot->wait_ns = wait_ns;
	slot->culprit.length_ns = ran_ns;
	slot->culprit.pid = culprit->pid;
	slot->culprit.tid = culprit->as_tid;
	__builtin_memcpy(slot->culprit.comm, culprit->comm, WL_COMM_LEN);
	return 0;
}

static __always_inline void switched_in(struct thread *thread, struct cpu_context *cpu)
{
	u64 word = *(volatile u64 *)&thread->word, now;
	u32 state = word_state(word);

	if (thread->last_cpu != bpf_get_smp_processor_id())
		thread->tally[WL_TALLY_MIGRATION]++;
	thread->blocked = 0;
	delay__unqueue(thread);
	delay__unblock(thread);
	if (cfg_knobs.trace) {
		/* The segment that ends here says who had the CPU. */
		thread->other_tid = 0;
		thread->other_ns = 0;
		if (RUNQ_STATES & bit(state))
			note_runq(thread, word, bpf_ktime_get_ns(), cpu);
	}
	now = thread__enter(thread, thread->run_state);
	if (!cfg_knobs.trace && (RUNQ_STATES & bit(state)))
		note_runq(thread, word, now, cpu);
	if (state != WL_STATE_RUNQ_PREEMPT && state != WL_STATE_THROTTLED)
		thread->switched_in_ts = now;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)
{
	struct cpu_context *cpu = at_rest() ? NULL : this_cpu();
	struct thread *thread;

	if (!cpu)
		return 0;
	cpu->loss[WL_LOSS_MISSED_SWITCH].emitted++;
	if (cfg_knobs.trace)
		context_switches();
	thread = thread_of(prev);
	if (cpu->runner_pos && cpu__runner(cpu)->tid != (u32)prev->pid) {
		/* It got the CPU unseen. */
		if (thread) {
			thread__missed_switch(thread, cpu);
		} else {
			cpu__runs(cpu, prev, bpf_ktime_get_ns());
			__sync_fetch_and_add(&cpu->loss[WL_LOSS_MISSED_SWITCH].lost, 1);
		}
	}
	if (thread)
		switched_out(prev, thread, preempt || !prev_state);
	thread = thread_of(next);
	cpu->followed = !!thread;
	if (thread)
		switched_in(thread, cpu);
	else if (!next->pid)
		run_queue__idles(bpf_get_smp_processor_id());
	cpu__runs(cpu, next, bpf_ktime_get_ns());
	if (thread && cfg_knobs.goroutines)
		cpu__runner(cpu)->as_tid = thread->tid;
	return 0;
}

/* Blocked no longer. */
static __always_inline void woken(struct task_struct *task, struct thread *thread)
{
	u32 state;
	u64 now;

	if (!thread->blocked)
		return;
	thread->blocked = 0;
	delay__unblock(thread);
	state = task_is_throttled(task) ? WL_STATE_THROTTLED : WL_STATE_RUNQ_WAKEUP;
	thread->count[state]++;
	now = thread__enter(thread, state);
	if (!thread->wait_since_ts)
		return;
	thread->wait.length_ns = now - thread->wait_since_ts;
	thread->wait_since_ts = 0;
	if (thread->wait.length_ns < WAIT_NAMED_NS)
		return;
	wait_list__note(thread->wait.state == WL_STATE_BLOCKED_FUTEX ? &thread->lock : &thread->other, &thread->wait,
			now);
}

/* A thread that is woken at another futex than the one that it began to wait for was moved there: that is what it
 * waited for. */
static __always_inline void note_moved(struct thread *thread, struct trace_cpu *trace_cpu)
{
	struct task_struct *waker = bpf_get_current_task_btf();
	u64 futex;

	if (!trace_cpu || context_now(trace_cpu) != WL_CONTEXT_TASK)
		return;
	futex = woken_futex(waker, thread->pid);
	if (!futex || futex == thread->wait.object)
		return;
	thread->wait.object = futex;
	thread->wait.owner_tid = 0;
}

/* Woken by a disk that is done, the thread waited for the disk, whatever else it had submitted. */
static __always_inline u32 ring_wait_of(struct thread *thread, struct trace_cpu *trace_cpu, u32 state)
{
	u32 nr = thread->wait.sysno;

	if (!trace_cpu || !trace_cpu->io.complete_ts || nr >= KNOB_SYSCALLS ||
	    cfg_knobs.wait_class[nr & (KNOB_SYSCALLS - 1)] != WAIT_RING)
		return state;
	thread__relabel(thread, WL_STATE_BLOCKED_DISK);
	thread->wait.state = WL_STATE_BLOCKED_DISK;
	return WL_STATE_BLOCKED_DISK;
}

/* Off its CPU and off the run queue and yet never switched out: what it did since then is not known. */
static __always_inline void note_missed_switch_out(struct task_struct *task, struct thread *thread)
{
	struct cpu_context *cpu = this_cpu();

	if (thread->blocked || task_is_queued(task) || !state_has_cpu(word_state(thread->word)) || !cpu)
		return;
	thread__relabel(thread, WL_STATE_UNKNOWN);
	thread->suspect_ts = bpf_ktime_get_ns();
	thread->blocked = 1;
	__sync_fetch_and_add(&cpu->loss[WL_LOSS_MISSED_SWITCH].lost, 1);
}

/*
 * The waker's side.  sched_waking says that the wait is over; sched_wakeup that the thread is in a run queue, which on
 * an idle CPU may take an interrupt to get there.  A thread without an interval wants its CPU from the first moment: a
 * request has just arrived for it.  A wait in the middle of an interval lasts until the run queue has the thread, as in
 * the scheduler's own run_delay, so that what an idle CPU takes to wake up is not said to be somebody else's doing.
 */
SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *task)
{
	struct thread *thread = at_rest() ? NULL : thread_of(task);

	if (!thread)
		return 0;
	note_missed_switch_out(task, thread);
	if (cfg_knobs.trace) {
		bool blocked = thread->blocked;
		u32 state = word_state(thread->word);

		if (blocked && state == WL_STATE_BLOCKED_FUTEX && !thread->acquire_object)
			note_moved(thread, this_trace_cpu());
		else if (blocked && state == WL_STATE_BLOCKED_POLL)
			state = ring_wait_of(thread, this_trace_cpu(), state);
		woken(task, thread);
		if (blocked)
			wakeup__note(thread, state);
	} else if (!thread->recording) {
		woken(task, thread);
	}
	return 0;
}

/* Also for whoever was woken before it had left its CPU, where sched_waking found nothing to do. */
SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *task)
{
	struct thread *thread = at_rest() ? NULL : thread_of(task);

	if (!thread)
		return 0;
	thread->wait_cpu = task_cpu(task);
	woken(task, thread);
	if (cfg_knobs.stacks && !task_is_on_cpu(task) && !task_is_throttled(task))
		delay__queue(thread, thread->wait_cpu);
	return 0;
}
