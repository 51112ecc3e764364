// SPDX-License-Identifier: GPL-2.0-or-later
/* A long recording in segments: the ones that stand out, when it changed, then all of them. */
#include "analysis/segments_difference.h"
#include "base/names.h"
#include "view/format.h"
#include "view/json_put.h"
#include "view/text.h"

#include <math.h>
#include <time.h>

#define BAR_COLUMNS     30
#define EVENT_COLUMNS   26
#define COMMAND_COLUMNS 400 /* it is to be copied whole */

/* "2026-11-23 14:00:00" */
static const char *when_text(char buf[FORMAT_SZ], uint64_t wall_ns)
{
	time_t seconds = (time_t)(wall_ns / 1000000000);
	struct tm tm;

	if (!gmtime_r(&seconds, &tm) || !strftime(buf, FORMAT_SZ, "%F %T", &tm))
		return format_dash();
	return buf;
}

static void print_one(struct page *page, const char *what, const struct segments *segments, size_t number)
{
	const struct segment *segment = &segments->items[number];
	char when[FORMAT_SZ], tail[FORMAT_SZ], lo[FORMAT_SZ], hi[FORMAT_SZ], count[FORMAT_SZ];

	page__printf(page, "  %-7s %s  %s", what, when_text(when, segment->begin_wall_ns),
		     view_duration(tail, sizeof(tail), segment->tail_ns));
	if (!isnan(segment->tail_ci.lo))
		page__printf(page, " [%s to %s]", view_duration(lo, sizeof(lo), segment->tail_ci.lo),
			     view_duration(hi, sizeof(hi), segment->tail_ci.hi));
	page__line(page, ", mean %s, %s requests", view_duration(tail, sizeof(tail), segment->mean_ns),
		   format_weighted(count, segment->count));
}

/* What the worst segment's requests waited longer for than the median one's, the largest difference first. */
static void print_culprits(struct page *page, const struct segments *segments)
{
	const struct segment *worst = &segments->items[segments->worst], *median = &segments->items[segments->median];
	double limit = INFINITY;
	char text[FORMAT_SZ];

	for (int n = 0; n < 3; n++) {
		const struct segment_culprit *most = NULL;
		double largest = 0, more;

		for (size_t c = 0; c < worst->culprits.cnt; c++) {
			more = worst->culprits.items[c].ns - segment_culprit_ns(median,
										worst->culprits.items[c].category,
										worst->culprits.items[c].what);
			if (more > largest && more < limit) {
				largest = more;
				most = &worst->culprits.items[c];
			}
		}
		if (!most)
			break;
		limit = largest;
		page__printf(page, n ? ", %s " : "  their longest waits: %s ", category_name(most->category));
		page__put(page, segments->culprits[most->what]);
		page__printf(page, " (+%s)", view_duration(text, sizeof(text), largest));
	}
	if (limit < INFINITY)
		page__end_line(page);
}

/* Categories of the mean request, the largest differences first. */
static void print_difference(struct page *page, const struct segments *segments)
{
	const struct segment *worst = &segments->items[segments->worst], *median = &segments->items[segments->median];
	bool told[WL_CATEGORY_CNT] = {false};
	char text[FORMAT_SZ];

	if (segments->worst == segments->median || isnan(worst->category_ns[0]) || isnan(median->category_ns[0]))
		return;
	page__put(page, "  per request, the worst segment spends more than the median one on");
	for (int n = 0; n < 3; n++) {
		int most = -1;

		for (int c = 0; c < WL_CATEGORY_CNT; c++)
			if (!told[c] && (most < 0 || worst->category_ns[c] - median->category_ns[c] >
							     worst->category_ns[most] - median->category_ns[most]))
				most = c;
		if (!(worst->category_ns[most] - median->category_ns[most] > 0))
			break;
		told[most] = true;
		page__printf(page, "%s %s (+%s)", n ? "," : "", category_name((enum wl_category)most),
			     view_duration(text, sizeof(text), worst->category_ns[most] - median->category_ns[most]));
	}
	page__end_line(page);
	print_culprits(page, segments);
}

