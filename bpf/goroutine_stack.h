/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The call paths of waits of goroutines, as stack.bpf.c takes those of threads: a key with each wait, and the stack
 * itself where the key is new, or due for a check.  The runtime keeps the registers of a goroutine that waits, and its
 * code has frame pointers.
 */
#ifndef WHYLATE_BPF_GOROUTINE_STACK_H
#define WHYLATE_BPF_GOROUTINE_STACK_H

#include "delay.h"
#include "goroutine_records.h"
#include "stack_waits.h"

/* So many frames make the key: the innermost ones are the runtime's own. */
#define GO_KEY_FRAMES 16
/* Of struct runtime.g, whose first member is {lo, hi} of its stack. */
#define GO_STACK_HI 8
#define DWARF_RBP   6
/* Shorter waits for no selected interval are in nobody's way for long. */
#define GO_DELAYING_NS 1000000

struct go_registers {
	u64 sp, pc, bp;
};

static __always_inline bool go__read_registers(struct go_registers *regs, const struct go_layout *layout, u64 g)
{
	u64 at = g + layout->sched;

	return layout->sched_sz && !bpf_probe_read_user(regs, 2 * sizeof(u64), (void *)at) &&
	       !bpf_probe_read_user(&regs->bp, sizeof(u64), (void *)(at + layout->sched_sz - sizeof(u64)));
}

/*
 * A function of its own: with its unrolled loop in goroutine__sample(), the x86 JIT compiler of Linux 6.18 finds no
 * lengths of jumps there that stay the same from pass to pass, and refuses the program ("bpf_jit: fatal error").
 */
VERIFIED_ONCE u64 go__key(const struct go_registers *regs)
{
	u64 frame[2], bp = regs ? regs->bp : 0, key;

	if (!regs)
		return 0;
	key = mix(image_of(bpf_get_current_task_btf()) + regs->pc);
	for (int i = 0; i < GO_KEY_FRAMES; i++) {
		if (!bp || bpf_probe_read_user(frame, sizeof(frame), (void *)bp))
			break;
		key = mix(key + frame[1]);
		if (frame[0] <= bp)
			break;
		bp = frame[0];
	}
	return key;
}

static __always_inline bool goroutine__is_off(const struct goroutine *goroutine)
{
	return goroutine->state == GOROUTINE_WAITS || goroutine->state == GOROUTINE_READY;
}

static __always_inline u64 goroutine__wait_ts(const struct goroutine *goroutine)
{
	return goroutine->since_ts - (goroutine->state == GOROUTINE_READY ? goroutine->waited_ns : 0);
}

/*
 * A wait for no selected interval matters if one goes on nowhere, which it may delay.  A goroutine that waits for a
 * request delays none.
 */
static __always_inline u32 goroutine__delays(const struct goroutine *goroutine, u64 now)
{
	if (goroutine->recording || goroutine->wait == WL_GO_WAIT_IO || goroutine->wait == WL_GO_WAIT_START ||
	    now < goroutine__wait_ts(goroutine) + GO_DELAYING_NS)
		return 0;
	return hidden_cnt();
}

/* open: of its selected interval, NULL: it has none.  Was it sent? */
static __always_inline bool goroutine__send_stack(struct stack_cpu *scratch, const struct goroutine *goroutine,
						  const struct open_interval *open, const struct go_registers *regs,
						  u64 hi)
{
	struct wl_stack_record *record = (struct wl_stack_record *)scratch->record;
	u64 sz = stack_controls.max_sz, got;

	record->ts = goroutine__wait_ts(goroutine);
	record->sid = open ? goroutine->current_sid : 0;
	record->period_ns = 0;
	record->key = goroutine->stack_key;
	record->context = open ? open->context : 0;
	record->pid = goroutine->pid;
	record->tid = goroutine->tid;
	record->rate = open ? open->rate : controls.selection;
	record->delays = 0;
	record->state = wait_state(goroutine->wait);
	record->flags = WL_STACK_WAITS;
	record->kernel_cnt = 0;
	record->exe_ino = record->exe_start = record->mmap_base = 0;
	for (int i = 0; i < WL_STACK_REGS; i++)
		record->regs[i] = 0;
	record->regs[DWARF_RBP] = regs->bp;
	record->regs[WL_STACK_REG_SP] = regs->sp;
	record->regs[WL_STACK_REG_PC] = regs->pc;
	if (sz > WL_STACK_SZ_MAX)
		sz = WL_STACK_SZ_MAX;
	if (hi - regs->sp < sz)
		sz = hi - regs->sp;
	got = copy_stack(scratch, regs->sp, sz);
	if (got < sz)
		record->flags |= WL_STACK_CUT;
	record->stack_sz = got;
	barrier_var(got);
	return got <= WL_STACK_SZ_MAX &&
	       stack__output(&record->header, WL_RECORD_STACK, sizeof(*record) + got, false, WL_LOSS_STACK);
}

