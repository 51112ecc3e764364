// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/root_split.h"

#include "base/order.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_SHARE      0.9  /* of the parent's difference: the walk goes on there */
#define SPLIT_SHARE     0.1  /* of it at least has a child that is a cause of its own */
#define MIXED_SHARE     0.25 /* of the pairs of samples in one unit that a mixture would have in several children */
#define MIXED_PAIRS_MIN 6
#define TYPICAL_SHARE   0.1 /* of the typical time a branch may take in on its way up */
#define SHOWN_SHARE     0.5 /* of the whole: its call path is shown for all of it */
#define DEPTH_MAX       512

struct tree {
	const struct samples *samples;
	const struct split_tick *ticks;
	size_t tick_cnt;
	double *late_ns, *typical_ns;         /* by node, with all below it */
	uint32_t *first_child, *next_sibling; /* 0: none */
	uint32_t *child_at;                   /* by node: the child of the node under examination that it is below */
	double *pairs, *pure, *in_unit;       /* by child of that node */
	double min_ns;
	double late_cnt; /* samples that late intervals met, each once */
	bool into_kernel;
};

static double difference(const struct tree *tree, uint32_t node)
{
	return tree->late_ns[node] - tree->typical_ns[node];
}

static int tree__init(struct tree *tree)
{
	size_t cnt = tree->samples->nodes.cnt;

	tree->late_ns = calloc(cnt, sizeof(*tree->late_ns));
	tree->typical_ns = calloc(cnt, sizeof(*tree->typical_ns));
	tree->first_child = calloc(cnt, sizeof(*tree->first_child));
	tree->next_sibling = calloc(cnt, sizeof(*tree->next_sibling));
	tree->child_at = calloc(cnt, sizeof(*tree->child_at));
	tree->pairs = calloc(cnt, sizeof(*tree->pairs));
	tree->pure = calloc(cnt, sizeof(*tree->pure));
	tree->in_unit = calloc(cnt, sizeof(*tree->in_unit));
	if (!tree->late_ns || !tree->typical_ns || !tree->first_child || !tree->next_sibling || !tree->child_at ||
	    !tree->pairs || !tree->pure || !tree->in_unit)
		return -ENOMEM;
	for (size_t i = 0; i < tree->tick_cnt; i++) {
		tree->late_ns[tree->ticks[i].node] += tree->ticks[i].late_ns;
		tree->typical_ns[tree->ticks[i].node] += tree->ticks[i].typical_ns;
	}
	/* A parent's number is the smaller one. */
	for (uint32_t node = (uint32_t)cnt; --node > SAMPLE_ROOT;) {
		uint32_t parent = tree->samples->nodes.items[node].parent;

		if (tree->late_ns[node] <= 0 && tree->typical_ns[node] <= 0)
			continue;
		tree->late_ns[parent] += tree->late_ns[node];
		tree->typical_ns[parent] += tree->typical_ns[node];
		tree->next_sibling[node] = tree->first_child[parent];
		tree->first_child[parent] = node;
	}
	return 0;
}

static void tree__free(struct tree *tree)
{
	free(tree->late_ns);
	free(tree->typical_ns);
	free(tree->first_child);
	free(tree->next_sibling);
	free(tree->child_at);
	free(tree->pairs);
	free(tree->pure);
	free(tree->in_unit);
}

/* One-sided, 95 %: a child that holds MOST_SHARE is met in no less than that share of so many samples. */
static double most_share(const struct tree *tree, uint32_t node)
{
	double cnt = tree->late_cnt * tree->late_ns[node] / tree->late_ns[SAMPLE_ROOT];

	return cnt > 0 ? MOST_SHARE - 1.645 * sqrt(MOST_SHARE * (1 - MOST_SHARE) / cnt) : 1;
}

ORDER(compare_numbers, uint32_t, BY(*a, *b));

static int count_late(struct tree *tree)
{
	uint32_t *samples = malloc((tree->tick_cnt + 1) * sizeof(*samples));
	size_t cnt = 0;

	if (!samples)
		return -ENOMEM;
	for (size_t i = 0; i < tree->tick_cnt; i++)
		if (tree->ticks[i].late_ns > 0)
			samples[cnt++] = tree->ticks[i].sample;
	qsort(samples, cnt, sizeof(*samples), compare_numbers);
	for (size_t i = 0; i < cnt; i++)
		tree->late_cnt += !i || samples[i] != samples[i - 1];
	free(samples);
	return 0;
}

/* The child is the kernel, which works for the program's function above it. */
static bool is_entry(const struct tree *tree, uint32_t node, uint32_t child)
{
	const struct sample_node *nodes = tree->samples->nodes.items;

	return !tree->into_kernel && nodes[child].kernel && node != SAMPLE_ROOT && !nodes[node].kernel &&
	       *samples_name(tree->samples, node) != '[';
}

