/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Trace mode: who makes a blocked followed thread runnable, from which context, and doing what. */
#ifndef WHYLATE_BPF_WAKEUP_H
#define WHYLATE_BPF_WAKEUP_H

#include "compat.h"
#include "follow.h"
#include "oncpu.h"
#include "wait.h"

struct qstr___named {
	const unsigned char *name;
} __attribute__((preserve_access_index));

struct dentry___named {
	struct qstr___named d_name;
} __attribute__((preserve_access_index));

/* "[eventfd]", the name of every eventfd. */
static __always_inline bool file_is_eventfd(struct file *file)
{
	struct dentry___named *dentry = (void *)BPF_CORE_READ(file, f_path.dentry);
	const unsigned char *text = BPF_CORE_READ(dentry, d_name.name);
	char name[8] = {};

	return !bpf_probe_read_kernel(name, sizeof(name), text) && name[0] == '[' && name[1] == 'e' && name[2] == 'v' &&
	       name[3] == 'e' && name[4] == 'n' && name[5] == 't' && name[6] == 'f' && name[7] == 'd';
}

/* What kind of file a write goes to: enum wl_file. */
static __always_inline u32 written_file(struct task_struct *task, u64 fd)
{
	struct file *file = file_of(task, fd);

	if (!file)
		return WL_FILE_OTHER;
	switch (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) {
	case S_IFIFO:
		return WL_FILE_PIPE;
	case S_IFSOCK:
		return WL_FILE_SOCKET;
	}
	return file_is_eventfd(file) ? WL_FILE_EVENTFD : WL_FILE_OTHER;
}

struct socket___typed {
	short type;
} __attribute__((preserve_access_index));

/*
 * Over loopback, a datagram gets to its receiver in a softirq, on the sender's CPU and within the sender's call: the
 * task below the softirq has sent it.
 */
static __always_inline bool sends_datagram(struct task_struct *task)
{
	struct socket___typed *socket;
	struct file___opened *opened;
	struct file *file;
	struct pt_regs *regs;
	u32 class;
	long nr;

	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	nr = call_of(task, regs);
	if (nr < 0)
		return false;
	class = cfg_knobs.wait_class[nr & (KNOB_SYSCALLS - 1)];
	if (class != WAIT_NET && class != WAIT_FILE)
		return false;
	file = file_of(task, syscall_arg(regs, 0));
	if (!file || (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) != S_IFSOCK)
		return false;
	opened = (void *)file;
	socket = BPF_CORE_READ(opened, private_data);
	return BPF_CORE_READ(socket, type) == SOCK_DGRAM;
}

/* What is sent of a wake-up besides its time and the woken thread. */
struct wakeup_facts {
	u64 arrived_sid;
	u64 io_ts;
	u32 context;
	u32 waker_sysno;
	u32 waker_file;
	u32 state;
};

/* What the waker was at, when it is a task that does it itself. */
static __always_inline void describe_waker(struct wakeup_facts *facts, struct task_struct *waker)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(waker);
	long nr = call_of(waker, regs);

	if (nr < 0)
		return;
	facts->waker_sysno = nr;
	switch (cfg_knobs.wait_class[nr & (KNOB_SYSCALLS - 1)]) {
	case WAIT_FILE:
		facts->waker_file = written_file(waker, syscall_arg(regs, 0));
		break;
	case WAIT_TEE:
		facts->waker_file = written_file(waker, syscall_arg(regs, 1));
		break;
	case WAIT_SPLICE:
		facts->waker_file = written_file(waker, syscall_arg(regs, 2));
		break;
	case WAIT_MESSAGE:
		facts->waker_file = WL_FILE_MESSAGE;
		break;
	}
}

/* A socket tells its readers at once: later on this CPU, it is somebody else who wakes. */
#define ARRIVAL_TOLD_NS 20000

static __always_inline u64 take_arrival(struct trace_cpu *trace_cpu, u64 now)
{
	u64 sid = now - trace_cpu->arrived_ts < ARRIVAL_TOLD_NS ? trace_cpu->arrived_sid : 0;

	trace_cpu->arrived_sid = 0;
	return sid;
}

/* Timers that were armed by a call that does so for whoever waits, by address. */
struct armed_timer {
	u64 armed_ts;
	u32 pid, tid;
	u32 window; /* between windows it may have been armed anew, unseen */
	u32 zero;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u64);
	__type(value, struct armed_timer);
} armed_timers SEC(".maps") __weak;

