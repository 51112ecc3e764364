// SPDX-License-Identifier: GPL-2.0-or-later
/* How high each function stands in the call graph: Tarjan's algorithm (SIAM J. Comput. 1972) without recursion. */
#include "target/program_internal.h"

#include <errno.h>
#include <string.h>

struct frame {
	uint32_t id, next_edge;
};

struct walk {
	struct program *program;
	VEC(struct frame) frames;
	VEC(uint32_t) component; /* of functions whose cycle is not complete */
	uint32_t *order, *low;   /* by id; order 0: not seen */
	uint8_t *on_stack;
	uint32_t room, seen;
};

/* Ids grow while modules are read on the way. */
static int walk_room(struct walk *walk, uint32_t id)
{
	uint32_t room = walk->room ? walk->room : 1024;
	uint32_t *order, *low;
	uint8_t *on_stack;

	if (id < walk->room)
		return 0;
	while (room <= id)
		room *= 2;
	order = realloc(walk->order, room * sizeof(*order));
	if (order)
		walk->order = order;
	low = realloc(walk->low, room * sizeof(*low));
	if (low)
		walk->low = low;
	on_stack = realloc(walk->on_stack, room);
	if (on_stack)
		walk->on_stack = on_stack;
	if (!order || !low || !on_stack)
		return -ENOMEM;
	memset(order + walk->room, 0, (room - walk->room) * sizeof(*order));
	memset(on_stack + walk->room, 0, room - walk->room);
	walk->room = room;
	return 0;
}

static int walk_enter(struct walk *walk, uint32_t id)
{
	struct frame frame = {.id = id};
	int err = walk_room(walk, id);

	if (err)
		return err;
	walk->order[id] = walk->low[id] = ++walk->seen;
	walk->on_stack[id] = 1;
	err = vec_push(&walk->frames, frame);
	return err ? err : vec_push(&walk->component, id);
}

/* The members of a complete cycle (most often one function) stand one above the highest that they call outside of it.
 */
static void component_close(struct walk *walk, uint32_t root)
{
	size_t begin = walk->component.cnt;
	uint32_t height = 0;

	while (walk->component.items[begin - 1] != root)
		begin--;
	begin--;
	for (size_t i = begin; i < walk->component.cnt; i++) {
		const struct function *member = program_function_of(walk->program, walk->component.items[i]);

		for (uint32_t j = 0; j < member->edge_cnt; j++) {
			const struct function *callee = program_function_of(walk->program, member->edges[j].callee);

			if (callee->has_height && callee->height >= height)
				height = callee->height + 1;
		}
	}
	for (size_t i = begin; i < walk->component.cnt; i++) {
		struct function *member = program_function_of(walk->program, walk->component.items[i]);

		member->height = height;
		member->has_height = true;
		walk->on_stack[walk->component.items[i]] = 0;
	}
	walk->component.cnt = begin;
}

static int walk_step(struct walk *walk)
{
	struct frame *frame = &walk->frames.items[walk->frames.cnt - 1];
	const struct call_edge *edges;
	uint32_t id = frame->id, callee;
	size_t cnt;
	int err = program__callees(walk->program, id, &edges, &cnt);

	if (err)
		return err;
	if (frame->next_edge < cnt) {
		callee = edges[frame->next_edge++].callee;
		err = walk_room(walk, callee);
		if (err || program_function_of(walk->program, callee)->has_height)
			return err;
		if (!walk->order[callee])
			return walk_enter(walk, callee);
		if (walk->on_stack[callee] && walk->order[callee] < walk->low[id])
			walk->low[id] = walk->order[callee];
		return 0;
	}
	walk->frames.cnt--;
	if (walk->frames.cnt) {
		uint32_t caller = walk->frames.items[walk->frames.cnt - 1].id;

		if (walk->low[id] < walk->low[caller])
			walk->low[caller] = walk->low[id];
	}
	if (walk->low[id] == walk->order[id])
		component_close(walk, id);
	return 0;
}

uint32_t program__height(struct program *program, uint32_t id)
{
	struct function *function = program_function_of(program, id);
	struct walk walk = {.program = program};
	int err;

	if (!function || function->has_height)
		return function ? function->height : 0;
	err = walk_enter(&walk, id);
	while (!err && walk.frames.cnt)
		err = walk_step(&walk);
	vec_free(&walk.frames);
	vec_free(&walk.component);
	free(walk.order);
	free(walk.low);
	free(walk.on_stack);
	return err ? 0 : function->height;
}

uint32_t program__highest(const struct program *program)
{
	uint32_t highest = 0;

	for (size_t i = 0; i < program->modules.cnt; i++)
		for (size_t j = 0; j < program->modules.items[i]->functions.cnt; j++) {
			const struct function *function = &program->modules.items[i]->functions.items[j];

			if (function->has_height && function->height > highest)
				highest = function->height;
		}
	return highest;
}

void program__heights_forget(struct program *program)
{
	for (size_t i = 0; i < program->modules.cnt; i++)
		for (size_t j = 0; j < program->modules.items[i]->functions.cnt; j++)
			program->modules.items[i]->functions.items[j].has_height = false;
}
