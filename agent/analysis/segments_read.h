/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What segments*.c share: the rows that segments come from, the table `summary` or requests, and the changes. */
#ifndef WHYLATE_ANALYSIS_SEGMENTS_READ_H
#define WHYLATE_ANALYSIS_SEGMENTS_READ_H

#include "analysis/segments.h"
#include "base/idmap.h"
#include "base/loghist.h"
#include "model/sketch.h"
#include "shard/columns.h"

/* Fills items, cnt, begin_wall_ns, rows: as segments_make(); on failure the items are still to be freed. */
int segments_read(struct segments *segments, struct shard_reader *reader, const struct dataset_filter *filter);

/* segments_changes.c: rhythm and changes of the tails.  0 or -ENOMEM. */
int segments_find_changes(struct segments *segments);

#define SEGMENTS_TASKS 4 /* a block's rows at a time: the segments are dealt out to them, one to each in turn */

struct segments_clock {
	uint64_t mono_ns, wall_ns; /* the recording's anchors */
};

struct segments_task {
	struct sketch sketch;   /* one row's */
	struct intern culprits; /* of its segments; segments_read() makes one of all */
};

/* Rows on their way into segments. */
struct segments_rows {
	struct segments *segments;
	const struct dataset_filter *filter;
	size_t room; /* of segments->items */
	VEC(struct segments_clock) clocks;
	struct idmap clock_ids; /* by session */
	struct segments_task tasks[SEGMENTS_TASKS];
};

/* The segment and the block of that time, which is within what is wanted: 0, -E2BIG or -ENOMEM. */
int segments_at(struct segments_rows *rows, uint64_t wall_ns, struct segment **segment, size_t *block);
/* Room for the classes from first to last (inclusive), too: 0 or -ENOMEM. */
int segment_sketch__reserve(struct segment_sketch *sketch, uint32_t first, uint32_t last);
bool segments_want_host(const struct segments_rows *rows, const struct shard_block *block);

/* segments_summaries.c: a block of the table `session`, and then all of `summary`.  0 or -errno. */
int segments_take_anchors(struct segments_rows *rows, const struct shard_block *block);
int segments_take_summaries(struct segments_rows *rows, struct shard_reader *reader);

#endif
