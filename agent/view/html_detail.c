// SPDX-License-Identifier: GPL-2.0-or-later
/* What the flame graph is made of: for each request its ways to roots, and the samples that fell into them. */
#include "view/html_data.h"

#include "base/names.h"
#include "base/random.h"

#include <math.h>
#include <stdlib.h>

#define PARTS_MAX  150000 /* entries and samples */
#define LATE_PARTS 0.7    /* of them, at most, for late requests */

/* --- call paths ----------------------------------------------------------------------------------------------------
 */

/* Those that the page names: the header's "nodes" and "names".  Node 0 is that of no frame. */
struct path_nodes {
	const struct samples *samples;
	struct idmap ids, name_ids;
	VEC(struct sample_node) nodes; /* parents and names by the page's numbers */
	VEC(uint32_t) names;           /* of the samples */
};

static int add_node(struct path_nodes *nodes, uint32_t node, uint32_t *id)
{
	const struct sample_node *from = &nodes->samples->nodes.items[node];
	struct sample_node made = {.parent = 0};
	uint32_t known = nodes->name_ids.cnt;

	if (idmap__id(&nodes->name_ids, from->name, 0, &made.name) ||
	    (made.name == known && vec_push(&nodes->names, from->name)))
		return -ENOMEM;
	idmap__find(&nodes->ids, from->parent, 0, &made.parent);
	/* A new one: its parent is there already. */
	return idmap__id(&nodes->ids, node, 0, id) ? -ENOMEM : vec_push(&nodes->nodes, made);
}

/* The page's number of a node: 0 or -ENOMEM. */
static int path_nodes__id(struct path_nodes *nodes, uint32_t node, uint32_t *id)
{
	VEC(uint32_t) missing = {0};
	uint32_t at = node;
	int err = 0;

	if (!nodes->ids.cnt &&
	    (idmap__id(&nodes->ids, SAMPLE_ROOT, 0, id) || vec_push(&nodes->nodes, (struct sample_node){0})))
		return -ENOMEM;
	while (!err && !idmap__find(&nodes->ids, at, 0, id)) {
		err = vec_push(&missing, at);
		at = nodes->samples->nodes.items[at].parent;
	}
	while (!err && missing.cnt)
		err = add_node(nodes, missing.items[--missing.cnt], id);
	vec_free(&missing);
	return err;
}

static void path_nodes__put(struct html_pack *pack, const struct path_nodes *nodes)
{
	struct json_object *array = put_array(&pack->doc, pack->header, "nodes"), *pair;

	for (size_t i = 0; i < nodes->nodes.cnt; i++) {
		pair = json_object_new_array();
		append(&pack->doc, array, pair, false);
		append(&pack->doc, pair, json_object_new_int64(nodes->nodes.items[i].parent), false);
		append(&pack->doc, pair, json_object_new_int64(nodes->nodes.items[i].name), false);
	}
	array = put_array(&pack->doc, pack->header, "names");
	for (size_t i = 0; i < nodes->names.cnt; i++)
		append(&pack->doc, array, html_pack__string(pack, nodes->samples->names.strings[nodes->names.items[i]]),
		       false);
}

static void path_nodes__free(struct path_nodes *nodes)
{
	idmap__free(&nodes->ids);
	idmap__free(&nodes->name_ids);
	vec_free(&nodes->nodes);
	vec_free(&nodes->names);
}

/* --- ways ----------------------------------------------------------------------------------------------------------
 */

static const char *leaf_of(const struct root_key *key)
{
	static const char *const leaves[ROOT_KIND_CNT + 1] = {"(no sample)", "a disk",        "a peer",
							      "a timer",     "a CPU quota",   "a full machine",
							      "(not known)", "whylate itself"};

	return key->kind <= ROOT_KIND_CNT ? leaves[key->kind] : "(not known)";
}

static void put_frame(struct html_pack *pack, struct json_object *frames, const char *text)
{
	append(&pack->doc, frames, html_pack__string(pack, text), false);
}

/* Frames from the request to its root: the wait, what it was about, the threads in between, the root's thread. */
static void put_way(struct html_pack *pack, struct json_object *ways, const struct roots *roots,
		    const struct root_way *way)
{
	const struct root_key *key = &roots->keys.items[way->key];
	const char *role = roots_string(roots, key->role), *type = roots_string(roots, key->type);
	struct json_object *line = append_object(&pack->doc, ways), *frames = put_array(&pack->doc, line, "prefix");
	char text[320];

	html_pack__put_string(pack, line, "leaf", leaf_of(key));
	if (way->own && way->category == WL_CATEGORY_ONCPU) {
		put_frame(pack, frames, "own work");
		return;
	}
	put_frame(pack, frames, category_label((enum wl_category)(way->own ? way->category : way->wait)));
	if (way->own)
		return;
	if (!way->by_address && way->object)
		put_frame(pack, frames, roots_string(roots, (uint32_t)way->object));
	for (size_t h = 0; h < PATH_HOPS_MAX && way->hops[h]; h++)
		put_frame(pack, frames, roots_string(roots, way->hops[h]));
	if (way->category != way->wait)
		put_frame(pack, frames, category_label((enum wl_category)way->category));
	if (role && way->other) {
		snprintf(text, sizeof(text), "%.140s%s%.140s", role, type ? " for " : "", type ? type : "");
		put_frame(pack, frames, text);
	}
}

