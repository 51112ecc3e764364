/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What .eh_frame says of one address: how to get from the registers there to those of the caller, in a form that is
 * applied in some ten nanoseconds.
 */
#ifndef WHYLATE_TARGET_UNWIND_RULES_H
#define WHYLATE_TARGET_UNWIND_RULES_H

#include "target/eh_frame.h"

struct unwind_rule {
	bool known;  /* .eh_frame has something to say */
	bool start;  /* there is no caller */
	bool signal; /* the frame of a signal: its caller was interrupted, it did not call */
	uint8_t ra;  /* the register whose value in the caller is where it goes on */
	uint8_t cnt;
	const struct unwind_op *ops; /* of the module's expressions */
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

/* file_addr: as the module's own file counts.  Of a frame that lives as long as the rule. */
void unwind_rule__make(struct unwind_rule *rule, const struct eh_frame *frame, uint64_t file_addr);

/*
 * From the registers of a frame to those of its caller.  0; -ENODATA: what it takes lies beyond the copied bytes;
 * -EFAULT, -EINVAL: the rule makes no sense here.
 */
int unwind_rule__apply(const struct unwind_rule *rule, const struct unwind_memory *memory,
		       const struct unwind_regs *callee, struct unwind_regs *caller);

/* Evaluates an expression: 0 and *value, or -errno as above. */
int unwind_evaluate(const struct unwind_op *ops, size_t op_cnt, const struct unwind_memory *memory,
		    const struct unwind_regs *regs, uint64_t cfa, uint64_t *value);

#endif
