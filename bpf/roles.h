/* SPDX-License-Identifier: GPL-2.0-only */
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

/* An interval begins: the outermost call of a function (frame), or what a key stands for. */
static __noinline int interval_begins(struct thread *thread, struct probe_spec *spec, u64 key, u64 frame)
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

/* The role of the spec happens now; `values`: its operands as they were at the entry, NULL: now is the entry. */
static __noinline int role__happens(struct pt_regs *ctx, struct thread *thread, struct probe_spec *spec, u64 *values,
				    u64 frame)
{
	struct cpu_context *cpu = this_cpu();
	u64 value[SPEC_OPERANDS] = {};

	if (!ctx || !thread || !spec || !cpu)
		return 0;
	for (int i = 0; i < SPEC_OPERANDS; i++) {
		struct operand *operand = &spec->operands[i];

		if (!operand->kind)
			continue;
		if (values && !operand->at_exit)
			value[i] = values[i];
		else if (!operand__base(ctx, operand, &value[i]))
			goto unreadable;
		if (!operand__resolve(operand, &value[i]))
			goto unreadable;
	}
	switch (spec->role) {
	case SPEC_INTERVAL:
	case SPEC_BEGIN:
		return interval_begins(thread, spec, value[0], frame);
	case SPEC_END:
		return interval_ends(thread, spec, value[0], frame);
	case SPEC_WORK:
	case SPEC_DEQUEUE:
		return interval_goes_on(thread, spec, value[0]);
	case SPEC_ACQUIRE:
		lock__acquired(thread, value[0]);
		break;
	case SPEC_RELEASE:
		lock__released(thread, value[0]);
		break;
	case SPEC_ENQUEUE:
		task__enqueued(thread, value[0], value[1]);
		break;
	}
	return 0;
unreadable:
	__sync_fetch_and_add(&cpu->unreadable, 1);
	return 0;
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
