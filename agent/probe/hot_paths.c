// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/hot_paths.h"

#include "base/order.h"
#include "base/random.h"
#include "base/vec.h"

#include <string.h>

/* Beyond these, what is new is part of what is known: deeper frames of their parent, or not counted as an edge. */
#define NODES_MAX     (1U << 20)
#define EDGES_MAX     (1U << 20)
#define FUNCTIONS_MAX (1U << 24)
#define DEPTH_MAX     128

/* Of pairs of samples that one thread took one after the other: fewer that part below a frame mean kinds of threads. */
#define PARTS_SHARE 0.05

#define NONE UINT32_MAX

/* A function with all that has led to it from the beginning of a thread; node 0 is that beginning. */
struct node {
	uint32_t function, parent;
	uint32_t first_child, next;
	uint64_t pair_cnt;  /* a thread's samples, one after the other, that both have this frame */
	uint64_t parts_cnt; /* of them, those that differ right below it */
	double ns;
};

struct edge {
	struct hot_edge edge;
	uint64_t last_sample;
};

struct function {
	struct hot_function weights;
	uint64_t last_sample;
};

struct thread {
	uint32_t tid;
	uint32_t depth;
	uint32_t path[DEPTH_MAX + 1]; /* nodes of its last stack */
};

/* (a, b, c) → index + 1; open addressing, at most half full. */
struct slot {
	uint64_t c;
	uint32_t a, b, idx_plus_1;
};

struct slots {
	struct slot *items;
	size_t room, cnt;
};

struct hot_paths {
	VEC(struct node) nodes;
	VEC(struct edge) edges;
	VEC(struct function) functions; /* those that a sample had */
	VEC(struct thread *) threads;
	struct slots node_slots, edge_slots, function_slots, thread_slots;
	uint64_t sample_cnt;
	double complete_ns;
};

static struct slot *slots__place(struct slot *items, size_t room, uint32_t a, uint32_t b, uint64_t c)
{
	size_t at = random_mix(c + random_mix((uint64_t)a << 32 | b)) & (room - 1);

	while (items[at].idx_plus_1 && (items[at].a != a || items[at].b != b || items[at].c != c))
		at = (at + 1) & (room - 1);
	return &items[at];
}

/* The place of that key, whose idx_plus_1 is 0 if it is new; NULL when out of memory. */
static struct slot *slots__at(struct slots *slots, uint32_t a, uint32_t b, uint64_t c)
{
	if (slots->cnt * 2 >= slots->room) {
		size_t room = slots->room ? slots->room * 2 : 256;
		struct slot *items = calloc(room, sizeof(*items));

		if (!items)
			return NULL;
		for (size_t i = 0; i < slots->room; i++) {
			const struct slot *slot = &slots->items[i];

			if (slot->idx_plus_1)
				*slots__place(items, room, slot->a, slot->b, slot->c) = *slot;
		}
		free(slots->items);
		slots->items = items;
		slots->room = room;
	}
	return slots__place(slots->items, slots->room, a, b, c);
}

static void slots__take(struct slots *slots, struct slot *slot, uint32_t a, uint32_t b, uint64_t c, size_t idx)
{
	*slot = (struct slot){.a = a, .b = b, .c = c, .idx_plus_1 = (uint32_t)idx + 1};
	slots->cnt++;
}

struct hot_paths *hot_paths__new(void)
{
	struct hot_paths *paths = calloc(1, sizeof(*paths));
	struct node start = {.function = HOT_PATHS_NONE, .parent = NONE, .first_child = NONE, .next = NONE};

	if (paths && vec_push(&paths->nodes, start)) {
		free(paths);
		return NULL;
	}
	return paths;
}

void hot_paths__free(struct hot_paths *paths)
{
	if (!paths)
		return;
	for (size_t i = 0; i < paths->threads.cnt; i++)
		free(paths->threads.items[i]);
	vec_free(&paths->nodes);
	vec_free(&paths->edges);
	vec_free(&paths->functions);
	vec_free(&paths->threads);
	free(paths->node_slots.items);
	free(paths->edge_slots.items);
	free(paths->function_slots.items);
	free(paths->thread_slots.items);
	free(paths);
}

uint64_t hot_paths__sample_cnt(const struct hot_paths *paths)
{
	return paths->sample_cnt;
}

/* --- functions and edges ------------------------------------------------------------------------------------------ */

