// SPDX-License-Identifier: GPL-2.0-or-later
/* Crosstalk (Whodunit §6): who waits for whom, as a list by type and as a matrix by context. */
#include "view/contexts.h"
#include "view/format.h"
#include "view/text.h"

#include <stdio.h>
#include <string.h>

#define CHAIN_LEN 1024

/* --- by type ------------------------------------------------------------------------------------------------------ */

static const char *way_of(uint8_t category)
{
	return category == WL_CATEGORY_LOCK ? "lock" : category == WL_CATEGORY_RUNQ ? "CPU" : "queue";
}

void text_crossing(struct page *page, uint8_t category, double count, double wait_ns)
{
	char text[FORMAT_SZ];

	page__to(page, 2);
	page__put(page, way_of(category));
	page__right(page, format_weighted(text, count), 20);
	page__right(page, view_duration(text, sizeof(text), wait_ns / count), 32);
	page__right(page, view_duration(text, sizeof(text), wait_ns), 43);
}

static void print_by_type(struct page *page, const struct contexts *contexts, uint32_t top)
{
	char text[FORMAT_SZ];

	if (!contexts->by_type.items.cnt)
		return;
	text_section(page, "Crosstalk: which requests waited for which");
	page__heads(page, PAGE_FAINT, {"  for a", 0}, {"requests", -20}, {"mean wait", -32}, {"in all", -43},
		    {"of the tail", -56}, {"waiting, and what was in the way", 58});
	for (size_t i = 0; i < text_limit(contexts->by_type.items.cnt, top); i++) {
		const struct context_crossing *crossing = &contexts->by_type.items.items[i];

		text_crossing(page, crossing->category, crossing->count, crossing->wait_ns);
		page__right(page, format_share(text, crossing->tail_share), 56);
		page__paragraph(page, 58, view_type_name(contexts, crossing->type), 58);
		page__paragraph(page, 58,
				crossing->by_type ? contexts_string(contexts, crossing->by_type) : "no request", 60);
	}
	text_more(page, contexts->by_type.items.cnt, top);
}

/* --- by context --------------------------------------------------------------------------------------------------- */

/* As many as fit beside each other. */
#define SIDES_MAX  6
#define CELL_WIDTH 10

/* What is none of the matrix' contexts. */
enum { SIDE_FURTHER = SIDES_MAX, SIDE_NOBODY, SIDES };

struct side {
	const char *type;
	uint32_t chain;
};

struct matrix {
	struct side sides[SIDES_MAX]; /* with the longest waits first */
	uint32_t cnt;
	double ns[SIDES][SIDES]; /* who waits, who is in the way */
	bool waits[SIDES], delays[SIDES];
};

static uint32_t side_of(struct matrix *matrix, const char *type, uint32_t chain)
{
	if (!*type || chain == CONTEXT_CHAIN_UNKNOWN)
		return SIDE_NOBODY;
	for (uint32_t i = 0; i < matrix->cnt; i++)
		if (matrix->sides[i].chain == chain && !strcmp(matrix->sides[i].type, type))
			return i;
	if (matrix->cnt == SIDES_MAX)
		return SIDE_FURTHER;
	matrix->sides[matrix->cnt] = (struct side){type, chain};
	return matrix->cnt++;
}

static void make_matrix(struct matrix *matrix, const struct contexts *contexts)
{
	for (size_t i = 0; i < contexts->by_context.items.cnt; i++) {
		const struct context_crossing *crossing = &contexts->by_context.items.items[i];
		uint32_t who = side_of(matrix, view_type_name(contexts, crossing->type), crossing->chain);
		uint32_t by = side_of(matrix, contexts_string(contexts, crossing->by_type), crossing->by_chain);

		matrix->ns[who][by] += crossing->wait_ns;
		matrix->waits[who] = matrix->delays[by] = true;
	}
}

static const char *side_name(char *buf, size_t sz, uint32_t side)
{
	if (side < SIDES_MAX)
		snprintf(buf, sz, "%u", side + 1);
	else
		snprintf(buf, sz, "%s", side == SIDE_FURTHER ? "further" : "nobody");
	return buf;
}

static void print_sides(struct page *page, const struct contexts *contexts, const struct matrix *matrix)
{
	char chain[CHAIN_LEN], text[FORMAT_SZ];

	for (uint32_t i = 0; i < matrix->cnt; i++) {
		page__right(page, side_name(text, sizeof(text), i), 4);
		page__to(page, 6);
		page__words(page, matrix->sides[i].type, 8);
		page__printf(page, ", ");
		page__words(page, view_handed_on(chain, sizeof(chain), &contexts->chains, matrix->sides[i].chain), 8);
		page__end_line(page);
	}
	if (matrix->delays[SIDE_NOBODY])
		page__line(page, "  nobody: no request, or one that was not kept");
}

static void print_by_context(struct page *page, const struct contexts *contexts)
{
	struct matrix matrix = {0};
	char text[FORMAT_SZ];

	if (!contexts_have_chains(contexts) || !contexts->by_context.items.cnt)
		return;
	make_matrix(&matrix, contexts);
	text_section(page, "Crosstalk by context: the wait in all, for locks, CPUs and queues");
	print_sides(page, contexts, &matrix);
	page__style(page, PAGE_FAINT);
	page__put(page, "  waits, and in the way:");
	for (uint32_t by = 0, column = 24; by < SIDES; by++)
		if (matrix.delays[by])
			page__right(page, side_name(text, sizeof(text), by), column += CELL_WIDTH);
	page__style(page, PAGE_PLAIN);
	page__end_line(page);
	for (uint32_t who = 0; who < SIDE_NOBODY; who++) {
		if (!matrix.waits[who])
			continue;
		page__to(page, 2);
		page__put(page, side_name(text, sizeof(text), who));
		for (uint32_t by = 0, column = 24; by < SIDES; by++) {
			if (!matrix.delays[by])
				continue;
			column += CELL_WIDTH;
			if (matrix.ns[who][by] > 0)
				page__right(page, view_duration(text, sizeof(text), matrix.ns[who][by]), column);
			else
				page__right(page, "-", column);
		}
		page__end_line(page);
	}
}

void text_crosstalk(struct page *page, const struct contexts *contexts, uint32_t top)
{
	print_by_type(page, contexts, top);
	print_by_context(page, contexts);
}
