/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What .eh_frame knows of a file's code: where functions begin and end, also those without a name, and how to get from
 * a frame to its caller's at every instruction.  whylate-symbols reads it, see elf_reader.h.
 */
#ifndef WHYLATE_TARGET_EH_FRAME_H
#define WHYLATE_TARGET_EH_FRAME_H

#include "target/frame_rows.h"

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

struct eh_frame;

/*
 * Of an open file, which stays the caller's: the functions, and how frames are left at every instruction, or at the
 * functions' first ones alone.  NULL and errno: ENOENT it has none, ENOEXEC, ENOMEM, EAGAIN and ENODATA as of
 * elf_reader_read().  Damaged entries are left out.
 */
struct eh_frame *eh_frame__read(int fd, bool functions_only);
void eh_frame__free(struct eh_frame *frame);
size_t eh_frame__sz(const struct eh_frame *frame); /* bytes that it takes; NULL: 0 */

/* By address; several may begin at one address, and they may overlap. */
size_t eh_frame__functions(const struct eh_frame *frame, const struct frame_function **functions);
/* What holds before the function's first instruction; NULL: it cannot be told. */
const struct frame_rule *eh_frame__first_rule(const struct eh_frame *frame, const struct frame_function *function);
/* What holds before the instruction at that address (of several functions: of the one that begins last); NULL. */
const struct frame_rule *eh_frame__rule(const struct eh_frame *frame, uint64_t addr);
const struct unwind_where *eh_frame__lines(const struct eh_frame *frame, const struct frame_rule *rule);
/* All of the file's expressions, one behind the other. */
const struct unwind_op *eh_frame__ops(const struct eh_frame *frame);

#endif
