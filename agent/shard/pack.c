// SPDX-License-Identifier: GPL-2.0-or-later
#include "shard/pack.h"

#include "shard/crc32c.h"

#include <stdio.h>
#include <string.h>

static int put_bytes(struct shard_buf *out, const void *bytes, size_t sz)
{
	if (vec_reserve(out, sz))
		return -ENOMEM;
	memcpy(out->items + out->cnt, bytes, sz);
	out->cnt += sz;
	return 0;
}

static int put_byte(struct shard_buf *out, uint8_t byte)
{
	return vec_push(out, byte);
}

/* The bitmap's bytes, lowest row first, whatever the machine. */
static int put_bitmap(struct shard_buf *out, const struct shard_stage *stage, uint32_t c)
{
	size_t sz = (stage->row_cnt + 7) / 8;

	if (vec_reserve(out, sz))
		return -ENOMEM;
	for (size_t i = 0; i < sz; i++)
		out->items[out->cnt++] = shard_stage__nulls(stage, c, i / 8) >> i % 8 * 8;
	return 0;
}

static int put_strings(struct shard_buf *out, const struct shard_strings *strings)
{
	return shard_put_varint(out, strings->offs.cnt) ?: put_bytes(out, strings->bytes.items, strings->bytes.cnt);
}

/* The values at rows that are not null. */
static int packer__compact(struct shard_packer *packer, const struct shard_stage *stage, uint32_t c)
{
	const uint64_t *values = stage->values[c];

	packer->dense.cnt = 0;
	if (vec_reserve(&packer->dense, stage->row_cnt))
		return -ENOMEM;
	for (uint32_t i = 0; i < stage->row_cnt; i++)
		if (!(shard_stage__nulls(stage, c, i / 64) >> i % 64 & 1))
			packer->dense.items[packer->dense.cnt++] = values[i];
	return 0;
}

/* Timestamps and identifiers mostly stand close to the one before: pickup_ts to begin_ts, end_tid to tid. */
static void packer__find_ref(const struct shard_packer *packer, const struct shard_stage *stage, uint32_t c,
			     struct shard_encode_hint *hint)
{
	const struct shard_column *columns = stage->table->columns;

	for (uint32_t i = c; i--;) {
		if (columns[i].type != SHARD_U64 || columns[i].unit != columns[c].unit)
			continue;
		if (packer->null_cnts[i] || !stage->values[i])
			return;
		hint->ref = stage->values[i];
		hint->ref_idx = i;
		return;
	}
}

static int packer__put_values(struct shard_packer *packer, const struct shard_stage *stage, uint32_t c)
{
	const struct shard_column *column = &stage->table->columns[c];
	struct shard_encode_hint hint = {.try_dict = column->unit == SHARD_UNIT_ID || column->type == SHARD_F64};

	if (!stage->values[c])
		return put_byte(&packer->data, SHARD_ENC_CONST) ?: shard_put_varint(&packer->data, 0);
	if (packer->null_cnts[c]) {
		int err = packer__compact(packer, stage, c);

		return err
			       ?: shard_encoder__put(&packer->encoder, &packer->data, packer->dense.items,
						     packer->dense.cnt, &hint);
	}
	if (column->type == SHARD_U64 && (column->unit == SHARD_UNIT_TS || column->unit == SHARD_UNIT_ID))
		packer__find_ref(packer, stage, c, &hint);
	return shard_encoder__put(&packer->encoder, &packer->data, stage->values[c], stage->row_cnt, &hint);
}

static int packer__put_column(struct shard_packer *packer, const struct shard_stage *stage, uint32_t c)
{
	struct shard_buf *data = &packer->data;
	int err;

	if (packer->null_cnts[c] == stage->row_cnt)
		return put_byte(data, SHARD_NULLS_ALL);
	if (packer->null_cnts[c])
		err = put_byte(data, SHARD_NULLS_BITMAP) ?: put_bitmap(data, stage, c);
	else
		err = put_byte(data, SHARD_NULLS_NONE);
	if (!err && stage->table->columns[c].type == SHARD_STR)
		err = put_strings(data, &stage->strings[c]);
	return err ?: packer__put_values(packer, stage, c);
}

