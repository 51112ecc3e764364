/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where `whylate top` has its requests from: a recorder of its own into a directory that holds the last minute, or a
 * recording that is replayed.  Either has a moment that is shown, on the wall.
 */
#ifndef WHYLATE_LIVE_TOP_SOURCE_H
#define WHYLATE_LIVE_TOP_SOURCE_H

#include "live/watch_keep.h"
#include "session/options.h"
#include "session/scratch.h"

struct top_options {
	const struct record_options *record; /* NULL: the recording at `paths` is replayed */
	const char *const *paths;
	size_t path_cnt;
	uint64_t window_ns, interval_ns;
	uint64_t count; /* of intervals, 0: without end */
	double tail, speed;
	const char *type; /* NULL: all */
	bool json;
};

struct top_source {
	const char *const *paths; /* to be analysed */
	size_t path_cnt;
	bool is_live;
	double speed;                       /* of a replay */
	bool paused;                        /* the moment stays */
	uint64_t begin_wall_ns, at_wall_ns; /* of what there is; the moment */
	uint64_t end_wall_ns;               /* of a replay; UINT64_MAX: live */
	/* Of a live one. */
	const char *own_path;
	struct scratch scratch;
	struct watch_keep *keep;
	pid_t recorder; /* 0: it has ended, with exit_code */
	int exit_code;
	uint64_t moved_ts, pruned_ts;
};

/* 0, or an exit code after a line that says why. */
int top_source__open(struct top_source *source, const struct top_options *options);
/* To be called at least once a second: moves on, and removes what is old. */
void top_source__tick(struct top_source *source);
/* Moves a replay; it stays within the recording. */
void top_source__step(struct top_source *source, int64_t ns);
/* Ends the recorder and removes what it wrote. */
void top_source__close(struct top_source *source);

#endif
