/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls of probed functions that begin and return: which are over, which encloses which, where they return to. */
#ifndef WHYLATE_BPF_CALL_STACK_H
#define WHYLATE_BPF_CALL_STACK_H

#include "call.h"
#include "opens.h"
#include "uretprobe.h"

struct vm_area_struct;

struct vm_area_struct___range {
	unsigned long vm_start, vm_end;
} __attribute__((preserve_access_index));

struct mapping_range {
	u64 begin, end;
};

static long note_mapping(struct task_struct *task, struct vm_area_struct *vma, struct mapping_range *range)
{
	struct vm_area_struct___range *mapping = (void *)vma;

	range->begin = mapping->vm_start;
	range->end = mapping->vm_end;
	return 0;
}

/*
 * Makes the stack of that frame the one that was last seen; false where it cannot be told (somebody else changes the
 * process's mappings at this moment): then it is taken for the one before.
 */
static __always_inline bool calls__on_stack(struct calls *calls, u64 frame)
{
	struct mapping_range range = {};

	if (frame >= calls->stack_begin && frame < calls->stack_end)
		return true;
	if (bpf_find_vma(bpf_get_current_task_btf(), frame, note_mapping, &range, 0))
		return false;
	calls->stack_begin = range.begin;
	calls->stack_end = range.end;
	return true;
}

/* Where the call at this frame returns to: what lies there, or what a uretprobe has put away.  0: cannot be told. */
static __noinline u64 return_address(u64 frame, u32 *hijacked)
{
	struct return_instance___address *instance;
	u64 addr = 0;

	if (!hijacked || bpf_probe_read_user(&addr, sizeof(addr), (void *)frame))
		return 0;
	if (!addr || addr != trampoline_addr())
		return addr;
	*hijacked = 1;
	instance = return_instances();
	for (int i = 0; i < 4 && instance; i++) {
		if (BPF_CORE_READ(instance, stack) == frame)
			return BPF_CORE_READ(instance, orig_ret_vaddr);
		instance = BPF_CORE_READ(instance, next);
	}
	return 0;
}

/*
 * Is the call on the stack on which a frame has been met now?  Programs that switch stacks may have several in one
 * mapping; calls that lie far apart are taken for such.
 */
static __always_inline bool call__on_stack(struct call *call, u64 stack, u64 frame)
{
	u64 apart = call->frame > frame ? call->frame - frame : frame - call->frame;

	return call->stack == stack && (!controls.stack_reach || apart <= controls.stack_reach);
}

/* The call will never return. */
static __always_inline void call__abandon(struct call_walk *walk, struct call *call)
{
	if (call->sid)
		call__send(call, walk->thread, &walk->calls->search.now, WL_INVOCATION_ABANDONED);
	if (call->frame == walk->thread->acquire_frame)
		walk->thread->acquire_object = 0;
	call->sid = 0;
	call->spec = CALL_GONE;
}

/*
 * From the innermost call outwards: what is over, and which one returns.  A callback of bpf_loop(), because the
 * verifier would walk every path through an open loop.  1 ends the search.
 */
static long search_call(u32 back, struct call_walk *walk)
{
	struct call_search *search = &walk->calls->search;
	u32 place = search->cnt - 1 - back;
	struct call *call = calls__at(walk->calls, place);
	bool over = call->frame < search->frame;

	if (call->spec != CALL_GONE) {
		if (!call__on_stack(call, search->stack, search->frame)) {
			call->flags |= WL_INVOCATION_TORN;
			return 0;
		}
		if (call->frame > search->frame)
			return 1;
		if (!over && search->returns) {
			/* Another role of the same call, or who has jumped here at its end, returns by itself. */
			if (call->spec != search->spec)
				return 0;
			search->found = place;
			return 1;
		}
		/* Another role of this very call; or it has jumped here, and both return together. */
		if (!over && ((call->spec != search->spec && call->func == search->func) ||
			      (search->hijacked && call->uretprobe)))
			return 0;
		call__abandon(walk, call);
	}
	if (place + 1 == search->left)
		search->left = place;
	return 0;
}

