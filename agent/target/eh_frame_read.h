/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the .eh_frame of one ELF file, in whylate-symbols.  The file is hostile until proven otherwise. */
#ifndef WHYLATE_TARGET_EH_FRAME_READ_H
#define WHYLATE_TARGET_EH_FRAME_READ_H

#include "target/elf_image.h"
#include "target/elf_rows.h"

/* Into rows that are zero: 0 or -errno as eh_frame__read() has it. */
int eh_frame_read(const struct elf_image *image, bool functions_only, struct elf_rows *rows);

#endif
