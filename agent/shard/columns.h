/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Values of a block that a reader gives: a column that is absent, of another type or null in a row has a default. */
#ifndef WHYLATE_SHARD_COLUMNS_H
#define WHYLATE_SHARD_COLUMNS_H

#include "shard/reader.h"

#include <stdbool.h>

/* The column if it is there and of that type, or NULL. */
static inline const struct shard_block_column *block_column(const struct shard_block *block, const char *name,
							    enum shard_type type)
{
	const struct shard_block_column *column = shard_block__column(block, name);

	return column && column->type == type ? column : NULL;
}

static inline bool column_is_null(const struct shard_block_column *column, uint32_t row)
{
	return !column || (column->nulls && column->nulls[row / 64] >> (row % 64) & 1);
}

/* "" where it is absent or null. */
static inline const char *column_text(const struct shard_block_column *column, uint32_t row)
{
	return column_is_null(column, row) || !column->values[row].str ? "" : column->values[row].str;
}

static inline uint64_t column_u64(const struct shard_block_column *column, uint32_t row)
{
	return column_is_null(column, row) ? 0 : column->values[row].u64;
}

#endif
