// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/hot_paths.h"

#include "base/idmap.h"
#include "base/order.h"
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

struct hot_paths {
	VEC(struct node) nodes;
	VEC(struct edge) edges;
	VEC(struct function) functions; /* those that a sample had */
	VEC(struct thread *) threads;
	struct idmap node_ids, edge_ids, function_ids, thread_ids; /* the numbers of those; of nodes but the first */
	uint64_t sample_cnt;
	double complete_ns;
};

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
	idmap__free(&paths->node_ids);
	idmap__free(&paths->edge_ids);
	idmap__free(&paths->function_ids);
	idmap__free(&paths->thread_ids);
	free(paths);
}

uint64_t hot_paths__sample_cnt(const struct hot_paths *paths)
{
	return paths->sample_cnt;
}

/* --- functions and edges ------------------------------------------------------------------------------------------ */

static int add_function(struct hot_paths *paths, uint32_t function, const struct hot_sample *sample, bool self)
{
	struct function *at;
	uint32_t id;

	if (vec_reserve(&paths->functions, 1) || idmap__id(&paths->function_ids, function, 0, &id))
		return -ENOMEM;
	if (id == paths->functions.cnt)
		vec_push(&paths->functions, ((struct function){.weights.function = function}));
	at = &paths->functions.items[id];
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
	const struct edge edge = {
		.edge = {.caller = caller->function, .callee = callee, .call_addr = caller->call_addr},
	};
	uint64_t ends = (uint64_t)caller->function << 32 | callee;
	struct edge *at;
	uint32_t id;

	if (paths->edges.cnt == EDGES_MAX) {
		if (!idmap__find(&paths->edge_ids, ends, caller->call_addr, &id))
			return 0;
	} else if (vec_reserve(&paths->edges, 1) || idmap__id(&paths->edge_ids, ends, caller->call_addr, &id)) {
		return -ENOMEM;
	}
	if (id == paths->edges.cnt)
		vec_push(&paths->edges, edge);
	at = &paths->edges.items[id];
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
	struct node node = {.function = function, .parent = parent, .first_child = NONE};
	uint32_t id;

	*child = NONE;
	if (idmap__find(&paths->node_ids, parent, function, &id)) {
		*child = id + 1;
		return 0;
	}
	if (paths->nodes.cnt == NODES_MAX)
		return 0;
	node.next = paths->nodes.items[parent].first_child;
	if (vec_reserve(&paths->nodes, 1) || idmap__id(&paths->node_ids, parent, function, &id))
		return -ENOMEM;
	vec_push(&paths->nodes, node);
	*child = id + 1;
	paths->nodes.items[parent].first_child = *child;
	return 0;
}

/* NULL with *err 0: there are too many. */
static struct thread *thread_of(struct hot_paths *paths, uint32_t tid, int *err)
{
	struct thread *thread;
	uint32_t id;

	*err = 0;
	if (idmap__find(&paths->thread_ids, tid, 0, &id))
		return paths->threads.items[id];
	if (paths->threads.cnt == HOT_PATHS_THREADS_MAX)
		return NULL;
	thread = calloc(1, sizeof(*thread));
	if (!thread || vec_reserve(&paths->threads, 1) || idmap__id(&paths->thread_ids, tid, 0, &id)) {
		free(thread);
		*err = -ENOMEM;
		return NULL;
	}
	vec_push(&paths->threads, thread);
	thread->tid = tid;
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
	vec_sort(&search.roots, compare_roots);
	*roots = search.roots.items;
	*cnt = search.roots.cnt;
	return 0;
}

ORDER(compare_edges, struct hot_edge, BY(b->running_ns + b->blocked_ns, a->running_ns + a->blocked_ns),
      BY(a->callee, b->callee), BY(a->call_addr, b->call_addr));

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
	vec_sort(&found, compare_edges);
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
	uint32_t id;

	if (!idmap__find(&paths->function_ids, function, 0, &id))
		return false;
	*weights = paths->functions.items[id].weights;
	return true;
}

ORDER(compare_functions, struct hot_function, BY(b->running_ns + b->blocked_ns, a->running_ns + a->blocked_ns),
      BY(a->function, b->function));

int hot_paths__functions(const struct hot_paths *paths, struct hot_function **functions, size_t *cnt)
{
	VEC(struct hot_function) found = {0};

	if (vec_reserve(&found, paths->functions.cnt))
		return -ENOMEM;
	for (size_t i = 0; i < paths->functions.cnt; i++)
		found.items[found.cnt++] = paths->functions.items[i].weights;
	vec_sort(&found, compare_functions);
	*functions = found.items;
	*cnt = found.cnt;
	return 0;
}
