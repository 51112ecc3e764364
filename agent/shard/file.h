/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Walks the blocks of one file from front to back, by the lengths in their headers; where a header is damaged, by
 * searching for the next one that is not.  What had to be passed over goes to `damages`.  The size is that when it was
 * opened: a file that is still being written ends there.  pread() rather than mmap(): it may also be cut.
 */
#ifndef WHYLATE_SHARD_FILE_H
#define WHYLATE_SHARD_FILE_H

#include "shard/damage.h"
#include "shard/format.h"

struct shard_file {
	const char *path;
	size_t idx; /* among the reader's files */
	struct shard_damages *damages;
	int fd;
	uint64_t sz;
	uint64_t off;       /* of the next block */
	uint64_t block_off; /* of the one that was returned last */
	uint64_t body_off;  /* of its payload */
	uint64_t sure_off;  /* nothing before this can be the beginning of a block that was missed */
	uint64_t session_id;
	bool session_known;
	bool ended; /* a trailer was seen, or the end is known to be damaged */
	struct shard_buf window;
};

/* path, idx and damages are set by the caller.  0, also where the file turns out to be no shard; -errno. */
int shard_file__open(struct shard_file *file);
/* 1 with the header of the next block, 0 at the end, -errno. */
int shard_file__next(struct shard_file *file, struct shard_block_header *header);
/* The payload of that block: 0; 1: damaged, and recorded; -errno. */
int shard_file__body(struct shard_file *file, const struct shard_block_header *header, struct shard_buf *body);
/* Records that the block returned last is of no use: 0 or -ENOMEM. */
int shard_file__refuse(struct shard_file *file, const char *what);
void shard_file__close(struct shard_file *file);

#endif
