// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/factors_detail.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

/* What of a node is needed for every interval in which it occurs. */
struct node_facts {
	uint32_t body;    /* NONE: it has none */
	uint32_t line;    /* whose variance it is an instance of; NONE: of none that is told */
	uint32_t func;    /* on the interval's own thread: of what waits, where it is behind a wait; NONE: of nothing */
	uint32_t culprit; /* behind a wait: what was called on the other thread; otherwise NONE */
	uint32_t waits;   /* behind a wait: node of what waits; otherwise NONE */
};

/* Sums of late minus typical intervals by a key of two words. */
struct tally {
	struct idmap ids;
	VEC(double) sums;
};

static int tally__add(struct tally *tally, uint64_t a, uint64_t b, double ns)
{
	uint32_t id;

	if (idmap__id(&tally->ids, a, b, &id) || (id == tally->sums.cnt && vec_push(&tally->sums, 0.0)))
		return -ENOMEM;
	tally->sums.items[id] += ns;
	return 0;
}

static void tally__free(struct tally *tally)
{
	idmap__free(&tally->ids);
	vec_free(&tally->sums);
}

struct detail {
	struct factor_analysis *analysis;
	struct factor_report *report;
	const struct dataset *dataset;
	const struct share_rows *rows;
	const struct blame_split *splits;
	struct node_facts *nodes;
	uint64_t *columns;                 /* [line][row] */
	uint64_t (*doing)[TREE_DOING_CNT]; /* by line, of the row that is looked at */
	double late_weight, typical_weight, weight;
	double (*waits)[WL_CATEGORY_CNT]; /* by line */
	struct tally objects, culprits;   /* (line, category), string */
	struct tally places;              /* (category, slot, whether a culprit's), function */
	double totals[WL_CATEGORY_CNT][BLAME_NAMED_MAX + 1];
};

static void find_nodes(struct detail *detail, const uint32_t *order)
{
	const struct variance_tree *tree = detail->analysis->walk.tree;
	const struct factors *factors = &detail->analysis->factors;
	size_t cnt = variance_tree__node_cnt(tree);
	struct tree_node node;

	for (uint32_t id = 0; id < cnt; id++) {
		struct node_facts *facts = &detail->nodes[id];
		const struct node_facts *parent;

		variance_tree__node_at(tree, id, &node);
		*facts = (struct node_facts){
			.body = node.body, .line = NONE, .func = NONE, .culprit = NONE, .waits = NONE};
		if (id == TREE_ROOT || node.part == TREE_QUEUE)
			continue;
		/* Parents come before their children. */
		parent = &detail->nodes[node.parent];
		facts->func = node.call.behind || parent->culprit != NONE ? parent->func : node.call.func;
		if (node.call.behind || parent->culprit != NONE)
			facts->culprit = node.call.func;
		if (facts->culprit != NONE)
			facts->waits = parent->culprit != NONE ? parent->waits : node.parent;
	}
	for (uint32_t line = 0; line < detail->report->line_cnt; line++) {
		const struct factor *factor = &factors->list.items[order[line]];

		for (size_t i = 0; factor->funcs[1] == FACTOR_NONE && i < factor->instance_cnt; i++)
			detail->nodes[factors->instances.items[factor->first_instance + i]].line = line;
	}
}

static void weigh_rows(struct detail *detail)
{
	const struct share_rows *rows = detail->rows;

	for (size_t i = 0; i < rows->row_cnt; i++) {
		double latency_ns = (double)rows->latency_ns[i];

		detail->weight += rows->weights[i];
		detail->late_weight += latency_ns >= rows->late_ns ? rows->weights[i] : 0;
		detail->typical_weight += latency_ns <= rows->median_ns ? rows->weights[i] : 0;
	}
}

/* What a nanosecond of the row adds to the late intervals' mean less the typical ones'. */
static double factor_of_row(const struct detail *detail, size_t row)
{
	double w = detail->rows->weights[row], latency_ns = (double)detail->rows->latency_ns[row], by = 0;

	if (latency_ns >= detail->rows->late_ns)
		by += w / detail->late_weight;
	if (latency_ns <= detail->rows->median_ns)
		by -= w / detail->typical_weight;
	return by;
}

