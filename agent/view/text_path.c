// SPDX-License-Identifier: GPL-2.0-or-later
/* The critical paths of all requests together, the slowest one by one, and who keeps whom waiting. */
#include "view/text.h"
#include "view/text_story.h"

#include "base/names.h"
#include "view/format.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SLOWEST_SHOWN 3
#define LINE_MIN      0.001 /* of the tail or of the mean */

/* "`flusher`, waiting for a disk": who and about what, in one phrase. */
static void line_words(char *words, size_t sz, const struct path_line *line)
{
	char culprit[96] = "", object[160] = "", role[64] = "", doing[48] = "", host[80] = "";
	bool itself = line->role && line->culprit_comm && !strcmp(line->role, line->culprit_comm);

	if (line->object)
		snprintf(object, sizeof(object), "%.120s", line->object);
	if (name_is_idle_cpu(line->culprit_comm))
		snprintf(culprit, sizeof(culprit), "%s", line->culprit_comm);
	else if (line->culprit_comm)
		snprintf(culprit, sizeof(culprit), "`%.40s`", line->culprit_comm);
	if (line->culprit_comm && line->culprit_tid >= 0)
		snprintf(culprit, sizeof(culprit), "`%.40s` (tid %lld)", line->culprit_comm,
			 (long long)line->culprit_tid);
	if (line->culprit_host)
		snprintf(host, sizeof(host), " on %.64s", line->culprit_host);
	if (line->role && !itself)
		snprintf(role, sizeof(role), "%s`%.40s`%s", *object || *culprit ? " " : "", line->role,
			 line->category == WL_CATEGORY_RUNQ ? " waiting for it" : "");
	if (line->role && line->doing != line->category && line->doing != WL_CATEGORY_ONCPU)
		snprintf(doing, sizeof(doing), ", %.0f %% of it in %s", known(line->doing_share) * 100,
			 category_name(line->doing));
	snprintf(words, sz, "%s%s%s%s%s%s", object, *object && *culprit ? " " : "", culprit, role, host, doing);
}

static void print_line(struct page *page, const struct path_line *line, const char *category, const char *words)
{
	const double ns[] = {line->mean_ns, line->typical_ns, line->late_ns};
	char text[FORMAT_SZ];

	page__to(page, 2);
	page__put(page, category);
	for (size_t i = 0; i < 3; i++)
		page__right(page, view_duration(text, sizeof(text), ns[i]), 26 + 11 * i);
	page__right(page, format_share(text, line->tail_share), 58);
	page__right(page, format_share(text, line->variance_share), 68);
	if (*words) {
		page__to(page, 70);
		page__words(page, words, 72);
	}
	page__end_line(page);
}

static bool is_worth(const struct path_line *line, const struct report *report)
{
	return fabs(known(line->tail_share)) >= LINE_MIN ||
	       known(line->mean_ns) >= LINE_MIN * known(report->latency.mean_ns);
}

static void print_lines(struct page *page, const struct report *report, uint32_t top)
{
	const struct path_report *path = report->path;
	size_t cnt = 0, printed = 0;
	char words[480];

	for (size_t i = 0; i < path->line_cnt; i++)
		cnt += is_worth(&path->lines[i], report);
	page__heads(page, PAGE_FAINT, {"mean", -26}, {"typical", -37}, {"late", -48}, {"of the tail", -58},
		    {"variance", -68}, {"about, and who", 70});
	for (size_t i = 0; i < path->line_cnt && printed < text_limit(cnt, top); i++) {
		const struct path_line *line = &path->lines[i];

		if (!is_worth(line, report))
			continue;
		line_words(words, sizeof(words), line);
		print_line(page, line, category_name(line->category), words);
		printed++;
	}
	if (is_worth(&path->rest, report))
		print_line(page, &path->rest, "(the rest)", "");
	text_more(page, cnt, top);
}

static void print_trust(struct page *page, const struct path_report *path)
{
	const struct {
		size_t cnt;
		const char *what;
	} doubts[] = {
		{path->lossy, "are left out of the ranking, because records were lost"},
		{path->with_gap, "have a part in which a thread's doings were not recorded"},
		{path->without_edge, "have a wait whose end nobody explains"},
		{path->with_loop, "have a part in which threads seem to wait for each other"},
		{path->too_long, "are longer than what is followed"},
	};
	char text[FORMAT_SZ];

	for (size_t i = 0; i < sizeof(doubts) / sizeof(doubts[0]); i++) {
		if (!doubts[i].cnt)
			continue;
		page__line(page, "  %s of the %zu paths %s", format_count(text, doubts[i].cnt), path->walked,
			   doubts[i].what);
	}
	if (path->ambiguous)
		page__line(page, "  %s of the time is behind edges that are ambiguous: nobody is blamed for it",
			   format_share(text, path->ambiguous_share));
}

