/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which share of the time the hooks may select in, so that what they cost stays under the budget at any load: a pure
 * decision over cumulative counts, which governor.c collects and carries out.
 *
 * What was spent beyond the budget is a debt, what was not spent a credit of at most a second of the budget.  The share
 * follows from what the hooks cost per second attached, as of the last looks, and what the budget has left after a part
 * of the debt is paid back.  So an error of the estimate, a load that begins, and a load that changes each cost a while
 * of fewer or shorter windows, and the sum stays.  A target that does next to nothing is charged nothing.
 */
#ifndef WHYLATE_SESSION_GOVERN_H
#define WHYLATE_SESSION_GOVERN_H

#include <stdbool.h>
#include <stdint.h>

/* Since the beginning; all in ns. */
struct govern_seen {
	uint64_t ts;
	double spent_ns;                  /* by hooks, with the way to their programs */
	double open_ns;                   /* by attaching and detaching them */
	double rest_ns;                   /* by those that stay attached while no window is open */
	double cpu_ns;                    /* by the target */
	double attached_ns, selecting_ns; /* hooks were attached; of that, for windows to select */
};

struct govern {
	double budget;     /* of the target's CPU time, for hooks */
	double nothing_ns; /* per second: so much they may take of any target */
	struct govern_seen last;
	bool idle;              /* the target does next to nothing */
	double debt_ns;         /* below 0: a credit */
	double on_ns;           /* what hooks cost per second attached; NAN: not known yet */
	double own_ns;          /* of the budget, per second */
	double attached_factor; /* attached for so much of each second of selecting */
	double share;           /* decided last; 1: all the time */
};

void govern__init(struct govern *govern, double budget, const struct govern_seen *seen);
/* Of a CPU, what hooks may take whatever the target does. */
double govern_nothing(double budget);
/* Of the time, for windows until it is known what the hooks cost. */
double govern_share_first(double budget);
/* How long to wait between two looks. */
uint64_t govern__look_ns(const struct govern *govern);
/* The share from now on; 1: all the time. */
double govern__look(struct govern *govern, const struct govern_seen *seen);
/* May hooks stay attached after a window for what is still open? */
bool govern__may_hold(const struct govern *govern);

#endif
