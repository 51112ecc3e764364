/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What lies at a place of a file's data, by its symbols.  whylate-symbols reads it. */
#ifndef WHYLATE_TARGET_DATA_SYMBOL_H
#define WHYLATE_TARGET_DATA_SYMBOL_H

#include "target/elf_image.h"
#include "target/elf_rows.h"

/* The symbol there, or the gap between two, within the section that holds that offset from where the file is loaded. */
int data_symbol_read(const struct elf_image *image, uint64_t off, struct elf_datum *datum);

#endif
