// SPDX-License-Identifier: GPL-2.0-or-later
#include "view/export_metrics.h"

#include "base/exposition.h"
#include "base/names.h"
#include "base/order.h"
#include "base/vec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define OTHER_TYPE UINT32_MAX

#define BOUND_CNT EXPOSITION_BOUND_CNT

/* A type on a host. */
struct series {
	uint32_t host, type; /* OTHER_TYPE: all that have no series of their own */
	double buckets[BOUND_CNT + 1], count, sum_s;
	size_t exemplars[BOUND_CNT + 1]; /* row + 1 of the slowest in it; 0: none */
	double late_s[WL_CATEGORY_CNT];
};

struct metrics {
	FILE *out;
	bool openmetrics;
	const struct dataset *dataset;
	VEC(struct series) series;
	VEC(uint32_t) types; /* that have series of their own */
};

static const char *host_name(const struct metrics *metrics, uint32_t host)
{
	const struct dataset *dataset = metrics->dataset;

	return host < dataset->host_cnt ? dataset->hosts[host].name : dataset->host ? dataset->host : "";
}

/* The labels that all series of a recording have; the brace stays open. */
static void put_series(const struct metrics *metrics, const char *name, const struct series *series)
{
	FILE *out = metrics->out;

	fprintf(out, "%s{", name);
	exposition_label(out, "host", host_name(metrics, series->host));
	fputc(',', out);
	exposition_label(out, "comm", metrics->dataset->comm ? metrics->dataset->comm : "");
	fputc(',', out);
	exposition_label(out, "type", series->type == OTHER_TYPE ? "other" : metrics->dataset->strings[series->type]);
}

static void put_family(const struct metrics *metrics, const char *name, const char *type, const char *help)
{
	exposition_family(metrics->out, metrics->openmetrics, name, type, help);
}

struct type_weight {
	uint32_t type;
	double weight;
};

ORDER(by_weight, struct type_weight, BY(b->weight, a->weight), BY(a->type, b->type));

/* Those with most requests. */
static int choose_types(struct metrics *metrics)
{
	const struct dataset *dataset = metrics->dataset;
	struct type_weight *weights = calloc(dataset->string_cnt + 1, sizeof(*weights));
	int err = weights ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < dataset->string_cnt; i++)
		weights[i].type = (uint32_t)i;
	for (size_t i = 0; !err && i < dataset->row_cnt; i++)
		weights[dataset->type[i]].weight += dataset->weight[i];
	if (!err)
		qsort(weights, dataset->string_cnt, sizeof(*weights), by_weight);
	for (size_t i = 0; !err && i < dataset->string_cnt && i < METRICS_TYPES_MAX && weights[i].weight > 0; i++)
		err = vec_push(&metrics->types, weights[i].type);
	free(weights);
	return err;
}

static struct series *find_series(struct metrics *metrics, uint32_t host, uint32_t type)
{
	bool known = false;

	for (size_t i = 0; i < metrics->types.cnt; i++)
		known |= metrics->types.items[i] == type;
	if (!known)
		type = OTHER_TYPE;
	for (size_t i = 0; i < metrics->series.cnt; i++)
		if (metrics->series.items[i].host == host && metrics->series.items[i].type == type)
			return &metrics->series.items[i];
	if (vec_push(&metrics->series, ((struct series){.host = host, .type = type})))
		return NULL;
	return &metrics->series.items[metrics->series.cnt - 1];
}

