/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How much one host's monotonic clock is ahead of another's, from messages in both directions (Cristian 1989; the
 * minimum over a window is NTP's clock filter, RFC 5905 §10).
 *
 * A message from a to b says  received - sent = delay + offset,  one from b to a  delay - offset,  and no delay is
 * negative.  With the smallest of each direction in a window,  offset = half the difference, uncertain by half the sum:
 * whatever the delays were, and however asymmetric, the true offset lies within.  Clocks drift apart: every window has
 * an offset of its own, and between windows it is interpolated.  The two smallest of a window are of different moments;
 * what the clocks drifted between these is taken out by a first estimate without.
 */
#ifndef WHYLATE_ANALYSIS_CLOCK_LINK_H
#define WHYLATE_ANALYSIS_CLOCK_LINK_H

#include "base/vec.h"

#include <stddef.h>
#include <stdint.h>

#define CLOCK_WINDOW_NS 2000000000ULL

/* Each by the clock of its own host.  sent_ts must not be after the message left, received_ts not before it came. */
struct clock_message {
	uint64_t sent_ts, received_ts;
};

/* b's clock shows ts + offset_ns when a's shows ts, give or take the uncertainty. */
struct clock_point {
	uint64_t ts;
	int64_t offset_ns;
	uint64_t uncertainty_ns;
};

struct clock_link {
	VEC(struct clock_point) points; /* by ts, one at least */
	int64_t offset_ns;              /* of the point in the middle */
	uint64_t uncertainty_ns;        /* the largest of any point */
	double drift_ppm;               /* from the first to the last point; NAN with one */
	size_t forth_cnt, back_cnt;
	size_t contradicting_cnt; /* messages that would have come before they were sent, of either direction */
};

/*
 * forth: from a to b; back: from b to a; sorted in place.  0; -ENODATA: no window has messages in both directions that
 * agree with each other; -ENOMEM.
 */
int clock_link__estimate(struct clock_link *link, struct clock_message *forth, size_t forth_cnt,
			 struct clock_message *back, size_t back_cnt);
void clock_link__free(struct clock_link *link);

/* a's time as b's clock shows it, and the other way round.  Both never go backwards. */
uint64_t clock_link__to_b(const struct clock_link *link, uint64_t ts);
uint64_t clock_link__to_a(const struct clock_link *link, uint64_t ts);

#endif
