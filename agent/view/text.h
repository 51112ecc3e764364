/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of the text that view_text() puts together, one file per subject; for agent/view only. */
#ifndef WHYLATE_VIEW_TEXT_H
#define WHYLATE_VIEW_TEXT_H

#include "analysis/results.h"
#include "view/page.h"
#include "view/view.h"

/* What the numbers say: text_tables.c */
void text_breakdown(struct page *page, const struct report *report);
void text_events(struct page *page, const struct report *report, uint32_t top);
void text_types(struct page *page, const struct report *report, uint32_t top);

/* Several hosts side by side: text_hosts.c */
void text_hosts(struct page *page, const struct report *report, uint32_t top);
/* Where the recording has the detail, the paths: text_path.c */
void text_path(struct page *page, const struct report *report, uint32_t top);
/* Where functions were probed, which of them vary: text_factors.c */
void text_factors(struct page *page, const struct report *report, uint32_t top);

/* Where values were recorded, which of them differ: text_values.c */
void text_values(struct page *page, const struct report *report, uint32_t top);

/* Under a cause's first line, and under all causes: text_roots.c */
void text_root(struct page *page, const struct report *report, const struct cause *cause, size_t indent);
void text_account(struct page *page, const struct report *report);

/* How far they can be trusted: text_trust.c */
void text_trust(struct page *page, const struct report *report, uint32_t top);

/* Two sides: all of it, only whether B is worse, only by what they differ.  text_compare.c */
struct comparison;
struct compare_facts;
void text_compare(struct page *page, const struct comparison *comparison, const struct compare_facts *facts,
		  uint32_t top);
void text_compare_verdict(struct page *page, const struct comparison *comparison);
void text_compare_parts(struct page *page, const struct comparison *comparison, uint32_t top);

/* A heading in bold and the end of its line. */
void text_heading(struct page *page, const char *printable);
/* Likewise, after an empty line. */
void text_section(struct page *page, const char *printable);
/* A duration that ends right before the column. */
void text_duration(struct page *page, double ns, size_t column);
/* "… 3 more (--top 0 lists all)", when there are more. */
void text_more(struct page *page, size_t cnt, uint32_t top);
/* How many of cnt lines to print. */
size_t text_limit(size_t cnt, uint32_t top);

#endif
