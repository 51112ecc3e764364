/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Places of a program where values may pass into queues in shared memory and out of them: its critical sections
 * (sections.h), in all modules, with the locks of the C library and the functions that wrap these.  Pure: nothing is
 * attached.
 */
#ifndef WHYLATE_PROBE_QUEUES_H
#define WHYLATE_PROBE_QUEUES_H

#include "probe/sections.h"

struct queue_place {
	uint32_t module, function;
	struct section_use use;
	bool waits;     /* out: the function waits for what it takes out */
	bool wakes;     /* in: … wakes a thread */
	uint32_t group; /* equal for the places of one value in a function */
};

struct queue_places {
	VEC(struct queue_place) items; /* likeliest first */
	size_t lock_functions;         /* functions with critical sections */
	size_t own_lock_functions;     /* … and places, of the executable itself */
	size_t left_out;               /* functions for which there was no time */
	size_t dropped;                /* places beyond the limit */
	uint64_t sections_ns;          /* CPU time that reading critical sections took */
};

/* At most max places, found within `limit_ns` of CPU time.  0 or -errno; queue_places_free() in any case. */
int queue_places_find(struct program *program, size_t max, uint64_t limit_ns, struct queue_places *places);
/* Only the likeliest stay. */
void queue_places_limit(struct queue_places *places, size_t max);
void queue_places_free(struct queue_places *places);

#endif
