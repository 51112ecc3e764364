// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/impact.h"

#include "analysis/cdf_fit.h"
#include "analysis/parallel.h"
#include "analysis/shares.h"
#include "analysis/sort.h"
#include "base/names.h"
#include "base/order.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * A joint far below the target begins nothing "high", unless it is a step: with 30 % zeros and an even spread above
 * them, VarMRI's joint is at 0.3, leaving out 70 % of the intervals, and any event at all gets an impact near 1.  Such
 * joints are passed over.  With 40 % zeros and a constant length above them, that length is high.
 */
#define JOINT_TARGET_MIN 0.5

/* Rows and their weights. */
struct weighing {
	const double *weights;
	const struct stats_order *order;
	const struct tail_blocks *blocks;
};

struct impact {
	const struct dataset *dataset;
	struct weighing all;
	/* Of hardware counters: rows weigh what those without values would add (dataset.hw_factor). */
	struct weighing hardware;
	double *hw_weights; /* NULL: as all */
	struct stats_order hw_order;
	struct tail_blocks hw_blocks;
	const struct impact_opts *opts;
	double tail;
	double tail_ns;       /* of all rows */
	double *tail_samples; /* its replicates */
	struct event_line *lines;
	struct rule_event *rule_events;
	uint64_t **kept_high; /* per event, where the rules need it */
	struct {
		struct sort_scratch sort;
		struct cdf_fit *fit;
		struct tail_scratch tail;
		double *whole, *rest, *block_weight; /* replicates, and weights by block */
	} scratch[PARALLEL_WORKERS_MAX];
};

bool event_is_hardware(const char *event)
{
#define HWCOUNTER(id, name, type, config, group, rotation) \
	if (!strcmp(event, name))                          \
		return true;
#include <whylate/hwcounter.def>
	return false;
}

int event_category(const char *event)
{
	const char *dot = strrchr(event, '.');
	size_t len = dot ? (size_t)(dot - event) : 0;

	for (int i = 0; i < WL_STATE_CNT; i++)
		if (strlen(state_name(i)) == len && !memcmp(state_name(i), event, len))
			return (int)state_category(i);
	return -1;
}

static const struct weighing *weighing_of(const struct impact *impact, const struct dataset_event *event)
{
	return event_is_hardware(event->name) ? &impact->hardware : &impact->all;
}

/* What is known of an event once its rows have been read. */
struct event_sums {
	double weight; /* of the rows that recorded it */
	double zero_weight;
	double sum;
	size_t row_cnt, pair_cnt;
};

/* Rows with a value go into the scratch array for sorting; zeros, often nearly all there is, only count. */
static struct event_sums collect(const struct impact *impact, const struct dataset_event *event,
				 struct sort_pair *pairs)
{
	const double *weights = weighing_of(impact, event)->weights;
	struct event_sums sums = {0};

	for (size_t i = 0; i < impact->dataset->row_cnt; i++) {
		if (event->missing && bitmap_test(event->missing, i))
			continue;
		sums.row_cnt++;
		sums.weight += weights[i];
		if (!event->values[i]) {
			sums.zero_weight += weights[i];
			continue;
		}
		sums.sum += weights[i] * (double)event->values[i];
		pairs[sums.pair_cnt++] = (struct sort_pair){.key = event->values[i], .row = (uint32_t)i};
	}
	return sums;
}

static void fit_pairs(struct cdf_fit *fit, double tail, const double *weights, const struct event_sums *sums,
		      const struct sort_pair *sorted)
{
	cdf_fit__begin(fit, cdf_fit_range_cnt(sums->row_cnt), sums->weight, tail);
	if (sums->zero_weight > 0)
		cdf_fit__add(fit, 0, sums->zero_weight);
	for (size_t i = 0, end; i < sums->pair_cnt; i = end) {
		double weight = 0;

		for (end = i; end < sums->pair_cnt && sorted[end].key == sorted[i].key; end++)
			weight += weights[sorted[end].row];
		cdf_fit__add(fit, sorted[i].key, weight);
	}
	cdf_fit__end(fit);
}