static int add_function(struct hot_paths *paths, uint32_t function, const struct hot_sample *sample, bool self)
{
	struct slot *slot = slots__at(&paths->function_slots, function, 0, 0);
	struct function *at;

	if (!slot)
		return -ENOMEM;
	if (!slot->idx_plus_1) {
		struct function unseen = {.weights.function = function};

		if (vec_push(&paths->functions, unseen))
			return -ENOMEM;
		slots__take(&paths->function_slots, slot, function, 0, 0, paths->functions.cnt - 1);
	}
	at = &paths->functions.items[slot->idx_plus_1 - 1];
	if (self)
		*(sample->running ? &at->weights.self_running_ns : &at->weights.self_blocked_ns) += sample->ns;
	if (at->last_sample == paths->sample_cnt)
		return 0;
	at->last_sample = paths->sample_cnt;
	at->weights.sample_cnt++;
	*(sample->running ? &at->weights.running_ns : &at->weights.blocked_ns) += sample->ns;
	return 0;
}

static int add_edge(struct hot_paths *paths, const struct hot_frame *caller, uint32_t callee,
		    const struct hot_sample *sample)
{
	struct slot *slot = slots__at(&paths->edge_slots, caller->function, callee, caller->call_addr);
	struct edge *at;

	if (!slot)
		return -ENOMEM;
	if (!slot->idx_plus_1) {
		struct edge edge = {
			.edge = {.caller = caller->function, .callee = callee, .call_addr = caller->call_addr}};

		if (paths->edges.cnt == EDGES_MAX)
			return 0;
		if (vec_push(&paths->edges, edge))
			return -ENOMEM;
		slots__take(&paths->edge_slots, slot, caller->function, callee, caller->call_addr,
			    paths->edges.cnt - 1);
	}
	at = &paths->edges.items[slot->idx_plus_1 - 1];
	if (at->last_sample == paths->sample_cnt)
		return 0;
	at->last_sample = paths->sample_cnt;
	at->edge.sample_cnt++;
	*(sample->running ? &at->edge.running_ns : &at->edge.blocked_ns) += sample->ns;
	return 0;
}

/* --- the tree of paths -------------------------------------------------------------------------------------------- */

/* The callee's node below `parent`; NONE: there is no room for another. */
static int child_of(struct hot_paths *paths, uint32_t parent, uint32_t function, uint32_t *child)
{
	struct slot *slot = slots__at(&paths->node_slots, parent, function, 0);
	struct node node = {.function = function, .parent = parent, .first_child = NONE};

	if (!slot)
		return -ENOMEM;
	*child = slot->idx_plus_1 - 1;
	if (slot->idx_plus_1 || paths->nodes.cnt == NODES_MAX)
		return 0;
	node.next = paths->nodes.items[parent].first_child;
	if (vec_push(&paths->nodes, node))
		return -ENOMEM;
	*child = (uint32_t)paths->nodes.cnt - 1;
	paths->nodes.items[parent].first_child = *child;
	slots__take(&paths->node_slots, slot, parent, function, 0, *child);
	return 0;
}

/* NULL with *err 0: there are too many. */
static struct thread *thread_of(struct hot_paths *paths, uint32_t tid, int *err)
{
	struct slot *slot = slots__at(&paths->thread_slots, tid, 0, 0);
	struct thread *thread;

	*err = slot ? 0 : -ENOMEM;
	if (!slot || (!slot->idx_plus_1 && paths->threads.cnt == HOT_PATHS_THREADS_MAX))
		return NULL;
	if (slot->idx_plus_1)
		return paths->threads.items[slot->idx_plus_1 - 1];
	thread = calloc(1, sizeof(*thread));
	if (!thread || vec_push(&paths->threads, thread)) {
		free(thread);
		*err = -ENOMEM;
		return NULL;
	}
	thread->tid = tid;
	slots__take(&paths->thread_slots, slot, tid, 0, 0, paths->threads.cnt - 1);
	return thread;
}

/* How far this stack goes along with the thread's last one. */
static void compare_with_last(struct hot_paths *paths, struct thread *thread, const uint32_t *path, uint32_t depth)
{
	for (uint32_t i = 0; i < depth && i < thread->depth && path[i] == thread->path[i]; i++) {
		bool parts = i + 1 == depth || i + 1 == thread->depth || path[i + 1] != thread->path[i + 1];

		paths->nodes.items[path[i]].pair_cnt++;
		paths->nodes.items[path[i]].parts_cnt += parts;
	}
	memcpy(thread->path, path, depth * sizeof(*path));
	thread->depth = depth;
}

