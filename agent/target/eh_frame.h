/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What .eh_frame knows of a file's code: where functions begin and end, also those without a name, and how far the
 * stack pointer is from the frame at every instruction.  The table is hostile until proven otherwise.
 */
#ifndef WHYLATE_TARGET_EH_FRAME_H
#define WHYLATE_TARGET_EH_FRAME_H

#include "target/elf_image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#define EH_REG_SP   7
#define EH_REG_FP   6
#define EH_ENTRY_SP 8 /* CFA - stack pointer at a function's entry */
#elif defined(__aarch64__)
#define EH_REG_SP   31
#define EH_REG_FP   29
#define EH_ENTRY_SP 0
#else
#define EH_REG_SP   UINT32_MAX
#define EH_REG_FP   UINT32_MAX
#define EH_ENTRY_SP 0
#endif

/* One FDE: a function, or a piece of one. */
struct eh_function {
	uint64_t addr, size; /* as linked; size > 0 */
	uint64_t lsda;       /* address of its exception table; 0: none */
	uint32_t cie;
	uint32_t code_off, code_end; /* its call frame instructions, into the table */
};

/* The canonical frame address is the register's value + off.  On x86 it is 8 above the return address. */
struct eh_cfa {
	uint32_t reg;
	int64_t off;
};

struct eh_frame;

/* NULL and errno: ENOENT it has none, ENOEXEC, ENOMEM.  Damaged entries are left out. */
struct eh_frame *eh_frame__read(const struct elf_image *image);
void eh_frame__free(struct eh_frame *frame);

/* By address; several may begin at one address, and they may overlap. */
size_t eh_frame__functions(const struct eh_frame *frame, const struct eh_function **functions);
/* That which covers addr (of several the one that begins last); NULL. */
const struct eh_function *eh_frame__at(const struct eh_frame *frame, uint64_t addr);
/* The CFA before the instruction at addr is executed: 0, -ENOTSUP (an expression), or -ENOEXEC. */
int eh_frame__cfa(const struct eh_frame *frame, const struct eh_function *function, uint64_t addr, struct eh_cfa *cfa);
/* Does its unwinding end there, because nothing has called it (a program or a thread begins so)? */
bool eh_frame__is_outermost(const struct eh_frame *frame, const struct eh_function *function);
/* The code that a signal handler returns to: not called. */
bool eh_frame__is_signal_frame(const struct eh_frame *frame, const struct eh_function *function);

#endif
