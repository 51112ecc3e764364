// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/compare_functions.h"

#include "base/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NO_LINE   UINT32_MAX
#define NAMED_MAX (COMPARE_FUNCTIONS_MAX - 2)

struct work {
	const struct roots *roots;
	const struct samples *samples;
	double *weight;     /* by row: the rows of a side sum to 1 */
	double *ns, *taken; /* by way, weighted: its time, and its samples' amounts */
	double *own_ns;     /* by name: weighted time */
	uint32_t *line_of;  /* by name */
};

struct named {
	uint32_t name;
	double ns;
};

ORDER(compare_named, struct named, BY(b->ns, a->ns), BY(a->name, b->name));

static void weigh_rows(struct work *work, const struct dataset *dataset, const uint8_t *sides)
{
	double weight[COMPARE_SIDE_CNT] = {0};

	for (int s = 0; s < COMPARE_SIDE_CNT; s++)
		for (size_t row = 0; row < dataset->row_cnt; row++)
			if (sides[row] & (s ? COMPARE_IN_B : COMPARE_IN_A))
				weight[s] += dataset->weight[row];
	for (int s = 0; s < COMPARE_SIDE_CNT; s++)
		for (size_t row = 0; row < dataset->row_cnt; row++)
			if (sides[row] & (s ? COMPARE_IN_B : COMPARE_IN_A))
				work->weight[row] += dataset->weight[row] / weight[s];
}

static double scale_of(const struct work *work, uint32_t way)
{
	return work->taken[way] > 0 ? work->ns[way] / work->taken[way] : 0;
}

/* The function itself is the innermost frame. */
static uint32_t name_of(const struct work *work, const struct root_tick *tick)
{
	return work->samples->nodes.items[tick->node].name;
}

static void sum_names(struct work *work)
{
	const struct roots *roots = work->roots;

	for (size_t e = 0; e < roots->entries.cnt; e++) {
		const struct root_entry *entry = &roots->entries.items[e];

		work->ns[entry->way] += work->weight[entry->row] * (double)entry->ns;
		for (uint32_t t = 0; t < entry->tick_cnt; t++)
			work->taken[entry->way] +=
				work->weight[entry->row] * roots->ticks.items[entry->tick + t].amount;
	}
	for (size_t e = 0; e < roots->entries.cnt; e++) {
		const struct root_entry *entry = &roots->entries.items[e];
		double scale = work->weight[entry->row] * scale_of(work, entry->way);

		for (uint32_t t = 0; t < entry->tick_cnt; t++) {
			const struct root_tick *tick = &roots->ticks.items[entry->tick + t];

			if (tick->node != SAMPLE_ROOT)
				work->own_ns[name_of(work, tick)] += scale * tick->amount;
		}
	}
}

static void add_line(struct comparison *comparison, const char *name)
{
	comparison->functions.lines[comparison->functions.cnt++] = (struct compare_line){.name = name, .known = true};
}

static int add_lines(struct work *work, struct comparison *comparison)
{
	size_t names = work->samples->names.cnt, cnt = 0;
	struct named *sorted = calloc(names + 1, sizeof(*sorted));

	comparison->functions.lines =
		arena__alloc(comparison->arena, COMPARE_FUNCTIONS_MAX, sizeof(*comparison->functions.lines));
	if (!sorted || !comparison->functions.lines) {
		free(sorted);
		return -ENOMEM;
	}
	memset(work->line_of, 0xff, (names + 1) * sizeof(*work->line_of));
	for (uint32_t n = 0; n < names; n++)
		if (work->own_ns[n] > 0)
			sorted[cnt++] = (struct named){n, work->own_ns[n]};
	qsort(sorted, cnt, sizeof(*sorted), compare_named);
	for (size_t i = 0; i < cnt && i < NAMED_MAX; i++) {
		work->line_of[sorted[i].name] = (uint32_t)i;
		add_line(comparison, work->samples->names.strings[sorted[i].name]);
	}
	free(sorted);
	add_line(comparison, "other functions together");
	add_line(comparison, "in no sampled function");
	return 0;
}

static void fill_columns(const struct work *work, double **columns, size_t line_cnt)
{
	const struct roots *roots = work->roots;

	for (size_t e = 0; e < roots->entries.cnt; e++) {
		const struct root_entry *entry = &roots->entries.items[e];
		double *rest = &columns[line_cnt - 1][entry->row];

		*rest += (double)entry->ns;
		for (uint32_t t = 0; t < entry->tick_cnt; t++) {
			const struct root_tick *tick = &roots->ticks.items[entry->tick + t];
			double ns = scale_of(work, entry->way) * tick->amount;
			uint32_t line = work->line_of[name_of(work, tick)];

			if (tick->node == SAMPLE_ROOT)
				continue;
			columns[line == NO_LINE ? line_cnt - 2 : line][entry->row] += ns;
			*rest -= ns;
		}
	}
}

int compare_functions__make(struct compare_functions *functions, struct comparison *comparison, const uint8_t *sides,
			    const struct compare_opts *opts)
{
	const struct dataset *dataset = comparison->dataset;
	struct work work = {.roots = opts->roots, .samples = opts->roots->samples};
	size_t ways = opts->roots->ways.cnt + 1;
	int err = -ENOMEM;

	if (!work.samples || !work.samples->names.cnt || !opts->roots->ticks.cnt)
		return 0;
	work.weight = calloc(dataset->row_cnt + 1, sizeof(*work.weight));
	work.ns = calloc(ways, sizeof(*work.ns));
	work.taken = calloc(ways, sizeof(*work.taken));
	work.own_ns = calloc(work.samples->names.cnt + 1, sizeof(*work.own_ns));
	work.line_of = calloc(work.samples->names.cnt + 1, sizeof(*work.line_of));
	if (work.weight && work.ns && work.taken && work.own_ns && work.line_of) {
		weigh_rows(&work, dataset, sides);
		sum_names(&work);
		err = add_lines(&work, comparison);
	}
	for (size_t l = 0; l < comparison->functions.cnt && !err; l++) {
		functions->columns[l] = calloc(dataset->row_cnt + 1, sizeof(double));
		err = functions->columns[l] ? 0 : -ENOMEM;
	}
	if (!err)
		fill_columns(&work, functions->columns, comparison->functions.cnt);
	free(work.line_of);
	free(work.own_ns);
	free(work.taken);
	free(work.ns);
	free(work.weight);
	return err;
}

void compare_functions__free(struct compare_functions *functions)
{
	for (size_t l = 0; l < COMPARE_FUNCTIONS_MAX; l++)
		free(functions->columns[l]);
	*functions = (struct compare_functions){0};
}
