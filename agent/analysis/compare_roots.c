// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/compare_roots.h"

#include "analysis/compare_gain.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NO_LINE UINT32_MAX
#define NO_GAIN                  \
	{                        \
		NAN, NAN, NAN,   \
		{                \
			NAN, NAN \
		}                \
	}

struct work {
	struct compare_roots *roots;
	struct comparison *comparison;
	const struct compare_opts *opts;
	const uint8_t *sides;
	struct path_rows ranked;
	struct root_lines *lines;
	uint8_t *groups;
	double *scale;      /* by way: ns that a sample's amount stands for */
	uint32_t *rest;     /* by key: its line without a call path, NO_LINE: none */
	double *ns, *taken; /* by way, weighted: its time, and its samples' amounts */
};

/* Each side's rows weigh as much as the other's. */
static int take_rows(struct work *work)
{
	const struct report report = {
		.dataset = work->comparison->dataset, .tail_threshold_ns = INFINITY, .typical_ns = 0};
	const struct paths *paths = work->opts->paths;
	double weight[COMPARE_SIDE_CNT] = {0};
	int err = path_rows__init(&work->ranked, &report, paths);

	if (err)
		return err;
	for (size_t row = 0; row < paths->row_cnt; row++)
		for (int s = 0; s < COMPARE_SIDE_CNT && paths->ranked[row]; s++)
			if (work->sides[row] & (s ? COMPARE_IN_B : COMPARE_IN_A))
				weight[s] += work->ranked.weights[work->ranked.at[row]];
	for (size_t row = 0; row < paths->row_cnt; row++) {
		uint32_t at = work->ranked.at[row];
		double share = 0;

		if (!paths->ranked[row])
			continue;
		for (int s = 0; s < COMPARE_SIDE_CNT; s++)
			if (work->sides[row] & (s ? COMPARE_IN_B : COMPARE_IN_A))
				share += work->ranked.weights[at] / weight[s];
		work->groups[at] = share > 0 ? PATH_LATE : PATH_BETWEEN;
		work->ranked.weights[at] = share;
	}
	work->ranked.groups = work->groups;
	work->ranked.late_weight = COMPARE_SIDE_CNT;
	work->ranked.typical_weight = 1;
	return 0;
}

/* --- columns -------------------------------------------------------------------------------------------------------
 */

/* Which line of the key the node is of: that of the nearest branch above it. */
static uint32_t line_of(const struct work *work, uint32_t key, uint32_t node)
{
	const struct samples *samples = work->opts->roots->samples;

	for (;; node = samples->nodes.items[node].parent) {
		for (uint32_t l = 0; l < work->lines->cnt; l++) {
			const struct root_line *line = &work->lines->lines[l];

			if ((line->key == key || line->untold == key) && l != work->rest[key] &&
			    line->branch.top == node)
				return l;
		}
		if (node == SAMPLE_ROOT)
			return work->rest[key];
	}
}

static void find_rests(struct work *work)
{
	const struct roots *roots = work->opts->roots;

	/* A key's first line is what no call path separates. */
	memset(work->rest, 0xff, roots->keys.cnt * sizeof(*work->rest));
	for (uint32_t l = 0; l < work->lines->cnt; l++)
		if (work->rest[work->lines->lines[l].key] == NO_LINE)
			work->rest[work->lines->lines[l].key] = l;
}

static void find_scales(struct work *work)
{
	const struct roots *roots = work->opts->roots;

	for (size_t e = 0; e < roots->entries.cnt; e++) {
		const struct root_entry *entry = &roots->entries.items[e];
		double weight = work->ranked.weights[work->ranked.at[entry->row]];

		work->ns[entry->way] += weight * (double)entry->ns;
		for (uint32_t t = 0; t < entry->tick_cnt; t++)
			work->taken[entry->way] += weight * roots->ticks.items[entry->tick + t].amount;
	}
	for (size_t w = 0; w < roots->ways.cnt; w++)
		work->scale[w] = work->taken[w] > 0 ? work->ns[w] / work->taken[w] : 0;
}

