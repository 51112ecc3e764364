// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/elf_relocs.h"

#include "base/order.h"
#include "target/elf_reader.h"

#include <errno.h>
#include <stdlib.h>

struct elf_relocs {
	struct elf_rows rows;
};

struct elf_relocs *elf_relocs__read(int fd)
{
	const struct elf_read read = {.fd = fd, .what = ELF_READ_RELOCS};
	struct elf_relocs *relocs = calloc(1, sizeof(*relocs));
	int err = relocs ? elf_reader_read(&read, &relocs->rows) : -ENOMEM;

	if (!err)
		return relocs;
	elf_relocs__free(relocs);
	errno = -err;
	return NULL;
}

void elf_relocs__free(struct elf_relocs *relocs)
{
	if (relocs)
		elf_rows_free(&relocs->rows);
	free(relocs);
}

const struct elf_slot *elf_relocs__slot(const struct elf_relocs *relocs, uint64_t addr)
{
	const struct elf_slot *slots = relocs->rows.slots.items;
	size_t at = search_first(0, relocs->rows.slots.cnt, mid, slots[mid].addr >= addr);

	return at < relocs->rows.slots.cnt && slots[at].addr == addr ? &slots[at] : NULL;
}

size_t elf_relocs__slots(const struct elf_relocs *relocs, const struct elf_slot **slots)
{
	*slots = relocs->rows.slots.items;
	return relocs->rows.slots.cnt;
}

const char *elf_relocs__name(const struct elf_relocs *relocs, const struct elf_slot *slot)
{
	return slot->name_off == ELF_ROWS_NO_NAME ? NULL : relocs->rows.names.items + slot->name_off;
}

bool elf_relocs__points_into(const struct elf_relocs *relocs, uint64_t first, uint64_t last)
{
	const uint64_t *addrs = relocs->rows.code_pointers.items;
	size_t low = search_first(0, relocs->rows.code_pointers.cnt, mid, addrs[mid] >= first);

	return low < relocs->rows.code_pointers.cnt && addrs[low] <= last;
}