static void print_changes(struct page *page, const struct segments *segments)
{
	char when[FORMAT_SZ], before[FORMAT_SZ], after[FORMAT_SZ], name[FORMAT_SZ];

	format_percentile(name, segments->tail);
	page__end_line(page);
	if (segments->rhythm.is_known) {
		const struct segment_rhythm *rhythm = &segments->rhythm;

		page__printf(page,
			     "Daily rhythm: %.3g times the day's median at %02u:%02u UTC, %.3g times at %02u:%02u",
			     rhythm->high, rhythm->high_min / 60, rhythm->high_min % 60, rhythm->low,
			     rhythm->low_min / 60, rhythm->low_min % 60);
		page__end_line(page);
		page__end_line(page);
	}
	text_heading(page,
		     segments->rhythm.is_known ? "Changes of level, apart from the daily rhythm" : "Changes of level");
	if (!segments->changes.cnt)
		page__put(page,
			  segments->cnt < 6 ? "  too few segments to tell" : "  none: the segments vary by chance");
	for (size_t c = 0; c < segments->changes.cnt; c++) {
		const struct segment_change *change = &segments->changes.items[c];

		if (c)
			page__end_line(page);
		page__printf(page, "  %s  %s from %s to %s (p %.3f)",
			     when_text(when, segments->items[change->at].begin_wall_ns), name,
			     view_duration(before, sizeof(before), change->before_ns),
			     view_duration(after, sizeof(after), change->after_ns), change->p);
	}
	page__end_line(page);
}

static void print_drift(struct page *page, const char *what, const struct drift *drift)
{
	char first[FORMAT_SZ], last[FORMAT_SZ], per_day[FORMAT_SZ];

	page__line(page, "  %-12s %s to %s in %zu days, %s a day (p %.3f)", what,
		   view_duration(first, sizeof(first), drift->first), view_duration(last, sizeof(last), drift->last),
		   drift->days, format_time_change(per_day, drift->per_day), drift->p);
}

/* Of a category it is worth a line if it moves the mean latency by that much of itself. */
#define DRIFT_SHOWN 0.01

static bool is_worth_telling(const struct segments *segments, const struct drift *drift)
{
	double level = fmax(segments->mean_drift.first, segments->mean_drift.last);

	return drift->found && fabs(drift->last - drift->first) >= DRIFT_SHOWN * level;
}

static void print_drifts(struct page *page, const struct segments *segments)
{
	char tail[FORMAT_SZ];
	bool any = false;

	if (segments->mean_drift.days < DRIFT_DAYS_MIN)
		return;
	text_section(page, "Drift from day to day (per request)");
	if (segments->tail_drift.found)
		print_drift(page, format_percentile(tail, segments->tail), &segments->tail_drift);
	if (segments->mean_drift.found)
		print_drift(page, "mean", &segments->mean_drift);
	any = segments->tail_drift.found || segments->mean_drift.found;
	for (int c = 0; c < WL_CATEGORY_CNT; c++) {
		if (!is_worth_telling(segments, &segments->drifts[c]))
			continue;
		print_drift(page, category_name((enum wl_category)c), &segments->drifts[c]);
		any = true;
	}
	for (size_t d = 0; d < segments->culprit_drift_cnt; d++) {
		const struct segment_drift *culprit = &segments->culprit_drifts[d];

		if (!is_worth_telling(segments, &culprit->drift))
			continue;
		page__printf(page, "  %s: ", category_name(culprit->category));
		page__words(page, segments->culprits[culprit->what], 4);
		page__end_line(page);
		print_drift(page, "", &culprit->drift);
		any = true;
	}
	if (!any)
		page__line(page, "  none");
}

static void print_all(struct page *page, const struct segments *segments, uint32_t top)
{
	size_t shown = text_limit(segments->cnt, top == 10 ? 60 : top);
	double most = segments->items[segments->worst].tail_ns;
	char text[FORMAT_SZ];

	page__end_line(page);
	page__heads(page, PAGE_BOLD, {"Begin (UTC)", 0}, {"requests", -34}, {"p50", -45},
		    {format_percentile(text, segments->tail), -56});
	for (size_t s = 0; s < shown; s++) {
		const struct segment *segment = &segments->items[s];
		size_t columns = segment->is_empty ? 0 : (size_t)lrint(BAR_COLUMNS * segment->tail_ns / most);

		page__put(page, when_text(text, segment->begin_wall_ns));
		page__right(page, format_weighted(text, segment->count), 34);
		page__right(page, view_duration(text, sizeof(text), segment->p50_ns), 45);
		page__right(page, view_duration(text, sizeof(text), segment->tail_ns), 56);
		page__to(page, 58);
		for (size_t c = 0; c < columns; c++)
			page__put(page, "#");
		page__end_line(page);
	}
	text_more(page, segments->cnt, shown);
}

