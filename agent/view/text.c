// SPDX-License-Identifier: GPL-2.0-or-later
/* What an engineer on call reads: first the answer, then what it rests on, then how far it can be trusted. */
#include "view/text.h"

#include "base/names.h"
#include "base/utf8.h"
#include "view/format.h"

#include <math.h>
#include <string.h>

#define OWN_SHOWN    0.001 /* of the tail; less is below the resolution of the other lines */
#define NAME_COLUMNS 24    /* three of them and a pid fit into a line */

size_t text_limit(size_t cnt, uint32_t top)
{
	return top && top < cnt ? top : cnt;
}

void text_heading(struct page *page, const char *printable)
{
	page__style(page, PAGE_BOLD);
	page__put(page, printable);
	page__style(page, PAGE_PLAIN);
	page__end_line(page);
}

void text_duration(struct page *page, double ns, size_t column)
{
	char text[FORMAT_SZ];

	page__right(page, view_duration(text, sizeof(text), ns), column);
}

void text_section(struct page *page, const char *printable)
{
	page__end_line(page);
	text_heading(page, printable);
}

void text_more(struct page *page, size_t cnt, uint32_t top)
{
	char more[FORMAT_SZ];

	if (text_limit(cnt, top) == cnt)
		return;
	page__style(page, PAGE_FAINT);
	page__printf(page, "  %s %s more (--top 0 lists all)", page->utf8 ? "…" : "...",
		     format_count(more, cnt - text_limit(cnt, top)));
	page__style(page, PAGE_PLAIN);
	page__end_line(page);
}

static void print_target(struct page *page, const struct dataset *dataset)
{
	bool named = dataset->comm && *dataset->comm;

	page__style(page, PAGE_BOLD);
	if (named)
		page__name(page, dataset->comm, NAME_COLUMNS);
	if (dataset->host_cnt > 1) {
		page__style(page, PAGE_PLAIN);
		page__printf(page, "%s %zu hosts", named ? " on" : "processes on", dataset->host_cnt);
		return;
	}
	if (dataset->pid >= 0)
		page__printf(page, named ? " (pid %lld)" : "pid %lld", (long long)dataset->pid);
	else if (!named)
		page__put(page, "a process that the recording does not name");
	page__style(page, PAGE_PLAIN);
	if (dataset->host && *dataset->host) {
		page__put(page, " on ");
		page__name(page, dataset->host, NAME_COLUMNS);
	}
	if (dataset->kernel && *dataset->kernel) {
		page__put(page, strncmp(dataset->kernel, "Linux", 5) ? ", Linux " : ", ");
		page__name(page, dataset->kernel, NAME_COLUMNS);
	}
}

/* In windows with its interval: they see bursts by chance. */
static void print_seen(struct page *page, const struct report *report)
{
	const struct dataset *dataset = report->dataset;
	struct ci ci = report->levels.seen_ci;
	char seen[FORMAT_SZ], kept[FORMAT_SZ], windows[FORMAT_SZ], share[FORMAT_SZ], lo[FORMAT_SZ], hi[FORMAT_SZ];
	char text[6 * FORMAT_SZ + 100];
	size_t sz =
		(size_t)snprintf(text, sizeof(text), "%s%s request%s", dataset->window_cnt ? "about " : "",
				 format_count(seen, dataset->intervals_seen), dataset->intervals_seen == 1 ? "" : "s");

	if (dataset->window_cnt && dataset->row_cnt && isfinite(ci.lo) && isfinite(ci.hi))
		sz += (size_t)snprintf(text + sz, sizeof(text) - sz, " (%s to %s)",
				       format_count(lo, (uint64_t)fmax(ci.lo, 0)),
				       format_count(hi, (uint64_t)fmax(ci.hi, 0)));
	if (dataset->window_cnt && dataset->duration_s > 0)
		sz += (size_t)snprintf(text + sz, sizeof(text) - sz, ", observed in %s window%s, %s of the time",
				       format_count(windows, dataset->window_cnt), dataset->window_cnt == 1 ? "" : "s",
				       format_part(share, dataset->window_selecting_s / dataset->duration_s));
	if (dataset->row_cnt && !dataset->window_cnt && dataset->row_cnt == dataset->intervals_seen)
		snprintf(text + sz, sizeof(text) - sz, " seen, all kept");
	else
		snprintf(text + sz, sizeof(text) - sz, "%s %s kept%s", dataset->window_cnt ? ";" : " seen,",
			 format_count(kept, dataset->row_cnt), dataset->row_cnt ? " (weights applied)" : "");
	page__words(page, text, 2);
}

