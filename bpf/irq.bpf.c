// SPDX-License-Identifier: GPL-2.0-or-later
/* Interrupts on top of followed threads: devices, softirqs, the local timer, other CPUs, the rest of the vectors. */
#include "oncpu.h"
#include "thread.h"

/*
 * An interrupt matters only on top of a followed thread, and only while an interval is recorded there or a selected one
 * waits to be picked up by nobody knows whom.  Most of the time neither is so, and the CPU's own context says so.
 */
static __always_inline int interrupt_begins(u32 state)
{
	struct cpu_context *cpu = at_rest() ? NULL : this_cpu();
	struct thread *thread;

	if (!cpu)
		return 0;
	if (cfg_knobs.trace)
		context_begins(state);
	if (!cpu->followed)
		return 0;
	thread = current_thread(cpu);
	if (!thread || !(thread__is_watched(thread) || cpu->nested))
		return 0;
	cpu->nested++;
	nest__push(thread, state);
	return 0;
}

static __always_inline int interrupt_ends(bool softirq)
{
	struct cpu_context *cpu = at_rest() ? NULL : this_cpu();
	struct thread *thread;

	if (!cpu)
		return 0;
	if (cfg_knobs.trace)
		context_ends(softirq);
	if (!cpu->nested)
		return 0;
	thread = current_thread(cpu);
	if (!thread)
		return 0;
	cpu->nested--;
	nest__pop(thread);
	return 0;
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(on_irq_entry)
{
	return interrupt_begins(WL_STATE_IRQ_HARD);
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(on_irq_exit)
{
	return interrupt_ends(false);
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(on_softirq_entry, unsigned int vector)
{
	if (vector > WL_STATE_SOFTIRQ_RCU - WL_STATE_SOFTIRQ_HI)
		vector = 0;
	return interrupt_begins(WL_STATE_SOFTIRQ_HI + vector);
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(on_softirq_exit)
{
	return interrupt_ends(true);
}

/*
 * One pair for all vectors of a state, as raw tracepoints: a program with types is of one tracepoint, and the verifier
 * would look at each of twenty.
 */
#define VECTORS(name, state)                    \
	SEC("raw_tp")                           \
	int on_##name##_entry(void *ctx)        \
	{                                       \
		return interrupt_begins(state); \
	}                                       \
	SEC("raw_tp")                           \
	int on_##name##_exit(void *ctx)         \
	{                                       \
		return interrupt_ends(false);   \
	}

#if defined(__TARGET_ARCH_x86)
VECTORS(timer, WL_STATE_IRQ_TIMER)
VECTORS(vector, WL_STATE_IRQ_VECTOR)
#endif
/* On arm64 the timer and devices are both irq_handler_*; inter-processor interrupts have a tracepoint of their own. */
VECTORS(ipi, WL_STATE_IRQ_IPI)
