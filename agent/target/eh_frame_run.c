// SPDX-License-Identifier: GPL-2.0-or-later
/* Call frame instructions: DWARF 5, §6.4.2. */
#include "target/eh_frame_internal.h"

#include "base/random.h"

#include <dwarf.h>
#include <errno.h>
#include <string.h>

#define STATES_MAX    32
#define CFI_STEPS_MAX 65536
#define STEPS_MAX     (12U << 20) /* of a file */
/* The top two bits of some instructions; the others are an operand. */
#define CFI_HIGH_MASK 0xc0
#define NO_LIST       UINT32_MAX
/* Of a register that keeps its value, which is no line. */
#define SAME 0xff

struct row {
	struct unwind_where cfa;
	struct unwind_where regs[UNWIND_REGS];
	uint32_t list; /* of these; NO_LIST: not known */
};

struct machine {
	struct cursor cursor;
	struct eh_table *table;
	const struct cie *cie;
	uint64_t loc, end; /* the next instruction is about loc */
	uint64_t row_addr; /* from where the row holds */
	bool with_steps, is_started, is_done;
	struct row row, initial;
	struct row *states; /* that are remembered */
	size_t state_cnt;
	uint32_t first_rule;
	int err;
};

/* --- what is found once is kept once ------------------------------------------------------------------------------ */

/* The id of bytes by a hash of 128 bits: who forges two that are equal harms what his own file says. */
static int id_of(struct idmap *ids, const void *bytes, size_t sz, uint32_t *id)
{
	uint64_t a = sz, b = ~sz, word;

	for (size_t at = 0; at < sz; at += sizeof(word)) {
		word = 0;
		memcpy(&word, (const char *)bytes + at, sz - at < sizeof(word) ? sz - at : sizeof(word));
		a = random_mix(a + word);
		b = random_mix(b ^ word);
	}
	return idmap__id(ids, a, b, id);
}

static int list_find(struct machine *machine)
{
	struct eh_table *table = machine->table;
	struct unwind_where lines[UNWIND_REGS];
	struct line_list list = {.first = table->rows->lines.cnt};
	struct row *row = &machine->row;

	if (row->list != NO_LIST)
		return 0;
	for (int reg = 0; reg < UNWIND_REGS; reg++)
		if (row->regs[reg].what != SAME) {
			lines[list.cnt] = row->regs[reg];
			lines[list.cnt++].of = reg;
		}
	if (id_of(&table->list_ids, lines, list.cnt * sizeof(*lines), &row->list))
		return -ENOMEM;
	if (row->list < table->lists.cnt)
		return 0;
	if (vec_reserve(&table->rows->lines, list.cnt) || vec_push(&table->lists, list))
		return -ENOMEM;
	memcpy(table->rows->lines.items + list.first, lines, list.cnt * sizeof(*lines));
	table->rows->lines.cnt += list.cnt;
	return 0;
}

static int rule_find(struct machine *machine, uint32_t *id)
{
	struct eh_table *table = machine->table;
	struct row *row = &machine->row;
	uint64_t ra = machine->cie->return_reg;
	struct frame_rule rule = {.cfa = row->cfa, .is_signal = machine->cie->is_signal_frame};
	int err;

	*id = FRAME_RULE_NONE;
	if (ra >= UNWIND_REGS)
		return 0;
	rule.ra = (uint8_t)ra;
	rule.is_start = row->regs[ra].what == UNWIND_UNDEFINED;
	if (!rule.is_start && row->cfa.what == UNWIND_UNDEFINED)
		return 0;
	err = list_find(machine);
	if (err)
		return err;
	rule.first_line = table->lists.items[row->list].first;
	rule.line_cnt = (uint8_t)table->lists.items[row->list].cnt;
	err = id_of(&table->rule_ids, &rule, sizeof(rule), id);
	return err || *id < table->rows->rules.cnt ? err : vec_push(&table->rows->rules, rule);
}

static int step_push(struct eh_table *table, uint64_t addr, uint32_t rule)
{
	struct frame_step step = {(uint32_t)(addr - table->rows->head.frames_base), rule};
	size_t cnt = table->rows->steps.cnt;

	if (cnt ? table->rows->steps.items[cnt - 1].rule == rule : rule == FRAME_RULE_NONE)
		return 0;
	return cnt == STEPS_MAX ? -EFBIG : vec_push(&table->rows->steps, step);
}

int eh_step_end(struct eh_table *table, uint64_t addr)
{
	return step_push(table, addr, FRAME_RULE_NONE);
}

