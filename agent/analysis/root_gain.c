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

	for (size_t i = order->cnt; i-- > 0 && cnt < BEYOND_MIN;) {
		above += order->weights[order->rows[i]];
		if (above > limit)
			break;
		cnt += order->weights[order->rows[i]] > 0;
	}
	return cnt >= BEYOND_MIN;
}

/* One account of what the latencies were without a root: values of rows, some with weight 0. */
struct account {
	uint64_t *left_ns;
	double *weights;
	struct stats_order order;
};

/* The blocks of a bootstrap, with what the mean needs of each. */
struct gain_blocks {
	struct bootstrap_blocks blocks;
	uint32_t *block_of, *multiplicity;
	double *weights, *sums;
	uint64_t seed;
};

static int gain_blocks__init(struct gain_blocks *of, const struct share_rows *rows, uint64_t seed)
{
	const struct bootstrap_blocks *blocks = &of->blocks;

	*of = (struct gain_blocks){.seed = seed};
	if (bootstrap_blocks__init(&of->blocks, rows))
		return -ENOMEM;
	of->block_of = malloc((rows->row_cnt + 1) * sizeof(*of->block_of));
	of->multiplicity = malloc((blocks->cnt + 1) * sizeof(*of->multiplicity));
	of->weights = malloc((blocks->cnt + 1) * sizeof(*of->weights));
	of->sums = malloc((blocks->cnt + 1) * sizeof(*of->sums));
	if (!of->block_of || !of->multiplicity || !of->weights || !of->sums)
		return -ENOMEM;
	for (size_t b = 0; b < blocks->cnt; b++)
		for (size_t row = blocks->first[b]; row < blocks->first[b + 1]; row++)
			of->block_of[row] = (uint32_t)b;
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

/* Each row that counts, shorter by what is saved.  NULL: all rows; nothing is saved. */
static int account__init(struct account *account, const struct path_rows *ranked, const bool *of_rows,
			 const uint64_t *saved_ns)
{
	size_t cnt = ranked->rows.row_cnt;

	*account = (struct account){.left_ns = calloc(cnt + 1, sizeof(*account->left_ns)),
				    .weights = calloc(cnt + 1, sizeof(*account->weights))};
	if (!account->left_ns || !account->weights)
		return -ENOMEM;
	for (size_t row = 0; row < cnt; row++) {
		account->left_ns[row] = ranked->latency_ns[row] - (saved_ns ? saved_ns[row] : 0);
		account->weights[row] = !of_rows || of_rows[row] ? ranked->weights[row] : 0;
	}
	return stats_order__init(&account->order, account->left_ns, account->weights, cnt);
}

static void account__free(struct account *account)
{
	stats_order__free(&account->order);
	free(account->left_ns);
	free(account->weights);
}

static void account__fill_intervals(const struct account *account, struct gain_blocks *of, struct cause_gain *gain)
{
	double means[REPLICATES], p99s[REPLICATES], p999s[REPLICATES];
	const struct stats_order *order = &account->order;
	bool of_p99 = has_rows_beyond(order, P99), of_p999 = has_rows_beyond(order, P999);
	size_t cnt = of->blocks.cnt;

	for (size_t b = 0; b < cnt; b++) {
		of->weights[b] = of->sums[b] = 0;
		for (size_t row = of->blocks.first[b]; row < of->blocks.first[b + 1]; row++) {
			of->weights[b] += account->weights[row];
			of->sums[b] += account->weights[row] * (double)account->left_ns[row];
		}
	}
	for (uint32_t r = 0; r < REPLICATES; r++) {
		double total = 0, sum = 0;

		bootstrap_draw(of->multiplicity, cnt, of->seed, r);
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

/* GAIN_UNKNOWN where no row counts. */
static struct cause_gain account__gain(const struct account *account, struct gain_blocks *of)
{
	const struct stats_order *order = &account->order;
	struct cause_gain gain = GAIN_UNKNOWN;
	double sum = 0;

	if (!(order->total_weight > 0))
		return gain;
	for (size_t row = 0; row < order->cnt; row++)
		sum += account->weights[row] * (double)account->left_ns[row];
	gain.mean_ns = sum / order->total_weight;
	gain.p99_ns = stats_quantile(order, P99, NULL, NULL, order->total_weight);
	gain.p999_ns = stats_quantile(order, P999, NULL, NULL, order->total_weight);
	account__fill_intervals(account, of, &gain);
	return gain;
}

int root_saved__init(struct root_saved *saved, size_t row_cnt)
{
	*saved = (struct root_saved){.ns = calloc(row_cnt + 1, sizeof(*saved->ns)),
				     .least_ns = calloc(row_cnt + 1, sizeof(*saved->least_ns)),
				     .alone = calloc(row_cnt + 1, sizeof(*saved->alone))};
	return saved->ns && saved->least_ns && saved->alone ? 0 : -ENOMEM;
}

void root_saved__free(struct root_saved *saved)
{
	free(saved->ns);
	free(saved->least_ns);
	free(saved->alone);
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

/* An interval that another account widens; one that is not known widens nothing. */
static struct ci widened(struct ci ci, struct ci by)
{
	return isnan(ci.lo) ? ci : (struct ci){fmin(ci.lo, by.lo), fmax(ci.hi, by.hi)};
}

int root_gain_compute(struct cause_gain *gain, const struct root_saved *saved, const struct path_rows *ranked,
		      const struct share_opts *opts)
{
	const struct {
		const bool *of_rows;
		const uint64_t *saved_ns;
	} accounts[] = {{NULL, saved ? saved->ns : NULL},
			{NULL, saved ? saved->least_ns : NULL},
			{saved ? saved->alone : NULL, NULL}};
	struct gain_blocks blocks;
	int err = gain_blocks__init(&blocks, &ranked->rows, opts->seed);

	*gain = GAIN_UNKNOWN;
	for (size_t i = 0; i < (saved ? sizeof(accounts) / sizeof(accounts[0]) : 1) && !err; i++) {
		struct account account;
		struct cause_gain one = GAIN_UNKNOWN;

		err = account__init(&account, ranked, accounts[i].of_rows, accounts[i].saved_ns);
		if (!err)
			one = account__gain(&account, &blocks);
		account__free(&account);
		if (!i) {
			*gain = one;
			continue;
		}
		gain->mean_ci = widened(gain->mean_ci, one.mean_ci);
		gain->p99_ci = widened(gain->p99_ci, one.p99_ci);
		gain->p999_ci = widened(gain->p999_ci, one.p999_ci);
	}
	gain->lower_bound = saved && saved->at_least;
	gain_blocks__free(&blocks);
	return err;
}
