// SPDX-License-Identifier: GPL-2.0-or-later
#include "shard/unpack.h"

#include "shard/codec.h"

#include <string.h>

#define NULL_WORDS(rows) (((rows) + 63) / 64)

/* One column as the schema and the first bytes of its data describe it. */
struct shard_packed_column {
	const char *name;
	uint8_t type;
	uint8_t unit;
	bool nullable;
	bool known; /* of a type that this code can read */
	uint8_t nulls;
	bool zero; /* not null and zero in every row */
	struct shard_cursor data;
};

static int get_byte(struct shard_cursor *cursor, uint8_t *byte)
{
	if (cursor->pos == cursor->end)
		return -EBADMSG;
	*byte = *cursor->pos++;
	return 0;
}

static int get_name(struct shard_cursor *cursor, const char **name)
{
	const uint8_t *nul = memchr(cursor->pos, 0, cursor->end - cursor->pos);

	if (!nul)
		return -EBADMSG;
	*name = (const char *)cursor->pos;
	cursor->pos = nul + 1;
	return 0;
}

/* Leaves the size of the column's data between data.pos and data.end; where it is follows from the whole schema. */
static int get_schema(struct shard_cursor *cursor, struct shard_packed_column *column, uint64_t *data_sz)
{
	uint8_t flags;

	if (get_name(cursor, &column->name) || get_byte(cursor, &column->type) || get_byte(cursor, &column->unit) ||
	    get_byte(cursor, &flags) || shard_get_varint(cursor, data_sz))
		return -EBADMSG;
	if (*data_sz > SHARD_RAW_MAX)
		return -EBADMSG;
	column->nullable = flags & 1;
	column->known = column->type == SHARD_U64 || column->type == SHARD_F64 || column->type == SHARD_STR;
	if (column->unit > SHARD_UNIT_ID)
		column->unit = SHARD_UNIT_NONE;
	return 0;
}

static int column__peek(struct shard_packed_column *column)
{
	const uint8_t *data;

	if (!column->known)
		return 0;
	if (get_byte(&column->data, &column->nulls) || column->nulls > SHARD_NULLS_ALL)
		return -EBADMSG;
	if (column->nulls != SHARD_NULLS_NONE && !column->nullable)
		return -EBADMSG;
	data = column->data.pos;
	column->zero = column->nulls == SHARD_NULLS_NONE && column->type != SHARD_STR && column->data.end - data == 2 &&
		       data[0] == SHARD_ENC_CONST && !data[1];
	return 0;
}

static int unpacker__parse(struct shard_unpacker *unpacker, uint32_t column_cnt)
{
	struct shard_cursor cursor = {unpacker->raw.items, unpacker->raw.items + unpacker->raw.cnt};
	struct shard_packed_column *packed;
	uint64_t data_sz;
	size_t off = 0;

	unpacker->packed.cnt = 0;
	if (vec_reserve(&unpacker->packed, column_cnt))
		return -ENOMEM;
	packed = unpacker->packed.items;
	memset(packed, 0, column_cnt * sizeof(*packed));
	/* The data begin where the schema ends: offsets first, pointers once that is known. */
	for (uint32_t c = 0; c < column_cnt; c++) {
		if (get_schema(&cursor, &packed[c], &data_sz))
			return -EBADMSG;
		packed[c].data.pos = unpacker->raw.items + off;
		off += data_sz;
		if (off > unpacker->raw.cnt)
			return -EBADMSG;
		packed[c].data.end = unpacker->raw.items + off;
	}
	if (off > (size_t)(cursor.end - cursor.pos))
		return -EBADMSG;
	for (uint32_t c = 0; c < column_cnt; c++) {
		packed[c].data.pos += cursor.pos - unpacker->raw.items;
		packed[c].data.end += cursor.pos - unpacker->raw.items;
		if (column__peek(&packed[c]))
			return -EBADMSG;
	}
	unpacker->packed.cnt = column_cnt;
	return 0;
}