static int sum_rows(struct metrics *metrics, const struct report *report)
{
	const struct dataset *dataset = metrics->dataset;

	for (size_t i = 0; i < dataset->row_cnt; i++) {
		double seconds = (double)dataset->latency_ns[i] / 1e9, weight = dataset->weight[i];
		struct series *series =
			find_series(metrics, dataset->host_idx ? dataset->host_idx[i] : 0, dataset->type[i]);
		size_t bucket = exposition_bucket(seconds);

		if (!series)
			return -ENOMEM;
		series->buckets[bucket] += weight;
		if (!series->exemplars[bucket] ||
		    dataset->latency_ns[series->exemplars[bucket] - 1] < dataset->latency_ns[i])
			series->exemplars[bucket] = i + 1;
		series->count += weight;
		series->sum_s += weight * seconds;
		if ((double)dataset->latency_ns[i] < report->tail_threshold_ns)
			continue;
		for (int c = 0; c < WL_CATEGORY_CNT; c++)
			if (dataset->category_ns[c])
				series->late_s[c] += weight * (double)dataset->category_ns[c][i] / 1e9;
	}
	return 0;
}

static void put_exemplar(const struct metrics *metrics, size_t row_plus_1)
{
	const struct dataset *dataset = metrics->dataset;
	size_t row = row_plus_1 - 1;
	const char *trace_id;

	if (!row_plus_1 || !metrics->openmetrics)
		return;
	fputs(" # {", metrics->out);
	trace_id = dataset->trace_id ? dataset->strings[dataset->trace_id[row]] : "";
	if (strspn(trace_id, "0123456789abcdef") == 32 && !trace_id[32])
		fprintf(metrics->out, "trace_id=\"%s\",", trace_id);
	fprintf(metrics->out, "session=\"%016llx\",sid=\"%llu\"} %.9g",
		(unsigned long long)(dataset->session && dataset->session_cnt
					     ? dataset->session_ids[dataset->session[row]]
					     : 0),
		(unsigned long long)dataset->sid[row], (double)dataset->latency_ns[row] / 1e9);
}

static void put_requests(const struct metrics *metrics)
{
	FILE *out = metrics->out;

	put_family(metrics, "whylate_request_seconds", "histogram",
		   "Latency of requests, weighted: of how many requests the kept ones speak.");
	for (size_t i = 0; i < metrics->series.cnt; i++) {
		const struct series *series = &metrics->series.items[i];
		double sum = 0;

		for (size_t b = 0; b <= BOUND_CNT; b++) {
			sum += series->buckets[b];
			put_series(metrics, "whylate_request_seconds_bucket", series);
			if (b < BOUND_CNT)
				fprintf(out, ",le=\"%g\"} %.17g", exposition_bounds_s[b], sum);
			else
				fprintf(out, ",le=\"+Inf\"} %.17g", sum);
			put_exemplar(metrics, series->exemplars[b]);
			fputc('\n', out);
		}
		put_series(metrics, "whylate_request_seconds_sum", series);
		fprintf(out, "} %.17g\n", series->sum_s);
		put_series(metrics, "whylate_request_seconds_count", series);
		fprintf(out, "} %.17g\n", sum);
	}
}

static void put_late(const struct metrics *metrics, const struct report *report)
{
	put_family(metrics, "whylate_late_seconds", "counter",
		   "Where late requests (beyond the report's tail) spent their time, weighted.");
	for (size_t i = 0; i < metrics->series.cnt; i++)
		for (int c = 0; c < WL_CATEGORY_CNT; c++) {
			if (metrics->dataset->category_unmeasured[c])
				continue;
			put_series(metrics, "whylate_late_seconds_total", &metrics->series.items[i]);
			fprintf(metrics->out, ",category=\"%s\"} %.17g\n", category_name((enum wl_category)c),
				metrics->series.items[i].late_s[c]);
		}
	(void)report;
}

static const char *root_name(const struct cause *cause)
{
	if (cause->function && *cause->function)
		return cause->function;
	if (cause->object && *cause->object)
		return cause->object;
	return category_name(cause->category);
}

