/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The call chain of a thread from its registers and the innermost bytes of its stack, without looking at the process
 * itself: by the .eh_frame of its modules, which every distribution's binaries have, where frame pointers are rare.
 * What .eh_frame does not know is tried by frame pointer, and then by looking for the next word on the stack that is a
 * return address, that is, that lies right behind a call instruction.
 *
 * Registers are numbered as DWARF does (WL_STACK_REG_SP, WL_STACK_REG_PC).  The rules for a place in a file are
 * computed once and kept.  One thread only.  Neither the files nor the bytes are trusted.
 */
#ifndef WHYLATE_TARGET_UNWIND_H
#define WHYLATE_TARGET_UNWIND_H

#include <whylate/record.h>

#include "target/target.h"

#define UNWIND_FRAMES_MAX 128

/* How the frame was found, from its callee. */
enum unwind_how {
	UNWIND_BY_REGISTERS, /* the innermost one */
	UNWIND_BY_CFI,
	UNWIND_BY_FRAME_POINTER,
	UNWIND_BY_SCAN, /* a guess: functions may be missing below it, and it may have returned already */
};

struct unwind_frame {
	uint64_t pc;  /* innermost, and above a signal's frame: the instruction itself; otherwise the return address */
	uint64_t cfa; /* of the callee: the stack pointer in this frame; innermost: the stack pointer */
	enum unwind_how how;
	bool exact; /* pc is not a return address */
};

/* Of a return address the call is what is meant: the address to look up a function by. */
static inline uint64_t unwind_frame_addr(const struct unwind_frame *frame)
{
	return frame->exact || !frame->pc ? frame->pc : frame->pc - 1;
}

enum unwind_end {
	UNWIND_START,     /* where the thread began */
	UNWIND_CUT,       /* the bytes of the stack end here */
	UNWIND_TOO_DEEP,  /* UNWIND_FRAMES_MAX */
	UNWIND_NOT_KNOWN, /* nothing leads on */
};

struct unwind_regs; /* unwind_rules.h */
struct unwind_rule;

struct unwind_input {
	const uint64_t *regs; /* WL_STACK_REGS of them */
	const uint8_t *stack; /* from the stack pointer upwards */
	size_t stack_sz;
	struct unwind_regs *frame_regs; /* filled with those of the innermost frames; NULL: not wanted */
	size_t frame_regs_max;
};

struct unwinder;
struct file_tables;

/*
 * Of given mappings, whose files are opened as `pid` sees them (target_mapping_file()) when they are first needed.  The
 * mappings become the unwinder's, also on failure.  Unwinders may share the tables, which outlive them; NULL: it has
 * its own.  0 or -errno.
 */
int unwinder__new(pid_t pid, target_mappings *mappings, struct file_tables *tables, struct unwinder **unwinder);
void unwinder__free(struct unwinder *unwinder); /* NULL-safe */
/* The mappings have changed (dlopen, exec): reads them again.  0 or -errno, and then they stay as they were. */
int unwinder__refresh(struct unwinder *unwinder);
/*
 * Of that process from now on: takes its mappings, also on failure.  What is known of files that both have stays. 0 or
 * -ENOMEM.
 */
int unwinder__move(struct unwinder *unwinder, pid_t pid, target_mappings *mappings);
const target_mappings *unwinder__mappings(const struct unwinder *unwinder);
/* Has a file been written to, or got another name, since it was read? */
bool unwinder__is_changed(const struct unwinder *unwinder);
/* What lies at an address, as target_mapping_name() says; NULL: nothing. */
const char *unwinder__place(const struct unwinder *unwinder, uint64_t addr, char *buf, size_t sz);
/* Is the code at that address of no file that can be read: made by the process itself, most often? */
bool unwinder__is_made(struct unwinder *unwinder, uint64_t addr);
/* Is there executable code at that address? */
bool unwinder__is_code(const struct unwinder *unwinder, uint64_t addr);

/* Innermost first; at most UNWIND_FRAMES_MAX.  How many, at least one. */
size_t unwinder__frames(struct unwinder *unwinder, const struct unwind_input *input,
			struct unwind_frame frames[UNWIND_FRAMES_MAX], enum unwind_end *end);

/* What .eh_frame says there, valid until the next call; NULL: nothing. */
const struct unwind_rule *unwinder__rule(struct unwinder *unwinder, uint64_t addr);

#endif
