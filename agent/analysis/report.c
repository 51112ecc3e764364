// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/results.h"

#include "analysis/delivery.h"
#include "analysis/factors_report.h"
#include "analysis/hosts.h"
#include "analysis/impact.h"
#include "analysis/levels.h"
#include "analysis/parallel.h"
#include "analysis/paths.h"
#include "analysis/roots.h"
#include "analysis/shares.h"
#include "analysis/tail_sample.h"
#include "analysis/values.h"
#include "base/arena.h"
#include "base/order.h"
#include "base/progress.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define Z_95         1.96
#define STATED_ERROR 0.2 /* what a hundred independent events are off by: 1.96 / sqrt(100) */

struct report_work {
	const struct dataset *dataset;
	struct share_rows rows;
	struct share_part parts[WL_CATEGORY_CNT];
	struct blame_split splits[WL_CATEGORY_CNT];
	cause_places_table places;
};

static int split_category(void *ctx, size_t task, unsigned worker)
{
	struct report_work *work = ctx;
	int err = blame_split__init(&work->splits[task], work->dataset, (enum wl_category)task, &work->rows);

	(void)worker;
	work->parts[task] = (struct share_part){
		.values = work->dataset->category_ns[task],
		.slots = work->splits[task].row_slots,
		.slot_cnt = work->splits[task].slot_cnt,
		.slot_lines = work->splits[task].lines,
	};
	return err;
}

/* Where no share is defined, the mean orders. */
ORDER(compare_breakdown, struct breakdown_line, BY(b->measured, a->measured),
      isnan(a->tail_share) || isnan(b->tail_share) ? BY(b->mean_ns, a->mean_ns) : BY(b->tail_share, a->tail_share),
      BY(a->category, b->category));

static void breakdown_fill(struct report *report, const struct share_part *parts)
{
	const struct ci none = {NAN, NAN};

	for (int c = 0; c < WL_CATEGORY_CNT; c++) {
		struct breakdown_line *line = &report->breakdown[c];
		const struct share_line *total = &parts[c].total;

		*line = (struct breakdown_line){c, false, NAN, NAN, none, NAN, none, NAN, NAN};
		line->measured = !report->dataset->category_unmeasured[c];
		if (!line->measured)
			continue;
		line->mean_ns = total->mean_ns;
		line->variance_share = total->variance_share;
		line->variance_share_ci = total->variance_share_ci;
		line->tail_share = total->tail_share;
		line->tail_share_ci = total->tail_share_ci;
		line->typical_ns = total->typical_ns;
		line->late_ns = total->late_ns;
	}
	qsort(report->breakdown, WL_CATEGORY_CNT, sizeof(report->breakdown[0]), compare_breakdown);
}

ORDER(compare_types, struct type_line, BY(b->count, a->count), strcmp(a->type, b->type));

/* Of the intervals beyond the tail's threshold. */
static void types_late(const struct report *report, struct type_line *lines)
{
	const struct dataset *dataset = report->dataset;
	double late = 0;

	for (size_t row = 0; row < dataset->row_cnt; row++) {
		if ((double)dataset->latency_ns[row] < report->tail_threshold_ns)
			continue;
		late += dataset->weight[row];
		lines[dataset->type[row]].late_share += dataset->weight[row];
	}
	for (size_t i = 0; i < dataset->string_cnt; i++)
		lines[i].late_share = late > 0 ? lines[i].late_share / late : NAN;
}

/* The most frequent first; types that no row has are left out. */
static int types_make(struct report *report, const struct stats_order *order)
{
	const struct dataset *dataset = report->dataset;
	size_t string_cnt = dataset->string_cnt;
	struct type_line *lines;

	if (!dataset->type || !string_cnt)
		return 0;
	lines = calloc(string_cnt, sizeof(*lines));
	if (!lines || arena__adopt(report->arena, lines))
		return -ENOMEM;
	if (stats_by_type(lines, dataset->type, string_cnt, order))
		return -ENOMEM;
	types_late(report, lines);
	for (size_t i = 0; i < string_cnt; i++) {
		if (!(lines[i].count > 0))
			continue;
		lines[report->type_cnt] = lines[i];
		lines[report->type_cnt++].type = dataset->strings[i];
	}
	qsort(lines, report->type_cnt, sizeof(*lines), compare_types);
	report->types = lines;
	return 0;
}