/*
 * The event is high above this value.  A CDF without a usable joint has no step that sets some values apart; the
 * threshold is then the target percentile, so that an event that is nonzero in fewer intervals than the tail, a
 * straight line of zeros up to the target, is high where it is not zero.  If the largest value is at the target (few
 * values, few rows), that value is high.  Nothing is high of an event that has one value only.
 */
static double threshold_of(const struct cdf_fit *fit)
{
	double percentile, value;
	bool flat;

	if (cdf_fit__joint(fit, &percentile, &value, &flat) && (flat || percentile >= JOINT_TARGET_MIN * fit->target))
		return value;
	if (fit->target_value < fit->last)
		return fit->target_value;
	return isnan(fit->target_below) ? fit->last : fit->target_below;
}

/* Marks the rows above the threshold, returns their weight. */
static double mark_high(uint64_t *high, const struct sort_pair *sorted, size_t cnt, double threshold,
			const double *weights)
{
	double weight = 0;

	while (cnt-- > 0 && (double)sorted[cnt].key > threshold) {
		bitmap_set(high, sorted[cnt].row);
		weight += weights[sorted[cnt].row];
	}
	return weight;
}

/* Rows of the latency order, from the largest down. */
struct top_rows {
	const struct stats_order *order;
	const struct dataset_event *event;
	const uint64_t *skip, *skip_too;
	struct sort_scratch *sort;
};

static long top_by_latency(void *ctx, double weight, const struct sort_pair **rows)
{
	const struct top_rows *top = ctx;
	const struct stats_order *order = top->order;
	struct sort_pair *pairs = top->sort->pairs[0];
	double above = 0;
	long cnt = 0;

	for (size_t i = order->cnt; i-- > 0 && above <= weight;) {
		uint32_t row = order->rows[i];

		if ((top->skip && bitmap_test(top->skip, row)) || (top->skip_too && bitmap_test(top->skip_too, row)))
			continue;
		pairs[cnt++] = (struct sort_pair){.key = order->values[row], .row = row};
		above += order->weights[row];
	}
	*rows = pairs;
	return cnt;
}

/* Buckets of 1/256 of an octave, and of one unit where that is more: which buckets hold the top needs one pass. */
#define BUCKET_BITS 8
#define BUCKET_CNT  ((65 - BUCKET_BITS) << BUCKET_BITS)

static unsigned bucket_of(uint64_t value)
{
	unsigned shift;

	if (value < 1U << BUCKET_BITS)
		return (unsigned)value;
	shift = 63 - BUCKET_BITS - (unsigned)__builtin_clzll(value);
	return ((shift + 1) << BUCKET_BITS) + (unsigned)(value >> shift & ((1U << BUCKET_BITS) - 1));
}

static uint64_t shortened(const struct top_rows *top, size_t row)
{
	uint64_t latency_ns = top->order->values[row], spent_ns = top->event->values[row];

	return latency_ns > spent_ns ? latency_ns - spent_ns : 0;
}

/* Rows by latency less the time on the event, from the largest down. */
static long top_by_shortened(void *ctx, double weight, const struct sort_pair **rows)
{
	const struct top_rows *top = ctx;
	const double *weights = top->order->weights;
	size_t row_cnt = top->order->cnt, cnt = 0;
	double *buckets = calloc(BUCKET_CNT, sizeof(*buckets)), above = 0;
	unsigned least = BUCKET_CNT;
	struct sort_pair *sorted;

	if (!buckets)
		return -ENOMEM;
	for (size_t row = 0; row < row_cnt; row++)
		if (!top->skip || !bitmap_test(top->skip, row))
			buckets[bucket_of(shortened(top, row))] += weights[row];
	while (least > 0 && above <= weight)
		above += buckets[--least];
	free(buckets);
	for (size_t row = 0; row < row_cnt; row++) {
		uint64_t ns = shortened(top, row);

		/* The keys ascend where the values descend. */
		if ((!top->skip || !bitmap_test(top->skip, row)) && bucket_of(ns) >= least)
			top->sort->pairs[0][cnt++] = (struct sort_pair){.key = ~ns, .row = (uint32_t)row};
	}
	sorted = sort_pairs(top->sort, cnt);
	for (size_t i = 0; i < cnt; i++)
		sorted[i].key = ~sorted[i].key;
	*rows = sorted;
	return (long)cnt;
}

