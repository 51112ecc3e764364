// SPDX-License-Identifier: GPL-2.0-or-later
/* The keys "root", "ways" and "gain" of a cause, null where no chain was recorded, and the account of all roots. */
#include "view/json_put.h"

#include "base/names.h"

#include <inttypes.h>

static const char *const kinds[ROOT_KIND_CNT] = {"code", "disk", "peer", "timer", "quota", "full_machine", "unknown"};

static void put_ways(struct json_doc *doc, struct json_object *line, const struct cause *from)
{
	struct json_object *array = put_array(doc, line, "ways");

	for (size_t i = 0; i < from->way_cnt; i++) {
		const struct cause_way *way = &from->ways[i];
		struct json_object *object = append_object(doc, array);

		put_string(doc, object, "category", category_name(way->category));
		put_string(doc, object, "wait", category_name(way->wait));
		put_number(doc, object, "share", way->share);
		put_strings(doc, object, "hops", way->hops, way->hop_cnt);
		put_bool(doc, object, "own", way->own);
	}
}

/* As whylate.contexts/1 has them. */
static void put_context(struct json_doc *doc, struct json_object *root, const struct cause_root *from)
{
	struct json_object *context, *array;
	char id[32];

	context = put_known_object(doc, root, "context", from->context_id);
	if (!context)
		return;
	snprintf(id, sizeof(id), "%016" PRIx64, from->context_id);
	put_string(doc, context, "id", id);
	array = put_array(doc, context, "handed_on");
	for (size_t i = 0; i < from->handoff_cnt; i++) {
		struct json_object *step = append_object(doc, array);

		put_string(doc, step, "kind", from->handoffs[i].kind);
		put_string(doc, step, "frames", from->handoffs[i].frames);
	}
}

void json_put_root(struct json_doc *doc, struct json_object *line, const struct cause *from)
{
	struct json_object *root, *gain;

	if (!from->has_root) {
		put(doc, line, "root", NULL, true);
		put(doc, line, "ways", NULL, true);
		put(doc, line, "gain", NULL, true);
		return;
	}
	root = put_object(doc, line, "root");
	put_string(doc, root, "kind", kinds[from->root.kind]);
	put_strings(doc, root, "call_path", from->root.call_path, from->root.call_path_cnt);
	put_known_string(doc, root, "role", from->root.role);
	put_string(doc, root, "type", from->root.type);
	put_context(doc, root, &from->root);
	put_string(doc, root, "object", from->root.object);
	put_ways(doc, line, from);
	gain = put_object(doc, line, "gain");
	put_rounded(doc, gain, "mean_ns", from->gain.mean_ns);
	put_ci(doc, gain, "mean_ci", from->gain.mean_ci);
	put_rounded(doc, gain, "p99_ns", from->gain.p99_ns);
	put_ci(doc, gain, "p99_ci", from->gain.p99_ci);
	put_rounded(doc, gain, "p999_ns", from->gain.p999_ns);
	put_ci(doc, gain, "p999_ci", from->gain.p999_ci);
	put_bool(doc, gain, "lower_bound", from->gain.lower_bound);
}

void json_put_delivery(struct json_doc *doc, struct json_object *root, const struct report_delivery *from)
{
	struct json_object *to = put_known_object(doc, root, "delivery", from->known);

	if (!to)
		return;
	put_count(doc, to, "replies", from->replies);
	put_count(doc, to, "held", from->held);
	put_count(doc, to, "held_by_window", from->by_window);
	put_rounded(doc, to, "held_by_loss", from->resent_known ? (double)from->resent : NAN);
	put_rounded(doc, to, "mean_ns", from->mean_ns);
	put_rounded(doc, to, "p99_ns", from->p99_ns);
	put_rounded(doc, to, "late_ns", from->late_ns);
}

void json_put_account(struct json_doc *doc, struct json_object *root, const struct report *report)
{
	const struct root_account *from = report->roots;
	struct json_object *account = put_known_object(doc, root, "account", from);

	if (!account)
		return;
	put_number(doc, account, "tail_ns", from->tail_ns);
	put_number(doc, account, "roots_ns", from->roots_ns);
	put_number(doc, account, "our_own_ns", from->our_own_ns);
	put_number(doc, account, "not_attributed_ns", from->not_attributed_ns);
	put_number(doc, account, "left_out_ns", from->left_out_ns);
	put_rounded(doc, account, "p99_ns", from->p99_ns);
	put_count(doc, account, "samples", from->samples);
}
