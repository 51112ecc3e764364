/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One interval's critical path for a person; see text_story.c. */
#ifndef WHYLATE_VIEW_TEXT_STORY_H
#define WHYLATE_VIEW_TEXT_STORY_H

#include "analysis/story.h"
#include "view/page.h"
#include "view/view.h"

/* The whole of `whylate explain`.  opts->top 0: every step, otherwise short ones are told together.  0 or -errno. */
int view_story(FILE *out, const struct story *story, const struct view_opts *opts);

/* "sid 7 (tcp:80): 3 ms, …" and the end of the line. */
void text_story_title(struct page *page, const struct story *story);
void text_story_steps(struct page *page, const struct story *story, bool all);

#endif
