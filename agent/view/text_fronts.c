// SPDX-License-Identifier: GPL-2.0-or-later
/* Requests of all programs by the one at the front (Whodunit §8.4, table 1). */
#include "base/names.h"
#include "view/contexts.h"
#include "view/format.h"
#include "view/json_put.h"
#include "view/text.h"

#include <json-c/json.h>
#include <stdio.h>

static const char *const link_names[FRONT_LINKS] = {"outside", "request", "unknown", "ambiguous"};

static double program_ns(const struct fronts *fronts, size_t first, size_t *cnt)
{
	double cpu_ns = 0;

	for (*cnt = 0; first + *cnt < fronts->lines.cnt; ++*cnt) {
		if (fronts->lines.items[first + *cnt].program != fronts->lines.items[first].program)
			break;
		cpu_ns += fronts->lines.items[first + *cnt].cpu_ns;
	}
	return cpu_ns;
}

static void print_program(struct page *page, const struct fronts *fronts, size_t first, size_t cnt, uint32_t top)
{
	char text[FORMAT_SZ];

	for (size_t i = 0; i < text_limit(cnt, top); i++) {
		const struct front_line *line = &fronts->lines.items[first + i];

		page__right(page, format_weighted(text, line->fronts), 12);
		page__right(page, format_number(text, line->count / line->fronts), 22);
		page__right(page, format_share(text, line->cpu_share), 32);
		page__right(page, view_duration(text, sizeof(text), line->cpu_ns / line->fronts), 43);
		page__right(page, view_duration(text, sizeof(text), line->wait_ns / line->fronts), 54);
		page__right(page, view_duration(text, sizeof(text), line->lock_ns / line->fronts), 68);
		page__paragraph(page, 70, fronts_string(fronts, line->type), 72);
	}
	text_more(page, cnt, top);
}

static void print_crossings(struct page *page, const struct fronts *fronts, uint32_t top)
{
	char text[FORMAT_SZ];

	if (!fronts->crossings.cnt)
		return;
	text_section(page, "Crosstalk at the front: which requests waited for which in the programs");
	page__heads(page, PAGE_FAINT, {"  for a", 0}, {"requests", -20}, {"mean wait", -32}, {"in all", -43},
		    {"in the program; waiting, and what was in the way", 45});
	for (size_t i = 0; i < text_limit(fronts->crossings.cnt, top); i++) {
		const struct front_crossing *crossing = &fronts->crossings.items[i];

		page__to(page, 2);
		page__put(page, view_way(crossing->category));
		page__right(page, format_weighted(text, crossing->count), 20);
		page__right(page, view_duration(text, sizeof(text), crossing->wait_ns / crossing->count), 32);
		page__right(page, view_duration(text, sizeof(text), crossing->wait_ns), 43);
		page__paragraph(page, 45, fronts_string(fronts, crossing->program), 45);
		page__paragraph(page, 47, fronts_string(fronts, crossing->type), 49);
		page__paragraph(page, 47, fronts_string(fronts, crossing->by_type), 49);
	}
	text_more(page, fronts->crossings.cnt, top);
}

void text_fronts(struct page *page, const struct fronts *fronts, uint32_t top)
{
	char text[2][FORMAT_SZ];
	size_t cnt;

	if (!fronts_have(fronts))
		return;
	for (size_t i = 0; i < fronts->lines.cnt; i += cnt) {
		double cpu_ns = program_ns(fronts, i, &cnt);

		page__end_line(page);
		page__style(page, PAGE_BOLD);
		page__printf(page, "What requests at the front take in %s",
			     fronts_string(fronts, fronts->lines.items[i].program));
		page__style(page, PAGE_PLAIN);
		page__printf(page, " (CPU time in all %s)", view_duration(text[0], FORMAT_SZ, cpu_ns));
		page__end_line(page);
		page__heads(page, PAGE_FAINT, {"requests", -12}, {"here each", -22}, {"CPU share", -32},
			    {"CPU each", -43}, {"waits each", -54}, {"for locks", -68}, {"type at the front", 70});
		print_program(page, fronts, i, cnt, top);
	}
	page__end_line(page);
	page__line(page, "%s requests asked for by another one; not known by which %s, by one of several %s",
		   format_count(text[0], fronts->links[FRONT_ASKED]),
		   format_count(text[1], fronts->links[FRONT_UNKNOWN]),
		   format_count((char[FORMAT_SZ]){0}, fronts->links[FRONT_AMBIGUOUS]));
	print_crossings(page, fronts, top);
}

/* --- every request ------------------------------------------------------------------------------------------------ */

