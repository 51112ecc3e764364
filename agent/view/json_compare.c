// SPDX-License-Identifier: GPL-2.0-or-later
/* Two sides as JSON, schema whylate.compare/1. */
#include "analysis/compare.h"
#include "base/names.h"
#include "view/json_put.h"
#include "view/view.h"

static const char *const verdicts[] = {
	[COMPARE_SAME] = "same",   [COMPARE_WORSE] = "worse",     [COMPARE_BETTER] = "better",
	[COMPARE_MIXED] = "mixed", [COMPARE_UNKNOWN] = "unknown",
};

static void put_side(struct json_doc *doc, struct json_object *root, const char *key,
		     const struct comparison *comparison, const struct compare_facts *facts, int side)
{
	struct json_object *object = put_object(doc, root, key), *loss;

	put_string(doc, object, "what", facts->label);
	put_known_string(doc, object, "host", facts->host);
	put_known_string(doc, object, "kernel", facts->kernel);
	put_id(doc, object, "pid", facts->pid);
	put_known_string(doc, object, "comm", facts->comm);
	put_number(doc, object, "duration_s", facts->duration_s);
	put_count(doc, object, "recordings", facts->session_cnt);
	put_count(doc, object, "intervals_seen", facts->intervals_seen);
	put_count(doc, object, "intervals_kept", comparison->row_cnt[side]);
	put_count(doc, object, "blocks", comparison->block_cnt[side]);
	put_number(doc, object, "share_like", comparison->like_share[side]);
	put_rounded(doc, object, "tail_threshold_ns", comparison->late_ns[side]);
	put_count(doc, object, "records_lost", facts->records_lost);
	put_number(doc, object, "lost_share", facts->lost_share);
	put_count(doc, object, "intervals_flagged", facts->intervals_flagged);
	loss = put_object(doc, object, "loss");
	for (int c = 0; c < WL_LOSS_CNT; c++)
		put_count(doc, loss, loss_name(c), facts->loss[c].lost);
}

static void put_difference(struct json_doc *doc, struct json_object *object, const char *key,
			   const struct compare_difference *from)
{
	struct json_object *difference = put_object(doc, object, key);

	put_number(doc, difference, "value", from->value);
	put_ci(doc, difference, "ci", from->ci);
	put_number(doc, difference, "detectable", from->detectable);
	put_bool(doc, difference, "differs", from->differs);
}

static void put_pair(struct json_doc *doc, struct json_object *object, const char *a, const char *b,
		     const double pair[COMPARE_SIDE_CNT])
{
	put_number(doc, object, a, pair[COMPARE_A]);
	put_number(doc, object, b, pair[COMPARE_B]);
}

static void put_metrics(struct json_doc *doc, struct json_object *root, const struct comparison *comparison)
{
	struct json_object *array = put_array(doc, root, "latency");

	for (size_t m = 0; m < COMPARE_METRIC_CNT; m++) {
		const struct compare_metric *metric = &comparison->metrics[m];
		struct json_object *line = append_object(doc, array);

		put_string(doc, line, "name", metric->name);
		put_pair(doc, line, "a_ns", "b_ns", metric->like_ns);
		put_difference(doc, line, "ratio", &metric->like);
		put_pair(doc, line, "all_a_ns", "all_b_ns", metric->ns);
		put_difference(doc, line, "all_ratio", &metric->all);
		put_number(doc, line, "limit", metric->limit);
		put_bool(doc, line, "exceeds", metric->exceeds);
	}
}

static void put_types_of(struct json_doc *doc, struct json_object *root, const struct comparison *comparison)
{
	struct json_object *array = put_array(doc, root, "types");

	for (size_t t = 0; t < comparison->type_cnt; t++) {
		const struct compare_type *type = &comparison->types[t];
		struct json_object *line = append_object(doc, array);

		put_string(doc, line, "type", type->type);
		put_pair(doc, line, "a_share", "b_share", type->share);
		put_bool(doc, line, "in_both", type->in_both);
		if (!type->in_both)
			continue;
		put_pair(doc, line, "a_mean_ns", "b_mean_ns", type->mean_ns);
		put_difference(doc, line, "mean_ratio", &type->mean);
		put_pair(doc, line, "a_tail_ns", "b_tail_ns", type->tail_ns);
		put_difference(doc, line, "tail_ratio", &type->tail);
	}
}

