// SPDX-License-Identifier: GPL-2.0-or-later
/* Which functions vary: the factors, what they were doing, and the rounds in which they were found. */
#include "view/text.h"

#include "base/names.h"
#include "view/format.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define NAME_COLUMNS 44
#define SITES_TOLD   4
#define SHARE_TOLD   0.02 /* smaller parts of a factor are not told */

static const char *const doings[FACTOR_DOING_CNT] = {"running", "waiting for a CPU", "blocked", "interrupted"};

static void put_name(struct page *page, const struct factor_line *line, int which)
{
	page__name(page, line->functions[which], NAME_COLUMNS);
	if (line->body[which])
		page__put(page, " itself");
}

/* "93 % of that blocked, 7 % running": of its variance. */
static void words_of_doing(char *words, size_t sz, const struct factor_line *line)
{
	bool told[FACTOR_DOING_CNT] = {false};
	char share[FORMAT_SZ];
	size_t len = 0;

	*words = '\0';
	for (int i = 0; i < FACTOR_DOING_CNT; i++) {
		int most = -1;

		for (int d = 0; d < FACTOR_DOING_CNT; d++)
			if (!told[d] && line->doing_contribution[d] >= SHARE_TOLD &&
			    (most < 0 || line->doing_contribution[d] > line->doing_contribution[most]))
				most = d;
		if (most < 0 || len >= sz)
			return;
		told[most] = true;
		len += (size_t)snprintf(words + len, sz - len, "%s%s %s", len ? ", " : "",
					format_share(share, line->doing_contribution[most]), doings[most]);
	}
}

static bool same_site(const struct factor_site *a, const struct factor_site *b)
{
	return a->call_addr == b->call_addr &&
	       (!a->caller || !b->caller ? a->caller == b->caller : !strcmp(a->caller, b->caller));
}

/* Of all sites that look the same from i on; 0: one before it does. */
static double site_contribution(const struct factor_line *line, size_t i)
{
	double sum = 0;

	for (size_t before = 0; before < i; before++)
		if (same_site(&line->sites[before], &line->sites[i]))
			return 0;
	for (size_t s = i; s < line->site_cnt; s++)
		if (same_site(&line->sites[s], &line->sites[i]))
			sum += line->sites[s].contribution;
	return sum;
}

/* "called: 37 % by `a`, 22 % by `b`": of the variance, where there are several call sites. */
static void words_of_sites(char *words, size_t sz, const struct factor_line *line)
{
	char share[FORMAT_SZ];
	size_t len = 0;

	*words = '\0';
	for (size_t i = 0, told = 0; line->site_cnt > 1 && i < line->site_cnt && told < SITES_TOLD && len < sz; i++) {
		const struct factor_site *site = &line->sites[i];
		double contribution = site_contribution(line, i);

		if (fabs(contribution) < SHARE_TOLD * fabs(line->contribution))
			continue;
		told++;
		len += (size_t)snprintf(words + len, sz - len, "%s%s by `%.60s`",
					len ? ", " : "called: ", format_share(share, contribution),
					site->caller ? site->caller : "the request itself");
		if (len < sz && site->call_addr)
			len += (size_t)snprintf(words + len, sz - len, " at 0x%" PRIx64, site->call_addr);
	}
}

/* "late by waiting for a lock (server+0x4060), because of `flusher`" */
static void words_of_wait(char *words, size_t sz, const struct factor_line *line)
{
	char share[FORMAT_SZ], object[160] = "", culprit[96] = "";

	*words = '\0';
	if (isnan(line->wait_share))
		return;
	if (line->object && line->object_share >= 0.5)
		snprintf(object, sizeof(object), " (%.120s)", line->object);
	if (line->culprit_comm && line->culprit_share >= 0.5)
		snprintf(culprit, sizeof(culprit), ", because of `%.40s`", line->culprit_comm);
	snprintf(words, sz, "late by: %s%s%s, %s of the difference", category_label(line->wait), object, culprit,
		 format_share(share, line->wait_share));
}

static void print_words(struct page *page, const char *words)
{
	if (!*words)
		return;
	page__paragraph(page, 10, words, 12);
}

static void print_detail(struct page *page, const struct factor_line *line)
{
	char words[512], calls[FORMAT_SZ], mean[FORMAT_SZ], late[FORMAT_SZ], doing[256], called[64] = "called";

	if (line->functions[1]) {
		print_words(page, "the two vary together: what makes one long makes the other long");
		return;
	}
	words_of_doing(doing, sizeof(doing), line);
	if (!line->sampled)
		snprintf(called, sizeof(called), "called %s times a request%s", format_number(calls, line->calls),
			 line->caller ? "," : "");
	snprintf(words, sizeof(words), "%s%s%s%s%.100s%s%smean %s, late ones %s", doing, *doing ? "; " : "",
		 line->caller || !line->sampled ? called : "", line->caller ? " mostly by `" : "",
		 line->caller ? line->caller : "", line->caller ? "`" : "", line->caller || !line->sampled ? ", " : "",
		 view_duration(mean, sizeof(mean), line->mean_ns), view_duration(late, sizeof(late), line->late_ns));
	print_words(page, words);
	words_of_sites(words, sizeof(words), line);
	print_words(page, words);
	words_of_wait(words, sizeof(words), line);
	print_words(page, words);
}

