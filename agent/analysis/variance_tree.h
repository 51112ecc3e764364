/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The variance tree (VProfiler §3.2.1): one node per call path, and per parent the variances and covariances of its
 * children's times, so that
 *
 *   Var(X_parent) = Σ Var(X_child) + 2 Σ Cov(X_child, X_other)        exactly, `body` being one of the children
 *
 * X of a node is its time in one interval, 0 where it did not occur.  The root is the interval itself, X = L; its body
 * is the time in no probed function, its queue the time before a thread began to work on it.
 *
 * One pass, sums only, weighted (frequency weights, divisor W, as in stats.h).  Only what occurs in an interval is
 * touched: the moments are those over the intervals in which the node (the pair) occurred, after Welford and West, and
 * those over all intervals follow from them by Chan's formula for merging, the absent ones being zeros.  No difference
 * of large sums is ever formed.  Cost per interval: linear in the nodes that occur, quadratic in those of one parent.
 *
 * Times may be estimates from samples (variance_tree__estimate()): then a node's children may exceed it, what they
 * leave is negative there, and every interval comes with the products of its estimates' errors, which are taken out of
 * the variances and covariances.  Times are two's complement then.
 *
 * Merging two trees gives the tree of both together.  Numbers of functions are the caller's and the same in both.  Not
 * thread-safe; no I/O.
 */
#ifndef WHYLATE_ANALYSIS_VARIANCE_TREE_H
#define WHYLATE_ANALYSIS_VARIANCE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TREE_ROOT      0
#define TREE_NONE      UINT32_MAX
#define TREE_DEPTH_MAX 128

/* What a thread did during a call, as enum wl_split: they sum to the time. */
enum tree_doing {
	TREE_RUNNING,
	TREE_RUNNABLE,
	TREE_INTERRUPTED,
	TREE_LOCK, /* blocked from here on */
	TREE_DISK,
	TREE_NET,
	TREE_SLEEP,
	TREE_FAULT,
	TREE_OTHER,
	TREE_DOING_CNT
};
#define TREE_BLOCKED TREE_LOCK /* the first of those */

enum tree_part {
	TREE_FUNCTION,
	TREE_BODY,  /* of its parent: what the parent's other children leave of it */
	TREE_QUEUE, /* of the root: before pickup */
};

struct variance_tree;

/* What tells the children of one parent apart. */
struct tree_call {
	uint32_t func;
	uint64_t call_addr; /* return address, 0: not known */
	bool behind;        /* on another thread, for which the parent waited (trace mode) */
};

struct tree_node {
	uint32_t parent; /* TREE_NONE: the root */
	enum tree_part part;
	struct tree_call call; /* TREE_BODY: the parent's */
	uint32_t depth;
	uint32_t body;            /* of this node; TREE_NONE: nothing was ever called from it */
	const uint32_t *children; /* body (and queue) among them */
	size_t child_cnt;
};

/* Over all intervals. */
struct tree_stats {
	double mean_ns, variance_ns2;
	double cov_latency_ns2;               /* Cov(X, L) */
	double doing_mean_ns[TREE_DOING_CNT]; /* of X; unknown for a queue: 0 */
	double doing_cov_ns2[TREE_DOING_CNT]; /* Cov(X_doing, X): they sum to Var(X) */
	double calls;                         /* per interval, on average */
	double met;                           /* share of the intervals in which it occurs */
};

/* A node's time in one interval, its callees' included. */
struct tree_time {
	uint32_t node; /* a TREE_FUNCTION */
	uint32_t calls;
	uint64_t ns;
	uint64_t doing_ns[TREE_DOING_CNT]; /* sum to ns */
};

/*
 * Of two samples of one interval, in nodes a and b: what they add to the product of the two nodes' times beyond what
 * the product of the true times has of it, on average.  a == b: to the square.
 */
struct tree_noise {
	uint32_t a, b;
	double ns2;
};

struct tree_interval {
	double weight;
	uint64_t latency_ns, queue_ns;
	uint64_t doing_ns[TREE_DOING_CNT]; /* of the rest, as far as it is known */
	const struct tree_noise *noise;    /* of estimates */
	size_t noise_cnt;
};

/* NULL and errno. */
struct variance_tree *variance_tree__new(void);
void variance_tree__free(struct variance_tree *tree);
/*
 * From now on times are estimates.  Exact are the interval's, and those of a node with children `behind` it: the errors
 * of these are its body's, too.
 */
void variance_tree__estimate(struct variance_tree *tree);

/* The node of that call path, made when it is new: 0; -ENOMEM; -E2BIG: too deep or too many nodes, *node is `parent`.
 */
int variance_tree__node(struct variance_tree *tree, uint32_t parent, const struct tree_call *call, uint32_t *node);

/*
 * One interval: every node at most once and with its ancestors; the children of a node together must not exceed it, nor
 * those of the root latency_ns - queue_ns.  0; -EINVAL: they do, nothing was added; -ENOMEM: the tree is of no use any
 * more.
 */
int variance_tree__add(struct variance_tree *tree, const struct tree_interval *interval, const struct tree_time *times,
		       size_t cnt);

/*
 * Likewise, but nothing is added: what every node has in that interval can then be asked for, its body's part too,
 * until the next one.  A node's own time is that of its body, or its own where it has none.
 */
int variance_tree__visit(struct variance_tree *tree, const struct tree_interval *interval,
			 const struct tree_time *times, size_t cnt);
/* false: it does not occur in it. */
bool variance_tree__visited(const struct variance_tree *tree, uint32_t node, struct tree_time *time);
/* Of the interval visited last: the noise in a node's square, and in products of two children of one parent. */
double variance_tree__visited_noise(const struct variance_tree *tree, uint32_t node);
const struct tree_noise *variance_tree__visited_pairs(const struct variance_tree *tree, size_t *cnt);
/* A time, which is negative where estimates leave less than nothing. */
static inline double tree_ns(uint64_t ns)
{
	return (double)(int64_t)ns;
}

size_t variance_tree__node_cnt(const struct variance_tree *tree);
void variance_tree__node_at(const struct variance_tree *tree, uint32_t id, struct tree_node *node);
void variance_tree__stats(const struct variance_tree *tree, uint32_t id, struct tree_stats *stats);
/* Of two children of one parent. */
double variance_tree__cov(const struct variance_tree *tree, uint32_t child, uint32_t other);
uint32_t variance_tree__queue(const struct variance_tree *tree); /* the node */

#endif