static void add_to_line(struct detail *detail, uint32_t node, size_t row)
{
	uint32_t line = detail->nodes[node].line;
	struct tree_time time;

	if (line == NONE || !variance_tree__visited(detail->analysis->walk.tree, node, &time))
		return;
	detail->columns[line * detail->rows->row_cnt + row] += time.ns;
	for (int d = 0; d < TREE_DOING_CNT; d++)
		detail->doing[line][d] += time.doing_ns[d];
}

/* A wait is of one category; of the rest, ns of all that the row spent so, as far as they are in the category. */
static double part_in(const struct detail *detail, uint32_t row, enum wl_category category, uint64_t ns)
{
	const uint64_t *values = detail->dataset->category_ns[category];
	uint64_t all_ns = detail->analysis->walk.interval.doing_ns[category_doing(category)];

	if (category_doing(category) >= TREE_BLOCKED)
		return tree_ns(ns);
	if (!values || !values[row] || !all_ns)
		return 0;
	/* A call's own account may differ a little from its interval's. */
	return (double)values[row] * fmin(1, tree_ns(ns) / (double)all_ns);
}

static int add_waits(struct detail *detail, uint32_t line, uint32_t row, double by)
{
	for (int c = 0; c < WL_CATEGORY_CNT; c++) {
		const struct dataset_blame *blame = detail->dataset->blame[c] ? &detail->dataset->blame[c][row] : NULL;
		uint64_t key = (uint64_t)line << 8 | (uint64_t)c;
		double ns;

		if (category_doing(c) == TREE_DOING_CNT)
			continue;
		ns = by * part_in(detail, row, c, detail->doing[line][category_doing(c)]);
		detail->waits[line][c] += ns;
		if (ns == 0 || !blame)
			continue;
		if ((blame->object && tally__add(&detail->objects, key, blame->object, ns)) ||
		    (blame->who && tally__add(&detail->culprits, key, blame->who, ns)))
			return -ENOMEM;
	}
	return 0;
}

/*
 * What was done behind a wait is a wait for the one that waits, of the kinds of its waits; its CPU's troubles are told
 * apart all the same.
 */
static void doing_behind(const struct detail *detail, uint32_t waits, uint64_t doing_ns[TREE_DOING_CNT])
{
	struct tree_time time;

	doing_ns[TREE_OTHER] += doing_ns[TREE_RUNNING];
	doing_ns[TREE_RUNNING] = 0;
	if (waits != TREE_ROOT && variance_tree__visited(detail->analysis->walk.tree, waits, &time))
		doing_spread(doing_ns, time.doing_ns);
	else
		doing_spread(doing_ns, detail->analysis->walk.interval.doing_ns);
}

static int add_place(struct detail *detail, uint32_t node, uint32_t row, double by)
{
	const struct node_facts *facts = &detail->nodes[node];
	bool behind = facts->culprit != NONE;
	struct tree_time own;

	if (!variance_tree__visited(detail->analysis->walk.tree, facts->body == NONE ? node : facts->body, &own))
		return 0;
	if (behind)
		doing_behind(detail, facts->waits, own.doing_ns);
	for (int c = 0; c < WL_CATEGORY_CNT; c++) {
		const uint8_t *slots = detail->splits[c].row_slots;
		uint64_t key = (uint64_t)c << 16 | (uint64_t)(slots ? slots[row] : 0) << 8;
		double ns;

		if (category_doing(c) == TREE_DOING_CNT)
			continue;
		ns = by * part_in(detail, row, c, own.doing_ns[category_doing(c)]);
		if (ns == 0)
			continue;
		if ((facts->func != NONE && tally__add(&detail->places, key, facts->func, ns)) ||
		    (behind && tally__add(&detail->places, key | 1, facts->culprit, ns)))
			return -ENOMEM;
	}
	return 0;
}

static void add_totals(struct detail *detail, uint32_t row, double by)
{
	for (int c = 0; c < WL_CATEGORY_CNT; c++) {
		const uint64_t *values = detail->dataset->category_ns[c];
		const uint8_t *slots = detail->splits[c].row_slots;

		if (values)
			detail->totals[c][slots ? slots[row] : 0] += by * (double)values[row];
	}
}

