/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A report as metrics: text of Prometheus (version 0.0.4, as node_exporter's textfile collector reads it), or of
 * OpenMetrics 1.0 with exemplars that name a request.  The number of series is bounded: beyond the first few types and
 * roots the rest is `other`.
 */
#ifndef WHYLATE_VIEW_EXPORT_METRICS_H
#define WHYLATE_VIEW_EXPORT_METRICS_H

#include "analysis/results.h"

#include <stdio.h>

#define METRICS_TYPES_MAX 20
#define METRICS_ROOTS_MAX 20

/* What the recordings say of their own cost, ns summed over them; NAN: not measured. */
struct metrics_cost {
	double agent_ns, bpf_ns, target_ns;
};

/* 0, -ENOMEM or -EIO. */
int export_metrics(FILE *out, const struct report *report, const struct metrics_cost *cost, bool openmetrics);

#endif
