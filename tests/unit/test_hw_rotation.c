// SPDX-License-Identifier: GPL-2.0-or-later
/* Hardware counters: what is recorded together, and what stands for the values that a swap of counters takes away. */
#include "row_writer.h"
#include "test_analysis_fixture.h"
#include "test_shard_util.h"
#include "unit.h"

#include "analysis/impact.h"
#include "base/random.h"
#include "model/hw_rotation.h"
#include "model/hw_rules.h"
#include "model/session.h"
#include "shard/table.h"

#include <math.h>
#include <string.h>

static bool together(const hw_rotations *rotations, uint32_t a, uint32_t b)
{
	for (size_t r = 0; r < rotations->cnt; r++) {
		bool has_a = false, has_b = false;

		for (uint32_t i = 0; i < rotations->items[r].cnt; i++) {
			has_a |= rotations->items[r].counters[i] == a;
			has_b |= rotations->items[r].counters[i] == b;
		}
		if (has_a && has_b)
			return true;
	}
	return false;
}

/* Any set of counters that a machine may have, and any number of them at a time. */
static void every_pair_of_a_rule_is_recorded_together(void)
{
	uint64_t state = 7;

	for (int round = 0; round < 300; round++) {
		uint32_t counters[SHARD_HW_CNT], cnt = 0, slots = 2 + round % (WL_HW_SLOTS - 1);
		uint64_t mask = round < 3 ? UINT64_MAX : random_next(&state);
		size_t pairs = 0;
		hw_rotations rotations = {0};

		for (uint32_t i = 0; i < SHARD_HW_CNT; i++)
			if (mask >> i & 1)
				counters[cnt++] = i;
		CU_ASSERT_EQUAL_FATAL(hw_rotations_cover(&rotations, counters, cnt, slots), 0);
		for (uint32_t i = 0; i < cnt; i++) {
			CU_ASSERT(together(&rotations, counters[i], counters[i]));
			for (uint32_t j = 0; j < i; j++) {
				pairs += hw_rule_pair(counters[i], counters[j]);
				CU_ASSERT(!hw_rule_pair(counters[i], counters[j]) ||
					  together(&rotations, counters[i], counters[j]));
			}
		}
		for (size_t r = 0; r < rotations.cnt; r++) {
			CU_ASSERT(rotations.items[r].cnt && rotations.items[r].cnt <= slots);
			for (uint32_t i = 0; i < rotations.items[r].cnt; i++)
				for (uint32_t j = 0; j < i; j++)
					CU_ASSERT_NOT_EQUAL(rotations.items[r].counters[i],
							    rotations.items[r].counters[j]);
		}
		CU_ASSERT(rotations.cnt <= pairs + cnt && rotations.cnt <= HW_ROTATIONS_MAX);
		/* Four at a time: not many more than the fewest that could do, six pairs each. */
		if (slots == 4)
			CU_ASSERT(rotations.cnt <= pairs / 3 + cnt);
		vec_free(&rotations);
	}
	CU_ASSERT(hw_rule_pair(SHARD_HW_CYCLES, SHARD_HW_INSTRUCTIONS));
	CU_ASSERT(hw_rule_pair(SHARD_HW_BRANCH_MISSES, SHARD_HW_BRANCHES));
	CU_ASSERT_FALSE(hw_rule_pair(SHARD_HW_BRANCH_MISSES, SHARD_HW_INSTRUCTIONS));
	CU_ASSERT_FALSE(hw_rule_pair(SHARD_HW_CYCLES, SHARD_HW_SW_FAULTS));
}

/* Each has its turn in every cycle, in another order each time. */
static void turns_are_random_and_fair(void)
{
	for (uint32_t cnt = 1; cnt <= 40; cnt++) {
		uint32_t same = 0;

		for (uint32_t cycle = 0; cycle < 20; cycle++) {
			uint64_t seen = 0;
			bool as_before = true;

			for (uint32_t i = 0; i < cnt; i++) {
				uint32_t turn = hw_rotation_turn(cycle * cnt + i, cnt);

				CU_ASSERT_FATAL(turn < cnt);
				seen |= 1ULL << turn;
				as_before &= cycle && turn == hw_rotation_turn((cycle - 1) * cnt + i, cnt);
			}
			CU_ASSERT_EQUAL(seen, (1ULL << cnt) - 1);
			same += as_before;
		}
		CU_ASSERT(cnt < 4 || same <= 3);
	}
}

#define ROWS 40000