/* The row is whole: it holds from row_addr up to loc. */
static void row_ends(struct machine *machine)
{
	uint32_t rule;

	if (!machine->err)
		machine->err = rule_find(machine, &rule);
	if (machine->err)
		return;
	if (!machine->is_started)
		machine->first_rule = rule;
	machine->is_started = true;
	if (machine->with_steps)
		machine->err = step_push(machine->table, machine->row_addr, rule);
	machine->is_done = !machine->with_steps;
	machine->row_addr = machine->loc;
}

static void go_to(struct machine *machine, uint64_t loc)
{
	if (machine->loc == UINT64_MAX) /* the CIE's own hold from the first address on */
		return;
	if (loc < machine->loc) {
		machine->cursor.bad = true;
		return;
	}
	machine->loc = loc < machine->end ? loc : machine->end;
	if (machine->loc == machine->row_addr)
		return;
	row_ends(machine);
	machine->is_done |= machine->loc == machine->end;
}

static void advance(struct machine *machine, uint64_t delta)
{
	uint64_t step;

	if (__builtin_mul_overflow(delta, machine->cie->code_align, &step) ||
	    __builtin_add_overflow(machine->loc == UINT64_MAX ? 0 : machine->loc, step, &step))
		machine->cursor.bad = true;
	else
		go_to(machine, step);
}

/* --- expressions -------------------------------------------------------------------------------------------------- */

static void take_operands(struct cursor *cursor, struct unwind_op *op)
{
	uint8_t atom = op->atom;

	if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31) {
		op->number = (uint64_t)cursor__sleb(cursor);
		return;
	}
	switch (atom) {
	case DW_OP_addr:
	case DW_OP_const8u:
	case DW_OP_const8s:
		op->number = cursor__take(cursor, 8);
		break;
	case DW_OP_const1u:
	case DW_OP_pick:
	case DW_OP_deref_size:
		op->number = cursor__take(cursor, 1);
		break;
	case DW_OP_const1s:
		op->number = (uint64_t)(int64_t)(int8_t)cursor__take(cursor, 1);
		break;
	case DW_OP_const2u:
		op->number = cursor__take(cursor, 2);
		break;
	case DW_OP_const2s:
	case DW_OP_skip:
	case DW_OP_bra:
		op->number = (uint64_t)(int64_t)(int16_t)cursor__take(cursor, 2);
		break;
	case DW_OP_const4u:
		op->number = cursor__take(cursor, 4);
		break;
	case DW_OP_const4s:
		op->number = (uint64_t)(int64_t)(int32_t)cursor__take(cursor, 4);
		break;
	case DW_OP_constu:
	case DW_OP_plus_uconst:
		op->number = cursor__uleb(cursor);
		break;
	case DW_OP_consts:
		op->number = (uint64_t)cursor__sleb(cursor);
		break;
	case DW_OP_bregx:
		op->number = cursor__uleb(cursor);
		op->number2 = (uint64_t)cursor__sleb(cursor);
		break;
	default: /* none, or one that unwind_evaluate() refuses */
		break;
	}
}

/* A length and operations, which begin with the CFA on the stack where it says so. */
static struct unwind_where take_expression(struct machine *machine, enum unwind_value what, bool on_cfa)
{
	struct eh_table *table = machine->table;
	uint64_t sz = cursor__uleb(&machine->cursor);
	struct cursor cursor = machine->cursor;
	struct unwind_op ops[UNWIND_OPS_MAX] = {{0}};
	struct line_list list = {.first = table->rows->ops.cnt};
	uint32_t id;

	cursor__skip(&machine->cursor, sz);
	cursor.end = machine->cursor.pos;
	if (on_cfa)
		ops[list.cnt++] = (struct unwind_op){.atom = DW_OP_call_frame_cfa, .offset = UINT32_MAX};
	for (size_t begin = cursor.pos; cursor.pos < cursor.end && !cursor.bad && !machine->cursor.bad; list.cnt++) {
		if (list.cnt == UNWIND_OPS_MAX)
			return (struct unwind_where){0};
		ops[list.cnt].offset = (uint32_t)(cursor.pos - begin);
		ops[list.cnt].atom = (uint8_t)cursor__take(&cursor, 1);
		take_operands(&cursor, &ops[list.cnt]);
	}
	if (cursor.bad || machine->cursor.bad || !list.cnt)
		return (struct unwind_where){0};
	if (id_of(&table->expression_ids, ops, list.cnt * sizeof(*ops), &id))
		machine->err = -ENOMEM;
	else if (id == table->expressions.cnt) {
		if (vec_reserve(&table->rows->ops, list.cnt) || vec_push(&table->expressions, list))
			machine->err = -ENOMEM;
		else
			memcpy(table->rows->ops.items + list.first, ops, list.cnt * sizeof(*ops));
		table->rows->ops.cnt += machine->err ? 0 : list.cnt;
	}
	if (machine->err)
		return (struct unwind_where){0};
	return (struct unwind_where){
		.what = what, .op_cnt = list.cnt, .off = (int64_t)table->expressions.items[id].first};
}

