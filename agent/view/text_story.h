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

/* "waits for web+0x40, held by `flusher` (tid 7)": what the request does in a step. */
#define STORY_WORDS_SZ 600
void text_story_step_words(char *words, size_t sz, const struct story *story, const struct story_step *step);

#endif
