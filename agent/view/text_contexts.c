// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/folded.h"
#include "view/contexts.h"
#include "view/format.h"
#include "view/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHAIN_LEN    1024
#define CHILD_MIN    0.05 /* of its type's time: call paths below it are not told */
#define STRAIGHT_MIN 0.95 /* a callee with that much of its caller's time goes on the same line */
#define DEPTH_MAX    24
#define CHILDREN_MAX 16
#define CONTEXT_MIN  0.005 /* of a type's time */

/* --- names -------------------------------------------------------------------------------------------------------- */

const char *view_type_name(const struct contexts *contexts, uint32_t type)
{
	const char *name = contexts->dataset->strings[contexts->types.items[type].name];

	return *name ? name : "(no name)";
}

/* "tcp:80 GET / > socket app > unix mariadbd", in buf. */
static const char *view_context_chain(char *buf, size_t sz, const struct contexts *contexts, uint32_t line)
{
	const struct context_line *at = &contexts->lines.items[line];
	size_t len;

	if (!at->stage) {
		snprintf(buf, sz, "%s", view_type_name(contexts, at->type));
		return buf;
	}
	view_context_chain(buf, sz, contexts, at->parent);
	len = strlen(buf);
	snprintf(buf + len, sz - len, " > %s", contexts_string(contexts, at->stage));
	return buf;
}

/* --- call trees --------------------------------------------------------------------------------------------------- */

static double all_ns(const struct context_node *node)
{
	return node->all_on_ns + node->all_off_ns;
}

/* The largest callees of a node, largest first, of at least min_ns. */
static size_t find_children(const struct contexts *contexts, uint32_t parent, double min_ns,
			    uint32_t children[CHILDREN_MAX])
{
	const struct context_node *nodes = contexts->nodes.items;
	size_t cnt = 0, at;

	for (uint32_t i = parent + 1; i < contexts->nodes.cnt; i++) {
		if (nodes[i].parent != parent || all_ns(&nodes[i]) < min_ns)
			continue;
		if (cnt == CHILDREN_MAX && all_ns(&nodes[i]) <= all_ns(&nodes[children[cnt - 1]]))
			continue;
		for (at = cnt < CHILDREN_MAX ? cnt++ : cnt - 1;
		     at && all_ns(&nodes[children[at - 1]]) < all_ns(&nodes[i]); at--)
			children[at] = children[at - 1];
		children[at] = i;
	}
	return cnt;
}

static void print_node(struct page *page, const struct contexts *contexts, uint32_t node, double whole_ns, int depth,
		       size_t indent)
{
	const struct context_node *nodes = contexts->nodes.items;
	uint32_t children[CHILDREN_MAX];
	char text[FORMAT_SZ], line[CHAIN_LEN];
	size_t cnt;

	snprintf(line, sizeof(line), "%s  %s", format_share(text, all_ns(&nodes[node]) / whole_ns),
		 contexts_string(contexts, nodes[node].name));
	for (;;) {
		size_t len = strlen(line);

		cnt = find_children(contexts, node, CHILD_MIN * whole_ns, children);
		if (cnt != 1 || all_ns(&nodes[children[0]]) < STRAIGHT_MIN * all_ns(&nodes[node]) ||
		    len + 300 > sizeof(line))
			break;
		node = children[0];
		snprintf(line + len, sizeof(line) - len, " > %s", contexts_string(contexts, nodes[node].name));
	}
	if (all_ns(&nodes[node]) > 0 && nodes[node].all_off_ns > 0.05 * all_ns(&nodes[node])) {
		size_t len = strlen(line);

		snprintf(line + len, sizeof(line) - len, " (%s of it off the CPU)",
			 format_share(text, nodes[node].all_off_ns / all_ns(&nodes[node])));
	}
	page__paragraph(page, indent + 2 * (size_t)depth, line, indent + 2 * (size_t)depth + 2);
	for (size_t i = 0; i < cnt && depth < DEPTH_MAX; i++)
		print_node(page, contexts, children[i], whole_ns, depth + 1, indent);
}

static void print_tree(struct page *page, const struct contexts *contexts, uint32_t root, size_t indent)
{
	uint32_t children[CHILDREN_MAX];
	double whole_ns;
	size_t cnt;

	if (root == UINT32_MAX)
		return;
	whole_ns = all_ns(&contexts->nodes.items[root]);
	cnt = find_children(contexts, root, CHILD_MIN * whole_ns, children);
	for (size_t i = 0; i < cnt; i++)
		print_node(page, contexts, children[i], whole_ns, 0, indent);
}

/* --- contexts by call paths ----------------------------------------------------------------------------------------
 */