static void print_header(struct page *page, const struct report *report)
{
	const struct dataset *dataset = report->dataset;
	char count[FORMAT_SZ];

	print_target(page, dataset);
	if (dataset->duration_s > 0) {
		page__put(page, ": ");
		page__chunk(page, view_duration(count, sizeof(count), dataset->duration_s * 1e9), 2);
	}
	page__end_line(page);
	print_seen(page, report);
	if (report->type_cnt == 1 && *report->types[0].type) {
		page__put(page, ", all of type ");
		page__name(page, report->types[0].type, NAME_COLUMNS);
	}
	page__end_line(page);
}

/* An interval that reaches no farther than this part of the figure is left out of it, but of the mean and the p99. */
#define NEAR_SHARE 0.1

/* Of a duration, estimated from windows. */
static void print_interval(struct page *page, struct ci ci)
{
	char lo[FORMAT_SZ], hi[FORMAT_SZ], chunk[2 * FORMAT_SZ + 8];

	if (isnan(ci.lo))
		return;
	view_duration(lo, sizeof(lo), ci.lo);
	if (isnan(ci.hi))
		snprintf(chunk, sizeof(chunk), " (%s or more)", lo);
	else
		snprintf(chunk, sizeof(chunk), " (%s to %s)", lo, view_duration(hi, sizeof(hi), ci.hi));
	page__chunk(page, chunk, 9);
}

static bool is_wide(struct ci ci, double ns)
{
	return isnan(ci.hi) || fmax(ns - ci.lo, ci.hi - ns) > NEAR_SHARE * ns;
}

static void print_latency(struct page *page, const struct report *report)
{
	const struct latency_summary *latency = &report->latency;
	const struct {
		const char *name;
		double ns;
		const struct ci *ci;
		bool always;
	} parts[] = {
		{"mean", latency->mean_ns, &report->levels.mean_ci, true},
		{"p50", latency->p50_ns, &report->levels.p50_ci, false},
		{"p90", latency->p90_ns, &report->levels.p90_ci, false},
		{"p99", latency->p99_ns, &report->levels.p99_ci, true},
		{"p99.9", latency->p999_ns, &report->levels.p999_ci, false},
		{"max", latency->max_ns, NULL, false},
	};
	char text[FORMAT_SZ], chunk[2 * FORMAT_SZ];

	page__put(page, "latency");
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		page__put(page, "  ");
		view_duration(text, sizeof(text), parts[i].ns);
		snprintf(chunk, sizeof(chunk), "%s %s", parts[i].name, text);
		page__chunk(page, chunk, 9);
		if (parts[i].ci && report->dataset->window_cnt &&
		    (parts[i].always || is_wide(*parts[i].ci, parts[i].ns)))
			print_interval(page, *parts[i].ci);
	}
	page__put(page, "  ");
	snprintf(chunk, sizeof(chunk), "cov %s", format_number(text, latency->cov));
	page__chunk(page, chunk, 9);
	page__end_line(page);
}

static void print_cause(struct page *page, const struct report *report, const struct cause *cause, size_t ci_columns)
{
	char text[FORMAT_SZ];
	size_t indent;

	snprintf(text, sizeof(text), "%u.", cause->rank);
	page__right(page, text, 4);
	page__to(page, 5);
	page__style(page, PAGE_BOLD);
	page__right(page, format_share(text, cause->share), 10);
	page__style(page, PAGE_PLAIN);
	page__to(page, 11);
	page__put(page, format_ci(text, cause->share_ci));
	indent = 11 + (ci_columns ? ci_columns + 2 : 1);
	page__paragraph(page, indent, cause->what ? cause->what : category_label(cause->category), indent);
	if (cause->has_root)
		text_root(page, report, cause, 8);
	/* The answer first: what the smaller ones rest on is in --json. */
	for (size_t i = 0; i < cause->evidence_cnt && (!cause->has_root || cause->rank == 1); i++) {
		if (!cause->evidence[i])
			continue;
		page__paragraph(page, 8, cause->evidence[i], 10);
	}
}

