/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A report's intervals in buckets of equal time, by when they ended: curves of latencies, and of each cause's time per
 * interval.  NAN: no interval ended in the bucket.  Weights are applied.
 */
#ifndef WHYLATE_ANALYSIS_TIMELINE_H
#define WHYLATE_ANALYSIS_TIMELINE_H

#include "analysis/results.h"

struct timeline_bucket {
	double count; /* intervals, by their weights */
	double p50_ns, p99_ns;
};

struct timeline_cause {
	double *mean_ns; /* per bucket */
	double trend;    /* its time per interval in the last quarter of the buckets over that before; NAN: too few */
};

struct timeline {
	uint64_t begin_wall_ns, end_wall_ns;
	size_t bucket_cnt;
	struct timeline_bucket *buckets;
	struct timeline_cause *causes; /* those of the report, in its order; the curves need report_opts.keep_rows */
	size_t cause_cnt;
};

/* Of intervals whose session does not know its time of day, nothing is in it.  0 or -ENOMEM. */
int timeline_make(struct timeline *timeline, const struct report *report, uint64_t begin_wall_ns, uint64_t end_wall_ns,
		  size_t bucket_cnt);
void timeline_free(struct timeline *timeline);

#endif
