// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/code_map.h"

#include "base/order.h"
#include "base/vec.h"

typedef VEC(struct code_range) code_ranges;

/* A piece that another one has replaced. */
struct past {
	struct code_range range;
	uint64_t until_ts;
};

struct code_map {
	code_ranges pieces; /* in force, by address */
	struct past past[CODE_MAP_PAST_MAX];
	uint64_t past_pos; /* the next place in turn */
};

struct code_map *code_map__new(void)
{
	return calloc(1, sizeof(struct code_map));
}

void code_map__free(struct code_map *map)
{
	if (!map)
		return;
	vec_free(&map->pieces);
	free(map);
}

void code_map__clear(struct code_map *map)
{
	vec_free(&map->pieces);
	map->past_pos = 0;
}

size_t code_map__cnt(const struct code_map *map)
{
	return map->pieces.cnt;
}

/* --- of ranges that overlap, pieces that do not ------------------------------------------------------------------- */

struct ordered {
	struct code_range range;
	size_t seq;
};

ORDER(compare_start, struct ordered, BY(a->range.start, b->range.start), BY(a->seq, b->seq));

/* The open ranges: the newest one is the first of a binary heap. */
struct open {
	struct ordered *items;
	size_t cnt;
};

static void swap(struct ordered *a, struct ordered *b)
{
	struct ordered was = *a;

	*a = *b;
	*b = was;
}

static void open_push(struct open *open, const struct ordered *range)
{
	size_t i = open->cnt++;

	open->items[i] = *range;
	for (; i && open->items[(i - 1) / 2].seq < open->items[i].seq; i = (i - 1) / 2)
		swap(&open->items[i], &open->items[(i - 1) / 2]);
}

static void open_pop(struct open *open)
{
	size_t i = 0;

	open->items[0] = open->items[--open->cnt];
	for (;;) {
		size_t most = i;

		for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < open->cnt; child++)
			if (open->items[child].seq > open->items[most].seq)
				most = child;
		if (most == i)
			return;
		swap(&open->items[i], &open->items[most]);
		i = most;
	}
}

static int add_piece(code_ranges *pieces, uint64_t start, uint64_t end, uint64_t tag)
{
	struct code_range *last = pieces->cnt ? &pieces->items[pieces->cnt - 1] : NULL;
	struct code_range piece = {start, end, tag};

	if (last && last->end == start && last->tag == tag) {
		last->end = end;
		return 0;
	}
	return vec_push(pieces, piece);
}

/* A sweep by address: at each place the newest of the open ranges counts. */
static int flatten(struct ordered *ranges, size_t cnt, struct ordered *room, code_ranges *pieces)
{
	struct open open = {.items = room};
	uint64_t at = 0;
	size_t next = 0;
	int err = 0;

	while (!err && (next < cnt || open.cnt)) {
		uint64_t until;

		if (!open.cnt)
			at = ranges[next].range.start;
		while (next < cnt && ranges[next].range.start <= at)
			open_push(&open, &ranges[next++]);
		while (open.cnt && open.items[0].range.end <= at)
			open_pop(&open);
		if (!open.cnt)
			continue;
		until = open.items[0].range.end;
		if (next < cnt && ranges[next].range.start < until)
			until = ranges[next].range.start;
		err = add_piece(pieces, at, until, open.items[0].range.tag);
		at = until;
	}
	return err;
}

static int make_pieces(const struct code_range *ranges, size_t cnt, code_ranges *pieces)
{
	struct ordered *ordered = calloc(cnt, 2 * sizeof(*ordered));
	int err;

	if (!ordered)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++)
		ordered[i] = (struct ordered){ranges[i], i};
	qsort(ordered, cnt, sizeof(*ordered), compare_start);
	err = flatten(ordered, cnt, ordered + cnt, pieces);
	free(ordered);
	return err;
}

/* --- over those that are in force --------------------------------------------------------------------------------- */

static void add_past(struct code_map *map, uint64_t start, uint64_t end, uint64_t tag, uint64_t ts)
{
	map->past[map->past_pos++ % CODE_MAP_PAST_MAX] = (struct past){{start, end, tag}, ts};
}

/* Old pieces where there is no new one, and the new ones. */
static int overlay(struct code_map *map, const code_ranges *fresh, uint64_t ts, code_ranges *merged)
{
	const code_ranges *old = &map->pieces;
	size_t o = 0, f = 0;
	uint64_t from = 0; /* of the old piece, what lies before is dealt with */
	int err = 0;

	while (!err && (o < old->cnt || f < fresh->cnt)) {
		const struct code_range *piece = o < old->cnt ? &old->items[o] : NULL;
		const struct code_range *over = f < fresh->cnt ? &fresh->items[f] : NULL;
		uint64_t start = piece && piece->start > from ? piece->start : from;

		if (piece && start >= piece->end) {
			o++;
		} else if (!over || (piece && piece->end <= over->start)) {
			err = add_piece(merged, start, piece->end, piece->tag);
			o++;
		} else if (piece && start < over->start) {
			err = add_piece(merged, start, over->start, piece->tag);
			from = over->start;
		} else if (piece && start < over->end) {
			uint64_t end = piece->end < over->end ? piece->end : over->end;

			add_past(map, start, end, piece->tag, ts);
			from = end;
		} else {
			err = add_piece(merged, over->start, over->end, over->tag);
			f++;
		}
	}
	return err;
}

int code_map__add(struct code_map *map, struct code_range *ranges, size_t cnt, uint64_t ts)
{
	code_ranges fresh = {0}, merged = {0};
	int err;

	if (!cnt)
		return 0;
	err = make_pieces(ranges, cnt, &fresh);
	if (!err && fresh.cnt + map->pieces.cnt > CODE_MAP_PIECES_MAX)
		err = -ENOSPC;
	if (!err)
		err = vec_reserve(&merged, fresh.cnt + map->pieces.cnt);
	if (!err)
		err = overlay(map, &fresh, ts, &merged);
	vec_free(&fresh);
	if (err) {
		vec_free(&merged);
		return err;
	}
	vec_free(&map->pieces);
	map->pieces.items = merged.items;
	map->pieces.cnt = merged.cnt;
	map->pieces.room = merged.room;
	return 0;
}

uint64_t code_map__find(const struct code_map *map, uint64_t addr, uint64_t ts)
{
	size_t at;
	uint64_t kept = map->past_pos < CODE_MAP_PAST_MAX ? map->past_pos : CODE_MAP_PAST_MAX;
	const struct past *found = NULL;

	/* Of those that were replaced after `ts`, the one that was replaced first. */
	for (uint64_t i = 1; i <= kept; i++) {
		const struct past *past = &map->past[(map->past_pos - i) % CODE_MAP_PAST_MAX];

		if (past->until_ts <= ts)
			break;
		if (addr >= past->range.start && addr < past->range.end)
			found = past;
	}
	if (found)
		return found->range.tag;
	at = search_first(0, map->pieces.cnt, piece, map->pieces.items[piece].end > addr);
	return at < map->pieces.cnt && map->pieces.items[at].start <= addr ? map->pieces.items[at].tag : CODE_MAP_NONE;
}
