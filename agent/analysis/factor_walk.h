/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interval by interval: its calls on its critical path, or its samples, as times in a variance tree.  In trace mode the
 * path is that of model/path.h; otherwise it is the interval's own threads between pickup and end.
 *
 * Only intervals of the newest round of their recording take part, whose records are complete.
 */
#ifndef WHYLATE_ANALYSIS_FACTOR_WALK_H
#define WHYLATE_ANALYSIS_FACTOR_WALK_H

#include "analysis/factors.h"
#include "analysis/invocations.h"
#include "analysis/paths.h"
#include "analysis/sample_walk.h"

struct factor_walk {
	const struct invocations *invocations;
	const struct dataset *dataset;
	const struct paths *paths; /* NULL: counters mode */
	struct variance_tree *tree;
	struct sample_walk *samples; /* NULL: times are those of calls */
	uint32_t round;              /* only intervals of it; WALK_LAST_ROUND: of the newest one */

	VEC(uint8_t) understood; /* by function: enum walk_out; empty: nothing is taken out */
	VEC(bool) out;           /* by node of the tree: all of it is */
	VEC(struct tree_time) own;

	struct tree_interval interval; /* of the last row */
	struct call_times times;
	call_stretches stretches;
	VEC(struct call) calls; /* of the row, and of the threads it waited for */
	struct path path;
	struct {
		uint32_t *order; /* all calls by session, tid and begin; made when it is first needed */
		uint32_t *around;
		uint32_t *taken; /* by call: the stamp of the row that had it last */
		uint32_t stamp;
	} others;
	size_t lossy; /* rows that did not take part because records were lost meanwhile */
};

#define WALK_LAST_ROUND UINT32_MAX

/* What of a function is taken out of every interval. */
enum walk_out { WALK_OUT_ALL = 1, WALK_OUT_BODY = 2 };

/* 0 or -ENOMEM; factor_walk__free() in either case. */
int factor_walk__init(struct factor_walk *walk, const struct invocations *invocations, const struct dataset *dataset,
		      const struct paths *paths, uint32_t round);
void factor_walk__free(struct factor_walk *walk);
/* Times are those of samples, whose functions are walk->invocations (sample_functions()).  0 or -ENOMEM. */
int factor_walk__sample(struct factor_walk *walk, const struct samples *samples);

/* Does a name of factor_names mean the function, or what it does itself (*body)? */
bool factor_is_named(const char *name, const char *function, bool *body);

/* Takes a function out of all intervals from now on: false, there is none of that name; or -ENOMEM. */
int factor_walk__take_out(struct factor_walk *walk, const char *name);

/* Fills walk->interval and walk->times: 1; 0: the row does not take part; -ENOMEM. */
int factor_walk__row(struct factor_walk *walk, uint32_t row);

/* Divides what was blocked anew, in the proportions of `like_ns`: where it is not known what it was blocked for. */
void doing_spread(uint64_t doing_ns[TREE_DOING_CNT], const uint64_t like_ns[TREE_DOING_CNT]);

#endif
