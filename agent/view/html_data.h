/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of the data block, one file per subject; for html_*.c only. */
#ifndef WHYLATE_VIEW_HTML_DATA_H
#define WHYLATE_VIEW_HTML_DATA_H

#include "analysis/contexts.h"
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
/* The slowest requests, the slowest of each cause, and some of every time and latency, step by step: html_stories.c */
void html_stories(struct html_pack *pack, const struct findings *findings, const struct html_rows *rows);
/* Who waits for whom, request by request; the context of each request.  contexts NULL: not made.  html_contexts.c */
void html_crosstalk(struct html_pack *pack, const struct contexts *contexts, const struct html_rows *rows);
void html_contexts(struct html_pack *pack, const struct contexts *contexts, const struct html_rows *rows);
/* The time of the events that matter, and the means of variables, request by request.  html_measures.c */
void html_events(struct html_pack *pack, const struct report *report, const struct html_rows *rows);
void html_values(struct html_pack *pack, const struct report *report, const struct html_rows *rows);

/* Begins a column: how many of the rows have any, then of each the distance from the one before and its time. */
void html_put_sparse(struct html_pack *pack, const char *column, const uint64_t *by_row, const struct html_rows *rows);

static inline bool html_is_late(const struct findings *findings, uint32_t row)
{
	return (double)findings->dataset.latency_ns[row] >= findings->report.tail_threshold_ns;
}

#endif
