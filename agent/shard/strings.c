// SPDX-License-Identifier: GPL-2.0-or-later
#include "shard/strings.h"

#include "base/hash.h"

#include <string.h>

static const char *string_at(const struct shard_strings *strings, uint32_t idx)
{
	return (const char *)strings->bytes.items + strings->offs.items[idx];
}

static uint32_t hash(const char *str, size_t sz)
{
	uint64_t sum = fnv1a(FNV1A_BEGIN, str, sz);

	return sum ^ sum >> 32;
}

/* The slot that holds str, or the empty one where it belongs. */
static uint32_t *find_slot(const struct shard_strings *strings, const char *str, size_t sz)
{
	uint32_t mask = strings->slot_cnt - 1, slot = hash(str, sz) & mask;

	while (strings->slots[slot] && strcmp(string_at(strings, strings->slots[slot] - 1), str))
		slot = (slot + 1) & mask;
	return &strings->slots[slot];
}

static int grow(struct shard_strings *strings)
{
	uint32_t slot_cnt = strings->slot_cnt ? strings->slot_cnt * 2 : 64;
	uint32_t *slots = calloc(slot_cnt, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	free(strings->slots);
	strings->slots = slots;
	strings->slot_cnt = slot_cnt;
	for (uint32_t i = 0; i < strings->offs.cnt; i++) {
		const char *str = string_at(strings, i);

		*find_slot(strings, str, strlen(str)) = i + 1;
	}
	return 0;
}

int shard_strings__index(struct shard_strings *strings, const char *str, uint32_t *idx)
{
	uint32_t *slot;
	size_t sz;

	if (strings->offs.cnt && !strcmp(string_at(strings, strings->last_idx), str)) {
		*idx = strings->last_idx;
		return 0;
	}
	sz = strnlen(str, SHARD_STRING_MAX + 1);
	if (sz > SHARD_STRING_MAX)
		return -E2BIG;
	if ((strings->offs.cnt + 1) * 2 > strings->slot_cnt && grow(strings))
		return -ENOMEM;
	slot = find_slot(strings, str, sz);
	if (!*slot) {
		if (vec_reserve(&strings->bytes, sz + 1) || vec_push(&strings->offs, strings->bytes.cnt))
			return -ENOMEM;
		memcpy(strings->bytes.items + strings->bytes.cnt, str, sz + 1);
		strings->bytes.cnt += sz + 1;
		*slot = strings->offs.cnt;
	}
	*idx = strings->last_idx = *slot - 1;
	return 0;
}

void shard_strings__reset(struct shard_strings *strings)
{
	strings->bytes.cnt = strings->offs.cnt = strings->last_idx = 0;
	if (strings->slots)
		memset(strings->slots, 0, strings->slot_cnt * sizeof(*strings->slots));
}

void shard_strings__clear(struct shard_strings *strings)
{
	vec_free(&strings->bytes);
	vec_free(&strings->offs);
	free(strings->slots);
	memset(strings, 0, sizeof(*strings));
}