static int add_path(struct hot_paths *paths, const struct hot_sample *sample)
{
	uint32_t path[DEPTH_MAX + 1] = {0}, depth = 1, child;
	struct thread *thread;
	int err;

	paths->complete_ns += sample->ns;
	paths->nodes.items[0].ns += sample->ns;
	for (size_t i = sample->frame_cnt; i-- > 0 && depth <= DEPTH_MAX;) {
		if (sample->frames[i].function >= FUNCTIONS_MAX)
			continue;
		err = child_of(paths, path[depth - 1], sample->frames[i].function, &child);
		if (err)
			return err;
		if (child == NONE)
			break;
		paths->nodes.items[child].ns += sample->ns;
		path[depth++] = child;
	}
	thread = thread_of(paths, sample->thread, &err);
	if (thread)
		compare_with_last(paths, thread, path, depth);
	return err;
}

int hot_paths__add(struct hot_paths *paths, const struct hot_sample *sample)
{
	int err = 0;

	if (!(sample->ns >= 0))
		return 0;
	paths->sample_cnt++;
	for (size_t i = 0; i < sample->frame_cnt && !err; i++) {
		const struct hot_frame *frame = &sample->frames[i], *callee = i ? frame - 1 : NULL;

		if (frame->function >= FUNCTIONS_MAX)
			continue;
		err = add_function(paths, frame->function, sample, i == 0);
		if (!err && callee && callee->function < FUNCTIONS_MAX && frame->call_addr && !frame->guessed)
			err = add_edge(paths, frame, callee->function, sample);
	}
	return err || !sample->complete ? err : add_path(paths, sample);
}

/* --- what it all says --------------------------------------------------------------------------------------------- */

typedef VEC(struct hot_root) roots_list;

struct search {
	const struct hot_paths *paths;
	double shared, least_ns;
	roots_list roots;
};

static uint32_t heaviest_child(const struct hot_paths *paths, uint32_t node)
{
	uint32_t best = NONE;

	for (uint32_t c = paths->nodes.items[node].first_child; c != NONE; c = paths->nodes.items[c].next)
		if (best == NONE || paths->nodes.items[c].ns > paths->nodes.items[best].ns)
			best = c;
	return best;
}

static int add_root(struct search *search, uint32_t node)
{
	const struct hot_paths *paths = search->paths;
	const struct node *at = &paths->nodes.items[node];
	struct hot_root root = {.function = at->function, .parent = paths->nodes.items[at->parent].function};

	for (size_t i = 0; i < search->roots.cnt; i++) {
		struct hot_root *known = &search->roots.items[i];

		if (known->function == root.function && known->parent == root.parent) {
			known->share += at->ns / paths->complete_ns;
			return 0;
		}
	}
	root.share = at->ns / paths->complete_ns;
	return vec_push(&search->roots, root);
}

static bool is_parting_of_threads(const struct node *node)
{
	return node->pair_cnt && node->parts_cnt < PARTS_SHARE * node->pair_cnt;
}

static int search_below(struct search *search, uint32_t node, int depth)
{
	const struct node *nodes = search->paths->nodes.items;
	double all_ns = nodes[node].ns;
	uint32_t best = heaviest_child(search->paths, node);
	bool of_kinds;
	int err = 0;

	while (best != NONE && nodes[best].ns >= search->shared * all_ns) {
		node = best;
		best = heaviest_child(search->paths, node);
	}
	if (best == NONE)
		return node ? add_root(search, node) : 0;
	/* Below the virtual beginning, what differs is always the kind of thread. */
	of_kinds = !node || is_parting_of_threads(&nodes[node]);
	for (uint32_t c = nodes[node].first_child; c != NONE && !err; c = nodes[c].next) {
		if (nodes[c].ns < search->least_ns)
			continue;
		err = of_kinds && depth < DEPTH_MAX ? search_below(search, c, depth + 1) : add_root(search, c);
	}
	return err;
}

/* Running, blocked and the heaviest call come from the edges, which know them. */
static void complete_root(const struct hot_paths *paths, struct hot_root *root)
{
	struct hot_function weights;
	double heaviest_ns = -1;

	for (size_t i = 0; i < paths->edges.cnt; i++) {
		const struct hot_edge *edge = &paths->edges.items[i].edge;
		double ns = edge->running_ns + edge->blocked_ns;

		if (edge->caller != root->parent || edge->callee != root->function)
			continue;
		root->running_ns += edge->running_ns;
		root->blocked_ns += edge->blocked_ns;
		if (ns > heaviest_ns) {
			heaviest_ns = ns;
			root->call_addr = edge->call_addr;
		}
	}
	if (heaviest_ns < 0 && hot_paths__function(paths, root->function, &weights)) {
		root->running_ns = weights.running_ns;
		root->blocked_ns = weights.blocked_ns;
	}
}

