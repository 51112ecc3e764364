/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is told of the factors beyond their contributions: a second walk over the intervals that took part. */
#ifndef WHYLATE_ANALYSIS_FACTORS_DETAIL_H
#define WHYLATE_ANALYSIS_FACTORS_DETAIL_H

#include "analysis/factors_report.h"

/* Completes report->factors->lines, line i being factors.list[order[i]], and places.  0 or -ENOMEM. */
int factors_detail(struct report *report, struct factor_analysis *analysis, const uint32_t *order,
		   const struct share_rows *rows, const struct blame_split *splits, const struct share_opts *opts,
		   cause_places_table *places);

#endif