static uint32_t largest_child(const struct tree *tree, uint32_t node)
{
	uint32_t best = 0;

	for (uint32_t child = tree->first_child[node]; child; child = tree->next_sibling[child])
		if (!best || difference(tree, child) > difference(tree, best))
			best = child;
	return best;
}

/* The child that holds nearly all of the difference; 0: none. */
static uint32_t best_child(const struct tree *tree, uint32_t node)
{
	uint32_t best = largest_child(tree, node);

	if (!best || is_entry(tree, node, best))
		return 0;
	return difference(tree, best) >= most_share(tree, node) * difference(tree, node) ? best : 0;
}

/*
 * Of the samples of each unit in the node's function or below: how many pairs have a part in a child, and how many lie
 * in it.  A function that calls another one from time to time is one cause with it.
 */
static void count_pairs(struct tree *tree, uint32_t node)
{
	size_t end;

	for (uint32_t n = 0; n < tree->samples->nodes.cnt; n++) {
		uint32_t parent = tree->samples->nodes.items[n].parent;

		tree->child_at[n] = n && parent == node ? n : n > node ? tree->child_at[parent] : 0;
		tree->pairs[n] = tree->pure[n] = 0;
	}
	for (size_t first = 0; first < tree->tick_cnt; first = end) {
		double all = 0;

		for (end = first; end < tree->tick_cnt && tree->ticks[end].unit == tree->ticks[first].unit; end++) {
			bool late = tree->ticks[end].late_ns > 0;
			uint32_t child = late ? tree->child_at[tree->ticks[end].node] : 0;

			tree->in_unit[child]++;
			all += child > 0 || (late && tree->ticks[end].node == node);
		}
		for (size_t i = first; i < end; i++) {
			uint32_t child = tree->ticks[i].late_ns > 0 ? tree->child_at[tree->ticks[i].node] : 0;

			if (child) {
				tree->pairs[child] += tree->in_unit[child] * (all - 1);
				tree->pure[child] += tree->in_unit[child] * (tree->in_unit[child] - 1);
			}
			tree->in_unit[child] = 0;
		}
	}
}

static bool is_apart(const struct tree *tree, uint32_t node, uint32_t child)
{
	/* How many pairs would have a part elsewhere if all units had the same mixture. */
	double mixed = tree->pairs[child] * (1 - tree->late_ns[child] / tree->late_ns[node]);

	return difference(tree, child) >= SPLIT_SHARE * difference(tree, node) &&
	       difference(tree, child) >= tree->min_ns && mixed >= MIXED_PAIRS_MIN &&
	       tree->pairs[child] - tree->pure[child] <= MIXED_SHARE * mixed;
}

/* Up to here a branch may take in what typical intervals meet. */
static double typical_limit_ns(const struct tree *tree, uint32_t cut)
{
	return tree->typical_ns[cut] + TYPICAL_SHARE * tree->typical_ns[SAMPLE_ROOT];
}

/*
 * Up from the cut, but not to `floor`, as long as what a step up adds is not met in typical intervals: of their time at
 * most a small part, or far less than it adds to late ones.
 */
static uint32_t top_of(const struct tree *tree, uint32_t cut, uint32_t floor)
{
	double limit_ns = typical_limit_ns(tree, cut);
	uint32_t top = cut, parent;

	for (; (parent = tree->samples->nodes.items[top].parent) != floor; top = parent) {
		double late_ns = tree->late_ns[parent] - tree->late_ns[top];
		double typical_ns = tree->typical_ns[parent] - tree->typical_ns[top];

		if (tree->typical_ns[parent] > limit_ns && typical_ns > TYPICAL_SHARE * late_ns)
			break;
	}
	return top;
}

/* Callers that typical intervals hardly meet are shown, also those that the branch shares with its siblings. */
static struct root_branch branch_of_cut(const struct tree *tree, uint32_t cut, uint32_t floor)
{
	double limit_ns = typical_limit_ns(tree, cut);
	struct root_branch branch = {.top = top_of(tree, cut, floor), .cut = cut};
	uint32_t parent;

	branch.shown = branch.top;
	while ((parent = tree->samples->nodes.items[branch.shown].parent) != SAMPLE_ROOT &&
	       tree->typical_ns[parent] <= limit_ns)
		branch.shown = parent;
	return branch;
}

/* Of the ticks below the node, the innermost function that most of the difference is in: the largest of its nodes. */
static uint32_t common_leaf(const struct tree *tree, uint32_t node)
{
	const struct samples *samples = tree->samples;
	double *by_name = calloc(samples->names.cnt + 1, sizeof(*by_name)), most_ns = 0;
	double *by_node = calloc(samples->nodes.cnt, sizeof(*by_node));
	uint32_t leaf = 0;

	for (size_t i = 0; by_name && by_node && i < tree->tick_cnt; i++) {
		const struct split_tick *tick = &tree->ticks[i];
		uint32_t at = tick->node;

		while (at > node)
			at = samples->nodes.items[at].parent;
		if (at != node || *samples_name(samples, tick->node) == '[')
			continue;
		by_node[tick->node] += tick->late_ns - tick->typical_ns;
		by_name[samples->nodes.items[tick->node].name] += tick->late_ns - tick->typical_ns;
	}
	for (uint32_t n = node + 1; by_name && by_node && n < samples->nodes.cnt; n++)
		if (by_node[n] > most_ns &&
		    by_name[samples->nodes.items[n].name] >= SHOWN_SHARE * difference(tree, node)) {
			most_ns = by_node[n];
			leaf = n;
		}
	free(by_name);
	free(by_node);
	return leaf;
}