/* The thread was woken by a timer that expires. */
VERIFIED_ONCE int timer__send(struct thread *thread, struct trace_cpu *trace_cpu)
{
	struct wl_timer_record *record;
	struct armed_timer *armed;
	u64 key;

	if (!thread || !trace_cpu)
		return 0;
	record = ring__reserve(WL_LOSS_EDGE, WL_RECORD_TIMER, sizeof(*record));
	if (!record) {
		thread->lost_ts = bpf_ktime_get_ns();
		return 0;
	}
	key = trace_cpu->timer.timer;
	armed = bpf_map_lookup_elem(&armed_timers, &key);
	if (armed && cfg_knobs.windows && armed->window != controls.window)
		armed = NULL;
	record->ts = word_ts(thread->word);
	record->expire_ts = trace_cpu->timer.expire_ts;
	record->timer = key;
	record->armed_ts = armed ? armed->armed_ts : 0;
	record->pid = thread->pid;
	record->tid = thread->tid;
	record->armed_pid = armed ? armed->pid : 0;
	record->armed_tid = armed ? armed->tid : 0;
	record->own = (int)thread->wait.sysno >= 0;
	record->zero = 0;
	ring__submit(record);
	return 0;
}

/* False: it does not fit into words. */
static __always_inline bool wakeup__pack(struct wakeup_facts *facts, struct thread *thread, struct task_struct *waker)
{
	struct word_writer writer;

	if (!words__take(&writer))
		return false;
	words__of(&writer, thread);
	words__at(&writer, word_ts(thread->word));
	words__put(&writer, WL_WAKEUP_WORD(facts->context, facts->waker_file, facts->state, facts->arrived_sid,
					   facts->io_ts, facts->waker_sysno + 1));
	words__put(&writer, (u64)waker->tgid << 32 | (u32)waker->pid);
	if (facts->arrived_sid)
		words__put(&writer, facts->arrived_sid);
	if (facts->io_ts)
		words__put(&writer, facts->io_ts);
	words__end(&writer, WL_LOSS_WAKEUP);
	return true;
}

/* The thread's wait in `state` is over. */
VERIFIED_ONCE int wakeup__send(struct thread *thread, struct trace_cpu *trace_cpu, u32 state, u32 context,
			       bool by_datagram)
{
	struct task_struct *waker = bpf_get_current_task_btf();
	struct wakeup_facts facts = {.context = context, .state = state, .waker_sysno = -1};
	struct wl_wakeup_record *record;

	if (!thread || !trace_cpu)
		return 0;
	facts.arrived_sid = take_arrival(trace_cpu, word_ts(thread->word));
	facts.io_ts = trace_cpu->io.complete_ts;
	if (context == WL_CONTEXT_TASK)
		describe_waker(&facts, waker);
	else if (by_datagram)
		facts.waker_file = WL_FILE_DATAGRAM;
	if (wakeup__pack(&facts, thread, waker))
		return 0;
	record = ring__reserve_many(WL_LOSS_WAKEUP, WL_RECORD_WAKEUP, sizeof(*record));
	if (!record) {
		thread->lost_ts = bpf_ktime_get_ns();
		return 0;
	}
	record->ts = word_ts(thread->word);
	record->arrived_sid = facts.arrived_sid;
	record->io_ts = facts.io_ts;
	record->pid = thread->pid;
	record->tid = thread->tid;
	record->waker_pid = waker->tgid;
	record->waker_tid = waker->pid;
	record->context = context;
	record->waker_sysno = facts.waker_sysno;
	record->waker_file = facts.waker_file;
	record->state = state;
	ring__submit(record);
	return 0;
}

/*
 * A task that does it itself becomes followed.  Not where it only sends a request to an idle thread of the target: it
 * is a client then, and what it did before belongs to no interval.
 */
static __always_inline bool waker_matters(struct thread *thread, u32 state)
{
	return thread->recording || thread->outside ||
	       (state != WL_STATE_BLOCKED_NET && state != WL_STATE_BLOCKED_POLL);
}

/* The thread was blocked in `state` until just now. */
static __always_inline void wakeup__note(struct thread *thread, u32 state)
{
	struct trace_cpu *trace_cpu = this_trace_cpu();
	struct cpu_context *cpu = this_cpu();
	struct thread *waker;
	bool by_datagram;
	u32 context;

	if (!trace_cpu || !cpu)
		return;
	context = context_now(trace_cpu);
	by_datagram = context == WL_CONTEXT_SOFTIRQ && !trace_cpu->hardirq &&
		      trace_cpu->softirq == WL_STATE_SOFTIRQ_NET_RX + 1 &&
		      (state == WL_STATE_BLOCKED_NET || state == WL_STATE_BLOCKED_POLL) &&
		      sends_datagram(bpf_get_current_task_btf());
	wakeup__send(thread, trace_cpu, state, context, by_datagram);
	if (state == WL_STATE_BLOCKED_DISK && thread->recording)
		*(volatile u64 *)&controls.disk_ts = word_ts(thread->word);
	if (trace_cpu->timer.expire_ts && trace_cpu->timer.hardirq == trace_cpu->hardirq)
		timer__send(thread, trace_cpu);
	if ((context != WL_CONTEXT_TASK && !by_datagram) || (u32)bpf_get_current_pid_tgid() == thread->kernel_tid)
		return;
	waker = current_thread(cpu);
	if (!waker && waker_matters(thread, state))
		waker = follow_current(cpu);
	/* What the waker did until now is sent, and a path may go on there. */
	if (waker)
		thread__cut(waker);
}

#endif
