// SPDX-License-Identifier: GPL-2.0-or-later
/* Causes by root: the lines of roots_lines.c with their shares, ways and gains. */
#include "analysis/roots_report.h"

#include "analysis/causes.h"
#include "analysis/stats.h"
#include "base/names.h"
#include "base/order.h"
#include "model/stack_texts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHARE_MIN     0.01 /* smaller roots are not worth a line */
#define WAY_SHARE_MIN 0.005
#define CAUSES_MAX    20
#define PATH_MAX_CNT  64 /* frames of a call path */

static int compute_shares(struct root_lines *lines, const struct share_opts *opts)
{
	struct share_part *parts = calloc(lines->cnt + 1, sizeof(*parts));
	int err;

	if (!parts)
		return -ENOMEM;
	for (size_t l = 0; l < lines->cnt; l++)
		parts[l] = (struct share_part){.values = lines->lines[l].ns, .slot_cnt = 1};
	parts[lines->cnt] = (struct share_part){.values = lines->lines[ROOT_LINES_MAX].ns, .slot_cnt = 1};
	err = shares_compute(parts, lines->cnt + 1, &lines->ranked->rows, opts);
	for (size_t l = 0; l < lines->cnt && !err; l++)
		lines->lines[l].share = parts[l].total;
	free(parts);
	return err;
}

/* --- what it is ----------------------------------------------------------------------------------------------------
 */

static int fill_call_path(struct cause_root *root, const struct roots *roots, const struct root_branch *branch,
			  struct arena *arena)
{
	uint32_t nodes[PATH_MAX_CNT], node = branch->cut;
	size_t cnt = 0, first = 0;

	while (node != SAMPLE_ROOT && cnt < PATH_MAX_CNT) {
		nodes[cnt++] = node;
		if (node == branch->shown)
			break;
		node = roots->samples->nodes.items[node].parent;
	}
	while (first + 1 < cnt && samples_is_start(samples_name(roots->samples, nodes[cnt - 1 - first])))
		first++;
	root->call_path = arena__alloc(arena, cnt, sizeof(*root->call_path));
	if (!root->call_path)
		return -ENOMEM;
	for (size_t i = first; i < cnt; i++) {
		const char *name = arena__strdup(arena, samples_name(roots->samples, nodes[cnt - 1 - i]));

		if (!name)
			return -ENOMEM;
		root->call_path[root->call_path_cnt++] = name;
	}
	return 0;
}

/* Which function of the call path is the program's: the innermost that is not the kernel's, where there is one. */
static size_t function_place(const struct roots *roots, const struct root_branch *branch, const struct cause_root *root)
{
	const struct sample_node *nodes = roots->samples->nodes.items;
	uint32_t node = branch->cut;
	size_t place = root->call_path_cnt - 1;

	for (; place && nodes[node].kernel; node = nodes[node].parent)
		place--;
	return nodes[node].kernel || *samples_name(roots->samples, node) == '[' ? root->call_path_cnt - 1 : place;
}

static int copy_text(const char **to, const struct roots *roots, uint32_t id, struct arena *arena)
{
	if (!id)
		return 0;
	*to = arena__strdup(arena, roots_string(roots, id));
	return *to ? 0 : -ENOMEM;
}

static int fill_root(struct cause *cause, const struct roots *roots, const struct root_line *line, struct arena *arena)
{
	const struct root_key *key = &roots->keys.items[line->key];
	struct cause_root *root = &cause->root;

	cause->has_root = true;
	root->kind = key->kind;
	if (copy_text(&root->role, roots, key->role, arena) || copy_text(&root->type, roots, key->type, arena) ||
	    copy_text(&root->object, roots, key->object, arena))
		return -ENOMEM;
	if (line->branch.cut != SAMPLE_ROOT && fill_call_path(root, roots, &line->branch, arena))
		return -ENOMEM;
	if (root->call_path_cnt)
		cause->function = root->call_path[function_place(roots, &line->branch, root)];
	if (cause->function && !strcmp(cause->function, STACK_UNKNOWN))
		cause->function = NULL;
	return 0;
}

/* --- its ways ------------------------------------------------------------------------------------------------------
 */