/* A share of the tail, and its interval from the replicates: (whole - without) / whole, `without` is overwritten. */
static double fall(const struct impact *impact, double whole_ns, const double *whole, double without_ns,
		   double *without, struct ci *ci)
{
	const struct tail_blocks *blocks = impact->opts->blocks;
	double share = whole_ns > 0 ? (whole_ns - without_ns) / whole_ns : NAN;

	for (uint32_t r = 0; r < blocks->replicate_cnt; r++)
		without[r] = whole[r] > 0 ? (whole[r] - without[r]) / whole[r] : NAN;
	*ci = bootstrap_interval(without, blocks->replicate_cnt, share, impact->opts->error->block_cnt);
	*ci = shares_widen(*ci, impact->opts->lost);
	return share;
}

/* The weights of the blocks without the rows of the bitmap. */
static double weigh_blocks(double *block_weight, const double *all, const uint64_t *skip, size_t row_cnt,
			   const struct tail_blocks *blocks)
{
	double total = 0;

	memcpy(block_weight, all, blocks->blocks.cnt * sizeof(*block_weight));
	for (size_t w = 0; skip && w < bitmap_words(row_cnt); w++)
		for (uint64_t bits = skip[w]; bits; bits &= bits - 1) {
			size_t row = w * 64 + (size_t)__builtin_ctzll(bits);

			block_weight[blocks->of_row[row]] -= blocks->weights[row];
		}
	for (size_t b = 0; b < blocks->blocks.cnt; b++)
		total += block_weight[b];
	return total;
}

/* Gain and impact with their intervals; `high` are the high rows. */
static int sample_event(struct impact *impact, const struct dataset_event *event, struct event_line *line,
			const uint64_t *high, double high_weight, unsigned worker)
{
	const struct weighing *weighing = weighing_of(impact, event);
	const struct tail_blocks *blocks = weighing->blocks;
	struct top_rows top = {.order = weighing->order, .event = event, .sort = &impact->scratch[worker].sort};
	size_t row_cnt = impact->dataset->row_cnt;
	double *block_weight = impact->scratch[worker].block_weight, *own = impact->scratch[worker].whole;
	double *rest = impact->scratch[worker].rest, *whole = impact->tail_samples;
	struct tail_scratch *scratch = &impact->scratch[worker].tail;
	double whole_ns = impact->tail_ns, rest_ns;
	struct tail_set set = {.ctx = &top, .p = impact->tail, .block_weight = block_weight};
	int err;

	set.margin = tail_error__margin(impact->opts->error, row_cnt);
	set.total_weight = weigh_blocks(block_weight, blocks->weight, event->missing, row_cnt, blocks);
	top.skip = event->missing;
	if (event->missing || weighing != &impact->all) {
		set.top = top_by_latency;
		err = tail_sample(&whole_ns, own, &set, blocks, scratch);
		if (err)
			return err;
		whole = own;
	}
	if (event->is_length) {
		set.top = top_by_shortened;
		err = tail_sample(&rest_ns, rest, &set, blocks, scratch);
		if (err)
			return err;
		line->gain = fall(impact, whole_ns, whole, rest_ns, rest, &line->gain_ci);
	}
	line->impact = 0;
	line->impact_ci = (struct ci){0, 0};
	if (high_weight > 0) {
		/* The weights of the blocks that are left already lack the missing rows. */
		set.total_weight = weigh_blocks(block_weight, block_weight, high, row_cnt, blocks);
		set.top = top_by_latency;
		top.skip_too = high;
		err = tail_sample(&rest_ns, rest, &set, blocks, scratch);
		if (err)
			return err;
		line->impact = fall(impact, whole_ns, whole, rest_ns, rest, &line->impact_ci);
	}
	if (!event->is_length) {
		line->gain = line->impact;
		line->gain_ci = line->impact_ci;
	}
	return 0;
}

