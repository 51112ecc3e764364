/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The call paths of waits of goroutines, as stack.bpf.c takes those of threads: a key with each wait, and the stack
 * itself where the key is new, or due for a check.  The runtime keeps the registers of a goroutine that waits, and its
 * code has frame pointers.
 */
#ifndef WHYLATE_BPF_GOROUTINE_STACK_H
#define WHYLATE_BPF_GOROUTINE_STACK_H

#include "goroutine_records.h"
#include "stack_waits.h"

/* So many frames make the key: the innermost ones are the runtime's own. */
#define GO_KEY_FRAMES 16
/* Of struct runtime.g, whose first member is {lo, hi} of its stack. */
#define GO_STACK_HI 8
#define DWARF_RBP   6

struct go_registers {
	u64 sp, pc, bp;
};

static __always_inline bool go__read_registers(struct go_registers *regs, const struct go_layout *layout, u64 g)
{
	u64 at = g + layout->sched;

	return layout->sched_sz && !bpf_probe_read_user(regs, 2 * sizeof(u64), (void *)at) &&
	       !bpf_probe_read_user(&regs->bp, sizeof(u64), (void *)(at + layout->sched_sz - sizeof(u64)));
}

static __always_inline u64 go__key(const struct go_registers *regs)
{
	u64 frame[2], bp = regs->bp, key = mix(image_of(bpf_get_current_task_btf()) + regs->pc);

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

/* Was it sent? */
static __always_inline bool goroutine__send_stack(struct stack_cpu *scratch, const struct goroutine *goroutine,
						  const struct open_interval *open, const struct go_registers *regs,
						  u64 hi)
{
	struct wl_stack_record *record = (struct wl_stack_record *)scratch->record;
	u64 sz = stack_controls.max_sz, got;

	record->ts = goroutine->since_ts;
	record->sid = goroutine->current_sid;
	record->period_ns = 0;
	record->key = goroutine->stack_key;
	record->context = open->context;
	record->pid = goroutine->pid;
	record->tid = goroutine->tid;
	record->rate = open->rate;
	record->delays = 0;
	record->state = wait_state(goroutine->wait);
	record->flags = WL_STACK_WAITS;
	record->kernel_cnt = 0;
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

/* The goroutine has just left the thread, to wait. */
VERIFIED_ONCE int goroutine__sample(struct thread *thread, u64 g)
{
	struct known_stack fresh = {.hits = 1, .check_at = CHECK_FIRST}, *known;
	struct stack_cpu *scratch = this_scratch(SCRATCH_HANDOFF);
	struct goroutine *goroutine = thread ? goroutine__known(thread->pid, g) : NULL;
	struct go_layout *layout = thread ? go_layout_of(thread->pid) : NULL;
	struct open_interval *open;
	struct go_registers regs;
	u64 hi = 0, key;

	if (!goroutine || !layout || !scratch || !stack_controls.gap_ns || goroutine->state != GOROUTINE_WAITS)
		return 0;
	open = goroutine__open(goroutine);
	if (!open || open->paused || !go__read_registers(&regs, layout, g))
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
	if (take_copy(scratch, goroutine->since_ts) && goroutine__send_stack(scratch, goroutine, open, &regs, hi) &&
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
	open = goroutine__open(goroutine);
	if (!open || now <= goroutine->since_ts)
		return 0;
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
	record.sid = goroutine->current_sid;
	record.context = open->context;
	record.rate = open->rate;
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
