// SPDX-License-Identifier: GPL-2.0-or-later
#include "shard/stage.h"

#include <string.h>

/* A block with this much text is full whatever its rows: keeps it far below SHARD_RAW_MAX. */
#define STRING_BYTES_MAX (4u << 20)

#define NULL_WORDS(rows) (((rows) + 63) / 64)

static int stage__alloc(struct shard_stage *stage)
{
	const struct shard_table *table = stage->table;

	for (uint32_t c = 0; c < table->column_cnt; c++) {
		stage->columns_mask[c / 64] |= 1ULL << c % 64;
		if (table->columns[c].type == SHARD_STR)
			stage->strings_mask[c / 64] |= 1ULL << c % 64;
		if (table->columns[c].nullable)
			stage->nullable[c / 64] |= 1ULL << c % 64;
	}
	stage->values = calloc(table->column_cnt, sizeof(*stage->values));
	stage->strings = calloc(table->column_cnt, sizeof(*stage->strings));
	stage->nulls = calloc(NULL_WORDS((size_t)stage->row_max) * table->column_cnt, sizeof(*stage->nulls));
	return stage->values && stage->strings && stage->nulls ? 0 : -ENOMEM;
}

struct shard_stage *shard_stage__new(const struct shard_table *table, uint32_t row_max)
{
	struct shard_stage *stage;

	if (!row_max || !table->column_cnt || table->column_cnt > SHARD_ROW_COLUMNS_MAX) {
		errno = EINVAL;
		return NULL;
	}
	stage = calloc(1, sizeof(*stage));
	if (!stage)
		return NULL;
	if (row_max > SHARD_ROWS_MAX)
		row_max = SHARD_ROWS_MAX;
	if (row_max > SHARD_CELLS_MAX / table->column_cnt)
		row_max = SHARD_CELLS_MAX / table->column_cnt;
	stage->table = table;
	stage->row_max = row_max;
	if (stage__alloc(stage)) {
		shard_stage__free(stage);
		errno = ENOMEM;
		return NULL;
	}
	return stage;
}

static int check_row(const struct shard_stage *stage, const struct shard_row *row)
{
	for (uint32_t w = 0; w < SHARD_ROW_NULL_WORDS; w++) {
		if (row->nulls[w] & stage->columns_mask[w] & ~stage->nullable[w])
			return -EINVAL;
		for (uint64_t left = stage->strings_mask[w] & ~row->nulls[w]; left; left &= left - 1)
			if (!row->values[w * 64 + __builtin_ctzll(left)].str)
				return -EINVAL;
	}
	return 0;
}

static int put_string(struct shard_stage *stage, uint32_t c, const char *str, uint64_t *idx)
{
	struct shard_strings *strings = &stage->strings[c];
	size_t before_sz = strings->bytes.cnt;
	uint32_t idx32;
	int err;

	err = shard_strings__index(strings, str, &idx32);
	stage->string_bytes += strings->bytes.cnt - before_sz;
	*idx = idx32;
	return err;
}

/* One value that is not zero, or a string. */
static int put_value(struct shard_stage *stage, const struct shard_row *row, uint32_t c)
{
	uint64_t value = row->values[c].u64;
	int err;

	if (shard_row__is_null(row, c))
		return 0;
	if (stage->table->columns[c].type == SHARD_F64) {
		value = __builtin_bswap64(value);
	} else if (stage->table->columns[c].type == SHARD_STR) {
		err = put_string(stage, c, row->values[c].str, &value);
		if (err || !value)
			return err;
	}
	if (!stage->values[c]) {
		stage->values[c] = calloc(stage->row_max, sizeof(uint64_t));
		if (!stage->values[c])
			return -ENOMEM;
	}
	stage->values[c][stage->row_cnt] = value;
	return 0;
}

static int put_values(struct shard_stage *stage, const struct shard_row *row)
{
	uint32_t column_cnt = stage->table->column_cnt;
	int err = 0;

	for (uint32_t c = 0; !err && c < column_cnt; c++)
		if (row->values[c].u64)
			err = put_value(stage, row, c);
	return err;
}

static void put_nulls(struct shard_stage *stage, const struct shard_row *row)
{
	uint64_t *words = stage->nulls + (size_t)(stage->row_cnt / 64) * stage->table->column_cnt;
	uint64_t bit = 1ULL << stage->row_cnt % 64;

	for (uint32_t w = 0; w < SHARD_ROW_NULL_WORDS; w++)
		for (uint64_t left = row->nulls[w] & stage->nullable[w]; left; left &= left - 1)
			words[w * 64 + __builtin_ctzll(left)] |= bit;
}

int shard_stage__append(struct shard_stage *stage, const struct shard_row *row)
{
	int err = check_row(stage, row);

	if (err)
		return err;
	err = put_values(stage, row);
	if (err) {
		for (uint32_t c = 0; c < stage->table->column_cnt; c++)
			if (stage->values[c])
				stage->values[c][stage->row_cnt] = 0;
		return err;
	}
	put_nulls(stage, row);
	stage->row_cnt++;
	return 0;
}

bool shard_stage__full(const struct shard_stage *stage)
{
	return stage->row_cnt == stage->row_max || stage->string_bytes >= STRING_BYTES_MAX;
}

void shard_stage__reset(struct shard_stage *stage)
{
	uint32_t column_cnt = stage->table->column_cnt;

	for (uint32_t c = 0; c < column_cnt; c++) {
		if (stage->values[c])
			memset(stage->values[c], 0, stage->row_cnt * sizeof(uint64_t));
		if (stage->table->columns[c].type == SHARD_STR)
			shard_strings__reset(&stage->strings[c]);
	}
	memset(stage->nulls, 0, NULL_WORDS((size_t)stage->row_cnt) * column_cnt * sizeof(*stage->nulls));
	stage->row_cnt = 0;
	stage->string_bytes = 0;
}

void shard_stage__free(struct shard_stage *stage)
{
	if (!stage)
		return;
	for (uint32_t c = 0; stage->values && c < stage->table->column_cnt; c++)
		free(stage->values[c]);
	for (uint32_t c = 0; stage->strings && c < stage->table->column_cnt; c++)
		shard_strings__clear(&stage->strings[c]);
	free(stage->values);
	free(stage->strings);
	free(stage->nulls);
	free(stage);
}