static bool same_way(const struct root_way *a, const struct root_way *b)
{
	return a->category == b->category && a->wait == b->wait && a->own == b->own && a->other == b->other &&
	       a->spins == b->spins && !memcmp(a->hops, b->hops, sizeof(a->hops));
}

ORDER(compare_ways, struct cause_way, BY(b->share, a->share), BY(a->category, b->category));

/* Where they are of the most, what they were about and whether the root is another thread. */
static int fill_category(struct cause *cause, const struct root_lines *lines, uint32_t line, struct arena *arena)
{
	const struct roots *roots = lines->roots;
	const struct root_key *key = &roots->keys.items[lines->lines[line].key];
	const struct root_way *most = NULL;
	double most_ns = 0, by_category[WL_CATEGORY_CNT] = {0};

	for (size_t i = 0; i < lines->ways.cnt; i++)
		if (lines->ways.items[i].line == line)
			by_category[roots->ways.items[lines->ways.items[i].way].category] +=
				lines->ways.items[i].tail_ns;
	for (int c = 0; c < WL_CATEGORY_CNT; c++)
		if (by_category[c] > by_category[cause->category])
			cause->category = (enum wl_category)c;
	for (size_t i = 0; i < lines->ways.cnt; i++) {
		const struct root_line_way *at = &lines->ways.items[i];
		const struct root_way *way = &roots->ways.items[at->way];

		if (at->line != line || way->category != cause->category || (most && at->tail_ns <= most_ns))
			continue;
		most = way;
		most_ns = at->tail_ns;
	}
	if (!most)
		return 0;
	if (most->by_address && !(cause->object = arena__printf(arena, "0x%llx", (unsigned long long)most->object)))
		return -ENOMEM;
	if (!most->by_address && copy_text(&cause->object, roots, (uint32_t)most->object, arena))
		return -ENOMEM;
	if (!most->other)
		return 0;
	cause->culprit_pid = key->pids.cnt == 1 ? (int64_t)key->pids.ids[0] : -1;
	cause->culprit_tid = key->tids.cnt == 1 ? (int64_t)key->tids.ids[0] : -1;
	cause->culprit_comm = cause->root.role;
	return copy_text(&cause->culprit_host, roots, key->host, arena);
}

/* Most of its time was work for the requests that waited for it. */
static bool is_for_requests(const struct root_lines *lines, uint32_t line)
{
	double all_ns = 0, for_it_ns = 0;

	for (size_t i = 0; i < lines->ways.cnt; i++) {
		const struct root_line_way *at = &lines->ways.items[i];

		if (at->line != line)
			continue;
		all_ns += at->tail_ns;
		for_it_ns += lines->roots->ways.items[at->way].for_it ? at->tail_ns : 0;
	}
	return 2 * for_it_ns > all_ns;
}

/* Where requests in several contexts were in the way, the one that was longest. */
static int fill_context(struct cause *cause, const struct root_lines *lines, uint32_t line, struct arena *arena)
{
	const struct context_chains *chains = &lines->roots->traces->chains;
	double *tail_ns = calloc(chains->items.cnt + 1, sizeof(*tail_ns));
	uint32_t most = CONTEXT_CHAIN_NONE;
	size_t depth = 0;

	if (!tail_ns)
		return -ENOMEM;
	for (size_t i = 0; i < lines->ways.cnt; i++)
		if (lines->ways.items[i].line == line)
			tail_ns[lines->roots->ways.items[lines->ways.items[i].way].context] +=
				lines->ways.items[i].tail_ns;
	for (uint32_t i = 0; i < chains->items.cnt; i++)
		if (tail_ns[i] > tail_ns[most])
			most = i;
	free(tail_ns);
	if (most == CONTEXT_CHAIN_NONE)
		return 0;
	for (uint32_t at = most; at != CONTEXT_CHAIN_NONE; at = chains->items.items[at].parent)
		depth++;
	cause->root.context_id = chains->items.items[most].id;
	cause->root.handoffs = arena__alloc(arena, depth, sizeof(*cause->root.handoffs));
	if (!cause->root.handoffs)
		return -ENOMEM;
	cause->root.handoff_cnt = depth;
	for (uint32_t at = most; at != CONTEXT_CHAIN_NONE; at = chains->items.items[at].parent) {
		const struct context_chain *chain = &chains->items.items[at];
		struct cause_handoff *to = &cause->root.handoffs[--depth];

		to->kind = at == CONTEXT_CHAIN_OTHER ? "other" : handoff_name(chain->kind);
		to->frames = *chain->frames ? arena__strdup(arena, chain->frames) : NULL;
		if (*chain->frames && !to->frames)
			return -ENOMEM;
	}
	return 0;
}