static void print_slowest(struct page *page, const struct path_report *path, uint32_t top)
{
	size_t shown = text_limit(path->slowest_cnt, top && top < SLOWEST_SHOWN ? top : SLOWEST_SHOWN);

	if (!shown)
		return;
	text_section(page, "The slowest requests, step by step (whylate explain DIR SID tells any other)");
	for (size_t i = 0; i < shown; i++) {
		page__to(page, 2);
		text_story_title(page, &path->slowest[i]);
		text_story_steps(page, &path->slowest[i], false);
	}
}

static void print_crosstalk(struct page *page, const struct path_report *path, uint32_t top)
{
	char text[FORMAT_SZ];

	if (!path->crosstalk_cnt)
		return;
	text_section(page, "Locks between requests: who waited for locks of whom");
	page__heads(page, PAGE_FAINT, {"  waiting", 0}, {"held by", 30}, {"requests", -68}, {"mean wait", -80},
		    {"of their time", -96});
	for (size_t i = 0; i < text_limit(path->crosstalk_cnt, top); i++) {
		const struct crosstalk_line *line = &path->crosstalk[i];

		page__to(page, 2);
		page__name(page, *line->type ? line->type : "(no name)", 26);
		page__to(page, 30);
		page__name(page, line->by_type ? line->by_type : "no request that was kept", 26);
		page__right(page, format_weighted(text, line->count), 68);
		page__right(page, view_duration(text, sizeof(text), line->mean_ns), 80);
		page__right(page, format_share(text, line->share), 96);
		page__end_line(page);
	}
	text_more(page, path->crosstalk_cnt, top);
}

static void print_link(struct page *page, const struct join_line *line)
{
	char offset[FORMAT_SZ], uncertainty[FORMAT_SZ], text[FORMAT_SZ];
	double ahead_ns = (double)line->offset_ns;

	page__to(page, 2);
	page__name(page, *line->a ? line->a : "?", 32);
	page__put(page, " and ");
	page__name(page, *line->b ? line->b : "?", 32);
	view_duration(offset, sizeof(offset), fabs(ahead_ns));
	view_duration(uncertainty, sizeof(uncertainty), (double)line->uncertainty_ns);
	page__printf(page, ": %s messages met; the clock of ", format_count(text, line->joined));
	page__name(page, *line->b ? line->b : "?", 32);
	page__printf(page, " is %s %s", offset, ahead_ns < 0 ? "behind" : "ahead");
	page__printf(page, ", ± %s", uncertainty);
	if (!isnan(line->drift_ppm))
		page__printf(page, ", drifting %.2g ppm", line->drift_ppm);
	page__end_line(page);
}

static void print_join(struct page *page, const struct join_report *join)
{
	const struct {
		size_t cnt;
		const char *what;
	} others[] = {
		{join->not_kept, "have no other side: the sender's host did not keep that moment"},
		{join->unknown_peer,
		 "came from peers that no recording here knows: clients, or behind translated addresses"},
		{join->ambiguous, "may have been sent at several moments: ambiguous, nobody is blamed for them"},
		{join->clockless, "went in one direction only, so that the clocks cannot be compared"},
		{join->contradicting, "would have come before they were sent, and are not believed"},
	};
	char text[FORMAT_SZ];

	if (join->sessions < 2 || !join->received)
		return;
	text_section(page, "From host to host");
	for (size_t i = 0; i < join->line_cnt; i++)
		print_link(page, &join->lines[i]);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (!others[i].cnt)
			continue;
		page__line(page, "  %s of %zu messages received %s", format_count(text, others[i].cnt), join->received,
			   others[i].what);
	}
}

void text_path(struct page *page, const struct report *report, uint32_t top)
{
	if (!report->path || !report->path->walked)
		return;
	text_section(page, "Along the critical path, through other threads and processes");
	print_lines(page, report, top);
	print_trust(page, report->path);
	print_join(page, &report->path->join);
	print_slowest(page, report->path, top);
	print_crosstalk(page, report->path, top);
}
