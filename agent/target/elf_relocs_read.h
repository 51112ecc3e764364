/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads what the dynamic linker fills in and is told of one ELF file, in whylate-symbols.  The file is hostile until
 * proven otherwise.
 */
#ifndef WHYLATE_TARGET_ELF_RELOCS_READ_H
#define WHYLATE_TARGET_ELF_RELOCS_READ_H

#include "target/elf_image.h"
#include "target/elf_rows.h"

/* Slots and code pointers into rows that are zero: 0 or -ENOMEM.  Damaged tables are left out. */
int elf_relocs_read(const struct elf_image *image, struct elf_rows *rows);
/* Libraries, and their names behind the names that there are: 0 or -ENOMEM. */
int elf_dynamic_read(const struct elf_image *image, struct elf_rows *rows);

#endif
