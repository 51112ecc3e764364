// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/impact.h"

#include "analysis/cdf_fit.h"
#include "analysis/parallel.h"
#include "analysis/sort.h"
#include "base/names.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct impact {
	const struct dataset *dataset;
	const struct stats_order *order;
	double tail;
	double tail_ns; /* of all rows */
	struct event_line *lines;
	struct rule_event *rule_events;
	uint64_t **kept_high; /* per event, where the rules need it */
	struct {
		struct sort_scratch sort;
		struct cdf_fit *fit;
		uint64_t *high;
	} scratch[PARALLEL_WORKERS_MAX];
};

static bool is_hardware(const char *event)
{
#define HWCOUNTER(id, name, type, config, group, rotation) \
	if (!strcmp(event, name))                          \
		return true;
#include <whylate/hwcounter.def>
#undef HWCOUNTER
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
	const double *weights = impact->dataset->weight;
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

static void fit_pairs(struct cdf_fit *fit, const struct impact *impact, const struct event_sums *sums,
		      const struct sort_pair *sorted)
{
	const double *weights = impact->dataset->weight;

	cdf_fit__begin(fit, cdf_fit_range_cnt(sums->row_cnt), sums->weight, impact->tail);
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
 * The event is high above this value.  A CDF without a joint has no step that sets some values apart; the threshold is
 * then the target percentile, so that an event that is nonzero in fewer intervals than the tail, a straight line of
 * zeros up to the target, is high where it is not zero.  If the largest value is at the target (few values, few rows),
 * that value is high.  Nothing is high of an event that has one value only.
 */
static double threshold_of(const struct cdf_fit *fit)
{
	double percentile, value;

	if (cdf_fit__joint(fit, &percentile, &value))
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

static int event_impact(void *ctx, size_t task, unsigned worker)
{
	struct impact *impact = ctx;
	const struct dataset_event *event = &impact->dataset->events[task];
	const double *weights = impact->dataset->weight;
	size_t words = bitmap_words(impact->dataset->row_cnt);
	struct event_line *line = &impact->lines[task];
	uint64_t *high = impact->scratch[worker].high;
	struct event_sums sums;
	struct sort_pair *sorted;
	double high_weight, whole, rest;

	if (!event->values)
		return 0;
	sums = collect(impact, event, impact->scratch[worker].sort.pairs[0]);
	if (!sums.row_cnt)
		return 0;
	line->mean = sums.sum / sums.weight;
	sorted = sort_pairs(&impact->scratch[worker].sort, sums.pair_cnt);
	fit_pairs(impact->scratch[worker].fit, impact, &sums, sorted);
	line->threshold = threshold_of(impact->scratch[worker].fit);
	if (is_hardware(event->name)) {
		high = impact->kept_high[task] = calloc(words, sizeof(*high));
		if (!high)
			return -ENOMEM;
	} else {
		memset(high, 0, words * sizeof(*high));
	}
	high_weight = mark_high(high, sorted, sums.pair_cnt, line->threshold, weights);
	line->threshold_percentile = 1 - high_weight / sums.weight;
	whole = event->missing ? stats_quantile(impact->order, impact->tail, event->missing, NULL, sums.weight)
			       : impact->tail_ns;
	rest = high_weight > 0
		       ? stats_quantile(impact->order, impact->tail, event->missing, high, sums.weight - high_weight)
		       : whole;
	line->impact = whole > 0 ? (whole - rest) / whole : NAN;
	return 0;
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
		.impact = recorded ? 0 : NAN,
		.impact_adjusted = NAN,
		.threshold = recorded ? 0 : NAN,
		.threshold_percentile = recorded ? 1 : NAN,
		.explained_overlap = NAN,
		.mean = recorded ? 0 : NAN,
	};
}

static int compare_lines(const void *a, const void *b)
{
	const struct event_line *x = a, *y = b;

	if (isnan(x->impact_adjusted) || isnan(y->impact_adjusted))
		return isnan(x->impact_adjusted) - isnan(y->impact_adjusted) ?: strcmp(x->event, y->event);
	if (x->impact_adjusted != y->impact_adjusted)
		return x->impact_adjusted < y->impact_adjusted ? 1 : -1;
	return strcmp(x->event, y->event);
}

static void apply_rules(struct impact *impact)
{
	const struct dataset *dataset = impact->dataset;

	for (size_t e = 0; e < dataset->event_cnt; e++)
		impact->rule_events[e] = (struct rule_event){
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
	}
}

static int impact_alloc(struct impact *impact)
{
	size_t event_cnt = impact->dataset->event_cnt, row_cnt = impact->dataset->row_cnt;

	impact->rule_events = calloc(event_cnt + 1, sizeof(*impact->rule_events));
	impact->kept_high = calloc(event_cnt + 1, sizeof(*impact->kept_high));
	if (!impact->rule_events || !impact->kept_high)
		return -ENOMEM;
	for (unsigned i = 0; i < parallel_workers(); i++) {
		impact->scratch[i].fit = calloc(1, sizeof(struct cdf_fit));
		impact->scratch[i].high = calloc(bitmap_words(row_cnt) + 1, sizeof(uint64_t));
		if (!impact->scratch[i].fit || !impact->scratch[i].high ||
		    sort_scratch__init(&impact->scratch[i].sort, row_cnt))
			return -ENOMEM;
	}
	return 0;
}

int impact_compute(struct event_line *lines, const struct dataset *dataset, const struct stats_order *order,
		   double tail)
{
	struct impact impact = {.dataset = dataset, .order = order, .tail = tail, .lines = lines};
	int err = impact_alloc(&impact);

	if (err)
		goto cleanup;
	impact.tail_ns = stats_quantile(order, tail, NULL, NULL, order->total_weight);
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
		free(impact.scratch[i].fit);
		free(impact.scratch[i].high);
	}
	for (size_t e = 0; impact.kept_high && e < dataset->event_cnt; e++)
		free(impact.kept_high[e]);
	free(impact.kept_high);
	free(impact.rule_events);
	return err;
}
