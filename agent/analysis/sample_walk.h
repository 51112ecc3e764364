/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The functions that samples met on each interval's critical path, as times in a variance tree (sample_times.h).  With
 * paths, the path is that of model/path.h: what another thread did while the interval's own waited for it is `behind`
 * the function in which that one waited.  Without, it is what the interval's own threads did.
 *
 * Functions are those of the program: time in the kernel is that of the function that called it, and waits in the C
 * library are those of the first of its functions.  Waiting for a CPU and interrupts are no function's time.
 */
#ifndef WHYLATE_ANALYSIS_SAMPLE_WALK_H
#define WHYLATE_ANALYSIS_SAMPLE_WALK_H

#include "analysis/invocations.h"
#include "analysis/paths.h"
#include "analysis/sample_times.h"
#include "analysis/samples.h"

struct sample_walk {
	const struct samples *samples;
	const struct paths *paths; /* NULL: no detail was recorded */
	const struct dataset *dataset;
	struct sample_times times;
	uint32_t *row_of; /* by row of the dataset: index into times.rows, UINT32_MAX: it does not take part */
	bool *kept;       /* by node of the samples' tree: it has a node of its own */
	struct idmap
		node_ids; /* (node of the variance tree that it is behind, node of the samples') → index into nodes */
	VEC(uint32_t) nodes;
	struct path path;
	size_t ticks, waits; /* on paths */
};

/*
 * Makes the tree's nodes and all rows.  0 or -ENOMEM; sample_walk__free() in either case.  What is pointed to lives
 * longer.
 */
int sample_walk__init(struct sample_walk *walk, struct variance_tree *tree, const struct samples *samples,
		      const struct dataset *dataset, const struct paths *paths);
void sample_walk__free(struct sample_walk *walk);

/*
 * Fills *to and walk->times.noise, *queue_ns: 1; 0: the row does not take part; -ENOMEM.
 */
int sample_walk__row(struct sample_walk *walk, const struct variance_tree *tree, uint32_t row, struct call_times *to,
		     uint64_t *queue_ns);

/*
 * The functions of samples as if they had been probed, without calls: symbol i is name i of the samples.  Heights are
 * those in the samples' tree.  0 or -ENOMEM; invocations_free() in either case.
 */
int sample_functions(struct invocations *functions, const struct samples *samples);

/* Which of the parts an interval's time in a category is; TREE_DOING_CNT: in the queue, where it was on no thread. */
enum tree_doing category_doing(enum wl_category category);

#endif
