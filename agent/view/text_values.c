// SPDX-License-Identifier: GPL-2.0-or-later
/* Functions by calibrated cost, each with the variable whose values set late requests apart. */
#include "analysis/value_rank.h"
#include "view/format.h"
#include "view/text.h"
#include "view/values.h"

#include <math.h>
#include <string.h>

#define FUNCTION_COLUMNS 28
#define COST_END         (FUNCTION_COLUMNS + 12)
#define DISCOUNT_END     (COST_END + 10)
#define PATTERN_AT       (DISCOUNT_END + 2)
#define LESS_THAN        0.01 /* of the cost: not worth a line */

static const char *const patterns[VALUE_PATTERN_CNT] = {
	[VALUE_PATTERN_MISSING_CONSTRAINT] = "missing constraint",
	[VALUE_PATTERN_SCALABILITY] = "scalability",
	[VALUE_PATTERN_WRONG_CONSTRAINT] = "wrong constraint",
	[VALUE_PATTERN_SCALABILITY_BY_DEFAULT] = "scalability (by default)",
};

static void put_value(struct page *page, double number)
{
	char text[FORMAT_SZ];

	page__put(page, format_number(text, number));
}

/* "`items` 652 (typical 8 to 14)  basket.c:47" */
static void print_value(struct page *page, const struct value_line *line, const char *typical)
{
	char where[32];

	page__put(page, "`");
	page__name(page, line->variable, FUNCTION_COLUMNS);
	page__put(page, "`");
	if (!isnan(line->late_median)) {
		page__put(page, " ");
		put_value(page, line->late_median);
		page__printf(page, " (%s ", typical);
		put_value(page, line->typical_lo);
		if (line->typical_hi > line->typical_lo) {
			page__put(page, " to ");
			put_value(page, line->typical_hi);
		}
		page__put(page, ")");
	}
	if (!line->where_file)
		return;
	page__put(page, "  ");
	page__name(page, strrchr(line->where_file, '/') ? strrchr(line->where_file, '/') + 1 : line->where_file,
		   FUNCTION_COLUMNS);
	snprintf(where, sizeof(where), ":%u", line->where_line);
	page__put(page, where);
}

void text_value_report(struct page *page, const struct value_report *report, uint32_t top)
{
	double total = 0;
	size_t worth = 0;
	char text[FORMAT_SZ],
		heading[4 * FORMAT_SZ] = "Functions by calibrated cost, and their most anomalous variable";

	for (size_t f = 0; f < report->function_cnt; f++)
		total += report->functions[f].pc_cost;
	while (worth < report->function_cnt && report->functions[worth].calibrated >= LESS_THAN * total)
		worth++;
	if (!isnan(report->late_from_ns)) {
		view_duration(text, sizeof(text), report->late_from_ns);
		snprintf(heading, sizeof(heading),
			 "Functions by calibrated cost in requests %s %s, and their most anomalous variable",
			 page->utf8 ? "≥" : ">=", text);
	}
	text_section(page, heading);
	page__right(page, "samples", COST_END);
	page__right(page, "discount", DISCOUNT_END);
	page__to(page, PATTERN_AT);
	page__line(page, "pattern; variable");
	for (size_t f = 0; f < text_limit(worth, top); f++) {
		const struct value_function_line *line = &report->functions[f];
		bool differs = line->value && line->value->ratio < 0.8;

		page__to(page, 2);
		page__name(page, line->function, FUNCTION_COLUMNS);
		page__right(page, format_weighted(text, line->cost), COST_END);
		snprintf(text, sizeof(text), "%.2f", line->ratio);
		page__right(page, text, DISCOUNT_END);
		page__to(page, PATTERN_AT);
		if (patterns[line->pattern])
			page__put(page, patterns[line->pattern]);
		if (differs) {
			page__put(page, patterns[line->pattern] ? "; " : "");
			print_value(page, line->value, report->by_recording ? "normal" : "typical");
		}
		page__end_line(page);
	}
	text_more(page, worth, top);
}

void text_values(struct page *page, const struct report *report, uint32_t top)
{
	if (report->values)
		text_value_report(page, report->values, top);
}

int view_values_text(FILE *out, const struct value_report *report, const struct view_opts *opts)
{
	struct page page;

	page__open(&page, out, opts->colour);
	text_value_report(&page, report, opts->top);
	return page__close(&page);
}
