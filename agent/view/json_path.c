// SPDX-License-Identifier: GPL-2.0-or-later
/* The keys "path" and "crosstalk" of whylate.report/1: null where no detail was recorded. */
#include "view/json_put.h"

#include "analysis/story.h"
#include "base/names.h"

#include <stdio.h>

static void put_thread(struct json_doc *doc, struct json_object *object, const char *key, int64_t pid, int64_t tid,
		       const char *comm, const char *host)
{
	struct json_object *thread = put_object(doc, object, key);

	put_id(doc, thread, "pid", pid);
	put_id(doc, thread, "tid", tid);
	put_known_string(doc, thread, "comm", comm);
	put_string(doc, thread, "host", host);
}

static void put_line_shares(struct json_doc *doc, struct json_object *object, const struct path_line *from)
{
	put_rounded(doc, object, "mean_ns", from->mean_ns);
	put_rounded(doc, object, "typical_ns", from->typical_ns);
	put_rounded(doc, object, "late_ns", from->late_ns);
	put_number(doc, object, "late_met", from->late_met);
	put_number(doc, object, "tail_share", from->tail_share);
	put_ci(doc, object, "tail_share_ci", from->tail_share_ci);
	put_number(doc, object, "variance_share", from->variance_share);
	put_ci(doc, object, "variance_share_ci", from->variance_share_ci);
}

static void put_lines(struct json_doc *doc, struct json_object *path, const struct path_report *from)
{
	struct json_object *array = put_array(doc, path, "lines"), *rest;

	for (size_t i = 0; i < from->line_cnt; i++) {
		const struct path_line *line = &from->lines[i];
		struct json_object *object = append_object(doc, array);

		put_string(doc, object, "role", line->role);
		put_string(doc, object, "category", category_name(line->category));
		put_string(doc, object, "wait", category_name(line->wait));
		put_known_string(doc, object, "object", line->object);
		put_thread(doc, object, "culprit", line->culprit_pid, line->culprit_tid, line->culprit_comm,
			   line->culprit_host);
		put_string(doc, object, "doing", category_name(line->doing));
		put_number(doc, object, "doing_share", line->doing_share);
		put_line_shares(doc, object, line);
	}
	rest = put_object(doc, path, "rest");
	put_line_shares(doc, rest, &from->rest);
}

static int64_t id_or_none(uint32_t id)
{
	return id ? (int64_t)id : -1;
}

/* As text: 64 bits are more than many readers of JSON take for a whole number. */
static void put_sid(struct json_doc *doc, struct json_object *object, const char *key, uint64_t sid)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)sid);
	put_string(doc, object, key, sid ? text : NULL);
}

static void append_step(struct json_doc *doc, struct json_object *steps, const struct story_step *from,
			uint64_t begin_ts)
{
	static const char *const vias[] = {"own", "wakeup", "owner", "handoff", "generator"};
	struct json_object *step = append_object(doc, steps);

	put_count(doc, step, "at_ns", from->begin_ts - begin_ts);
	put_count(doc, step, "ns", from->end_ts - from->begin_ts);
	put_string(doc, step, "category", category_name(from->category));
	put_string(doc, step, "state", state_name(from->state));
	put_string(doc, step, "wait", category_name(from->wait));
	put_count(doc, step, "depth", from->depth);
	put_string(doc, step, "via", vias[from->via]);
	put_string(doc, step, "handoff",
		   from->transit || from->via >= PATH_VIA_HANDOFF ? handoff_name(from->kind) : NULL);
	put_bool(doc, step, "transit", from->transit);
	put_string(doc, step, "certainty", certainty_name(from->certainty));
	put_thread(doc, step, "thread", id_or_none(from->pid), id_or_none(from->tid), from->comm, from->host);
	put_string(doc, step, "object", from->object);
	put_string(doc, step, "syscall", from->syscall);
	put_thread(doc, step, "culprit", id_or_none(from->culprit_pid), id_or_none(from->culprit_tid),
		   from->culprit_comm, from->culprit_host);
	put_sid(doc, step, "other_sid", from->other_sid);
	put_string(doc, step, "other_type", from->other_type);
	put_string(doc, step, "call_path", from->call_path);
}

