// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/bootstrap.h"
#include "analysis/roots_report.h"
#include "analysis/stats.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define REPLICATES 200
#define P99        0.99
#define P999       0.999

/* The quantile when each block of rows is there as often as the replicate says. */
static double replicate_quantile(const struct stats_order *order, const uint32_t *block_of,
				 const uint32_t *multiplicity, double p, double total)
{
	double above = 0, limit = (1 - p) * total;

	for (size_t i = order->cnt; i-- > 0;) {
		uint32_t row = order->rows[i];

		above += order->weights[row] * multiplicity[block_of[row]];
		if (above > limit)
			return (double)order->values[row];
	}
	return NAN;
}

static int p99_interval(struct cause_gain *gain, const struct stats_order *order, const struct share_rows *rows,
			const struct share_opts *opts)
{
	struct bootstrap_blocks blocks = {0};
	uint32_t *block_of = NULL, *multiplicity = NULL;
	double *weights = NULL, values[REPLICATES];
	int err = bootstrap_blocks__init(&blocks, rows);

	if (!err) {
		block_of = malloc((rows->row_cnt + 1) * sizeof(*block_of));
		multiplicity = malloc((blocks.cnt + 1) * sizeof(*multiplicity));
		weights = calloc(blocks.cnt + 1, sizeof(*weights));
		err = block_of && multiplicity && weights ? 0 : -ENOMEM;
	}
	for (size_t b = 0; b < blocks.cnt && !err; b++)
		for (size_t row = blocks.first[b]; row < blocks.first[b + 1]; row++) {
			block_of[row] = (uint32_t)b;
			weights[b] += rows->weights[row];
		}
	for (uint32_t r = 0; r < REPLICATES && !err; r++) {
		double total = 0;

		bootstrap_draw(multiplicity, blocks.cnt, opts->seed, r);
		for (size_t b = 0; b < blocks.cnt; b++)
			total += weights[b] * multiplicity[b];
		values[r] = replicate_quantile(order, block_of, multiplicity, P99, total);
	}
	if (!err)
		gain->p99_ci = bootstrap_interval(values, REPLICATES, gain->p99_ns, blocks.cnt);
	bootstrap_blocks__free(&blocks);
	free(block_of);
	free(multiplicity);
	free(weights);
	return err;
}

int root_gain_compute(struct cause_gain *gain, const uint64_t *ns, const struct path_rows *ranked,
		      const struct share_opts *opts)
{
	size_t cnt = ranked->rows.row_cnt;
	uint64_t *left_ns = calloc(cnt + 1, sizeof(*left_ns));
	struct stats_order order = {0};
	double sum = 0;
	int err = left_ns ? 0 : -ENOMEM;

	*gain = (struct cause_gain){NAN, NAN, NAN, {NAN, NAN}};
	for (size_t row = 0; row < cnt && !err; row++) {
		left_ns[row] = ranked->latency_ns[row] - ns[row];
		sum += ranked->weights[row] * (double)left_ns[row];
	}
	if (!err)
		err = stats_order__init(&order, left_ns, ranked->weights, cnt);
	if (!err && cnt) {
		gain->mean_ns = sum / order.total_weight;
		gain->p99_ns = stats_quantile(&order, P99, NULL, NULL, order.total_weight);
		gain->p999_ns = stats_quantile(&order, P999, NULL, NULL, order.total_weight);
		err = p99_interval(gain, &order, &ranked->rows, opts);
	}
	stats_order__free(&order);
	free(left_ns);
	return err;
}