/* Takes all memory that the block's columns need, so that no pointer into it moves later. */
static int unpacker__reserve(struct shard_unpacker *unpacker, uint32_t row_cnt)
{
	size_t words = NULL_WORDS(row_cnt), value_cnt = 0, word_cnt = 0;

	for (size_t c = 0; c < unpacker->packed.cnt; c++) {
		const struct shard_packed_column *packed = &unpacker->packed.items[c];

		if (!packed->known)
			continue;
		if (!packed->zero && packed->nulls != SHARD_NULLS_ALL)
			value_cnt += row_cnt;
		if (packed->nulls == SHARD_NULLS_BITMAP)
			word_cnt += words;
	}
	unpacker->values.cnt = unpacker->nulls.cnt = unpacker->columns.cnt = unpacker->refs.cnt = 0;
	if (vec_reserve(&unpacker->values, value_cnt) || vec_reserve(&unpacker->nulls, word_cnt) ||
	    vec_reserve(&unpacker->columns, unpacker->packed.cnt) || vec_reserve(&unpacker->refs, unpacker->packed.cnt))
		return -ENOMEM;
	if (unpacker->zeros.cnt < row_cnt) {
		if (vec_reserve(&unpacker->zeros, row_cnt - unpacker->zeros.cnt) ||
		    vec_reserve(&unpacker->ones, words - unpacker->ones.cnt))
			return -ENOMEM;
		unpacker->zeros.cnt = row_cnt;
		unpacker->ones.cnt = words;
		memset(unpacker->zeros.items, 0, row_cnt * sizeof(*unpacker->zeros.items));
		memset(unpacker->ones.items, 0xff, words * sizeof(*unpacker->ones.items));
	}
	return 0;
}

static int unpacker__get_nulls(struct shard_unpacker *unpacker, struct shard_cursor *cursor, uint32_t row_cnt,
			       uint32_t *null_cnt, const uint64_t **nulls)
{
	size_t sz = (row_cnt + 7) / 8, words = NULL_WORDS(row_cnt);
	uint64_t *bitmap = unpacker->nulls.items + unpacker->nulls.cnt;

	if ((size_t)(cursor->end - cursor->pos) < sz)
		return -EBADMSG;
	unpacker->nulls.cnt += words;
	memset(bitmap, 0, words * sizeof(*bitmap));
	for (size_t i = 0; i < sz; i++)
		bitmap[i / 8] |= (uint64_t)*cursor->pos++ << i % 8 * 8;
	if (row_cnt % 64)
		bitmap[words - 1] &= (1ULL << row_cnt % 64) - 1;
	*null_cnt = 0;
	for (size_t w = 0; w < words; w++)
		*null_cnt += __builtin_popcountll(bitmap[w]);
	*nulls = bitmap;
	return 0;
}

static int unpacker__get_strings(struct shard_unpacker *unpacker, struct shard_cursor *cursor)
{
	uint64_t cnt;

	unpacker->strings.cnt = 0;
	/* Each takes a byte at least. */
	if (shard_get_varint(cursor, &cnt) || cnt > (size_t)(cursor->end - cursor->pos))
		return -EBADMSG;
	if (vec_reserve(&unpacker->strings, cnt))
		return -ENOMEM;
	for (; unpacker->strings.cnt < cnt; unpacker->strings.cnt++)
		if (get_name(cursor, &unpacker->strings.items[unpacker->strings.cnt]))
			return -EBADMSG;
	return 0;
}

/* From what the stream held to what the column means. */
static int unpacker__translate(const struct shard_unpacker *unpacker, uint8_t type, union shard_value *values,
			       size_t cnt)
{
	if (type == SHARD_F64) {
		for (size_t i = 0; i < cnt; i++)
			values[i].u64 = __builtin_bswap64(values[i].u64);
	} else if (type == SHARD_STR) {
		for (size_t i = 0; i < cnt; i++) {
			if (values[i].u64 >= unpacker->strings.cnt)
				return -EBADMSG;
			values[i].str = unpacker->strings.items[values[i].u64];
		}
	}
	return 0;
}

/* The first value_cnt values go to the rows that are not null; from the end, so that none is overwritten too early. */
static void spread(union shard_value *values, size_t value_cnt, const uint64_t *nulls, uint32_t row_cnt)
{
	for (uint32_t i = row_cnt; i--;) {
		if (nulls[i / 64] >> i % 64 & 1)
			values[i] = (union shard_value){0};
		else
			values[i] = values[--value_cnt];
	}
}

static int unpacker__get_values(struct shard_unpacker *unpacker, struct shard_packed_column *packed, uint32_t row_cnt,
				struct shard_block_column *column)
{
	struct shard_refs refs = {unpacker->refs.items, unpacker->refs.cnt};
	union shard_value *values = unpacker->values.items + unpacker->values.cnt;
	struct shard_cursor *cursor = &packed->data;
	uint32_t null_cnt = 0;
	int err = 0;

