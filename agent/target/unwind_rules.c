// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/unwind_rules.h"

#include <dwarf.h>
#include <errno.h>
#include <string.h>

#define EXPR_STACK_MAX 64
#define EXPR_STEPS_MAX 512

int unwind_memory__read(const struct unwind_memory *memory, uint64_t addr, uint64_t *word)
{
	if (addr < memory->addr)
		return -EFAULT;
	if (addr - memory->addr > memory->sz || memory->sz - (addr - memory->addr) < sizeof(*word))
		return -ENODATA;
	memcpy(word, memory->bytes + (addr - memory->addr), sizeof(*word));
	return 0;
}

/* --- expressions -------------------------------------------------------------------------------------------------- */

struct expr {
	const struct unwind_memory *memory;
	const struct unwind_regs *regs;
	uint64_t cfa;
	uint64_t stack[EXPR_STACK_MAX];
	size_t depth;
};

static int push(struct expr *expr, uint64_t value)
{
	if (expr->depth == EXPR_STACK_MAX)
		return -EINVAL;
	expr->stack[expr->depth++] = value;
	return 0;
}

static int push_register(struct expr *expr, uint64_t reg, uint64_t off)
{
	if (reg >= UNWIND_REGS || !(expr->regs->known >> reg & 1))
		return -EINVAL;
	return push(expr, expr->regs->values[reg] + off);
}

static int read_sized(struct expr *expr, uint64_t sz)
{
	uint64_t word = 0;
	int err;

	if (!expr->depth || !sz || sz > sizeof(word))
		return -EINVAL;
	err = unwind_memory__read(expr->memory, expr->stack[expr->depth - 1], &word);
	if (err)
		return err;
	if (sz < sizeof(word))
		word &= (1ULL << (8 * sz)) - 1;
	expr->stack[expr->depth - 1] = word;
	return 0;
}

static int unary(struct expr *expr, const struct unwind_op *op)
{
	uint64_t *top;

	if (!expr->depth)
		return -EINVAL;
	top = &expr->stack[expr->depth - 1];
	switch (op->atom) {
	case DW_OP_abs:
		*top = (int64_t)*top < 0 ? -*top : *top;
		return 0;
	case DW_OP_neg:
		*top = -*top;
		return 0;
	case DW_OP_not:
		*top = ~*top;
		return 0;
	case DW_OP_plus_uconst:
		*top += op->number;
		return 0;
	}
	return -EINVAL;
}

static int binary(struct expr *expr, uint8_t atom)
{
	uint64_t left, right, *to;

	if (expr->depth < 2)
		return -EINVAL;
	right = expr->stack[--expr->depth];
	to = &expr->stack[expr->depth - 1];
	left = *to;
	switch (atom) {
	case DW_OP_and:
		*to = left & right;
		return 0;
	case DW_OP_or:
		*to = left | right;
		return 0;
	case DW_OP_xor:
		*to = left ^ right;
		return 0;
	case DW_OP_plus:
		*to = left + right;
		return 0;
	case DW_OP_minus:
		*to = left - right;
		return 0;
	case DW_OP_mul:
		*to = left * right;
		return 0;
	case DW_OP_div:
		if (!right || (right == UINT64_MAX && left == 1ULL << 63))
			return -EINVAL;
		*to = (uint64_t)((int64_t)left / (int64_t)right);
		return 0;
	case DW_OP_mod:
		if (!right)
			return -EINVAL;
		*to = left % right;
		return 0;
	case DW_OP_shl:
		*to = right < 64 ? left << right : 0;
		return 0;
	case DW_OP_shr:
		*to = right < 64 ? left >> right : 0;
		return 0;
	case DW_OP_shra:
		right = right < 64 ? right : 63;
		*to = left >> right | (left >> 63 ? ~(UINT64_MAX >> right) : 0);
		return 0;
	case DW_OP_eq:
		*to = left == right;
		return 0;
	case DW_OP_ne:
		*to = left != right;
		return 0;
	case DW_OP_ge:
		*to = (int64_t)left >= (int64_t)right;
		return 0;
	case DW_OP_gt:
		*to = (int64_t)left > (int64_t)right;
		return 0;
	case DW_OP_le:
		*to = (int64_t)left <= (int64_t)right;
		return 0;
	case DW_OP_lt:
		*to = (int64_t)left < (int64_t)right;
		return 0;
	}
	return -EINVAL;
}

static int shuffle(struct expr *expr, const struct unwind_op *op)
{
	uint64_t *end = expr->stack + expr->depth, swapped;

	/* DW_OP_pick counts from the top. */
	switch (op->atom) {
	case DW_OP_dup:
		return expr->depth ? push(expr, end[-1]) : -EINVAL;
	case DW_OP_drop:
		if (!expr->depth)
			return -EINVAL;
		expr->depth--;
		return 0;
	case DW_OP_over:
		return expr->depth > 1 ? push(expr, end[-2]) : -EINVAL;
	case DW_OP_pick:
		return op->number < expr->depth ? push(expr, end[-1 - (int64_t)op->number]) : -EINVAL;
	case DW_OP_swap:
		if (expr->depth < 2)
			return -EINVAL;
		swapped = end[-1];
		end[-1] = end[-2];
		end[-2] = swapped;
		return 0;
	case DW_OP_rot:
		if (expr->depth < 3)
			return -EINVAL;
		swapped = end[-1];
		end[-1] = end[-2];
		end[-2] = end[-3];
		end[-3] = swapped;
		return 0;
	}
	return -EINVAL;
}

