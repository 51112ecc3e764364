/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds a variable of one ELF file by its name, in whylate-symbols.  The file is hostile until proven otherwise. */
#ifndef WHYLATE_TARGET_VARIABLE_READ_H
#define WHYLATE_TARGET_VARIABLE_READ_H

#include "target/elf_image.h"
#include "target/elf_rows.h"

/* In .dynsym, or in .symtab of a program that exports nothing; kind: STT_OBJECT or STT_TLS.  0. */
int variable_read(const struct elf_image *image, const char *name, unsigned kind, struct elf_variable *variable);

#endif
