// SPDX-License-Identifier: GPL-2.0-or-later
/* Requests of all programs by the one at the front (Whodunit §8.4, table 1). */
#include "view/contexts.h"
#include "view/format.h"
#include "view/text.h"

#include <stdio.h>

/* How many lines from the first on are of its program. */
static size_t program_lines(const struct fronts *fronts, size_t first)
{
	size_t end = first + 1;

	while (end < fronts->lines.cnt && fronts->lines.items[end].program == fronts->lines.items[first].program)
		end++;
	return end - first;
}

static void print_program(struct page *page, const struct fronts *fronts, size_t first, size_t cnt, uint32_t top)
{
	char text[FORMAT_SZ];

	for (size_t i = 0; i < text_limit(cnt, top); i++) {
		const struct front_line *line = &fronts->lines.items[first + i];

		page__right(page, format_weighted(text, line->fronts), 12);
		page__right(page, format_number(text, line->count / line->fronts), 22);
		page__right(page, format_share(text, front_cpu_share(line)), 32);
		page__right(page, view_duration(text, sizeof(text), line->cpu_ns / line->fronts), 43);
		page__right(page, view_duration(text, sizeof(text), line->wait_ns / line->fronts), 54);
		page__right(page, view_duration(text, sizeof(text), line->lock_ns / line->fronts), 68);
		page__paragraph(page, 70, fronts_string(fronts, line->type), 72);
	}
	text_more(page, cnt, top);
}

static void print_crossings(struct page *page, const struct fronts *fronts, uint32_t top)
{
	if (!fronts->crossings.cnt)
		return;
	text_section(page, "Crosstalk at the front: which requests waited for which in the programs");
	page__heads(page, PAGE_FAINT, {"  for a", 0}, {"requests", -20}, {"mean wait", -32}, {"in all", -43},
		    {"in the program; waiting, and what was in the way", 45});
	for (size_t i = 0; i < text_limit(fronts->crossings.cnt, top); i++) {
		const struct front_crossing *crossing = &fronts->crossings.items[i];

		text_crossing(page, crossing->category, crossing->count, crossing->wait_ns);
		page__paragraph(page, 45, fronts_string(fronts, crossing->program), 45);
		page__paragraph(page, 47, fronts_string(fronts, crossing->type), 49);
		page__paragraph(page, 47, fronts_string(fronts, crossing->by_type), 49);
	}
	text_more(page, fronts->crossings.cnt, top);
}

void text_fronts(struct page *page, const struct fronts *fronts, uint32_t top)
{
	char text[2][FORMAT_SZ];
	size_t cnt;

	if (!fronts_have(fronts))
		return;
	for (size_t i = 0; i < fronts->lines.cnt; i += cnt) {
		cnt = program_lines(fronts, i);
		page__end_line(page);
		page__style(page, PAGE_BOLD);
		page__printf(page, "What requests at the front take in %s",
			     fronts_string(fronts, fronts->lines.items[i].program));
		page__style(page, PAGE_PLAIN);
		page__printf(page, " (CPU time in all %s)",
			     view_duration(text[0], FORMAT_SZ, fronts->lines.items[i].program_cpu_ns));
		page__end_line(page);
		page__heads(page, PAGE_FAINT, {"requests", -12}, {"here each", -22}, {"CPU share", -32},
			    {"CPU each", -43}, {"waits each", -54}, {"for locks", -68}, {"type at the front", 70});
		print_program(page, fronts, i, cnt, top);
	}
	page__end_line(page);
	page__line(page, "%s requests asked for by another one; not known by which %s, by one of several %s",
		   format_count(text[0], fronts->links[FRONT_ASKED]),
		   format_count(text[1], fronts->links[FRONT_UNKNOWN]),
		   format_count((char[FORMAT_SZ]){0}, fronts->links[FRONT_AMBIGUOUS]));
	print_crossings(page, fronts, top);
}