static int look_at_row(struct detail *detail, size_t i, struct factor_confidence *confidence)
{
	struct factor_walk *walk = &detail->analysis->walk;
	uint32_t row = detail->analysis->rows.items[i];
	double by = factor_of_row(detail, i);
	int err = factor_walk__row(walk, row);

	if (err < 0)
		return err;
	if (variance_tree__visit(walk->tree, &walk->interval, walk->times.times.items, walk->times.times.cnt))
		return 0;
	factor_confidence__add(confidence, i, walk->tree);
	memset(detail->doing, 0, detail->report->line_cnt * sizeof(*detail->doing));
	add_totals(detail, row, by);
	for (size_t t = 0; t < walk->times.times.cnt; t++) {
		uint32_t node = walk->times.times.items[t].node;

		add_to_line(detail, node, i);
		if (detail->nodes[node].body != NONE)
			add_to_line(detail, detail->nodes[node].body, i);
		if (by != 0 && add_place(detail, node, row, by))
			return -ENOMEM;
	}
	for (uint32_t line = 0; by != 0 && line < detail->report->line_cnt; line++)
		if (!detail->report->lines[line].functions[1] && add_waits(detail, line, row, by))
			return -ENOMEM;
	return 0;
}

/* The largest sum under a key, and which second word it is of; both 0 where there is none. */
static double largest(const struct tally *tally, uint64_t a, uint64_t *b)
{
	double most = 0;

	*b = 0;
	for (size_t i = 0; i < tally->ids.room; i++) {
		const struct idmap_entry *entry = &tally->ids.entries[i];

		if (!entry->id_plus_1 || entry->a != a || !(tally->sums.items[entry->id_plus_1 - 1] > most))
			continue;
		most = tally->sums.items[entry->id_plus_1 - 1];
		*b = entry->b;
	}
	return most;
}

/* What a line is late by: where the late intervals have more of it than the typical ones. */
static void finish_wait(struct detail *detail, uint32_t at)
{
	struct factor_line *line = &detail->report->lines[at];
	double all = 0, most = 0, part;
	uint64_t key, string;

	for (int c = 0; c < WL_CATEGORY_CNT; c++) {
		all += detail->waits[at][c];
		if (detail->waits[at][c] > most) {
			most = detail->waits[at][c];
			line->wait = (enum wl_category)c;
		}
	}
	if (!(all > 0) || !(most > 0))
		return;
	line->wait_share = fmin(1, most / all);
	key = (uint64_t)at << 8 | line->wait;
	part = largest(&detail->objects, key, &string);
	if (part > 0) {
		line->object = detail->dataset->strings[string];
		line->object_share = fmin(1, part / most);
	}
	part = largest(&detail->culprits, key, &string);
	if (part > 0) {
		line->culprit_comm = detail->dataset->strings[string];
		line->culprit_share = fmin(1, part / most);
	}
}

/* Shares are of the whole, so every line is set against the rest of the latency. */
static int finish_shares(struct detail *detail, const struct share_opts *opts)
{
	size_t row_cnt = detail->rows->row_cnt;
	uint64_t *rest = malloc((row_cnt + 1) * sizeof(*rest));
	int err = rest ? 0 : -ENOMEM;

	for (size_t at = 0; at < detail->report->line_cnt && !err; at++) {
		struct factor_line *line = &detail->report->lines[at];
		const uint64_t *own = detail->columns + at * row_cnt;
		struct share_part parts[2] = {{.values = own, .slot_cnt = 1}, {.values = rest, .slot_cnt = 1}};
		const struct share_line *from = &parts[0].total;

		if (line->functions[1])
			continue;
		for (size_t i = 0; i < row_cnt; i++)
			rest[i] = detail->rows->latency_ns[i] - own[i];
		err = shares_compute(parts, 2, detail->rows, opts);
		line->variance_share_ci = from->variance_share_ci;
		line->tail_share = from->tail_share;
		line->tail_share_ci = from->tail_share_ci;
		line->typical_ns = from->typical_ns;
		line->late_ns = from->late_ns;
		line->late_met = line->sampled ? NAN : from->late_met;
	}
	free(rest);
	return err;
}

