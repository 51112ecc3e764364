/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A stage's rows as one block: header and payload, checksums and all.  One thread per packer. */
#ifndef WHYLATE_SHARD_PACK_H
#define WHYLATE_SHARD_PACK_H

#include "base/vec.h"
#include "shard/codec.h"
#include "shard/compress.h"
#include "shard/stage.h"

struct shard_packer {
	struct shard_encoder encoder;
	struct shard_compressor compressor;
	struct shard_buf raw;
	struct shard_buf data;
	VEC(uint64_t) dense; /* a column's values without its nulls */
	uint32_t null_cnts[SHARD_ROW_COLUMNS_MAX];
};

/*
 * Appends the block to out and fills in `header`, of which kind, codec and session_id are the caller's.  The stage must
 * hold a row or more.  0 or -ENOMEM; out->cnt is as before then.
 */
int shard_packer__pack(struct shard_packer *packer, const struct shard_stage *stage, struct shard_block_header *header,
		       struct shard_buf *out);
void shard_packer__clear(struct shard_packer *packer);

#endif
