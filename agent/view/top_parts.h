/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parts of a frame of `whylate top`; for view/top*.c only. */
#ifndef WHYLATE_VIEW_TOP_PARTS_H
#define WHYLATE_VIEW_TOP_PARTS_H

#include "view/page.h"
#include "view/top.h"

/* A curve of so many columns, from its smallest value to its largest; a blank where there is none. */
void top_curve(struct page *page, const double *values, size_t cnt, size_t columns);
/* Text from outside in the rest of the line: what has no room is left out. */
void top_rest(struct page *page, const char *text);
/* One sign for a ratio: it grows, it falls, it stays; a blank for NAN. */
const char *top_trend(const struct page *page, double trend);
const struct timeline_cause *top_cause_line(const struct top_view *view, size_t cause);

/* The body of the screens that scroll: top_root.c */
void top_root(struct page *page, const struct top_view *view);
void top_help(struct page *page);

#endif