/* Late − typical time by root: its share of the tail, of all late requests. */
static void put_roots(const struct metrics *metrics, const struct report *report)
{
	double late = report->latency.count * (1 - report->tail), typical = 0, whole = 0, shown = 0, tail_s;
	FILE *out = metrics->out;

	for (int b = 0; b < WL_CATEGORY_CNT; b++)
		if (report->breakdown[b].measured) {
			whole += report->breakdown[b].late_ns;
			typical += report->breakdown[b].typical_ns;
		}
	tail_s = late * (whole - typical) / 1e9;
	put_family(metrics, "whylate_root_late_seconds", "counter",
		   "What late requests took beyond typical ones, by what it was for, weighted.");
	if (!isfinite(tail_s) || tail_s <= 0)
		return;
	for (size_t i = 0; i <= report->cause_cnt && i <= METRICS_ROOTS_MAX; i++) {
		bool rest = i == report->cause_cnt || i == METRICS_ROOTS_MAX;
		const struct cause *cause = rest ? NULL : &report->causes[i];
		double share = rest ? 1 - shown : cause->share;

		if (!isfinite(share) || share < 0)
			continue;
		shown += rest ? 0 : share;
		fputs("whylate_root_late_seconds_total{", out);
		exposition_label(out, "comm", metrics->dataset->comm ? metrics->dataset->comm : "");
		fprintf(out, ",rank=\"%zu\",", rest ? (size_t)0 : i + 1);
		exposition_label(out, "root", rest ? "other" : root_name(cause));
		fputc(',', out);
		exposition_label(out, "category", rest ? "other" : category_name(cause->category));
		fputc(',', out);
		exposition_label(out, "culprit", rest || !cause->culprit_comm ? "" : cause->culprit_comm);
		fprintf(out, "} %.17g\n", share * tail_s);
	}
}

static void put_counter(const struct metrics *metrics, const char *name, const char *help, double value)
{
	if (!isfinite(value))
		return;
	put_family(metrics, name, "counter", help);
	fprintf(metrics->out, "%s_total{", name);
	exposition_label(metrics->out, "comm", metrics->dataset->comm ? metrics->dataset->comm : "");
	fprintf(metrics->out, "} %.17g\n", value);
}

static void put_losses(const struct metrics *metrics)
{
	put_family(metrics, "whylate_lost", "counter", "Records and rows that were lost, by class.");
	for (int c = 0; c < WL_LOSS_CNT; c++) {
		if (!metrics->dataset->loss[c].emitted && !metrics->dataset->loss[c].lost)
			continue;
		fputs("whylate_lost_total{", metrics->out);
		exposition_label(metrics->out, "comm", metrics->dataset->comm ? metrics->dataset->comm : "");
		fprintf(metrics->out, ",class=\"%s\"} %llu\n", loss_name((enum wl_loss)c),
			(unsigned long long)metrics->dataset->loss[c].lost);
	}
}

int export_metrics(FILE *out, const struct report *report, const struct metrics_cost *cost, bool openmetrics)
{
	struct metrics metrics = {.out = out, .openmetrics = openmetrics, .dataset = report->dataset};
	int err = choose_types(&metrics);

	if (!err)
		err = sum_rows(&metrics, report);
	if (!err) {
		put_requests(&metrics);
		put_late(&metrics, report);
		put_roots(&metrics, report);
		put_counter(&metrics, "whylate_intervals_seen", "Requests that finished, kept or not.",
			    (double)report->dataset->intervals_seen);
		put_counter(&metrics, "whylate_agent_cpu_seconds", "CPU time of the recorder.", cost->agent_ns / 1e9);
		put_counter(&metrics, "whylate_bpf_cpu_seconds", "CPU time of its BPF programs.", cost->bpf_ns / 1e9);
		put_counter(&metrics, "whylate_target_cpu_seconds", "CPU time of the target meanwhile.",
			    cost->target_ns / 1e9);
		put_losses(&metrics);
		if (openmetrics)
			fputs("# EOF\n", out);
		err = fflush(out) || ferror(out) ? -EIO : 0;
	}
	vec_free(&metrics.series);
	vec_free(&metrics.types);
	return err;
}