double view_part_cpu_share(const struct contexts *contexts, const struct context_part *part)
{
	if (!(contexts->sample_on_ns > 0))
		return NAN;
	return part->node == UINT32_MAX ? 0 : contexts->nodes.items[part->node].all_on_ns / contexts->sample_on_ns;
}

static bool part_comes_before(const struct contexts *contexts, const struct context_part *a,
			      const struct context_part *b)
{
	double share_a = view_part_cpu_share(contexts, a), share_b = view_part_cpu_share(contexts, b);

	if (share_a != share_b && !isnan(share_a) && !isnan(share_b))
		return share_a > share_b;
	return a->count > b->count;
}

/* The next part of that type behind `last` (NULL: the first). */
static const struct context_part *next_part(const struct contexts *contexts, uint32_t type,
					    const struct context_part *last)
{
	const struct context_part *next = NULL, *parts = contexts->parts.items;

	for (size_t i = 0; i < contexts->parts.cnt; i++) {
		const struct context_part *part = &parts[i];
		bool is_behind = true;

		if (last)
			is_behind = part_comes_before(contexts, last, part) ||
				    (part > last && !part_comes_before(contexts, part, last));
		if (part->type == type && is_behind && (!next || part_comes_before(contexts, part, next)))
			next = part;
	}
	return next;
}

/* The contexts of a type: how many of its requests ended in each, what CPU time and which call paths each took. */
static bool print_parts(struct page *page, const struct contexts *contexts, uint32_t type, uint32_t top)
{
	const struct context_part *part = next_part(contexts, type, NULL);
	char chain[CHAIN_LEN], text[2][FORMAT_SZ];
	uint32_t cnt = 0;

	if (!part || (part->chain == CONTEXT_CHAIN_NONE && !next_part(contexts, type, part)))
		return false;
	page__paragraph(page, 4, "contexts: how they were handed on, and call paths in each", 6);
	for (; part && (!top || cnt < top); part = next_part(contexts, type, part), cnt++) {
		page__paragraph(page, 6, view_handed_on(chain, sizeof(chain), &contexts->chains, part->chain), 8);
		page__to(page, 8);
		page__printf(page, "%s of the program's CPU time in samples; %s requests ended in it",
			     format_share(text[0], view_part_cpu_share(contexts, part)),
			     format_weighted(text[1], part->count));
		if (part->count > 0)
			page__printf(page, ", mean %s",
				     view_duration(text[0], FORMAT_SZ, part->latency_ns / part->count));
		page__end_line(page);
		print_tree(page, contexts, part->node, 10);
	}
	return true;
}

/* --- types -------------------------------------------------------------------------------------------------------- */

static void print_contexts(struct page *page, const struct contexts *contexts, uint32_t type)
{
	const struct context_line *lines = contexts->lines.items;
	double whole_ns = 0;
	size_t cnt = 0;
	char chain[CHAIN_LEN], text[4][FORMAT_SZ];

	for (uint32_t i = 0; i < contexts->lines.cnt; i++)
		if (lines[i].type == type && lines[i].count > 0) {
			whole_ns += lines[i].cpu_ns + lines[i].wait_ns;
			cnt++;
		}
	if (cnt < 2)
		return;
	page__paragraph(page, 4, "handed on to", 6);
	for (uint32_t i = 0; i < contexts->lines.cnt; i++) {
		const struct context_line *line = &lines[i];

		if (line->type != type || !line->stage || line->cpu_ns + line->wait_ns < CONTEXT_MIN * whole_ns)
			continue;
		view_context_chain(chain, sizeof(chain), contexts, i);
		page__to(page, 6);
		/* Without the type that all of them begin with. */
		page__words(page, chain + strlen(view_type_name(contexts, type)) + 3, 8);
		page__line(page, ":");
		page__to(page, 8);
		page__line(page, "%s requests, on the CPU %s each, waiting %s, %s of the tail",
			   format_weighted(text[0], line->count),
			   view_duration(text[1], FORMAT_SZ, line->cpu_ns / line->count),
			   view_duration(text[2], FORMAT_SZ, line->wait_ns / line->count),
			   format_share(text[3], line->tail_share));
	}
}

static void print_type(struct page *page, const struct contexts *contexts, uint32_t idx, uint32_t top)
{
	const struct context_type *type = &contexts->types.items[idx];
	char text[4][FORMAT_SZ];

	page__end_line(page);
	page__style(page, PAGE_BOLD);
	page__words(page, view_type_name(contexts, idx), 2);
	page__style(page, PAGE_PLAIN);
	page__end_line(page);
	page__to(page, 4);
	page__line(page, "%s requests, mean %s, p99 %s; %s of the lateness", format_weighted(text[0], type->count),
		   view_duration(text[1], FORMAT_SZ, type->mean_ns), view_duration(text[2], FORMAT_SZ, type->p99_ns),
		   format_share(text[3], type->late_share));
	page__to(page, 4);
	page__printf(page, "on the CPU %s a request, waiting %s; ",
		     view_duration(text[0], FORMAT_SZ, type->cpu_ns / type->count),
		     view_duration(text[1], FORMAT_SZ, type->wait_ns / type->count));
	page__line(page, "%s of the program's CPU time", format_share(text[2], type->cpu_share));
	print_contexts(page, contexts, idx);
	if (print_parts(page, contexts, idx, top))
		return;
	if (type->node != UINT32_MAX)
		page__paragraph(page, 4, "call paths, of its time in samples", 6);
	print_tree(page, contexts, type->node, 6);
}

