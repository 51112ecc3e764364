/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a reader found damaged, in order of file and offset; the same place twice is one entry. */
#ifndef WHYLATE_SHARD_DAMAGE_H
#define WHYLATE_SHARD_DAMAGE_H

#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shard_damage {
	const char *path;
	uint64_t off;     /* where the trouble begins */
	uint64_t sz;      /* bytes that could not be used; 0 for "not closed": whole, but its end is missing */
	const char *what; /* "torn tail", "checksum", "foreign file", "empty file", "unsupported version", … */
};

struct shard_damages {
	struct shard_damage *items;
	size_t cnt;
	size_t room;
	VEC(size_t) file_idx; /* of each item */
};

/* `what` is a static string.  0 or -ENOMEM. */
int shard_damages__add(struct shard_damages *damages, size_t file_idx, const struct shard_damage *damage);
void shard_damages__clear(struct shard_damages *damages);

#endif
