// SPDX-License-Identifier: GPL-2.0-or-later
/* Latencies of kept requests, weighted, as OpenTelemetry's exponential histograms: one for each session and type. */
#include "base/exphist.h"
#include "shard/columns.h"
#include "view/export_otlp.h"
#include "view/otlp_common.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Field numbers: docs/otlp.proto. */
enum {
	FIELD_REQUEST_RESOURCE_METRICS = 1,
	FIELD_RESOURCE_METRICS_RESOURCE = 1,
	FIELD_RESOURCE_METRICS_SCOPE_METRICS = 2,
	FIELD_SCOPE_METRICS_SCOPE = 1,
	FIELD_SCOPE_METRICS_METRICS = 2,
	FIELD_METRIC_NAME = 1,
	FIELD_METRIC_DESCRIPTION = 2,
	FIELD_METRIC_UNIT = 3,
	FIELD_METRIC_EXPONENTIAL = 10,
	FIELD_EXPONENTIAL_POINTS = 1,
	FIELD_EXPONENTIAL_TEMPORALITY = 2,
	FIELD_POINT_ATTRIBUTES = 1,
	FIELD_POINT_START = 2,
	FIELD_POINT_TIME = 3,
	FIELD_POINT_COUNT = 4,
	FIELD_POINT_SUM = 5,
	FIELD_POINT_SCALE = 6,
	FIELD_POINT_POSITIVE = 8,
	FIELD_POINT_MIN = 12,
	FIELD_POINT_MAX = 13,
	FIELD_BUCKETS_OFFSET = 1,
	FIELD_BUCKETS_COUNTS = 2,
};

#define CUMULATIVE 2
#define TYPES_MAX  200 /* of a session; the others are one series */

struct point {
	char *type;
	double sum_s, min_s, max_s;
	double weights[EXPHIST_CNT];
};

struct session_points {
	const struct otlp_session *session;
	uint64_t begin_ts, end_ts;
	VEC(struct point *) points;
};

struct otlp_metrics {
	struct otlp_sessions sessions;
	VEC(struct session_points) items;
	struct otlp_stats *stats;
};

/* NULL without memory. */
static struct session_points *points_of(struct otlp_metrics *metrics, const struct otlp_session *session)
{
	for (size_t i = metrics->items.cnt; i > 0; i--)
		if (metrics->items.items[i - 1].session == session)
			return &metrics->items.items[i - 1];
	if (vec_push(&metrics->items, ((struct session_points){.session = session, .begin_ts = UINT64_MAX})))
		return NULL;
	return &metrics->items.items[metrics->items.cnt - 1];
}

static struct point *point_of(struct session_points *of, const char *type)
{
	struct point *point;

	if (of->points.cnt >= TYPES_MAX)
		type = "other";
	for (size_t i = 0; i < of->points.cnt; i++)
		if (!strcmp(of->points.items[i]->type, type))
			return of->points.items[i];
	point = calloc(1, sizeof(*point));
	if (point)
		point->type = strdup(type);
	if (!point || !point->type || vec_push(&of->points, point)) {
		if (point)
			free(point->type);
		free(point);
		return NULL;
	}
	return point;
}

static int take_block(struct otlp_metrics *metrics, const struct otlp_session *session, const struct shard_block *block)
{
	const struct interval_columns columns = block_columns(block, INTERVAL, interval);
	struct session_points *of = points_of(metrics, session);

	for (uint32_t i = 0; of && i < block->row_cnt; i++) {
		uint64_t begin_ts = column_u64(columns.begin_ts, i), end_ts = column_u64(columns.end_ts, i);
		double seconds = (double)(end_ts - begin_ts) / 1e9, weight = column_f64_or(columns.weight, i, 1);
		const char *type = column_text(columns.type, i);
		struct point *point;

		if (end_ts < begin_ts || !isfinite(weight) || weight <= 0)
			continue;
		point = point_of(of, *type ? type : "request");
		if (!point)
			return -ENOMEM;
		point->min_s = point->max_s > 0 ? fmin(point->min_s, seconds) : seconds;
		point->max_s = fmax(point->max_s, seconds);
		point->sum_s += weight * seconds;
		point->weights[exphist_index(seconds) - EXPHIST_MIN] += weight;
		of->begin_ts = begin_ts < of->begin_ts ? begin_ts : of->begin_ts;
		of->end_ts = end_ts > of->end_ts ? end_ts : of->end_ts;
		metrics->stats->requests++;
	}
	return of ? 0 : -ENOMEM;
}

static int read_rows(struct otlp_metrics *metrics, struct shard_reader *reader)
{
	static const char *const tables[] = {"interval"};
	const struct shard_block *block;
	int ret = shard_reader__select(reader, tables, 1);

	if (ret)
		return ret;
	while ((ret = shard_reader__next(reader, &block)) > 0) {
		const struct otlp_session *session = otlp_sessions__find(&metrics->sessions, block->session_id);
		int err = 0;

		if (!session || !otlp_session__has_clock(session))
			metrics->stats->without_clock += block->row_cnt;
		else
			err = take_block(metrics, session, block);
		if (err)
			return err;
	}
	return ret;
}

