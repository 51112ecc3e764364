// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Trace mode: timers, so that a wake-up by one says who armed it.  Where a call waits with a timeout, the timer is its
 * own, and nothing needs to be seen of its start; a timerfd, an itimer or a POSIX timer may be armed by one thread and
 * wake another.
 */
#include "compat.h"
#include "wakeup.h"

SEC("tp_btf/hrtimer_start")
int BPF_PROG(on_hrtimer_start, void *timer)
{
	struct trace_cpu *trace_cpu = at_rest() ? NULL : this_trace_cpu();
	struct task_struct *task = bpf_get_current_task_btf();
	struct cpu_context *cpu = trace_cpu ? this_cpu() : NULL;
	struct armed_timer armed = {};
	u64 key = (u64)timer;
	struct pt_regs *regs;
	long nr;

	if (!cpu || !cpu->followed || context_now(trace_cpu) != WL_CONTEXT_TASK)
		return 0;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	nr = regs ? syscall_nr(regs) : -1;
	if (nr < 0 || nr >= KNOB_SYSCALLS || cfg_knobs.wait_class[nr & (KNOB_SYSCALLS - 1)] != WAIT_ARM)
		return 0;
	armed.armed_ts = bpf_ktime_get_ns();
	armed.pid = task->tgid;
	armed.tid = task->pid;
	armed.window = controls.window;
	bpf_map_update_elem(&armed_timers, &key, &armed, BPF_ANY);
	return 0;
}

static __always_inline int timer_begins(void *timer)
{
	struct trace_cpu *cpu = at_rest() ? NULL : this_trace_cpu();

	if (!cpu)
		return 0;
	cpu->timer.expire_ts = bpf_ktime_get_ns();
	cpu->timer.timer = (u64)timer;
	cpu->timer.hardirq = cpu->hardirq;
	return 0;
}

static __always_inline int timer_ends(void)
{
	struct trace_cpu *cpu = at_rest() ? NULL : this_trace_cpu();

	if (cpu)
		cpu->timer.expire_ts = 0;
	return 0;
}

SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(on_hrtimer_expire_entry, void *timer)
{
	return timer_begins(timer);
}

SEC("tp_btf/hrtimer_expire_exit")
int BPF_PROG(on_hrtimer_expire_exit)
{
	return timer_ends();
}

/* Timers of the wheel: a wait in jiffies, such as that of a socket with SO_RCVTIMEO. */
SEC("tp_btf/timer_expire_entry")
int BPF_PROG(on_timer_expire_entry, void *timer)
{
	return timer_begins(timer);
}

SEC("tp_btf/timer_expire_exit")
int BPF_PROG(on_timer_expire_exit)
{
	return timer_ends();
}
