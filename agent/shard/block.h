/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A block of rows as a reader hands it out: columns of values. */
#ifndef WHYLATE_SHARD_BLOCK_H
#define WHYLATE_SHARD_BLOCK_H

#include "shard/table.h"

#include <stdbool.h>
#include <stdint.h>

struct shard_block_column {
	const char *name;
	enum shard_type type;
	enum shard_unit unit;
	bool nullable;
	const union shard_value *values; /* row_cnt of them, 0 or NULL where null; valid until the next block */
	const uint64_t *nulls;           /* bitmap over rows, or NULL: none is null */
};

struct shard_block {
	const char *path; /* the file it came from */
	const char *table;
	uint64_t session_id;
	uint32_t row_cnt;
	uint32_t column_cnt;
	const struct shard_block_column *columns;
};

/* The column of that name, or NULL (an older or newer writer may lack it). */
const struct shard_block_column *shard_block__column(const struct shard_block *block, const char *name);

#endif
