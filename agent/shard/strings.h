/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The distinct strings of one column of one block, in the order in which they came. */
#ifndef WHYLATE_SHARD_STRINGS_H
#define WHYLATE_SHARD_STRINGS_H

#include "base/vec.h"
#include "shard/format.h"

struct shard_strings {
	struct shard_buf bytes; /* one after the other, each with its NUL */
	VEC(uint32_t) offs;
	uint32_t *slots; /* hash table: index + 1 */
	uint32_t slot_cnt;
	uint32_t last_idx;
};

/* 0 with the string's index in *idx, -E2BIG, -ENOMEM. */
int shard_strings__index(struct shard_strings *strings, const char *str, uint32_t *idx);
/* Forgets them and keeps the memory. */
void shard_strings__reset(struct shard_strings *strings);
void shard_strings__clear(struct shard_strings *strings);

#endif