static void print_events(struct page *page, const struct segments_difference *difference, double tail, uint32_t top)
{
	size_t shown = text_limit(difference->event_cnt, top);
	char text[FORMAT_SZ], ci[FORMAT_SZ], heading[4 * FORMAT_SZ];

	if (!difference->event_cnt)
		return;
	page__end_line(page);
	snprintf(heading, sizeof(heading), "Events: how much %s falls without them (gain; impact) in A, and in B",
		 format_percentile(text, tail));
	text_heading(page, heading);
	for (size_t e = 0; e < shown; e++) {
		const struct segments_event *event = &difference->events[e];

		page__to(page, 2);
		page__name(page, event->event, EVENT_COLUMNS);
		page__right(page, format_share(text, event->gain[COMPARE_A]), 36);
		page__printf(page, " (%s)", format_share(text, event->impact[COMPARE_A]));
		page__right(page, format_share(text, event->gain[COMPARE_B]), 54);
		page__printf(page, " %s", format_ci(ci, event->gain_ci[COMPARE_B]));
		page__line(page, " (%s)", format_share(text, event->impact[COMPARE_B]));
	}
	text_more(page, difference->event_cnt, top);
}

/* Above the list of all, which is long. */
static void print_more(struct page *page, const struct segments_view *more, double tail, uint32_t top)
{
	if (more->difference) {
		page__end_line(page);
		page__line(page, "The worst segment (B) against the median one (A), by the requests that were kept:");
		print_events(page, more->difference, tail, top);
		text_compare_parts(page, &more->difference->comparison, top);
	} else if (more->command) {
		page__end_line(page);
		page__line(page, "What differs between the median and the worst segment, by root:");
		page__put(page, "  ");
		page__name(page, more->command, COMMAND_COLUMNS);
		page__end_line(page);
	}
}

int view_segments_text(FILE *out, const struct segments *segments, const struct segments_view *more,
		       const struct view_opts *opts)
{
	char length[FORMAT_SZ], count[FORMAT_SZ], heading[128], name[FORMAT_SZ];
	struct page page;

	page__open(&page, out, opts->colour);
	page__printf(&page, "%zu segments of %s, from %s %s; ", segments->cnt,
		     view_duration(length, sizeof(length), (double)segments->length_ns),
		     format_count(count, segments->rows),
		     segments->from_summaries ? "summaries of a minute and type" : "kept requests (weights applied)");
	page__printf(&page, "%s records lost", format_count(count, segments->records_lost));
	page__end_line(&page);
	page__end_line(&page);
	snprintf(heading, sizeof(heading), "%s of the segments", format_percentile(name, segments->tail));
	text_heading(&page, heading);
	print_one(&page, "median", segments, segments->median);
	print_one(&page, "worst", segments, segments->worst);
	print_difference(&page, segments);
	print_changes(&page, segments);
	print_drifts(&page, segments);
	print_more(&page, more, segments->tail, opts->top);
	print_all(&page, segments, opts->top);
	if (segments->bad_rows)
		page__printf(&page, "%zu rows could not be used", segments->bad_rows);
	return page__close(&page);
}

static void put_rhythm(struct json_doc *doc, struct json_object *root, const struct segment_rhythm *rhythm)
{
	struct json_object *object = put_known_object(doc, root, "rhythm", rhythm->is_known);

	if (!object)
		return;
	put_number(doc, object, "high", rhythm->high);
	put_count(doc, object, "high_minute", rhythm->high_min);
	put_number(doc, object, "low", rhythm->low);
	put_count(doc, object, "low_minute", rhythm->low_min);
}

#define CULPRITS_SHOWN 5

static void put_segment(struct json_doc *doc, struct json_object *array, const struct segments *segments,
			const struct segment *from)
{
	struct json_object *line = append_object(doc, array), *categories, *culprits;

	put_count(doc, line, "begin_ns", from->begin_wall_ns);
	put_number(doc, line, "count", from->count);
	put_rounded(doc, line, "mean_ns", from->mean_ns);
	put_rounded(doc, line, "p50_ns", from->p50_ns);
	put_rounded(doc, line, "tail_ns", from->tail_ns);
	put_ci(doc, line, "tail_ci", from->tail_ci);
	put_rounded(doc, line, "max_ns", from->is_empty ? NAN : (double)from->max_ns);
	categories = put_object(doc, line, "categories");
	for (int c = 0; c < WL_CATEGORY_CNT; c++)
		put_number(doc, categories, category_name((enum wl_category)c), from->category_ns[c]);
	culprits = put_array(doc, line, "culprits");
	for (size_t c = 0; c < from->culprits.cnt && c < CULPRITS_SHOWN; c++) {
		struct json_object *culprit = append_object(doc, culprits);

		put_string(doc, culprit, "category", category_name(from->culprits.items[c].category));
		put_string(doc, culprit, "what", segments->culprits[from->culprits.items[c].what]);
		put_number(doc, culprit, "mean_ns", from->culprits.items[c].ns);
	}
}

