/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What probes are for, DESIGN §7: the roles of a symbol list. */
#ifndef WHYLATE_BPF_ROLES_H
#define WHYLATE_BPF_ROLES_H

#include "call_stack.h"
#include "interval.h"
#include "lock.h"
#include "operand.h"
#include "work.h"

/*
 * The outermost call of a function whose calls are intervals begins one; recursion counts once.  False: it is an inner
 * one.
 */
static __always_inline bool outermost_begins(struct thread *thread, u64 frame)
{
	if (thread->function_sp) {
		if (frame < thread->function_sp)
			return false;
		interval__abandon(thread, thread->function_sid);
	}
	thread->function_sp = frame;
	return true;
}

/* An interval has no type where its expression cannot be read. */
#define TYPE_UNREADABLE (1ULL << 63)

/* An interval begins: the outermost call of a function (frame), or what a key stands for. */
static __noinline int interval_begins(struct thread *thread, struct probe_spec *spec, u64 key, u64 type, u64 frame)
{
	struct cpu_context *cpu = this_cpu();
	struct pickup pickup = {};
	bool recorded;

	if (!thread || !spec || !cpu)
		return 0;
	if (spec->role == SPEC_INTERVAL && !outermost_begins(thread, frame))
		return 0;
	pickup.sid = sid__next(cpu);
	pickup.selected = sid__selected(pickup.sid, &pickup.rate);
	pickup.type = WL_SOURCE_FUNCTION << 16 | (spec->line & 0xffff);
	if (spec->operands[1].kind && type != TYPE_UNREADABLE) {
		pickup.type_value = type;
		pickup.type_kind = spec->operands[1].is_string ? WL_FIRST_STRING : WL_FIRST_NUMBER;
	}
	recorded = interval__pick_up(thread, &pickup);
	if (spec->role == SPEC_INTERVAL) {
		thread->function_sid = pickup.sid;
		thread->function_recorded = recorded;
		thread->function_type = pickup.type;
	} else {
		keyed__begin(thread, cpu, key, &pickup, recorded);
	}
	return 0;
}

/* The interval of that call or key ends. */
static __noinline int interval_ends(struct thread *thread, struct probe_spec *spec, u64 key, u64 frame)
{
	struct keyed_interval ended = {};

	if (!thread || !spec)
		return 0;
	if (spec->role == SPEC_INTERVAL) {
		/* An inner call's frame lies below that of the outermost one. */
		if (!thread->function_sp || frame < thread->function_sp)
			return 0;
		thread->function_sp = 0;
		ended.sid = thread->function_sid;
		ended.recorded = thread->function_recorded;
		ended.type = thread->function_type;
	} else if (!keyed__take(thread, key, &ended)) {
		return 0;
	}
	interval__finish(thread, ended.sid, ended.type, ended.recorded);
	return 0;
}

/* The thread goes on with the interval of a key or of a task. */
static __noinline int interval_goes_on(struct thread *thread, struct probe_spec *spec, u64 addr)
{
	struct keyed_interval next = {};

	if (!thread || !spec)
		return 0;
	if (spec->role == SPEC_WORK)
		keyed__find(thread, addr, &next);
	else if (!task__dequeued(thread, addr, &next))
		return 0;
	interval__work_for(thread, next.sid, next.type, next.recorded);
	return 0;
}

/*
 * The operands of a role that happens now, in place of `values`: what they were at the entry, if this is the exit.
 * False: one of them cannot be read.
 */
static __noinline bool role__operands(struct pt_regs *ctx, struct probe_spec *spec, u64 *values, bool is_exit)
{
	struct cpu_context *cpu = this_cpu();

	if (!ctx || !spec || !values || !cpu)
		return false;
	for (int i = 0; i < SPEC_OPERANDS; i++) {
		struct operand *operand = &spec->operands[i];

		if (!operand->kind)
			continue;
		if ((is_exit && !operand->at_exit) || operand__base(ctx, operand, &values[i])) {
			if (operand__resolve(operand, &values[i]))
				continue;
		}
		__sync_fetch_and_add(&cpu->unreadable, 1);
		if (!i || (spec->role != SPEC_INTERVAL && spec->role != SPEC_BEGIN))
			return false;
		values[i] = TYPE_UNREADABLE;
	}
	return true;
}

/* Roles that leave the interval where it is. */
static __noinline int role__notes(struct thread *thread, struct probe_spec *spec, const u64 *values)
{
	if (!thread || !spec || !values)
		return 0;
	if (spec->role == SPEC_ACQUIRE)
		lock__acquired(thread, values[0]);
	else if (spec->role == SPEC_RELEASE)
		lock__released(thread, values[0]);
	else if (spec->role == SPEC_ENQUEUE)
		task__enqueued(thread, values[0], values[1]);
	else if (spec->role == SPEC_WATCH)
		queue__watch(thread, spec->func, values[0], values[1]);
	return 0;
}

/* The role of the spec happens now.  Part of the program itself, to save a level of its 512 bytes of stack. */
static __always_inline void role__happens(struct thread *thread, struct probe_spec *spec, const u64 *values, u64 frame)
{
	switch (spec->role) {
	case SPEC_INTERVAL:
	case SPEC_BEGIN:
		interval_begins(thread, spec, values[0], values[1], frame);
		break;
	case SPEC_END:
		interval_ends(thread, spec, values[0], frame);
		break;
	case SPEC_WORK:
	case SPEC_DEQUEUE:
		interval_goes_on(thread, spec, values[0]);
		break;
	default:
		role__notes(thread, spec, values);
	}
}

/* The call wants the lock: until it returns, what the thread waits for is that. */
static __always_inline void lock__acquiring(struct thread *thread, struct probe_spec *spec, struct call *call)
{
	u64 object = call->values[0];

	if (!operand__resolve(&spec->operands[0], &object))
		return;
	call->object = object;
	if (thread->acquire_object && call->frame < thread->acquire_frame)
		return;
	thread->acquire_frame = call->frame;
	thread->acquire_object = object;
}

/* A call begins that is timed, or whose end matters. */
static __noinline int role__call(struct pt_regs *ctx, struct thread *thread, struct probe_spec *spec, u32 idx,
				 u64 frame)
{
	struct call *call;
	u64 sid = 0;

	if (!ctx || !thread || !spec)
		return 0;
	if (spec->flags & SPEC_TIMED)
		sid = invocation_sid(thread);
	if (!sid && !(spec->flags & SPEC_ON_STACK))
		return 0;
	thread__end_stale_fault(thread);
	thread__in_no_interrupt(thread);
	call = call__enter(thread, spec, idx, frame, sid);
	if (!call)
		return 0;
	for (int i = 0; i < SPEC_OPERANDS; i++) {
		u64 value = 0;

		if (spec->operands[i].kind && !spec->operands[i].at_exit)
			operand__base(ctx, &spec->operands[i], &value);
		call->values[i] = value;
	}
	if (spec->role == SPEC_ACQUIRE)
		lock__acquiring(thread, spec, call);
	return 0;
}

#endif
