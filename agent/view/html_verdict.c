// SPDX-License-Identifier: GPL-2.0-or-later
/* The answer, which reads without JavaScript: what was recorded, the causes, the breakdown. */
#include "view/html.h"

#include "base/names.h"
#include "view/format.h"
#include "view/text.h"
#include "view/words.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

#define UNFOLDED  3     /* causes whose ways and call path are open */
#define OWN_SHOWN 0.001 /* of the tail; less is below the resolution of the other lines */

static void put_target(struct html *html, const struct dataset *dataset)
{
	bool named = dataset->comm && *dataset->comm;

	html__put(html, "<h1>");
	html__text(html, named ? dataset->comm : dataset->pid >= 0 ? "process" : "a recording");
	if (dataset->host_cnt > 1)
		html__printf(html, " on %zu hosts", dataset->host_cnt);
	else if (dataset->pid >= 0)
		html__printf(html, " (pid %lld)", (long long)dataset->pid);
	if (dataset->host_cnt <= 1 && dataset->host && *dataset->host)
		html__printf(html, " on %s", dataset->host);
	html__put(html, "</h1>\n");
}

static void put_latency(struct html *html, const struct latency_summary *latency)
{
	const struct {
		const char *name;
		double ns;
	} parts[] = {
		{"mean", latency->mean_ns}, {"p50", latency->p50_ns},    {"p90", latency->p90_ns},
		{"p99", latency->p99_ns},   {"p99.9", latency->p999_ns}, {"max", latency->max_ns},
	};
	char text[FORMAT_SZ];

	html__put(html, "<dl class=\"figures\">");
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		html__put(html, "<div>");
		html__element(html, "dt", NULL, parts[i].name);
		html__element(html, "dd", NULL, view_duration(text, sizeof(text), parts[i].ns));
		html__put(html, "</div>");
	}
	html__put(html, "</dl>\n");
}

static void put_when(struct html *html, const struct dataset *dataset)
{
	uint64_t begin_wall_ns = 0;
	char text[64];
	struct tm tm;
	time_t s;

	for (size_t h = 0; h < dataset->host_cnt; h++)
		if (!begin_wall_ns || dataset->hosts[h].begin_wall_ns < begin_wall_ns)
			begin_wall_ns = dataset->hosts[h].begin_wall_ns;
	s = (time_t)(begin_wall_ns / 1000000000);
	if (begin_wall_ns && gmtime_r(&s, &tm) && strftime(text, sizeof(text), " Begun %F %T UTC.", &tm))
		html__put(html, text);
}

void html__header(struct html *html, const struct report *report)
{
	const struct dataset *dataset = report->dataset;
	char seen[FORMAT_SZ], kept[FORMAT_SZ], duration[FORMAT_SZ], share[FORMAT_SZ];

	html__put(html, "<header>\n");
	put_target(html, dataset);
	html__put(html, "<p>");
	if (dataset->kernel && *dataset->kernel)
		html__printf(html, "Linux %s. ", dataset->kernel);
	html__printf(html, "%s%s requests", dataset->window_cnt ? "About " : "",
		     format_count(seen, dataset->intervals_seen));
	if (dataset->duration_s > 0)
		html__printf(html, " in %s", view_duration(duration, sizeof(duration), dataset->duration_s * 1e9));
	if (dataset->window_cnt && dataset->duration_s > 0)
		html__printf(html, ", observed %s of that time",
			     format_part(share, dataset->window_selecting_s / dataset->duration_s));
	html__printf(html, ", %s kept.", format_count(kept, dataset->row_cnt));
	put_when(html, dataset);
	if (dataset->row_cnt && dataset->row_cnt != dataset->intervals_seen)
		html__put(html, " Weights are applied.");
	html__put(html, "</p>\n");
	if (dataset->row_cnt)
		put_latency(html, &report->latency);
	else
		html__put(html, "<p class=\"bad\">The recording holds no request: there is nothing to rank.</p>\n");
	html__put(html, "</header>\n");
}

static void put_ways(struct html *html, const struct cause *cause)
{
	char share[FORMAT_SZ];

	html__put(html, "<ul class=\"ways\">");
	for (size_t w = 0; w < cause->way_cnt; w++) {
		const struct cause_way *way = &cause->ways[w];

		html__put(html, "<li>");
		html__printf(html, "%s %s", format_share(share, way->share), words_way(cause, way));
		for (size_t h = 0; h < way->hop_cnt; h++)
			html__printf(html, "%s%s%s", h ? ", " : " (through ", way->hops[h],
				     h + 1 == way->hop_cnt ? ")" : "");
		html__put(html, "</li>");
	}
	html__put(html, "</ul>\n");
}

static void put_call_path(struct html *html, const struct cause_root *root)
{
	if (!root->call_path_cnt)
		return;
	html__put(html, "<ol class=\"frames\" aria-label=\"call path\">");
	for (size_t i = 0; i < root->call_path_cnt; i++)
		html__element(html, "li", NULL, root->call_path[i]);
	html__put(html, "</ol>\n");
}

