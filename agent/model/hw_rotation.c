// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/hw_rotation.h"

#include "base/random.h"
#include "model/hw_rules.h"
#include "shard/table.h"

#include <errno.h>

/* Pairs that are in no rotation yet, by counter. */
struct cover {
	const uint32_t *counters;
	size_t cnt;
	bool open[SHARD_HW_CNT][SHARD_HW_CNT];
};

static uint32_t gain_of(const struct cover *cover, const struct hw_rotation *rotation, uint32_t counter)
{
	uint32_t gain = 0;

	for (uint32_t i = 0; i < rotation->cnt; i++) {
		if (rotation->counters[i] == counter)
			return 0;
		gain += cover->open[rotation->counters[i]][counter];
	}
	return gain;
}

/* The counter that adds most pairs, the one with most pairs left where several do; SHARD_HW_CNT: none adds any. */
static uint32_t best_for(const struct cover *cover, const struct hw_rotation *rotation)
{
	uint32_t best = SHARD_HW_CNT, most = 0, most_left = 0;

	for (size_t i = 0; i < cover->cnt; i++) {
		uint32_t counter = cover->counters[i], gain = gain_of(cover, rotation, counter), left = 0;

		for (size_t j = 0; j < cover->cnt; j++)
			left += cover->open[counter][cover->counters[j]];
		if (rotation->cnt ? !gain : !left)
			continue;
		if (best != SHARD_HW_CNT && (gain < most || (gain == most && left <= most_left)))
			continue;
		best = counter;
		most = gain;
		most_left = left;
	}
	return best;
}

static void close_pairs(struct cover *cover, const struct hw_rotation *rotation)
{
	for (uint32_t i = 0; i < rotation->cnt; i++)
		for (uint32_t j = 0; j < rotation->cnt; j++)
			cover->open[rotation->counters[i]][rotation->counters[j]] = false;
}

/* Those that no rule compares with any other. */
static int add_lonely(hw_rotations *rotations, const struct cover *cover)
{
	for (size_t i = 0; i < cover->cnt; i++) {
		struct hw_rotation alone = {.cnt = 1, .counters = {cover->counters[i]}};
		bool found = false;

		for (size_t r = 0; r < rotations->cnt; r++)
			for (uint32_t c = 0; c < rotations->items[r].cnt; c++)
				found |= rotations->items[r].counters[c] == cover->counters[i];
		if (!found && vec_push(rotations, alone))
			return -ENOMEM;
	}
	return 0;
}

int hw_rotations_cover(hw_rotations *rotations, const uint32_t *counters, size_t cnt, uint32_t slots)
{
	struct cover cover = {.counters = counters, .cnt = cnt};

	for (size_t i = 0; i < cnt; i++)
		for (size_t j = 0; j < cnt; j++)
			cover.open[counters[i]][counters[j]] = hw_rule_pair(counters[i], counters[j]);
	for (;;) {
		struct hw_rotation rotation = {0};
		uint32_t counter;

		while (rotation.cnt < slots && (counter = best_for(&cover, &rotation)) != SHARD_HW_CNT)
			rotation.counters[rotation.cnt++] = counter;
		if (!rotation.cnt)
			return add_lonely(rotations, &cover);
		close_pairs(&cover, &rotation);
		if (vec_push(rotations, rotation))
			return -ENOMEM;
	}
}

/*
 * The cycle's number is the seed of its order, so that a record that names an epoch leads to its rotation however late
 * it comes.  Which of them is n-th in a shuffle is found by following one place backwards through its exchanges.
 */
uint32_t hw_rotation_turn(uint32_t n, uint32_t cnt)
{
	uint64_t state = 0x9e3779b97f4a7c15ULL * (n / cnt + 1);
	uint32_t at = n % cnt, exchanges[HW_ROTATIONS_MAX];

	for (uint32_t i = cnt; i > 1; i--)
		exchanges[i - 1] = (uint32_t)(random_next(&state) % i);
	for (uint32_t i = 1; i < cnt; i++) {
		if (at == i)
			at = exchanges[i];
		else if (at == exchanges[i])
			at = i;
	}
	return at;
}
