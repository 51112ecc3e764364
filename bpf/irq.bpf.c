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

#define VECTOR(name, state)                     \
	SEC("tp_btf/" #name "_entry")           \
	int BPF_PROG(on_##name##_entry)         \
	{                                       \
		return interrupt_begins(state); \
	}                                       \
	SEC("tp_btf/" #name "_exit")            \
	int BPF_PROG(on_##name##_exit)          \
	{                                       \
		return interrupt_ends(false);   \
	}

#if defined(__TARGET_ARCH_x86)
VECTOR(local_timer, WL_STATE_IRQ_TIMER)
VECTOR(reschedule, WL_STATE_IRQ_IPI)
VECTOR(call_function, WL_STATE_IRQ_IPI)
VECTOR(call_function_single, WL_STATE_IRQ_IPI)
VECTOR(irq_work, WL_STATE_IRQ_VECTOR)
VECTOR(x86_platform_ipi, WL_STATE_IRQ_VECTOR)
VECTOR(error_apic, WL_STATE_IRQ_VECTOR)
VECTOR(spurious_apic, WL_STATE_IRQ_VECTOR)
VECTOR(thermal_apic, WL_STATE_IRQ_VECTOR)
VECTOR(threshold_apic, WL_STATE_IRQ_VECTOR)
VECTOR(deferred_error_apic, WL_STATE_IRQ_VECTOR)
#elif defined(__TARGET_ARCH_arm64)
/* The timer and devices are both irq_handler_* here; inter-processor interrupts have a tracepoint of their own. */
VECTOR(ipi, WL_STATE_IRQ_IPI)
#endif
