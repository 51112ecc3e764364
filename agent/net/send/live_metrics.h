/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a recording counts while it runs, for `record --metrics`: by type of request, latencies in classic and
 * exponential buckets and the time of late requests by category; the same by what held them up; cost and loss.  Of a
 * bounded size and without pointers, so that it can lie in memory that two processes share.  The first types and roots
 * that are seen have series of their own, all others are `other`.
 */
#ifndef WHYLATE_NET_SEND_LIVE_METRICS_H
#define WHYLATE_NET_SEND_LIVE_METRICS_H

#include <whylate/record.h>

#include "base/exphist.h"
#include "base/exposition.h"

#include <stdint.h>

#define LIVE_TYPES_MAX 20
#define LIVE_ROOTS_MAX 20
#define LIVE_NAME_SZ   128

/* The latest late request of a bucket. */
struct live_exemplar {
	uint64_t session, sid;
	double seconds; /* 0: none */
	char trace_id[33];
};

struct live_series {
	char type[LIVE_NAME_SZ];
	double count, sum_s;
	double buckets[EXPOSITION_BOUND_CNT + 1], natives[EXPHIST_CNT];
	struct live_exemplar exemplars[EXPOSITION_BOUND_CNT + 1];
	double late_s[WL_CATEGORY_CNT];
};

struct live_root {
	char root[LIVE_NAME_SZ], culprit[LIVE_NAME_SZ];
	enum wl_category category;
	double late_s;
};

struct live_metrics {
	char host[LIVE_NAME_SZ], comm[LIVE_NAME_SZ];
	uint32_t series_cnt, root_cnt;
	struct live_series series[LIVE_TYPES_MAX + 1]; /* the last one: other */
	struct live_root roots[LIVE_ROOTS_MAX + 1];
	double seen, agent_s, bpf_s, target_s; /* NAN: not measured */
	uint64_t lost[WL_LOSS_CNT];
	bool loss_known[WL_LOSS_CNT];
};

/* The series of a type. */
uint32_t live_metrics__series(struct live_metrics *metrics, const char *type);
/* A request that ended, kept or not, for `weight` of its like. */
void live_metrics__saw(struct live_metrics *metrics, uint32_t series, uint64_t latency_ns, double weight);
/* One of those that is late: where its time went. */
void live_metrics__late(struct live_metrics *metrics, uint32_t series, uint64_t latency_ns, double weight,
			const uint64_t category_ns[WL_CATEGORY_CNT], const struct live_exemplar *exemplar);
/* What held a late one up; weights applied. */
void live_metrics__root(struct live_metrics *metrics, enum wl_category category, const char *root, const char *culprit,
			double ns);

enum live_format { LIVE_TEXT, LIVE_OPENMETRICS, LIVE_PROTOBUF };

/* What a client with that Accept header (NULL: none) likes best of these. */
enum live_format live_format_of(const char *accept);
const char *live_content_type(enum live_format format);
/* To be freed; NULL without memory.  LIVE_PROTOBUF has native histograms beside the classic ones. */
char *live_metrics__print(const struct live_metrics *metrics, enum live_format format, size_t *sz);

#endif
