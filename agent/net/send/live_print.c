// SPDX-License-Identifier: GPL-2.0-or-later
/* Metrics as text, or as Prometheus' protocol buffers (io.prometheus.client.MetricFamily, each behind its length). */
#include "net/send/live_metrics.h"

#include "base/names.h"
#include "base/protobuf.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* Field numbers of io.prometheus.client. */
enum {
	FIELD_FAMILY_NAME = 1,
	FIELD_FAMILY_HELP = 2,
	FIELD_FAMILY_TYPE = 3,
	FIELD_FAMILY_METRIC = 4,
	FIELD_METRIC_LABEL = 1,
	FIELD_METRIC_COUNTER = 3,
	FIELD_METRIC_HISTOGRAM = 7,
	FIELD_LABEL_NAME = 1,
	FIELD_LABEL_VALUE = 2,
	FIELD_COUNTER_VALUE = 1,
	FIELD_EXEMPLAR_LABEL = 1,
	FIELD_EXEMPLAR_VALUE = 2,
	FIELD_BUCKET_BOUND = 2,
	FIELD_BUCKET_EXEMPLAR = 3,
	FIELD_BUCKET_COUNT = 4,
	FIELD_HISTOGRAM_SUM = 2,
	FIELD_HISTOGRAM_BUCKET = 3,
	FIELD_HISTOGRAM_COUNT = 4,
	FIELD_HISTOGRAM_SCHEMA = 5,
	FIELD_HISTOGRAM_ZERO_THRESHOLD = 6,
	FIELD_HISTOGRAM_SPAN = 12,
	FIELD_HISTOGRAM_POSITIVE = 14,
	FIELD_SPAN_OFFSET = 1,
	FIELD_SPAN_LENGTH = 2,
};
enum { TYPE_COUNTER = 0, TYPE_HISTOGRAM = 4 };

/* The smallest bucket's lower end: nothing lies below. */
#define ZERO_THRESHOLD 2.938735877055719e-39

struct label {
	const char *name, *value;
};

#define LABELS_MAX 6

struct printer {
	const struct live_metrics *metrics;
	enum live_format format;
	FILE *out; /* of text */
	struct proto stream, family;
};

static void begin_family(struct printer *printer, const char *name, int type, const char *help)
{
	char full[80];

	if (printer->format != LIVE_PROTOBUF) {
		exposition_family(printer->out, printer->format == LIVE_OPENMETRICS, name,
				  type == TYPE_COUNTER ? "counter" : "histogram", help);
		return;
	}
	snprintf(full, sizeof(full), "%s%s", name, type == TYPE_COUNTER ? "_total" : "");
	proto__reset(&printer->family);
	proto__string(&printer->family, FIELD_FAMILY_NAME, full);
	proto__string(&printer->family, FIELD_FAMILY_HELP, help);
	proto__uint(&printer->family, FIELD_FAMILY_TYPE, (uint64_t)type);
}

static void end_family(struct printer *printer)
{
	if (printer->format == LIVE_PROTOBUF)
		proto__delimited(&printer->stream, &printer->family);
}

static void put_pair(struct proto *to, uint32_t field, const char *name, const char *value)
{
	struct proto pair = {0};

	proto__string(&pair, FIELD_LABEL_NAME, name);
	proto__string(&pair, FIELD_LABEL_VALUE, value);
	proto__message(to, field, &pair);
	proto__free(&pair);
}

/* "{host=…,comm=…,MORE", the brace stays open. */
static void put_labels(const struct printer *printer, const char *name, const struct label *more)
{
	fprintf(printer->out, "%s{", name);
	exposition_label(printer->out, "host", printer->metrics->host);
	fputc(',', printer->out);
	exposition_label(printer->out, "comm", printer->metrics->comm);
	for (; more->name; more++) {
		fputc(',', printer->out);
		exposition_label(printer->out, more->name, more->value);
	}
}

static void put_proto_labels(const struct printer *printer, struct proto *metric, const struct label *more)
{
	put_pair(metric, FIELD_METRIC_LABEL, "host", printer->metrics->host);
	put_pair(metric, FIELD_METRIC_LABEL, "comm", printer->metrics->comm);
	for (; more->name; more++)
		put_pair(metric, FIELD_METRIC_LABEL, more->name, more->value);
}

/* `labels` end with a name of NULL. */
static void put_counter(struct printer *printer, const char *name, const struct label *labels, double value)
{
	struct proto metric = {0}, counter = {0};
	char full[80];

	if (printer->format != LIVE_PROTOBUF) {
		snprintf(full, sizeof(full), "%s_total", name);
		put_labels(printer, full, labels);
		fprintf(printer->out, "} %.17g\n", value);
		return;
	}
	put_proto_labels(printer, &metric, labels);
	proto__double(&counter, FIELD_COUNTER_VALUE, value);
	proto__message(&metric, FIELD_METRIC_COUNTER, &counter);
	proto__message(&printer->family, FIELD_FAMILY_METRIC, &metric);
	proto__free(&counter);
	proto__free(&metric);
}

