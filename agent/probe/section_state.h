/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is known of registers and of the stack at one instruction of a function that takes locks: which values there
 * are, where they came from, and how many locks are held.  For sections.c.
 */
#ifndef WHYLATE_PROBE_SECTION_STATE_H
#define WHYLATE_PROBE_SECTION_STATE_H

#include "target/code.h"

#define SECTION_SLOTS 64
#define SECTION_ARGS  6
#define SECTION_LOCKS 4
#define NO_ROOT       0

enum value_kind {
	VALUE_UNKNOWN,
	VALUE_CONST,   /* `site` itself; 0 also where it is not known */
	VALUE_ARG,     /* argument root - 1 at the entry, + off */
	VALUE_FRAME,   /* the stack pointer at the entry + off */
	VALUE_SLOT,    /* what lies on the stack at off, and was not seen coming */
	VALUE_RESULT,  /* of the call at `site` */
	VALUE_LOADED,  /* by the instruction at `site`, from memory that is not the frame */
	VALUE_LOCKED,  /* what a call that takes a lock returned */
	VALUE_ARRAY,   /* an address in the frame, of one of several elements */
	VALUE_ELEMENT, /* loaded from there by the instruction at `site` */
};

struct section_value {
	uint8_t kind, sz;
	uint8_t root; /* 1 + the argument that its address was made of, NO_ROOT */
	bool inside;  /* loaded, or returned, while a lock was held */
	int32_t off;
	uint64_t site;
};

struct section_slot {
	int32_t off; /* from the stack pointer at the entry */
	struct section_value value;
};

struct section_state {
	struct section_value regs[CODE_REG_CNT];
	struct section_slot slots[SECTION_SLOTS];
	size_t slot_cnt;
	int depth;          /* locks held; < 0: of the caller's, given back */
	uint64_t lock_addr; /* the call that took the outermost one, 0: one of several */
	uint8_t lock_root;  /* 1 + the argument that the outermost lock belongs to, NO_ROOT */
	/* What is known to be a lock's address, kind VALUE_UNKNOWN: none. */
	struct section_value locks[SECTION_LOCKS];
	bool is_nonzero;   /* the flags are those of a test of what is not zero */
	bool tells_locked; /* the flags are those of a test of VALUE_LOCKED */
};

/* At a function's first instruction. */
void section_state_begin(struct section_state *state);
/* What holds whether execution came by `state` or by `other`.  True: state has changed. */
bool section_state_join(struct section_state *state, const struct section_state *other);
/* The moves of an instruction at addr. */
void section_state_move(struct section_state *state, const struct code_moves *moves, uint64_t addr);
/* A call at addr returns: what it may change is not known any more.  keeps_frame: it leaves the caller's frame alone.
 */
void section_state_called(struct section_state *state, uint64_t addr, bool keeps_frame);

/* The value is the address of a lock that was taken, and thus not NULL. */
void section_state_locked(struct section_state *state, const struct section_value *lock);

/* What is known to lie in the frame at off. */
struct section_value section_stack_value(const struct section_state *state, int32_t off);
/* Does it come out of memory, or of a function that was called? */
static inline bool section_value_is_taken(const struct section_value *value)
{
	return value->kind == VALUE_LOADED || value->kind == VALUE_RESULT;
}

bool section_value_same(const struct section_value *a, const struct section_value *b);
/* The address that a move reads or writes. */
struct section_value section_address(const struct section_state *state, const struct code_move *move);

#endif
