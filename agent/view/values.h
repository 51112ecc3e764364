/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What values say, as text and as JSON (schema whylate.values/1): a report's part, or by itself. */
#ifndef WHYLATE_VIEW_VALUES_H
#define WHYLATE_VIEW_VALUES_H

#include "view/view.h"

struct page;
struct value_schema;

/* 0 or -EIO, -ENOMEM. */
int view_values_text(FILE *out, const struct value_report *report, const struct view_opts *opts);
int view_values_json(FILE *out, const struct value_report *report);

/*
 * The variables of a binary that can be sampled (JSON: schema whylate.values.schema/1); with `locations` in text, each
 * one's places by program counter.  What was left out goes to stderr.  0 or -EIO, -ENOMEM.
 */
int view_value_schema_text(FILE *out, const struct value_schema *schema, bool locations);
int view_value_schema_json(FILE *out, const struct value_schema *schema);

/* Into another page or object, as `compare` does. */
void text_value_report(struct page *page, const struct value_report *report, uint32_t top);

#endif
