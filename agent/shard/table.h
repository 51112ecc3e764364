/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The schema of the tables, generated from <whylate/table.def>.  A row is an array of union shard_value in column order
 * plus a bitmap of its nulls.
 */
#ifndef WHYLATE_SHARD_TABLE_H
#define WHYLATE_SHARD_TABLE_H

#include <stdbool.h>
#include <stdint.h>

enum shard_type { SHARD_U64 = 1, SHARD_F64 = 2, SHARD_STR = 3 };
enum shard_unit { SHARD_UNIT_NONE, SHARD_UNIT_NS, SHARD_UNIT_TS, SHARD_UNIT_COUNT, SHARD_UNIT_ID };

struct shard_column {
	const char *name;
	enum shard_type type;
	enum shard_unit unit;
	bool nullable;
};

struct shard_table {
	const char *name;
	const struct shard_column *columns;
	uint32_t column_cnt;
};

/* The tables this build writes.  A file may hold others, and others' columns: it describes itself. */
enum shard_table_id {
#define TABLE_BEGIN(table, name) SHARD_TABLE_##table,
#include <whylate/table.def>
	SHARD_TABLE_CNT
};

/* Column indexes: INTERVAL_SID, …, INTERVAL_FIXED_CNT; the counters of `interval` follow in the .def files' order. */
#define TABLE_BEGIN(table, name)  \
	enum shard_column_##table \
	{
#define COLUMN(table, id, name, type, unit, nullable) table##_##id,
#define TABLE_END(table)  \
	table##_FIXED_CNT \
	}                 \
	;
#include <whylate/table.def>

enum shard_hwcounter {
#define HWCOUNTER(id, name, type, config, group, rotation) SHARD_HW_##id,
#include <whylate/hwcounter.def>
	SHARD_HW_CNT
};

extern const struct shard_table shard_tables[SHARD_TABLE_CNT];

/* Column indexes of the counters of `interval`. */
uint32_t interval_column_length(uint32_t state); /* ns.STATE */
uint32_t interval_column_count(uint32_t state);  /* n.STATE */
uint32_t interval_column_tally(uint32_t tally);  /* n.TALLY */
uint32_t interval_column_hw(uint32_t hwcounter); /* enum shard_hwcounter */

/* Enough for a row of any table of this build, and for its null bitmap in 64-bit words. */
#define SHARD_ROW_COLUMNS_MAX 256
#define SHARD_ROW_NULL_WORDS  (SHARD_ROW_COLUMNS_MAX / 64)

union shard_value {
	uint64_t u64;
	double f64;
	const char *str; /* NUL-terminated UTF-8 or bytes; copied by the writer */
};

struct shard_row {
	union shard_value values[SHARD_ROW_COLUMNS_MAX];
	uint64_t nulls[SHARD_ROW_NULL_WORDS]; /* bit c of word c/64 set: column c is null and its value is ignored */
};

static inline void shard_row__set_null(struct shard_row *row, uint32_t column)
{
	row->nulls[column / 64] |= 1ULL << (column % 64);
}

static inline bool shard_row__is_null(const struct shard_row *row, uint32_t column)
{
	return row->nulls[column / 64] >> (column % 64) & 1;
}

/* How the payload of a block is compressed. */
enum shard_codec { SHARD_CODEC_NONE = 0, SHARD_CODEC_ZLIB = 1, SHARD_CODEC_ZSTD = 2 };

#endif
