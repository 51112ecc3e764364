/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The probes of the symbol list while they are attached: those that say what a request is, or do more than to time a
 * function, stay; functions that are only timed may be let go for the budget.
 */
#ifndef WHYLATE_SESSION_LIST_H
#define WHYLATE_SESSION_LIST_H

#include "session/probes.h"

struct recorded_list;

/*
 * All of these: no list, nothing.  Open comes before the capture starts, begin once it has started and attaches what
 * has not been forgone.  0 or -errno after one line.
 */
int recording_list_open(struct recording *recording);
int recording_list_begin(struct recording *recording);
void recording_list_free(struct recording *recording);
/* One for each of recording->symbols.targets and in that order. False: nothing of it is attached. */
bool recording_list_hits(struct recording *recording, struct probe_hits *hits);
bool recording_list_may_go(const struct recording *recording, size_t idx);
bool recording_list_is_gone(const struct recording *recording, size_t idx);
const char *recording_list_name(const struct recording *recording, size_t idx);
/* Of those that may go. */
const struct plan *recording_list_plan(const struct recording *recording, size_t idx);
/* These are not attached at all, and their rows say so. Before recording_list_begin(); 0 or -errno. */
int recording_list_forgo(struct recording *recording, const bool *drop);
/*
 * Lets these go.  The other functions are attached anew, as they all go by one link: between gap.begin_ts and
 * gap.end_ts none of them is timed. 0 or -errno after one line.
 */
int recording_list_drop(struct recording *recording, const bool *drop);
/* Has any function that is attached a return probe? */
bool recording_list_has_returns(const struct recording *recording);
/* What became of functions that had return probes, the others being probed at each of their returns now. */
struct list_replanned {
	size_t gone_cnt;  /* their end cannot be seen, and they are let go */
	const char *gone; /* the first of those by name, NULL */
	bool is_broken;   /* one of those says what a request is, or does more than to time a function */
};

/*
 * No return probe is safe any more, as recording->program knows by now: all of the list is detached, planned anew, and
 * attached.  As above, there is a gap. 0 or -errno after one line.
 */
int recording_list_replan(struct recording *recording, struct list_replanned *replanned);
/* Is there a time in it when functions of the list were not timed for a moment? */
bool recording_list_has_gap(const struct recording *recording, uint64_t begin_ts, uint64_t end_ts);

/*
 * budget.c: before anything is attached, counts how often the functions that may go are called, with the
 * processor's breakpoint registers, and forgoes those that would not fit into the budget. 0 or -errno.
 */
int recording_budget_try(struct recording *recording);
/*
 * Every now and then, what the probes of the list cost is compared with the budget, and the dearest
 * functions are let go until it is kept. 0 or -errno.
 */
int recording_budget_keep(struct recording *recording);
/* Of the target's CPU time, what all probes of the list took when they were last looked at. */
double recording_budget_probes_share(const struct recording *recording);
void recording_budget_free(struct recording *recording);
/* The session's notes on it. 0 or the writer's error. */
int recording_budget_write_notes(struct recording *recording);

#endif
