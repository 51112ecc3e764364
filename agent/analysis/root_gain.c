// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/bootstrap.h"
#include "analysis/roots_report.h"
#include "analysis/stats.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define REPLICATES 200
#define P99        0.99
#define P999       0.999
#define BEYOND_MIN 5 /* rows beyond a quantile, of which an interval can tell something */

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

/* Rows that lie beyond the quantile; with too few of them, replicates only repeat what those happen to be. */
static bool has_rows_beyond(const struct stats_order *order, double p)
{
	double above = 0, limit = (1 - p) * order->total_weight;
	size_t cnt = 0;

	for (; cnt < order->cnt && cnt < BEYOND_MIN; cnt++) {
		above += order->weights[order->rows[order->cnt - 1 - cnt]];
		if (above > limit)
			break;
	}
	return cnt >= BEYOND_MIN;
}

/* The blocks of a bootstrap, with what the mean needs of each. */
struct gain_blocks {
	struct bootstrap_blocks blocks;
	uint32_t *block_of, *multiplicity;
	double *weights, *sums;
};

static int gain_blocks__init(struct gain_blocks *of, const struct share_rows *rows, const uint64_t *left_ns)
{
	const struct bootstrap_blocks *blocks = &of->blocks;

	if (bootstrap_blocks__init(&of->blocks, rows))
		return -ENOMEM;
	of->block_of = malloc((rows->row_cnt + 1) * sizeof(*of->block_of));
	of->multiplicity = malloc((blocks->cnt + 1) * sizeof(*of->multiplicity));
	of->weights = calloc(blocks->cnt + 1, sizeof(*of->weights));
	of->sums = calloc(blocks->cnt + 1, sizeof(*of->sums));
	if (!of->block_of || !of->multiplicity || !of->weights || !of->sums)
		return -ENOMEM;
	for (size_t b = 0; b < blocks->cnt; b++)
		for (size_t row = blocks->first[b]; row < blocks->first[b + 1]; row++) {
			of->block_of[row] = (uint32_t)b;
			of->weights[b] += rows->weights[row];
			of->sums[b] += rows->weights[row] * (double)left_ns[row];
		}
	return 0;
}

static void gain_blocks__free(struct gain_blocks *of)
{
	bootstrap_blocks__free(&of->blocks);
	free(of->block_of);
	free(of->multiplicity);
	free(of->weights);
	free(of->sums);
}

static void fill_intervals(struct cause_gain *gain, struct gain_blocks *of, const struct stats_order *order,
			   uint64_t seed)
{
	double means[REPLICATES], p99s[REPLICATES], p999s[REPLICATES];
	bool of_p99 = has_rows_beyond(order, P99), of_p999 = has_rows_beyond(order, P999);
	size_t cnt = of->blocks.cnt;

	for (uint32_t r = 0; r < REPLICATES; r++) {
		double total = 0, sum = 0;

		bootstrap_draw(of->multiplicity, cnt, seed, r);
		for (size_t b = 0; b < cnt; b++) {
			total += of->weights[b] * of->multiplicity[b];
			sum += of->sums[b] * of->multiplicity[b];
		}
		means[r] = total > 0 ? sum / total : NAN;
		p99s[r] = of_p99 ? replicate_quantile(order, of->block_of, of->multiplicity, P99, total) : NAN;
		p999s[r] = of_p999 ? replicate_quantile(order, of->block_of, of->multiplicity, P999, total) : NAN;
	}
	gain->mean_ci = bootstrap_interval(means, REPLICATES, gain->mean_ns, cnt);
	gain->p99_ci = bootstrap_interval(p99s, REPLICATES, gain->p99_ns, cnt);
	gain->p999_ci = bootstrap_interval(p999s, REPLICATES, gain->p999_ns, cnt);
}

/*
 * A root takes more of an interval than its own time.  Code that does not run is not interrupted or preempted: of the
 * time that was taken from the code on the path, the root's part is its part of that code.  A lock that is free makes
 * nobody sleep: the wait for a CPU after the wake-up is gone, too.
 */
uint64_t *root_gain_besides(const struct roots *roots)
{
	uint64_t *besides = calloc(roots->entries.cnt + 1, sizeof(*besides));
	const struct root_entry *entries = roots->entries.items;
	size_t end;

	for (size_t first = 0; besides && first < roots->entries.cnt; first = end) {
		double ran_ns = 0, taken_ns = 0;

		for (end = first; end < roots->entries.cnt && entries[end].row == entries[first].row; end++) {
			ran_ns += (double)entries[end].ran_ns;
			taken_ns += (double)entries[end].taken_ns;
		}
		for (size_t e = first; e < end; e++) {
			double from_others_ns = taken_ns - (double)entries[e].taken_ns;

			besides[e] = entries[e].after_ns;
			if (ran_ns > 0)
				besides[e] += (uint64_t)(from_others_ns * (double)entries[e].ran_ns / ran_ns);
		}
	}
	return besides;
}

int root_gain_compute(struct cause_gain *gain, const uint64_t *saved_ns, const struct path_rows *ranked,
		      const struct share_opts *opts)
{
	size_t cnt = ranked->rows.row_cnt;
	uint64_t *left_ns = calloc(cnt + 1, sizeof(*left_ns));
	struct gain_blocks blocks = {.block_of = NULL};
	struct stats_order order = {0};
	double sum = 0;
	int err = left_ns ? 0 : -ENOMEM;

	*gain = GAIN_UNKNOWN;
	for (size_t row = 0; row < cnt && !err; row++) {
		if (saved_ns[row] < ranked->latency_ns[row])
			left_ns[row] = ranked->latency_ns[row] - saved_ns[row];
		sum += ranked->weights[row] * (double)left_ns[row];
	}
	if (!err)
		err = stats_order__init(&order, left_ns, ranked->weights, cnt);
	if (!err && cnt) {
		gain->mean_ns = sum / order.total_weight;
		gain->p99_ns = stats_quantile(&order, P99, NULL, NULL, order.total_weight);
		gain->p999_ns = stats_quantile(&order, P999, NULL, NULL, order.total_weight);
		err = gain_blocks__init(&blocks, &ranked->rows, left_ns);
		if (!err)
			fill_intervals(gain, &blocks, &order, opts->seed);
	}
	gain_blocks__free(&blocks);
	stats_order__free(&order);
	free(left_ns);
	return err;
}