static int fill_ways(struct cause *cause, const struct root_lines *lines, uint32_t line, struct arena *arena)
{
	const struct roots *roots = lines->roots;
	const struct root_way **of;
	size_t cnt = 0;

	for (size_t i = 0; i < lines->ways.cnt; i++)
		cnt += lines->ways.items[i].line == line;
	cause->ways = arena__alloc(arena, cnt, sizeof(*cause->ways));
	of = calloc(cnt + 1, sizeof(*of));
	if (!cause->ways || !of) {
		free(of);
		return -ENOMEM;
	}
	for (size_t i = 0; i < lines->ways.cnt; i++) {
		const struct root_line_way *at = &lines->ways.items[i];
		const struct root_way *way = &roots->ways.items[at->way];
		struct cause_way *to;
		size_t w = 0;

		if (at->line != line)
			continue;
		while (w < cause->way_cnt && !same_way(of[w], way))
			w++;
		to = &cause->ways[w];
		if (w == cause->way_cnt) {
			cause->way_cnt++;
			of[w] = way;
			*to = (struct cause_way){.category = way->category,
						 .wait = way->wait,
						 .own = way->own,
						 .other = way->other,
						 .spins = way->spins};
			for (size_t h = 0; h < CAUSE_HOPS_MAX && way->hops[h]; h++)
				if (copy_text(&to->hops[to->hop_cnt++], roots, way->hops[h], arena))
					break;
		}
		to->share += at->tail_ns / lines->tail_ns;
	}
	free(of);
	qsort(cause->ways, cause->way_cnt, sizeof(*cause->ways), compare_ways);
	while (cause->way_cnt > 1 && fabs(cause->ways[cause->way_cnt - 1].share) < WAY_SHARE_MIN)
		cause->way_cnt--;
	return 0;
}

/* --- the list ------------------------------------------------------------------------------------------------------
 */

int root_lines__cause(struct cause *cause, struct report *report, const struct root_lines *lines, uint32_t line)
{
	const struct root_line *from = &lines->lines[line];
	const struct root_key *key = &lines->roots->keys.items[from->key];
	struct arena *arena = report->arena;
	int err;

	*cause = (struct cause){
		.category = WL_CATEGORY_OTHER,
		.share = from->share.tail_share,
		.share_ci = from->share.tail_share_ci,
		.variance_share = from->share.variance_share,
		.late_ns = from->share.late_ns,
		.typical_ns = from->share.typical_ns,
		.culprit_pid = -1,
		.culprit_tid = -1,
	};
	err = fill_root(cause, lines->roots, from, arena);
	cause->root.for_requests = !cause->root.type && is_for_requests(lines, line);
	if (!err)
		err = fill_category(cause, lines, line, arena);
	if (!err)
		err = fill_ways(cause, lines, line, arena);
	if (!err)
		err = fill_context(cause, lines, line, arena);
	return err ? err : root_describe(cause, report, &from->share, &key->pids, arena);
}

static enum root_kind kind_of(const struct root_lines *lines, size_t line)
{
	return (enum root_kind)lines->roots->keys.items[lines->lines[line].key].kind;
}

static void note_own(struct report *report, const struct root_lines *lines)
{
	report->our_own = (struct own_line){.known = report->dataset->own_cnt > 0};
	for (size_t l = 0; l < lines->cnt; l++)
		if (kind_of(lines, l) == ROOT_OUR_OWN)
			report->our_own = own_line_of(&lines->lines[l].share);
}

ORDER(compare_causes, struct root_line *const, BY((*b)->share.tail_share, (*a)->share.tail_share), BY(*a, *b));

