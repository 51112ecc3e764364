/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Machine code of this architecture, a function at a time.  Where instructions begin and what they do is Capstone's
 * word; where they lead is read from the bytes, which is cheaper than its operands.
 */
#ifndef WHYLATE_TARGET_CODE_H
#define WHYLATE_TARGET_CODE_H

#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CODE_INSN_MAX 16 /* bytes */

enum code_kind {
	CODE_PLAIN,
	CODE_CALL,
	CODE_CALL_INDIRECT,
	CODE_JUMP,
	CODE_JUMP_INDIRECT,
	CODE_BRANCH, /* a conditional jump */
	CODE_RETURN,
	CODE_STOP, /* a trap: nothing follows */
};

enum code_flag {
	CODE_TARGET = 1, /* `target` is where it leads */
	CODE_SLOT = 2,   /* `target` is where the address lies to which it leads */
	CODE_TABLE = 4,  /* `target` is a table of such addresses */
	CODE_ADDRESS = 8 /* it forms the address `target` */
};

struct code_insn {
	uint64_t addr;
	uint64_t target;
	uint8_t len, kind, flags;
};

typedef VEC(struct code_insn) code_insns;

/* What an instruction does to that which a probe behind it could no longer read.  x86 only. */
struct code_effects {
	int32_t sp_down;      /* by how much it lowers the stack pointer; meaningless when sp_lost */
	bool sp_lost;         /* the stack pointer changes in ways that are not followed */
	uint8_t args_written; /* bit i: argument register i */
	bool memory_written;  /* anything but the function's own frame */
	bool stores;          /* anything at all */
	bool caller_written;  /* the caller's frame, the return address with it */
	bool flags_written;
};

/* Registers as values are followed through them: general ones as instructions number them, then each vector register's
 * halves. */
enum {
	CODE_REG_SP = 4,
	CODE_REG_FP = 5,
	CODE_REG_VECTOR = 16, /* lower half of the first; its upper half is the next one */
	CODE_REG_CNT = 48,
};

enum code_move_kind {
	CODE_MOVE_NOTHING,     /* but what code_moves.written says */
	CODE_MOVE_COPY,        /* to = from */
	CODE_MOVE_MAYBE,       /* to = from, or it stays what it was */
	CODE_MOVE_CONST,       /* to = disp */
	CODE_MOVE_ADDRESS,     /* to = base + disp */
	CODE_MOVE_LOAD,        /* to = what lies at base + index * n + disp */
	CODE_MOVE_STORE,       /* from, or what is not known (CODE_NO_REG), is written there */
	CODE_MOVE_STORE_CONST, /* a constant is */
	CODE_MOVE_PUSH,        /* from, or what is not known, onto the stack */
	CODE_MOVE_POP,         /* to */
	CODE_MOVE_TEST,        /* the flags tell whether `from`, or what lies at base + disp, is zero */
};

#define CODE_NO_REG 0xff

struct code_move {
	uint8_t kind, to, from;
	uint8_t base, index; /* CODE_NO_REG: none; without a base disp is the address */
	uint8_t sz;          /* bytes */
	int64_t disp;
	int64_t constant; /* CODE_MOVE_STORE_CONST */
};

/* One instruction as moves that happen at once, in the order in which they are listed. */
struct code_moves {
	struct code_move items[2];
	uint8_t cnt;
	bool flags_written;
	bool exchanges;   /* what lies in memory for a register's, at once (xchg, lock cmpxchg) */
	uint64_t written; /* bit of each register that holds something else afterwards, beside those of the moves */
};

struct code;

/* NULL: out of memory, or a Capstone without this architecture. */
struct code *code__new(void);
void code__free(struct code *code);

/*
 * Appends the instructions of bytes[0 … sz), which lie at addr.  0; -EILSEQ: something there is no instruction (those
 * before it have been appended); -ENOMEM.
 */
int code__sweep(struct code *code, const uint8_t *bytes, size_t sz, uint64_t addr, code_insns *insns);
/* Length of the instruction that begins there; 0: there is none. */
size_t code__len(struct code *code, const uint8_t *bytes, size_t sz);
/* The one whose first byte is at addr, in a list in ascending order; NULL. */
const struct code_insn *code_insn_at(const code_insns *insns, uint64_t addr);
/*
 * One instruction whose bytes are at hand; `frame_sz` bytes lie between the stack pointer before it and that at
 * function entry.  False when it is not understood: then it may do anything.
 */
bool code__effects(struct code *code, const uint8_t *bytes, size_t sz, uint32_t frame_sz, struct code_effects *effects);
/* What one instruction other than a call, a jump or a return moves where.  x86 only: false elsewhere, and where there
 * is none. */
bool code__moves(struct code *code, const uint8_t *bytes, size_t sz, uint64_t addr, struct code_moves *moves);
/* May a call change the register by the calling convention? */
bool code_reg_is_scratch(uint8_t reg);
/* The register of integer argument `arg`, of the return value (-1). */
uint8_t code_reg_of_arg(int arg);
/* The assembler's name of a general register. */
const char *code_reg_name(uint8_t reg);
/* In the assembler's words; "?" when it is no instruction. */
void code__text(struct code *code, const uint8_t *bytes, size_t sz, uint64_t addr, char *buf, size_t buf_sz);

/* Of this architecture: fills kind, flags, target of an instruction whose addr and len are set. */
void code_classify(const uint8_t *bytes, struct code_insn *insn);

/* Are these bytes a linkage stub, which jumps where the slot says?  Of this architecture. */
bool code_is_stub(const uint8_t *bytes, size_t sz, uint64_t addr, uint64_t *slot);

/* Do the bytes ask the kernel to undo a signal frame?  Nothing but the code that handlers return to does. */
bool code_is_signal_return(const uint8_t *bytes, size_t sz);

/* Do the bytes look like an instruction that takes the stack pointer from an argument, or from where one points? */
bool code_looks_like_stack_switch(const uint8_t *bytes, size_t sz);

/*
 * Do the bytes at addr, of which `sz` can be read, look like the beginning of a jump or call with an address in it?
 * They need not be an instruction: for finding, quickly, all that could be one.  x86 only; false elsewhere.
 */
bool code_looks_like_jump(const uint8_t *bytes, size_t sz, uint64_t addr, uint64_t *target);

/* Do the bytes look like an instruction that exchanges what lies in memory?  Likewise. */
bool code_looks_like_exchange(const uint8_t *bytes, size_t sz);

#endif