static int event_impact(void *ctx, size_t task, unsigned worker)
{
	struct impact *impact = ctx;
	const struct dataset_event *event = &impact->dataset->events[task];
	const double *weights = weighing_of(impact, event)->weights;
	struct event_line *line = &impact->lines[task];
	struct event_sums sums;
	struct sort_pair *sorted;
	double high_weight;
	uint64_t *high;

	if (!event->values)
		return 0;
	sums = collect(impact, event, impact->scratch[worker].sort.pairs[0]);
	if (!sums.row_cnt)
		return 0;
	line->mean = sums.sum / sums.weight;
	sorted = sort_pairs(&impact->scratch[worker].sort, sums.pair_cnt);
	fit_pairs(impact->scratch[worker].fit, impact->tail, weights, &sums, sorted);
	line->threshold = threshold_of(impact->scratch[worker].fit);
	high = impact->kept_high[task] = calloc(bitmap_words(impact->dataset->row_cnt), sizeof(*high));
	if (!high)
		return -ENOMEM;
	high_weight = mark_high(high, sorted, sums.pair_cnt, line->threshold, weights);
	line->threshold_percentile = 1 - high_weight / sums.weight;
	impact->rule_events[task].high_weight = high_weight;
	return sample_event(impact, event, line, high, high_weight, worker);
}

/* The answer before anything is known: 0 throughout, or not measured. */
static void line_init(struct event_line *line, const struct dataset *dataset, const struct dataset_event *event)
{
	int category = event_category(event->name);
	bool recorded = !event->missing;

	for (size_t i = 0; !recorded && i < dataset->row_cnt; i++)
		recorded = !bitmap_test(event->missing, i);
	if (!dataset->row_cnt || (!event->values && category >= 0 && dataset->category_unmeasured[category]))
		recorded = false;
	*line = (struct event_line){
		.event = event->name,
		.gain = recorded ? 0 : NAN,
		.gain_ci = {recorded ? 0 : NAN, recorded ? 0 : NAN},
		.impact = recorded ? 0 : NAN,
		.impact_ci = {recorded ? 0 : NAN, recorded ? 0 : NAN},
		.impact_adjusted = NAN,
		.threshold = recorded ? 0 : NAN,
		.threshold_percentile = recorded ? 1 : NAN,
		.explained_overlap = NAN,
		.correlation = NAN,
		.mean = recorded ? 0 : NAN,
	};
}

ORDER(compare_lines, struct event_line, BY(isnan(a->gain), isnan(b->gain)), BY(b->gain, a->gain),
      isnan(a->gain) ? 0 : BY(b->impact_adjusted, a->impact_adjusted), strcmp(a->event, b->event));

static void apply_rules(struct impact *impact)
{
	const struct dataset *dataset = impact->dataset;

	for (size_t e = 0; e < dataset->event_cnt; e++)
		impact->rule_events[e] = (struct rule_event){
			.high_weight = impact->rule_events[e].high_weight,
			.name = dataset->events[e].name,
			.values = dataset->events[e].values,
			.missing = dataset->events[e].missing,
			.high = impact->kept_high[e],
			.impact = impact->lines[e].impact,
		};
	rules_apply(impact->rule_events, dataset->event_cnt, dataset->weight, dataset->row_cnt);
	for (size_t e = 0; e < dataset->event_cnt; e++) {
		impact->lines[e].impact_adjusted = impact->rule_events[e].adjusted;
		impact->lines[e].explained_by = impact->rule_events[e].explained_by;
		impact->lines[e].explained_overlap = impact->rule_events[e].overlap;
		impact->lines[e].dropped_for = impact->rule_events[e].dropped_for;
		impact->lines[e].correlated_with = impact->rule_events[e].correlated_with;
		impact->lines[e].correlation = impact->rule_events[e].correlation;
	}
}

static int impact_alloc(struct impact *impact)
{
	size_t event_cnt = impact->dataset->event_cnt, row_cnt = impact->dataset->row_cnt;
	const struct tail_blocks *blocks = impact->opts->blocks;

	impact->rule_events = calloc(event_cnt + 1, sizeof(*impact->rule_events));
	impact->kept_high = calloc(event_cnt + 1, sizeof(*impact->kept_high));
	impact->tail_samples = calloc(blocks->replicate_cnt + 1, sizeof(double));
	if (!impact->rule_events || !impact->kept_high || !impact->tail_samples)
		return -ENOMEM;
	for (unsigned i = 0; i < parallel_workers(); i++) {
		impact->scratch[i].fit = calloc(1, sizeof(struct cdf_fit));
		impact->scratch[i].whole = calloc(blocks->replicate_cnt + 1, sizeof(double));
		impact->scratch[i].rest = calloc(blocks->replicate_cnt + 1, sizeof(double));
		impact->scratch[i].block_weight = calloc(blocks->blocks.cnt + 1, sizeof(double));
		if (!impact->scratch[i].fit || !impact->scratch[i].whole || !impact->scratch[i].rest ||
		    !impact->scratch[i].block_weight || tail_scratch__init(&impact->scratch[i].tail, blocks) ||
		    sort_scratch__init(&impact->scratch[i].sort, row_cnt))
			return -ENOMEM;
	}
	return 0;
}

