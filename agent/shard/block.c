// SPDX-License-Identifier: GPL-2.0-or-later
#include "shard/block.h"

#include <string.h>

const struct shard_block_column *shard_block__column(const struct shard_block *block, const char *name)
{
	for (uint32_t c = 0; c < block->column_cnt; c++)
		if (!strcmp(block->columns[c].name, name))
			return &block->columns[c];
	return NULL;
}
