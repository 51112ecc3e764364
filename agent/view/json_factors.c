// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The keys "factors" and "factor_tree" of whylate.report/1: an empty list and null where no function was probed or
 * sampled.
 */
#include "view/json_put.h"

#include "base/names.h"

static const char *const doings[FACTOR_DOING_CNT] = {"running", "runnable", "blocked", "interrupted"};

static void put_doings(struct json_doc *doc, struct json_object *object, const char *key,
		       const double shares[FACTOR_DOING_CNT])
{
	struct json_object *split = put_object(doc, object, key);

	for (int d = 0; d < FACTOR_DOING_CNT; d++)
		put_number(doc, split, doings[d], shares[d]);
}

static void put_wait(struct json_doc *doc, struct json_object *object, const struct factor_line *from)
{
	struct json_object *wait = put_known_object(doc, object, "late_by", !isnan(from->wait_share));

	if (!wait)
		return;
	put_string(doc, wait, "category", category_name(from->wait));
	put_number(doc, wait, "share", from->wait_share);
	put_known_string(doc, wait, "object", from->object);
	put_number(doc, wait, "object_share", from->object_share);
	put_known_string(doc, wait, "culprit", from->culprit_comm);
	put_number(doc, wait, "culprit_share", from->culprit_share);
}

static void append_factor(struct json_doc *doc, struct json_object *array, const struct factor_line *from)
{
	struct json_object *line = append_object(doc, array), *bodies, *sites;
	size_t cnt = from->functions[1] ? 2 : 1;

	put_strings(doc, line, "functions", from->functions, cnt);
	put_number(doc, line, "contribution", from->contribution);
	put_count(doc, line, "height", from->height);
	put_number(doc, line, "score", from->score);
	put_count(doc, line, "call_sites", from->call_sites);
	sites = put_array(doc, line, "sites");
	for (size_t i = 0; i < from->site_cnt; i++) {
		struct json_object *site = append_object(doc, sites);

		put_string(doc, site, "caller", from->sites[i].caller);
		put_id(doc, site, "call_addr", from->sites[i].call_addr ? (int64_t)from->sites[i].call_addr : -1);
		put_number(doc, site, "contribution", from->sites[i].contribution);
	}
	put_ci(doc, line, "contribution_ci", from->contribution_ci);
	put_id(doc, line, "rank", from->rank ? (int64_t)from->rank : -1);
	put_strings(doc, line, "modules", from->modules, cnt);
	bodies = put_array(doc, line, "own_code_only");
	for (size_t i = 0; i < cnt; i++)
		append(doc, bodies, json_object_new_boolean(from->body[i]), false);
	put_string(doc, line, "caller", from->caller);
	put_bool(doc, line, "opened", from->opened);
	put_number(doc, line, "variance_share", from->variance_share);
	put_ci(doc, line, "variance_share_ci", from->variance_share_ci);
	put_number(doc, line, "tail_share", from->tail_share);
	put_ci(doc, line, "tail_share_ci", from->tail_share_ci);
	put_rounded(doc, line, "mean_ns", from->mean_ns);
	put_rounded(doc, line, "typical_ns", from->typical_ns);
	put_rounded(doc, line, "late_ns", from->late_ns);
	put_number(doc, line, "late_met", from->late_met);
	put_number(doc, line, "calls", from->calls);
	put_doings(doc, line, "time", from->doing_share);
	put_doings(doc, line, "variance", from->doing_contribution);
	put_wait(doc, line, from);
	put_string(doc, line, "source", from->sampled ? "samples" : "probes");
}

/* Like a factor, all of whose figures are unknown. */
static void append_unmeasured(struct json_doc *doc, struct json_object *array, const struct unmeasured_line *from)
{
	struct json_object *line = append_object(doc, array);

	put_strings(doc, line, "functions", &from->function, 1);
	put_strings(doc, line, "modules", &from->module, 1);
	put_number(doc, line, "contribution", NAN);
	put_number(doc, line, "height", NAN);
	put_number(doc, line, "score", NAN);
	put_number(doc, line, "call_sites", NAN);
	put_string(doc, line, "unmeasured", from->why);
	put_number(doc, line, "unmeasured_after_s", from->after_s);
}

static void put_rounds(struct json_doc *doc, struct json_object *tree, const struct factor_report *from)
{
	struct json_object *array = put_array(doc, tree, "rounds");

	for (size_t i = 0; i < from->round_cnt; i++) {
		const struct round_line *round = &from->rounds[i];
		struct json_object *line = append_object(doc, array);

		put_count(doc, line, "round", round->number);
		put_number(doc, line, "duration_s", round->duration_s);
		put_rounded(doc, line, "probes", round->probes);
		put_number(doc, line, "intervals_per_s", round->intervals_per_s);
		put_number(doc, line, "cost_share", round->cost_share);
	}
}

void json_put_factors(struct json_doc *doc, struct json_object *root, const struct report *report)
{
	const struct factor_report *from = report->factors;
	struct json_object *array = put_array(doc, root, "factors"), *tree;

	for (size_t i = 0; from && i < from->line_cnt; i++)
		append_factor(doc, array, &from->lines[i]);
	for (size_t i = 0; from && i < from->unmeasured_cnt; i++)
		append_unmeasured(doc, array, &from->unmeasured[i]);
	tree = put_known_object(doc, root, "factor_tree", from);
	if (!tree)
		return;
	put_count(doc, tree, "intervals", from->intervals);
	put_count(doc, tree, "intervals_lossy", from->lossy);
	/* Samples do not count calls. */
	put_number(doc, tree, "calls", from->sampled ? NAN : (double)from->calls);
	put_number(doc, tree, "calls_without_interval", from->sampled ? NAN : (double)from->orphans);
	put_count(doc, tree, "ticks", from->ticks);
	put_count(doc, tree, "waits", from->waits);
	put_count(doc, tree, "bad_rows", from->bad_rows);
	put_count(doc, tree, "selected", from->selected_cnt);
	put_count(doc, tree, "left_out", from->left_out);
	put_count(doc, tree, "graph_height", from->graph_height);
	put_count(doc, tree, "exponent", from->exponent);
	put_number(doc, tree, "unprobed_share", from->body_share);
	put_number(doc, tree, "queue_share", from->queue_share);
	put_rounds(doc, tree, from);
	put_number(doc, tree, "left_share", from->understood_cnt ? from->left_share : NAN);
	array = put_array(doc, tree, "understood");
	for (size_t i = 0; i < from->understood_cnt; i++) {
		struct json_object *line = append_object(doc, array);

		put_string(doc, line, "function", from->understood[i].function);
		put_number(doc, line, "contribution", from->understood[i].contribution);
		put_count(doc, line, "call_sites", from->understood[i].call_sites);
	}
}
