// SPDX-License-Identifier: GPL-2.0-or-later
#include "shard/damage.h"

#include "base/order.h"
#include "base/vec.h"

#include <string.h>

/* How many entries lie at or before the place. */
static size_t damages__find(const struct shard_damages *damages, size_t file_idx, uint64_t off)
{
	return search_first(0, damages->cnt, at,
			    (BY(damages->file_idx.items[at], file_idx) ?: BY(damages->items[at].off, off)) > 0);
}

int shard_damages__add(struct shard_damages *damages, size_t file_idx, const struct shard_damage *damage)
{
	size_t at = damages__find(damages, file_idx, damage->off);
	struct shard_damage *before = at ? &damages->items[at - 1] : NULL;

	if (before && damages->file_idx.items[at - 1] == file_idx) {
		uint64_t before_end = before->off + before->sz;

		if (damage->off + damage->sz <= before_end)
			return 0;
		if (damage->off <= before_end && damage->what == before->what) {
			before->sz = damage->off + damage->sz - before->off;
			return 0;
		}
	}
	if (vec_reserve(damages, 1) || vec_reserve(&damages->file_idx, 1))
		return -ENOMEM;
	memmove(damages->items + at + 1, damages->items + at, (damages->cnt - at) * sizeof(*damages->items));
	memmove(damages->file_idx.items + at + 1, damages->file_idx.items + at,
		(damages->cnt - at) * sizeof(*damages->file_idx.items));
	damages->items[at] = *damage;
	damages->file_idx.items[at] = file_idx;
	damages->cnt++;
	damages->file_idx.cnt++;
	return 0;
}

void shard_damages__clear(struct shard_damages *damages)
{
	vec_free(damages);
	vec_free(&damages->file_idx);
}
