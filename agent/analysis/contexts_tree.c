// SPDX-License-Identifier: GPL-2.0-or-later
/* Stacks of the sampler, in one calling-context tree per type. */
#include "analysis/contexts.h"
#include "analysis/samples.h"
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

static int new_node(struct contexts *contexts, uint32_t parent, uint32_t name, uint32_t type, uint32_t *node)
{
	*node = (uint32_t)contexts->nodes.cnt;
	return vec_push(&contexts->nodes,
			((struct context_node){.parent = parent == NONE ? *node : parent, .name = name, .type = type}));
}

/* The tree's root of a type, NONE: of no request. */
static int root_of(struct contexts *contexts, uint32_t type, uint32_t *root)
{
	uint32_t *known = type == NONE ? &contexts->no_request : &contexts->types.items[type].node;

	if (*known == NONE && new_node(contexts, NONE, 0, type, known))
		return -ENOMEM;
	*root = *known;
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
	if (new_node(contexts, parent, name, contexts->nodes.items[parent].type, node))
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

static int add_block(struct tree_walk *walk, const struct shard_block *block)
{
	const struct shard_block_column *state = block_column(block, "state", SHARD_STR);
	const struct shard_block_column *weight = block_column(block, "weight", SHARD_F64);
	const struct shard_block_column *frames = block_column(block, "frames", SHARD_STR);
	const struct shard_block_column *kernel = block_column(block, "kernel_frames", SHARD_STR);
	const struct shard_block_column *sid = block_column(block, "sid", SHARD_U64);
	struct contexts *contexts = walk->contexts;

	for (uint32_t row = 0; row < block->row_cnt && weight; row++) {
		double ns = column_is_null(weight, row) ? 0 : weight->values[row].f64;
		int state_value = state_by_name(column_text(state, row));
		uint32_t type = NONE, node, id;
		struct context_node *leaf;

		if (!isfinite(ns) || !(ns > 0) || state_value < 0)
			continue;
		/* Of an interval that was filtered out, or not kept. */
		if (!column_is_null(sid, row)) {
			if (!idmap__find(&walk->rows, block->session_id, column_u64(sid, row), &id))
				continue;
			type = walk->type_of_name[contexts->dataset->type[walk->row_of[id]]];
		}
		if (root_of(contexts, type, &node) || add_frames(contexts, column_text(frames, row), "", &node) ||
		    add_frames(contexts, column_text(kernel, row), "_[k]", &node))
			return -ENOMEM;
		leaf = &contexts->nodes.items[node];
		if (state_is_on_cpu((uint8_t)state_value))
			leaf->on_ns += ns;
		else
			leaf->off_ns += ns;
		contexts->sample_cnt++;
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

int contexts__add_stacks(struct contexts *contexts, struct shard_reader *reader)
{
	static const char *const tables[] = {"stack"};
	struct tree_walk walk = {.contexts = contexts};
	const struct shard_block *block;
	int err = number_rows(&walk);

	if (!err) {
		shard_reader__rewind(reader);
		err = shard_reader__select(reader, tables, 1);
	}
	while (!err && (err = shard_reader__next(reader, &block)) > 0)
		err = add_block(&walk, block);
	if (!err)
		sum_up(contexts);
	idmap__free(&walk.rows);
	free(walk.row_of);
	free(walk.type_of_name);
	return err;
}
