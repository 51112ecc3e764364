/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The instructions of one function with the pieces of it that the compiler put elsewhere, and where execution may go in
 * them.  For program*.c and for the planner.
 */
#ifndef WHYLATE_TARGET_FUNCTION_CODE_H
#define WHYLATE_TARGET_FUNCTION_CODE_H

#include "target/code.h"
#include "target/program.h"

#define FUNCTION_PIECES_MAX 16

struct function_piece {
	uint32_t function; /* its own number */
	uint64_t addr, size;
	code_insns insns; /* ascending */
};

struct function_code {
	struct function_piece pieces[FUNCTION_PIECES_MAX]; /* [0] begins with the entry */
	size_t piece_cnt;
	/*
	 * NULL, or why the instructions cannot be trusted to be all: a jump into the middle of one, of another
	 * function, bytes that are no instruction.  Static text.
	 */
	const char *unclear;
	bool is_piece; /* nothing names it, and it jumps into the middle of a function: it is a piece of that one */
};

enum jump_scope {
	JUMP_WITHIN,  /* to the same function */
	JUMP_AWAY,    /* a tail call */
	JUMP_UNKNOWN, /* through a register or memory: within (a switch) or away */
};

/* For single instructions. */
struct code *program__code(struct program *program);
/* The linked address of a byte of code in the file: 0 or -ENOENT, or why the module cannot be read. */
int program__addr_at(struct program *program, uint32_t module, uint64_t file_off, uint64_t *addr);
/* 0, -EINVAL (no such function), -ENOENT (its code cannot be read), -ENOMEM.  function_code_free() in any case. */
int program__function_code(struct program *program, uint32_t id, struct function_code *code);
void function_code_free(struct function_code *code);

const struct code_insn *function_code_at(const struct function_code *code, uint64_t addr);
/* Of a CODE_JUMP, CODE_JUMP_INDIRECT or CODE_BRANCH in it. */
enum jump_scope function_code_jump(struct program *program, const struct function_code *code,
				   const struct code_insn *insn);
/*
 * How far the stack pointer is below that at function entry, before the instruction at addr is executed, by the
 * unwinder's table.  0; -ERANGE: there is a frame, reckoned from another register; -ENOENT: not known.
 */
int program__depth(struct program *program, uint32_t module, uint64_t addr, int64_t *depth);
/* Does a program or a thread begin there, so that no return address lies beneath its frame? */
bool program__is_outermost(struct program *program, uint32_t id);
/* Is it where the kernel makes signal handlers return to? */
bool program__is_signal_return(struct program *program, uint32_t id);
/* Does it go on, not behind where it was called, but on another stack or in a frame further up? */
bool program__leaves_elsewhere(struct program *program, uint32_t id);
/*
 * May a table of jump targets of this function, or a pointer in the module's data, lead into [first, last]?  (Branches
 * are another matter.)
 */
bool function_code_is_pointed_into(struct program *program, const struct function_code *code, uint64_t first,
				   uint64_t last);
/* Has it a jump through a register or memory that is made while `depth` bytes lie on the stack, or nobody knows how
 * many? */
bool function_code_jumps_at_depth(struct program *program, const struct function_code *code, int64_t depth);
/*
 * May a jump or call from another function of the module lead into [first, last], a range within one function?  Errs on
 * the side of yes: bytes that only look like a jump count.
 */
bool program__is_jumped_into(struct program *program, uint32_t module, uint64_t first, uint64_t last);

#endif
