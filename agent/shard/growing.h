/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shards that are still being written: the blocks that have come since the last look, of files that have grown and of
 * new ones.  One thread each.
 */
#ifndef WHYLATE_SHARD_GROWING_H
#define WHYLATE_SHARD_GROWING_H

#include "base/idmap.h"
#include "base/vec.h"
#include "shard/file.h"

struct shard_growing_file {
	const char *path; /* the arena's */
	uint64_t sz;      /* up to here it has been read */
	uint64_t next_off;
};

struct shard_growing {
	struct arena *arena;
	struct intern paths;
	VEC(struct shard_growing_file) files; /* by the number of their path */
	struct shard_file file;               /* the one that is open; idx is its number */
	struct shard_damages damages;
};

/* 0 or -ENOMEM; shard_growing__free() in either case. */
int shard_growing__init(struct shard_growing *growing);
void shard_growing__free(struct shard_growing *growing);

/* Opens a file; its next block is the one at that offset, at the earliest the first.  0 or as shard_file__open(). */
int shard_growing__open(struct shard_growing *growing, uint32_t file, uint64_t off);

struct shard_growing_owner {
	/* A block of rows, whose file is open and stands behind its header: 0 or -errno. */
	int (*take)(void *owner, uint32_t file, const struct shard_block_header *header);
	bool (*should_stop)(void *owner); /* asked before each file; NULL: never */
	void *owner;
};

/*
 * What has come into these files and directories.  0; -ECANCELED: it was to stop; -errno of a file, after a line that
 * says so, or of take.  Another look goes on behind the last block that was taken.
 */
int shard_growing__look(struct shard_growing *growing, const char *const *paths, size_t path_cnt,
			const struct shard_growing_owner *owner);

#endif