/* What is over at or below search.frame leaves.  Place of the call that returns there, or CALL_NONE. */
static __always_inline u32 calls__settle(struct call_walk *walk)
{
	struct call_search *search = &walk->calls->search;

	search->stack = walk->calls->stack_end;
	search->left = walk->calls->cnt;
	search->found = CALL_NONE;
	split__take(&search->now, walk->thread);
	calls__walk(walk, search_call);
	calls__set_cnt(walk->calls, walk->thread, search->left);
	return search->found;
}

/* The interval that a call which begins now on the thread is an invocation of, 0: none. */
static __always_inline u64 invocation_sid(struct thread *thread)
{
	u64 sid = thread->current_sid;
	struct open_interval *open;

	if (!thread->current_recorded || !sid)
		return 0;
	/* It may have ended, or been taken over, on another thread. */
	open = open_find(sid);
	return open && open->tid == thread->tid ? sid : 0;
}

static __always_inline void count_deep(struct calls *calls, struct call *top, u32 cnt)
{
	struct cpu_context *cpu = this_cpu();
	struct call *enclosing;

	if (cpu)
		__sync_fetch_and_add(&cpu->loss[WL_LOSS_DEPTH].lost, 1);
	if (top->sid) {
		top->flags |= WL_INVOCATION_DEEP;
	} else if (top->enclosing != CALL_NONE) {
		enclosing = calls__at(calls, top->enclosing);
		enclosing->flags |= WL_INVOCATION_DEEP;
	}
}

/* The innermost invocation of the interval that encloses what is called now, or NULL. */
static __always_inline struct call *parent_of(struct calls *calls, u32 cnt, u64 sid, u32 *place)
{
	struct call *top, *enclosing;

	*place = CALL_NONE;
	if (!cnt)
		return NULL;
	top = calls__at(calls, cnt - 1);
	*place = top->sid ? cnt - 1 : top->enclosing;
	if (*place == CALL_NONE)
		return NULL;
	enclosing = calls__at(calls, *place);
	return enclosing->sid == sid ? enclosing : NULL;
}

/* The call begins as an invocation of the interval. */
static __always_inline void call__time(struct call *call, struct thread *thread, struct calls *calls,
				       struct call *parent, u64 sid)
{
	struct split *now = &calls->search.now;

	call->seq = ++calls->seq;
	if (parent && !call__on_stack(parent, call->stack, call->frame)) {
		call->flags |= WL_INVOCATION_LOST_PARENT;
		parent = NULL;
	}
	call->parent_seq = parent ? parent->seq : WL_SEQ_NONE;
	call->parent_func = parent ? parent->func : WL_FUNC_NONE;
	call->depth = parent ? parent->depth + 1 : 0;
	if (!split__take(now, thread))
		call->flags |= WL_INVOCATION_TORN;
	call->begin_ts = now->ts;
	for (int i = 0; i < WL_SPLIT_CNT; i++)
		call->length_ns[i] = now->length_ns[i];
	call->sid = sid;
}