static void put_exemplar(const struct printer *printer, const struct live_exemplar *exemplar)
{
	if (!(exemplar->seconds > 0) || printer->format != LIVE_OPENMETRICS)
		return;
	fputs(" # {", printer->out);
	if (*exemplar->trace_id)
		fprintf(printer->out, "trace_id=\"%s\",", exemplar->trace_id);
	fprintf(printer->out, "session=\"%016" PRIx64 "\",sid=\"%" PRIu64 "\"} %.9g", exemplar->session, exemplar->sid,
		exemplar->seconds);
}

static void put_text_histogram(const struct printer *printer, const char *name, const struct live_series *series)
{
	const struct label labels[] = {{"type", series->type}, {NULL, NULL}};
	char full[80];
	double sum = 0;

	snprintf(full, sizeof(full), "%s_bucket", name);
	for (size_t b = 0; b <= EXPOSITION_BOUND_CNT; b++) {
		sum += series->buckets[b];
		put_labels(printer, full, labels);
		if (b < EXPOSITION_BOUND_CNT)
			fprintf(printer->out, ",le=\"%g\"} %.17g", exposition_bounds_s[b], sum);
		else
			fprintf(printer->out, ",le=\"+Inf\"} %.17g", sum);
		put_exemplar(printer, &series->exemplars[b]);
		fputc('\n', printer->out);
	}
	snprintf(full, sizeof(full), "%s_sum", name);
	put_labels(printer, full, labels);
	fprintf(printer->out, "} %.17g\n", series->sum_s);
	snprintf(full, sizeof(full), "%s_count", name);
	put_labels(printer, full, labels);
	fprintf(printer->out, "} %.17g\n", sum);
}

static void put_proto_exemplar(struct proto *bucket, const struct live_exemplar *exemplar)
{
	struct proto message = {0};
	char text[24];

	if (!(exemplar->seconds > 0))
		return;
	if (*exemplar->trace_id)
		put_pair(&message, FIELD_EXEMPLAR_LABEL, "trace_id", exemplar->trace_id);
	snprintf(text, sizeof(text), "%016" PRIx64, exemplar->session);
	put_pair(&message, FIELD_EXEMPLAR_LABEL, "session", text);
	snprintf(text, sizeof(text), "%" PRIu64, exemplar->sid);
	put_pair(&message, FIELD_EXEMPLAR_LABEL, "sid", text);
	proto__double(&message, FIELD_EXEMPLAR_VALUE, exemplar->seconds);
	proto__message(bucket, FIELD_BUCKET_EXEMPLAR, &message);
	proto__free(&message);
}

/* One span from the first bucket that has something to the last. */
static void put_natives(struct proto *histogram, const struct live_series *series)
{
	struct proto span = {0};
	int first = 0, last = EXPHIST_CNT - 1;

	while (first < EXPHIST_CNT && !(series->natives[first] > 0))
		first++;
	while (last > first && !(series->natives[last] > 0))
		last--;
	proto__sint(histogram, FIELD_HISTOGRAM_SCHEMA, EXPHIST_SCALE);
	proto__double(histogram, FIELD_HISTOGRAM_ZERO_THRESHOLD, ZERO_THRESHOLD);
	if (first == EXPHIST_CNT)
		return;
	proto__sint(&span, FIELD_SPAN_OFFSET, first + EXPHIST_MIN);
	proto__uint(&span, FIELD_SPAN_LENGTH, (uint64_t)(last - first + 1));
	proto__message(histogram, FIELD_HISTOGRAM_SPAN, &span);
	for (int i = first; i <= last; i++)
		proto__double(histogram, FIELD_HISTOGRAM_POSITIVE, series->natives[i]);
	proto__free(&span);
}

