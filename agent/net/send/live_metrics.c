// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/send/live_metrics.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void set_name(char name[LIVE_NAME_SZ], const char *text)
{
	snprintf(name, LIVE_NAME_SZ, "%s", text);
}

uint32_t live_metrics__series(struct live_metrics *metrics, const char *type)
{
	char name[LIVE_NAME_SZ];

	set_name(name, type);
	for (uint32_t i = 0; i < metrics->series_cnt && i < LIVE_TYPES_MAX; i++)
		if (!strcmp(metrics->series[i].type, name))
			return i;
	if (metrics->series_cnt > LIVE_TYPES_MAX)
		return LIVE_TYPES_MAX;
	set_name(metrics->series[metrics->series_cnt].type, metrics->series_cnt < LIVE_TYPES_MAX ? name : "other");
	return metrics->series_cnt++;
}

void live_metrics__saw(struct live_metrics *metrics, uint32_t series, uint64_t latency_ns, double weight)
{
	struct live_series *of = &metrics->series[series];
	double seconds = (double)latency_ns / 1e9;

	of->count += weight;
	of->sum_s += weight * seconds;
	of->buckets[exposition_bucket(seconds)] += weight;
	of->natives[exphist_index(seconds) - EXPHIST_MIN] += weight;
}

void live_metrics__late(struct live_metrics *metrics, uint32_t series, uint64_t latency_ns, double weight,
			const uint64_t category_ns[WL_CATEGORY_CNT], const struct live_exemplar *exemplar)
{
	struct live_series *of = &metrics->series[series];
	struct live_exemplar *latest = &of->exemplars[exposition_bucket((double)latency_ns / 1e9)];

	for (int c = 0; c < WL_CATEGORY_CNT; c++)
		of->late_s[c] += weight * (double)category_ns[c] / 1e9;
	*latest = *exemplar;
	latest->seconds = (double)latency_ns / 1e9;
	if (strspn(latest->trace_id, "0123456789abcdef") != 32)
		latest->trace_id[0] = '\0';
}

void live_metrics__root(struct live_metrics *metrics, enum wl_category category, const char *root, const char *culprit,
			double ns)
{
	struct live_root wanted = {.category = category}, *of;
	uint32_t i = 0;

	set_name(wanted.root, root);
	set_name(wanted.culprit, culprit);
	while (i < metrics->root_cnt && i < LIVE_ROOTS_MAX &&
	       (metrics->roots[i].category != category || strcmp(metrics->roots[i].root, wanted.root) ||
		strcmp(metrics->roots[i].culprit, wanted.culprit)))
		i++;
	of = &metrics->roots[i];
	if (i == metrics->root_cnt) {
		metrics->root_cnt++;
		*of = wanted;
		if (i == LIVE_ROOTS_MAX)
			*of = (struct live_root){.root = "other"};
	}
	of->late_s += ns / 1e9;
}

/* How good a media range is: its q, below 0 where it is none of ours. */
static double liking(const char *range, size_t sz, enum live_format *format)
{
	static const struct {
		const char *name, *and;
		enum live_format format;
	} types[] = {
		{"application/vnd.google.protobuf", "MetricFamily", LIVE_PROTOBUF},
		{"application/openmetrics-text", "", LIVE_OPENMETRICS},
		{"text/plain", "", LIVE_TEXT},
		{"text/*", "", LIVE_TEXT},
		{"*/*", "", LIVE_TEXT},
	};
	char copy[256];
	const char *q;

	if (sz >= sizeof(copy))
		return -1;
	memcpy(copy, range, sz);
	copy[sz] = '\0';
	range = copy + strspn(copy, " \t");
	q = strstr(range, "q=");
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		size_t len = strlen(types[i].name);

		if (strncasecmp(range, types[i].name, len) || (range[len] && !strchr("; \t", range[len])) ||
		    !strstr(range, types[i].and))
			continue;
		*format = types[i].format;
		return q ? strtod(q + 2, NULL) : 1;
	}
	return -1;
}

enum live_format live_format_of(const char *accept)
{
	enum live_format best = LIVE_TEXT, format = LIVE_TEXT;
	double most = 0;

	for (const char *at = accept; at && *at;) {
		size_t sz = strcspn(at, ",");
		double q = liking(at, sz, &format);

		if (q > most) {
			most = q;
			best = format;
		}
		at += sz + (at[sz] == ',');
	}
	return best;
}

const char *live_content_type(enum live_format format)
{
	switch (format) {
	case LIVE_PROTOBUF:
		return "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";
	case LIVE_OPENMETRICS:
		return "application/openmetrics-text; version=1.0.0; charset=utf-8";
	default:
		return "text/plain; version=0.0.4; charset=utf-8";
	}
}
