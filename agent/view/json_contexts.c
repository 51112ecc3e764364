// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/names.h"
#include "view/contexts.h"
#include "view/json_put.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <math.h>
#include <stdio.h>

static const char *type_name(const struct contexts *contexts, uint32_t type)
{
	return contexts->dataset->strings[contexts->types.items[type].name];
}

static void put_stages(struct json_doc *doc, struct json_object *object, const struct contexts *contexts, uint32_t line)
{
	struct json_object *array = put_array(doc, object, "stages");
	uint32_t path[CONTEXT_CHAIN_MAX + 1];
	size_t cnt = 0;

	for (; contexts->lines.items[line].stage && cnt < sizeof(path) / sizeof(path[0]);
	     line = contexts->lines.items[line].parent)
		path[cnt++] = contexts->lines.items[line].stage;
	while (cnt)
		append(doc, array, new_string(contexts_string(contexts, path[--cnt])), false);
}

static void put_lines(struct json_doc *doc, struct json_object *object, const struct contexts *contexts, uint32_t type)
{
	struct json_object *array = put_array(doc, object, "contexts");

	for (uint32_t i = 0; i < contexts->lines.cnt; i++) {
		const struct context_line *line = &contexts->lines.items[i];
		struct json_object *item;

		if (line->type != type || !(line->count > 0))
			continue;
		item = append_object(doc, array);
		put_stages(doc, item, contexts, i);
		put_rounded(doc, item, "count", line->count);
		put_rounded(doc, item, "cpu_ns", line->cpu_ns);
		put_rounded(doc, item, "wait_ns", line->wait_ns);
		put_number(doc, item, "tail_share", line->tail_share);
	}
}

/* The nodes of one tree; "parent" is an index into the same list, null for those that nothing calls. */
static int put_tree(struct json_doc *doc, struct json_object *object, const struct contexts *contexts, uint32_t type,
		    uint32_t part)
{
	struct json_object *array = put_array(doc, object, "call_tree");
	uint32_t *places = calloc(contexts->nodes.cnt + 1, sizeof(*places)), cnt = 0;

	if (!places)
		return -ENOMEM;
	for (uint32_t i = 0; i < contexts->nodes.cnt; i++) {
		const struct context_node *node = &contexts->nodes.items[i];
		struct json_object *item;

		if (node->type != type || node->part != part || node->parent == i)
			continue;
		places[i] = ++cnt;
		item = append_object(doc, array);
		put_string(doc, item, "function", contexts_string(contexts, node->name));
		put_id(doc, item, "parent", (int64_t)places[node->parent] - 1);
		put_rounded(doc, item, "on_cpu_ns", node->all_on_ns);
		put_rounded(doc, item, "off_cpu_ns", node->all_off_ns);
		put_rounded(doc, item, "self_on_cpu_ns", node->on_ns);
		put_rounded(doc, item, "self_off_cpu_ns", node->off_ns);
	}
	free(places);
	return 0;
}

static void put_chain(struct json_doc *doc, struct json_object *array, const struct contexts *contexts, uint32_t chain)
{
	const struct context_chain *at = &contexts->chains.items.items[chain];
	struct json_object *step;

	if (chain == CONTEXT_CHAIN_NONE)
		return;
	put_chain(doc, array, contexts, at->parent);
	step = append_object(doc, array);
	put_string(doc, step, "kind", chain == CONTEXT_CHAIN_OTHER ? "other" : handoff_name(at->kind));
	put_string(doc, step, "frames", *at->frames ? at->frames : NULL);
}

/* null: not known */
static void put_context_id(struct json_doc *doc, struct json_object *line, const char *key,
			   const struct contexts *contexts, uint32_t chain)
{
	char id[17];

	if (chain != CONTEXT_CHAIN_UNKNOWN)
		snprintf(id, sizeof(id), "%016" PRIx64, contexts->chains.items.items[chain].id);
	put_string(doc, line, key, chain == CONTEXT_CHAIN_UNKNOWN ? NULL : id);
}