double report_lost_share(const struct dataset *dataset)
{
	const struct dataset_loss *ring = &dataset->loss[WL_LOSS_INTERVAL];
	double cut = (double)dataset->loss[WL_LOSS_CUT].lost, emitted = (double)ring->emitted + cut;
	double share = emitted > 0 ? ((double)ring->lost + cut) / emitted : NAN;
	double weight = 0, dropped;

	/* Without a row the counts are all there is. */
	if (dataset->received_weight > 0)
		share = dataset->lost_weight / (dataset->lost_weight + dataset->received_weight);
	if (!(dataset->spool_lost_weight > 0))
		return share;
	/* By weight: a row of the baseline that the spool dropped stood for many. */
	for (size_t row = 0; row < dataset->row_cnt; row++)
		weight += dataset->weight[row];
	dropped = dataset->spool_lost_weight / fmax(weight, dataset->spool_lost_weight);
	return 1 - (isnan(share) ? 1 : 1 - share) * (1 - dropped);
}

static void report_init(struct report *report, const struct dataset *dataset, const struct report_opts *opts)
{
	*report = (struct report){
		.dataset = dataset,
		.tail = opts->tail,
		.tail_threshold_ns = NAN,
		.typical_ns = NAN,
		.latency = {NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN},
		.length = {0, NAN, STATED_ERROR, NAN, NAN, NAN},
		.records_lost_share = report_lost_share(dataset),
	};
}

/* Without rows: every category is there, and nothing is known of it. */
static void report_empty(struct report *report)
{
	struct share_part parts[WL_CATEGORY_CNT];

	for (int c = 0; c < WL_CATEGORY_CNT; c++)
		parts[c].total = (struct share_line){NAN, NAN, NAN, NAN, NAN, {NAN, NAN}, {NAN, NAN}, NAN};
	breakdown_fill(report, parts);
}

/* The least share of the intervals that recorded a hardware counter; NAN: none was recorded. */
static double hardware_share(const struct dataset *dataset, double total_weight)
{
	double least = NAN;

	for (size_t e = 0; e < dataset->event_cnt; e++) {
		const struct dataset_event *event = &dataset->events[e];
		double weight = 0;

		if (!event_is_hardware(event->name) || !event->values)
			continue;
		for (size_t row = 0; row < dataset->row_cnt; row++)
			if (!event->missing || !bitmap_test(event->missing, row))
				weight += dataset->weight[row];
		if (weight > 0)
			least = fmin(least, weight / total_weight);
	}
	return least;
}

static void length_fill(struct report *report, const struct tail_error *error, double total_weight)
{
	const struct dataset *dataset = report->dataset;
	struct length_line *length = &report->length;

	length->late_rows = error->row_cnt;
	if (!error->block_cnt || !(error->share > 0))
		return;
	length->error = Z_95 * error->standard / error->share;
	length->recorded_share = hardware_share(dataset, total_weight);
	if (!(dataset->duration_s > 0))
		return;
	length->needed_s = dataset->duration_s * pow(length->error / STATED_ERROR, 2);
	length->recorded_needed_s = length->needed_s / length->recorded_share;
}

