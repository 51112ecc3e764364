/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hosts compared with each other: whose tail is longer than its peers', and which category it is.
 *
 * A host stands out where its tail quantile is at least a fifth above the median of the others' and where chance does
 * not explain that: the lower end of its interval of confidence (order statistics, normal approximation, by the
 * effective number of rows (Σw)²/Σw²) lies above that median.  The difference is that of the means of the late ones,
 * each host's beyond its own quantile, against the median of the others', category by category.
 */
#ifndef WHYLATE_ANALYSIS_HOSTS_H
#define WHYLATE_ANALYSIS_HOSTS_H

#include "analysis/results.h"
#include "base/arena.h"

/* Fills report->hosts and report->differences where the dataset has several hosts.  0 or -ENOMEM. */
int hosts_compare(struct report *report, const struct report_opts *opts, struct arena *arena);

#endif