static const char *host_of(const struct traces *traces, const struct trace_interval *interval)
{
	return traces_string(traces, traces->sessions.items[interval->session].host);
}

static void put_request(struct json_doc *doc, struct json_object *object, const struct fronts *fronts, uint32_t idx)
{
	const struct traces *traces = fronts->traces;
	const struct trace_interval *interval = &traces->intervals.items[idx];
	const struct front_of *of = &fronts->of[idx];
	const struct trace_interval *front = &traces->intervals.items[of->front];
	bool asked = of->asked_by != FRONT_NONE;

	put_id(doc, object, "sid", (int64_t)interval->base.sid);
	put_known_string(doc, object, "host", host_of(traces, interval));
	put_string(doc, object, "program", fronts_string(fronts, fronts->programs[idx]));
	put_string(doc, object, "type", traces_string(traces, interval->base.type));
	put_id(doc, object, "pid", interval->base.pid);
	put_id(doc, object, "tid", interval->base.tid);
	put_id(doc, object, "begin_ts", (int64_t)interval->base.begin_ts);
	put_id(doc, object, "pickup_ts", (int64_t)interval->base.pickup_ts);
	put_id(doc, object, "end_ts", (int64_t)interval->base.end_ts);
	put_string(doc, object, "asked_by", link_names[of->link]);
	put_string(doc, object, "certainty", asked ? certainty_name(of->certainty) : NULL);
	put_id(doc, object, "asked_by_sid", asked ? (int64_t)traces->intervals.items[of->asked_by].base.sid : -1);
	put_known_string(doc, object, "asked_by_host",
			 asked ? host_of(traces, &traces->intervals.items[of->asked_by]) : NULL);
	put_id(doc, object, "front_sid", (int64_t)front->base.sid);
	put_known_string(doc, object, "front_host", host_of(traces, front));
	put_string(doc, object, "front_type", traces_string(traces, front->base.type));
}

int view_contexts_requests(FILE *out, const struct contexts *contexts)
{
	const struct fronts *fronts = &contexts->fronts;

	for (uint32_t i = 0; fronts->traces && i < fronts->traces->intervals.cnt; i++) {
		struct json_object *object = json_object_new_object();
		struct json_doc doc = {0};
		int err;

		if (!object)
			return -ENOMEM;
		put_request(&doc, object, fronts, i);
		err = json_finish(out, &doc, object, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
		if (err)
			return err;
	}
	return 0;
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

static void put_line(struct json_doc *doc, struct json_object *object, const struct fronts *fronts,
		     const struct front_line *line)
{
	put_string(doc, object, "type", fronts_string(fronts, line->type));
	put_string(doc, object, "program", fronts_string(fronts, line->program));
	put_rounded(doc, object, "requests", line->fronts);
	put_rounded(doc, object, "count", line->count);
	put_rounded(doc, object, "cpu_ns", line->cpu_ns);
	put_number(doc, object, "cpu_share", line->cpu_share);
	put_rounded(doc, object, "wait_ns", line->wait_ns);
	put_rounded(doc, object, "lock_wait_ns", line->lock_ns);
}

void json_fronts(struct json_doc *doc, struct json_object *root, const struct fronts *fronts)
{
	struct json_object *array, *links, *object;

	if (!fronts->traces) {
		put_string(doc, root, "fronts", NULL);
		put_string(doc, root, "crosstalk_at_front", NULL);
		return;
	}
	links = put_object(doc, root, "asked_by");
	for (size_t i = 0; i < FRONT_LINKS; i++)
		put_count(doc, links, link_names[i], fronts->links[i]);
	array = put_array(doc, root, "fronts");
	for (size_t i = 0; fronts_have(fronts) && i < fronts->lines.cnt; i++)
		put_line(doc, append_object(doc, array), fronts, &fronts->lines.items[i]);
	array = put_array(doc, root, "crosstalk_at_front");
	for (size_t i = 0; fronts_have(fronts) && i < fronts->crossings.cnt; i++) {
		const struct front_crossing *crossing = &fronts->crossings.items[i];

		object = append_object(doc, array);
		put_string(doc, object, "program", fronts_string(fronts, crossing->program));
		put_string(doc, object, "type", fronts_string(fronts, crossing->type));
		put_string(doc, object, "by_type", fronts_string(fronts, crossing->by_type));
		put_string(doc, object, "category", category_name((enum wl_category)crossing->category));
		put_rounded(doc, object, "count", crossing->count);
		put_rounded(doc, object, "mean_ns", crossing->wait_ns / crossing->count);
		put_rounded(doc, object, "total_ns", crossing->wait_ns);
	}
}
