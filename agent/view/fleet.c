// SPDX-License-Identifier: GPL-2.0-or-later
#include "view/fleet.h"

#include "base/names.h"
#include "view/format.h"
#include "view/page.h"
#include "view/text.h"

#include <inttypes.h>
#include <math.h>
#include <time.h>

#define NAME_COLUMNS  30
#define FACT_COLUMNS  60
#define SIGNIFICANT   0.05
#define OTHERS_LISTED 5 /* facts that may be chance */

static const char *format_time(char buf[FORMAT_SZ], uint64_t wall_ns)
{
	time_t seconds = (time_t)(wall_ns / 1000000000);
	struct tm tm;

	if (!gmtime_r(&seconds, &tm) || !strftime(buf, FORMAT_SZ, "%Y-%m-%d %H:%M UTC", &tm))
		buf[0] = '\0';
	return buf;
}

static void print_heading(struct page *page, const struct fleet_answer *answer)
{
	char text[FORMAT_SZ], begin[FORMAT_SZ], end[FORMAT_SZ];

	if (!(answer->requests > 0)) {
		page__printf(page, "%s has no request", answer->database);
		if (answer->type || answer->host)
			page__put(page, " of that type and host");
		page__end_line(page);
		return;
	}
	page__printf(page, "%s: %s requests", answer->database, format_weighted(text, answer->requests));
	if (answer->type) {
		page__put(page, " of type ");
		page__name(page, answer->type, NAME_COLUMNS);
	}
	page__printf(page, ", %s to %s", format_time(begin, answer->begin_ns), format_time(end, answer->end_ns));
	page__printf(page, "; %s ", format_percentile(text, answer->tail));
	page__put(page, view_duration(text, sizeof(text), answer->tail_ns));
	page__end_line(page);
}

static void print_recording(struct page *page, const struct fleet_recording *recording)
{
	page__to(page, 4);
	page__style(page, PAGE_FAINT);
	page__put(page, recording->sid ? "whylate explain " : "whylate report ");
	page__name(page, recording->path, 200);
	if (recording->sid)
		page__printf(page, " %" PRIu64, recording->sid);
	page__style(page, PAGE_PLAIN);
	page__end_line(page);
}

/* The category that the late ones spend most in: -1: not known. */
static int largest_category(const struct fleet_group *group)
{
	double most = 0;
	int found = -1;

	for (int c = 0; c < WL_CATEGORY_CNT; c++)
		if (!isnan(group->late_ns[c]) && group->late_ns[c] > most) {
			most = group->late_ns[c];
			found = c;
		}
	return found;
}

static void print_hosts_of(struct page *page, const struct fleet_group *group)
{
	page__to(page, 4);
	page__line(page, "%u host%s; their tails against the other hosts': by chance %.2g", group->host_cnt,
		   group->host_cnt == 1 ? "" : "s", group->rank_p);
}

static void print_why(struct page *page, const struct fleet_group *group, const struct fleet_answer *answer)
{
	int category = largest_category(group);
	char text[FORMAT_SZ], tail[FORMAT_SZ];

	if (category >= 0) {
		page__to(page, 4);
		page__printf(page, "%s requests beyond %s: mostly %s, ", format_weighted(text, group->late_requests),
			     view_duration(tail, sizeof(tail), answer->tail_ns),
			     category_label((enum wl_category)category));
		page__put(page, view_duration(text, sizeof(text), group->late_ns[category]));
		page__end_line(page);
	}
	if (group->cause) {
		page__to(page, 4);
		page__printf(page, "%s ", format_share(text, group->cause_share));
		page__words(page, group->cause, 6);
		page__end_line(page);
	}
	for (size_t i = 0; i < group->recording_cnt; i++)
		print_recording(page, &group->recordings[i]);
}

static void print_groups(struct page *page, const struct fleet_answer *answer, uint32_t top)
{
	char text[FORMAT_SZ], lo[FORMAT_SZ], hi[FORMAT_SZ];
	size_t late_cnt = 0;

	page__end_line(page);
	page__heads(page, PAGE_BOLD, {answer->question == FLEET_HOSTS ? "Hosts" : answer->fact, 0}, {"requests", -44},
		    {"p50", -54}, {format_percentile(text, answer->tail), -64}, {"95 % interval", -84},
		    {page->utf8 ? "× others'" : "x others'", -96});
	for (size_t i = 0; i < answer->group_cnt; i++) {
		const struct fleet_group *group = &answer->groups[i];

		late_cnt += group->stands_out;
		if (top && i >= top)
			continue;
		page__to(page, 2);
		page__style(page, group->stands_out ? PAGE_BAD : PAGE_PLAIN);
		page__name(page, *group->name ? group->name : "(not known)", NAME_COLUMNS);
		page__style(page, PAGE_PLAIN);
		page__right(page, format_weighted(text, group->requests), 44);
		text_duration(page, group->median_ns, 54);
		text_duration(page, group->tail_ns, 64);
		view_duration(lo, sizeof(lo), group->tail_ci.lo);
		view_duration(hi, sizeof(hi), group->tail_ci.hi);
		snprintf(text, sizeof(text), "%.15s to %.15s", lo, hi);
		page__right(page, text, 84);
		page__right(page, format_number(text, group->tail_ns / group->peers_tail_ns), 96);
		page__end_line(page);
		if (answer->question == FLEET_BY)
			print_hosts_of(page, group);
		if (group->stands_out)
			print_why(page, group, answer);
	}
	page__to(page, 2);
	page__line(page, "%s of %zu stand out: a fifth and more above the median of the others, beyond chance",
		   format_count(text, late_cnt), answer->group_cnt);
}

