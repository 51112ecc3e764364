/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One side of a comparison as the user names it: PATH[@host=GLOB][@FROM-TO].  FROM and TO are times of day (14:00,
 * 14:00:30, UTC), dates (2026-11-21T14:00, UTC), times since the recording began (30s, 5m, or a number of seconds), or
 * nothing: from its begin, to its end.
 */
#ifndef WHYLATE_ANALYSIS_COMPARE_SIDE_H
#define WHYLATE_ANALYSIS_COMPARE_SIDE_H

#include <stdbool.h>
#include <stdint.h>

enum side_time_kind { SIDE_TIME_OPEN, SIDE_TIME_OF_DAY, SIDE_TIME_WALL, SIDE_TIME_SINCE_BEGIN };

struct side_time {
	enum side_time_kind kind;
	uint64_t ns; /* since midnight, since the epoch, since the recording began */
};

struct side {
	const char *label;
	char *path;
	const char *host; /* a glob; NULL: any */
	bool has_span;
	struct side_time from, to;
	char *memory;
};

/* 0, -EINVAL: what follows an @ is not understood (*bad); -ENOMEM.  A path that exists as it is has no @.
 * side__free() in either case. */
int side__parse(struct side *side, const char *text, const char **bad);
void side__free(struct side *side);
/* Of a recording from begin_wall_ns to end_wall_ns; 0: open. */
uint64_t side_time__wall_ns(const struct side_time *time, uint64_t begin_wall_ns, uint64_t end_wall_ns);

#endif
