/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which of the recorded intervals are kept: every one at or above a running quantile of the latency, and of the rest a
 * random baseline of a bounded number of rows per second.  Each kept row gets the inverse of the chance with which it
 * was kept as a factor of its weight (Horvitz and Thompson 1952).
 *
 * The kernel side decides where an interval ends (bpf/retain.h), by what is said here from earlier intervals only, so
 * that sums, means and quantiles over the weighted rows are unbiased; the record of a kept one has its chance.
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
struct retention *retention__new(double tail, double baseline_per_s);
void retention__free(struct retention *retention);
/* Other limits from now on; what was learnt stays. */
void retention__set(struct retention *retention, double tail, double baseline_per_s);

/* One interval, kept or not, that stands for `weight` of its like and ended at end_ts (any clock in ns, not going back
 * by much). */
void retention__saw(struct retention *retention, uint64_t latency_ns, double weight, uint64_t end_ts);

/* At and above this latency everything is to be kept; UINT64_MAX: there is no quantile yet. */
uint64_t retention__late_ns(const struct retention *retention);
/* Everything else with this chance, of 2^32. */
uint64_t retention__chance(const struct retention *retention);

#endif
