/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What sections.c and sections_lockless.c share. */
#ifndef WHYLATE_PROBE_SECTIONS_INTERNAL_H
#define WHYLATE_PROBE_SECTIONS_INTERNAL_H

#include "probe/section_flow.h"

#define SECTION_USES_MAX 64 /* of one function */

/* Where the value lies before the instruction.  Of several places, one that no call changes. */
struct section_place section_place_of(const struct section_state *state, const struct section_value *value);
/* Each once, and no more than SECTION_USES_MAX.  0 or -ENOMEM. */
int section_use_add(struct sections *sections, const struct section_use *use);
/* Values that were just seen, to be looked at where a probe is cheap: at most a few instructions further on. */
#define SECTION_PENDING_MAX 8
struct section_pending {
	struct section_value value;
	bool out;
};
struct section_pendings {
	struct section_pending items[SECTION_PENDING_MAX];
	size_t cnt, next_idx;
	/* The last instruction where a probe is cheap, in the same walk; 0: none. */
	uint64_t cheap_addr;
	struct section_state cheap;
};
void section_pend(struct section_pendings *pending, const struct section_value *value, bool out);
/* To be called for each instruction that is walked.  0 or -ENOMEM. */
int section_pendings_place(struct section_pendings *pending, const struct flow *flow, const struct flow_insn *insn,
			   const struct section_state *state, bool lockless, struct sections *sections);
/* What the instruction says of the function. */
void section_calls_note(struct sections *sections, const struct flow_insn *insn);

static inline bool section_exchanges(const struct flow_insn *insn)
{
	return insn->moves.exchanges || section_call_exchanges(insn->calls);
}

#endif