static void put_gain(struct html *html, const struct report *report, const struct cause *cause)
{
	char gone[FORMAT_SZ], now[FORMAT_SZ], mean[FORMAT_SZ], mean_now[FORMAT_SZ], lo[FORMAT_SZ], hi[FORMAT_SZ];

	if (!report->roots || isnan(cause->gain.p99_ns))
		return;
	html__put(html, "<p>");
	html__printf(html, "Without it: p99 %s", view_duration(gone, sizeof(gone), cause->gain.p99_ns));
	if (!isnan(cause->gain.p99_ci.lo))
		html__printf(html, " [%s to %s]", view_duration(lo, sizeof(lo), cause->gain.p99_ci.lo),
			     view_duration(hi, sizeof(hi), cause->gain.p99_ci.hi));
	html__printf(html, "%s instead of %s, mean %s instead of %s.", cause->gain.lower_bound ? " or less" : "",
		     view_duration(now, sizeof(now), report->roots->p99_ns),
		     view_duration(mean, sizeof(mean), cause->gain.mean_ns),
		     view_duration(mean_now, sizeof(mean_now), report->latency.mean_ns));
	html__put(html, "</p>\n");
}

/* How it reached requests, where it is, what would be won. */
static void put_root(struct html *html, const struct report *report, const struct cause *cause)
{
	bool folded = cause->rank > UNFOLDED;

	if (folded)
		html__put(html, "<details><summary>Ways, call path, gain</summary>\n");
	put_ways(html, cause);
	put_call_path(html, &cause->root);
	put_gain(html, report, cause);
	html__put(html, "<p>Look at: ");
	html__text(html, words_advice(report, cause));
	html__put(html, folded ? ".</p></details>\n" : ".</p>\n");
}

static void put_cause(struct html *html, const struct report *report, const struct cause *cause)
{
	char text[FORMAT_SZ];

	fprintf(html->out, "<li class=\"cause\" data-cause=\"%u\">", cause->rank - 1);
	html__put(html, "<p class=\"what\">");
	html__element(html, "b", NULL, format_share(text, cause->share));
	html__put(html, " ");
	html__element(html, "span", "faint", format_ci(text, cause->share_ci));
	html__put(html, " ");
	html__text(html, cause->what ? cause->what : category_label(cause->category));
	html__put(html, "</p>\n");
	html__bar(html, cause->share, cause->share_ci);
	if (cause->has_root)
		put_root(html, report, cause);
	if (cause->evidence_cnt) {
		html__put(html, "<details><summary>Evidence</summary><ul>");
		for (size_t i = 0; i < cause->evidence_cnt; i++)
			if (cause->evidence[i])
				html__element(html, "li", NULL, cause->evidence[i]);
		html__put(html, "</ul></details>\n");
	}
	html__put(html, "</li>\n");
}

/* Apart from the ranking. */
static void put_account(struct html *html, const struct report *report)
{
	const struct own_line *own = &report->our_own;
	const struct root_account *account = report->roots;
	char share[FORMAT_SZ], typical[FORMAT_SZ], late[FORMAT_SZ];

	html__put(html, "<p class=\"faint\">");
	if (own->known && own->share >= OWN_SHOWN)
		html__printf(html, "Our own: %s; late requests waited %s for a CPU that whylate had, typical ones %s. ",
			     format_share(share, own->share), view_duration(late, sizeof(late), own->late_ns),
			     view_duration(typical, sizeof(typical), own->typical_ns));
	else if (own->known)
		html__printf(html, "Our own: below %s (waiting for a CPU that whylate had). ",
			     format_share(share, OWN_SHOWN));
	if (account && account->tail_ns > 0)
		html__printf(html, "Late requests take %s more than typical ones; %s of that has no known root.",
			     view_duration(late, sizeof(late), account->tail_ns),
			     format_share(share, account->not_attributed_ns / account->tail_ns));
	html__put(html, "</p>\n");
}

void html__causes(struct html *html, const struct report *report, uint32_t top)
{
	size_t shown = text_limit(report->cause_cnt, top);
	char text[FORMAT_SZ], typical[FORMAT_SZ] = "typical half";

	if (report->tail < 0.5)
		snprintf(typical, sizeof(typical), "fastest %.3g %%", report->tail * 100);
	html__put(html, "<section id=\"verdict\"><h2>");
	html__printf(html, "Why the slowest %.3g %% (≥ %s) are late, compared with the %s", (1 - report->tail) * 100,
		     view_duration(text, sizeof(text), report->tail_threshold_ns), typical);
	html__put(html, "</h2>\n");
	if (!report->cause_cnt)
		html__put(html, "<p>Nothing that was measured sets them apart from the typical ones.</p>\n");
	html__put(html, "<ol class=\"causes\">\n");
	for (size_t i = 0; i < shown; i++)
		put_cause(html, report, &report->causes[i]);
	html__put(html, "</ol>\n");
	if (shown < report->cause_cnt)
		html__printf(html, "… %zu more (--top 0 lists all)", report->cause_cnt - shown);
	put_account(html, report);
	html__put(html, "</section>\n");
}

void html__breakdown(struct html *html, const struct report *report)
{
	char text[FORMAT_SZ];

	html__put(html, "<table><thead><tr><th>category</th><th>mean</th><th>typical</th><th>late</th>"
			"<th>of the tail</th><th>of the variance</th><th class=\"label\"></th></tr></thead><tbody>\n");
	for (size_t i = 0; i < WL_CATEGORY_CNT; i++) {
		const struct breakdown_line *line = &report->breakdown[i];

		if (!line->measured || !(line->mean_ns > 0))
			continue;
		html__put(html, "<tr>");
		html__element(html, "th", NULL, category_name(line->category));
		html__number(html, view_duration(text, sizeof(text), line->mean_ns));
		html__number(html, view_duration(text, sizeof(text), line->typical_ns));
		html__number(html, view_duration(text, sizeof(text), line->late_ns));
		html__number(html, format_share(text, line->tail_share));
		html__number(html, format_share(text, line->variance_share));
		html__element(html, "td", "label", category_label(line->category));
		html__put(html, "</tr>\n");
	}
	html__put(html, "</tbody></table>\n");
}