ORDER(compare_roots, struct hot_root, BY(b->share, a->share), BY(a->function, b->function));

int hot_paths__roots(const struct hot_paths *paths, double shared, double least, struct hot_root **roots, size_t *cnt)
{
	struct search search = {.paths = paths, .shared = shared, .least_ns = least * paths->complete_ns};
	int err = paths->complete_ns > 0 ? search_below(&search, 0, 0) : 0;

	if (err) {
		vec_free(&search.roots);
		return err;
	}
	for (size_t i = 0; i < search.roots.cnt; i++)
		complete_root(paths, &search.roots.items[i]);
	if (search.roots.cnt)
		qsort(search.roots.items, search.roots.cnt, sizeof(*search.roots.items), compare_roots);
	*roots = search.roots.items;
	*cnt = search.roots.cnt;
	return 0;
}

static int compare_edges(const void *left, const void *right)
{
	const struct hot_edge *a = left, *b = right;
	double a_ns = a->running_ns + a->blocked_ns, b_ns = b->running_ns + b->blocked_ns;

	if (a_ns != b_ns)
		return a_ns < b_ns ? 1 : -1;
	if (a->callee != b->callee)
		return a->callee < b->callee ? -1 : 1;
	return (a->call_addr > b->call_addr) - (a->call_addr < b->call_addr);
}

int hot_paths__edges(const struct hot_paths *paths, uint32_t caller, struct hot_edge **edges, size_t *cnt)
{
	VEC(struct hot_edge) found = {0};

	for (size_t i = 0; i < paths->edges.cnt; i++) {
		const struct hot_edge *edge = &paths->edges.items[i].edge;

		if (caller != HOT_PATHS_NONE && edge->caller != caller)
			continue;
		if (vec_push(&found, *edge)) {
			vec_free(&found);
			return -ENOMEM;
		}
	}
	if (found.cnt)
		qsort(found.items, found.cnt, sizeof(*found.items), compare_edges);
	*edges = found.items;
	*cnt = found.cnt;
	return 0;
}

int hot_paths__children(const struct hot_paths *paths, uint32_t caller, struct hot_edge **edges, size_t *cnt)
{
	size_t kept = 0, seen;
	int err = hot_paths__edges(paths, caller, edges, cnt);

	if (err)
		return err;
	/* By weight: the first of a callee's calls is its heaviest. */
	for (size_t i = 0; i < *cnt; i++) {
		struct hot_edge *edge = &(*edges)[i];

		for (seen = 0; seen < kept && (*edges)[seen].callee != edge->callee; seen++)
			;
		if (seen == kept) {
			(*edges)[kept++] = *edge;
			continue;
		}
		(*edges)[seen].sample_cnt += edge->sample_cnt;
		(*edges)[seen].running_ns += edge->running_ns;
		(*edges)[seen].blocked_ns += edge->blocked_ns;
	}
	*cnt = kept;
	if (kept)
		qsort(*edges, kept, sizeof(**edges), compare_edges);
	return 0;
}

bool hot_paths__function(const struct hot_paths *paths, uint32_t function, struct hot_function *weights)
{
	const struct slots *slots = &paths->function_slots;
	const struct slot *slot = slots->room ? slots__place(slots->items, slots->room, function, 0, 0) : NULL;

	if (!slot || !slot->idx_plus_1)
		return false;
	*weights = paths->functions.items[slot->idx_plus_1 - 1].weights;
	return true;
}

static int compare_functions(const void *left, const void *right)
{
	const struct hot_function *a = left, *b = right;
	double a_ns = a->running_ns + a->blocked_ns, b_ns = b->running_ns + b->blocked_ns;

	if (a_ns != b_ns)
		return a_ns < b_ns ? 1 : -1;
	return (a->function > b->function) - (a->function < b->function);
}

int hot_paths__functions(const struct hot_paths *paths, struct hot_function **functions, size_t *cnt)
{
	VEC(struct hot_function) found = {0};

	if (vec_reserve(&found, paths->functions.cnt))
		return -ENOMEM;
	for (size_t i = 0; i < paths->functions.cnt; i++)
		found.items[found.cnt++] = paths->functions.items[i].weights;
	if (found.cnt)
		qsort(found.items, found.cnt, sizeof(*found.items), compare_functions);
	*functions = found.items;
	*cnt = found.cnt;
	return 0;
}