/* Everything that does not change the order of operations. */
static int step(struct expr *expr, const struct unwind_op *op)
{
	if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31)
		return push(expr, op->atom - DW_OP_lit0);
	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31)
		return push_register(expr, op->atom - DW_OP_breg0, op->number);
	switch (op->atom) {
	case DW_OP_addr:
	case DW_OP_const1u:
	case DW_OP_const1s:
	case DW_OP_const2u:
	case DW_OP_const2s:
	case DW_OP_const4u:
	case DW_OP_const4s:
	case DW_OP_const8u:
	case DW_OP_const8s:
	case DW_OP_constu:
	case DW_OP_consts:
		return push(expr, op->number);
	case DW_OP_bregx:
		return push_register(expr, op->number, op->number2);
	case DW_OP_call_frame_cfa:
		return push(expr, expr->cfa);
	case DW_OP_deref:
		return read_sized(expr, sizeof(uint64_t));
	case DW_OP_deref_size:
		return read_sized(expr, op->number);
	case DW_OP_abs:
	case DW_OP_neg:
	case DW_OP_not:
	case DW_OP_plus_uconst:
		return unary(expr, op);
	case DW_OP_dup:
	case DW_OP_drop:
	case DW_OP_over:
	case DW_OP_pick:
	case DW_OP_swap:
	case DW_OP_rot:
		return shuffle(expr, op);
	case DW_OP_nop:
	case DW_OP_stack_value:
		return 0;
	}
	return binary(expr, op->atom);
}

/* The operation at a branch's target; op_cnt: right behind the last one. */
static int branch(const struct unwind_op *ops, size_t op_cnt, size_t *at)
{
	uint64_t to = ops[*at].offset + 3 + ops[*at].number;

	for (size_t i = 0; i < op_cnt; i++) {
		if (ops[i].offset == to) {
			*at = i;
			return 0;
		}
	}
	if (to <= ops[op_cnt - 1].offset)
		return -EINVAL;
	*at = op_cnt;
	return 0;
}

int unwind_evaluate(const struct unwind_op *ops, size_t op_cnt, const struct unwind_memory *memory,
		    const struct unwind_regs *regs, uint64_t cfa, uint64_t *value)
{
	struct expr expr = {.memory = memory, .regs = regs, .cfa = cfa};
	size_t at = 0;
	int err = 0;

	for (int steps = 0; at < op_cnt; steps++) {
		uint8_t atom = ops[at].atom;

		if (steps == EXPR_STEPS_MAX)
			return -EINVAL;
		if (atom == DW_OP_skip || (atom == DW_OP_bra && expr.depth && expr.stack[--expr.depth])) {
			err = branch(ops, op_cnt, &at);
		} else {
			err = atom == DW_OP_bra ? 0 : step(&expr, &ops[at]);
			at++;
		}
		if (err)
			return err;
	}
	if (!expr.depth)
		return -EINVAL;
	*value = expr.stack[expr.depth - 1];
	return 0;
}

/* --- rules -------------------------------------------------------------------------------------------------------- */

void unwind_rule__make(struct unwind_rule *rule, const struct eh_frame *frame, uint64_t file_addr)
{
	const struct frame_rule *found = eh_frame__rule(frame, file_addr);

	rule->known = found != NULL;
	if (!found)
		return;
	rule->start = found->is_start;
	rule->signal = found->is_signal;
	rule->ra = found->ra;
	rule->cnt = found->line_cnt;
	rule->ops = eh_frame__ops(frame);
	rule->cfa = found->cfa;
	memcpy(rule->lines, eh_frame__lines(frame, found), found->line_cnt * sizeof(rule->lines[0]));
}

static int where_value(const struct unwind_where *where, const struct unwind_op *ops,
		       const struct unwind_memory *memory, const struct unwind_regs *regs, uint64_t cfa,
		       uint64_t *value)
{
	int err;

	switch (where->what) {
	case UNWIND_SAVED:
		return unwind_memory__read(memory, cfa + where->off, value);
	case UNWIND_CFA:
		*value = cfa + where->off;
		return 0;
	case UNWIND_REGISTER:
		if (!(regs->known >> where->reg & 1))
			return -EINVAL;
		*value = regs->values[where->reg] + where->off;
		return 0;
	case UNWIND_SAVED_EXPR:
		err = unwind_evaluate(ops + where->off, where->op_cnt, memory, regs, cfa, value);
		return err ? err : unwind_memory__read(memory, *value, value);
	case UNWIND_EXPR:
		return unwind_evaluate(ops + where->off, where->op_cnt, memory, regs, cfa, value);
	}
	return -EINVAL;
}

int unwind_rule__apply(const struct unwind_rule *rule, const struct unwind_memory *memory,
		       const struct unwind_regs *callee, struct unwind_regs *caller)
{
	bool has_sp = false;
	uint64_t cfa;
	int err;

	err = where_value(&rule->cfa, rule->ops, memory, callee, 0, &cfa);
	if (err)
		return err;
	*caller = *callee;
	for (uint8_t i = 0; i < rule->cnt; i++) {
		const struct unwind_where *line = &rule->lines[i];
		uint64_t bit = 1ULL << line->of, value = 0;

		err = where_value(line, rule->ops, memory, callee, cfa, &value);
		caller->values[line->of] = value;
		if (err)
			caller->known &= ~bit;
		else
			caller->known |= bit;
		if (err && line->of == rule->ra)
			return err;
		has_sp |= line->of == WL_STACK_REG_SP && !err;
	}
	if (!(caller->known >> rule->ra & 1))
		return -EINVAL;
	if (!has_sp) {
		caller->values[WL_STACK_REG_SP] = cfa;
		caller->known |= 1ULL << WL_STACK_REG_SP;
	}
	caller->values[WL_STACK_REG_PC] = caller->values[rule->ra];
	return 0;
}
