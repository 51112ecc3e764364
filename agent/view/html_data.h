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

/* Call paths that the page names: the header's "nodes" and "names".  Node 0 is that of no frame. */
struct html_nodes {
	const struct samples *samples;
	struct idmap ids, name_ids;
	VEC(struct sample_node) nodes; /* parents and names by the page's numbers */
	VEC(uint32_t) names;           /* of the samples */
};

/* The page's number of a node: 0 or -ENOMEM. */
int html_nodes__id(struct html_nodes *nodes, uint32_t node, uint32_t *id);
void html_nodes__put(struct html_pack *pack, const struct html_nodes *nodes);
void html_nodes__free(struct html_nodes *nodes);

/*
 * Ways of roots and samples of some of these requests: all late ones and as many others as fit.  html_detail.c
 * Nothing where no chains were recorded.
 */
void html_detail(struct html_pack *pack, const struct findings *findings, const struct html_rows *rows,
		 struct html_nodes *nodes);
/* The slowest requests and the slowest of each cause, step by step: html_stories.c */
void html_stories(struct html_pack *pack, const struct findings *findings, struct html_nodes *nodes);

static inline bool html_is_late(const struct findings *findings, uint32_t row)
{
	return (double)findings->dataset.latency_ns[row] >= findings->report.tail_threshold_ns;
}

#endif