static void append_story(struct json_doc *doc, struct json_object *array, const struct story *from)
{
	static const struct {
		enum path_flag flag;
		const char *name;
	} flags[] = {
		{PATH_GAP, "gap"},           {PATH_NO_EDGE, "no_edge"},     {PATH_LOOP, "loop"},
		{PATH_TOO_LONG, "too_long"}, {PATH_AMBIGUOUS, "ambiguous"}, {PATH_LOSSY, "lossy"},
	};
	struct json_object *object = append_object(doc, array), *list, *steps;

	put_sid(doc, object, "sid", from->sid);
	put_string(doc, object, "type", from->type);
	put_known_string(doc, object, "host", *from->host ? from->host : NULL);
	put_known_string(doc, object, "trace_id", *from->trace_id ? from->trace_id : NULL);
	put_known_string(doc, object, "span_id", *from->span_id ? from->span_id : NULL);
	put_count(doc, object, "begin_ts", from->begin_ts);
	put_count(doc, object, "latency_ns", from->end_ts - from->begin_ts);
	put_id(doc, object, "pid", id_or_none(from->pid));
	put_id(doc, object, "tid", id_or_none(from->tid));
	put_id(doc, object, "end_tid", id_or_none(from->end_tid));
	list = put_array(doc, object, "flags");
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (from->path_flags & flags[i].flag)
			append(doc, list, new_string(flags[i].name), false);
	steps = put_array(doc, object, "steps");
	for (size_t i = 0; i < from->step_cnt; i++)
		append_step(doc, steps, &from->steps[i], from->begin_ts);
}

static void put_crosstalk(struct json_doc *doc, struct json_object *root, const struct path_report *from)
{
	struct json_object *array = put_array(doc, root, "crosstalk");

	for (size_t i = 0; i < from->crosstalk_cnt; i++) {
		struct json_object *line = append_object(doc, array);

		put_string(doc, line, "type", from->crosstalk[i].type);
		put_string(doc, line, "held_by", from->crosstalk[i].by_type);
		put_rounded(doc, line, "count", from->crosstalk[i].count);
		put_rounded(doc, line, "mean_ns", from->crosstalk[i].mean_ns);
		put_number(doc, line, "share", from->crosstalk[i].share);
	}
}

/* "hosts": whose clocks were compared, and what became of the messages between them. */
static void put_join(struct json_doc *doc, struct json_object *path, const struct join_report *from)
{
	struct json_object *join = put_object(doc, path, "join"), *links;

	put_count(doc, join, "recordings", from->sessions);
	put_count(doc, join, "received", from->received);
	put_count(doc, join, "joined", from->joined);
	put_count(doc, join, "ambiguous", from->ambiguous);
	put_count(doc, join, "unknown_peer", from->unknown_peer);
	put_count(doc, join, "not_kept", from->not_kept);
	put_count(doc, join, "contradicting", from->contradicting);
	put_count(doc, join, "clockless", from->clockless);
	links = put_array(doc, join, "links");
	for (size_t i = 0; i < from->line_cnt; i++) {
		const struct join_line *line = &from->lines[i];
		struct json_object *link = append_object(doc, links);

		put_known_string(doc, link, "a", line->a);
		put_known_string(doc, link, "b", line->b);
		put(doc, link, "offset_ns", json_object_new_int64(line->offset_ns), false);
		put_count(doc, link, "uncertainty_ns", line->uncertainty_ns);
		put_number(doc, link, "drift_ppm", line->drift_ppm);
		put_count(doc, link, "forth", line->forth_cnt);
		put_count(doc, link, "back", line->back_cnt);
		put_count(doc, link, "contradicting", line->contradicting_cnt);
		put_count(doc, link, "joined", line->joined);
		put_bool(doc, link, "in_use", line->in_use);
	}
}

void json_put_path(struct json_doc *doc, struct json_object *root, const struct report *report)
{
	const struct path_report *from = report->path;
	struct json_object *path, *slowest;

	if (!from) {
		put(doc, root, "path", NULL, true);
		put(doc, root, "crosstalk", NULL, true);
		return;
	}
	path = put_object(doc, root, "path");
	put_count(doc, path, "intervals", from->walked);
	put_count(doc, path, "intervals_lossy", from->lossy);
	put_count(doc, path, "with_gap", from->with_gap);
	put_count(doc, path, "without_edge", from->without_edge);
	put_count(doc, path, "with_loop", from->with_loop);
	put_count(doc, path, "too_long", from->too_long);
	put_count(doc, path, "ambiguous", from->ambiguous);
	put_number(doc, path, "ambiguous_share", from->ambiguous_share);
	put_lines(doc, path, from);
	slowest = put_array(doc, path, "slowest");
	for (size_t i = 0; i < from->slowest_cnt; i++)
		append_story(doc, slowest, &from->slowest[i]);
	put_join(doc, path, &from->join);
	put_crosstalk(doc, root, from);
}