/* The side's latency without the root, and with it. */
static void put_gain(struct json_doc *doc, struct json_object *line, const char *key, const struct cause_gain *from,
		     const struct cause_gain *whole)
{
	struct json_object *gain = put_object(doc, line, key);

	put_rounded(doc, gain, "mean_ns", from->mean_ns);
	put_rounded(doc, gain, "p99_ns", from->p99_ns);
	put_ci(doc, gain, "p99_ci", from->p99_ci);
	put_rounded(doc, gain, "p999_ns", from->p999_ns);
	put_rounded(doc, gain, "with_mean_ns", whole->mean_ns);
	put_rounded(doc, gain, "with_p99_ns", whole->p99_ns);
}

static void put_list(struct json_doc *doc, struct json_object *root, const char *key, const char *name,
		     const struct compare_list *list, const struct cause_gain *whole)
{
	struct json_object *array = put_array(doc, root, key);

	for (size_t i = 0; i < list->cnt; i++) {
		const struct compare_line *from = &list->lines[i];
		struct json_object *line = append_object(doc, array);

		put_string(doc, line, name, from->name);
		put_pair(doc, line, "a_mean_ns", "b_mean_ns", from->mean);
		put_difference(doc, line, "mean_diff_ns", &from->mean_diff);
		put_pair(doc, line, "a_late_ns", "b_late_ns", from->late);
		put_difference(doc, line, "late_diff_ns", &from->late_diff);
		if (!from->root)
			continue;
		put_string(doc, line, "function", from->root->function);
		json_put_root(doc, line, from->root);
		/* It is of late against typical requests. */
		json_object_object_del(line, "ways");
		json_object_object_del(line, "gain");
		put_gain(doc, line, "a_gain", &from->gain[COMPARE_A], &whole[COMPARE_A]);
		put_gain(doc, line, "b_gain", &from->gain[COMPARE_B], &whole[COMPARE_B]);
	}
}

static void put_events_of(struct json_doc *doc, struct json_object *root, const struct comparison *comparison)
{
	struct json_object *array = put_array(doc, root, "events");

	for (size_t i = 0; i < comparison->events.cnt; i++) {
		const struct compare_line *from = &comparison->events.lines[i];
		struct json_object *line = append_object(doc, array);

		put_string(doc, line, "event", from->name);
		put_pair(doc, line, "a_mean", "b_mean", from->mean);
		put_difference(doc, line, "ratio", &from->mean_diff);
	}
}

void json_put_difference(struct json_doc *doc, struct json_object *root, const struct comparison *comparison)
{
	put_list(doc, root, "roots", "what", &comparison->roots, comparison->whole);
	put_list(doc, root, "breakdown", "category", &comparison->categories, NULL);
	put_list(doc, root, "functions", "function", &comparison->functions, NULL);
	put_events_of(doc, root, comparison);
}

int view_compare_json(FILE *out, const struct comparison *comparison, const struct compare_facts *facts)
{
	struct json_object *root = json_object_new_object();
	struct json_doc doc = {.err = root ? 0 : -ENOMEM};

	put_string(&doc, root, "schema", "whylate.compare/1");
	put_side(&doc, root, "a", comparison, &facts[COMPARE_A], COMPARE_A);
	put_side(&doc, root, "b", comparison, &facts[COMPARE_B], COMPARE_B);
	put_string(&doc, root, "verdict", verdicts[comparison->verdict]);
	put_bool(&doc, root, "exceeds_limit", comparison->exceeds);
	put_number(&doc, root, "tail", comparison->tail);
	put_bool(&doc, root, "mixed", comparison->mixed);
	put_count(&doc, root, "in_both_sides", comparison->both_cnt);
	put_metrics(&doc, root, comparison);
	put_types_of(&doc, root, comparison);
	json_put_difference(&doc, root, comparison);
	json_put_value_report(&doc, put_known_object(&doc, root, "values", comparison->values), comparison->values);
	return json_finish(out, &doc, root, JSON_FLAGS);
}
