/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the segments come from: the table `summary`, or requests.  For segments.c. */
#ifndef WHYLATE_ANALYSIS_SEGMENTS_READ_H
#define WHYLATE_ANALYSIS_SEGMENTS_READ_H

#include "analysis/segments.h"

/* Fills items, cnt, begin_wall_ns, rows: as segments_make(); on failure the items are still to be freed. */
int segments_read(struct segments *segments, struct shard_reader *reader, const struct dataset_filter *filter);

#endif