static void fill_columns(struct work *work)
{
	const struct roots *roots = work->opts->roots;
	double **columns = work->roots->columns;

	for (size_t e = 0; e < roots->entries.cnt; e++) {
		const struct root_entry *entry = &roots->entries.items[e];
		uint32_t key = roots->ways.items[entry->way].key;
		uint32_t rest = work->rest[key] == NO_LINE ? (uint32_t)work->lines->cnt : work->rest[key];

		columns[rest][entry->row] += (double)entry->ns;
		for (uint32_t t = 0; t < entry->tick_cnt && work->rest[key] != NO_LINE; t++) {
			const struct root_tick *tick = &roots->ticks.items[entry->tick + t];
			uint32_t line = line_of(work, key, tick->node);
			double ns = work->scale[entry->way] * tick->amount;

			columns[line][entry->row] += ns;
			columns[rest][entry->row] -= ns;
		}
	}
}

/* --- lines ---------------------------------------------------------------------------------------------------------
 */

static int add_line(struct work *work, size_t line, struct report *report)
{
	struct comparison *comparison = work->comparison;
	struct cause *cause = arena__alloc(comparison->arena, 1, sizeof(*cause));
	enum root_kind kind = (enum root_kind)work->lines->roots->keys.items[work->lines->lines[line].key].kind;
	int err = cause ? 0 : -ENOMEM;

	if (!err && kind != ROOT_OUR_OWN)
		err = root_lines__cause(cause, report, work->lines, (uint32_t)line);
	if (err)
		return err;
	comparison->roots.lines[comparison->roots.cnt++] = (struct compare_line){
		.name = kind == ROOT_OUR_OWN ? "whylate itself" : cause->what,
		.root = kind == ROOT_OUR_OWN ? NULL : cause,
		.known = kind != ROOT_UNKNOWN,
	};
	return 0;
}

static int add_lines(struct work *work)
{
	struct comparison *comparison = work->comparison;
	struct report report = {.dataset = comparison->dataset, .arena = comparison->arena};
	int err = 0;

	comparison->roots.lines = arena__alloc(comparison->arena, COMPARE_ROOTS_MAX, sizeof(*comparison->roots.lines));
	if (!comparison->roots.lines)
		return -ENOMEM;
	for (size_t l = 0; l < work->lines->cnt && !err; l++)
		err = add_line(work, l, &report);
	if (!err)
		err = compare_gain__fill(comparison, work->lines, work->sides, work->opts);
	if (err)
		return err;
	comparison->roots.lines[comparison->roots.cnt++] =
		(struct compare_line){.name = "smaller roots together", .known = true, .gain = {NO_GAIN, NO_GAIN}};
	for (size_t l = 0; l < comparison->roots.cnt; l++) {
		work->roots->columns[l] = calloc(comparison->dataset->row_cnt + 1, sizeof(double));
		if (!work->roots->columns[l])
			return -ENOMEM;
	}
	find_rests(work);
	find_scales(work);
	fill_columns(work);
	return 0;
}

int compare_roots__make(struct compare_roots *roots, struct comparison *comparison, const uint8_t *sides,
			const struct compare_opts *opts)
{
	struct work work = {.roots = roots, .comparison = comparison, .opts = opts, .sides = sides};
	size_t ways = opts->roots->ways.cnt + 1;
	int err = -ENOMEM;

	work.lines = calloc(1, sizeof(*work.lines));
	work.groups = calloc(opts->paths->row_cnt + 1, sizeof(*work.groups));
	work.scale = calloc(ways, sizeof(*work.scale));
	work.ns = calloc(ways, sizeof(*work.ns));
	work.taken = calloc(ways, sizeof(*work.taken));
	work.rest = calloc(opts->roots->keys.cnt + 1, sizeof(*work.rest));
	if (work.lines && work.groups && work.scale && work.ns && work.taken && work.rest)
		err = take_rows(&work);
	if (!err)
		err = root_lines__make(work.lines, opts->roots, &work.ranked);
	if (!err)
		err = add_lines(&work);
	if (work.lines)
		root_lines__free(work.lines);
	path_rows__free(&work.ranked);
	free(work.rest);
	free(work.taken);
	free(work.ns);
	free(work.scale);
	free(work.groups);
	free(work.lines);
	return err;
}

void compare_roots__free(struct compare_roots *roots)
{
	for (size_t l = 0; l < COMPARE_ROOTS_MAX; l++)
		free(roots->columns[l]);
	*roots = (struct compare_roots){0};
}
