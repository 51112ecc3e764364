/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The level of the latency with what it can be wrong by: how many requests there were, their mean, the share of them
 * beyond round latencies, their p99.
 *
 * Intervals of confidence: block bootstrap as in shares.h, where observation windows that no row came from are blocks
 * too.  Few windows may have met slow episodes, and then a bootstrap's upper end is too low: replicates know only what
 * was met.  So the upper end comes from the sample with its most extreme block once more, which for k rare blocks gives
 * about the exact limits of a Poisson count (k = 1: 5.0 for 5.6, k = 4: 9.5 for 10.2); of what no window met, 3.7
 * windows may have been full (the limit for k = 0).  Requests that were still open when observation ended (censored)
 * are in no estimate, and in each interval as what moves it farthest: an ended one of latency 0 at its lower end, one
 * of the longest latency that was seen at its upper end.  The interval of the p99 has the latencies at which that of
 * the share beyond them contains a hundredth; windows that met nothing are left out of it, or it would mostly have no
 * end.
 */
#ifndef WHYLATE_ANALYSIS_LEVELS_H
#define WHYLATE_ANALYSIS_LEVELS_H

#include "analysis/shares.h"

/* 0 or -ENOMEM; the report has its dataset and its latency summary. */
int levels_make(struct report *report, const struct share_rows *rows, const struct report_opts *opts);

#endif
