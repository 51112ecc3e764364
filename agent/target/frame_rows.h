/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How the frames of one file's functions are left, as whylate-symbols sends it (elf_rows.h): functions, from which
 * address on which rule holds, and rules, which share lists of lines.  All widths are fixed, nothing is a pointer.
 */
#ifndef WHYLATE_TARGET_FRAME_ROWS_H
#define WHYLATE_TARGET_FRAME_ROWS_H

#include <whylate/record.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Registers that .eh_frame speaks of, of those that are recorded. */
#define UNWIND_REGS (WL_STACK_REG_SP > 16 ? WL_STACK_REG_SP + 1 : WL_STACK_REG_PC + 1)
/* Registers that have no line keep their value. */
#define UNWIND_LINES_MAX UNWIND_REGS
#define UNWIND_OPS_MAX   32 /* of one expression */
#define FRAME_RULE_NONE  UINT32_MAX

enum unwind_value {
	UNWIND_UNDEFINED,
	UNWIND_SAVED,      /* in memory at CFA + off */
	UNWIND_CFA,        /* CFA + off */
	UNWIND_REGISTER,   /* what register `reg` holds, + off */
	UNWIND_SAVED_EXPR, /* in memory where the expression says */
	UNWIND_EXPR,       /* what the expression says */
};

struct unwind_where {
	uint8_t what; /* enum unwind_value */
	uint8_t of;   /* the register that is got this way */
	uint8_t reg;
	uint8_t pad;
	uint32_t op_cnt; /* of an expression */
	int64_t off;     /* of an expression: its first operation */
};

/* Of an expression: DWARF 5, §2.5. */
struct unwind_op {
	uint64_t number, number2;
	uint32_t offset; /* of its byte in the expression */
	uint8_t atom;
	uint8_t pad[3];
};

struct frame_rule {
	struct unwind_where cfa;
	uint32_t first_line;
	uint8_t line_cnt;
	uint8_t ra;        /* the register whose value in the caller is where it goes on */
	uint8_t is_start;  /* there is no caller */
	uint8_t is_signal; /* of the code that a signal handler returns to: its caller was interrupted */
};

/* From there on, up to the next one. */
struct frame_step {
	uint32_t off;  /* from the base in the head */
	uint32_t rule; /* or FRAME_RULE_NONE */
};

/* One FDE: a function, or a piece of one. */
struct frame_function {
	uint64_t addr, size; /* as linked; size > 0 */
	uint32_t rule;       /* of its first instruction, or FRAME_RULE_NONE */
	uint32_t pad;
};

_Static_assert(sizeof(struct unwind_where) == 16 && sizeof(struct unwind_op) == 24 && sizeof(struct frame_rule) == 24 &&
		       sizeof(struct frame_step) == 8 && sizeof(struct frame_function) == 24,
	       "rows have no hidden padding");

#endif
