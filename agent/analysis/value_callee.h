/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What functions call while it is slow: a callee tells of its caller what the caller's own variables do not. */
#ifndef WHYLATE_ANALYSIS_VALUE_CALLEE_H
#define WHYLATE_ANALYSIS_VALUE_CALLEE_H

#include "analysis/value_facts.h"

struct value_callee {
	uint32_t function;   /* that it calls at most of its slow ticks, not itself; VALUE_NONE: it calls none */
	double share;        /* of its slow ticks */
	double normal, slow; /* weighted ticks at which the function itself has a frame */
};

/* `callees`: one of each function.  The rows are sorted by tick, depth and place.  0 or -ENOMEM. */
int value_callees_find(struct value_callee *callees, const struct value_input *input);

/*
 * The pattern of a function by what it calls, where its own variables tell of no other than `pattern`.  A callee that
 * is given what no normal profile gives it (`functions[…].is_given`), in each turn of a loop: nothing looks at that
 * before the call.  A callee that no normal profile has, though the function is in it: a condition leads there.
 * `functions` are indexed by their numbers.
 */
enum value_pattern value_pattern_by_callee(enum value_pattern pattern, const struct value_function *functions,
					   const struct value_callee *callees, uint32_t function);

#endif
