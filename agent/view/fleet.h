/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Answers about many hosts, as text and as JSON (schema whylate.fleet/1). */
#ifndef WHYLATE_VIEW_FLEET_H
#define WHYLATE_VIEW_FLEET_H

#include "analysis/fleet.h"
#include "view/page.h"
#include "view/view.h"

/* What the text is made of. */
void text_fleet(struct page *page, const struct fleet_answer *answer, uint32_t top);
/* 0 or -EIO, -ENOMEM. */
int view_fleet_text(FILE *out, const struct fleet_answer *answer, const struct view_opts *opts);
/* Of FLEET_HOSTS, with its heatmap. */
int view_fleet_html(FILE *out, const struct fleet_answer *answer, const struct view_opts *opts);
int view_fleet_json(FILE *out, const struct fleet_answer *answer);

#endif