/* An epoch is 1000; an interval that falls on its border has no value.  What all of them would say is known. */
static void what_swaps_take_away_is_made_up_for(void)
{
	struct event_line lines[FIXTURE_EVENTS_MAX], all, raw, mended;
	struct analysis_fixture fixture;
	uint64_t *values, *missing, state = 3;
	double factor[ROWS];

	for (int pass = 0; pass < 3; pass++) {
		state = 3;
		analysis_fixture_init(&fixture, ROWS);
		values = fixture_event(&fixture, "hw.cache_misses", &missing);
		for (size_t i = 0; i < ROWS; i++) {
			bool high = fixture_uniform(&state) < 0.1, lost;
			uint64_t ns = (uint64_t)(high ? 500 + 400 * fixture_uniform(&state)
						      : 10 + 40 * fixture_uniform(&state));

			lost = fixture_uniform(&state) < (double)ns / 1000;
			fixture_add(&fixture, i, WL_CATEGORY_ONCPU, ns);
			values[i] = high ? 1000 : i % 10;
			if (pass && lost)
				bitmap_set(missing, i);
			factor[i] = 1 / (1 - (double)ns / 1000);
		}
		fixture.dataset.hw_factor = pass == 2 ? factor : NULL;
		fixture_impacts(lines, &fixture, 0.95);
		*(pass == 0 ? &all : pass == 1 ? &raw : &mended) = lines[0];
		fixture.dataset.hw_factor = NULL;
		analysis_fixture_free(&fixture);
	}
	/* One in ten is high, and of those the later ones are missing. */
	CU_ASSERT_DOUBLE_EQUAL(all.mean, 0.1 * 1000 + 0.9 * 4.5, 3);
	CU_ASSERT(raw.mean < 0.5 * all.mean);
	CU_ASSERT(raw.impact < 0.5 * all.impact || isnan(raw.impact));
	CU_ASSERT_DOUBLE_EQUAL(mended.mean, all.mean, 0.06 * all.mean);
	CU_ASSERT_DOUBLE_EQUAL(mended.impact, all.impact, 0.02);
}

static void put_row(struct row_writer *to, uint64_t sid, uint64_t waited_ns, uint64_t worked_ns, uint64_t flags)
{
	uint64_t begin_ts = sid * 10000000000;

	row_begin_interval(to, sid, 101, "tcp:80", begin_ts, begin_ts + waited_ns + worked_ns, 0, flags);
	row_set_ts(to, INTERVAL_PICKUP_TS, begin_ts + waited_ns);
	row_end(to, SHARD_TABLE_INTERVAL);
}

static bool has_note(const struct dataset *dataset, const char *part)
{
	for (size_t i = 0; i < dataset->note_cnt; i++)
		if (strstr(dataset->notes[i], part))
			return true;
	return false;
}

static void load(struct test_dir *dir, struct dataset *dataset, const char *rotations, const char *epoch_ns)
{
	const struct dataset_filter none = {0};
	struct shard_reader *reader;
	struct row_writer to;

	test_dir__make(dir);
	row_writer_open(&to, dir->path, "host", 0x12, 100);
	if (rotations)
		row_put_session(&to, SESSION_HW_ROTATIONS, rotations);
	if (epoch_ns)
		row_put_session(&to, SESSION_HW_EPOCH_NS, epoch_ns);
	/* Counters are read from the pick-up on. */
	put_row(&to, 1, 500000000, 500000000, WL_INTERVAL_HW);
	put_row(&to, 2, 0, 0, WL_INTERVAL_HW);
	put_row(&to, 3, 0, 2100000000, 0);
	put_row(&to, 4, 0, 1999000000, WL_INTERVAL_HW);
	row_writer_close(&to);
	reader = test_reader__open(dir->path);
	CU_ASSERT_EQUAL_FATAL(dataset_load(dataset, reader, &none), 0);
	shard_reader__free(reader);
}

static void factors_come_from_the_epoch(void)
{
	struct dataset dataset;
	struct test_dir dir;

	load(&dir, &dataset, "3", "2000000000");
	ASSERT_NEAR(dataset.hw_factor[0], 4.0 / 3);
	ASSERT_NEAR(dataset.hw_factor[1], 1);
	CU_ASSERT(dataset.hw_factor[3] > 50 && isfinite(dataset.hw_factor[3]));
	CU_ASSERT(has_note(&dataset, "25 % of the requests took longer than the 2 s"));
	dataset_free(&dataset);
	test_dir__remove(&dir);
	/* An older recording; and one whose counters are on all the time. */
	load(&dir, &dataset, NULL, NULL);
	ASSERT_NEAR(dataset.hw_factor[0], 2);
	CU_ASSERT(has_note(&dataset, "50 % of the requests"));
	dataset_free(&dataset);
	test_dir__remove(&dir);
	load(&dir, &dataset, "1", NULL);
	ASSERT_NEAR(dataset.hw_factor[0], 1);
	ASSERT_NEAR(dataset.hw_factor[2], 1);
	CU_ASSERT_FALSE(has_note(&dataset, "hardware counters"));
	dataset_free(&dataset);
	test_dir__remove(&dir);
}

int suite_hw_rotation(void)
{
	static const struct unit_test tests[] = {
		{"every pair of a rule is recorded together", every_pair_of_a_rule_is_recorded_together},
		{"turns are random and fair", turns_are_random_and_fair},
		{"what swaps take away is made up for", what_swaps_take_away_is_made_up_for},
		{"factors come from the epoch", factors_come_from_the_epoch},
	};

	return unit_suite("hardware counters", tests, sizeof(tests) / sizeof(tests[0]));
}
