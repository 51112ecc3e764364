/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A block's payload, whose checksum holds, as columns of values.  A checksum does not make it trustworthy: every length
 * in it is checked.  What a block may cost is bounded by the caps of format.h; columns that are zero or null throughout
 * cost nothing, they share one array.  One thread per unpacker.
 */
#ifndef WHYLATE_SHARD_UNPACK_H
#define WHYLATE_SHARD_UNPACK_H

#include "base/vec.h"
#include "shard/block.h"
#include "shard/compress.h"

struct shard_packed_column;

struct shard_unpacker {
	struct shard_compressor compressor;
	struct shard_buf raw;
	VEC(struct shard_packed_column) packed; /* as the schema has them */
	VEC(struct shard_block_column) columns; /* those whose type is known */
	VEC(union shard_value) values, zeros;
	VEC(uint64_t) nulls, ones;
	VEC(const char *) strings;           /* the dictionary of the column at hand */
	VEC(const union shard_value *) refs; /* by number in the schema */
};

/*
 * Fills in the row and column parts of *block, which are valid until the next call.  0; -EBADMSG: malformed;
 * -ENOTSUP: a codec or an encoding of the future; -ENOMEM.
 */
int shard_unpacker__unpack(struct shard_unpacker *unpacker, const struct shard_block_header *header,
			   const uint8_t *stored, struct shard_block *block);
/* The same without the values (NULL): checks the payload's size and schema, at a third of the cost. */
int shard_unpacker__schema(struct shard_unpacker *unpacker, const struct shard_block_header *header,
			   const uint8_t *stored, struct shard_block *block);
void shard_unpacker__clear(struct shard_unpacker *unpacker);

#endif
