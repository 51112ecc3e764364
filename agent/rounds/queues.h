/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queues in shared memory, found in a running process: the places that its machine code makes likely (probe/queues.h)
 * are watched for some seconds, and the values that pass them tell which are the two ends of a queue
 * (probe/queue_match.h).  What is watched is the lines of a symbol list, word for word those that are proposed.
 */
#ifndef WHYLATE_ROUNDS_QUEUES_H
#define WHYLATE_ROUNDS_QUEUES_H

#include "probe/queue_study.h"
#include "rounds/suggest.h"

/* 0, or -errno after a line that says what is wrong.  queue_study_free() in any case. */
int queues_find(struct queue_study *study, const struct suggest_options *options, struct program *program);
void queue_study_free(struct queue_study *study);

#endif