/* --- instructions ------------------------------------------------------------------------------------------------- */

static int64_t factored(struct machine *machine, int64_t by)
{
	int64_t off;

	if (__builtin_mul_overflow(by, machine->cie->data_align, &off))
		machine->cursor.bad = true;
	return off;
}

static void set_reg(struct machine *machine, uint64_t reg, struct unwind_where where)
{
	if (reg >= UNWIND_REGS)
		return;
	machine->row.regs[reg] = where;
	machine->row.list = NO_LIST;
}

static void set_off(struct machine *machine, uint64_t reg, enum unwind_value what, int64_t by)
{
	set_reg(machine, reg, (struct unwind_where){.what = (uint8_t)what, .off = factored(machine, by)});
}

static struct unwind_where in_register(uint64_t reg, int64_t off)
{
	if (reg >= UNWIND_REGS)
		return (struct unwind_where){0};
	return (struct unwind_where){.what = UNWIND_REGISTER, .reg = (uint8_t)reg, .off = off};
}

/* Those that set the CFA or the state; false: another one. */
static bool cfa_step(struct machine *machine, uint8_t op)
{
	struct cursor *cursor = &machine->cursor;
	struct unwind_where *cfa = &machine->row.cfa;
	uint64_t reg;

	switch (op) {
	case DW_CFA_def_cfa:
		reg = cursor__uleb(cursor);
		*cfa = in_register(reg, (int64_t)cursor__uleb(cursor));
		return true;
	case DW_CFA_def_cfa_sf:
		reg = cursor__uleb(cursor);
		*cfa = in_register(reg, factored(machine, cursor__sleb(cursor)));
		return true;
	case DW_CFA_def_cfa_register:
		*cfa = in_register(cursor__uleb(cursor), cfa->op_cnt ? 0 : cfa->off);
		return true;
	case DW_CFA_def_cfa_offset:
		cfa->off = (int64_t)cursor__uleb(cursor);
		cursor->bad |= cfa->op_cnt > 0;
		return true;
	case DW_CFA_def_cfa_offset_sf:
		cfa->off = factored(machine, cursor__sleb(cursor));
		cursor->bad |= cfa->op_cnt > 0;
		return true;
	case DW_CFA_def_cfa_expression:
		*cfa = take_expression(machine, UNWIND_EXPR, false);
		return true;
	case DW_CFA_remember_state:
		if (machine->state_cnt == STATES_MAX)
			cursor->bad = true;
		else
			machine->states[machine->state_cnt++] = machine->row;
		return true;
	case DW_CFA_restore_state:
		if (!machine->state_cnt)
			cursor->bad = true;
		else
			machine->row = machine->states[--machine->state_cnt];
		return true;
	default:
		return false;
	}
}

/* Those that say where a register is; false: another one. */
static bool register_step(struct machine *machine, uint8_t op)
{
	struct cursor *cursor = &machine->cursor;
	uint64_t reg;

	switch (op) {
	case DW_CFA_undefined:
		set_reg(machine, cursor__uleb(cursor), (struct unwind_where){.what = UNWIND_UNDEFINED});
		return true;
	case DW_CFA_same_value:
		set_reg(machine, cursor__uleb(cursor), (struct unwind_where){.what = SAME});
		return true;
	case DW_CFA_restore_extended:
		reg = cursor__uleb(cursor);
		set_reg(machine, reg, machine->initial.regs[reg < UNWIND_REGS ? reg : 0]);
		return true;
	case DW_CFA_register:
		reg = cursor__uleb(cursor);
		set_reg(machine, reg, in_register(cursor__uleb(cursor), 0));
		return true;
	case DW_CFA_offset_extended:
		reg = cursor__uleb(cursor);
		set_off(machine, reg, UNWIND_SAVED, (int64_t)cursor__uleb(cursor));
		return true;
	case DW_CFA_offset_extended_sf:
		reg = cursor__uleb(cursor);
		set_off(machine, reg, UNWIND_SAVED, cursor__sleb(cursor));
		return true;
	case DW_CFA_GNU_negative_offset_extended:
		reg = cursor__uleb(cursor);
		set_off(machine, reg, UNWIND_SAVED, (int64_t)(0 - cursor__uleb(cursor)));
		return true;
	case DW_CFA_val_offset:
		reg = cursor__uleb(cursor);
		set_off(machine, reg, UNWIND_CFA, (int64_t)cursor__uleb(cursor));
		return true;
	case DW_CFA_val_offset_sf:
		reg = cursor__uleb(cursor);
		set_off(machine, reg, UNWIND_CFA, cursor__sleb(cursor));
		return true;
	case DW_CFA_expression:
		reg = cursor__uleb(cursor);
		set_reg(machine, reg, take_expression(machine, UNWIND_SAVED_EXPR, true));
		return true;
	case DW_CFA_val_expression:
		reg = cursor__uleb(cursor);
		set_reg(machine, reg, take_expression(machine, UNWIND_EXPR, true));
		return true;
	default:
		return false;
	}
}