static void print_roots(struct page *page, const struct fleet_answer *answer, uint32_t top)
{
	char text[FORMAT_SZ];

	page__end_line(page);
	page__heads(page, PAGE_BOLD, {"Roots", 0}, {"late requests", -24}, {"a day and host", -42}, {"hosts", -50});
	for (size_t i = 0; i < answer->root_cnt && (!top || i < top); i++) {
		const struct fleet_root *root = &answer->roots[i];

		page__right(page, format_weighted(text, root->late_requests), 24);
		page__right(page, format_weighted(text, root->late_per_day), 42);
		page__right(page, format_count(text, root->host_cnt), 50);
		page__paragraph(page, 52, root->what, 52);
		print_recording(page, &root->recording);
	}
	if (!answer->root_cnt) {
		page__to(page, 2);
		page__line(page, "no recording was analysed (whylate project does it, unless told --no-causes)");
	}
}

static void print_fact(struct page *page, const struct fleet_answer *answer, const struct fleet_fact *fact)
{
	page__to(page, 2);
	page__style(page, fact->p_adjusted < SIGNIFICANT ? PAGE_BAD : PAGE_PLAIN);
	page__name(page, fact->key, FACT_COLUMNS);
	page__put(page, " = ");
	page__name(page, *fact->value ? fact->value : "(empty)", FACT_COLUMNS);
	page__style(page, PAGE_PLAIN);
	page__line(page, ": %u of %zu late hosts, %u of %zu others; by chance %.2g, with multiplicity %.2g", fact->late,
		   answer->late_host_cnt, fact->other, answer->other_host_cnt, fact->p, fact->p_adjusted);
}

static void print_common(struct page *page, const struct fleet_answer *answer, uint32_t top)
{
	size_t listed = 0;

	page__end_line(page);
	page__style(page, PAGE_BOLD);
	page__put(page, "What the late hosts have in common, and others have not");
	page__style(page, PAGE_PLAIN);
	page__end_line(page);
	if (!answer->late_host_cnt) {
		page__to(page, 2);
		page__line(page, "no host stands out");
		return;
	}
	for (size_t i = 0; i < answer->fact_cnt && answer->facts[i].p < 1 && (!top || i < top); i++) {
		bool chance = answer->facts[i].p_adjusted >= SIGNIFICANT;

		if (chance && listed >= OTHERS_LISTED)
			break;
		if (chance && !listed++) {
			page__to(page, 2);
			page__put(page, i ? "and, as it may be by chance:" : "nothing beyond chance; the most likely:");
			page__end_line(page);
		}
		print_fact(page, answer, &answer->facts[i]);
	}
}

static void print_since(struct page *page, const struct fleet_answer *answer)
{
	const struct fleet_change *change = &answer->change;
	char text[FORMAT_SZ], step[FORMAT_SZ], before[FORMAT_SZ], after[FORMAT_SZ];

	page__to(page, 2);
	if (!change->found) {
		page__printf(page, "no change of the share of late requests beyond chance (steps of %s)",
			     view_duration(step, sizeof(step), (double)answer->step_ns));
	} else {
		page__printf(page, "since %s (steps of %s): %s of the requests are beyond ",
			     format_time(text, change->since_ns),
			     view_duration(step, sizeof(step), (double)answer->step_ns),
			     format_share(after, change->after_share));
		page__put(page, view_duration(text, sizeof(text), answer->tail_ns));
		page__printf(page, ", before it were %s; by chance %.2g", format_share(before, change->before_share),
			     change->p);
	}
	page__end_line(page);
}

void text_fleet(struct page *page, const struct fleet_answer *answer, uint32_t top)
{
	print_heading(page, answer);
	if (!(answer->requests > 0))
		return;
	if (answer->question == FLEET_HOSTS || answer->question == FLEET_BY)
		print_groups(page, answer, top);
	if (answer->question == FLEET_ROOTS)
		print_roots(page, answer, top);
	if (answer->question == FLEET_COMMON || answer->question == FLEET_HOSTS)
		print_common(page, answer, top);
	if (answer->question == FLEET_SINCE)
		print_since(page, answer);
}

int view_fleet_text(FILE *out, const struct fleet_answer *answer, const struct view_opts *opts)
{
	struct page page;

	page__open(&page, out, opts->colour);
	text_fleet(&page, answer, opts->top);
	return page__close(&page);
}
