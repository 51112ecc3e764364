/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * By what the worst segment differs from the median one: a comparison (compare.h) of the requests that were kept, and
 * what each event does to the tail of either (VarMRI §6: impact and gain, segment by segment).
 */
#ifndef WHYLATE_ANALYSIS_SEGMENTS_DIFFERENCE_H
#define WHYLATE_ANALYSIS_SEGMENTS_DIFFERENCE_H

#include "analysis/compare.h"
#include "analysis/findings.h"
#include "analysis/segments.h"

/* An event in both segments, as a report of each segment alone has it. */
struct segments_event {
	const char *event;
	double gain[COMPARE_SIDE_CNT], impact[COMPARE_SIDE_CNT]; /* NAN: the segment has none of it */
	struct ci gain_ci[COMPARE_SIDE_CNT], impact_ci[COMPARE_SIDE_CNT];
};

struct segments_difference {
	struct comparison comparison;  /* A: the median segment, B: the worst one */
	struct segments_event *events; /* that have a gain in B; by how much more it is there, the largest first */
	size_t event_cnt;
	struct findings findings; /* what it rests on */
};

/*
 * 1: there is one, and segments_difference__free() is due; 0: one of the segments has too few requests that were kept,
 * or both are the same; -errno.  Reads all requests from the earlier segment to the later one.
 */
int segments_difference__make(struct segments_difference *difference, struct shard_reader *reader,
			      const struct segments *segments, const struct dataset_filter *filter);
void segments_difference__free(struct segments_difference *difference);

#endif
