/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `whylate top` as text: one frame of so many rows and columns, in the styles of view/page.h, and lines for a pipe.
 * No terminal is touched here: view/screen.h paints a frame.
 */
#ifndef WHYLATE_VIEW_TOP_H
#define WHYLATE_VIEW_TOP_H

#include "analysis/findings.h"
#include "analysis/timeline.h"
#include "view/view.h"

#include <stdio.h>

enum top_screen { TOP_MAIN, TOP_ROOT, TOP_HELP };
enum top_sort { TOP_BY_SHARE, TOP_BY_GAIN, TOP_BY_TREND, TOP_SORT_CNT };

struct top_view {
	const struct findings *findings; /* NULL: nothing was analysed so far */
	const struct timeline *timeline; /* of those */
	size_t rows, columns;
	bool colour;
	enum top_screen screen;
	enum top_sort sort;
	size_t chosen; /* a row of the list of roots; clamped to it */
	size_t scroll; /* of a screen that is longer than the terminal; likewise */
	bool paused;
	bool is_live;
	double speed;           /* of a replay, in times of its own */
	uint64_t shown_wall_ns; /* the end of what is shown; 0: not known */
	double window_s;
	const char *type;    /* only requests of this type, NULL: all */
	const char *typing;  /* what is being typed, NULL: nothing */
	const char *message; /* of the program to its user, or NULL; may hold names */
};

/* The frame: view->rows lines at most.  0, -ENOMEM or -EIO. */
int view_top(FILE *out, struct top_view *view);
/* Indexes of the report's causes in the order of the list; cause_cnt of them. */
void view_top_order(const struct top_view *view, uint32_t *order);

/* For a pipe: the names of the columns, and one line; latencies are those of the last bucket.  0, -ENOMEM or -EIO. */
int view_top_heading(FILE *out);
int view_top_line(FILE *out, const struct top_view *view);

#endif
