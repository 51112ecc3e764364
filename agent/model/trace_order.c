// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/trace_order.h"

#include "base/order.h"
#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WORD 8
/* An item that is late by so few places is moved there at once: interrupts within the making of a record do that. */
#define NEAR_PLACES 16

struct place {
	uint64_t ts;
	uint32_t word; /* where its data begin, and the order in which items came */
	uint16_t kind;
	uint16_t cpu;
};

typedef VEC(struct place) places;

struct trace_order {
	VEC(uint64_t) words; /* each item's size in words, then its data */
	places places, spare;
	VEC(size_t) runs; /* where each run begins that is in order by itself */
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
	vec_free(&order->words);
	vec_free(&order->places);
	vec_free(&order->spare);
	vec_free(&order->runs);
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
	struct place place = {.ts = item->ts, .word = (uint32_t)order->words.cnt, .kind = item->kind, .cpu = item->cpu};
	size_t word_cnt = item->sz / WORD;

	if (item->sz % WORD)
		return -EINVAL;
	if (order->words.cnt + 1 + word_cnt > UINT32_MAX || vec_reserve(&order->words, 1 + word_cnt) ||
	    vec_push(&order->places, place))
		return -ENOMEM;
	order->words.items[order->words.cnt++] = word_cnt;
	if (word_cnt)
		memcpy(&order->words.items[order->words.cnt], item->data, item->sz);
	order->words.cnt += word_cnt;
	order->late_cnt += item->ts < order->released_ts;
	return 0;
}

static bool comes_before(const struct place *a, const struct place *b)
{
	if (a->ts != b->ts)
		return a->ts < b->ts;
	if (a->kind != b->kind && rank_of(a->kind) != rank_of(b->kind))
		return rank_of(a->kind) < rank_of(b->kind);
	return a->word < b->word;
}

/* Puts the item at `at` where it belongs in the run that begins at `first`, if that is near. */
static bool move_back(struct place *items, size_t first, size_t at)
{
	struct place moved = items[at];
	size_t to = at;

	while (to > first && at - to < NEAR_PLACES && comes_before(&moved, &items[to - 1]))
		to--;
	if (to > first && comes_before(&moved, &items[to - 1]))
		return false;
	memmove(&items[to + 1], &items[to], (at - to) * sizeof(*items));
	items[to] = moved;
	return true;
}

static int find_runs(struct trace_order *order)
{
	struct place *items = order->places.items;
	size_t first = 0;

	order->runs.cnt = 0;
	if (vec_push(&order->runs, 0))
		return -ENOMEM;
	for (size_t i = 1; i < order->places.cnt; i++) {
		if (!comes_before(&items[i], &items[i - 1]) || move_back(items, first, i))
			continue;
		first = i;
		if (vec_push(&order->runs, i))
			return -ENOMEM;
	}
	return 0;
}

static void merge(struct place *to, const struct place *left, size_t left_cnt, const struct place *right,
		  size_t right_cnt)
{
	while (left_cnt && right_cnt) {
		if (comes_before(right, left)) {
			*to++ = *right++;
			right_cnt--;
		} else {
			*to++ = *left++;
			left_cnt--;
		}
	}
	memcpy(to, left, left_cnt * sizeof(*to));
	memcpy(to + left_cnt, right, right_cnt * sizeof(*to));
}

/* Merges neighbours until one run is left. */
static int sort(struct trace_order *order)
{
	size_t cnt = order->places.cnt;

	if (!cnt)
		return 0;
	if (find_runs(order))
		return -ENOMEM;
	if (order->runs.cnt > 1 && vec_reserve(&order->spare, cnt))
		return -ENOMEM;
	while (order->runs.cnt > 1) {
		size_t *runs = order->runs.items, left_cnt = 0;
		places whole = order->spare;

		for (size_t i = 0; i < order->runs.cnt; i += 2) {
			size_t middle = i + 1 < order->runs.cnt ? runs[i + 1] : cnt;
			size_t end = i + 2 < order->runs.cnt ? runs[i + 2] : cnt, begin = runs[i];
			const struct place *from = order->places.items;

			merge(whole.items + begin, from + begin, middle - begin, from + middle, end - middle);
			runs[left_cnt++] = begin;
		}
		order->runs.cnt = left_cnt;
		order->spare = order->places;
		order->spare.cnt = 0;
		order->places = whole;
		order->places.cnt = cnt;
	}
	return 0;
}

ORDER(compare_words, struct place, BY(a->word, b->word));

/* Takes what was not handed over to the front, in the order in which it lies, so that nothing is overwritten early. */
static void keep_rest(struct trace_order *order, size_t done_cnt)
{
	size_t rest_cnt = order->places.cnt - done_cnt, word = 0;
	struct place *rest = order->places.items;
	uint64_t *words = order->words.items;

	if (rest_cnt) {
		memmove(rest, rest + done_cnt, rest_cnt * sizeof(*rest));
		qsort(rest, rest_cnt, sizeof(*rest), compare_words);
	}
	for (size_t i = 0; i < rest_cnt; i++) {
		size_t word_cnt = words[rest[i].word] + 1;

		memmove(words + word, words + rest[i].word, word_cnt * WORD);
		rest[i].word = (uint32_t)word;
		word += word_cnt;
	}
	order->places.cnt = rest_cnt;
	order->words.cnt = word;
}

int trace_order__release(struct trace_order *order, uint64_t until_ts, trace_order_handler handle, void *owner)
{
	size_t done_cnt = 0;
	int err = sort(order);

	if (err)
		return err;
	while (!err && done_cnt < order->places.cnt && order->places.items[done_cnt].ts <= until_ts) {
		const struct place *place = &order->places.items[done_cnt++];
		const uint64_t *words = &order->words.items[place->word];
		const struct trace_item item = {
			.ts = place->ts,
			.kind = place->kind,
			.cpu = place->cpu,
			.sz = (uint32_t)(words[0] * WORD),
			.data = words + 1,
		};

		err = handle(owner, &item);
	}
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
	return order->words.room * WORD + (order->places.room + order->spare.room) * sizeof(struct place) +
	       order->runs.room * sizeof(size_t);
}
