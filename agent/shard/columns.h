/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Values of a block that a reader gives: a column that is absent, of another type or null in a row has a default. */
#ifndef WHYLATE_SHARD_COLUMNS_H
#define WHYLATE_SHARD_COLUMNS_H

#include "shard/reader.h"
#include "shard/table.h"

#include <stdbool.h>

/* The column if it is there and of that type, or NULL. */
static inline const struct shard_block_column *block_column(const struct shard_block *block, const char *name,
							    enum shard_type type)
{
	const struct shard_block_column *column = shard_block__column(block, name);

	return column && column->type == type ? column : NULL;
}

/* One by its number in this build's schema, such as interval_column_length(state). */
static inline const struct shard_block_column *block_column_at(const struct shard_block *block,
							       enum shard_table_id table, uint32_t column)
{
	const struct shard_column *wanted = &shard_tables[table].columns[column];

	return block_column(block, wanted->name, wanted->type);
}

/*
 * struct interval_columns, struct segment_columns, …: the columns of a block that this build's schema has (table.def),
 * NULL where one is absent or of another type.
 */
#define TABLE_BEGIN(table, name)                      struct name##_columns {
#define COLUMN(table, id, name, type, unit, nullable) const struct shard_block_column *name;
#define TABLE_END(table) \
	}                \
	;
#include <whylate/table.def>

static inline void block_columns_find(const struct shard_block *block, enum shard_table_id table, uint32_t cnt,
				      const struct shard_block_column **found)
{
	for (uint32_t c = 0; c < cnt; c++)
		found[c] = block_column_at(block, table, c);
}

/* const struct stack_columns col = block_columns(block, STACK, stack); */
#define block_columns(block, TABLE, name)                                                               \
	({                                                                                              \
		struct name##_columns columns_;                                                         \
                                                                                                        \
		block_columns_find((block), SHARD_TABLE_##TABLE, TABLE##_FIXED_CNT, (void *)&columns_); \
		columns_;                                                                               \
	})

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

static inline double column_f64_or(const struct shard_block_column *column, uint32_t row, double otherwise)
{
	return column_is_null(column, row) ? otherwise : column->values[row].f64;
}

#endif