/* By lateness, then by time. */
static bool comes_before(const struct context_type *a, const struct context_type *b)
{
	double late_a = isnan(a->late_share) ? 0 : a->late_share, late_b = isnan(b->late_share) ? 0 : b->late_share;

	return late_a != late_b ? late_a > late_b : a->count * a->mean_ns > b->count * b->mean_ns;
}

static uint32_t *types_in_order(const struct contexts *contexts)
{
	uint32_t *order = calloc(contexts->types.cnt + 1, sizeof(*order));
	size_t at;

	for (uint32_t i = 0; order && i < contexts->types.cnt; i++) {
		for (at = i; at && comes_before(&contexts->types.items[i], &contexts->types.items[order[at - 1]]); at--)
			order[at] = order[at - 1];
		order[at] = i;
	}
	return order;
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

int view_contexts_text(FILE *out, const struct contexts *contexts, const struct view_opts *opts)
{
	uint32_t *order = types_in_order(contexts);
	char text[FORMAT_SZ];
	struct page page;

	if (!order)
		return -ENOMEM;
	page__open(&page, out, opts->colour);
	page__printf(&page, "%s types", format_count(text, contexts->types.cnt));
	page__printf(&page, ", %s requests kept", format_count(text, contexts->dataset->row_cnt));
	page__printf(&page, "; late: %s and more", view_duration(text, sizeof(text), contexts->tail_threshold_ns));
	page__end_line(&page);
	for (size_t i = 0; i < text_limit(contexts->types.cnt, opts->top); i++)
		print_type(&page, contexts, order[i], opts->top);
	text_more(&page, contexts->types.cnt, opts->top);
	if (contexts->no_request != UINT32_MAX) {
		page__end_line(&page);
		text_heading(&page, "Outside of any request, while it delayed some");
		print_tree(&page, contexts, contexts->no_request, 6);
	}
	text_crosstalk(&page, contexts, opts->top);
	text_fronts(&page, &contexts->fronts, opts->top);
	if (!contexts->walked)
		page__paragraph(&page, 0, "No chains of hand-offs and no crosstalk: record with --mode trace", 2);
	if (!contexts->sample_cnt)
		page__paragraph(&page, 0, "No call paths: record with --stacks", 2);
	free(order);
	return page__close(&page);
}

/* --- folded ------------------------------------------------------------------------------------------------------- */

static void put_frames(char *line, size_t sz, const struct contexts *contexts, uint32_t node)
{
	const struct context_node *nodes = contexts->nodes.items;
	uint32_t path[512];
	size_t cnt = 0;

	for (; nodes[node].parent != node && cnt < sizeof(path) / sizeof(path[0]); node = nodes[node].parent)
		path[cnt++] = nodes[node].name;
	while (cnt)
		folded_add(line, sz, contexts_string(contexts, path[--cnt]));
}

int view_contexts_folded(FILE *out, const struct contexts *contexts)
{
	static const char *const sides[] = {"on", "off"};
	static char line[64 * 1024];
	char chain[CHAIN_LEN];

	for (uint32_t i = 0; i < contexts->nodes.cnt; i++) {
		const struct context_node *node = &contexts->nodes.items[i];
		const double ns[] = {node->on_ns, node->off_ns};

		/* A sample of a request is in the tree of its type, and in that of its context. */
		if (contexts->parts.cnt && node->type != UINT32_MAX && node->part == UINT32_MAX)
			continue;
		for (int side = 0; side < 2; side++) {
			if (!(ns[side] >= 0.5))
				continue;
			*line = '\0';
			folded_add(line, sizeof(line),
				   node->type == UINT32_MAX ? "no request" : view_type_name(contexts, node->type));
			if (node->part != UINT32_MAX)
				folded_add(line, sizeof(line),
					   view_handed_on(chain, sizeof(chain), &contexts->chains,
							  contexts->parts.items[node->part].chain));
			folded_add(line, sizeof(line), sides[side]);
			put_frames(line, sizeof(line), contexts, i);
			fprintf(out, "%s %.0f\n", line, ns[side]);
		}
	}
	return fflush(out) || ferror(out) ? -EIO : 0;
}