/* The thread's open calls, which are made room for if need be; NULL: none, or no memory. */
static __always_inline struct calls *calls_of_current(bool create)
{
	struct calls *calls = bpf_task_storage_get(&call_stacks, bpf_get_current_task_btf(), 0,
						   create ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
	struct cpu_context *cpu;

	if (calls || !create)
		return calls;
	cpu = this_cpu();
	if (cpu)
		count_loss(cpu, WL_LOSS_NO_CONTEXT);
	return NULL;
}

/*
 * A call of the spec's function begins at the frame, as an invocation of the interval if sid is not 0.  NULL: it is too
 * deep, or there is no memory.  thread->call_cnt holds from then on.
 */
static __noinline struct call *call__enter(struct thread *thread, struct probe_spec *spec, u32 spec_idx, u64 frame,
					   u64 sid)
{
	struct call_walk walk = {.thread = thread};
	struct call *call, *top = NULL, *parent;
	struct call_search *search;
	u64 call_addr = 0;
	u32 cnt, enclosing;
	bool known;

	if (!thread || !spec)
		return NULL;
	walk.calls = calls_of_current(true);
	if (!walk.calls)
		return NULL;
	search = &walk.calls->search;
	search->hijacked = 0;
	/* It has been forgotten what was open. */
	if (!thread->call_cnt)
		walk.calls->cnt = 0;
	known = calls__on_stack(walk.calls, frame);
	cnt = walk.calls->cnt;
	if (cnt)
		top = calls__at(walk.calls, cnt - 1);
	if ((sid && spec->flags & SPEC_CALL_ADDR) || (top && top->frame == frame))
		call_addr = return_address(frame, &search->hijacked);
	if (top &&
	    (top->spec == CALL_GONE || top->frame <= frame || !call__on_stack(top, walk.calls->stack_end, frame))) {
		search->frame = frame;
		search->spec = spec_idx;
		search->func = spec->func;
		search->returns = 0;
		calls__settle(&walk);
		cnt = walk.calls->cnt;
		if (cnt)
			top = calls__at(walk.calls, cnt - 1);
	}
	if (cnt >= CALLS_MAX && top) {
		count_deep(walk.calls, top, cnt);
		return NULL;
	}
	parent = parent_of(walk.calls, cnt, sid, &enclosing);
	call = calls__at(walk.calls, cnt);
	call->frame = frame;
	call->stack = walk.calls->stack_end;
	call->sid = 0;
	call->call_addr = spec->flags & SPEC_CALL_ADDR ? call_addr : 0;
	call->object = 0;
	call->values[0] = call->values[1] = 0;
	call->spec = spec_idx;
	call->func = spec->func;
	call->flags = known ? 0 : WL_INVOCATION_TORN;
	call->enclosing = enclosing;
	call->uretprobe = !!(spec->flags & SPEC_URETPROBE);
	if (sid)
		call__time(call, thread, walk.calls, parent, sid);
	calls__set_cnt(walk.calls, thread, cnt + 1);
	return call;
}

/* The call of that spec at the frame returns, with these values of its entry.  False: it did not begin in sight. */
static __noinline bool call__leave(struct thread *thread, u32 spec_idx, u64 frame, u64 *values)
{
	struct call_walk walk = {.thread = thread};
	struct call_search *search;
	struct call *call;
	u32 place;

	if (!thread || !values || !thread->call_cnt)
		return false;
	walk.calls = calls_of_current(false);
	if (!walk.calls || !walk.calls->cnt)
		return false;
	search = &walk.calls->search;
	calls__on_stack(walk.calls, frame);
	place = walk.calls->cnt - 1;
	call = calls__at(walk.calls, place);
	if (call->spec != spec_idx || call->frame != frame || call->stack != walk.calls->stack_end) {
		search->frame = frame;
		search->spec = spec_idx;
		search->returns = 1;
		place = calls__settle(&walk);
		if (place == CALL_NONE)
			return false;
		call = calls__at(walk.calls, place);
	}
	if (call->sid) {
		u32 flags = split__take(&search->now, thread) ? 0 : WL_INVOCATION_TORN;

		call__send(call, thread, &search->now, flags);
	}
	for (int i = 0; i < SPEC_OPERANDS; i++)
		values[i] = call->values[i];
	if (call->frame == thread->acquire_frame)
		thread->acquire_object = 0;
	call->sid = 0;
	call->spec = CALL_GONE;
	if (place + 1 == walk.calls->cnt)
		calls__set_cnt(walk.calls, thread, place);
	return true;
}

#endif