static int rank_events(struct report *report, const struct report_work *work, const struct stats_order *order,
		       const struct share_opts *opts)
{
	const struct dataset *dataset = report->dataset;
	uint32_t replicate_cnt = opts->bootstrap_cnt ? opts->bootstrap_cnt : BOOTSTRAP_REPLICATES;
	struct impact_opts impact = {.tail = report->tail, .lost = opts->lost};
	struct tail_blocks blocks;
	struct tail_error error;
	int err;

	report->events = arena__alloc(report->arena, dataset->event_cnt, sizeof(*report->events));
	if (!report->events)
		return -ENOMEM;
	err = tail_blocks__init(&blocks, &work->rows, replicate_cnt, opts->seed);
	if (err)
		return err;
	error = tail_blocks__error(&blocks, &work->rows);
	length_fill(report, &error, order->total_weight);
	impact.blocks = &blocks;
	impact.error = &error;
	err = impact_compute(report->events, dataset, order, &impact);
	report->event_cnt = err ? 0 : dataset->event_cnt;
	tail_blocks__free(&blocks);
	return err;
}

static int report_fill(struct report *report, struct report_work *work, const struct stats_order *order,
		       const struct report_opts *opts)
{
	const struct dataset *dataset = report->dataset;
	struct share_opts share_opts = {opts->bootstrap_cnt, opts->seed, 0};
	int err;

	share_opts.lost = shares_lost_bound(report->records_lost_share, opts->tail);
	stats_summarize(&report->latency, order);
	report->tail_threshold_ns = stats_quantile(order, opts->tail, NULL, NULL, order->total_weight);
	report->typical_ns = fmin(report->latency.p50_ns, report->tail_threshold_ns);
	work->rows.row_cnt = dataset->row_cnt;
	work->rows.latency_ns = dataset->latency_ns;
	work->rows.weights = dataset->weight;
	work->rows.windows = dataset->window_cnt ? dataset->window : NULL;
	work->rows.median_ns = report->typical_ns;
	work->rows.late_ns = report->tail_threshold_ns;
	err = levels_make(report, &work->rows, opts);
	err = err ? err : parallel_run(WL_CATEGORY_CNT, split_category, work);
	if (err)
		return err;
	err = shares_compute(work->parts, WL_CATEGORY_CNT, &work->rows, &share_opts);
	if (err)
		return err;
	breakdown_fill(report, work->parts);
	err = rank_events(report, work, order, &share_opts);
	if (err)
		return err;
	if (opts->factors || opts->sampled)
		err = factors_report(report, work->splits, opts, &work->places);
	if (!err && opts->paths)
		err = paths_report(report, opts->paths, opts);
	if (!err)
		err = opts->roots ? roots_report(report, opts->roots, opts)
				  : causes_make(report, work->splits, report->factors ? &work->places : NULL,
						opts->keep_rows);
	if (!err && opts->values)
		err = values_report(report, opts->values, opts);
	if (!err)
		err = delivery_report(report, opts);
	if (!err)
		err = hosts_compare(report, opts, report->arena);
	return err ? err : types_make(report, order);
}

int report_make(struct report *report, const struct dataset *dataset, const struct report_opts *opts)
{
	struct report_work *work = NULL;
	struct stats_order order = {0};
	int err;

	if (!(opts->tail > 0 && opts->tail < 1) || dataset->row_cnt > UINT32_MAX)
		return -EINVAL;
	report_init(report, dataset, opts);
	progress_at("ranking causes");
	if (!dataset->row_cnt) {
		report_empty(report);
		return 0;
	}
	err = -ENOMEM;
	report->arena = arena__new();
	work = calloc(1, sizeof(*work));
	if (!report->arena || !work)
		goto cleanup;
	work->dataset = dataset;
	err = stats_order__init(&order, dataset->latency_ns, dataset->weight, dataset->row_cnt);
	if (!err)
		err = report_fill(report, work, &order, opts);
cleanup:
	stats_order__free(&order);
	for (int c = 0; work && c < WL_CATEGORY_CNT; c++)
		blame_split__free(&work->splits[c]);
	free(work);
	if (err)
		report_free(report);
	return err;
}

void report_free(struct report *report)
{
	arena__free(report->arena);
	*report = (struct report){.dataset = report->dataset};
}
