/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rounds under way, for rounds.c (when what happens), probes.c, analyse.c and ask.c. */
#ifndef WHYLATE_ROUNDS_ROUNDS_INTERNAL_H
#define WHYLATE_ROUNDS_ROUNDS_INTERNAL_H

#include "analysis/findings.h"
#include "analysis/refine.h"
#include "base/idmap.h"
#include "base/vec.h"
#include "probe/hot_paths.h"
#include "probe/plan.h"
#include "rounds/rounds.h"
#include "session/client.h"
#include "target/program.h"

#include <pthread.h>
#include <stdatomic.h>

enum rounds_phase {
	ROUNDS_LOOKING,  /* no function is probed: stacks are sampled, and the rate of requests is learnt */
	ROUNDS_COUNTING, /* only how often functions are called, before it is decided which of them are timed */
	ROUNDS_PROBING,
	ROUNDS_RESTING,   /* what probing may cost in this round is used up */
	ROUNDS_ANALYSING, /* nothing is selected */
	ROUNDS_CHOOSING,  /* likewise, and the user is asked */
	ROUNDS_OVER,      /* nothing more will change */
};

/* A function that is or was probed, or could have been. */
struct round_function {
	uint32_t func; /* of the program, and of the recording */
	struct plan plan, count_plan;
	uint32_t parent;    /* as whose callee it was found; RECORDED_UNKNOWN: a root */
	double estimate_ns; /* cost of a call, entry and exit; NAN: it cannot be probed */
	bool attached, opened, explained, root, dull, understood;
	bool of_list;    /* probed for the symbol list, not by a round */
	const char *why; /* it is to be detached */
	bool counted;
	double hits_per_s; /* when it was attached last */
};

/* Probes that were attached together: one per function. */
struct round_set {
	struct recorded_set *set;
	uint32_t *functions; /* index into rounds.functions */
	size_t cnt;
};

struct round_analysis {
	pthread_t thread;
	bool running;
	atomic_bool done;
	atomic_bool idle; /* it is an idle task, which may not go on for ever */
	uint64_t started_ts;
	int err;
	char dir[4096];
	struct findings_opts options;
	struct shard_reader *reader;
	struct findings findings;
};

/* What the user has typed of a line so far. */
struct round_answer {
	char text[32];
	size_t len; /* of the line, which may be longer than the text */
};

struct rounds {
	struct recording *recording;
	const struct record_options *record;
	struct program *program;
	struct rounds_options options;
	enum rounds_phase phase;
	uint32_t round;
	uint64_t slot_end_ts; /* of the round, or of the look */
	uint64_t slot_ns;
	uint64_t look_ts; /* the next look at the cost */
	struct session_moment begin;
	double baseline_per_s, cpu_ns_per_s;
	double spent_ns; /* in this round, by probes that are attached no more */

	struct hot_paths *hot;
	double hot_ns; /* time of all samples */
	VEC(struct round_function) functions;
	struct idmap function_ids;
	VEC(struct round_set) sets;
	VEC(struct refine_child) children; /* of the function that refine.h asks about */
	struct round_analysis analysis;
	struct round_answer answer;
	uint32_t chosen; /* by the user; FACTOR_NONE: by the rule */
	bool again;      /* the user understands one more function: the round is to be analysed without it */
};

/* --- probes.c ----------------------------------------------------------------------------------------------------- */

/* All that have a return probe, which is not safe any more; none of those is attached. 0 or -ENOMEM. */
int rounds_replan(struct rounds *rounds);
/* Where the work of requests begins: roots, and what they call. 0, -ENOENT: nothing is known, or -errno. */
int rounds_find_roots(struct rounds *rounds);
/* How often the functions are called that are to be probed and of which that is not known: 0 or -ENOMEM. */
int rounds_count(struct rounds *rounds);
/* What refine.h needs to know of every function; free(). NULL: out of memory. */
struct refine_function *rounds_list(const struct rounds *rounds);
struct refine_input rounds_input(struct rounds *rounds, const struct refine_function *functions);
/* Marks what a plan says; nothing is attached or detached yet.  dull: what is taken away was found to be so. 0 or
 * -errno.
 */
int rounds_apply(struct rounds *rounds, const struct refine_plan *plan, bool dull);
/*
 * Attaches everything that is marked; what cannot be attached is marked as impossible.  count: only entries, of what
 * was never counted.  0 or -errno.
 */
int rounds_attach(struct rounds *rounds, bool count);
/* Unmarks what costs most for what it may tell, until the rest fits into that share of the budget: how many, or -errno.
 */
int rounds_fit(struct rounds *rounds, double share);
int rounds_detach(struct rounds *rounds);
/* Counts hits and cost of what is attached; the sum of the cost. */
double rounds_measure(struct rounds *rounds);
uint32_t rounds_probe_cnt(const struct rounds *rounds);

/* --- analyse.c ---------------------------------------------------------------------------------------------------- */

/* Reads what has been written so far, in a thread of its own. 0 or -errno. */
int rounds_analysis_start(struct rounds *rounds);
/* Called while it is under way: it gets a share of the CPUs once it has waited long for an idle one. */
void rounds_analysis_hurry(struct rounds *rounds, uint64_t now);
bool rounds_analysis_done(const struct rounds *rounds);
/* Waits for it; its error.  rounds_analysis_free() in either case. */
int rounds_analysis_wait(struct rounds *rounds);
void rounds_analysis_free(struct rounds *rounds);
/* Its factors by numbers of functions, as refine.h wants them, and which of the functions are explained. */
int rounds_factors(struct rounds *rounds, struct factors *factors);
/* On stderr: the first of its factors, and what becomes of them. */
void rounds_say_factors(const struct rounds *rounds, const struct refine_plan *plan);

/* --- ask.c ----------------------------------------------------------------------------------------------------------
 */

/* On stderr: which functions can be opened next. */
void rounds_ask(const struct rounds *rounds);
/*
 * Takes what has come on stdin, into rounds.chosen and rounds.again.  False: the answer has not been given yet, or
 * makes no sense and is asked for again.
 */
bool rounds_take_answer(struct rounds *rounds);

#endif
