/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The end of a shard that was closed in order: an index of its blocks as a table, and the trailer. */
#ifndef WHYLATE_SHARD_INDEX_H
#define WHYLATE_SHARD_INDEX_H

#include "shard/pack.h"

/* Rows of the index; a shard of more blocks than row_max is full.  NULL and errno. */
struct shard_stage *shard_index__new(uint32_t row_max);
/* The block at off, sz bytes of header and payload: 0 or -ENOMEM. */
int shard_index__add(struct shard_stage *index, const struct shard_block_header *header, uint64_t off, uint64_t sz);
/* Appends the index block, which will lie at index_off, and the trailer to out: 0 or -ENOMEM. */
int shard_index__put(const struct shard_stage *index, struct shard_packer *packer, enum shard_codec codec,
		     uint64_t session_id, uint64_t index_off, struct shard_buf *out);

#endif
