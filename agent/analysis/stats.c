// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/stats.h"

#include "analysis/sort.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

int stats_order__init(struct stats_order *order, const uint64_t *values, const double *weights, size_t cnt)
{
	struct sort_scratch scratch = {0};
	struct sort_pair *sorted;

	*order = (struct stats_order){.values = values, .weights = weights, .cnt = cnt};
	if (cnt > UINT32_MAX)
		return -E2BIG;
	order->rows = calloc(cnt ? cnt : 1, sizeof(*order->rows));
	if (!order->rows)
		return -ENOMEM;
	if (sort_scratch__init(&scratch, cnt)) {
		stats_order__free(order);
		return -ENOMEM;
	}
	for (size_t i = 0; i < cnt; i++) {
		scratch.pairs[0][i] = (struct sort_pair){.key = values[i], .row = (uint32_t)i};
		order->total_weight += weights[i];
	}
	sorted = sort_pairs(&scratch, cnt);
	for (size_t i = 0; i < cnt; i++)
		order->rows[i] = sorted[i].row;
	sort_scratch__free(&scratch);
	return 0;
}

void stats_order__free(struct stats_order *order)
{
	free(order->rows);
	order->rows = NULL;
}

/*
 * The weight that may lie above the quantile.  Rows with values <= v weigh W - above(v), so the smallest v with
 * W - above(v) >= p·W is the first value, from the largest down, at which the weight from there on up exceeds W - p·W.
 * The 1e-9 absorbs the rounding of p·W and of the sums, which would otherwise move the quantile by a whole row.
 */
static double weight_above(double p, double total_weight)
{
	return total_weight - p * total_weight + 1e-9 * total_weight;
}

double stats_quantile(const struct stats_order *order, double p, const uint64_t *skip, const uint64_t *skip_too,
		      double kept_weight)
{
	double limit = weight_above(p, kept_weight), above = 0, value = NAN;

	for (size_t i = order->cnt; i-- > 0;) {
		uint32_t row = order->rows[i];

		if ((skip && bitmap_test(skip, row)) || (skip_too && bitmap_test(skip_too, row)))
			continue;
		value = (double)order->values[row];
		above += order->weights[row];
		if (above > limit)
			break;
	}
	return value;
}

void stats_summarize(struct latency_summary *summary, const struct stats_order *order)
{
	double sum = 0, squares = 0, mean, off;

	*summary = (struct latency_summary){order->total_weight, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
	if (!order->cnt)
		return;
	for (size_t i = 0; i < order->cnt; i++)
		sum += order->weights[i] * (double)order->values[i];
	mean = sum / order->total_weight;
	for (size_t i = 0; i < order->cnt; i++) {
		off = (double)order->values[i] - mean;
		squares += order->weights[i] * off * off;
	}
	summary->mean_ns = mean;
	/* Equal values have no variance, whatever the rounding of their mean says. */
	if (order->values[order->rows[0]] == order->values[order->rows[order->cnt - 1]])
		squares = 0;
	summary->variance_ns2 = squares / order->total_weight;
	summary->cov = mean > 0 ? sqrt(summary->variance_ns2) / mean : NAN;
	summary->p50_ns = stats_quantile(order, 0.5, NULL, NULL, order->total_weight);
	summary->p90_ns = stats_quantile(order, 0.9, NULL, NULL, order->total_weight);
	summary->p99_ns = stats_quantile(order, 0.99, NULL, NULL, order->total_weight);
	summary->p999_ns = stats_quantile(order, 0.999, NULL, NULL, order->total_weight);
	summary->max_ns = (double)order->values[order->rows[order->cnt - 1]];
}

int stats_by_type(struct type_line *lines, const uint32_t *types, size_t type_cnt, const struct stats_order *order)
{
	double *above = calloc(type_cnt ? type_cnt : 1, sizeof(*above));

	if (!above)
		return -ENOMEM;
	for (size_t t = 0; t < type_cnt; t++) {
		lines[t].count = lines[t].mean_ns = 0;
		lines[t].p99_ns = NAN;
	}
	for (size_t i = 0; i < order->cnt; i++) {
		lines[types[i]].count += order->weights[i];
		lines[types[i]].mean_ns += order->weights[i] * (double)order->values[i];
	}
	for (size_t t = 0; t < type_cnt; t++)
		lines[t].mean_ns = lines[t].count > 0 ? lines[t].mean_ns / lines[t].count : NAN;
	for (size_t i = order->cnt; i-- > 0;) {
		uint32_t row = order->rows[i], t = types[row];

		if (above[t] > weight_above(0.99, lines[t].count))
			continue;
		above[t] += order->weights[row];
		lines[t].p99_ns = (double)order->values[row];
	}
	free(above);
	return 0;
}
