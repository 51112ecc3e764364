// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/clock_link.h"

#include "base/order.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* A window whose uncertainty is that much larger than the best one's says nothing that its neighbours do not. */
#define UNCERTAINTY_FACTOR 4
#define UNCERTAINTY_FLOOR  100000
/* 73 years: what is beyond is no clock, and sums of two must not overflow. */
#define OFFSET_MAX (INT64_MAX / 4)

ORDER(compare_sent, struct clock_message, BY(a->sent_ts, b->sent_ts));

ORDER(compare_received, struct clock_message, BY(a->received_ts, b->received_ts));

ORDER(compare_int64, int64_t, BY(*a, *b));

/* floor((a + b) / 2) without an overflow */
static int64_t middle(int64_t a, int64_t b)
{
	return (a >> 1) + (b >> 1) + (a & b & 1);
}

/* What the clocks drift from `from_ts` to `to_ts`. */
static int64_t drifted(double drift, uint64_t from_ts, uint64_t to_ts)
{
	double ns = to_ts >= from_ts ? (double)(to_ts - from_ts) : -(double)(from_ts - to_ts);

	return fabs(drift * ns) < 1e12 ? (int64_t)(drift * ns) : 0;
}

/*
 * Differences of one window, delay ± offset.  The smallest of each direction bounds the offset from either side; where
 * the bounds cross, one of the two was no message of this connection, or a clock jumped: the one that is further from
 * what its direction mostly says goes.
 */
static bool estimate_window(struct clock_point *point, int64_t *forth, size_t forth_cnt, int64_t *back, size_t back_cnt,
			    size_t *contradicting)
{
	size_t f = 0, b = 0;

	qsort(forth, forth_cnt, sizeof(*forth), compare_int64);
	qsort(back, back_cnt, sizeof(*back), compare_int64);
	while (f < forth_cnt && b < back_cnt) {
		double far_f, far_b;
		int64_t sum;

		if (!__builtin_add_overflow(forth[f], back[b], &sum) && sum >= 0) {
			point->offset_ns = middle(forth[f], -back[b]);
			point->uncertainty_ns = ((uint64_t)sum + 1) / 2;
			*contradicting += f + b;
			return f * 2 < forth_cnt && b * 2 < back_cnt && point->offset_ns < OFFSET_MAX &&
			       point->offset_ns > -OFFSET_MAX;
		}
		far_f = (double)forth[f + (forth_cnt - f) / 2] - (double)forth[f];
		far_b = (double)back[b + (back_cnt - b) / 2] - (double)back[b];
		if (far_f >= far_b)
			f++;
		else
			b++;
	}
	*contradicting += f + b;
	return false;
}

/* Windows that are much vaguer than the best go. */
static void prune(struct clock_link *link)
{
	uint64_t best_ns = UINT64_MAX;
	size_t kept = 0;

	for (size_t i = 0; i < link->points.cnt; i++)
		if (link->points.items[i].uncertainty_ns < best_ns)
			best_ns = link->points.items[i].uncertainty_ns;
	for (size_t i = 0; i < link->points.cnt; i++)
		if (link->points.items[i].uncertainty_ns / UNCERTAINTY_FACTOR <= best_ns + UNCERTAINTY_FLOOR)
			link->points.items[kept++] = link->points.items[i];
	link->points.cnt = kept;
}

static void summarize(struct clock_link *link)
{
	const struct clock_point *first = link->points.items, *last = first + link->points.cnt - 1;

	link->offset_ns = first[link->points.cnt / 2].offset_ns;
	link->uncertainty_ns = 0;
	for (size_t i = 0; i < link->points.cnt; i++)
		if (first[i].uncertainty_ns > link->uncertainty_ns)
			link->uncertainty_ns = first[i].uncertainty_ns;
	link->drift_ppm = NAN;
	if (last->ts > first->ts)
		link->drift_ppm = (double)(last->offset_ns - first->offset_ns) / (double)(last->ts - first->ts) * 1e6;
}

/* Both directions, each by a's clock, and what they say of the offset. */
struct messages {
	const struct clock_message *forth, *back;
	size_t forth_cnt, back_cnt;
	int64_t *differences; /* room for all */
};

/* The difference could be anything where the times are. */
static int64_t difference(const struct clock_message *message, int64_t drifted_ns)
{
	int64_t ns = (int64_t)(message->received_ts - message->sent_ts);

	return __builtin_sub_overflow(ns, drifted_ns, &ns) ? INT64_MAX : ns;
}

