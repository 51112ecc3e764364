// SPDX-License-Identifier: GPL-2.0-or-later
/* Several hosts: how each did, who stands out and by what, and where they are not the same. */
#include "view/text.h"

#include "base/names.h"
#include "view/format.h"

#include <math.h>

#define NAME_COLUMNS 24

static void print_heading(struct page *page, const struct report *report)
{
	char text[FORMAT_SZ];

	page__end_line(page);
	page__heads(page, PAGE_BOLD, {"Hosts", 0}, {"requests", -38}, {"p50", -48},
		    {format_percentile(text, report->tail), -58}, {"max", -68},
		    {page->utf8 ? "× peers'" : "x peers'", -83}, {"lost", -95});
}

static void print_line(struct page *page, const struct host_line *line)
{
	char text[FORMAT_SZ];

	page__to(page, 2);
	page__style(page, line->stands_out ? PAGE_BAD : PAGE_PLAIN);
	page__name(page, line->host->name, NAME_COLUMNS);
	page__style(page, PAGE_PLAIN);
	page__right(page, format_weighted(text, line->latency.count), 38);
	text_duration(page, line->latency.p50_ns, 48);
	text_duration(page, line->tail_ns, 58);
	text_duration(page, line->latency.max_ns, 68);
	page__right(page, format_number(text, line->tail_ns / line->peers_tail_ns), 83);
	page__right(page, format_count(text, line->host->records_lost + line->host->spool_lost), 95);
	page__end_line(page);
}

/* "host7's p99 is 3× its peers' (2.1 ms against 0.7 ms); the difference is irq.soft (82 %)." */
static void print_standing_out(struct page *page, const struct report *report, const struct host_line *line)
{
	char tail[FORMAT_SZ], ratio[FORMAT_SZ], own[FORMAT_SZ], theirs[FORMAT_SZ], share[FORMAT_SZ];

	page__to(page, 2);
	page__name(page, line->host->name, NAME_COLUMNS);
	format_percentile(tail, report->tail);
	format_number(ratio, line->tail_ns / line->peers_tail_ns);
	view_duration(own, sizeof(own), line->tail_ns);
	view_duration(theirs, sizeof(theirs), line->peers_tail_ns);
	page__printf(page, "'s %s is %s%s its %s (%s against %s)", tail, ratio, page->utf8 ? "×" : "x",
		     report->host_cnt > 2 ? "peers'" : "peer's", own, theirs);
	if (line->differs_ns > 0) {
		page__printf(page, "; the difference is %s", category_name(line->differs));
		if (isfinite(line->differs_share) && line->differs_share < 1)
			page__printf(page, " (%s)", format_share(share, line->differs_share));
	}
	page__end_line(page);
}

static void print_differences(struct page *page, const struct report *report, uint32_t top)
{
	for (size_t i = 0; i < text_limit(report->difference_cnt, top); i++) {
		const struct host_difference *difference = &report->differences[i];

		page__to(page, 2);
		page__words(page, difference->subject, 4);
		page__put(page, " differs: ");
		for (size_t v = 0; v < difference->value_cnt; v++) {
			const struct host_difference_value *value = &difference->values[v];

			page__put(page, v ? "; " : "");
			page__name(page, value->value, NAME_COLUMNS);
			for (size_t h = 0; h < value->host_cnt && h < 3; h++) {
				page__put(page, h ? ", " : " on ");
				page__name(page, value->hosts[h], NAME_COLUMNS);
			}
			if (value->host_cnt > 3)
				page__printf(page, " and %zu more", value->host_cnt - 3);
		}
		page__end_line(page);
	}
	text_more(page, report->difference_cnt, top);
}

static void print_missing(struct page *page, const struct report *report)
{
	char text[FORMAT_SZ];

	for (size_t i = 0; i < report->host_cnt; i++) {
		const struct dataset_host *host = report->hosts[i].host;

		if (!host->frames_missing)
			continue;
		page__to(page, 2);
		page__printf(page, "%s blocks of ", format_count(text, host->frames_missing));
		page__name(page, host->name, NAME_COLUMNS);
		page__line(page, " have not arrived: dropped by its spool, refused, or under way");
	}
}

void text_hosts(struct page *page, const struct report *report, uint32_t top)
{
	if (!report->host_cnt)
		return;
	print_heading(page, report);
	for (size_t i = 0; i < text_limit(report->host_cnt, top); i++)
		print_line(page, &report->hosts[i]);
	text_more(page, report->host_cnt, top);
	for (size_t i = 0; i < report->host_cnt; i++)
		if (report->hosts[i].stands_out)
			print_standing_out(page, report, &report->hosts[i]);
	print_differences(page, report, top);
	print_missing(page, report);
}
