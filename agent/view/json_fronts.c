// SPDX-License-Identifier: GPL-2.0-or-later
/* Requests of all programs by the one at the front (Whodunit §8.4, table 1), in JSON. */
#include "base/names.h"
#include "view/contexts.h"
#include "view/json_put.h"

#include <json-c/json.h>
#include <stdio.h>

static const char *const link_names[FRONT_LINKS] = {"outside", "request", "unknown", "ambiguous"};

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
	put_number(doc, object, "cpu_share", front_cpu_share(line));
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
