/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads shards: one file, several, or every *.wls of a directory (in order of session and sequence).
 * Nothing in a file is trusted: every length and checksum is verified before use, and damage costs the damaged block
 * (or, where the length itself cannot be trusted, the rest of that file), never the reader.  No privilege, no globals.
 */
#ifndef WHYLATE_SHARD_READER_H
#define WHYLATE_SHARD_READER_H

#include "shard/block.h"
#include "shard/damage.h"

#define SHARD_READER_SLOTS 2

struct shard_reader;

/*
 * Opens files and directories.  NULL and errno where a path does not exist or cannot be read, or where nothing named is
 * a shard (ENODATA); *bad_path then points at the path in question: one of paths[], or a static string.
 */
struct shard_reader *shard_reader__open(const char *const *paths, size_t path_cnt, const char **bad_path);

/*
 * Starts over at the first file; only blocks of these tables are decoded from now on, the others are skipped cheaply;
 * NULL: all.
 */
int shard_reader__select(struct shard_reader *reader, const char *const *tables, size_t table_cnt);

/*
 * The next block: 1 with *block set (valid until the next call), 0 at the end, -errno (-ENOMEM, -EIO) otherwise.
 * Damage is passed over and recorded.
 */
int shard_reader__next(struct shard_reader *reader, const struct shard_block **block);

/*
 * The same for those who read ahead, on another thread if they like: *block is valid until the next call with this
 * slot, which is below SHARD_READER_SLOTS.
 */
int shard_reader__next_into(struct shard_reader *reader, unsigned slot, const struct shard_block **block);

/*
 * From now on blocks of events and intervals (interval, segment, wakeup, handoff, invocation) that have no time in
 * [from_ts, until_ts] are skipped cheaply, by their sessions' clocks.  Blocks of other tables are not.
 */
void shard_reader__window(struct shard_reader *reader, uint64_t from_ts, uint64_t until_ts);

/* Starts over at the first file, with the same tables. */
void shard_reader__rewind(struct shard_reader *reader);

/* Everything found damaged so far, each place once; valid until the next call of shard_reader__next(). */
size_t shard_reader__damage(const struct shard_reader *reader, const struct shard_damage **damage);

/* Bytes of all its files. */
uint64_t shard_reader__bytes(const struct shard_reader *reader);

void shard_reader__free(struct shard_reader *reader);

#endif
