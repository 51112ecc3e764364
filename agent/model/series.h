/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Items of one size in the order of a 64-bit key within them, mostly appended at the end and dropped from the front.
 * Items with equal keys stay in the order in which they came.  The owner frees it.
 */
#ifndef WHYLATE_MODEL_SERIES_H
#define WHYLATE_MODEL_SERIES_H

#include <stddef.h>
#include <stdint.h>

struct series {
	uint8_t *memory;
	size_t first, cnt, room; /* items first … first + cnt - 1 of the memory are the series */
	uint32_t item_sz, key_off;
};

static inline void *series__at(const struct series *series, size_t idx)
{
	return series->memory + (series->first + idx) * series->item_sz;
}

static inline uint64_t series__key(const struct series *series, size_t idx)
{
	return *(const uint64_t *)(const void *)((const uint8_t *)series__at(series, idx) + series->key_off);
}

static inline size_t series__bytes(const struct series *series)
{
	return series->room * series->item_sz;
}

/* The key must lie at a multiple of 8. */
void series__init(struct series *series, uint32_t item_sz, uint32_t key_off);
/* Puts a copy behind the last item whose key is not larger: 0 or -ENOMEM. */
int series__add(struct series *series, const void *item);
/* Puts a copy at the end, whatever its key: series__sort() is owed.  0 or -ENOMEM. */
int series__append(struct series *series, const void *item);
void series__sort(struct series *series);
/* How many items have a key below `key`; … or equal to it. */
size_t series__below(const struct series *series, uint64_t key);
size_t series__up_to(const struct series *series, uint64_t key);
/* Drops the first `cnt` items. */
void series__drop(struct series *series, size_t cnt);
void series__free(struct series *series);

#endif
