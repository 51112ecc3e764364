// SPDX-License-Identifier: GPL-2.0-or-later
/* Under a cause's first line: its ways, its call path, what would be won, where to look next. */
#include "view/format.h"
#include "view/text.h"
#include "view/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LINE_SZ     1000
#define WAYS_SHOWN  4
#define PATH_SHOWN  5 /* innermost frames */
#define SHARE_SHOWN 0.01

static void add(char line[LINE_SZ], const char *text)
{
	size_t len = strlen(line);

	snprintf(line + len, LINE_SZ - len, "%s", text);
}

static void print_ways(struct page *page, const struct cause *cause, size_t indent)
{
	char line[LINE_SZ] = "", share[FORMAT_SZ];

	for (size_t w = 0; w < cause->way_cnt && w < WAYS_SHOWN; w++) {
		const struct cause_way *way = &cause->ways[w];

		if (w && fabs(way->share) < SHARE_SHOWN)
			break;
		add(line, w ? "; " : "");
		add(line, format_share(share, way->share));
		add(line, " ");
		add(line, words_way(cause, way));
		for (size_t h = 0; h < way->hop_cnt; h++) {
			add(line, h ? ", `" : " (through `");
			add(line, way->hops[h]);
			add(line, "`");
		}
		add(line, way->hop_cnt ? ")" : "");
	}
	page__paragraph(page, indent, line, indent + 2);
}

static void print_call_path(struct page *page, const struct cause *cause, size_t indent)
{
	const struct cause_root *root = &cause->root;
	size_t first = root->call_path_cnt > PATH_SHOWN ? root->call_path_cnt - PATH_SHOWN : 0;
	char line[LINE_SZ] = "call path: ";

	if (root->call_path_cnt < 2)
		return;
	add(line, first ? "… > " : "");
	for (size_t i = first; i < root->call_path_cnt; i++) {
		add(line, i > first ? " > " : "");
		add(line, root->call_path[i]);
	}
	page__paragraph(page, indent, line, indent + 2);
}

static void print_gain(struct page *page, const struct report *report, const struct cause *cause, size_t indent)
{
	char line[LINE_SZ], gone[FORMAT_SZ], lo[FORMAT_SZ], hi[FORMAT_SZ], now[FORMAT_SZ], mean[FORMAT_SZ],
		mean_now[FORMAT_SZ], ci[3 * FORMAT_SZ] = "";

	if (isnan(cause->gain.p99_ns))
		return;
	if (!isnan(cause->gain.p99_ci.lo))
		snprintf(ci, sizeof(ci), " [%s to %s]", view_duration(lo, sizeof(lo), cause->gain.p99_ci.lo),
			 view_duration(hi, sizeof(hi), cause->gain.p99_ci.hi));
	snprintf(line, sizeof(line), "without it: p99 %s%s%s instead of %s, mean %s instead of %s",
		 view_duration(gone, sizeof(gone), cause->gain.p99_ns), ci, cause->gain.lower_bound ? " or less" : "",
		 view_duration(now, sizeof(now), report->roots->p99_ns),
		 view_duration(mean, sizeof(mean), cause->gain.mean_ns),
		 view_duration(mean_now, sizeof(mean_now), report->latency.mean_ns));
	page__paragraph(page, indent, line, indent + 2);
}

void text_root(struct page *page, const struct report *report, const struct cause *cause, size_t indent)
{
	char line[LINE_SZ];

	print_ways(page, cause, indent);
	print_call_path(page, cause, indent);
	print_gain(page, report, cause, indent);
	if (cause->rank > 1)
		return;
	snprintf(line, sizeof(line), "look at: %s", words_advice(report, cause));
	page__paragraph(page, indent, line, indent + 2);
}

void text_account(struct page *page, const struct report *report)
{
	const struct root_account *account = report->roots;
	char line[LINE_SZ], text[FORMAT_SZ], rest[FORMAT_SZ];

	if (!account || !(account->tail_ns > 0))
		return;
	snprintf(line, sizeof(line), "late requests take %s more than typical ones; %s of that has no known root",
		 view_duration(text, sizeof(text), account->tail_ns),
		 format_share(rest, account->not_attributed_ns / account->tail_ns));
	page__style(page, PAGE_FAINT);
	page__paragraph(page, 2, line, 4);
	page__style(page, PAGE_PLAIN);
}
