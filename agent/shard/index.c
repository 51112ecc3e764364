// SPDX-License-Identifier: GPL-2.0-or-later
#include "shard/index.h"

static const struct shard_column columns[] = {
	{"off", SHARD_U64, SHARD_UNIT_NONE, false},   {"sz", SHARD_U64, SHARD_UNIT_NONE, false},
	{"table", SHARD_STR, SHARD_UNIT_NONE, false}, {"row_cnt", SHARD_U64, SHARD_UNIT_COUNT, false},
	{"min_ts", SHARD_U64, SHARD_UNIT_NONE, true}, {"max_ts", SHARD_U64, SHARD_UNIT_NONE, true},
};

enum { INDEX_OFF, INDEX_SZ, INDEX_TABLE, INDEX_ROW_CNT, INDEX_MIN_TS, INDEX_MAX_TS, INDEX_COLUMN_CNT };

static const struct shard_table table = {SHARD_INDEX_TABLE, columns, INDEX_COLUMN_CNT};

struct shard_stage *shard_index__new(uint32_t row_max)
{
	return shard_stage__new(&table, row_max);
}

int shard_index__add(struct shard_stage *index, const struct shard_block_header *header, uint64_t off, uint64_t sz)
{
	struct shard_row row = {0};

	row.values[INDEX_OFF].u64 = off;
	row.values[INDEX_SZ].u64 = sz;
	row.values[INDEX_TABLE].str = header->table;
	row.values[INDEX_ROW_CNT].u64 = header->row_cnt;
	row.values[INDEX_MIN_TS].u64 = header->min_ts;
	row.values[INDEX_MAX_TS].u64 = header->max_ts;
	if (header->min_ts > header->max_ts) {
		shard_row__set_null(&row, INDEX_MIN_TS);
		shard_row__set_null(&row, INDEX_MAX_TS);
	}
	return shard_stage__append(index, &row);
}

int shard_index__put(const struct shard_stage *index, struct shard_packer *packer, enum shard_codec codec,
		     uint64_t session_id, uint64_t index_off, struct shard_buf *out)
{
	struct shard_block_header header = {.kind = SHARD_BLOCK_INDEX, .codec = codec, .session_id = session_id};
	int err = index->row_cnt ? shard_packer__pack(packer, index, &header, out) : 0;

	if (err)
		return err;
	if (vec_reserve(out, SHARD_TRAILER_SZ))
		return -ENOMEM;
	shard_trailer__put(out->items + out->cnt, index->row_cnt ? index_off : 0);
	out->cnt += SHARD_TRAILER_SZ;
	return 0;
}
