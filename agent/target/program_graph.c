// SPDX-License-Identifier: GPL-2.0-or-later
/* How high each function stands in the call graph: Tarjan's algorithm (SIAM J. Comput. 1972) without recursion. */
#include "target/program_internal.h"

#include <errno.h>
#include <string.h>

struct frame {
	uint32_t id, next_edge;
};

struct place {
	uint32_t order, low; /* order 0: not seen */
	bool on_stack;
};

struct walk {
	struct program *program;
	VEC(struct frame) frames;
	VEC(uint32_t) component;  /* of functions whose cycle is not complete */
	VEC(struct place) places; /* by id, which grow while modules are read on the way */
	uint32_t seen;
};

static int walk_enter(struct walk *walk, uint32_t id)
{
	struct frame frame = {.id = id};

	if (vec_extend(&walk->places, (size_t)id + 1))
		return -ENOMEM;
	walk->seen++;
	walk->places.items[id] = (struct place){.order = walk->seen, .low = walk->seen, .on_stack = true};
	return vec_push(&walk->frames, frame) ?: vec_push(&walk->component, id);
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
		walk->places.items[walk->component.items[i]].on_stack = false;
	}
	walk->component.cnt = begin;
}

static int walk_step(struct walk *walk)
{
	struct frame *frame = &walk->frames.items[walk->frames.cnt - 1];
	const struct call_edge *edges;
	uint32_t id = frame->id, callee;
	const struct place *place;
	size_t cnt;
	int err = program__callees(walk->program, id, &edges, &cnt);

	if (err)
		return err;
	if (frame->next_edge < cnt) {
		callee = edges[frame->next_edge++].callee;
		if (program_function_of(walk->program, callee)->has_height)
			return 0;
		if (callee >= walk->places.cnt || !walk->places.items[callee].order)
			return walk_enter(walk, callee);
		place = &walk->places.items[callee];
		if (place->on_stack && place->order < walk->places.items[id].low)
			walk->places.items[id].low = place->order;
		return 0;
	}
	walk->frames.cnt--;
	place = &walk->places.items[id];
	if (walk->frames.cnt) {
		struct place *caller = &walk->places.items[walk->frames.items[walk->frames.cnt - 1].id];

		if (place->low < caller->low)
			caller->low = place->low;
	}
	if (place->low == place->order)
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
	vec_free(&walk.places);
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
