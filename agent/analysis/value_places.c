// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/value_places.h"

#include "analysis/value_stats.h"
#include "base/order.h"
#include "base/vec.h"

#include <errno.h>
#include <math.h>

/* So large a part of the slow samples must be at places that normal ones are at, too. */
#define COVERED_MIN 0.8

/* A distance that stays above that part of itself may be one that too few samples are left of. */
#define STILL_APART 0.5

struct located {
	struct value_point point;
	uint32_t place, unit;
	bool is_slow;
};

typedef VEC(struct located) located_list;

ORDER(compare_places, struct located, BY(a->place, b->place));
ORDER(compare_units, struct located, BY(a->unit, b->unit));

static int take_rows(located_list *list, const struct value_input *input, const struct value_row *rows, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		double value = value_number(&input->variables[rows->variable], rows[i].value);
		struct located made = {
			{value, rows[i].weight}, rows[i].place, rows[i].unit, input->is_slow[rows[i].profile]};

		if (!isnan(value) && vec_push(list, made))
			return -ENOMEM;
	}
	return 0;
}

/*
 * Normal samples get the weights that slow ones have at their places; what is at a place of one side alone is left out.
 * The part of the slow weight that stays.
 */
static double weigh_by_place(located_list *list)
{
	double covered = 0, total = 0;
	size_t kept = 0;

	for (size_t first = 0, end; first < list->cnt; first = end) {
		double of[2] = {0, 0};

		for (end = first; end < list->cnt && list->items[end].place == list->items[first].place; end++)
			of[list->items[end].is_slow] += list->items[end].point.weight;
		total += of[1];
		if (!(of[0] > 0) || !(of[1] > 0))
			continue;
		covered += of[1];
		for (size_t i = first; i < end; i++) {
			struct located at = list->items[i];

			if (!at.is_slow)
				at.point.weight *= of[1] / of[0];
			list->items[kept++] = at;
		}
	}
	list->cnt = kept;
	return total > 0 ? covered / total : 0;
}

/* So many units have samples of that side. */
static double units_of(located_list *list, bool is_slow)
{
	size_t units = 0;
	uint32_t last = 0;

	for (size_t i = 0; i < list->cnt; i++) {
		if (list->items[i].is_slow != is_slow)
			continue;
		units += !units || list->items[i].unit != last;
		last = list->items[i].unit;
	}
	return (double)units;
}

struct difference {
	double ratio, distance;
};

static int compare_sides(located_list *list, struct difference *difference)
{
	VEC(struct value_point) points[2] = {{0}, {0}};
	struct value_set sets[2];
	int err = 0;

	for (size_t i = 0; i < list->cnt && !err; i++)
		err = vec_push(&points[list->items[i].is_slow], list->items[i].point) ? -ENOMEM : 0;
	vec_sort(list, compare_units);
	for (int s = 0; s < 2; s++)
		sets[s] = (struct value_set){points[s].items, points[s].cnt, units_of(list, s)};
	if (!err)
		*difference =
			(struct difference){value_discount(&sets[0], &sets[1]), value_hellinger(&sets[0], &sets[1])};
	vec_free(&points[0]);
	vec_free(&points[1]);
	return err;
}

int value_differs_by_place(const struct value_input *input, const struct value_row *rows, size_t cnt)
{
	struct difference all = {NAN, NAN}, placed = {NAN, NAN};
	located_list list = {0};
	int err = take_rows(&list, input, rows, cnt);
	bool by_place = false;

	if (!err)
		err = compare_sides(&list, &all);
	vec_sort(&list, compare_places);
	if (!err && weigh_by_place(&list) >= COVERED_MIN) {
		err = compare_sides(&list, &placed);
		by_place = !(placed.ratio < VALUE_DEFAULT_DISCOUNT) && placed.distance <= STILL_APART * all.distance;
	}
	vec_free(&list);
	return err ? err : by_place;
}
