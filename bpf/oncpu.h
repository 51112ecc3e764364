/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Trace mode: on whose behalf does this CPU run right now, a task's or an interrupt's?  The kernel's own preemption
 * count would say it, but not every kernel lets its per-CPU variables be read; the interrupts' tracepoints do as well.
 */
#ifndef WHYLATE_BPF_ONCPU_H
#define WHYLATE_BPF_ONCPU_H

#include "context.h"

/* A block I/O that completed on this CPU. */
struct completed_io {
	u64 complete_ts; /* 0: none in the interrupt under way */
	u32 pid, tid;
};

/* A timer whose function runs on this CPU. */
struct expiring_timer {
	u64 expire_ts; /* 0: none */
	u64 timer;
	u32 hardirq; /* on top of which interrupt: its own wake-ups come from there */
	u32 zero;
};

struct trace_cpu {
	u32 hardirq; /* the innermost one under way: enum wl_state + 1, 0: none that was seen */
	u32 softirq;
	struct completed_io io;
	struct expiring_timer timer;
	u64 arrived_sid; /* the request whose first bytes have just got to their socket, 0: none */
	u64 arrived_ts;
	u32 window; /* in which all that was noted down */
	u32 zero;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct trace_cpu);
} trace_cpus SEC(".maps") __weak;

static __always_inline struct trace_cpu *this_trace_cpu(void)
{
	u32 key = 0;
	struct trace_cpu *cpu = bpf_map_lookup_elem(&trace_cpus, &key);

	/* An interrupt that was under way when the hooks were detached has ended unseen. */
	if (cpu && cfg_knobs.windows && cpu->window != controls.window) {
		cpu->window = controls.window;
		cpu->hardirq = 0;
		cpu->softirq = 0;
		cpu->io.complete_ts = 0;
		cpu->timer.expire_ts = 0;
		cpu->arrived_sid = 0;
	}
	return cpu;
}

static __always_inline u32 hardirq_context(u32 state)
{
	if (state == WL_STATE_IRQ_TIMER + 1)
		return WL_CONTEXT_TIMER;
	return state == WL_STATE_IRQ_IPI + 1 ? WL_CONTEXT_IPI : WL_CONTEXT_HARDIRQ;
}

static __always_inline u32 softirq_context(u32 state)
{
	return state == WL_STATE_SOFTIRQ_TIMER + 1 || state == WL_STATE_SOFTIRQ_HRTIMER + 1 ? WL_CONTEXT_TIMER
											    : WL_CONTEXT_SOFTIRQ;
}

/* enum wl_context of what runs here now. */
static __always_inline u32 context_now(struct trace_cpu *cpu)
{
	return cpu->hardirq   ? hardirq_context(cpu->hardirq)
	       : cpu->softirq ? softirq_context(cpu->softirq)
			      : WL_CONTEXT_TASK;
}

/* Whoever is woken next waited for the arrival of this request. */
static __always_inline void request_arrives(u64 sid)
{
	struct trace_cpu *cpu = cfg_knobs.trace ? this_trace_cpu() : NULL;

	if (!cpu)
		return;
	cpu->arrived_sid = sid;
	cpu->arrived_ts = bpf_ktime_get_ns();
}

/* The CPU turns to another task, so no interrupt is under way, whatever ends the kernel has left unreported. */
static __always_inline void context_switches(void)
{
	struct trace_cpu *cpu = this_trace_cpu();

	if (!cpu)
		return;
	cpu->timer.expire_ts = 0;
	cpu->arrived_sid = 0;
	if (cfg_knobs.rt) /* there, a softirq may be switched out */
		return;
	cpu->hardirq = 0;
	cpu->softirq = 0;
	cpu->io.complete_ts = 0;
}

/* An interrupt begins or ends, whatever it is on top of. */
static __always_inline void context_begins(u32 state)
{
	struct trace_cpu *cpu = this_trace_cpu();

	if (!cpu)
		return;
	cpu->io.complete_ts = 0;
	if (bit(state) & SOFTIRQ_STATES)
		cpu->softirq = state + 1;
	else
		cpu->hardirq = state + 1;
}

static __always_inline void context_ends(bool softirq)
{
	struct trace_cpu *cpu = this_trace_cpu();

	if (!cpu)
		return;
	cpu->io.complete_ts = 0;
	if (softirq)
		cpu->softirq = 0;
	else
		cpu->hardirq = 0;
}

#endif