/* The tail of all rows. */
static int sample_all(struct impact *impact)
{
	const struct tail_blocks *blocks = impact->opts->blocks;
	struct top_rows top = {.order = impact->all.order, .sort = &impact->scratch[0].sort};
	const struct tail_set set = {
		.top = top_by_latency,
		.ctx = &top,
		.block_weight = blocks->weight,
		.total_weight = impact->all.order->total_weight,
		.p = impact->tail,
		.margin = tail_error__margin(impact->opts->error, impact->dataset->row_cnt),
	};

	return tail_sample(&impact->tail_ns, impact->tail_samples, &set, blocks, &impact->scratch[0].tail);
}

/* Rows with values of hardware counters also weigh what rows without would. 0 or -ENOMEM. */
static int weigh_hardware(struct impact *impact)
{
	const struct dataset *dataset = impact->dataset;
	const struct tail_blocks *blocks = impact->opts->blocks;
	double *by_block;
	int err;

	impact->hardware = impact->all;
	if (!dataset->hw_factor)
		return 0;
	impact->hw_weights = malloc((dataset->row_cnt + 1) * sizeof(*impact->hw_weights));
	by_block = calloc(blocks->blocks.cnt + 1, sizeof(*by_block));
	impact->hw_blocks = *blocks;
	impact->hw_blocks.weights = impact->hw_weights;
	impact->hw_blocks.weight = by_block;
	if (!impact->hw_weights || !by_block)
		return -ENOMEM;
	for (size_t i = 0; i < dataset->row_cnt; i++) {
		impact->hw_weights[i] = dataset->weight[i] * dataset->hw_factor[i];
		by_block[blocks->of_row[i]] += impact->hw_weights[i];
	}
	err = stats_order__init(&impact->hw_order, dataset->latency_ns, impact->hw_weights, dataset->row_cnt);
	impact->hardware = (struct weighing){impact->hw_weights, &impact->hw_order, &impact->hw_blocks};
	return err;
}

int impact_compute(struct event_line *lines, const struct dataset *dataset, const struct stats_order *order,
		   const struct impact_opts *opts)
{
	struct impact impact = {
		.dataset = dataset,
		.all = {dataset->weight, order, opts->blocks},
		.opts = opts,
		.tail = opts->tail,
		.lines = lines,
	};
	int err = impact_alloc(&impact);

	if (!err)
		err = weigh_hardware(&impact);
	if (!err)
		err = sample_all(&impact);
	if (err)
		goto cleanup;
	for (size_t e = 0; e < dataset->event_cnt; e++)
		line_init(&lines[e], dataset, &dataset->events[e]);
	err = parallel_run(dataset->event_cnt, event_impact, &impact);
	if (err)
		goto cleanup;
	apply_rules(&impact);
	if (dataset->event_cnt)
		qsort(lines, dataset->event_cnt, sizeof(*lines), compare_lines);
cleanup:
	for (unsigned i = 0; i < PARALLEL_WORKERS_MAX; i++) {
		sort_scratch__free(&impact.scratch[i].sort);
		tail_scratch__free(&impact.scratch[i].tail);
		free(impact.scratch[i].fit);
		free(impact.scratch[i].whole);
		free(impact.scratch[i].rest);
		free(impact.scratch[i].block_weight);
	}
	for (size_t e = 0; impact.kept_high && e < dataset->event_cnt; e++)
		free(impact.kept_high[e]);
	free(impact.kept_high);
	free(impact.rule_events);
	free(impact.tail_samples);
	if (impact.hw_weights) {
		stats_order__free(&impact.hw_order);
		free(impact.hw_blocks.weight);
		free(impact.hw_weights);
	}
	return err;
}
