// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/series.h"

#include "base/order.h"
#include "base/vec.h"

#include <string.h>

#define ROOM_MIN 4

void series__init(struct series *series, uint32_t item_sz, uint32_t key_off)
{
	*series = (struct series){.item_sz = item_sz, .key_off = key_off};
}

static void to_front(struct series *series)
{
	if (series->cnt)
		memmove(series->memory, series__at(series, 0), series->cnt * series->item_sz);
	series->first = 0;
}

static int resize(struct series *series, size_t room)
{
	uint8_t *memory;
	size_t bytes;

	to_front(series);
	if (__builtin_mul_overflow(room, series->item_sz, &bytes))
		return -ENOMEM;
	memory = realloc(series->memory, bytes);
	if (!memory)
		return -ENOMEM;
	series->memory = memory;
	series->room = room;
	return 0;
}

/* Room for one more behind the last: what was dropped in front is used again once it is as much as what is left. */
static int make_room(struct series *series)
{
	if (series->first + series->cnt < series->room)
		return 0;
	if (series->first && series->first >= series->cnt) {
		to_front(series);
		return 0;
	}
	return resize(series, series->cnt < ROOM_MIN ? ROOM_MIN : series->cnt + series->cnt / 2);
}

int series__add(struct series *series, const void *item)
{
	uint64_t key = *(const uint64_t *)(const void *)((const uint8_t *)item + series->key_off);
	size_t at = series->cnt;

	if (make_room(series))
		return -ENOMEM;
	while (at && series__key(series, at - 1) > key)
		at--;
	if (at < series->cnt)
		memmove(series__at(series, at + 1), series__at(series, at), (series->cnt - at) * series->item_sz);
	memcpy(series__at(series, at), item, series->item_sz);
	series->cnt++;
	return 0;
}

int series__append(struct series *series, const void *item)
{
	if (make_room(series))
		return -ENOMEM;
	memcpy(series__at(series, series->cnt), item, series->item_sz);
	series->cnt++;
	return 0;
}

/* Equal keys are told apart by the rest, so that the order does not depend on how qsort() works. */
static int compare_items(const void *left, const void *right, void *ctx)
{
	const struct series *series = ctx;
	uint64_t a = *(const uint64_t *)(const void *)((const uint8_t *)left + series->key_off);
	uint64_t b = *(const uint64_t *)(const void *)((const uint8_t *)right + series->key_off);

	if (a != b)
		return a < b ? -1 : 1;
	return memcmp(left, right, series->item_sz);
}

void series__sort(struct series *series)
{
	size_t sorted = 1;

	while (sorted < series->cnt && series__key(series, sorted - 1) <= series__key(series, sorted))
		sorted++;
	if (sorted < series->cnt)
		qsort_r(series__at(series, 0), series->cnt, series->item_sz, compare_items, series);
}

size_t series__below(const struct series *series, uint64_t key)
{
	size_t low = 0, high = series->cnt, back = 1;

	/* What is asked for is mostly near the end: steps that double find the stretch to search. */
	while (back <= high && series__key(series, high - back) >= key) {
		high -= back;
		back *= 2;
	}
	if (back <= high)
		low = high - back;
	return search_first(low, high, middle, series__key(series, middle) >= key);
}

size_t series__up_to(const struct series *series, uint64_t key)
{
	return key == UINT64_MAX ? series->cnt : series__below(series, key + 1);
}

void series__drop(struct series *series, size_t cnt)
{
	series->first += cnt;
	series->cnt -= cnt;
	if (!series->cnt)
		series__free(series);
	else if (series->room > 4 * ROOM_MIN && series->cnt < series->room / 4)
		/* A smaller array that cannot be had is no loss. */
		(void)resize(series, series->cnt * 2);
}

void series__free(struct series *series)
{
	free(series->memory);
	series->memory = NULL;
	series->first = series->cnt = series->room = 0;
}
