/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The instructions of one function in the order of their addresses, and what is known before each.  For sections.c. */
#ifndef WHYLATE_PROBE_SECTION_FLOW_H
#define WHYLATE_PROBE_SECTION_FLOW_H

#include "probe/section_state.h"
#include "probe/sections.h"

#define FLOW_INSNS_MAX 20000

struct flow_insn {
	struct code_insn insn;
	struct code_moves moves;
	uint8_t calls;   /* enum section_call */
	int8_t lock_arg; /* argument that is the lock; -1: none is */
	bool is_call;    /* anything at all */
	bool leaves;     /* … and does not come back here */
	bool is_equal;   /* a branch that is taken where something is zero */
	bool is_unequal;
	bool is_followed; /* by the next one of the list */
};

struct flow {
	VEC(struct flow_insn) insns;
	struct section_state *
		*before; /* by instruction, at the beginnings of blocks; NULL: not reached, or within one */
	uint8_t *begins;
};

/* 0, -ENOTSUP (its code is not understood, or too long), -ENOMEM.  flow_free() in any case. */
int flow_read(struct program *program, uint32_t function, const struct call_targets *targets, struct flow *flow);
/* Fills in `before`: 0 or -ENOMEM. */
int flow_run(struct flow *flow);
void flow_free(struct flow *flow);

/* Calls `visit` for all that were reached, with what is known before each.  0 or what it returns. */
int flow_walk(const struct flow *flow,
	      int (*visit)(void *arg, const struct flow_insn *insn, const struct section_state *state), void *arg);

#endif
