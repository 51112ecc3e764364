/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls of probed functions wait here, in bounded memory, until the interval that they belong to has ended; then they
 * become rows of `invocation`, or are forgotten with it.  received = written + forgotten + waiting.
 *
 * Calls of one interval may come out of the rings before or after its own record, and in any order among each other: an
 * interval is settled when all that was sent before its end has been taken; then its rows are ordered by thread,
 * children before parents.  A call that outlived its interval on another thread comes later, and its row behind the
 * others.  When memory is full, whole intervals are forgotten, those first whose first call came first.  One thread
 * only, no I/O.
 */
#ifndef WHYLATE_MODEL_INVOCATIONS_H
#define WHYLATE_MODEL_INVOCATIONS_H

#include <whylate/record.h>

#include "shard/table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 0 or -errno, which ends the call under way. */
typedef int (*invocations_append)(void *owner, enum shard_table_id table, const struct shard_row *row);

struct invocations_opts {
	uint64_t memory; /* bytes */
	invocations_append append;
	void *owner;
};

struct invocations_counts {
	uint64_t received;
	uint64_t written;
	uint64_t forgotten;  /* with their intervals, or for want of memory, or because they cannot be true */
	uint64_t impossible; /* of them, the last */
	uint64_t missing;    /* of kept intervals, and forgotten for want of memory */
	uint64_t waiting;
};

struct invocations;

/* NULL when out of memory. */
struct invocations *invocations__new(const struct invocations_opts *opts);
void invocations__free(struct invocations *invocations); /* NULL-safe */

/* 0 or -ENOMEM. */
int invocations__take(struct invocations *invocations, const struct wl_invocation_record *record);
/*
 * The interval has ended, and it is kept or not.  0 or -ENOMEM; *complete: none of its calls that came until now was
 * forgotten, which the interval's row is to say (WL_INTERVAL_LOSSY).
 */
int invocations__interval(struct invocations *invocations, uint64_t sid, uint64_t end_ts, bool keep, bool *complete);
/*
 * Everything that was sent until polled_ts has been taken: writes what is to be kept of the intervals that had ended by
 * then.  (A thread that moves sends into the rings of two CPUs: of a later interval a call may still be in the other.)
 */
int invocations__advance(struct invocations *invocations, uint64_t polled_ts);
/* Nothing more will come: what still waits for the end of its interval is forgotten. */
int invocations__finish(struct invocations *invocations);

void invocations__counts(const struct invocations *invocations, struct invocations_counts *counts);
size_t invocations__bytes(const struct invocations *invocations);

#endif