	unpacker->values.cnt += row_cnt;
	column->values = values;
	if (packed->nulls == SHARD_NULLS_BITMAP) {
		err = unpacker__get_nulls(unpacker, cursor, row_cnt, &null_cnt, &column->nulls);
		refs.cnt = 0;
	}
	if (!err && packed->type == SHARD_STR)
		err = unpacker__get_strings(unpacker, cursor);
	if (!err)
		err = shard_decode(cursor, values, row_cnt - null_cnt, &refs);
	if (!err)
		err = unpacker__translate(unpacker, packed->type, values, row_cnt - null_cnt);
	if (!err && cursor->pos != cursor->end)
		err = -EBADMSG;
	if (!err && column->nulls)
		spread(values, row_cnt - null_cnt, column->nulls, row_cnt);
	return err;
}

static int unpacker__get_column(struct shard_unpacker *unpacker, struct shard_packed_column *packed, uint32_t row_cnt)
{
	struct shard_block_column *column = &unpacker->columns.items[unpacker->columns.cnt++];

	*column = (struct shard_block_column){
		.name = packed->name, .type = packed->type, .unit = packed->unit, .nullable = packed->nullable};
	if (packed->nulls == SHARD_NULLS_ALL) {
		column->values = unpacker->zeros.items;
		column->nulls = unpacker->ones.items;
		return packed->data.pos == packed->data.end ? 0 : -EBADMSG;
	}
	if (packed->zero) {
		column->values = unpacker->zeros.items;
		return 0;
	}
	return unpacker__get_values(unpacker, packed, row_cnt, column);
}

int shard_unpacker__unpack(struct shard_unpacker *unpacker, const struct shard_block_header *header,
			   const uint8_t *stored, struct shard_block *block)
{
	int err;

	err = shard_compressor__unpack(&unpacker->compressor, header->codec, stored, header->stored_sz, header->raw_sz,
				       &unpacker->raw);
	if (!err)
		err = unpacker__parse(unpacker, header->column_cnt);
	if (!err)
		err = unpacker__reserve(unpacker, header->row_cnt);
	for (size_t c = 0; !err && c < unpacker->packed.cnt; c++) {
		struct shard_packed_column *packed = &unpacker->packed.items[c];
		const struct shard_block_column *column;

		unpacker->refs.items[unpacker->refs.cnt] = NULL;
		if (packed->known) {
			err = unpacker__get_column(unpacker, packed, header->row_cnt);
			column = &unpacker->columns.items[unpacker->columns.cnt - 1];
			if (column->type == SHARD_U64 && !column->nulls)
				unpacker->refs.items[unpacker->refs.cnt] = column->values;
		}
		unpacker->refs.cnt++;
	}
	if (err)
		return err;
	block->row_cnt = header->row_cnt;
	block->column_cnt = unpacker->columns.cnt;
	block->columns = unpacker->columns.items;
	return 0;
}

int shard_unpacker__schema(struct shard_unpacker *unpacker, const struct shard_block_header *header,
			   const uint8_t *stored, struct shard_block *block)
{
	int err = shard_compressor__unpack(&unpacker->compressor, header->codec, stored, header->stored_sz,
					   header->raw_sz, &unpacker->raw);

	if (!err)
		err = unpacker__parse(unpacker, header->column_cnt);
	unpacker->columns.cnt = 0;
	if (!err && vec_reserve(&unpacker->columns, unpacker->packed.cnt))
		err = -ENOMEM;
	if (err)
		return err;
	for (size_t c = 0; c < unpacker->packed.cnt; c++) {
		const struct shard_packed_column *packed = &unpacker->packed.items[c];

		if (packed->known)
			unpacker->columns.items[unpacker->columns.cnt++] =
				(struct shard_block_column){.name = packed->name,
							    .type = packed->type,
							    .unit = packed->unit,
							    .nullable = packed->nullable};
	}
	block->row_cnt = header->row_cnt;
	block->column_cnt = unpacker->columns.cnt;
	block->columns = unpacker->columns.items;
	return 0;
}

void shard_unpacker__clear(struct shard_unpacker *unpacker)
{
	shard_compressor__clear(&unpacker->compressor);
	vec_free(&unpacker->raw);
	vec_free(&unpacker->packed);
	vec_free(&unpacker->columns);
	vec_free(&unpacker->values);
	vec_free(&unpacker->zeros);
	vec_free(&unpacker->nulls);
	vec_free(&unpacker->ones);
	vec_free(&unpacker->strings);
	vec_free(&unpacker->refs);
}