/* By chain of call paths at hand-offs. */
static int put_parts(struct json_doc *doc, struct json_object *object, const struct contexts *contexts, uint32_t type)
{
	struct json_object *array;
	int err = 0;

	if (!contexts->parts.cnt)
		return 0;
	array = put_array(doc, object, "chains");
	for (uint32_t i = 0; i < contexts->parts.cnt && !err; i++) {
		const struct context_part *part = &contexts->parts.items[i];
		struct json_object *line;

		if (part->type != type)
			continue;
		line = append_object(doc, array);
		put_context_id(doc, line, "id", contexts, part->chain);
		put_chain(doc, put_array(doc, line, "handed_on"), contexts, part->chain);
		put_rounded(doc, line, "count", part->count);
		put_number(doc, line, "mean_ns", part->count > 0 ? part->latency_ns / part->count : NAN);
		put_number(doc, line, "cpu_share", view_part_cpu_share(contexts, part));
		err = put_tree(doc, line, contexts, type, i);
	}
	return err;
}

static int put_types(struct json_doc *doc, struct json_object *root, const struct contexts *contexts)
{
	struct json_object *array = put_array(doc, root, "types");
	int err = 0;

	for (uint32_t i = 0; i < contexts->types.cnt && !err; i++) {
		const struct context_type *type = &contexts->types.items[i];
		struct json_object *line = append_object(doc, array);

		put_string(doc, line, "type", type_name(contexts, i));
		put_rounded(doc, line, "count", type->count);
		put_rounded(doc, line, "mean_ns", type->mean_ns);
		put_rounded(doc, line, "p99_ns", type->p99_ns);
		put_rounded(doc, line, "cpu_ns", type->cpu_ns);
		put_rounded(doc, line, "wait_ns", type->wait_ns);
		put_number(doc, line, "cpu_share", type->cpu_share);
		put_number(doc, line, "late_share", type->late_share);
		put_lines(doc, line, contexts, i);
		err = put_tree(doc, line, contexts, i, UINT32_MAX);
		if (!err)
			err = put_parts(doc, line, contexts, i);
	}
	return err;
}

static void put_crosstalk(struct json_doc *doc, struct json_object *root, const struct contexts *contexts,
			  bool by_context)
{
	const struct context_crosstalk *crosstalk = by_context ? &contexts->by_context : &contexts->by_type;
	const char *key = by_context ? "crosstalk_by_context" : "crosstalk";
	struct json_object *array;

	if (!contexts->walked) {
		put_string(doc, root, key, NULL);
		return;
	}
	array = put_array(doc, root, key);
	for (size_t i = 0; i < crosstalk->items.cnt; i++) {
		const struct context_crossing *crossing = &crosstalk->items.items[i];
		struct json_object *line = append_object(doc, array);

		put_string(doc, line, "type", type_name(contexts, crossing->type));
		if (by_context)
			put_context_id(doc, line, "context", contexts, crossing->chain);
		put_string(doc, line, "by_type",
			   crossing->by_type ? contexts_string(contexts, crossing->by_type) : NULL);
		if (by_context)
			put_context_id(doc, line, "by_context", contexts, crossing->by_chain);
		put_string(doc, line, "category", category_name((enum wl_category)crossing->category));
		put_rounded(doc, line, "count", crossing->count);
		put_rounded(doc, line, "mean_ns", crossing->wait_ns / crossing->count);
		put_rounded(doc, line, "total_ns", crossing->wait_ns);
		put_number(doc, line, "tail_share", crossing->tail_share);
	}
}

int view_contexts_json(FILE *out, const struct contexts *contexts)
{
	struct json_object *root = json_object_new_object();
	struct json_doc doc = {0};

	if (!root)
		return -ENOMEM;
	put_string(&doc, root, "schema", "whylate.contexts/1");
	put_number(&doc, root, "tail", contexts->tail);
	put_rounded(&doc, root, "tail_threshold_ns", contexts->tail_threshold_ns);
	put_count(&doc, root, "intervals_kept", contexts->dataset->row_cnt);
	put_count(&doc, root, "paths", contexts->walked);
	put_count(&doc, root, "samples", contexts->sample_cnt);
	put_count(&doc, root, "contexts_folded", contexts->folded_lines);
	doc.err = put_types(&doc, root, contexts) ? -ENOMEM : doc.err;
	put_crosstalk(&doc, root, contexts, false);
	put_crosstalk(&doc, root, contexts, true);
	json_fronts(&doc, root, &contexts->fronts);
	if (put_tree(&doc, root, contexts, UINT32_MAX, UINT32_MAX))
		doc.err = -ENOMEM;
	return json_finish(out, &doc, root, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE);
}
