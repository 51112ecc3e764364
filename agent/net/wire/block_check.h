/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether what somebody sent is a block that any reader will read: the reader's own parser decides on frame, checksum,
 * payload and schema, and the tables that this build knows on the columns.  One thread per checker.
 */
#ifndef WHYLATE_NET_WIRE_BLOCK_CHECK_H
#define WHYLATE_NET_WIRE_BLOCK_CHECK_H

#include "shard/format.h"
#include "shard/unpack.h"

/* A block, unpacked, and all of one request: what they may cost whoever checks them. */
#define BLOCK_CHECK_RAW_MAX   (16u << 20)
#define BLOCK_CHECK_TOTAL_MAX (128u << 20)
#define BLOCK_CHECK_CELLS_MAX (64u << 20)

struct block_checker {
	struct shard_unpacker unpacker;
	uint64_t raw_sz, cell_cnt; /* of the request so far */
};

struct block_checked {
	struct shard_block_header header;
	struct shard_block block; /* valid until the next check; with values only for table `session` */
};

/* Begins with another request. */
void block_checker__begin(struct block_checker *checker);
/*
 * 0; -EBADMSG: it is none, and *what says why (a static string); -E2BIG: it, or the request's blocks together, would
 * cost too much; -ENOMEM.
 */
int block_checker__check(struct block_checker *checker, const uint8_t *bytes, size_t sz, uint64_t session_id,
			 struct block_checked *checked, const char **what);
void block_checker__clear(struct block_checker *checker);

#endif
