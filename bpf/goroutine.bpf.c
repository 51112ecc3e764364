// SPDX-License-Identifier: GPL-2.0-or-later
/* The places in the Go runtime's scheduler that are probed: the attach cookie says which one. */
#include "goroutine.h"

/* See probe.bpf.c: a program that could call another one stays on the stack of its task. */
static const volatile u32 never;

static __always_inline int scheduled(struct pt_regs *ctx)
{
	struct cpu_context *cpu = at_rest() ? NULL : this_cpu();
	struct thread *thread;

	if (never)
		bpf_tail_call(ctx, NULL, 0);
	thread = cpu ? current_thread(cpu) : NULL;
	if (!thread || !has_goroutines(thread))
		return 0;
#if defined(__TARGET_ARCH_x86)
	switch (bpf_get_attach_cookie(ctx)) {
	case GO_SITE_EXECUTE:
		thread__run_goroutine(thread, ctx->ax);
		break;
	case GO_SITE_PARK:
		goroutine__parks(thread, ctx->ax);
		break;
	case GO_SITE_READY:
		return goroutine__is_ready(thread, ctx->bx);
	}
#endif
	return 0;
}

SEC("uprobe.multi")
int BPF_KPROBE(on_goroutine_multi)
{
	return scheduled(ctx);
}

SEC("uprobe")
int BPF_KPROBE(on_goroutine)
{
	return scheduled(ctx);
}
