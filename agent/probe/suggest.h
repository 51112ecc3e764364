/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which functions of a program may be the boundaries of its requests, its locks and its queues: guessed from the words
 * that their names are made of, to be confirmed by how often they fire.  Pure: no privilege, nothing attached.
 */
#ifndef WHYLATE_PROBE_SUGGEST_H
#define WHYLATE_PROBE_SUGGEST_H

#include "base/vec.h"
#include "probe/symbol_list.h"
#include "target/program.h"

struct suggestion {
	uint32_t func;        /* of the program */
	enum probe_role role; /* PROBE_INTERVAL, _ACQUIRE, _RELEASE, _ENQUEUE, _DEQUEUE */
	int score;            /* how much its name says so */
	uint64_t stem;        /* equal for functions of one lock or queue: lock_foo, unlock_foo */
	/* For the caller, who counts. */
	bool counted; /* its entry was attached */
	double per_s; /* how often it fired; 0 until then */
	double cost;  /* of its probe, a share of one CPU */
};

typedef VEC(struct suggestion) suggestions;

/* Suggestions after their calls were counted. */
struct suggestion_study {
	suggestions found;
	size_t counted_cnt;
	double seconds, requests_per_s;
};

/* What a name says: false when nothing.  `name` as people write it; arguments of a C++ name are not looked at. */
bool suggest_role(const char *name, struct suggestion *suggestion);

/*
 * The likeliest functions of all modules, at most max_per_role each, best first within a role; the executable's come
 * before those of libraries.  0 or -ENOMEM.
 */
int suggestions_make(struct program *program, size_t max_per_role, suggestions *found);
/* The suggestion of `role` with the same stem and module, NULL: none. */
const struct suggestion *suggestion_partner(const suggestions *all, struct program *program,
					    const struct suggestion *of, enum probe_role role);

#endif
