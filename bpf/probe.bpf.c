// SPDX-License-Identifier: GPL-2.0-only
/*
 * Intervals that are calls of a function: the entry begins one, the return ends it.  Frames are told apart by the stack
 * pointer, so that recursion counts once and a frame that was unwound past is noticed at the next entry.
 */
#include "interval.h"

/* x86 pops the return address on its way out; arm64 keeps it in a register. */
#if defined(__TARGET_ARCH_x86)
#define FRAME_POP 8
#else
#define FRAME_POP 0
#endif

static __always_inline int function_entered(struct pt_regs *ctx)
{
	struct cpu_context *cpu = this_cpu();
	struct pickup pickup = {};
	u64 sp = PT_REGS_SP(ctx);
	struct thread *thread;

	if (!cpu)
		return 0;
	thread = current_thread(cpu);
	if (!thread)
		return 0;
	if (thread->function_sp) {
		if (sp < thread->function_sp)
			return 0;
		interval__abandon(thread, thread->function_sid);
	}
	pickup.sid = sid__next(cpu);
	pickup.selected = sid__selected(pickup.sid, &pickup.rate);
	pickup.type = WL_SOURCE_FUNCTION << 16 | (bpf_get_attach_cookie(ctx) & 0xffff);
	thread->function_sp = sp;
	thread->function_sid = pickup.sid;
	thread->function_recorded = interval__pick_up(thread, &pickup);
	return 0;
}

static __always_inline int function_returned(struct pt_regs *ctx)
{
	struct cpu_context *cpu = this_cpu();
	struct thread *thread = cpu ? current_thread(cpu) : NULL;

	/* The return address has been popped: the outermost frame's stack pointer is above that of its entry. */
	if (!thread || !thread->function_sp || PT_REGS_SP(ctx) < thread->function_sp + FRAME_POP)
		return 0;
	thread->function_sp = 0;
	interval__finish(thread, thread->function_sid, thread->segment_type, thread->function_recorded);
	return 0;
}

SEC("uprobe.multi")
int BPF_KPROBE(on_function_entry_multi)
{
	return function_entered(ctx);
}

SEC("uretprobe.multi")
int BPF_KPROBE(on_function_return_multi)
{
	return function_returned(ctx);
}

SEC("uprobe")
int BPF_KPROBE(on_function_entry)
{
	return function_entered(ctx);
}

SEC("uretprobe")
int BPF_KPROBE(on_function_return)
{
	return function_returned(ctx);
}
