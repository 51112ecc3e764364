/* SPDX-License-Identifier: GPL-2.0-only */
/* What probes are for, DESIGN §7: the roles of a symbol list. */
#ifndef WHYLATE_BPF_ROLES_H
#define WHYLATE_BPF_ROLES_H

#include "call_stack.h"
#include "interval.h"
#include "lock.h"
#include "operand.h"
#include "work.h"

static __always_inline void begin_keyed(struct thread *thread, struct cpu_context *cpu, struct probe_spec *spec,
					u64 key)
{
	struct pickup pickup = {};

	pickup.sid = sid__next(cpu);
	pickup.selected = sid__selected(pickup.sid, &pickup.rate);
	pickup.type = WL_SOURCE_FUNCTION << 16 | (spec->line & 0xffff);
	keyed__begin(thread, cpu, key, &pickup, interval__pick_up(thread, &pickup));
}

/* The role of the spec happens now; `values`: its operands as they were at the entry, NULL: now is the entry. */
static __noinline int role__happens(struct pt_regs *ctx, struct thread *thread, struct probe_spec *spec, u64 *values)
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
	case SPEC_BEGIN:
		begin_keyed(thread, cpu, spec, value[0]);
		break;
	case SPEC_END:
		keyed__end(thread, cpu, value[0]);
		break;
	case SPEC_WORK:
		keyed__work(thread, value[0]);
		break;
	case SPEC_ACQUIRE:
		lock__acquired(thread, value[0]);
		break;
	case SPEC_RELEASE:
		lock__released(thread, value[0]);
		break;
	case SPEC_ENQUEUE:
		task__enqueued(thread, value[0], value[1]);
		break;
	case SPEC_DEQUEUE:
		task__dequeued(thread, value[0]);
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

/* Calls of a function that are intervals themselves: the outermost one is, recursion counts once. */
static __always_inline void interval_called(struct thread *thread, struct cpu_context *cpu, struct probe_spec *spec,
					    u64 frame)
{
	struct pickup pickup = {};

	if (thread->function_sp) {
		if (frame < thread->function_sp)
			return;
		interval__abandon(thread, thread->function_sid);
	}
	pickup.sid = sid__next(cpu);
	pickup.selected = sid__selected(pickup.sid, &pickup.rate);
	pickup.type = WL_SOURCE_FUNCTION << 16 | (spec->line & 0xffff);
	thread->function_sp = frame;
	thread->function_sid = pickup.sid;
	thread->function_recorded = interval__pick_up(thread, &pickup);
}

static __always_inline void interval_returned(struct thread *thread, u64 frame)
{
	/* An inner call's frame lies below that of the outermost one. */
	if (!thread->function_sp || frame < thread->function_sp)
		return;
	thread->function_sp = 0;
	interval__finish(thread, thread->function_sid, thread->segment_type, thread->function_recorded);
}

#endif
