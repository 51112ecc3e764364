/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How the frames of Go's own code are left, from the runtime's table of functions (.gopclntab): its pcsp tables have
 * the distance of the stack pointer from the return address at every instruction, as Go's own tracebacks need it.  Go's
 * code has no .eh_frame, and its assembly uses the frame pointer as it likes.  The file is hostile until proven
 * otherwise.
 */
#ifndef WHYLATE_TARGET_GO_FRAMES_H
#define WHYLATE_TARGET_GO_FRAMES_H

#include "target/elf_image.h"
#include "target/elf_rows.h"

/*
 * Adds steps and rules to what eh_frame_read() has made, which goes first where both know an address: 0, also where
 * there is no such table; -ENOMEM.  What is damaged, or too large, is left out.
 */
int go_frames_add(const struct elf_image *image, struct elf_rows *rows);

#endif
