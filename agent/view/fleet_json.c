// SPDX-License-Identifier: GPL-2.0-or-later
#include "view/fleet.h"

#include "base/names.h"
#include "view/json_put.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const questions[] = {"hosts", "by", "roots", "common", "since"};

static void put_session(struct json_doc *doc, struct json_object *object, uint64_t session_id)
{
	char text[20];

	snprintf(text, sizeof(text), "%016" PRIx64, session_id);
	put_string(doc, object, "session", text);
}

static void put_recording(struct json_doc *doc, struct json_object *array, const struct fleet_recording *recording)
{
	struct json_object *object = append_object(doc, array);

	put_string(doc, object, "host", recording->host);
	put_string(doc, object, "path", recording->path);
	put_session(doc, object, recording->session_id);
	put(doc, object, "sid", recording->sid ? json_object_new_uint64(recording->sid) : NULL, !recording->sid);
}

static void put_groups(struct json_doc *doc, struct json_object *root, const struct fleet_answer *answer)
{
	struct json_object *array = put_array(doc, root, "groups");

	for (size_t i = 0; i < answer->group_cnt; i++) {
		const struct fleet_group *group = &answer->groups[i];
		struct json_object *object = append_object(doc, array), *late, *recordings;

		put_string(doc, object, "name", group->name);
		put_number(doc, object, "requests", group->requests);
		put_rounded(doc, object, "p50_ns", group->median_ns);
		put_rounded(doc, object, "tail_ns", group->tail_ns);
		put_ci(doc, object, "tail_ci", group->tail_ci);
		put_rounded(doc, object, "others_tail_ns", group->peers_tail_ns);
		put_bool(doc, object, "stands_out", group->stands_out);
		put(doc, object, "hosts", group->host_cnt ? json_object_new_int64(group->host_cnt) : NULL,
		    !group->host_cnt);
		put_number(doc, object, "rank_p", group->rank_p);
		put_number(doc, object, "late_requests", group->late_requests);
		late = put_object(doc, object, "late_mean_ns");
		for (int c = 0; c < WL_CATEGORY_CNT; c++)
			put_rounded(doc, late, category_name((enum wl_category)c), group->late_ns[c]);
		put_string(doc, object, "cause", group->cause);
		put_number(doc, object, "cause_share", group->cause ? group->cause_share : NAN);
		recordings = put_array(doc, object, "recordings");
		for (size_t r = 0; r < group->recording_cnt; r++)
			put_recording(doc, recordings, &group->recordings[r]);
	}
}

static void put_roots(struct json_doc *doc, struct json_object *root, const struct fleet_answer *answer)
{
	struct json_object *array = put_array(doc, root, "roots");

	for (size_t i = 0; i < answer->root_cnt; i++) {
		const struct fleet_root *from = &answer->roots[i];
		struct json_object *object = append_object(doc, array), *recordings;

		put_string(doc, object, "what", from->what);
		put_string(doc, object, "category", from->category);
		put_known_string(doc, object, "kind", from->kind);
		put_known_string(doc, object, "role", from->role);
		put_known_string(doc, object, "function", from->function);
		put_known_string(doc, object, "object", from->object);
		put_known_string(doc, object, "culprit", from->culprit);
		put_count(doc, object, "hosts", from->host_cnt);
		put_number(doc, object, "late_requests", from->late_requests);
		put_number(doc, object, "late_per_day", from->late_per_day);
		recordings = put_array(doc, object, "recordings");
		put_recording(doc, recordings, &from->recording);
	}
}

static void put_facts(struct json_doc *doc, struct json_object *root, const struct fleet_answer *answer)
{
	struct json_object *array = put_array(doc, root, "common");

	for (size_t i = 0; i < answer->fact_cnt && answer->facts[i].p < 1; i++) {
		const struct fleet_fact *fact = &answer->facts[i];
		struct json_object *object = append_object(doc, array);

		put_string(doc, object, "key", fact->key);
		put_string(doc, object, "value", fact->value);
		put_count(doc, object, "late_hosts", fact->late);
		put_count(doc, object, "other_hosts", fact->other);
		put_number(doc, object, "p", fact->p);
		put_number(doc, object, "p_adjusted", fact->p_adjusted);
	}
}

static void put_change(struct json_doc *doc, struct json_object *root, const struct fleet_answer *answer)
{
	const struct fleet_change *change = &answer->change;
	struct json_object *object =
		put_known_object(doc, root, "change", answer->question == FLEET_SINCE && change->found);

	if (!object)
		return;
	put_count(doc, object, "since_ns", change->since_ns);
	put_count(doc, object, "step_ns", answer->step_ns);
	put_number(doc, object, "before_share", change->before_share);
	put_number(doc, object, "after_share", change->after_share);
	put_number(doc, object, "p", change->p);
}

int view_fleet_json(FILE *out, const struct fleet_answer *answer)
{
	struct json_object *root = json_object_new_object();
	struct json_doc doc = {root ? 0 : -ENOMEM};

	put_string(&doc, root, "schema", "whylate.fleet/1");
	put_string(&doc, root, "question", questions[answer->question]);
	put_string(&doc, root, "database", answer->database);
	put_string(&doc, root, "type", answer->type);
	put_string(&doc, root, "host", answer->host);
	put_string(&doc, root, "fact", answer->fact);
	put_number(&doc, root, "quantile", answer->tail);
	put_number(&doc, root, "requests", answer->requests);
	put_rounded(&doc, root, "tail_ns", answer->tail_ns);
	put_count(&doc, root, "begin_ns", answer->begin_ns);
	put_count(&doc, root, "end_ns", answer->end_ns);
	put_count(&doc, root, "late_hosts", answer->late_host_cnt);
	put_count(&doc, root, "other_hosts", answer->other_host_cnt);
	put_groups(&doc, root, answer);
	put_roots(&doc, root, answer);
	put_facts(&doc, root, answer);
	put_change(&doc, root, answer);
	return json_finish(out, &doc, root, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED);
}
