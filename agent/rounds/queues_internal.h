/* SPDX-License-Identifier: GPL-2.0-or-later */
/* queue_lines.c says what is watched, queues.c watches it. */
#ifndef WHYLATE_ROUNDS_QUEUES_INTERNAL_H
#define WHYLATE_ROUNDS_QUEUES_INTERNAL_H

#include "probe/queues.h"
#include "probe/resolve.h"
#include "rounds/queues.h"

/* Lines that can be resolved together: no place is in there twice. */
struct queue_list {
	probe_lines lines;
	struct probe_targets targets;
	VEC(uint32_t) ids; /* of each line: its index in the study */
};

typedef VEC(struct queue_list) queue_lists;

/* The lines for all places: the instruction, and the function where its argument or result says the same.  0 or
 * -ENOMEM. */
int queue_lines_make(struct program *program, const struct queue_places *places, struct queue_study *study);
/* What can be probed of them.  0 or -ENOMEM; queue_lists_free() in any case. */
int queue_lines_resolve(struct program *program, const struct queue_study *study, queue_lists *lists);
void queue_lists_free(queue_lists *lists);
/* Of the pairs that were found: one for each queue, and one for each that is none, best first. */
int queue_pairs_choose(struct queue_study *study, const queue_pairs *found);

#endif
