/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests by type and by context (DESIGN §12, Whodunit §6): what each type takes, through which stages its requests
 * were handed on, in which call paths, and which types delay which.
 *
 * A context is a type and the chain of hand-offs behind it on critical paths: "socket redis-server", "queue worker".
 * A hand-off that repeats, and a loop, are folded (Whodunit §4.1).  Chains and crosstalk need --mode trace, call trees
 * need --stacks; the rest is there in every recording.
 */
#ifndef WHYLATE_ANALYSIS_CONTEXTS_H
#define WHYLATE_ANALYSIS_CONTEXTS_H

#include "analysis/context_chains.h"
#include "analysis/fronts.h"
#include "analysis/paths.h"

#define CONTEXT_CHAIN_MAX 8
#define CONTEXTS_MAX      4096 /* further ones are counted with their parents */
#define CONTEXT_NODES_MAX 200000

/* A call path of a type: its parent's and one more function; the root of each tree is a type itself, or a part of it.
 */
struct context_node {
	uint32_t parent;              /* a smaller index */
	uint32_t name;                /* index into contexts.strings */
	uint32_t type;                /* index into types */
	uint32_t part;                /* index into parts; UINT32_MAX: of the type as a whole */
	double on_ns, off_ns;         /* weighted: on a CPU and off it, in this very call path */
	double all_on_ns, all_off_ns; /* … and in what it called */
};

/* What requests of one type did in one context. */
struct context_part {
	uint32_t type;            /* index into types */
	uint32_t chain;           /* index into chains.items */
	double count, latency_ns; /* weighted: requests that ended in it */
	uint32_t node;            /* root of its samples; UINT32_MAX: none */
};

/* A stage is "KIND ROLE", with the type of the request there where it is known. */
struct context_line {
	uint32_t parent;        /* a smaller index; its own: a type by itself */
	uint32_t stage;         /* index into contexts.strings; 0: none */
	uint32_t type;          /* index into types */
	double count;           /* intervals whose path was there */
	double cpu_ns, wait_ns; /* weighted sums */
	double late_ns, typical_ns;
	double tail_share; /* (E[X | late] - E[X | typical]) over the sum of the same */
	uint32_t last_row; /* that was counted */
};

struct context_type {
	uint32_t name; /* index into the dataset's strings */
	double count, mean_ns, p99_ns;
	double cpu_ns, wait_ns; /* weighted sums */
	double cpu_share;       /* of the target's CPU time; NAN: not known */
	double late_share;      /* of what late requests took longer than typical ones */
	uint32_t node;          /* its root among the nodes; UINT32_MAX: no sample */
};

/* Of a crossing: the context of the request in the way, where that was not kept, or none is known. */
#define CONTEXT_CHAIN_UNKNOWN UINT32_MAX

/* Intervals of a type that waited for one of another type (or of none that is known). */
struct context_crossing {
	uint32_t type;     /* index into types */
	uint32_t by_type;  /* index into contexts.strings; 0: of none that is known */
	uint32_t chain;    /* by context: index into chains.items, in which the request ended */
	uint32_t by_chain; /* by context: that of the request in the way */
	uint8_t category;  /* LOCK, RUNQ, QUEUE */
	double count, wait_ns;
	double late_ns, typical_ns;
	double tail_share;
	uint32_t last_row, last_wait; /* the latter's index in waits */
	uint32_t id;                  /* that its waits name: crossings are sorted afterwards */
};

/* What one interval waited in a crossing. */
struct context_wait {
	uint32_t crossing; /* its id */
	uint32_t row;
	uint64_t ns;
};

/* Who waits for whom. */
struct context_crosstalk {
	VEC(struct context_crossing) items; /* the longest wait in all first */
	VEC(struct context_wait) waits;     /* row by row */
	struct idmap ids;
};

struct contexts {
	const struct dataset *dataset;
	struct arena *arena;
	struct intern strings;          /* 0 is "" */
	VEC(struct context_type) types; /* the largest share of lateness first */
	VEC(struct context_line) lines; /* parents before children */
	VEC(struct context_node) nodes;
	struct context_chains chains;
	VEC(struct context_part) parts;      /* none where no request was handed on */
	struct context_crosstalk by_type;    /* chain and by_chain are 0 */
	struct context_crosstalk by_context; /* likewise where no request was handed on */
	struct fronts fronts;                /* all 0 without paths */
	uint32_t *row_chain;                 /* by row: index into chains.items; NULL: no request was handed on */
	struct idmap line_ids, node_ids, part_ids;
	VEC(uint32_t) node_of; /* by id of node_ids */
	double tail, tail_threshold_ns, typical_ns;
	size_t walked;       /* intervals with a path */
	size_t folded_lines; /* hand-offs that found no room */
	size_t sample_cnt;   /* samples that are in a call tree */
	double sample_on_ns; /* of them, on a CPU, of requests */
	uint32_t no_request; /* root of what threads did that delayed requests and worked for none; UINT32_MAX: nothing
			      */
};

/* paths: NULL without --mode trace.  Reads the stacks from the beginning.  0 or -ENOMEM, -EIO. */
int contexts_make(struct contexts *contexts, const struct dataset *dataset, const struct paths *paths,
		  struct shard_reader *reader, double tail);
void contexts_free(struct contexts *contexts);

/* contexts_tree.c: adds the samples.  0 or -errno. */
int contexts__add_stacks(struct contexts *contexts, struct shard_reader *reader);

/* Some request was handed on. */
static inline bool contexts_have_chains(const struct contexts *contexts)
{
	return contexts->chains.items.cnt > CONTEXT_CHAIN_OTHER + 1;
}

static inline const char *contexts_string(const struct contexts *contexts, uint32_t id)
{
	return contexts->strings.strings[id];
}

#endif
