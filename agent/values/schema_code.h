/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A function's machine code as schema_tags.c looks at it: instructions with what they read and write, basic blocks,
 * dominators.  x86-64 only.
 */
#ifndef WHYLATE_VALUES_SCHEMA_CODE_H
#define WHYLATE_VALUES_SCHEMA_CODE_H

#include "values/schema_internal.h"

#include <capstone/capstone.h>

#define NO_BLOCK   UINT32_MAX
#define DWARF_XMM0 17
#define OPS_MAX    4

enum place_kind {
	PLACE_NONE,
	PLACE_REGISTER,
	PLACE_MEMORY,  /* at reg + off */
	PLACE_ADDRESS, /* at the linked address off */
};

struct place {
	uint8_t kind, reg, size;
	bool exact; /* only a variable that lies there itself is wanted, not one at an offset from what does */
	int64_t off;
};

struct insn {
	uint64_t addr, target;
	struct place reads[OPS_MAX], writes[2];
	struct place source; /* a copy or load: what it copies; PLACE_NONE: no copy */
	bool adds;           /* … and adds a constant to it */
	uint32_t clobbers;   /* bit per DWARF register 0…16: written, in whatever way */
	uint32_t block;
	uint8_t len, read_cnt, write_cnt;
	bool sets_flags, is_branch, is_jump, is_call, ends; /* ends: nothing follows */
	bool is_nop, is_target, is_step;
	bool is_choice; /* it tests flags, and is no jump: cmov, set, adc, sbb */
};

struct block {
	uint32_t first, last; /* instructions */
	uint32_t next[2];
	uint32_t order, idom; /* position in reverse postorder */
	bool is_root;
};

struct tagger {
	csh handle;
	cs_insn *decoded;
	VEC(struct insn) insns;
	VEC(struct block) blocks;
	VEC(uint32_t) rpo;
	VEC(uint32_t) preds, pred_first; /* predecessors of block b: preds[pred_first[b] … pred_first[b + 1]) */
	VEC(uint32_t) body;
	VEC(uint8_t) in_body;          /* by block */
	struct value_frame_rule frame; /* the newest row of the unwinding table */
};

/* Decodes builder->function and finds its blocks and their dominators.  1; 0: no code is known; -ENOMEM. */
int tagger_read_code(struct tagger *tagger, struct builder *builder);
/* Does each way to block `b` lead through `a`? */
bool tagger_dominates(const struct tagger *tagger, uint32_t a, uint32_t b);

#endif