static void other_step(struct machine *machine, uint8_t op)
{
	struct cursor *cursor = &machine->cursor;
	uint64_t addr;
	bool known;

	switch (op) {
	case DW_CFA_nop:
	case DW_CFA_AARCH64_negate_ra_state:
		break;
	case DW_CFA_set_loc:
		addr = cursor__pointer(cursor, machine->cie->pointer_format, &known);
		if (known && !cursor->bad)
			go_to(machine, addr);
		else
			cursor->bad = true;
		break;
	case DW_CFA_advance_loc1:
		advance(machine, cursor__take(cursor, 1));
		break;
	case DW_CFA_advance_loc2:
		advance(machine, cursor__take(cursor, 2));
		break;
	case DW_CFA_advance_loc4:
		advance(machine, cursor__take(cursor, 4));
		break;
	case DW_CFA_GNU_args_size:
		cursor__uleb(cursor);
		break;
	default:
		cursor->bad = true;
	}
}

static void machine_run(struct machine *machine, size_t off, size_t end)
{
	struct cursor *cursor = &machine->cursor;

	cursor->pos = off;
	cursor->end = end;
	for (size_t steps = 0; cursor->pos < cursor->end && !cursor->bad && !machine->is_done && !machine->err;
	     steps++) {
		uint8_t op = cursor__take(cursor, 1), operand = op & ~CFI_HIGH_MASK;

		if (steps == CFI_STEPS_MAX)
			cursor->bad = true;
		else if ((op & CFI_HIGH_MASK) == DW_CFA_advance_loc)
			advance(machine, operand);
		else if ((op & CFI_HIGH_MASK) == DW_CFA_offset)
			set_off(machine, operand, UNWIND_SAVED, (int64_t)cursor__uleb(cursor));
		else if ((op & CFI_HIGH_MASK) == DW_CFA_restore)
			set_reg(machine, operand, machine->initial.regs[operand < UNWIND_REGS ? operand : 0]);
		else if (!cfa_step(machine, op) && !register_step(machine, op))
			other_step(machine, op);
	}
}

/* What holds without a word: by the ABI calls preserve some registers, and the CFA is the caller's stack pointer. */
static void row_begin(struct row *row)
{
#if defined(__x86_64__)
	static const uint8_t kept[] = {3, 6, 12, 13, 14, 15};
#else
	static const uint8_t kept[] = {19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30};
#endif

	memset(row, 0, sizeof(*row));
	for (size_t i = 0; i < sizeof(kept); i++)
		row->regs[kept[i]].what = SAME;
	row->regs[WL_STACK_REG_SP].what = UNWIND_CFA;
	row->list = NO_LIST;
}

int eh_fde_run(struct eh_table *table, const struct fde *fde, uint64_t end, bool with_steps, uint32_t *first_rule)
{
	static struct row states[STATES_MAX];
	struct machine machine = {.cursor = {.table = table},
				  .table = table,
				  .cie = &table->cies.items[fde->cie],
				  .loc = UINT64_MAX,
				  .with_steps = with_steps,
				  .first_rule = FRAME_RULE_NONE,
				  .states = states};

	row_begin(&machine.row);
	machine_run(&machine, machine.cie->code_off, machine.cie->code_end);
	machine.initial = machine.row;
	machine.loc = machine.row_addr = fde->addr;
	machine.end = end;
	machine.state_cnt = 0;
	if (!machine.cursor.bad)
		machine_run(&machine, fde->code_off, fde->code_end);
	if (!machine.cursor.bad && !machine.is_done && !machine.err && machine.row_addr < end) {
		machine.loc = end;
		row_ends(&machine);
	} else if (machine.cursor.bad && !machine.err && with_steps) {
		machine.err = step_push(table, machine.row_addr, FRAME_RULE_NONE);
	}
	*first_rule = machine.first_rule;
	return machine.err;
}
