/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of the data block, one file per subject; for html_*.c only. */
#ifndef WHYLATE_VIEW_HTML_DATA_H
#define WHYLATE_VIEW_HTML_DATA_H

#include "analysis/findings.h"
#include "view/html_pack.h"

/* Which requests are in the page, and what they stand for. */
struct html_rows {
	uint32_t *rows; /* of the dataset, in its order */
	double *weight;
	size_t cnt;
};

/*
 * Ways of roots and samples of some of these requests: all late ones and as many others as fit.  html_detail.c
 * Nothing where no chains were recorded.
 */
void html_detail(struct html_pack *pack, const struct findings *findings, const struct html_rows *rows);
/* The slowest requests and the slowest of each cause, step by step: html_stories.c */
void html_stories(struct html_pack *pack, const struct findings *findings);

static inline bool html_is_late(const struct findings *findings, uint32_t row)
{
	return (double)findings->dataset.latency_ns[row] >= findings->report.tail_threshold_ns;
}

#endif
