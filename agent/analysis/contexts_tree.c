// SPDX-License-Identifier: GPL-2.0-or-later
/* Stacks of the sampler, in one calling-context tree per type, and per type and context; which request ended in which.
 */
#include "analysis/contexts.h"
#include "base/idmap.h"
#include "base/names.h"
#include "base/vec.h"
#include "shard/columns.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NONE       UINT32_MAX
#define FRAMES_MAX 256

struct tree_walk {
	struct contexts *contexts;
	struct idmap rows;      /* (session id, sid) → row of the dataset */
	uint32_t *row_of;       /* by that id */
	uint32_t *type_of_name; /* by index into the dataset's strings */
};

static int new_node(struct contexts *contexts, uint32_t parent, uint32_t name, uint32_t type, uint32_t part,
		    uint32_t *node)
{
	*node = (uint32_t)contexts->nodes.cnt;
	return vec_push(&contexts->nodes,
			((struct context_node){
				.parent = parent == NONE ? *node : parent, .name = name, .type = type, .part = part}));
}

/* The tree's root of a type, NONE: of no request. */
static int root_of(struct contexts *contexts, uint32_t type, uint32_t *root)
{
	uint32_t *known = type == NONE ? &contexts->no_request : &contexts->types.items[type].node;

	if (*known == NONE && new_node(contexts, NONE, 0, type, NONE, known))
		return -ENOMEM;
	*root = *known;
	return 0;
}

/* The part of a type that is in that chain; NULL: out of memory. */
static struct context_part *part_of(struct contexts *contexts, uint32_t type, uint32_t chain)
{
	struct context_part part = {.type = type, .chain = chain, .node = NONE};
	uint32_t id;

	if (idmap__id(&contexts->part_ids, type, chain, &id) ||
	    (id == contexts->parts.cnt && vec_push(&contexts->parts, part)))
		return NULL;
	return &contexts->parts.items[id];
}

/* The root of a part's tree. */
static int part_root(struct contexts *contexts, uint32_t type, uint32_t chain, uint32_t *root)
{
	struct context_part *part = part_of(contexts, type, chain);

	if (!part || (part->node == NONE &&
		      new_node(contexts, NONE, 0, type, (uint32_t)(part - contexts->parts.items), &part->node)))
		return -ENOMEM;
	*root = part->node;
	return 0;
}

static int child_of(struct contexts *contexts, uint32_t parent, uint32_t name, uint32_t *node)
{
	uint32_t id;

	if (contexts->nodes.cnt >= CONTEXT_NODES_MAX) {
		*node = idmap__find(&contexts->node_ids, parent, name, &id) ? contexts->node_of.items[id] : parent;
		return 0;
	}
	if (idmap__id(&contexts->node_ids, parent, name, &id))
		return -ENOMEM;
	if (id < contexts->node_of.cnt) {
		*node = contexts->node_of.items[id];
		return 0;
	}
	if (new_node(contexts, parent, name, contexts->nodes.items[parent].type, contexts->nodes.items[parent].part,
		     node))
		return -ENOMEM;
	return vec_push(&contexts->node_of, *node);
}

/* Frames "root;…;leaf" behind the node; one that is a guess is left out. */
static int add_frames(struct contexts *contexts, const char *frames, const char *mark, uint32_t *node)
{
	char name[256];
	uint32_t id;

	for (int depth = 0; *frames && depth < FRAMES_MAX; depth++) {
		size_t len = strcspn(frames, ";");

		snprintf(name, sizeof(name), "%.*s%s", len < 240 ? (int)len : 240, frames, mark);
		frames += len + (frames[len] == ';');
		if (!len || *name == '?')
			continue;
		if (intern__id(&contexts->strings, name, &id) || child_of(contexts, *node, id, node))
			return -ENOMEM;
	}
	return 0;
}

/* Adds a row's time behind a root. */
static int add_sample(struct contexts *contexts, const struct stack_columns *columns, uint32_t row, uint32_t node,
		      double ns, bool on_cpu)
{
	struct context_node *leaf;

	if (add_frames(contexts, column_text(columns->frames, row), "", &node) ||
	    add_frames(contexts, column_text(columns->kernel_frames, row), "_[k]", &node))
		return -ENOMEM;
	leaf = &contexts->nodes.items[node];
	if (on_cpu)
		leaf->on_ns += ns;
	else
		leaf->off_ns += ns;
	return 0;
}