/* The functions under a key with the largest sums, as shares of the total; the report gets names of its own. */
static int choose_places(struct detail *detail, uint64_t key, double total, struct cause_place *places,
			 struct arena *arena)
{
	const struct tally *tally = &detail->places;

	for (size_t i = 0; i < tally->ids.room && total > 0; i++) {
		const struct idmap_entry *entry = &tally->ids.entries[i];
		struct cause_place place;
		size_t at = CAUSE_PLACES_MAX;

		if (!entry->id_plus_1 || entry->a != key)
			continue;
		place.share = tally->sums.items[entry->id_plus_1 - 1] / total;
		place.function = invocations_name(detail->analysis->walk.invocations, (uint32_t)entry->b);
		while (at && place.share > (places[at - 1].function ? places[at - 1].share : 0)) {
			if (at < CAUSE_PLACES_MAX)
				places[at] = places[at - 1];
			places[--at] = place;
		}
	}
	for (size_t i = 0; i < CAUSE_PLACES_MAX && places[i].function; i++) {
		places[i].share = fmin(1, places[i].share);
		places[i].function = arena__strdup(arena, places[i].function);
		if (!places[i].function)
			return -ENOMEM;
	}
	return 0;
}

static int finish_places(struct detail *detail, cause_places_table *places, struct arena *arena)
{
	for (int c = 0; c < WL_CATEGORY_CNT; c++)
		for (uint32_t slot = 0; slot < detail->splits[c].slot_cnt; slot++) {
			uint64_t key = (uint64_t)c << 16 | (uint64_t)slot << 8;
			double total = detail->totals[c][slot];

			if (choose_places(detail, key, total, (*places)[c][slot].functions, arena) ||
			    choose_places(detail, key | 1, total, (*places)[c][slot].culprits, arena))
				return -ENOMEM;
		}
	return 0;
}

static int detail__alloc(struct detail *detail, const struct variance_tree *tree)
{
	size_t lines = detail->report->line_cnt;

	detail->nodes = calloc(variance_tree__node_cnt(tree), sizeof(*detail->nodes));
	detail->columns = calloc(lines * detail->rows->row_cnt + 1, sizeof(*detail->columns));
	detail->doing = calloc(lines + 1, sizeof(*detail->doing));
	detail->waits = calloc(lines + 1, sizeof(*detail->waits));
	return detail->nodes && detail->columns && detail->doing && detail->waits ? 0 : -ENOMEM;
}

int factors_detail(struct report *report, struct factor_analysis *analysis, const uint32_t *order,
		   const struct share_rows *rows, const struct blame_split *splits, const struct share_opts *opts,
		   cause_places_table *places)
{
	struct detail detail = {
		.analysis = analysis,
		.report = report->factors,
		.dataset = report->dataset,
		.rows = rows,
		.splits = splits,
	};
	size_t cnt = report->factors->line_cnt;
	struct factor_confidence *confidence = factor_confidence__new(order, cnt, &analysis->factors, rows, opts);
	int err = confidence ? detail__alloc(&detail, analysis->walk.tree) : -ENOMEM;

	if (!err) {
		find_nodes(&detail, order);
		weigh_rows(&detail);
	}
	for (size_t i = 0; i < rows->row_cnt && !err; i++)
		err = look_at_row(&detail, i, confidence);
	if (!err)
		err = factor_confidence__finish(confidence, report->factors->lines, cnt);
	if (!err)
		err = finish_shares(&detail, opts);
	for (uint32_t line = 0; line < cnt && !err; line++)
		finish_wait(&detail, line);
	if (!err)
		err = finish_places(&detail, places, report->arena);
	factor_confidence__free(confidence);
	free(detail.nodes);
	free(detail.columns);
	free(detail.doing);
	free(detail.waits);
	tally__free(&detail.objects);
	tally__free(&detail.culprits);
	tally__free(&detail.places);
	return err;
}
