// SPDX-License-Identifier: GPL-2.0-or-later
/* Intervals of confidence of contributions: the block bootstrap of shares.c, over sums of squares and of products. */
#include "analysis/bootstrap.h"
#include "analysis/factors_report.h"
#include "base/idmap.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define SLOTS_MAX 256 /* instances; the lines behind them get no interval */

enum row_sum { ROW_W, ROW_L, ROW_LL, ROW_SUM_CNT };
enum slot_sum { SLOT_X, SLOT_Y, SLOT_XY, SLOT_SUM_CNT }; /* SLOT_XY: without the noise */

/* An instance of a factor. */
struct slot {
	uint32_t line;
	uint32_t node, other; /* other == node: a variance */
};

struct factor_confidence {
	struct slot slots[SLOTS_MAX];
	size_t slot_cnt, line_cnt;
	struct idmap pair_slots; /* (smaller node, larger node) → index into slots_of_pairs */
	uint32_t slots_of_pairs[SLOTS_MAX];
	struct bootstrap_sums of;
	double center_ns;
	size_t block; /* of the last row */
	const struct share_rows *rows;
	struct share_opts opts;
	double *values; /* [line][replicate] */
};

/* False: there is no room for all of them. */
static bool add_slots(struct factor_confidence *confidence, uint32_t line, const struct factors *factors,
		      const struct factor *factor)
{
	size_t step = factor->funcs[1] == FACTOR_NONE ? 1 : 2;

	if (confidence->slot_cnt + factor->instance_cnt / step > SLOTS_MAX)
		return false;
	for (size_t i = 0; i < factor->instance_cnt; i += step) {
		const uint32_t *nodes = factors->instances.items + factor->first_instance + i;
		uint32_t a = nodes[0], b = nodes[step - 1], id;

		if (a != b) {
			if (idmap__id(&confidence->pair_slots, a < b ? a : b, a < b ? b : a, &id))
				return false;
			confidence->slots_of_pairs[id] = (uint32_t)confidence->slot_cnt;
		}
		confidence->slots[confidence->slot_cnt++] = (struct slot){line, a, b};
	}
	return true;
}

static double time_at(const struct variance_tree *tree, uint32_t node)
{
	struct tree_time time;

	return variance_tree__visited(tree, node, &time) ? tree_ns(time.ns) : 0;
}

static void replicate(void *ctx, uint32_t r, const double *sums)
{
	struct factor_confidence *confidence = ctx;
	double w = sums[ROW_W];
	double variance = sums[ROW_LL] / w - sums[ROW_L] / w * (sums[ROW_L] / w);

	for (size_t line = 0; line < confidence->line_cnt; line++)
		confidence->values[line * confidence->of.replicate_cnt + r] = variance > 0 ? 0 : NAN;
	for (size_t s = 0; s < confidence->slot_cnt && variance > 0; s++) {
		const struct slot *slot = &confidence->slots[s];
		const double *at = sums + ROW_SUM_CNT + s * SLOT_SUM_CNT;
		double cov = at[SLOT_XY] / w - at[SLOT_X] / w * (at[SLOT_Y] / w);

		confidence->values[slot->line * confidence->of.replicate_cnt + r] +=
			(slot->node == slot->other ? 1 : 2) * cov / variance;
	}
}

static int factor_confidence__alloc(struct factor_confidence *confidence)
{
	confidence->of.stride = ROW_SUM_CNT + confidence->slot_cnt * SLOT_SUM_CNT;
	confidence->of.sums = calloc(confidence->of.blocks.cnt * confidence->of.stride + 1, sizeof(double));
	confidence->values = calloc(confidence->line_cnt * confidence->of.replicate_cnt + 1, sizeof(double));
	return confidence->of.sums && confidence->values ? 0 : -ENOMEM;
}

