// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Probes on functions and markers of the target: one pair of programs for all of them.  The attach cookie names the
 * spec, which says what the probe is for (probe_spec.h), and how far the site's stack pointer is from the frame.
 */
#include "roles.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PROBE_SPECS_MAX);
	__type(key, u32);
	__type(value, struct probe_spec);
} probe_specs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PROBE_SPECS_MAX);
	__type(key, u32);
	__type(value, struct probe_hit_count);
} probe_hits SEC(".maps");

/*
 * From 6.13 on a program of this type has a stack per CPU, since no CPU is thought to run it anew before it is done.
 * That holds for kprobes; a uprobe's may be preempted (on 7.x it is), and the hit of another task then writes into its
 * stack.  Programs that call others stay on the stack of the task: a call that is never made is enough.
 */
static const volatile u32 never;

static __always_inline void stay_on_task_stack(struct pt_regs *ctx)
{
	if (never)
		bpf_tail_call(ctx, NULL, 0);
}

/* While a spec's links are exchanged there are two of them, of which one counts. */
static __always_inline bool probe_counts(const struct probe_spec *spec, u64 cookie)
{
	return !(cookie & PROBE_COOKIE_WIDE) == !(spec->flags & SPEC_WIDE);
}

/* The thread that has come by, NULL: it is not followed.  At rest hits are counted, and only strangers looked for. */
static __always_inline struct thread *probing_thread(u64 cookie, bool rest)
{
	struct cpu_context *cpu = rest ? NULL : this_cpu();

	if (cpu)
		return current_thread(cpu);
	if (!(cookie & PROBE_COOKIE_WIDE))
		return NULL;
	return bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, 0);
}

/* Who is not of the target has no business here, and says so. */
static __always_inline bool probe_meets_stranger(const struct thread *thread, u64 cookie)
{
	if (!(cookie & PROBE_COOKIE_WIDE) || (thread && !thread->outside))
		return false;
	controls.strangers = 1;
	return true;
}

/*
 * Few calls are looked at: those of the target's threads, and of these only what begins in a selected interval, unless
 * the role is more than to time the function.
 */
static __always_inline int probe_entered(struct pt_regs *ctx)
{
	u64 cookie = bpf_get_attach_cookie(ctx), frame;
	u32 idx = PROBE_COOKIE_SPEC(cookie);
	struct probe_hit_count *hits = bpf_map_lookup_elem(&probe_hits, &idx);
	bool rest = at_rest();
	u64 values[SPEC_OPERANDS] = {};
	struct probe_spec *spec;
	struct thread *thread;

	stay_on_task_stack(ctx);
	spec = bpf_map_lookup_elem(&probe_specs, &idx);
	if (!hits || !spec || !probe_counts(spec, cookie))
		return 0;
	thread = probing_thread(cookie, rest);
	if (probe_meets_stranger(thread, cookie))
		return 0;
	__sync_fetch_and_add(&hits->entries, 1);
	if (!thread || rest || spec->flags & SPEC_OFF || (spec->role == SPEC_FUNCTION && !thread->current_recorded))
		return 0;
	frame = PT_REGS_SP(ctx) + PROBE_COOKIE_BIAS(cookie);
	if (spec->role != SPEC_FUNCTION && !(spec->flags & SPEC_AT_EXIT) && role__operands(ctx, spec, values, false))
		role__happens(thread, spec, values, frame);
	if (spec->flags & (SPEC_TIMED | SPEC_ON_STACK))
		role__call(ctx, thread, spec, idx, frame);
	return 0;
}

static __always_inline int probe_left(struct pt_regs *ctx)
{
	u64 cookie = bpf_get_attach_cookie(ctx), frame;
	u32 idx = PROBE_COOKIE_SPEC(cookie);
	struct probe_hit_count *hits = bpf_map_lookup_elem(&probe_hits, &idx);
	bool rest = at_rest();
	u64 values[SPEC_OPERANDS] = {};
	struct probe_spec *spec;
	struct thread *thread;
	bool seen;

	stay_on_task_stack(ctx);
	spec = bpf_map_lookup_elem(&probe_specs, &idx);
	if (!hits || !spec || !probe_counts(spec, cookie))
		return 0;
	thread = probing_thread(cookie, rest);
	if (probe_meets_stranger(thread, cookie))
		return 0;
	__sync_fetch_and_add(&hits->exits, 1);
	if (!thread || rest || (!thread->call_cnt && !thread->function_sp) || spec->flags & SPEC_OFF)
		return 0;
	frame = PT_REGS_SP(ctx) + PROBE_COOKIE_BIAS(cookie);
	seen = call__leave(thread, idx, frame, values);
	if (spec->role == SPEC_INTERVAL)
		interval_ends(thread, spec, 0, frame);
	else if (seen && spec->flags & SPEC_AT_EXIT && role__operands(ctx, spec, values, true))
		role__happens(thread, spec, values, frame);
	return 0;
}

SEC("uprobe.multi")
int BPF_KPROBE(on_probe_entry_multi)
{
	return probe_entered(ctx);
}

SEC("uprobe.multi")
int BPF_KPROBE(on_probe_exit_multi)
{
	return probe_left(ctx);
}

SEC("uprobe")
int BPF_KPROBE(on_probe_entry)
{
	return probe_entered(ctx);
}

SEC("uprobe")
int BPF_KPROBE(on_probe_exit)
{
	return probe_left(ctx);
}
