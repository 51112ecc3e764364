// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/probe.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#if defined(__x86_64__)
/* The kernel's struct pt_regs, which <asm/ptrace.h> has under the names of user space. */
#include <asm/ptrace.h>
static const int16_t arg_offs[] = {offsetof(struct pt_regs, rdi), offsetof(struct pt_regs, rsi),
				   offsetof(struct pt_regs, rdx), offsetof(struct pt_regs, rcx),
				   offsetof(struct pt_regs, r8),  offsetof(struct pt_regs, r9)};
#define RETVAL_OFF offsetof(struct pt_regs, rax)
#elif defined(__aarch64__)
static const int16_t arg_offs[] = {0, 8, 16, 24, 32, 40};
#define RETVAL_OFF 0
#else
#error "argument registers of this architecture"
#endif

static const enum spec_role roles[PROBE_ROLE_CNT] = {
	[PROBE_INTERVAL] = SPEC_INTERVAL, [PROBE_BEGIN] = SPEC_BEGIN,     [PROBE_END] = SPEC_END,
	[PROBE_WORK] = SPEC_WORK,         [PROBE_ACQUIRE] = SPEC_ACQUIRE, [PROBE_RELEASE] = SPEC_RELEASE,
	[PROBE_ENQUEUE] = SPEC_ENQUEUE,   [PROBE_DEQUEUE] = SPEC_DEQUEUE, [PROBE_FUNCTION] = SPEC_FUNCTION,
};

static bool reads_retval(const struct probe *probe)
{
	return probe->key.kind == PROBE_EXPR_RETVAL || probe->object.kind == PROBE_EXPR_RETVAL ||
	       probe->task.kind == PROBE_EXPR_RETVAL || probe->queue.kind == PROBE_EXPR_RETVAL;
}

/* A marker is a moment; a function's call has two of them. */
static bool happens_at_exit(const struct probe *probe)
{
	if (!probe->plan)
		return false;
	return probe->role == PROBE_ACQUIRE || probe->role == PROBE_DEQUEUE || reads_retval(probe);
}

static bool has_exit(const struct probe *probe)
{
	return probe->plan && probe->plan->exit != PLAN_EXIT_NONE;
}

static bool is_timed(const struct probe *probe)
{
	return has_exit(probe) && (probe->role == PROBE_FUNCTION || probe->role == PROBE_ACQUIRE);
}

bool probe_wants_exit(const struct probe *probe)
{
	return happens_at_exit(probe) || (probe->plan && probe->role == PROBE_INTERVAL) || is_timed(probe);
}

static int marker_operand(const struct probe *probe, const struct probe_expr *expr, struct operand *operand,
			  const char **why)
{
	const struct usdt_arg *arg;

	*why = "the marker does not have that argument";
	if (expr->arg >= probe->usdt->arg_cnt || expr->arg >= USDT_ARG_MAX)
		return -EINVAL;
	arg = &probe->usdt->args[expr->arg];
	operand->sz = arg->sz;
	operand->is_signed = arg->is_signed;
	operand->shift = arg->shift;
	operand->value = arg->value;
	operand->reg_off = arg->reg_off;
	operand->idx_off = arg->idx_off;
	operand->idx_shift = arg->scale ? (uint8_t)__builtin_ctz(arg->scale) : 0;
	switch (arg->kind) {
	case USDT_ARG_CONST:
		operand->kind = OPERAND_CONST;
		return 0;
	case USDT_ARG_REG:
		operand->kind = OPERAND_REG;
		return 0;
	case USDT_ARG_MEMORY:
		operand->kind = OPERAND_MEMORY;
		return 0;
	}
	*why = "that argument of the marker cannot be read";
	return -EINVAL;
}