void factor_confidence__free(struct factor_confidence *confidence)
{
	if (!confidence)
		return;
	free(confidence->values);
	free(confidence->of.sums);
	bootstrap_blocks__free(&confidence->of.blocks);
	idmap__free(&confidence->pair_slots);
	free(confidence);
}

struct factor_confidence *factor_confidence__new(const uint32_t *order, size_t cnt, const struct factors *factors,
						 const struct share_rows *rows, const struct share_opts *opts)
{
	struct factor_confidence *confidence = calloc(1, sizeof(*confidence));

	if (!confidence)
		return NULL;
	confidence->rows = rows;
	confidence->opts = *opts;
	confidence->of.seed = opts->seed;
	confidence->of.replicate_cnt = opts->bootstrap_cnt ? opts->bootstrap_cnt : BOOTSTRAP_REPLICATES;
	while (confidence->line_cnt < cnt && add_slots(confidence, (uint32_t)confidence->line_cnt, factors,
						       &factors->list.items[order[confidence->line_cnt]]))
		confidence->line_cnt++;
	for (size_t i = 0; i < rows->row_cnt; i++)
		confidence->center_ns += (double)rows->latency_ns[i] / (double)rows->row_cnt;
	if (!bootstrap_blocks__init(&confidence->of.blocks, rows) && !factor_confidence__alloc(confidence))
		return confidence;
	factor_confidence__free(confidence);
	return NULL;
}

static void take_pair_noise(const struct factor_confidence *confidence, const struct variance_tree *tree, double weight,
			    double *sums)
{
	size_t cnt;
	const struct tree_noise *pairs = variance_tree__visited_pairs(tree, &cnt);
	uint32_t id;

	for (size_t i = 0; i < cnt; i++) {
		uint32_t a = pairs[i].a, b = pairs[i].b;

		if (idmap__find(&confidence->pair_slots, a < b ? a : b, a < b ? b : a, &id))
			sums[ROW_SUM_CNT + confidence->slots_of_pairs[id] * SLOT_SUM_CNT + SLOT_XY] -=
				weight * pairs[i].ns2;
	}
}

void factor_confidence__add(struct factor_confidence *confidence, size_t row, const struct variance_tree *tree)
{
	double weight = confidence->rows->weights[row], *sums;
	double l = (double)confidence->rows->latency_ns[row] - confidence->center_ns;

	while (row >= confidence->of.blocks.first[confidence->block + 1])
		confidence->block++;
	sums = confidence->of.sums + confidence->block * confidence->of.stride;
	sums[ROW_W] += weight;
	sums[ROW_L] += weight * l;
	sums[ROW_LL] += weight * l * l;
	for (size_t s = 0; s < confidence->slot_cnt; s++) {
		const struct slot *slot = &confidence->slots[s];
		double *at = sums + ROW_SUM_CNT + s * SLOT_SUM_CNT;
		double x = time_at(tree, slot->node), y = slot->other == slot->node ? x : time_at(tree, slot->other);

		at[SLOT_X] += weight * x;
		at[SLOT_Y] += weight * y;
		at[SLOT_XY] +=
			weight *
			(x * y - (slot->other == slot->node ? variance_tree__visited_noise(tree, slot->node) : 0));
	}
	take_pair_noise(confidence, tree, weight, sums);
}

int factor_confidence__finish(struct factor_confidence *confidence, struct factor_line *lines, size_t cnt)
{
	uint32_t replicate_cnt = confidence->of.replicate_cnt;
	int err = bootstrap_run(&confidence->of, replicate, confidence);

	for (size_t line = 0; line < cnt && !err; line++) {
		lines[line].contribution_ci = (struct ci){NAN, NAN};
		if (line < confidence->line_cnt)
			lines[line].contribution_ci = shares_widen(
				bootstrap_interval(confidence->values + line * replicate_cnt, replicate_cnt,
						   lines[line].contribution, confidence->of.blocks.cnt),
				confidence->opts.lost);
	}
	return err;
}
