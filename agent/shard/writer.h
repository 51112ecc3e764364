/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes the shards of one session: HOST-SESSION-SEQ.wls, append-only, a block at a time (docs/SHARD-FORMAT.md).
 * Rows collect in memory per table until a block is full or shard_writer__flush() is called; only whole blocks reach
 * the file, so what is on disk is readable after any crash.  One thread only.
 */
#ifndef WHYLATE_SHARD_WRITER_H
#define WHYLATE_SHARD_WRITER_H

#include "shard/table.h"

#include <stddef.h>

struct shard_block_header;

/*
 * Somebody who also gets every block of rows, in the order in which they are written: header and payload as in the
 * file. What becomes of it there is no concern of the writer.  `baseline`: see split_baseline.
 */
typedef void (*shard_block_sink)(void *owner, const struct shard_block_header *header, bool baseline, const void *bytes,
				 size_t sz);

struct shard_writer_opts {
	const char *dir;  /* made if it does not exist (0755); NULL: no files, the blocks go to the sink alone */
	const char *host; /* sanitised into the file name */
	uint64_t session_id;
	uint32_t block_rows;    /* rows per block, 0: 4096 */
	uint64_t rotate_bytes;  /* start the next shard beyond this size, 0: 256 MiB */
	uint64_t rotate_age_ns; /* … or beyond this age, 0: one hour */
	enum shard_codec codec; /* 0 with codec_set false: zstd */
	bool codec_set;
	bool split_baseline;   /* rows of `interval` that are baseline (interval_flag.def) get blocks of their own */
	shard_block_sink sink; /* or NULL */
	void *sink_owner;
};

struct shard_writer_stats {
	uint64_t rows[SHARD_TABLE_CNT]; /* accepted by append */
	uint64_t rows_on_disk[SHARD_TABLE_CNT];
	uint64_t bytes; /* on disk, all shards of the session */
	uint32_t shard_cnt;
};

struct shard_writer;

/*
 * Creates the directory and the first shard.  NULL and errno on failure; nothing is left behind then except the
 * directory.  Never overwrites: an existing file of the same name makes it take the next sequence number.
 */
struct shard_writer *shard_writer__new(const struct shard_writer_opts *opts);

/*
 * Adds one row.  0; -EINVAL for a null (or a NULL string) in a column that is not nullable; -E2BIG for a string of more
 * than 1 MiB; -ENOMEM; the row is not taken in these cases.  -ENOSPC, -EIO, … when a block could not be written: the
 * file is then cut back to its last whole block, the rows of the block are counted as lost in rows - rows_on_disk, and
 * every later call fails likewise without touching the file.
 */
int shard_writer__append(struct shard_writer *writer, enum shard_table_id table, const struct shard_row *row);

/* Writes out what has collected, full block or not; with `sync`, fdatasync too. */
int shard_writer__flush(struct shard_writer *writer, bool sync);

void shard_writer__stats(const struct shard_writer *writer, struct shard_writer_stats *stats);

/* Path of the shard being written. */
const char *shard_writer__path(const struct shard_writer *writer);

/* Flushes, writes the footer index, closes.  Returns the first error of the session, if any. NULL-safe: 0. */
int shard_writer__free(struct shard_writer *writer);

#endif
