// SPDX-License-Identifier: GPL-2.0-or-later
#include "shard/table.h"

#include <whylate/record.h>

enum {
	COUNTER_LENGTH = INTERVAL_FIXED_CNT,
	COUNTER_COUNT = COUNTER_LENGTH + WL_STATE_CNT,
	COUNTER_TALLY = COUNTER_COUNT + WL_STATE_CNT,
	COUNTER_HW = COUNTER_TALLY + WL_TALLY_CNT,
	COUNTER_END = COUNTER_HW + SHARD_HW_CNT,
	COUNTER_CNT = COUNTER_END - COUNTER_LENGTH,
};

enum {
#define TABLE_BEGIN(table, name) table##_COLUMN_CNT = table##_FIXED_CNT
#define COLUMN_COUNTERS(table)   +COUNTER_CNT
#define TABLE_END(table)         ,
#include <whylate/table.def>
};

_Static_assert(INTERVAL_COLUMN_CNT <= SHARD_ROW_COLUMNS_MAX, "SHARD_ROW_COLUMNS_MAX");

/* One array per table; designated, because the counters come from other files than the columns before them. */
static const struct {
#define TABLE_BEGIN(table, name) struct shard_column table[table##_COLUMN_CNT];
#include <whylate/table.def>
} columns = {
#define COLUMN(table, id, name, type, unit, nullable) \
	.table[table##_##id] = {#name, SHARD_##type, SHARD_UNIT_##unit, nullable},
#include <whylate/table.def>
#define STATE(id, name, category)                                                                                      \
	.INTERVAL[COUNTER_LENGTH + WL_STATE_##id] = {"ns." name, SHARD_U64, SHARD_UNIT_NS, false},                     \
				   .INTERVAL[COUNTER_COUNT + WL_STATE_##id] = {"n." name, SHARD_U64, SHARD_UNIT_COUNT, \
									       false},
#include <whylate/state.def>
#define TALLY(id, name) .INTERVAL[COUNTER_TALLY + WL_TALLY_##id] = {"n." name, SHARD_U64, SHARD_UNIT_COUNT, false},
#include <whylate/tally.def>
#define HWCOUNTER(id, name, type, config, group, rotation) \
	.INTERVAL[COUNTER_HW + SHARD_HW_##id] = {name, SHARD_U64, SHARD_UNIT_COUNT, true},
#include <whylate/hwcounter.def>
};

const struct shard_table shard_tables[SHARD_TABLE_CNT] = {
#define TABLE_BEGIN(table, name) [SHARD_TABLE_##table] = {#name, columns.table, table##_COLUMN_CNT},
#include <whylate/table.def>
};

uint32_t interval_column_length(uint32_t state)
{
	return COUNTER_LENGTH + state;
}

uint32_t interval_column_count(uint32_t state)
{
	return COUNTER_COUNT + state;
}

uint32_t interval_column_tally(uint32_t tally)
{
	return COUNTER_TALLY + tally;
}

uint32_t interval_column_hw(uint32_t hwcounter)
{
	return COUNTER_HW + hwcounter;
}
