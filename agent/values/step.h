/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the kernel gets to know of a frame that was met in a stack, so that it reaches the caller at the next tick: the
 * unwinding rule of its program counter, as far as it is simple, and of a caller the members that its pointers lead to.
 */
#ifndef WHYLATE_VALUES_STEP_H
#define WHYLATE_VALUES_STEP_H

#include "values/reader.h"

/* False: the rule leads nowhere that the kernel can follow, and nothing is filled. */
bool value_step_make(const struct unwind_rule *rule, struct value_step *step);
/* Where the frame is, by that rule. */
struct value_frame_rule value_step_frame(const struct value_step *step);

/* What is read of a caller: to be zeroed. */
struct value_caller {
	struct value_read reads[VALUE_FRAME_READS_MAX];
	uint32_t read_cnt;
	uint32_t left_out;       /* variables beyond that */
	VEC(uint32_t) variables; /* that are read, some of them several times */
};

/* 0 or -ENOMEM; value_caller_free() in either case. */
int value_caller_make(struct value_caller *caller, const struct value_reader *reader, uint64_t addr,
		      const struct value_frame_rule *rule);
void value_caller_free(struct value_caller *caller);

#endif
