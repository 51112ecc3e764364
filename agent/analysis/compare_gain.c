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

/* The rows of one side, and what goes with a line in them. */
struct gain_side {
	const bool *rows;
	size_t row_cnt;
	struct path_rows ranked;
	struct root_saved saved;
};

/* Whether anything goes. */
static bool take_saved(struct gain_side *side, const struct root_saved *from, const struct root_lines *lines)
{
	size_t cnt = 0;
	bool any = false;

	for (size_t row = 0; row < side->row_cnt; row++) {
		uint32_t at = lines->ranked->at[row];

		if (!side->rows[row])
			continue;
		side->saved.ns[cnt] = from->ns[at];
		side->saved.least_ns[cnt] = from->least_ns[at];
		side->saved.alone[cnt] = from->alone[at];
		any = any || side->saved.ns[cnt];
		cnt++;
	}
	return any;
}

static int fill_lines(struct comparison *comparison, const struct root_lines *lines, struct gain_side *of, int side,
		      const struct share_opts *opts)
{
	struct root_backlog *backlog = root_backlog__new(lines);
	int err = backlog ? 0 : -ENOMEM;

	for (size_t l = 0; l < lines->cnt && !err; l++) {
		struct cause_gain *gain = &comparison->roots.lines[l].gain[side];
		struct root_saved saved;

		*gain = comparison->whole[side];
		err = root_backlog__save(backlog, (uint32_t)l, &saved);
		if (!err && take_saved(of, &saved, lines))
			err = root_gain_compute(gain, &of->saved, &of->ranked, opts);
	}
	root_backlog__free(backlog);
	return err;
}

static int fill_side(struct comparison *comparison, const struct root_lines *lines, const bool *rows, int side,
		     const struct compare_opts *opts)
{
	const struct report report = {.dataset = comparison->dataset, .tail_threshold_ns = INFINITY, .typical_ns = 0};
	const struct share_opts share_opts = {opts->bootstrap_cnt, opts->seed, 0};
	const struct paths paths = {.row_cnt = opts->paths->row_cnt, .ranked = (bool *)rows};
	struct gain_side of = {.rows = rows, .row_cnt = paths.row_cnt};
	int err = root_saved__init(&of.saved, paths.row_cnt);

	if (!err)
		err = path_rows__init(&of.ranked, &report, &paths);
	if (!err)
		err = root_gain_compute(&comparison->whole[side], NULL, &of.ranked, &share_opts);
	if (!err)
		err = fill_lines(comparison, lines, &of, side, &share_opts);
	path_rows__free(&of.ranked);
	root_saved__free(&of.saved);
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
