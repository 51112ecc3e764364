/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What .eh_frame says of one address: how to get from the registers there to those of the caller.  Made by libdw from
 * CIE and FDE, and put into a form that is applied in some ten nanoseconds.
 */
#ifndef WHYLATE_TARGET_UNWIND_RULES_H
#define WHYLATE_TARGET_UNWIND_RULES_H

#include <whylate/record.h>

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Registers that .eh_frame speaks of, of those that are recorded. */
#define UNWIND_REGS (WL_STACK_REG_SP > 16 ? WL_STACK_REG_SP + 1 : WL_STACK_REG_PC + 1)

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
	uint32_t op_cnt;
	union {
		int64_t off;
		const Dwarf_Op *ops; /* belongs to the Dwarf_CFI */
	};
};

/* Registers that have no line keep their value. */
#define UNWIND_LINES_MAX UNWIND_REGS

struct unwind_rule {
	uint64_t addr; /* absolute */
	bool known;    /* .eh_frame has something to say */
	bool start;    /* there is no caller */
	bool signal;   /* the frame of a signal: its caller was interrupted, it did not call */
	uint8_t ra;    /* the register whose value in the caller is where it goes on */
	uint8_t cnt;
	struct unwind_where cfa;
	struct unwind_where lines[UNWIND_LINES_MAX];
};

/* The registers of one frame; `known` has a bit for each whose value is. */
struct unwind_regs {
	uint64_t values[WL_STACK_REGS];
	uint64_t known;
};

/* A copy of the stack. */
struct unwind_memory {
	const uint8_t *bytes;
	uint64_t addr;
	size_t sz;
};

/* 0; -ENODATA: it ends before that; -EFAULT: no part of it. */
int unwind_memory__read(const struct unwind_memory *memory, uint64_t addr, uint64_t *word);

/* Fills everything but addr; cfi_addr: as the module's own file counts. */
void unwind_rule__make(struct unwind_rule *rule, Dwarf_CFI *cfi, uint64_t cfi_addr);

/*
 * From the registers of a frame to those of its caller.  0; -ENODATA: what it takes lies beyond the copied bytes;
 * -EFAULT, -EINVAL: the rule makes no sense here.
 */
int unwind_rule__apply(const struct unwind_rule *rule, const struct unwind_memory *memory,
		       const struct unwind_regs *callee, struct unwind_regs *caller);

/* Evaluates an expression: 0 and *value, or -errno as above. */
int unwind_evaluate(const Dwarf_Op *ops, size_t op_cnt, const struct unwind_memory *memory,
		    const struct unwind_regs *regs, uint64_t cfa, uint64_t *value);

#endif
