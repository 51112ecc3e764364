/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads the USDT markers of one ELF file (`.note.stapsdt`), in whylate-symbols.  The file is hostile until proven
 * otherwise.
 */
#ifndef WHYLATE_TARGET_USDT_NOTES_H
#define WHYLATE_TARGET_USDT_NOTES_H

#include "target/elf_image.h"
#include "target/elf_rows.h"

/* Into rows that are zero: 0, also where there is none, or -ENOMEM.  A damaged note ends the section there. */
int usdt_notes_read(const struct elf_image *image, struct elf_rows *rows);

#endif
