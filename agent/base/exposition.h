/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What all metrics have in common: text of Prometheus (version 0.0.4) or of OpenMetrics 1.0, and the same buckets. */
#ifndef WHYLATE_BASE_EXPOSITION_H
#define WHYLATE_BASE_EXPOSITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define EXPOSITION_BOUND_CNT 19
extern const double exposition_bounds_s[EXPOSITION_BOUND_CNT];

/* The bucket of a latency, up to EXPOSITION_BOUND_CNT: beyond the last bound. */
size_t exposition_bucket(double seconds);
/* NAME="VALUE", with what would end it escaped, and what is not UTF-8 replaced. */
void exposition_label(FILE *out, const char *name, const char *value);
/* The lines before a family's series.  `name` is without a counter's `_total`, which OpenMetrics has not there. */
void exposition_family(FILE *out, bool openmetrics, const char *name, const char *type, const char *help);

#endif