static void packer__count_nulls(struct shard_packer *packer, const struct shard_stage *stage)
{
	uint32_t column_cnt = stage->table->column_cnt;

	memset(packer->null_cnts, 0, column_cnt * sizeof(*packer->null_cnts));
	for (uint32_t w = 0; w < (stage->row_cnt + 63) / 64; w++)
		for (uint32_t c = 0; c < column_cnt; c++)
			packer->null_cnts[c] += __builtin_popcountll(shard_stage__nulls(stage, c, w));
}

static int packer__put_schema(struct shard_packer *packer, const struct shard_column *column, size_t data_sz)
{
	struct shard_buf *raw = &packer->raw;
	const uint8_t kind[] = {column->type, column->unit, column->nullable};

	return put_bytes(raw, column->name, strlen(column->name) + 1) ?: put_bytes(raw, kind, sizeof(kind)) ?:
	       shard_put_varint(raw, data_sz);
}

static void find_times(const struct shard_stage *stage, struct shard_block_header *header)
{
	header->min_ts = UINT64_MAX;
	header->max_ts = 0;
	for (uint32_t c = 0; c < stage->table->column_cnt; c++) {
		const struct shard_column *column = &stage->table->columns[c];
		const uint64_t *values = stage->values[c];

		if (column->type != SHARD_U64 || column->unit != SHARD_UNIT_TS)
			continue;
		for (uint32_t i = 0; i < stage->row_cnt; i++) {
			uint64_t ts = values ? values[i] : 0;

			if (shard_stage__nulls(stage, c, i / 64) >> i % 64 & 1)
				continue;
			if (ts < header->min_ts)
				header->min_ts = ts;
			if (ts > header->max_ts)
				header->max_ts = ts;
		}
	}
}

int shard_packer__pack(struct shard_packer *packer, const struct shard_stage *stage, struct shard_block_header *header,
		       struct shard_buf *out)
{
	const struct shard_table *table = stage->table;
	enum shard_codec codec = header->codec;
	size_t header_off = out->cnt, payload_off = header_off + SHARD_BLOCK_HEADER_SZ;
	int err = 0;

	packer->raw.cnt = packer->data.cnt = 0;
	packer__count_nulls(packer, stage);
	for (uint32_t c = 0; !err && c < table->column_cnt; c++) {
		size_t before_sz = packer->data.cnt;

		err = packer__put_column(packer, stage, c);
		if (!err)
			err = packer__put_schema(packer, &table->columns[c], packer->data.cnt - before_sz);
	}
	if (!err)
		err = put_bytes(&packer->raw, packer->data.items, packer->data.cnt);
	if (err || vec_reserve(out, SHARD_BLOCK_HEADER_SZ))
		return -ENOMEM;
	out->cnt = payload_off;
	err = shard_compressor__pack(&packer->compressor, &codec, packer->raw.items, packer->raw.cnt, out);
	if (err) {
		out->cnt = header_off;
		return err;
	}
	header->codec = codec;
	header->row_cnt = stage->row_cnt;
	header->column_cnt = table->column_cnt;
	header->raw_sz = packer->raw.cnt;
	header->stored_sz = out->cnt - payload_off;
	header->body_crc = crc32c(0, out->items + payload_off, header->stored_sz);
	snprintf(header->table, sizeof(header->table), "%s", table->name);
	find_times(stage, header);
	shard_block_header__put(out->items + header_off, header);
	return 0;
}

void shard_packer__clear(struct shard_packer *packer)
{
	shard_encoder__clear(&packer->encoder);
	shard_compressor__clear(&packer->compressor);
	vec_free(&packer->raw);
	vec_free(&packer->data);
	vec_free(&packer->dense);
}