static void put_drift(struct json_doc *doc, struct json_object *root, const char *key, const struct drift *drift)
{
	struct json_object *object = put_object(doc, root, key);
	bool known = drift->days >= DRIFT_DAYS_MIN;

	put_count(doc, object, "days", drift->days);
	put_number(doc, object, "p", drift->p);
	put_bool(doc, object, "found", drift->found);
	put_number(doc, object, "first_ns", known ? drift->first : NAN);
	put_number(doc, object, "last_ns", known ? drift->last : NAN);
	put_number(doc, object, "per_day_ns", known ? drift->per_day : NAN);
}

static void put_drifts(struct json_doc *doc, struct json_object *root, const struct segments *segments)
{
	struct json_object *object = put_object(doc, root, "drift"), *categories, *culprits;

	put_drift(doc, object, "tail", &segments->tail_drift);
	put_drift(doc, object, "mean", &segments->mean_drift);
	categories = put_object(doc, object, "categories");
	for (int c = 0; c < WL_CATEGORY_CNT; c++)
		put_drift(doc, categories, category_name((enum wl_category)c), &segments->drifts[c]);
	culprits = put_array(doc, object, "culprits");
	for (size_t d = 0; d < segments->culprit_drift_cnt; d++) {
		struct json_object *line = append_object(doc, culprits);

		put_string(doc, line, "category", category_name(segments->culprit_drifts[d].category));
		put_string(doc, line, "what", segments->culprits[segments->culprit_drifts[d].what]);
		put_drift(doc, line, "drift", &segments->culprit_drifts[d].drift);
	}
}

static void put_difference(struct json_doc *doc, struct json_object *root, const struct segments_difference *difference)
{
	struct json_object *object = put_object(doc, root, "difference"), *array;

	json_put_difference(doc, object, &difference->comparison);
	array = put_array(doc, object, "tail_events");
	for (size_t e = 0; e < difference->event_cnt; e++) {
		const struct segments_event *event = &difference->events[e];
		struct json_object *line = append_object(doc, array);

		put_string(doc, line, "event", event->event);
		for (int s = 0; s < COMPARE_SIDE_CNT; s++) {
			put_number(doc, line, s ? "b_gain" : "a_gain", event->gain[s]);
			put_ci(doc, line, s ? "b_gain_ci" : "a_gain_ci", event->gain_ci[s]);
			put_number(doc, line, s ? "b_impact" : "a_impact", event->impact[s]);
			put_ci(doc, line, s ? "b_impact_ci" : "a_impact_ci", event->impact_ci[s]);
		}
	}
}

int view_segments_json(FILE *out, const struct segments *segments, const struct segments_view *more)
{
	struct json_object *root = json_object_new_object(), *array;
	struct json_doc doc = {.err = root ? 0 : -ENOMEM};

	put_string(&doc, root, "schema", "whylate.segments/1");
	put_number(&doc, root, "length_s", (double)segments->length_ns / 1e9);
	put_number(&doc, root, "tail", segments->tail);
	put_bool(&doc, root, "from_summaries", segments->from_summaries);
	put_count(&doc, root, "rows", segments->rows);
	put_count(&doc, root, "bad_rows", segments->bad_rows);
	put_count(&doc, root, "records_lost", segments->records_lost);
	put_count(&doc, root, "median", segments->median);
	put_count(&doc, root, "worst", segments->worst);
	put_rhythm(&doc, root, &segments->rhythm);
	array = put_array(&doc, root, "changes");
	for (size_t c = 0; c < segments->changes.cnt; c++) {
		const struct segment_change *change = &segments->changes.items[c];
		struct json_object *line = append_object(&doc, array);

		put_count(&doc, line, "at", change->at);
		put_count(&doc, line, "begin_ns", segments->items[change->at].begin_wall_ns);
		put_rounded(&doc, line, "before_ns", change->before_ns);
		put_rounded(&doc, line, "after_ns", change->after_ns);
		put_number(&doc, line, "p", change->p);
	}
	put_drifts(&doc, root, segments);
	if (more->difference)
		put_difference(&doc, root, more->difference);
	else
		put(&doc, root, "difference", NULL, true);
	array = put_array(&doc, root, "segments");
	for (size_t s = 0; s < segments->cnt; s++)
		put_segment(&doc, array, segments, &segments->items[s]);
	return json_finish(out, &doc, root, JSON_FLAGS);
}
