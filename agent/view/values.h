/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What values say, as text and as JSON (schema whylate.values/1): a report's part, or by itself. */
#ifndef WHYLATE_VIEW_VALUES_H
#define WHYLATE_VIEW_VALUES_H

#include "view/view.h"

struct page;

/* 0 or -EIO, -ENOMEM. */
int view_values_text(FILE *out, const struct value_report *report, const struct view_opts *opts);
int view_values_json(FILE *out, const struct value_report *report);

/* Into another page or object, as `compare` does. */
void text_value_report(struct page *page, const struct value_report *report, uint32_t top);

#endif