static void put_proto_histogram(struct printer *printer, const struct live_series *series)
{
	const struct label labels[] = {{"type", series->type}, {NULL, NULL}};
	struct proto metric = {0}, histogram = {0}, bucket = {0};
	double sum = 0;

	put_proto_labels(printer, &metric, labels);
	proto__double(&histogram, FIELD_HISTOGRAM_SUM, series->sum_s);
	for (size_t b = 0; b <= EXPOSITION_BOUND_CNT; b++) {
		sum += series->buckets[b];
		proto__reset(&bucket);
		proto__double(&bucket, FIELD_BUCKET_BOUND,
			      b < EXPOSITION_BOUND_CNT ? exposition_bounds_s[b] : INFINITY);
		put_proto_exemplar(&bucket, &series->exemplars[b]);
		proto__double(&bucket, FIELD_BUCKET_COUNT, sum);
		proto__message(&histogram, FIELD_HISTOGRAM_BUCKET, &bucket);
	}
	proto__double(&histogram, FIELD_HISTOGRAM_COUNT, sum);
	put_natives(&histogram, series);
	proto__message(&metric, FIELD_METRIC_HISTOGRAM, &histogram);
	proto__message(&printer->family, FIELD_FAMILY_METRIC, &metric);
	proto__free(&bucket);
	proto__free(&histogram);
	proto__free(&metric);
}

static void put_requests(struct printer *printer)
{
	static const char name[] = "whylate_request_seconds";

	begin_family(printer, name, TYPE_HISTOGRAM, "Latency of requests, weighted by the selection.");
	for (uint32_t i = 0; i < printer->metrics->series_cnt; i++)
		if (printer->format == LIVE_PROTOBUF)
			put_proto_histogram(printer, &printer->metrics->series[i]);
		else
			put_text_histogram(printer, name, &printer->metrics->series[i]);
	end_family(printer);
}

static void put_late(struct printer *printer)
{
	static const char name[] = "whylate_late_seconds";

	begin_family(printer, name, TYPE_COUNTER,
		     "Where late requests (at and above --tail) spent their time, weighted.");
	for (uint32_t i = 0; i < printer->metrics->series_cnt; i++)
		for (int c = 0; c < WL_CATEGORY_CNT; c++) {
			const struct label labels[LABELS_MAX] = {{"type", printer->metrics->series[i].type},
								 {"category", category_name(c)}};

			put_counter(printer, name, labels, printer->metrics->series[i].late_s[c]);
		}
	end_family(printer);
}

static void put_roots(struct printer *printer)
{
	static const char name[] = "whylate_root_late_seconds";

	begin_family(printer, name, TYPE_COUNTER,
		     "Longest waits of late requests, and their own time on the CPU, by what it was for, weighted.");
	for (uint32_t i = 0; i < printer->metrics->root_cnt; i++) {
		const struct live_root *root = &printer->metrics->roots[i];
		const struct label labels[LABELS_MAX] = {
			{"root", root->root},
			{"category", i == LIVE_ROOTS_MAX ? "other" : category_name(root->category)},
			{"culprit", root->culprit},
		};

		put_counter(printer, name, labels, root->late_s);
	}
	end_family(printer);
}

static void put_one(struct printer *printer, const char *name, const char *help, double value)
{
	static const struct label none[] = {{NULL, NULL}};

	if (!isfinite(value))
		return;
	begin_family(printer, name, TYPE_COUNTER, help);
	put_counter(printer, name, none, value);
	end_family(printer);
}

static void put_losses(struct printer *printer)
{
	static const char name[] = "whylate_lost";

	begin_family(printer, name, TYPE_COUNTER, "Records that were lost, by class.");
	for (int c = 0; c < WL_LOSS_CNT; c++) {
		const struct label labels[LABELS_MAX] = {{"class", loss_name(c)}};

		if (printer->metrics->loss_known[c])
			put_counter(printer, name, labels, (double)printer->metrics->lost[c]);
	}
	end_family(printer);
}

char *live_metrics__print(const struct live_metrics *metrics, enum live_format format, size_t *sz)
{
	struct printer printer = {.metrics = metrics, .format = format};
	char *text = NULL;
	bool failed;

	printer.out = open_memstream(&text, sz);
	if (!printer.out)
		return NULL;
	put_requests(&printer);
	put_late(&printer);
	put_roots(&printer);
	put_one(&printer, "whylate_intervals_seen", "Requests that finished, selected or not.", metrics->seen);
	put_one(&printer, "whylate_agent_cpu_seconds", "CPU time of the recorder.", metrics->agent_s);
	put_one(&printer, "whylate_bpf_cpu_seconds", "CPU time of its BPF programs.", metrics->bpf_s);
	put_one(&printer, "whylate_target_cpu_seconds", "CPU time of the target meanwhile.", metrics->target_s);
	put_losses(&printer);
	if (format == LIVE_OPENMETRICS)
		fputs("# EOF\n", printer.out);
	if (format == LIVE_PROTOBUF)
		fwrite(printer.stream.items, 1, printer.stream.cnt, printer.out);
	failed = printer.stream.err || ferror(printer.out);
	proto__free(&printer.stream);
	proto__free(&printer.family);
	if (!fclose(printer.out) && !failed)
		return text;
	free(text);
	return NULL;
}