static int estimate_windows(struct clock_link *link, const struct messages *messages, double drift)
{
	const struct clock_message *forth = messages->forth, *back = messages->back;
	int64_t *forth_ns = messages->differences, *back_ns = forth_ns + messages->forth_cnt;
	size_t f = 0, b = 0;

	link->points.cnt = 0;
	link->contradicting_cnt = 0;
	while (f < messages->forth_cnt && b < messages->back_cnt) {
		uint64_t begin_ts = forth[f].sent_ts < back[b].received_ts ? forth[f].sent_ts : back[b].received_ts;
		struct clock_point point = {.ts = begin_ts + CLOCK_WINDOW_NS / 2};
		uint64_t end_ts = begin_ts + CLOCK_WINDOW_NS;
		size_t f_cnt = 0, b_cnt = 0;

		/* The end of time is no time. */
		if (end_ts < begin_ts)
			break;
		for (; f < messages->forth_cnt && forth[f].sent_ts < end_ts; f++)
			forth_ns[f_cnt++] = difference(&forth[f], drifted(drift, point.ts, forth[f].sent_ts));
		for (; b < messages->back_cnt && back[b].received_ts < end_ts; b++)
			back_ns[b_cnt++] = difference(&back[b], -drifted(drift, point.ts, back[b].received_ts));
		if (estimate_window(&point, forth_ns, f_cnt, back_ns, b_cnt, &link->contradicting_cnt) &&
		    vec_push(&link->points, point))
			return -ENOMEM;
	}
	if (!link->points.cnt)
		return -ENODATA;
	prune(link);
	summarize(link);
	return 0;
}

int clock_link__estimate(struct clock_link *link, struct clock_message *forth, size_t forth_cnt,
			 struct clock_message *back, size_t back_cnt)
{
	struct messages messages = {.forth = forth, .back = back, .forth_cnt = forth_cnt, .back_cnt = back_cnt};
	int err;

	*link = (struct clock_link){.forth_cnt = forth_cnt, .back_cnt = back_cnt};
	if (!forth_cnt || !back_cnt)
		return -ENODATA;
	qsort(forth, forth_cnt, sizeof(*forth), compare_sent);
	qsort(back, back_cnt, sizeof(*back), compare_received);
	messages.differences = malloc((forth_cnt + back_cnt) * sizeof(*messages.differences));
	if (!messages.differences)
		return -ENOMEM;
	err = estimate_windows(link, &messages, 0);
	if (!err && !isnan(link->drift_ppm))
		err = estimate_windows(link, &messages, link->drift_ppm * 1e-6);
	free(messages.differences);
	if (err)
		clock_link__free(link);
	return err;
}

void clock_link__free(struct clock_link *link)
{
	vec_free(&link->points);
}

/* Beyond the first and the last point: to the end of its window, and no further, they drift as they did between. */
static int64_t offset_beyond(const struct clock_link *link, const struct clock_point *point, uint64_t ts)
{
	uint64_t first_ts = point->ts - CLOCK_WINDOW_NS / 2, last_ts = point->ts + CLOCK_WINDOW_NS / 2;

	if (isnan(link->drift_ppm))
		return point->offset_ns;
	ts = ts < first_ts ? first_ts : ts > last_ts ? last_ts : ts;
	return point->offset_ns + drifted(link->drift_ppm * 1e-6, point->ts, ts);
}

static int64_t offset_at(const struct clock_link *link, uint64_t ts)
{
	const struct clock_point *points = link->points.items;
	size_t low = search_first(0, link->points.cnt, at, points[at].ts > ts);
	double share;

	if (!low || low == link->points.cnt)
		return offset_beyond(link, &points[low ? low - 1 : 0], ts);
	share = (double)(ts - points[low - 1].ts) / (double)(points[low].ts - points[low - 1].ts);
	return points[low - 1].offset_ns +
	       (int64_t)floor(share * (double)(points[low].offset_ns - points[low - 1].offset_ns));
}

/* Stops at either end of time. */
static uint64_t shifted(uint64_t ts, int64_t by_ns)
{
	if (by_ns >= 0)
		return ts > UINT64_MAX - (uint64_t)by_ns ? UINT64_MAX : ts + (uint64_t)by_ns;
	return ts < -(uint64_t)by_ns ? 0 : ts - -(uint64_t)by_ns;
}

uint64_t clock_link__to_b(const struct clock_link *link, uint64_t ts)
{
	return shifted(ts, offset_at(link, ts));
}

uint64_t clock_link__to_a(const struct clock_link *link, uint64_t ts)
{
	uint64_t at = shifted(ts, -link->offset_ns);

	/* The offset changes by some parts in a million, so that two rounds come as close as a nanosecond. */
	for (int i = 0; i < 2; i++)
		at = shifted(ts, -offset_at(link, at));
	return at;
}
