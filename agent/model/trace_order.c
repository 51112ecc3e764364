// SPDX-License-Identifier: GPL-2.0-only
#include "model/trace_order.h"

#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct place {
	uint64_t ts;
	uint32_t rank; /* at one moment */
	uint32_t idx;
};

struct trace_order {
	VEC(struct trace_item) items;
	VEC(struct place) places;
	uint64_t released_ts;
	uint64_t late_cnt;
};

struct trace_order *trace_order__new(void)
{
	return calloc(1, sizeof(struct trace_order));
}

void trace_order__free(struct trace_order *order)
{
	if (!order)
		return;
	vec_free(&order->items);
	vec_free(&order->places);
	free(order);
}

/* Who was created comes before what it does; what an interval is made of before the interval. */
static uint32_t rank_of(uint16_t kind)
{
	switch (kind) {
	case WL_RECORD_TASK:
		return 0;
	case WL_RECORD_SEGMENT:
		return 1;
	case WL_RECORD_BLOCK:
		return 2;
	case WL_RECORD_INTERVAL:
		return 4;
	default:
		return 3;
	}
}

int trace_order__add(struct trace_order *order, const struct trace_item *item)
{
	struct place place = {.ts = item->ts, .rank = rank_of(item->kind), .idx = order->items.cnt};

	if (order->items.cnt >= UINT32_MAX || vec_push(&order->items, *item))
		return -ENOMEM;
	if (vec_push(&order->places, place)) {
		order->items.cnt--;
		return -ENOMEM;
	}
	order->late_cnt += item->ts < order->released_ts;
	return 0;
}

static int compare_places(const void *a_place, const void *b_place)
{
	const struct place *a = a_place, *b = b_place;

	if (a->ts != b->ts)
		return a->ts < b->ts ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return a->idx < b->idx ? -1 : a->idx > b->idx;
}

static int compare_idx(const void *a_place, const void *b_place)
{
	const struct place *a = a_place, *b = b_place;

	return a->idx < b->idx ? -1 : a->idx > b->idx;
}

/* Takes what was not handed over to the front, in the order in which it lies, so that nothing is overwritten early. */
static void keep_rest(struct trace_order *order, size_t done_cnt)
{
	size_t rest_cnt = order->places.cnt - done_cnt;

	if (rest_cnt)
		memmove(order->places.items, order->places.items + done_cnt, rest_cnt * sizeof(struct place));
	order->places.cnt = order->items.cnt = rest_cnt;
	if (!rest_cnt)
		return;
	qsort(order->places.items, rest_cnt, sizeof(struct place), compare_idx);
	for (size_t i = 0; i < rest_cnt; i++) {
		order->items.items[i] = order->items.items[order->places.items[i].idx];
		order->places.items[i].idx = i;
	}
}

int trace_order__release(struct trace_order *order, uint64_t until_ts, trace_order_handler handle, void *owner)
{
	size_t done_cnt = 0;
	int err = 0;

	if (order->places.cnt)
		qsort(order->places.items, order->places.cnt, sizeof(struct place), compare_places);
	while (!err && done_cnt < order->places.cnt && order->places.items[done_cnt].ts <= until_ts)
		err = handle(owner, &order->items.items[order->places.items[done_cnt++].idx]);
	if (until_ts > order->released_ts && until_ts != UINT64_MAX)
		order->released_ts = until_ts;
	keep_rest(order, done_cnt);
	return err;
}

uint64_t trace_order__late_cnt(const struct trace_order *order)
{
	return order->late_cnt;
}

size_t trace_order__bytes(const struct trace_order *order)
{
	return order->items.room * sizeof(struct trace_item) + order->places.room * sizeof(struct place);
}
