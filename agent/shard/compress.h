/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compression of a block's payload as a whole.  The contexts are kept from block to block; one thread per object. */
#ifndef WHYLATE_SHARD_COMPRESS_H
#define WHYLATE_SHARD_COMPRESS_H

#include "shard/format.h"
#include "shard/table.h"

struct shard_compressor {
	void *zstd_out; /* ZSTD_CCtx, made when first needed */
	void *zstd_in;  /* ZSTD_DCtx, likewise */
};

/* Appends the compressed bytes to out.  *codec becomes NONE where compression would not gain anything. */
int shard_compressor__pack(struct shard_compressor *compressor, enum shard_codec *codec, const uint8_t *bytes,
			   size_t sz, struct shard_buf *out);

/*
 * Puts exactly raw_sz bytes into raw (its former content is dropped).  0; -ENOTSUP: unknown codec; -ENOMEM; -EBADMSG:
 * damaged, of another size, or raw_sz is more than so many bytes can hold: that is known before memory is taken.
 */
int shard_compressor__unpack(struct shard_compressor *compressor, uint8_t codec, const uint8_t *bytes, size_t sz,
			     size_t raw_sz, struct shard_buf *raw);

void shard_compressor__clear(struct shard_compressor *compressor);

#endif