/* Where every thread begins, which tells nothing.  main() may be where the work is. */
static bool is_beginning(const struct tree *tree, uint32_t node)
{
	const char *name = samples_name(tree->samples, node);

	return node == SAMPLE_ROOT || (samples_is_start(name) && strcmp(name, "main") != 0);
}

/*
 * One cause whose stacks begin in several places: in a goroutine and on the runtime's own stack, or where some could
 * not be unwound.  What most of it does is shown, or the function that most of it is in; the branch is all of it.
 */
static void add_whole(struct root_split *split, const struct tree *tree, uint32_t node, uint32_t floor)
{
	uint32_t first = largest_child(tree, node), cut = first, child;
	struct root_branch branch;

	if (first && difference(tree, first) >= SHOWN_SHARE * difference(tree, node) && !is_entry(tree, node, first)) {
		for (unsigned depth = 0; depth < DEPTH_MAX && (child = best_child(tree, cut)); depth++)
			cut = child;
		branch = branch_of_cut(tree, cut, floor);
	} else {
		cut = common_leaf(tree, node);
		branch = (struct root_branch){.shown = cut, .cut = cut};
	}
	if (!cut && node == SAMPLE_ROOT)
		return;
	if (!cut)
		branch = branch_of_cut(tree, node, floor);
	branch.top = node == SAMPLE_ROOT ? node : top_of(tree, node, floor);
	split->branches[split->cnt++] = branch;
}

static void walk(struct root_split *split, struct tree *tree, uint32_t node, uint32_t floor, unsigned depth)
{
	uint32_t apart[ROOT_BRANCHES_MAX], child;
	size_t cnt = 0;

	for (; depth < DEPTH_MAX && (child = best_child(tree, node)); depth++)
		node = child;
	if (depth < DEPTH_MAX && tree->first_child[node]) {
		count_pairs(tree, node);
		for (child = tree->first_child[node]; child && cnt < ROOT_BRANCHES_MAX;
		     child = tree->next_sibling[child])
			if (!is_entry(tree, node, child) && is_apart(tree, node, child))
				apart[cnt++] = child;
	}
	/* The child that most of the difference is in is a cause besides those, with a name. */
	child = cnt && cnt < ROOT_BRANCHES_MAX ? largest_child(tree, node) : 0;
	if (child && !is_apart(tree, node, child) && !is_entry(tree, node, child) &&
	    difference(tree, child) >= SHOWN_SHARE * difference(tree, node))
		apart[cnt++] = child;
	for (size_t i = 0; i < cnt; i++)
		walk(split, tree, apart[i], node, depth + 1);
	if (cnt || split->cnt == ROOT_BRANCHES_MAX)
		return;
	if (is_beginning(tree, node))
		add_whole(split, tree, node, floor);
	else
		split->branches[split->cnt++] = branch_of_cut(tree, node, floor);
}

int root_split__make(struct root_split *split, const struct samples *samples, const struct split_tick *ticks,
		     size_t tick_cnt, double min_ns, bool into_kernel)
{
	struct tree tree = {
		.samples = samples, .ticks = ticks, .tick_cnt = tick_cnt, .min_ns = min_ns, .into_kernel = into_kernel};
	int err = tree__init(&tree);

	if (!err)
		err = count_late(&tree);
	*split = (struct root_split){.branch_of = calloc(samples->nodes.cnt, sizeof(*split->branch_of))};
	if (!split->branch_of)
		err = -ENOMEM;
	if (!err && tree.late_ns[SAMPLE_ROOT] > 0)
		walk(split, &tree, SAMPLE_ROOT, SAMPLE_ROOT, 0);
	if (!err && split->cnt && split->branches[0].top == SAMPLE_ROOT)
		split->branch_of[SAMPLE_ROOT] = 1;
	for (uint32_t node = 1; !err && node < samples->nodes.cnt; node++) {
		split->branch_of[node] = split->branch_of[samples->nodes.items[node].parent];
		for (size_t b = 0; b < split->cnt; b++)
			if (split->branches[b].top == node)
				split->branch_of[node] = (uint8_t)(b + 1);
	}
	tree__free(&tree);
	return err;
}

void root_split__free(struct root_split *split)
{
	free(split->branch_of);
	*split = (struct root_split){0};
}
