/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the dynamic linker fills in: whose address a slot will hold, and which addresses of code the data holds.
 * whylate-symbols reads it, see elf_reader.h.
 */
#ifndef WHYLATE_TARGET_ELF_RELOCS_H
#define WHYLATE_TARGET_ELF_RELOCS_H

#include "target/elf_rows.h"

struct elf_relocs;

/*
 * Of an open file, which stays the caller's; damaged tables are left out.  NULL and errno: ENOEXEC, ENOMEM, EAGAIN and
 * ENODATA as of elf_reader_read().
 */
struct elf_relocs *elf_relocs__read(int fd);
void elf_relocs__free(struct elf_relocs *relocs);

/* NULL when the linker does not fill that slot. */
const struct elf_slot *elf_relocs__slot(const struct elf_relocs *relocs, uint64_t addr);
/* All of them, by address. */
size_t elf_relocs__slots(const struct elf_relocs *relocs, const struct elf_slot **slots);
/* Of the function that the slot is bound to; NULL: the code at its `value`. */
const char *elf_relocs__name(const struct elf_relocs *relocs, const struct elf_slot *slot);
/* Does the file's data hold an address of code within [first, last]?  (Jump tables, function pointers.) */
bool elf_relocs__points_into(const struct elf_relocs *relocs, uint64_t first, uint64_t last);

#endif
