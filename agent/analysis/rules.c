// SPDX-License-Identifier: GPL-2.0-or-later
/* VarMRI §5.2: which of two correlated hardware counters is the cause. */
#include "analysis/impact.h"

#include "model/hw_rules.h"

#include <math.h>
#include <string.h>

#define PROPORTION_R2_MIN 0.99
#define CORRELATION_MIN   0.1 /* below, two sets of high rows have nothing to do with each other */

static uint64_t bitmap_word(const uint64_t *bitmap, size_t word)
{
	return bitmap ? bitmap[word] : 0;
}

static double word_weight(uint64_t bits, const double *weights)
{
	double weight = 0;

	for (; bits; bits &= bits - 1)
		weight += weights[__builtin_ctzll(bits)];
	return weight;
}

double rule_overlap(const struct rule_event *a, const struct rule_event *b, const double *weights, size_t row_cnt)
{
	size_t words = bitmap_words(row_cnt);
	double both = 0, either = 0;
	bool together = false;

	for (size_t w = 0; w < words; w++) {
		uint64_t rows = w + 1 < words || !(row_cnt % 64) ? UINT64_MAX : (1ULL << row_cnt % 64) - 1;
		uint64_t recorded = ~(bitmap_word(a->missing, w) | bitmap_word(b->missing, w)) & rows;
		uint64_t any = (bitmap_word(a->high, w) | bitmap_word(b->high, w)) & recorded;

		together |= recorded != 0;
		if (!any)
			continue;
		either += word_weight(any, weights + w * 64);
		both += word_weight(bitmap_word(a->high, w) & bitmap_word(b->high, w) & recorded, weights + w * 64);
	}
	if (!together)
		return NAN;
	return either > 0 ? both / either : 0;
}

static bool is_missing(const struct rule_event *event, size_t row)
{
	return event->missing && bitmap_test(event->missing, row);
}

/* y = b·x by least squares; two passes, so that no large sums are subtracted from each other. */
double rule_proportion(const struct rule_event *child, const struct rule_event *parent, const double *weights,
		       size_t row_cnt)
{
	double n = 0, mean = 0, xx = 0, xy = 0, left = 0, all = 0;

	if (!child->values || !parent->values)
		return NAN;
	for (size_t i = 0; i < row_cnt; i++) {
		double x = (double)parent->values[i], y = (double)child->values[i];

		if (!(weights[i] > 0) || is_missing(child, i) || is_missing(parent, i))
			continue;
		n += weights[i];
		mean += (y - mean) * weights[i] / n;
		xx += weights[i] * x * x;
		xy += weights[i] * x * y;
	}
	for (size_t i = 0; i < row_cnt && xx > 0; i++) {
		double x = (double)parent->values[i], y = (double)child->values[i], off = y - xy / xx * x;

		if (!(weights[i] > 0) || is_missing(child, i) || is_missing(parent, i))
			continue;
		left += weights[i] * off * off;
		all += weights[i] * (y - mean) * (y - mean);
	}
	if (!(all > 0))
		return NAN;
	return left < all ? 1 - left / all : 0;
}

static struct rule_event *event_named(struct rule_event *events, size_t event_cnt, const char *name)
{
	for (size_t i = 0; i < event_cnt; i++)
		if (!strcmp(events[i].name, name))
			return &events[i];
	return NULL;
}

/* A child that rises in step with its parent rises because the parent does: the parent's line says it all. */
static void drop_children(struct rule_event *events, size_t event_cnt, const double *weights, size_t row_cnt)
{
	size_t cnt;
	const struct hw_child *children = hw_children(&cnt);

	for (size_t i = 0; i < cnt; i++) {
		struct rule_event *child = event_named(events, event_cnt, hw_traits(children[i].child)->name);
		struct rule_event *parent = event_named(events, event_cnt, hw_traits(children[i].parent)->name);

		if (child && parent && rule_proportion(child, parent, weights, row_cnt) > PROPORTION_R2_MIN)
			child->dropped_for = parent->name;
	}
}