static int keep_part(struct cause *cause, const struct report *report, const struct path_rows *ranked,
		     const struct root_line *line)
{
	uint64_t *part = arena__alloc(report->arena, report->dataset->row_cnt, sizeof(*part));

	if (!part)
		return -ENOMEM;
	for (size_t row = 0; row < report->dataset->row_cnt; row++)
		if (report->ranked[row])
			part[row] = line->ns[ranked->at[row]];
	cause->row_ns = part;
	return 0;
}

static int make_causes(struct report *report, struct root_lines *lines, const struct share_opts *opts)
{
	const struct root_line *order[ROOT_LINES_MAX] = {NULL};
	struct root_backlog *backlog = root_backlog__new(lines);
	size_t cnt = 0, worth = 0;
	int err = backlog ? 0 : -ENOMEM;

	for (size_t l = 0; l < lines->cnt; l++)
		if (lines->lines[l].share.tail_share > 0 && kind_of(lines, l) != ROOT_OUR_OWN)
			order[cnt++] = &lines->lines[l];
	qsort(order, cnt, sizeof(*order), compare_causes);
	while (worth < cnt && worth < CAUSES_MAX && order[worth]->share.tail_share >= SHARE_MIN)
		worth++;
	worth = worth ? worth : cnt > 0;
	report->causes = arena__alloc(report->arena, worth, sizeof(*report->causes));
	if (!report->causes)
		err = -ENOMEM;
	report->roots->left_out_ns = report->roots->roots_ns;
	for (size_t i = 0; i < worth && !err; i++) {
		uint32_t line = (uint32_t)(order[i] - lines->lines);
		struct root_saved saved;

		err = root_lines__cause(&report->causes[i], report, lines, line);
		if (!err)
			err = root_backlog__save(backlog, line, &saved);
		if (!err)
			err = root_gain_compute(&report->causes[i].gain, &saved, lines->ranked, opts);
		report->causes[i].rank = (uint32_t)i + 1;
		if (!err && report->ranked)
			err = keep_part(&report->causes[i], report, lines->ranked, order[i]);
		if (report->causes[i].root.kind != ROOT_UNKNOWN)
			report->roots->left_out_ns -= order[i]->share.late_ns - order[i]->share.typical_ns;
	}
	report->cause_cnt = err ? 0 : worth;
	root_backlog__free(backlog);
	return err;
}

static int fill_account(struct report *report, const struct roots *roots, const struct root_lines *lines)
{
	const struct path_rows *ranked = lines->ranked;
	struct stats_order order = {0};
	int err = stats_order__init(&order, ranked->latency_ns, ranked->weights, ranked->rows.row_cnt);

	if (err)
		return err;
	*report->roots = (struct root_account){
		.tail_ns = lines->tail_ns,
		.roots_ns = lines->tail_ns - lines->unknown_ns - lines->own_ns,
		.not_attributed_ns = lines->unknown_ns,
		.our_own_ns = report->dataset->own_cnt ? lines->own_ns : NAN,
		.p99_ns = stats_quantile(&order, 0.99, NULL, NULL, order.total_weight),
		.rows = ranked->rows.row_cnt,
		.samples = roots->ticks.cnt,
	};
	stats_order__free(&order);
	return 0;
}

int roots_report(struct report *report, const struct roots *roots, const struct report_opts *opts)
{
	const struct share_opts share_opts = {opts->bootstrap_cnt, opts->seed,
					      shares_lost_bound(report->records_lost_share, opts->tail)};
	struct root_lines *lines = calloc(1, sizeof(*lines));
	struct path_rows ranked = {0};
	int err = lines ? path_rows__init(&ranked, report, opts->paths) : -ENOMEM;

	report->ranked = opts->keep_rows ? opts->paths->ranked : NULL;
	report->roots = arena__alloc(report->arena, 1, sizeof(*report->roots));
	if (!report->roots)
		err = -ENOMEM;
	if (!err)
		err = root_lines__make(lines, roots, &ranked);
	if (!err)
		err = fill_account(report, roots, lines);
	if (!err)
		err = compute_shares(lines, &share_opts);
	if (!err)
		note_own(report, lines);
	if (!err)
		err = make_causes(report, lines, &share_opts);
	if (lines)
		root_lines__free(lines);
	path_rows__free(&ranked);
	free(lines);
	return err;
}
