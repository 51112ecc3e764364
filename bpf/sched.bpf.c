// SPDX-License-Identifier: GPL-2.0-only
/* When a followed thread runs, wants to run, and waits: sched_switch, sched_waking, sched_wakeup. */
#include "compat.h"
#include "thread.h"

#define S_IFMT 00170000
#define S_IFSOCK 0140000
#define S_IFREG 0100000
#define S_IFBLK 0060000
#define S_IFIFO 0010000

#define FUTEX_WAIT 0
#define FUTEX_COMMAND_MASK 0x7f

/* What a read or a write on that descriptor waits for. */
static __always_inline u32 wait_of_file(struct task_struct *task, u64 fd)
{
	struct file **files = BPF_CORE_READ(task, files, fdt, fd);
	struct file *file = NULL;
	u32 mode;

	if (fd >= BPF_CORE_READ(task, files, fdt, max_fds) ||
	    bpf_probe_read_kernel(&file, sizeof(file), files + fd) || !file)
		return WL_STATE_BLOCKED_OTHER;
	mode = BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT;
	switch (mode) {
	case S_IFSOCK:
		return WL_STATE_BLOCKED_NET;
	case S_IFIFO:
		return WL_STATE_BLOCKED_PIPE;
	case S_IFREG:
	case S_IFBLK:
		return WL_STATE_BLOCKED_DISK;
	}
	return WL_STATE_BLOCKED_OTHER;
}

/* glibc's mutex: FUTEX_WAIT for the value 2 on its first word; the third word is the owner's tid. */
static __always_inline u32 mutex_owner(u64 futex, u64 op, u64 value)
{
	u32 owner_tid = 0;

	if ((op & FUTEX_COMMAND_MASK) == FUTEX_WAIT && (u32)value == 2)
		bpf_probe_read_user(&owner_tid, sizeof(owner_tid), (void *)(futex + 8));
	return owner_tid;
}

/* Why the thread, which is `current` and gives up the CPU, blocks; fills thread->wait. */
static __always_inline u32 blocked_state(struct task_struct *task, struct thread *thread)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	struct wl_wait *wait = &thread->wait;
	u32 class = WAIT_OTHER, state;
	long nr = -1;

	if (regs)
		nr = syscall_nr(regs);
	wait->object = 0;
	wait->owner_tid = 0;
	wait->sysno = nr;
	if (nr >= 0 && nr < KNOB_SYSCALLS) {
		class = cfg_knobs.wait_class[nr & (KNOB_SYSCALLS - 1)];
		wait->object = syscall_arg(regs, 0);
	}
	switch (class) {
	case WAIT_FUTEX:
		state = WL_STATE_BLOCKED_FUTEX;
		wait->owner_tid = mutex_owner(wait->object, syscall_arg(regs, 1), syscall_arg(regs, 2));
		break;
	case WAIT_LOCK:
		state = WL_STATE_BLOCKED_FUTEX;
		break;
	case WAIT_DISK:
		state = WL_STATE_BLOCKED_DISK;
		break;
	case WAIT_NET:
		state = WL_STATE_BLOCKED_NET;
		break;
	case WAIT_POLL:
		state = WL_STATE_BLOCKED_POLL;
		break;
	case WAIT_SLEEP:
		state = WL_STATE_BLOCKED_SLEEP;
		break;
	case WAIT_FILE:
		state = wait_of_file(task, wait->object);
		break;
	default:
		state = WL_STATE_BLOCKED_OTHER;
	}
	/* Whatever the call, waiting for I/O to complete is waiting for the disk. */
	if (BPF_CORE_READ_BITFIELD(task, in_iowait))
		state = WL_STATE_BLOCKED_DISK;
	wait->state = state;
	return state;
}

static __always_inline void switched_out(struct task_struct *task, struct thread *thread, bool runnable)
{
	u32 state;

	thread->last_cpu = thread->wait_cpu = bpf_get_smp_processor_id();
	thread->tally[runnable ? WL_TALLY_SWITCH_INVOLUNTARY : WL_TALLY_SWITCH_VOLUNTARY]++;
	thread->wait_since_ts = 0;
	if (runnable) {
		state = task_is_throttled(task) ? WL_STATE_THROTTLED : WL_STATE_RUNQ_PREEMPT;
		thread->count[state]++;
		thread__enter(thread, state);
		return;
	}
	if (thread->in_fault) {
		state = STATE_FAULT_PENDING; /* the fault's wait is part of the fault */
	} else if (!thread->recording) {
		state = WL_STATE_BLOCKED_OTHER; /* nobody will ask */
	} else {
		state = blocked_state(task, thread);
	}
	thread->count[state & STATE_MASK]++;
	if (thread->recording && !thread->in_fault)
		thread->wait_since_ts = thread__enter(thread, state);
	else
		thread__enter(thread, state);
	/* Last: a waker that sees it set may move the state on at once. */
	*(volatile u32 *)&thread->blocked = 1;
}

