/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rows of one table that wait to become a block, column by column.  Most columns of most rows are zero: a zero is
 * not stored at all (the arrays begin as zeros, and one that never meets another value does not exist), so that
 * appending costs what the row says, not what the table could.
 */
#ifndef WHYLATE_SHARD_STAGE_H
#define WHYLATE_SHARD_STAGE_H

#include "shard/strings.h"
#include "shard/table.h"

struct shard_stage {
	const struct shard_table *table;
	uint32_t row_cnt;
	uint32_t row_max;
	size_t string_bytes;
	uint64_t **values; /* per column, row_max of them: STR is an index, F64 as in codec.h; NULL: all zero */
	struct shard_strings *strings; /* per column, STR only */
	uint64_t *nulls;               /* 64 rows at a time, a word per column: what one row touches lies together */
	uint64_t nullable[SHARD_ROW_NULL_WORDS];
	uint64_t columns_mask[SHARD_ROW_NULL_WORDS];
	uint64_t strings_mask[SHARD_ROW_NULL_WORDS];
};

/* row_max is lowered to what a reader accepts.  NULL and errno (EINVAL: no columns, or more than a row has). */
struct shard_stage *shard_stage__new(const struct shard_table *table, uint32_t row_max);

/*
 * 0; -EINVAL: a null where none may be, or a string that is NULL; -E2BIG: a string beyond SHARD_STRING_MAX; -ENOMEM.
 * The stage must not be full, and is as before on failure.
 */
int shard_stage__append(struct shard_stage *stage, const struct shard_row *row);

/* Which of the rows from word * 64 on are null in that column. */
static inline uint64_t shard_stage__nulls(const struct shard_stage *stage, uint32_t column, uint32_t word)
{
	return stage->nulls[(size_t)word * stage->table->column_cnt + column];
}

bool shard_stage__full(const struct shard_stage *stage);
void shard_stage__reset(struct shard_stage *stage);
void shard_stage__free(struct shard_stage *stage);

#endif
