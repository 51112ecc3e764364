// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/compare_gain.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static bool *rows_of(const struct paths *paths, const uint8_t *sides, int side)
{
	bool *rows = calloc(paths->row_cnt + 1, sizeof(*rows));

	for (size_t row = 0; rows && row < paths->row_cnt; row++)
		rows[row] = paths->ranked[row] && (sides[row] & (side ? COMPARE_IN_B : COMPARE_IN_A));
	return rows;
}

/* A line's time in the side's rows; whether it has any. */
static bool copy_times(uint64_t *to, const uint64_t *from, const bool *rows, const struct root_lines *lines,
		       size_t row_cnt)
{
	size_t cnt = 0;
	bool any = false;

	for (size_t row = 0; row < row_cnt; row++) {
		if (!rows[row])
			continue;
		to[cnt] = from[lines->ranked->at[row]];
		any = any || to[cnt];
		cnt++;
	}
	return any;
}

static int fill_side(struct comparison *comparison, const struct root_lines *lines, const bool *rows, int side,
		     const struct compare_opts *opts)
{
	const struct report report = {.dataset = comparison->dataset, .tail_threshold_ns = INFINITY, .typical_ns = 0};
	const struct share_opts share_opts = {opts->bootstrap_cnt, opts->seed, 0};
	const struct paths paths = {.row_cnt = opts->paths->row_cnt, .ranked = (bool *)rows};
	uint64_t *times = calloc(paths.row_cnt + 1, sizeof(*times));
	struct path_rows ranked = {0};
	int err = times ? path_rows__init(&ranked, &report, &paths) : -ENOMEM;

	if (!err)
		err = root_gain_compute(&comparison->whole[side], times, &ranked, &share_opts);
	for (size_t l = 0; l < lines->cnt && !err; l++) {
		struct cause_gain *gain = &comparison->roots.lines[l].gain[side];

		if (copy_times(times, lines->lines[l].saved_ns, rows, lines, paths.row_cnt))
			err = root_gain_compute(gain, times, &ranked, &share_opts);
		else
			*gain = comparison->whole[side];
	}
	path_rows__free(&ranked);
	free(times);
	return err;
}

int compare_gain__fill(struct comparison *comparison, const struct root_lines *lines, const uint8_t *sides,
		       const struct compare_opts *opts)
{
	int err = 0;

	for (int s = 0; s < COMPARE_SIDE_CNT && !err; s++) {
		bool *rows = rows_of(opts->paths, sides, s);

		err = rows ? fill_side(comparison, lines, rows, s, opts) : -ENOMEM;
		free(rows);
	}
	return err;
}
