/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Impact analysis, VarMRI §5: how much would the tail fall if an event never had high values?
 *
 *   impact(e) = (T(R_e) - T(R_e \ H_e)) / T(R_e)
 *
 * R_e: the intervals that recorded e; H_e: those of them whose value of e is high; T: the latency at the tail
 * percentile. The paper's own formula is lost in the text that we have; this one is derived from its sentences
 * ("comparing the latency variance with and without high values", variance measured by the tail value) and normalised
 * by the whole tail latency, so that it is the share by which the tail would fall.
 *
 * The impact favours events that few intervals meet: an event that all of them meet has no high values to leave out.
 * Beside it is the gain, which is exact for events that have a length,
 *
 *   gain(e) = (T(L) - T(L - e)) / T(L)
 *
 * L - e: each latency less what the interval spent on e.  The gain of a count is its impact.
 *
 * Then the two rules of §5.2 for hardware counters (hwcounter.def, hwrule.def); of two kernel events, the one of the
 * larger impact counts as the cause.  Everything is O(n log n) or better.
 */
#ifndef WHYLATE_ANALYSIS_IMPACT_H
#define WHYLATE_ANALYSIS_IMPACT_H

#include "analysis/tail_sample.h"

struct impact_opts {
	double tail;
	double lost;                      /* shares_lost_bound() */
	const struct tail_blocks *blocks; /* of the dataset's rows */
	const struct tail_error *error;   /* with the blocks */
};

/*
 * One line per event of the dataset, by gain, largest first, NAN last: lines[dataset->event_cnt].
 * An event that no interval recorded, or whose category has no hook on that kernel, has NAN; one that was 0 throughout
 * has gain and impact 0.  `order` is over dataset->latency_ns.  0 or -ENOMEM.
 */
int impact_compute(struct event_line *lines, const struct dataset *dataset, const struct stats_order *order,
		   const struct impact_opts *opts);

/* The category that an event's time belongs to ("runq.preempt.ns": RUNQ), -1 for tallies and hardware counters. */
int event_category(const char *event);

/* Is it named in hwcounter.def? */
bool event_is_hardware(const char *event);

/* What the rules need of an event; high and missing are bitmaps over rows. */
struct rule_event {
	const char *name;
	const uint64_t *values;  /* NULL: all 0 */
	const uint64_t *missing; /* NULL: none */
	const uint64_t *high;    /* NULL: none */
	double high_weight;
	double impact;
	double adjusted; /* the rules' answer, as in struct event_line; NAN: it rests on a pair never recorded together
			  */
	const char *explained_by;
	double overlap;
	const char *dropped_for;
	const char *correlated_with;
	double correlation;
};

/*
 * The weighted Jaccard index of two sets of high rows, over the rows that recorded both: 0 when neither is ever high,
 * NAN when no row recorded both.
 */
double rule_overlap(const struct rule_event *a, const struct rule_event *b, const double *weights, size_t row_cnt);

/*
 * How much of the child's variation direct proportion to the parent explains, over the rows that recorded both: R²
 * about the mean of y = b·x, 0 where it explains none; NAN: the child does not vary.
 */
double rule_proportion(const struct rule_event *child, const struct rule_event *parent, const double *weights,
		       size_t row_cnt);

/*
 * Rule 2, then rule 1, on all events, and the correlations of those to which no rule applies.  high_weight is the
 * weight of the high rows.
 */
void rules_apply(struct rule_event *events, size_t event_cnt, const double *weights, size_t row_cnt);

#endif
