/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests by type and context (analysis/contexts.h), as text, JSON and folded stacks. */
#ifndef WHYLATE_VIEW_CONTEXTS_H
#define WHYLATE_VIEW_CONTEXTS_H

#include "analysis/contexts.h"
#include "view/handed_on.h"
#include "view/page.h"
#include "view/view.h"

/* 0 or -EIO, -ENOMEM. */
int view_contexts_text(FILE *out, const struct contexts *contexts, const struct view_opts *opts);
/* One JSON object of schema whylate.contexts/1 and a newline; `top` does not apply. */
int view_contexts_json(FILE *out, const struct contexts *contexts);
/* The call trees, "TYPE;on|off;root;…;leaf NANOSECONDS". */
int view_contexts_folded(FILE *out, const struct contexts *contexts);

/* text_crosstalk.c: who waits for whom; `top` lines of the list, 0: all. */
void text_crosstalk(struct page *page, const struct contexts *contexts, uint32_t top);

/* text_fronts.c: what the requests of each type at the front took in the programs behind; `top` lines of each list. */
void text_fronts(struct page *page, const struct fronts *fronts, uint32_t top);
/* json_fronts.c: the same; every request of the recording, and who asked for it, a JSON object a line: 0 or -EIO,
 * -ENOMEM. */
int view_contexts_requests(FILE *out, const struct contexts *contexts);
struct json_doc;
struct json_object;
void json_fronts(struct json_doc *doc, struct json_object *root, const struct fronts *fronts);

/* text_crosstalk.c: the first columns of a crossing: what its requests wait for, how many, their mean and whole wait.
 */
void text_crossing(struct page *page, uint8_t category, double count, double wait_ns);

/* The name of a type, by its index. */
const char *view_type_name(const struct contexts *contexts, uint32_t type);

/* Of the time that requests had a CPU, in samples; NAN: there are none. */
double view_part_cpu_share(const struct contexts *contexts, const struct context_part *part);

#endif