static void print_factor(struct page *page, const struct factor_line *line)
{
	char text[FORMAT_SZ];

	if (line->rank) {
		snprintf(text, sizeof(text), "%u.", line->rank);
		page__right(page, text, 4);
		page__style(page, PAGE_BOLD);
	}
	page__right(page, format_share(text, line->contribution), 10);
	page__style(page, PAGE_PLAIN);
	page__to(page, 11);
	page__put(page, format_ci(text, line->contribution_ci));
	snprintf(text, sizeof(text), "%u", line->height);
	page__right(page, text, 28);
	page__right(page, format_number(text, line->score), 38);
	snprintf(text, sizeof(text), "%u", line->call_sites);
	page__right(page, text, 46);
	page__to(page, 48);
	put_name(page, line, 0);
	if (line->functions[1]) {
		page__put(page, page->utf8 ? " × " : " x ");
		put_name(page, line, 1);
	}
	page__end_line(page);
	if (line->rank)
		print_detail(page, line);
}

static void print_rounds(struct page *page, const struct factor_report *factors)
{
	double before = NAN;
	char text[FORMAT_SZ];

	for (size_t i = 0; i < factors->round_cnt; i++) {
		const struct round_line *round = &factors->rounds[i];
		double change = round->intervals_per_s / before - 1;

		page__to(page, 2);
		page__printf(page, "round %u: %s, ", round->number,
			     view_duration(text, sizeof(text), round->duration_s * 1e9));
		page__printf(page, "%s functions probed, ", format_number(text, round->probes));
		page__printf(page, "%s requests/s", format_number(text, round->intervals_per_s));
		if (isfinite(change))
			page__printf(page, " (%+.1f %%)", change * 100);
		if (isfinite(round->cost_share) && round->number)
			page__printf(page, ", probes cost %s of the target's CPU time",
				     format_share(text, round->cost_share));
		page__end_line(page);
		if (!round->number)
			before = round->intervals_per_s;
	}
}

static void print_unmeasured(struct page *page, const struct factor_report *factors, uint32_t top)
{
	char text[FORMAT_SZ];

	for (size_t i = 0; i < text_limit(factors->unmeasured_cnt, top); i++) {
		page__right(page, "unmeasured", 10);
		page__to(page, 11);
		page__name(page, factors->unmeasured[i].function, NAME_COLUMNS);
		page__line(page, ": %s, not probed after %s s", factors->unmeasured[i].why,
			   format_number(text, factors->unmeasured[i].after_s));
	}
	text_more(page, factors->unmeasured_cnt, top);
}

static void print_understood(struct page *page, const struct factor_report *factors)
{
	char text[FORMAT_SZ];

	for (size_t i = 0; i < factors->understood_cnt; i++) {
		const struct understood_line *line = &factors->understood[i];

		page__right(page, isnan(line->contribution) ? "" : format_share(text, line->contribution), 10);
		page__to(page, 11);
		page__name(page, line->function, NAME_COLUMNS);
		page__put(page,
			  isnan(line->contribution) ? ": no such function was called" : ": understood, taken out");
		page__end_line(page);
	}
	if (!factors->understood_cnt)
		return;
	page__line(page, "  without them %s of the variance is left; what follows is of that",
		   format_share(text, factors->left_share));
}

static void print_rest(struct page *page, const struct factor_report *factors)
{
	char body[FORMAT_SZ], queue[FORMAT_SZ], count[FORMAT_SZ];

	page__style(page, PAGE_FAINT);
	page__line(page, "  of the variance, %s is in no %s, %s before a thread began to work on it",
		   format_share(body, factors->body_share),
		   factors->sampled ? "sampled function (waiting for a CPU, interrupts)" : "probed function",
		   format_share(queue, factors->queue_share));
	if (factors->sampled) {
		page__printf(page, "  estimated from %s ticks and ", format_count(count, factors->ticks));
		page__line(page, "%s waits; calls are counted by probes (-s, --rounds)",
			   format_count(count, factors->waits));
	}
	if (factors->lossy)
		page__line(page, "  %s requests are left out because records were lost meanwhile",
			   format_count(count, factors->lossy));
	if (factors->bad_rows) {
		page__line(page, "  %s rows of calls cannot be true, or have no name",
			   format_count(count, factors->bad_rows));
	}
	page__style(page, PAGE_PLAIN);
}

void text_factors(struct page *page, const struct report *report, uint32_t top)
{
	const struct factor_report *factors = report->factors;
	char count[FORMAT_SZ], heading[4 * FORMAT_SZ];

	if (!factors)
		return;
	page__end_line(page);
	snprintf(heading, sizeof(heading), "Functions that make requests vary (%s requests%s)",
		 format_count(count, factors->intervals), factors->round ? ", of the last round" : "");
	text_heading(page, heading);
	print_rounds(page, factors);
	print_unmeasured(page, factors, top);
	print_understood(page, factors);
	if (!factors->line_cnt) {
		page__put(page, factors->sampled     ? "  no sampled function varies"
				: factors->intervals ? "  no probed function varies"
						     : "  no request was seen while functions were probed");
		page__end_line(page);
		return;
	}
	page__heads(page, PAGE_FAINT, {"    variance", 0}, {"height", -28}, {"score", -38}, {"sites", -46});
	for (size_t i = 0; i < text_limit(factors->line_cnt, top); i++)
		print_factor(page, &factors->lines[i]);
	text_more(page, factors->line_cnt, top);
	print_rest(page, factors);
}
