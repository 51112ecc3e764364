// SPDX-License-Identifier: GPL-2.0-or-later
/* The sids of open intervals (bpf/opens.h), in memory that is shared with the programs. */
#include "bpf/knobs.h"
#include "capture/internal.h"

#include <sys/mman.h>

#define TABLE_SZ (OPEN_SETS * sizeof(struct open_set))

struct open_set *open_table__map(int map_fd)
{
	void *memory = mmap(NULL, TABLE_SZ, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

void open_table__unmap(struct open_set *table)
{
	if (table)
		munmap(table, TABLE_SZ);
}

bool open_table__next(const struct open_set *table, uint32_t *place)
{
	for (; *place < OPEN_SETS * OPEN_WAYS; (*place)++)
		if (__atomic_load_n(&table[*place / OPEN_WAYS].sids[*place % OPEN_WAYS], __ATOMIC_RELAXED))
			return true;
	return false;
}

void open_table__drop(struct open_set *table, uint32_t place)
{
	__atomic_store_n(&table[place / OPEN_WAYS].sids[place % OPEN_WAYS], 0, __ATOMIC_RELAXED);
}
