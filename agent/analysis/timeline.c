// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/timeline.h"

#include "base/order.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define TREND_ROWS 8 /* intervals that met the cause, for a trend */

struct timed_row {
	size_t row, bucket;
	uint64_t latency_ns;
	double weight;
};

ORDER(compare_timed, struct timed_row, BY(a->bucket, b->bucket), BY(a->latency_ns, b->latency_ns));

/* Those that ended in the time, sorted by bucket and latency. */
static size_t place_rows(const struct timeline *timeline, const struct dataset *dataset, struct timed_row *rows)
{
	uint64_t span_ns = timeline->end_wall_ns - timeline->begin_wall_ns;
	size_t cnt = 0;

	for (size_t row = 0; row < dataset->row_cnt; row++) {
		int64_t clock_ns = dataset->session_clock_ns[dataset->session ? dataset->session[row] : 0];
		uint64_t end_ns = dataset->begin_ts[row] + dataset->latency_ns[row] + (uint64_t)clock_ns;

		if (!clock_ns || end_ns < timeline->begin_wall_ns || end_ns >= timeline->end_wall_ns)
			continue;
		rows[cnt++] = (struct timed_row){
			.row = row,
			.bucket = (size_t)((double)(end_ns - timeline->begin_wall_ns) / (double)span_ns *
					   (double)timeline->bucket_cnt),
			.latency_ns = dataset->latency_ns[row],
			.weight = dataset->weight[row],
		};
		if (rows[cnt - 1].bucket >= timeline->bucket_cnt)
			rows[cnt - 1].bucket = timeline->bucket_cnt - 1;
	}
	qsort(rows, cnt, sizeof(*rows), compare_timed);
	return cnt;
}

static void fill_bucket(struct timeline_bucket *bucket, const struct timed_row *rows, size_t cnt)
{
	double below = 0;

	for (size_t i = 0; i < cnt; i++)
		bucket->count += rows[i].weight;
	for (size_t i = 0; i < cnt; i++) {
		below += rows[i].weight;
		if (isnan(bucket->p50_ns) && below >= 0.50 * bucket->count)
			bucket->p50_ns = (double)rows[i].latency_ns;
		if (isnan(bucket->p99_ns) && below >= 0.99 * bucket->count)
			bucket->p99_ns = (double)rows[i].latency_ns;
	}
}

/* On either side of the last quarter. */
struct trend_side {
	double ns, weight;
	size_t met;
};

static double trend_of(const struct trend_side *before, const struct trend_side *lately)
{
	if (before->met + lately->met < TREND_ROWS || !(before->weight > 0) || !(lately->weight > 0))
		return NAN;
	/* Of what was not met before there is no ratio: it is new. */
	if (!(before->ns > 0))
		return INFINITY;
	return lately->ns / lately->weight / (before->ns / before->weight);
}

static int fill_cause(struct timeline *timeline, struct timeline_cause *line, const struct cause *cause,
		      const bool *ranked, const struct timed_row *rows, size_t cnt)
{
	struct trend_side sides[2] = {{0}};
	double weight = 0;

	line->trend = NAN;
	line->mean_ns = calloc(timeline->bucket_cnt, sizeof(*line->mean_ns));
	if (!line->mean_ns)
		return -ENOMEM;
	for (size_t b = 0; b < timeline->bucket_cnt; b++)
		line->mean_ns[b] = NAN;
	for (size_t i = 0; i < cnt && cause->row_ns; i++) {
		struct trend_side *side = &sides[rows[i].bucket >= timeline->bucket_cnt - timeline->bucket_cnt / 4];
		uint64_t ns = cause->row_ns[rows[i].row];
		double *mean = &line->mean_ns[rows[i].bucket];

		if (ranked && !ranked[rows[i].row])
			continue;
		/* Rows come bucket by bucket. */
		if (isnan(*mean))
			*mean = weight = 0;
		weight += rows[i].weight;
		if (weight > 0)
			*mean += ((double)ns - *mean) * rows[i].weight / weight;
		side->ns += (double)ns * rows[i].weight;
		side->weight += rows[i].weight;
		side->met += ns > 0;
	}
	line->trend = trend_of(&sides[0], &sides[1]);
	return 0;
}

int timeline_make(struct timeline *timeline, const struct report *report, uint64_t begin_wall_ns, uint64_t end_wall_ns,
		  size_t bucket_cnt)
{
	const struct dataset *dataset = report->dataset;
	struct timed_row *rows = calloc(dataset->row_cnt + 1, sizeof(*rows));
	size_t cnt = 0, first = 0;
	int err = rows ? 0 : -ENOMEM;

	*timeline = (struct timeline){
		.begin_wall_ns = begin_wall_ns,
		.end_wall_ns = end_wall_ns > begin_wall_ns ? end_wall_ns : begin_wall_ns + 1,
		.bucket_cnt = bucket_cnt ? bucket_cnt : 1,
		.cause_cnt = report->cause_cnt,
	};
	timeline->buckets = calloc(timeline->bucket_cnt, sizeof(*timeline->buckets));
	timeline->causes = calloc(timeline->cause_cnt + 1, sizeof(*timeline->causes));
	if (!err && timeline->buckets && timeline->causes)
		cnt = place_rows(timeline, dataset, rows);
	else
		err = -ENOMEM;
	for (size_t b = 0; !err && b < timeline->bucket_cnt; b++) {
		size_t end = first;

		while (end < cnt && rows[end].bucket == b)
			end++;
		timeline->buckets[b] = (struct timeline_bucket){.p50_ns = NAN, .p99_ns = NAN};
		fill_bucket(&timeline->buckets[b], rows + first, end - first);
		first = end;
	}
	for (size_t c = 0; !err && c < timeline->cause_cnt; c++)
		err = fill_cause(timeline, &timeline->causes[c], &report->causes[c], report->ranked, rows, cnt);
	free(rows);
	if (err)
		timeline_free(timeline);
	return err;
}

void timeline_free(struct timeline *timeline)
{
	for (size_t c = 0; timeline->causes && c < timeline->cause_cnt; c++)
		free(timeline->causes[c].mean_ns);
	free(timeline->causes);
	free(timeline->buckets);
	*timeline = (struct timeline){0};
}
