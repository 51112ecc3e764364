// SPDX-License-Identifier: GPL-2.0-or-later
/* One root of `whylate top` with its slowest requests, and the help. */
#include "analysis/story.h"
#include "base/arena.h"
#include "base/names.h"
#include "view/format.h"
#include "view/text.h"
#include "view/text_story.h"
#include "view/top_parts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define REQUESTS_SHOWN 3
#define NO_ROW         UINT32_MAX

/* The requests in which the root took most, by row of the dataset, or NO_ROW. */
static void choose_requests(const struct findings *findings, const struct cause *cause, uint32_t rows[REQUESTS_SHOWN])
{
	for (size_t i = 0; i < REQUESTS_SHOWN; i++)
		rows[i] = NO_ROW;
	for (uint32_t row = 0; cause->row_ns && row < findings->dataset.row_cnt; row++) {
		size_t at = REQUESTS_SHOWN;

		if (!cause->row_ns[row] || !findings->paths.ranked[row])
			continue;
		while (at && (rows[at - 1] == NO_ROW || cause->row_ns[rows[at - 1]] < cause->row_ns[row]))
			at--;
		if (at == REQUESTS_SHOWN)
			continue;
		memmove(&rows[at + 1], &rows[at], (REQUESTS_SHOWN - 1 - at) * sizeof(*rows));
		rows[at] = row;
	}
}

static void print_requests(struct page *page, const struct findings *findings, const struct cause *cause)
{
	struct arena *arena = arena__new();
	uint32_t rows[REQUESTS_SHOWN];
	struct path path = {0};
	int err = arena ? 0 : -ENOMEM;

	choose_requests(findings, cause, rows);
	for (size_t i = 0; !err && i < REQUESTS_SHOWN && rows[i] != NO_ROW; i++) {
		uint32_t at = findings->paths.interval_of[rows[i]];
		struct story story;

		err = story_make(&story, &findings->traces, &findings->samples, &findings->traces.intervals.items[at],
				 &path, arena);
		if (err)
			break;
		page__end_line(page);
		if (!i)
			text_heading(page, "The requests in which it took most");
		text_story_title(page, &story);
		text_story_steps(page, &story, false);
	}
	path__clear(&path);
	arena__free(arena);
	if (err)
		page->err = err;
}

static void print_over_time(struct page *page, const struct top_view *view, size_t cause)
{
	const struct timeline_cause *line = top_cause_line(view, cause);
	char text[FORMAT_SZ];
	double most = 0;

	if (!line)
		return;
	for (size_t b = 0; b < view->timeline->bucket_cnt; b++)
		most = fmax(most, line->mean_ns[b]);
	page__put(page, "over time ");
	top_curve(page, line->mean_ns, view->timeline->bucket_cnt, page->columns > 60 ? page->columns - 40 : 20);
	page__line(page, "  up to %s a request", view_duration(text, sizeof(text), most));
}

void top_root(struct page *page, const struct top_view *view)
{
	const struct findings *findings = view->findings;
	const struct report *report = &findings->report;
	uint32_t *order = calloc(report->cause_cnt + 1, sizeof(*order));
	const struct cause *cause;
	char text[FORMAT_SZ];

	if (!order) {
		page->err = -ENOMEM;
		return;
	}
	view_top_order(view, order);
	if (view->chosen >= report->cause_cnt) {
		page__line(page, "Nothing is late for a root that is known.");
		free(order);
		return;
	}
	cause = &report->causes[order[view->chosen]];
	page__style(page, PAGE_BOLD);
	page__printf(page, "%u. %s ", cause->rank, format_share(text, cause->share));
	page__put(page, format_ci(text, cause->share_ci));
	page__style(page, PAGE_PLAIN);
	page__put(page, " ");
	page__words(page, cause->what ? cause->what : category_label(cause->category), 4);
	page__end_line(page);
	print_over_time(page, view, order[view->chosen]);
	if (cause->has_root)
		text_root(page, report, cause, 2);
	for (size_t i = 0; i < cause->evidence_cnt; i++) {
		if (!cause->evidence[i])
			continue;
		page__paragraph(page, 2, cause->evidence[i], 4);
	}
	if (findings->paths.traces)
		print_requests(page, findings, cause);
	free(order);
}

void top_help(struct page *page)
{
	static const char *const keys[][2] = {
		{"q", "quit"},
		{"p, Space", "pause: the time that is shown stays; recording goes on"},
		{"j k, arrows", "choose a root; scroll"},
		{"PgUp, PgDn", "by a screen"},
		{"Enter", "the root: its ways, its call path, what would be won, its slowest requests"},
		{"n", "the next root"},
		{"Esc, Backspace", "back"},
		{"/", "only requests of a type: its name, or a glob (*SELECT*); empty: all"},
		{"s", "sort roots: by share of the tail, by what is won, by trend"},
		{"e", "write the last minute as a page for a browser"},
		{"+ -", "replay: faster, slower"},
		{". ,", "replay: one step forward, one back; it is paused then"},
		{"r", "replay: from its begin"},
		{"?", "this"},
	};
	static const char *const marks[] = {
		"share: of the time by which late requests take longer than typical ones.",
		"Arrow: the root's time per request in the last quarter of the window, compared with that before.",
		"p99 without: what the 99th percentile would be if the root took no time.",
		"A blank in a curve: no request ended then, or none was observed.",
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		page__to(page, 2);
		page__put(page, keys[i][0]);
		page__paragraph(page, 18, keys[i][1], 18);
	}
	page__end_line(page);
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		page__paragraph(page, 2, marks[i], 2);
}
