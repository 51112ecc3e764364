/* SPDX-License-Identifier: GPL-2.0-or-later */
/* By what the worst segment differs from the median one: a comparison (compare.h) of the requests that were kept. */
#ifndef WHYLATE_ANALYSIS_SEGMENTS_DIFFERENCE_H
#define WHYLATE_ANALYSIS_SEGMENTS_DIFFERENCE_H

#include "analysis/compare.h"
#include "analysis/findings.h"
#include "analysis/segments.h"

struct segments_difference {
	struct comparison comparison; /* A: the median segment, B: the worst one */
	struct findings findings;     /* what it rests on */
};

/*
 * 1: there is one, and segments_difference__free() is due; 0: one of the segments has too few requests that were kept,
 * or both are the same; -errno.  Reads all requests from the earlier segment to the later one.
 */
int segments_difference__make(struct segments_difference *difference, struct shard_reader *reader,
			      const struct segments *segments, const struct dataset_filter *filter);
void segments_difference__free(struct segments_difference *difference);

#endif