static int add_row(struct tree_walk *walk, const struct stack_columns *columns, uint64_t session_id, uint32_t row)
{
	double ns = column_is_null(columns->weight, row) ? 0 : columns->weight->values[row].f64;
	int state = state_by_name(column_text(columns->state, row));
	struct contexts *contexts = walk->contexts;
	uint32_t type = NONE, root, id;
	bool on_cpu;

	if (!isfinite(ns) || !(ns > 0) || state < 0)
		return 0;
	/* Of an interval that was filtered out, or not kept. */
	if (!column_is_null(columns->sid, row)) {
		if (!idmap__find(&walk->rows, session_id, column_u64(columns->sid, row), &id))
			return 0;
		type = walk->type_of_name[contexts->dataset->type[walk->row_of[id]]];
	}
	on_cpu = state_is_on_cpu((uint8_t)state);
	contexts->sample_cnt++;
	if (root_of(contexts, type, &root) || add_sample(contexts, columns, row, root, ns, on_cpu))
		return -ENOMEM;
	if (type == NONE)
		return 0;
	contexts->sample_on_ns += on_cpu ? ns : 0;
	if (!contexts_have_chains(contexts))
		return 0;
	if (part_root(contexts, type,
		      context_chains__find(&contexts->chains, session_id, column_u64(columns->context, row)), &root))
		return -ENOMEM;
	return add_sample(contexts, columns, row, root, ns, on_cpu);
}

static int add_stacks(struct tree_walk *walk, const struct shard_block *block)
{
	struct stack_columns columns = block_columns(block, STACK, stack);
	int err = 0;

	for (uint32_t row = 0; row < block->row_cnt && !err; row++)
		err = add_row(walk, &columns, block->session_id, row);
	return err;
}

/* In which contexts requests ended. */
static int add_intervals(struct tree_walk *walk, const struct shard_block *block)
{
	const struct shard_block_column *sid = block_column(block, "sid", SHARD_U64);
	const struct shard_block_column *context = block_column(block, "context", SHARD_U64);
	struct contexts *contexts = walk->contexts;
	const struct dataset *dataset = contexts->dataset;
	struct context_part *part;
	uint32_t id;

	for (uint32_t i = 0; i < block->row_cnt; i++) {
		size_t row;

		if (!idmap__find(&walk->rows, block->session_id, column_u64(sid, i), &id))
			continue;
		row = walk->row_of[id];
		part = part_of(contexts, walk->type_of_name[dataset->type[row]],
			       context_chains__find(&contexts->chains, block->session_id, column_u64(context, i)));
		if (!part)
			return -ENOMEM;
		contexts->row_chain[row] = part->chain;
		part->count += dataset->weight[row];
		part->latency_ns += dataset->weight[row] * (double)dataset->latency_ns[row];
	}
	return 0;
}

static int number_rows(struct tree_walk *walk)
{
	const struct contexts *contexts = walk->contexts;
	const struct dataset *dataset = contexts->dataset;
	uint32_t id;

	walk->row_of = calloc(dataset->row_cnt + 1, sizeof(*walk->row_of));
	walk->type_of_name = calloc(dataset->string_cnt + 1, sizeof(*walk->type_of_name));
	if (!walk->row_of || !walk->type_of_name)
		return -ENOMEM;
	for (uint32_t i = 0; i < contexts->types.cnt; i++)
		walk->type_of_name[contexts->types.items[i].name] = i;
	for (size_t row = 0; row < dataset->row_cnt; row++) {
		if (idmap__id(&walk->rows, dataset->session_ids[dataset->session[row]], dataset->sid[row], &id))
			return -ENOMEM;
		walk->row_of[id] = (uint32_t)row;
	}
	return 0;
}

/* A node's time is part of its parent's; children come after their parents. */
static void sum_up(struct contexts *contexts)
{
	for (size_t i = contexts->nodes.cnt; i-- > 0;) {
		struct context_node *node = &contexts->nodes.items[i], *parent = &contexts->nodes.items[node->parent];

		node->all_on_ns += node->on_ns;
		node->all_off_ns += node->off_ns;
		if (parent == node)
			continue;
		parent->all_on_ns += node->all_on_ns;
		parent->all_off_ns += node->all_off_ns;
	}
}

static int walk_table(struct tree_walk *walk, struct shard_reader *reader, const char *table,
		      int (*add)(struct tree_walk *walk, const struct shard_block *block))
{
	const struct shard_block *block;
	int err = shard_reader__select(reader, &table, 1);

	while (!err && (err = shard_reader__next(reader, &block)) > 0)
		err = add(walk, block);
	return err;
}

int contexts__add_stacks(struct contexts *contexts, struct shard_reader *reader)
{
	struct tree_walk walk = {.contexts = contexts};
	int err = number_rows(&walk);

	if (!err && contexts_have_chains(contexts)) {
		contexts->row_chain = calloc(contexts->dataset->row_cnt + 1, sizeof(*contexts->row_chain));
		err = contexts->row_chain ? walk_table(&walk, reader, "interval", add_intervals) : -ENOMEM;
	}
	if (!err)
		err = walk_table(&walk, reader, "stack", add_stacks);
	if (!err)
		sum_up(contexts);
	idmap__free(&walk.rows);
	free(walk.row_of);
	free(walk.type_of_name);
	return err;
}