/*
 * Is c a possible cause of e?  Of hardware counters rule 1 tells; of kernel events, which come together (a preemption
 * is a context switch), the one of the larger impact; between the two kinds there is no rule.
 */
static bool may_cause(const struct rule_event *c, const struct rule_event *e)
{
	enum hw_group group = hw_group_named(e->name), of_cause = hw_group_named(c->name);

	if (group != HW_GROUP_NONE || of_cause != HW_GROUP_NONE)
		return group != HW_GROUP_NONE && of_cause > group;
	return c->impact > e->impact || (c->impact == e->impact && c < e);
}

/* No two sets overlap by more than the smaller weighs of the larger. */
static double overlap_at_most(const struct rule_event *a, const struct rule_event *b)
{
	/* Weights are of the rows that recorded the one, which need not be those that recorded the other. */
	if (a->missing || b->missing || !(a->high_weight > 0) || !(b->high_weight > 0))
		return 1;
	return fmin(a->high_weight, b->high_weight) / fmax(a->high_weight, b->high_weight);
}

/*
 * adjusted(e) = impact(e) - max over c of overlap(c, e)·impact(c), c a possible cause.  Only the largest is deducted,
 * because the causes may be correlated with each other.  A dropped child is no cause: its parent is in its place.
 * The overlap with a c that was never recorded together with e may be anything up to 1: where that could make it the
 * largest, adjusted(e) is not known.
 */
static void deduct_causes(struct rule_event *events, struct rule_event *e, size_t event_cnt, const double *weights,
			  size_t row_cnt)
{
	double most = 0, unknown = 0;

	for (const struct rule_event *c = events; c < events + event_cnt; c++) {
		double overlap;

		if (c == e || c->dropped_for || !(c->impact > 0) || !may_cause(c, e) ||
		    overlap_at_most(c, e) * c->impact <= most)
			continue;
		overlap = rule_overlap(c, e, weights, row_cnt);
		if (isnan(overlap))
			unknown = fmax(unknown, c->impact);
		if (!(overlap * c->impact > most))
			continue;
		most = overlap * c->impact;
		e->explained_by = c->name;
		e->overlap = overlap;
	}
	e->adjusted = unknown > most ? NAN : e->impact - most;
}

/* The event whose high rows overlap most with those of e, of those to which no rule applies. */
static void find_correlation(const struct rule_event *events, struct rule_event *e, size_t event_cnt,
			     const double *weights, size_t row_cnt)
{
	double most = CORRELATION_MIN;

	for (const struct rule_event *c = events; c < events + event_cnt; c++) {
		double overlap;

		if (c == e || c->dropped_for || !(c->impact > 0) || may_cause(c, e) || may_cause(e, c) ||
		    overlap_at_most(c, e) <= most)
			continue;
		overlap = rule_overlap(c, e, weights, row_cnt);
		if (!(overlap > most))
			continue;
		most = overlap;
		e->correlated_with = c->name;
		e->correlation = overlap;
	}
}

void rules_apply(struct rule_event *events, size_t event_cnt, const double *weights, size_t row_cnt)
{
	for (size_t i = 0; i < event_cnt; i++) {
		events[i].adjusted = events[i].impact;
		events[i].explained_by = events[i].dropped_for = NULL;
		events[i].overlap = NAN;
		events[i].correlated_with = NULL;
		events[i].correlation = NAN;
	}
	drop_children(events, event_cnt, weights, row_cnt);
	for (size_t i = 0; i < event_cnt; i++) {
		/* Of a kernel event without impact nothing is to be deducted. */
		if (isnan(events[i].impact) ||
		    (!(events[i].impact > 0) && hw_group_named(events[i].name) == HW_GROUP_NONE))
			continue;
		deduct_causes(events, &events[i], event_cnt, weights, row_cnt);
		if (events[i].impact > 0)
			find_correlation(events, &events[i], event_cnt, weights, row_cnt);
	}
}
