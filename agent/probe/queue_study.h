/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What was watched for queues in a running process, and what it told: filled in by rounds/queues.h. */
#ifndef WHYLATE_PROBE_QUEUE_STUDY_H
#define WHYLATE_PROBE_QUEUE_STUDY_H

#include "probe/queue_match.h"

#include <stddef.h>

struct queue_line {
	char *text; /* as a symbol list has it */
	uint32_t place, function;
	bool out;
	bool by_name;  /* of a function that has a name: it means the same in another build */
	bool has_lock; /* what it says of the queue is the address of the lock */
	bool lockless; /* of a function that takes no lock that is known: less likely */
	struct queue_end end;
	bool watched;
	uint64_t hits;
};

struct queue_study {
	VEC(struct queue_line) lines;
	queue_pairs pairs;                         /* in and out: indices of lines; of each queue the best pair */
	queue_pairs rejected;                      /* likewise, of what looked like one and is none */
	size_t few;                                /* pairs over which too few values crossed to tell */
	size_t lock_functions, own_lock_functions; /* with critical sections; the executable's own with places */
	size_t places, dropped;                    /* that are looked at; that are too many */
	size_t left_out;                           /* functions for which there was no time */
	uint64_t values, lost;                     /* that were seen, that were not because a ring was full */
	double seconds;
	double cost; /* share of one CPU that the probes took meanwhile */
};

static inline const struct queue_line *queue_line_of(const struct queue_study *study, uint32_t idx)
{
	return &study->lines.items[idx];
}

#endif