/* How long the task that runs on that CPU has run since since_ts; 0: nobody, or the thread itself. */
static __always_inline u64 ran_meanwhile(struct cpu_context *cpu, struct thread *thread, u64 since_ts, u64 now)
{
	u64 from_ts;

	if (!cpu || !cpu->running_tid || cpu->running_tid == thread->tid)
		return 0;
	from_ts = cpu->since_ts > since_ts ? cpu->since_ts : since_ts;
	return now > from_ts ? now - from_ts : 0;
}

/*
 * The thread has wanted a CPU since word_ts(word) and gets this one now.  The culprit is who ran longest meanwhile: on this
 * CPU the task that makes room, or the one on the CPU in whose queue the thread waited before it was moved over here.
 */
static __always_inline void note_runq(struct thread *thread, u64 word, u64 now, struct cpu_context *here)
{
	u64 since_ts = word_ts(word), wait_ns = now - since_ts, ran_ns, there_ns;
	struct cpu_context *there, *culprit = here;
	struct past_runq *slot;
	u32 key = 0;

	if (wait_ns < WAIT_NAMED_NS)
		return;
	ran_ns = ran_meanwhile(here, thread, since_ts, now);
	if (thread->wait_cpu != bpf_get_smp_processor_id()) {
		there = bpf_map_lookup_percpu_elem(&cpus, &key, thread->wait_cpu);
		there_ns = ran_meanwhile(there, thread, since_ts, now);
		if (there_ns > ran_ns) {
			ran_ns = there_ns;
			culprit = there;
		}
	}
	if (!ran_ns || !culprit)
		return;
	slot = wait_list__push(&thread->runq, wait_ns, wait_ns);
	slot->end_ts = now;
	slot->wait_ns = wait_ns;
	slot->culprit.length_ns = ran_ns;
	slot->culprit.pid = culprit->running_pid;
	slot->culprit.tid = culprit->running_tid;
	__builtin_memcpy(slot->culprit.comm, culprit->running_comm, WL_COMM_LEN);
}

static __always_inline void switched_in(struct thread *thread, struct cpu_context *cpu)
{
	u64 word = *(volatile u64 *)&thread->word, now;
	u32 state = word_state(word);

	if (thread->last_cpu != bpf_get_smp_processor_id())
		thread->tally[WL_TALLY_MIGRATION]++;
	thread->blocked = 0;
	now = thread__enter(thread, thread->run_state);
	if (state == WL_STATE_RUNQ_WAKEUP || state == WL_STATE_RUNQ_PREEMPT)
		note_runq(thread, word, now, cpu);
	if (state != WL_STATE_RUNQ_PREEMPT && state != WL_STATE_THROTTLED)
		thread->switched_in_ts = now;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)
{
	struct cpu_context *cpu = this_cpu();
	struct thread *thread;

	if (!cpu)
		return 0;
	thread = thread_of(prev);
	if (thread)
		switched_out(prev, thread, preempt || !prev_state);
	thread = thread_of(next);
	cpu->followed = !!thread;
	if (thread)
		switched_in(thread, cpu);
	cpu->since_ts = bpf_ktime_get_ns();
	cpu->running_pid = next->tgid;
	cpu->running_tid = next->pid;
	__builtin_memcpy(cpu->running_comm, next->comm, WL_COMM_LEN);
	return 0;
}

/* Blocked no longer. The thread, or NULL if it is not followed. */
static __always_inline struct thread *woken(struct task_struct *task)
{
	struct thread *thread = thread_of(task);
	u32 state;
	u64 now;

	if (!thread || !thread->blocked)
		return thread;
	thread->blocked = 0;
	state = task_is_throttled(task) ? WL_STATE_THROTTLED : WL_STATE_RUNQ_WAKEUP;
	thread->count[state]++;
	now = thread__enter(thread, state);
	if (!thread->wait_since_ts)
		return thread;
	thread->wait.length_ns = now - thread->wait_since_ts;
	thread->wait_since_ts = 0;
	if (thread->wait.length_ns < WAIT_NAMED_NS)
		return thread;
	wait_list__note(thread->wait.state == WL_STATE_BLOCKED_FUTEX ? &thread->lock : &thread->other, &thread->wait, now);
	return thread;
}

/*
 * The waker's side.  sched_waking says when, but comes before the sleeper may have left its CPU: then it finds nothing to
 * do, and sched_wakeup, which comes after, does it.
 */
SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *task)
{
	woken(task);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *task)
{
	struct thread *thread = woken(task);

	if (thread)
		thread->wait_cpu = task_cpu(task);
	return 0;
}
