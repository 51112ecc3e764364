/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the dynamic linker fills in: whose address a slot will hold, and which addresses of code the data holds. */
#ifndef WHYLATE_TARGET_ELF_RELOCS_H
#define WHYLATE_TARGET_ELF_RELOCS_H

#include "target/elf_image.h"

struct elf_slot {
	uint64_t addr;
	const char *name; /* of the function it is bound to; NULL: the code at `value` */
	uint64_t value;
	bool is_ifunc; /* `value` only chooses */
};

struct elf_relocs;

/* Damaged tables are left out.  NULL: out of memory. */
struct elf_relocs *elf_relocs__read(const struct elf_image *image);
void elf_relocs__free(struct elf_relocs *relocs);

/* NULL when the linker does not fill that slot. */
const struct elf_slot *elf_relocs__slot(const struct elf_relocs *relocs, uint64_t addr);
/* All of them, by address. */
size_t elf_relocs__slots(const struct elf_relocs *relocs, const struct elf_slot **slots);
/* Does the file's data hold an address of code within [first, last]?  (Jump tables, function pointers.) */
bool elf_relocs__points_into(const struct elf_relocs *relocs, uint64_t first, uint64_t last);

#endif
