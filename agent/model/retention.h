/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which of the recorded intervals are kept: every one at or above a running quantile of the latency, and of the rest a
 * random baseline of a bounded number of rows per second.  Each kept row gets the inverse of the probability with which
 * it was kept as a factor of its weight (Horvitz and Thompson 1952).  The probability is fixed before the interval is
 * looked at, from earlier ones only, so that sums, means and quantiles over the weighted rows stay unbiased.
 */
#ifndef WHYLATE_MODEL_RETENTION_H
#define WHYLATE_MODEL_RETENTION_H

#include <stdbool.h>
#include <stdint.h>

struct retention;

/*
 * tail: quantile above which all are kept, 0 < tail < 1; 0 keeps everything.  baseline_per_s: rows below it to keep per
 * second.  NULL when out of memory.
 */
struct retention *retention__new(double tail, double baseline_per_s, uint64_t seed);
void retention__free(struct retention *retention);
/* Other limits from now on; what was learnt stays. */
void retention__set(struct retention *retention, double tail, double baseline_per_s);

struct retention_verdict {
	bool keep;
	bool baseline; /* kept by chance, not for being late */
	double factor; /* 1 / probability */
};

/* One interval that stands for `weight` of its like and ended at end_ts (any clock in ns, not going back by much). */
struct retention_verdict retention__judge(struct retention *retention, uint64_t latency_ns, double weight,
					  uint64_t end_ts);

/* At and above this latency everything is kept at the moment; 0: everything is. */
uint64_t retention__threshold_ns(const struct retention *retention);

#endif
