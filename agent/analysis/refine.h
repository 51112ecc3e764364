/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The decision between two rounds (VProfiler Algorithm 3): which functions to open, that is to probe their callees;
 * which probes to take away; or why to stop.  Pure: what is known comes in, what to do comes out.  agent/cmd acts.
 *
 * Cost is in nanoseconds of the target's time per second.  A function's calls are measured while it is probed; what a
 * callee's would be is not known before it is, and taken to be its parent's unless the caller knows better.
 */
#ifndef WHYLATE_ANALYSIS_REFINE_H
#define WHYLATE_ANALYSIS_REFINE_H

#include "analysis/factors.h"

enum refine_verdict {
	REFINE_OPEN,
	REFINE_LEAF,          /* it calls nothing that could be probed */
	REFINE_EXPLAINED,     /* a wait whose object and culprit are known */
	REFINE_UNINFORMATIVE, /* contribution below the threshold */
	REFINE_OPENED,        /* its callees are probed already: what they leave is its own code */
	REFINE_BUDGET,        /* nothing of it fits into the budget */
	REFINE_VERDICT_CNT
};

const char *refine_verdict_text(enum refine_verdict verdict);

/* A function that is or was probed. */
struct refine_function {
	uint32_t func;
	bool attached;
	bool opened;       /* callees of it have been tried */
	bool explained;    /* its waits' object and culprit are known */
	bool dull;         /* it was probed and contributed too little: not again */
	bool root;         /* probed as the top of an interval's work */
	bool understood;   /* its time is taken out of every interval, for which it has to be known */
	double hits_per_s; /* measured while attached */
	double cost_ns;    /* of a hit, entry and exit */
	double weight;     /* as of a callee, without that of its callees that are attached */
};

/* A function that another one calls. */
struct refine_child {
	uint32_t func;
	double cost_ns;    /* of a hit, entry and exit; NAN: no probe is possible */
	double hits_per_s; /* expected; NAN: not known */
	double weight;     /* share of the interval's time in which it was met on sampled stacks; NAN: not known */
};

/* The callees of a function, each once; valid until the next call.  0 or -errno, which ends the decision. */
typedef int (*refine_children)(void *ctx, uint32_t func, const struct refine_child **children, size_t *cnt);

struct refine_input {
	const struct factors *factors;
	const struct refine_function *functions;
	size_t function_cnt;
	struct factor_rule rule;
	double budget_ns_per_s; /* for all probes */
	double alone_max;       /* the most of it for one function: beneath a dearer one, its callees are probed */
	uint32_t probes_max;    /* at one time */
	uint32_t levels;        /* callees, their callees, …: how far down a function is opened at once; at least 1 */
	double weight_min;      /* below the first level, only callees met on so many of the samples */
	uint32_t only;          /* open this function and no other, whatever the factors say; FACTOR_NONE: choose */
	refine_children children;
	void *ctx;
};

struct refine_decision {
	uint32_t func;
	double contribution;
	enum refine_verdict verdict;
};

struct refine_attach {
	uint32_t func;
	uint32_t parent; /* whose callee it is probed as */
};

struct refine_detach {
	uint32_t func;
	const char *why; /* static text */
};

struct refine_plan {
	VEC(struct refine_decision) decisions; /* one per selected factor's function, by rank */
	VEC(struct refine_attach) attach;
	VEC(struct refine_detach) detach;
	double cost_ns_per_s; /* expected, with all that is to be attached */
	bool done;            /* nothing left to open */
};

/* 0, -ENOMEM, or what the callback returned; refine_plan_free() in either case. */
int refine_decide(struct refine_plan *plan, const struct refine_input *input);
void refine_plan_free(struct refine_plan *plan);

/*
 * While a round is under way: which of the attached functions have to go, so that the rest fits into the budget; those
 * that cost the most per unit of contribution (by `factors`, NULL: none is known; or of weight) first.  Roots are no
 * exception: what they call is then seen without them.  Appends to `detach`.  0 or -ENOMEM.
 */
int refine_relieve(struct refine_plan *plan, const struct refine_input *input);

#endif