static __always_inline struct goroutine *goroutine__known(u32 pid, u64 g)
{
	struct goroutine_key key = {.g = g, .pid = pid};

	return bpf_map_lookup_elem(&goroutines, &key);
}

/*
 * The goroutine has just left the thread, to wait; or, where it has no selected interval, its wait is over and a thread
 * is about to run it: its registers are still kept, and how long it has waited is known.
 */
VERIFIED_ONCE int goroutine__sample(struct thread *thread, u64 g)
{
	struct known_stack fresh = {.hits = 1, .check_at = CHECK_FIRST}, *known;
	struct stack_cpu *scratch = this_scratch(SCRATCH_HANDOFF);
	struct goroutine *goroutine = thread ? goroutine__known(thread->pid, g) : NULL;
	struct go_layout *layout = thread ? go_layout_of(thread->pid) : NULL;
	struct open_interval *open;
	struct go_registers regs;
	u64 hi = 0, key;

	/* Before 6.8 it is verified where nothing calls it, too, and without stacks there is no map of them. */
	if (!cfg_knobs.stacks)
		return 0;
	if (!goroutine || !layout || !scratch || !stack_controls.gap_ns || !goroutine__is_off(goroutine))
		return 0;
	open = goroutine__open(goroutine);
	if (open ? open->paused : !goroutine__delays(goroutine, bpf_ktime_get_ns()))
		return 0;
	/* The runtime clears the stack pointer of one that it runs. */
	if (!go__read_registers(&regs, layout, g) || !regs.sp)
		return 0;
	key = go__key(&regs) ^ wait_state(goroutine->wait);
	goroutine->stack_key = key;
	known = bpf_map_lookup_elem(&known_stacks, &key);
	if (known && !is_copied(known))
		return 0;
	bpf_probe_read_user(&hi, sizeof(hi), (void *)(g + GO_STACK_HI));
	/* An interrupt, or another task in the middle of this, has it: the next such wait is copied. */
	if (hi <= regs.sp || __sync_val_compare_and_swap(&scratch->busy, 0, 1))
		return 0;
	if (take_copy(scratch, bpf_ktime_get_ns()) && goroutine__send_stack(scratch, goroutine, open, &regs, hi) &&
	    !known)
		bpf_map_update_elem(&known_stacks, &key, &fresh, BPF_ANY);
	*(volatile u32 *)&scratch->busy = 0;
	return 0;
}

/* A thread is about to run the goroutine: how long it has waited, and where. */
VERIFIED_ONCE int goroutine__tell_stack(struct goroutine *goroutine)
{
	u64 now = bpf_ktime_get_ns(), floor_ns = stack_controls.floor_ns, length_ns;
	struct wl_stack_wait_record record = {};
	struct open_interval *open;

	if (!goroutine)
		return 0;
	record.key = goroutine->stack_key;
	goroutine->stack_key = 0;
	if (!record.key || now <= goroutine->since_ts)
		return 0;
	open = goroutine__open(goroutine);
	if (!open) {
		record.delays = goroutine__delays(goroutine, now);
		if (!record.delays)
			return 0;
	}
	record.ts = goroutine->since_ts;
	record.blocked_ns = now - goroutine->since_ts;
	if (goroutine->state == GOROUTINE_READY) {
		record.runq_ns = record.blocked_ns;
		record.blocked_ns = goroutine->waited_ns;
		record.ts -= goroutine->waited_ns;
	}
	length_ns = record.blocked_ns + record.runq_ns;
	if (length_ns < floor_ns) {
		record.chance = (length_ns << 32) / floor_ns;
		if (!record.chance || bpf_get_prandom_u32() >= record.chance)
			return 0;
	}
	record.sid = open ? goroutine->current_sid : 0;
	record.context = open ? open->context : 0;
	record.rate = open ? open->rate : controls.selection;
	record.object = WL_GO_WAIT | goroutine->wait;
	record.pid = goroutine->pid;
	record.tid = goroutine->tid;
	record.state = wait_state(goroutine->wait);
	record.sysno = -1;
	record.begin_cpu = bpf_get_smp_processor_id();
	stack__output(&record.header, WL_RECORD_STACK_WAIT, sizeof(record), false, WL_LOSS_STACK);
	return 0;
}

#endif
