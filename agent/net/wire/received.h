/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The accounts in a collector's shards: table `received`, a row per frame, in a block after the blocks that it speaks
 * of.  A block without an account was never acknowledged, and whoever finds one cuts it off.
 */
#ifndef WHYLATE_NET_WIRE_RECEIVED_H
#define WHYLATE_NET_WIRE_RECEIVED_H

#include "base/vec.h"
#include "shard/format.h"
#include "shard/table.h"
#include "shard/unpack.h"

#define RECEIVED_TABLE "received"

extern const struct shard_table received_table;

struct received {
	uint64_t seq;
	uint64_t wall_ts;
	uint32_t sz, crc; /* of the block; 0 for an end */
	uint8_t kind;     /* enum protocol_kind */
};

void received__put(struct shard_row *row, const struct received *received);

/* Takes one row: 0, or an error that ends the scan and is its result. */
typedef int (*received_fn)(void *ctx, const struct received *received);

struct received_scan {
	struct shard_unpacker unpacker; /* kept from file to file; received_scan__clear() */
	struct shard_buf body;
	VEC(uint32_t) block_szs;   /* of the blocks without an account so far */
	VEC(struct received) rows; /* of the account at hand */

	uint64_t session_id;
	uint64_t good_sz; /* all before this is accounted for */
	bool closed;      /* index and trailer follow at good_sz, and nothing else */
	bool is_shard;    /* there is a file header */
	bool is_begun;    /* there is the beginning of one, and that is all */
	uint32_t account_cnt;
};

/*
 * Goes through a file of `sz` bytes and hands on the rows of its accounts.  The last account of a file that was not
 * closed is believed only if the blocks that it speaks of have the checksums that it says: it may be older than they
 * are on a disk that lost its power.  0, whatever the file looks like; -EIO, -ENOMEM; what `fn` returned.
 */
int received_scan__file(struct received_scan *scan, int fd, uint64_t sz, received_fn fn, void *ctx);
void received_scan__clear(struct received_scan *scan);

/* Index and trailer for the accounted part of a file, appended to `end`: 0, -EIO, -ENOMEM. */
int received_index(int fd, uint64_t good_sz, uint64_t session_id, struct shard_buf *end);

#endif
