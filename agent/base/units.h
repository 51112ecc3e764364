/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers with units, as people type them. All return 0, -EINVAL for what is not wholly understood, -EDOM where the
 * unit is missing. */
#ifndef WHYLATE_BASE_UNITS_H
#define WHYLATE_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

/* "30s", "1.5h", "250ms"; units ns us ms s m h d. More than 0, less than 100 years. */
int units_duration_ns(const char *text, uint64_t *ns);
/* "1%", "0.5 %", "100%": more than 0, at most 1. */
int units_share(const char *text, double *share);
/* "p99", "p99.9", "p25", "99", "0.99": more than 0, below 1. */
int units_percentile(const char *text, double *quantile);
/* "4M", "64K", "1G", "4096": more than 0. */
int units_bytes(const char *text, uint64_t *bytes);
/* When: "1h" (before now_wall_ns), "2026-11-21", "2026-11-21T12:00", "2026-11-21 12:00:30" (UTC). */
int units_time_ns(const char *text, uint64_t now_wall_ns, uint64_t *wall_ns);
/* A decimal number in [1, max]. */
int units_number(const char *text, uint64_t max, uint64_t *number);

/* The other way round, for all output: "12.3 µs", "0 ns", "-1.00 ms", "2.50 h"; three digits.  ns is finite; buf. */
const char *units_duration_text(char *buf, size_t sz, double ns);

#endif