static int argument_operand(const struct probe *probe, const struct probe_expr *expr, struct operand *operand,
			    const char **why)
{
	if (expr->is_reg) {
		operand->kind = OPERAND_REG;
		operand->reg_off = expr->reg_off;
		if (expr->kind == PROBE_EXPR_ARG)
			operand->sz = expr->width;
		*why = "only an instruction has registers";
		return probe->usdt ? 0 : -EINVAL;
	}
	if (probe->usdt)
		return marker_operand(probe, expr, operand, why);
	*why = "there are six arguments in registers, no more";
	if (expr->arg >= sizeof(arg_offs) / sizeof(arg_offs[0]))
		return -EINVAL;
	operand->kind = OPERAND_REG;
	operand->reg_off = arg_offs[expr->arg];
	return 0;
}

static int operand_make(const struct probe *probe, const struct probe_expr *expr, struct operand *operand,
			const char **why)
{
	operand->sz = 8;
	operand->is_string = expr->is_string;
	operand->reg_off = operand->idx_off = OPERAND_NO_REG;
	switch (expr->kind) {
	case PROBE_EXPR_NONE:
		return 0;
	case PROBE_EXPR_ARG:
		return argument_operand(probe, expr, operand, why);
	case PROBE_EXPR_MEMORY:
		operand->deref_sz = expr->width;
		operand->deref_off = expr->off;
		*why = "a width of 8 or 4 bytes can be read";
		return expr->width == 8 || expr->width == 4 ? argument_operand(probe, expr, operand, why) : -EINVAL;
	case PROBE_EXPR_TID:
		operand->kind = OPERAND_TID;
		return 0;
	case PROBE_EXPR_RETVAL:
		*why = "a marker returns nothing";
		operand->kind = OPERAND_REG;
		operand->reg_off = RETVAL_OFF;
		operand->at_exit = 1;
		return probe->plan ? 0 : -EINVAL;
	}
	*why = "not an expression";
	return -EINVAL;
}

int probe_spec_make(const struct probe *probe, struct probe_spec *spec, const char **why)
{
	const struct probe_expr none = {.kind = PROBE_EXPR_NONE};
	const struct probe_expr *first = &probe->key, *second = &none;
	int err;

	memset(spec, 0, sizeof(*spec));
	*why = NULL;
	spec->role = roles[probe->role];
	spec->func = probe->func;
	spec->line = probe->line;
	if (probe->role == PROBE_ACQUIRE || probe->role == PROBE_RELEASE) {
		first = &probe->object;
	} else if (probe->role == PROBE_ENQUEUE || probe->role == PROBE_DEQUEUE) {
		first = &probe->task;
		second = &probe->queue;
	} else if (probe->role == PROBE_INTERVAL || probe->role == PROBE_BEGIN) {
		second = &probe->type;
	}
	if (probe->watched)
		spec->role = SPEC_WATCH;
	if (!probe->plan && !probe->usdt) {
		*why = "it has neither a plan nor a marker";
		return -EINVAL;
	}
	if (probe->usdt && (probe->role == PROBE_INTERVAL)) {
		*why = "a marker is a moment and no call: an interval takes two of them, begin and end";
		return -EINVAL;
	}
	if (probe_wants_exit(probe) && !has_exit(probe)) {
		*why = probe->plan->exit_why ? probe->plan->exit_why : "its exit cannot be probed";
		return -ENOTSUP;
	}
	err = operand_make(probe, first, &spec->operands[0], why);
	if (!err)
		err = operand_make(probe, second, &spec->operands[1], why);
	if (err)
		return err;
	*why = NULL;
	if (has_exit(probe) && probe->plan->exit == PLAN_EXIT_URETPROBE)
		spec->flags |= SPEC_URETPROBE;
	if (happens_at_exit(probe))
		spec->flags |= SPEC_AT_EXIT | SPEC_ON_STACK;
	if (is_timed(probe))
		probe_spec_time(probe, spec, probe->want_call_addr);
	return 0;
}

bool probe_spec_time(const struct probe *probe, struct probe_spec *spec, bool want_call_addr)
{
	if (!has_exit(probe))
		return false;
	spec->flags |= SPEC_TIMED;
	if (want_call_addr)
		spec->flags |= SPEC_CALL_ADDR;
	return true;
}
