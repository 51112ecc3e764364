/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows of the table `stack`, as the tests look at them. */
#ifndef WHYLATE_TESTS_STACKS_H
#define WHYLATE_TESTS_STACKS_H

#include "harness.h"

struct stack_row {
	uint64_t ts, end_ts, pid, tid, sid, delays; /* end_ts, sid 0: null */
	const char *state, *frames, *kernel_frames; /* "": null */
	double weight_ns, period_ns;                /* period_ns NAN: null */
	bool complete;
	uint64_t guessed;
};

struct stacks_seen {
	uint64_t row_cnt, complete_cnt, guessed_cnt, in_interval_cnt, delaying_cnt, running_cnt, pid_cnt;
	double running_ns, blocked_ns; /* of those that work for an interval */
	uint64_t pids[256];
};

typedef void (*stack_visitor)(void *owner, const struct stack_row *row);

/* All rows of a directory; visit may be NULL.  A failure is a failed check, too. */
bool stacks_read(struct stacks_seen *seen, const char *dir, stack_visitor visit, void *owner);

#endif
