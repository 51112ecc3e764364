/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How the values of one column of one block become bytes: the cheapest of a few encodings, chosen by measuring them.
 * Everything is a stream of 64-bit integers in the end: strings are indexes into the block's dictionary, doubles are
 * their bits with the bytes reversed (round numbers have short ones then).  docs/SHARD-FORMAT.md has the layout.
 */
#ifndef WHYLATE_SHARD_CODEC_H
#define WHYLATE_SHARD_CODEC_H

#include "base/vec.h"
#include "shard/format.h"
#include "shard/table.h"

enum shard_encoding {
	SHARD_ENC_CONST = 0,  /* one varint */
	SHARD_ENC_VARINT = 1, /* each value */
	SHARD_ENC_DELTA = 2,  /* zigzag of the difference to the value before */
	SHARD_ENC_RUNS = 3,   /* (value, how often in a row) */
	SHARD_ENC_SPARSE = 4, /* how many are not zero, then (zeros before it, value) */
	SHARD_ENC_RAW = 5,    /* eight bytes each */
	/* The following transform the stream and hold one of the above. */
	SHARD_ENC_DIFF = 6, /* zigzag of the difference to the same row of an earlier column */
	SHARD_ENC_DICT = 7, /* distinct values, then indexes */
};

/* The first byte of a column's data. */
enum shard_nulls { SHARD_NULLS_NONE = 0, SHARD_NULLS_BITMAP = 1, SHARD_NULLS_ALL = 2 };

struct shard_encoder {
	VEC(uint64_t) scratch;
};

/* What may help beyond the column's own values. */
struct shard_encode_hint {
	const uint64_t *ref; /* an earlier column of as many values, or NULL */
	uint32_t ref_idx;    /* its number in the block */
	bool try_dict;       /* the values look like identifiers */
};

/* Appends `cnt` (> 0) values to out: 0 or -ENOMEM. */
int shard_encoder__put(struct shard_encoder *encoder, struct shard_buf *out, const uint64_t *values, size_t cnt,
		       const struct shard_encode_hint *hint);
void shard_encoder__clear(struct shard_encoder *encoder);

/* Appends one integer, seven bits a byte, the low ones first: 0 or -ENOMEM. */
int shard_put_varint(struct shard_buf *out, uint64_t value);

/* What is left to decode; never read beyond end. */
struct shard_cursor {
	const uint8_t *pos;
	const uint8_t *end;
};

int shard_get_varint(struct shard_cursor *cursor, uint64_t *value);

/* Columns that SHARD_ENC_DIFF may refer to; NULL where one cannot be. */
struct shard_refs {
	const union shard_value *const *columns;
	uint32_t cnt;
};

/* Reads exactly `cnt` (> 0) values as u64: 0; -EBADMSG; -ENOTSUP for an encoding of the future; -ENOMEM. */
int shard_decode(struct shard_cursor *cursor, union shard_value *values, size_t cnt, const struct shard_refs *refs);

#endif
