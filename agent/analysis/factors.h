/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Factors: the variance of one function or the covariance of two (VProfiler §3.2.2, Algorithm 1).
 *
 *   contribution  Σ over the instances of the factor (call sites) of Var(X)/Var(L), for a pair of 2·Cov(X, Y)/Var(L):
 *                 what that term adds to the variance of the parent, as a share of the whole
 *   specificity   (height(call graph) - height(factor))^e, the height of a pair being the larger one; a body has none
 *                 of its function's callees in it, so its height is 0
 *   score         specificity · contribution
 *
 * Selected are the k largest scores; functions that have been opened only after all others, unlike in Algorithm 1.
 *
 * An instance inside of another instance of the same function (recursion) is part of that one and not counted again.
 */
#ifndef WHYLATE_ANALYSIS_FACTORS_H
#define WHYLATE_ANALYSIS_FACTORS_H

#include "analysis/variance_tree.h"
#include "base/vec.h"

#define FACTOR_NONE UINT32_MAX /* no second function */

/* Functions, as reports call them; "f itself" is what f does without the probed functions that it calls. */
typedef VEC(char *) factor_names;

#define FACTOR_ITSELF " itself"

/* 0 or -ENOMEM. */
int factor_names_add(factor_names *names, const char *name);
void factor_names_free(factor_names *names);

struct factor_rule {
	uint32_t k; /* how many to select */
	double d;   /* only with a contribution larger than this */
	uint32_t e; /* exponent of the specificity: 2; 3 is the earlier paper's */
	/*
	 * The earlier paper's rule (Algorithm 2, lines 12 to 17): an instance of which one child alone has at least
	 * this share contributes nothing itself.  0: not applied.
	 */
	double m;
	/*
	 * The user understands why these vary (Algorithm 2 of the earlier paper, line 29): their time is taken out of
	 * every interval, and the factors are those of what is left.  NULL: none.
	 */
	const factor_names *understood;
};

#define FACTOR_RULE_DEFAULT {.k = 3, .d = 0.05, .e = 2, .m = 0}

struct factor {
	uint32_t funcs[2]; /* funcs[1] FACTOR_NONE: a variance */
	bool body[2];      /* the function's own code only, the probed callees apart */
	double contribution;
	uint32_t height;
	double specificity, score;
	uint32_t call_sites; /* instances that occurred */
	bool opened;         /* a variance: callees of it were probed and occurred */
	uint32_t biggest;    /* node of the instance with the largest contribution; of a pair: its first one's */
	uint32_t rank;       /* among the selected ones: 1, 2, …; 0: not selected */

	/* A variance's: over all its instances together. */
	double variance_share; /* Σ Cov(X, L)/Var(L): such shares of a parent's children sum to the parent's */
	double mean_ns, calls, met;
	double doing_share[TREE_DOING_CNT];        /* of the mean; NAN: no time at all */
	double doing_contribution[TREE_DOING_CNT]; /* of the contribution: they sum to 1 */
	size_t first_instance, instance_cnt;       /* into factors.instances */
};

struct factors {
	VEC(struct factor) list; /* by score, largest first */
	VEC(uint32_t) instances; /* nodes; of a pair two each */
	VEC(double) terms;       /* by instance: what it contributes; of a pair's two both have what the pair does */
	size_t selected_cnt;
	uint32_t graph_height;
	double variance_ns2;            /* Var(L) */
	double body_share, queue_share; /* Cov/Var(L) of the time in no probed function, and before pickup */
};

/* The height of a function in the call graph: the longest way down from it; 0 for a leaf, or where nothing is known. */
typedef uint32_t (*factor_height)(void *ctx, uint32_t func);

/*
 * Algorithm 1.  graph_height: of the root of the call graph, the interval; at least one more than that of any function
 * in the tree is taken.  0 or -ENOMEM; factors_free() in either case.  Without variance there are no factors.
 */
int factors_select(struct factors *factors, const struct variance_tree *tree, const struct factor_rule *rule,
		   uint32_t graph_height, factor_height height, void *ctx);
void factors_free(struct factors *factors);

#endif