/* Apart from the ranking. */
static void print_own(struct page *page, const struct own_line *own)
{
	char share[FORMAT_SZ], typical[FORMAT_SZ], late[FORMAT_SZ];

	if (!own->known)
		return;
	page__style(page, PAGE_FAINT);
	page__to(page, 2);
	if (own->share >= OWN_SHOWN)
		page__printf(page, "our own: %s; late requests waited %s for a CPU that whylate had, typical ones %s",
			     format_share(share, own->share), view_duration(late, sizeof(late), own->late_ns),
			     view_duration(typical, sizeof(typical), own->typical_ns));
	else
		page__printf(page, "our own: below %s (waiting for a CPU that whylate had)",
			     format_share(share, OWN_SHOWN));
	page__style(page, PAGE_PLAIN);
	page__end_line(page);
}

static void print_causes(struct page *page, const struct report *report, uint32_t top)
{
	size_t shown = text_limit(report->cause_cnt, top);
	char text[FORMAT_SZ], heading[4 * FORMAT_SZ], typical[FORMAT_SZ] = "typical half";
	size_t ci_columns = 0;

	view_duration(text, sizeof(text), report->tail_threshold_ns);
	if (report->tail < 0.5)
		snprintf(typical, sizeof(typical), "fastest %.3g %%", report->tail * 100);
	snprintf(heading, sizeof(heading),
		 "Why the slowest %.3g %% (%s %s) are late, compared with the %s:", (1 - report->tail) * 100,
		 page->utf8 ? "≥" : ">=", text, typical);
	text_section(page, heading);
	if (!report->cause_cnt)
		page__line(page, "  Nothing that was measured sets them apart from the typical ones.");
	for (size_t i = 0; i < shown; i++) {
		size_t columns = utf8_width(format_ci(text, report->causes[i].share_ci));

		ci_columns = columns > ci_columns ? columns : ci_columns;
	}
	for (size_t i = 0; i < shown; i++)
		print_cause(page, report, &report->causes[i], ci_columns);
	text_more(page, report->cause_cnt, top);
	print_own(page, &report->our_own);
	text_account(page, report);
}

static void print_paragraph(struct page *page, const char *text)
{
	page__to(page, 2);
	page__words(page, text, *text == '-' ? 4 : 2);
	page__end_line(page);
}

static void print_no_interval(struct page *page, const struct dataset *dataset)
{
	static const char *const none_kept[] = {
		"They ended in the target, but none was selected and written, or none is of the type asked for.",
		"- record with --rate 100% and --tail none, or for longer (-d)",
		"- without --type, the report lists the types that there are",
		"- see below whether records were lost or files damaged",
	};
	static const char *const none_seen[] = {
		"A request begins when bytes arrive on a connection that this process (or a child of it) accepted, "
		"and ends when the reply is sent on it. Likely reasons, and what to do:",
		"- the server was idle, or the recording too short: send it requests, record longer (-d)",
		"- another process serves the requests: find it (`ss -tlnp`), record that pid (-p)",
		"- its clients' connections were not accepted by this process: it opened them itself, or its work "
		"comes from a queue, a file or a timer: name the function that handles one request (-s)",
	};

	page__end_line(page);
	if (dataset->damage_cnt && dataset->damage[0].sz) {
		text_heading(page,
			     "What is left of the damaged files below holds no request, so there is nothing to rank.");
	} else if (dataset->intervals_seen) {
		text_heading(page, "None of the requests was kept, so there is nothing to rank.");
		for (size_t i = 0; i < sizeof(none_kept) / sizeof(none_kept[0]); i++)
			print_paragraph(page, none_kept[i]);
	} else {
		text_heading(page, "No request ended while this was recorded, so there is nothing to rank.");
		for (size_t i = 0; i < sizeof(none_seen) / sizeof(none_seen[0]); i++)
			print_paragraph(page, none_seen[i]);
	}
}

int view_text(FILE *out, const struct report *report, const struct view_opts *opts)
{
	struct page page;

	page__open(&page, out, opts->colour);
	print_header(&page, report);
	if (report->dataset->row_cnt) {
		print_latency(&page, report);
		print_causes(&page, report, opts->top);
		text_values(&page, report, opts->top);
		text_factors(&page, report, opts->top);
		text_path(&page, report, opts->top);
		text_hosts(&page, report, opts->top);
		text_breakdown(&page, report);
		text_events(&page, report, opts->top);
		text_types(&page, report, opts->top);
	} else {
		print_no_interval(&page, report->dataset);
	}
	text_trust(&page, report, opts->top);
	return page__close(&page);
}