/* --- requests ------------------------------------------------------------------------------------------------------
 */

struct detail {
	struct html_pack *pack;
	const struct findings *findings;
	struct path_nodes nodes;
	struct json_object *ways;
	struct idmap way_ids;
	uint32_t *first; /* by row of the dataset: its entries are entries[first[row]…first[row + 1]) */
	double share[2]; /* of other and of late requests that have room */
};

static int index_entries(struct detail *detail)
{
	const struct roots *roots = &detail->findings->roots;
	size_t row_cnt = detail->findings->dataset.row_cnt;

	detail->first = calloc(row_cnt + 2, sizeof(*detail->first));
	if (!detail->first)
		return -ENOMEM;
	for (size_t e = 0; e < roots->entries.cnt; e++)
		detail->first[roots->entries.items[e].row + 1]++;
	for (size_t row = 0; row < row_cnt; row++)
		detail->first[row + 1] += detail->first[row];
	return 0;
}

static size_t part_cnt(const struct detail *detail, uint32_t row)
{
	size_t cnt = 0;

	for (uint32_t e = detail->first[row]; e < detail->first[row + 1]; e++)
		cnt += 1 + detail->findings->roots.entries.items[e].tick_cnt;
	return cnt;
}

static void choose_shares(struct detail *detail, const struct html_rows *rows)
{
	size_t parts[2] = {0, 0};
	double left;

	for (size_t i = 0; i < rows->cnt; i++)
		parts[html_is_late(detail->findings, rows->rows[i])] += part_cnt(detail, rows->rows[i]);
	detail->share[1] = fmin(1, LATE_PARTS * PARTS_MAX / fmax(1, (double)parts[1]));
	left = PARTS_MAX - detail->share[1] * (double)parts[1];
	detail->share[0] = fmin(1, left / fmax(1, (double)parts[0]));
}

static bool has_room(const struct detail *detail, uint32_t row)
{
	return part_cnt(detail, row) && (double)(random_mix(~(uint64_t)row) >> 11) * 0x1p-53 <
						detail->share[html_is_late(detail->findings, row)];
}

static int put_entry(struct detail *detail, const struct root_entry *entry)
{
	const struct roots *roots = &detail->findings->roots;
	uint32_t way, known = detail->way_ids.cnt, node;

	if (idmap__id(&detail->way_ids, entry->way, 0, &way))
		return -ENOMEM;
	if (way == known)
		put_way(detail->pack, detail->ways, roots, &roots->ways.items[entry->way]);
	html_pack__number(detail->pack, way);
	html_pack__ns(detail->pack, entry->ns);
	html_pack__number(detail->pack, entry->tick_cnt);
	for (uint32_t t = 0; t < entry->tick_cnt; t++) {
		const struct root_tick *tick = &roots->ticks.items[entry->tick + t];

		if (path_nodes__id(&detail->nodes, tick->node, &node))
			return -ENOMEM;
		html_pack__number(detail->pack, node);
		html_pack__ns(detail->pack, (uint64_t)fmin(fmax(tick->amount, 1), 1e15));
	}
	return 0;
}

static int put_requests(struct detail *detail, const struct html_rows *rows)
{
	uint64_t cnt = 0, before = 0;
	int err = 0;

	for (size_t i = 0; i < rows->cnt; i++)
		cnt += has_room(detail, rows->rows[i]);
	html_pack__column(detail->pack, "detail");
	html_pack__number(detail->pack, cnt);
	for (size_t i = 0; i < rows->cnt && !err; i++) {
		uint32_t row = rows->rows[i];

		if (!has_room(detail, row))
			continue;
		html_pack__number(detail->pack, i - before);
		html_pack__number(detail->pack, html_is_late(detail->findings, row));
		html_pack__number(detail->pack, detail->first[row + 1] - detail->first[row]);
		for (uint32_t e = detail->first[row]; e < detail->first[row + 1] && !err; e++)
			err = put_entry(detail, &detail->findings->roots.entries.items[e]);
		before = i + 1;
	}
	return err;
}

void html_detail(struct html_pack *pack, const struct findings *findings, const struct html_rows *rows)
{
	struct detail detail = {.pack = pack, .findings = findings, .nodes.samples = &findings->samples};
	struct json_object *factors = put_array(&pack->doc, pack->header, "detail_factors");
	int err = 0;

	detail.ways = put_array(&pack->doc, pack->header, "ways");
	if (!findings->paths.traces)
		return;
	err = index_entries(&detail);
	if (!err) {
		choose_shares(&detail, rows);
		for (int late = 0; late < 2; late++)
			append(&pack->doc, factors, new_number(1 / fmax(detail.share[late], 1e-9)), false);
		err = put_requests(&detail, rows);
		path_nodes__put(pack, &detail.nodes);
	}
	if (err)
		pack->doc.err = err;
	path_nodes__free(&detail.nodes);
	idmap__free(&detail.way_ids);
	free(detail.first);
}