/* Counts are integers: each bucket's weight, rounded; the whole is their sum. */
static void put_buckets(struct proto *to, const struct point *point)
{
	uint64_t counts[EXPHIST_CNT], sum = 0;
	struct proto buckets = {0};
	int first = EXPHIST_CNT, last = -1;

	for (int i = 0; i < EXPHIST_CNT; i++) {
		counts[i] = (uint64_t)llround(fmin(point->weights[i], 0x1p62));
		sum += counts[i];
		if (!counts[i])
			continue;
		first = first < EXPHIST_CNT ? first : i;
		last = i;
	}
	proto__fixed64(to, FIELD_POINT_COUNT, sum);
	proto__double(to, FIELD_POINT_SUM, point->sum_s);
	proto__sint(to, FIELD_POINT_SCALE, EXPHIST_SCALE);
	if (last >= 0) {
		/* OpenTelemetry's bucket i is above base^i. */
		proto__sint(&buckets, FIELD_BUCKETS_OFFSET, first + EXPHIST_MIN - 1);
		proto__packed(&buckets, FIELD_BUCKETS_COUNTS, counts + first, (size_t)(last - first + 1));
		proto__message(to, FIELD_POINT_POSITIVE, &buckets);
	}
	proto__double(to, FIELD_POINT_MIN, point->min_s);
	proto__double(to, FIELD_POINT_MAX, point->max_s);
	proto__free(&buckets);
}

static int put_session(const struct session_points *of, struct otlp_scratch *scratch,
		       int (*put)(void *owner, const void *bytes, size_t sz, size_t cnt), void *owner)
{
	struct proto point = {0}, exponential = {0}, metric = {0}, scope = {0}, resource = {0}, request = {0};
	int err;

	for (size_t i = 0; i < of->points.cnt; i++) {
		proto__reset(&point);
		otlp_put_text(scratch, &point, FIELD_POINT_ATTRIBUTES, "type", of->points.items[i]->type);
		proto__fixed64(&point, FIELD_POINT_START, otlp_session__wall(of->session, of->begin_ts));
		proto__fixed64(&point, FIELD_POINT_TIME, otlp_session__wall(of->session, of->end_ts));
		put_buckets(&point, of->points.items[i]);
		proto__message(&exponential, FIELD_EXPONENTIAL_POINTS, &point);
	}
	proto__uint(&exponential, FIELD_EXPONENTIAL_TEMPORALITY, CUMULATIVE);
	proto__string(&metric, FIELD_METRIC_NAME, "whylate.request.duration");
	proto__string(&metric, FIELD_METRIC_DESCRIPTION,
		      "Latency of requests, weighted: of how many the kept ones speak.");
	proto__string(&metric, FIELD_METRIC_UNIT, "s");
	proto__message(&metric, FIELD_METRIC_EXPONENTIAL, &exponential);
	otlp_put_scope(&scope, FIELD_SCOPE_METRICS_SCOPE);
	proto__message(&scope, FIELD_SCOPE_METRICS_METRICS, &metric);
	otlp_put_resource(scratch, &resource, FIELD_RESOURCE_METRICS_RESOURCE, of->session);
	proto__message(&resource, FIELD_RESOURCE_METRICS_SCOPE_METRICS, &scope);
	proto__message(&request, FIELD_REQUEST_RESOURCE_METRICS, &resource);
	err = request.err ?: put(owner, request.items, request.cnt, of->points.cnt);
	proto__free(&point);
	proto__free(&exponential);
	proto__free(&metric);
	proto__free(&scope);
	proto__free(&resource);
	proto__free(&request);
	return err;
}

int export_otlp_metrics(struct shard_reader *reader, int (*put)(void *owner, const void *bytes, size_t sz, size_t cnt),
			void *owner, struct otlp_stats *stats)
{
	struct otlp_metrics metrics = {.stats = stats};
	struct otlp_scratch scratch = {0};
	int err;

	*stats = (struct otlp_stats){0};
	err = otlp_sessions__read(&metrics.sessions, reader) ?: read_rows(&metrics, reader);
	if (!err && !stats->requests && !stats->without_clock)
		err = -ENOENT;
	for (size_t i = 0; i < metrics.items.cnt; i++) {
		struct session_points *of = &metrics.items.items[i];

		if (!err && of->points.cnt)
			err = put_session(of, &scratch, put, owner);
		for (size_t p = 0; p < of->points.cnt; p++) {
			free(of->points.items[p]->type);
			free(of->points.items[p]);
		}
		vec_free(&of->points);
	}
	vec_free(&metrics.items);
	otlp_sessions__free(&metrics.sessions);
	otlp_scratch__free(&scratch);
	return err;
}
