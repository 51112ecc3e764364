// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/sample_times.h"

#include "base/order.h"

#include <math.h>
#include <stdlib.h>

#define LAGS_PER_PERIOD 4
/* Interruptions that are shorter do not part stretches. */
#define GAP_NS 20000
/* Classes of lags are put together until independent ticks would take so many pairs. */
#define PAIRS_MIN 50
/* Where the clocks take less than that share of the pairs, they take none: few pairs would stand for many. */
#define SEEN_MIN 0.2

int sample_times__begin(struct sample_times *times, uint64_t queue_ns)
{
	struct timed_row row = {times->samples.cnt, times->stretches.cnt, queue_ns};

	return vec_push(&times->rows, row);
}

int sample_times__stretch(struct sample_times *times, uint32_t tid, uint64_t begin_ts, uint64_t end_ts)
{
	size_t first = times->rows.items[times->rows.cnt - 1].first_stretch, cnt = times->stretches.cnt;
	struct timed_stretch *last = cnt > first ? &times->stretches.items[cnt - 1] : NULL;

	if (last && last->tid == tid && begin_ts >= last->end_ts && begin_ts - last->end_ts <= GAP_NS) {
		last->end_ts = end_ts > last->end_ts ? end_ts : last->end_ts;
		return 0;
	}
	return vec_push(&times->stretches, ((struct timed_stretch){begin_ts, end_ts, tid}));
}

int sample_times__tick(struct sample_times *times, uint32_t tid, uint32_t node, uint64_t ts, double period_ns)
{
	struct timed_sample sample = {
		.ts = ts,
		.ns = (uint64_t)period_ns,
		.node = node,
		.tid = tid,
		.doing = TREE_RUNNING,
		.tick = true,
	};

	return vec_push(&times->samples, sample);
}

int sample_times__wait(struct sample_times *times, uint32_t node, uint64_t ns, enum tree_doing doing)
{
	return vec_push(&times->samples, ((struct timed_sample){.ns = ns, .node = node, .doing = (uint8_t)doing}));
}

static size_t sample_end(const struct sample_times *times, size_t row)
{
	return row + 1 < times->rows.cnt ? times->rows.items[row + 1].first_sample : times->samples.cnt;
}

static size_t stretch_end(const struct sample_times *times, size_t row)
{
	return row + 1 < times->rows.cnt ? times->rows.items[row + 1].first_stretch : times->stretches.cnt;
}

/* --- which pairs the clocks take -----------------------------------------------------------------------------------
 */

static double half_square(double x)
{
	return x > 0 ? x * x / 2 : 0;
}

/* The area of pairs of points, the first one in `p`, the second one in `q`, at most `lag` later. */
static double area_within(const struct timed_stretch *p, const struct timed_stretch *q, double lag)
{
	double p_ns = (double)(p->end_ts - p->begin_ts), q_ns = (double)(q->end_ts - q->begin_ts);
	double apart = (double)(q->begin_ts - p->begin_ts);

	return half_square(lag - apart + p_ns) - half_square(lag - apart) - half_square(lag - apart - q_ns + p_ns) +
	       half_square(lag - apart - q_ns);
}

static void add_areas(const struct sample_times *times, size_t row, double areas[SAMPLE_LAGS])
{
	double reach_ns = times->lag_ns * SAMPLE_LAGS;

	for (size_t i = times->rows.items[row].first_stretch; i < stretch_end(times, row); i++) {
		const struct timed_stretch *p = &times->stretches.items[i], *q = p;

		for (size_t j = i; j < stretch_end(times, row); j++, q++) {
			double before;

			if (q->tid != p->tid || q->begin_ts < p->begin_ts ||
			    (q->begin_ts > p->end_ts && (double)(q->begin_ts - p->end_ts) > reach_ns))
				break;
			before = area_within(p, q, 0);
			for (int lag = 0; lag < SAMPLE_LAGS; lag++) {
				double within = area_within(p, q, times->lag_ns * (lag + 1));

				areas[lag] += within - before;
				before = within;
			}
		}
	}
}

/* SAMPLE_LAGS: they are far apart, or not on one thread. */
static int lag_of(const struct sample_times *times, const struct timed_sample *a, const struct timed_sample *b)
{
	double lag = times->lag_ns > 0 && a->tid == b->tid && a->tick && b->tick && b->ts >= a->ts
			     ? (double)(b->ts - a->ts) / times->lag_ns
			     : SAMPLE_LAGS;

	return lag < SAMPLE_LAGS ? (int)lag : SAMPLE_LAGS;
}

static void add_pairs(const struct sample_times *times, size_t row, double pairs[SAMPLE_LAGS])
{
	for (size_t i = times->rows.items[row].first_sample; i < sample_end(times, row); i++) {
		const struct timed_sample *a = &times->samples.items[i];
		int lag;

		for (size_t j = i + 1; j < sample_end(times, row); j++) {
			const struct timed_sample *b = &times->samples.items[j];

			lag = lag_of(times, a, b);
			if (lag == SAMPLE_LAGS)
				break;
			pairs[lag] += (double)a->ns * (double)b->ns;
		}
	}
}

ORDER(compare_samples, struct timed_sample, BY(b->tick, a->tick), BY(a->tid, b->tid), BY(a->ts, b->ts),
      BY(a->node, b->node));

static void sort_row(struct sample_times *times, size_t row)
{
	size_t first = times->rows.items[row].first_sample, cnt = sample_end(times, row) - first;

	if (cnt > 1)
		qsort(times->samples.items + first, cnt, sizeof(*times->samples.items), compare_samples);
}

void sample_times__settle(struct sample_times *times)
{
	double areas[SAMPLE_LAGS] = {0}, pairs[SAMPLE_LAGS] = {0}, period_ns = 0, area = 0, met = 0, seen = 0;
	size_t ticks = 0;
	int first = 0;

	for (size_t i = 0; i < times->samples.cnt; i++) {
		period_ns += times->samples.items[i].tick ? (double)times->samples.items[i].ns : 0;
		ticks += times->samples.items[i].tick;
	}
	if (!ticks || !(period_ns > 0))
		return;
	period_ns /= (double)ticks;
	times->lag_ns = period_ns / LAGS_PER_PERIOD;
	for (size_t row = 0; row < times->rows.cnt; row++) {
		sort_row(times, row);
		add_areas(times, row, areas);
		add_pairs(times, row, pairs);
	}
	for (int lag = 0; lag < SAMPLE_LAGS; lag++) {
		area += areas[lag];
		met += pairs[lag];
		if (area < PAIRS_MIN * period_ns * period_ns && lag + 1 < SAMPLE_LAGS)
			continue;
		/* Too few at the end are like those before. */
		if (area >= PAIRS_MIN * period_ns * period_ns)
			seen = met >= SEEN_MIN * area ? met / area : 0;
		for (; first <= lag; first++)
			times->seen[first] = seen;
		area = met = 0;
	}
}

/* --- rows ----------------------------------------------------------------------------------------------------------
 */

static uint64_t overlap_ns(const struct timed_stretch *stretch, uint64_t from_ts, uint64_t to_ts)
{
	uint64_t begin_ts = stretch->begin_ts > from_ts ? stretch->begin_ts : from_ts;
	uint64_t end_ts = stretch->end_ts < to_ts ? stretch->end_ts : to_ts;

	return end_ts > begin_ts ? end_ts - begin_ts : 0;
}

/* How much of the CPU time around a tick no other tick can speak for. */
static double alone_ns(const struct sample_times *times, size_t row, const struct timed_sample *tick)
{
	double ns = 0;

	for (int lag = 0; lag < SAMPLE_LAGS; lag++) {
		uint64_t near = (uint64_t)(times->lag_ns * lag), far = (uint64_t)(times->lag_ns * (lag + 1));

		if (times->seen[lag] > 0)
			continue;
		for (size_t i = times->rows.items[row].first_stretch; i < stretch_end(times, row); i++) {
			const struct timed_stretch *stretch = &times->stretches.items[i];
			uint64_t before_ts = tick->ts > far ? tick->ts - far : 0;

			if (stretch->tid == tick->tid)
				ns += (double)(overlap_ns(stretch, tick->ts + near, tick->ts + far) +
					       overlap_ns(stretch, before_ts, tick->ts - near));
		}
	}
	return ns;
}

static int add_noise(struct sample_times *times, uint32_t a, uint32_t b, double ns2)
{
	if (ns2 == 0)
		return 0;
	return vec_push(&times->noise, ((struct tree_noise){a, b, ns2}));
}

static int make_noise(struct sample_times *times, size_t row)
{
	size_t end = sample_end(times, row);
	int err = 0;

	for (size_t i = times->rows.items[row].first_sample; i < end && times->samples.items[i].tick && !err; i++) {
		const struct timed_sample *a = &times->samples.items[i];
		double a_ns = (double)a->ns;

		err = add_noise(times, a->node, a->node, a_ns * (a_ns - alone_ns(times, row, a)));
		for (size_t j = i + 1; j < end && !err; j++) {
			const struct timed_sample *b = &times->samples.items[j];
			int lag = lag_of(times, a, b);
			double counts;

			if (lag == SAMPLE_LAGS)
				break;
			counts = times->seen[lag] > 0 ? 1 / times->seen[lag] : 0;
			err = add_noise(times, a->node, b->node,
					a_ns * (double)b->ns * (1 - counts) * (a->node == b->node ? 2 : 1));
		}
	}
	return err;
}

/* Its place in to->times, which is made. */
static int place_of(struct call_times *to, uint32_t node, uint32_t *place)
{
	if (vec_extend(&to->places, (size_t)node + 1))
		return -ENOMEM;
	if (to->places.items[node] >> 32 == to->round) {
		*place = (uint32_t)to->places.items[node];
		return 0;
	}
	*place = (uint32_t)to->times.cnt;
	to->places.items[node] = to->round << 32 | *place;
	return vec_push(&to->times, ((struct tree_time){.node = node}));
}

/* To its node and all above it; what is behind a wait is part of that already. */
static int add_sample(struct call_times *to, const struct variance_tree *tree, const struct timed_sample *sample)
{
	struct tree_node node;
	uint32_t place;

	for (uint32_t at = sample->node; at != TREE_ROOT; at = node.parent) {
		struct tree_time *time;

		if (place_of(to, at, &place))
			return -ENOMEM;
		time = &to->times.items[place];
		time->ns += sample->ns;
		time->doing_ns[sample->doing] += sample->ns;
		variance_tree__node_at(tree, at, &node);
		if (node.call.behind)
			break;
	}
	return 0;
}

int sample_times__row(struct sample_times *times, const struct variance_tree *tree, size_t row, struct call_times *to)
{
	int err = 0;

	to->times.cnt = times->noise.cnt = 0;
	to->round = (to->round + 1) & UINT32_MAX;
	for (size_t i = times->rows.items[row].first_sample; i < sample_end(times, row) && !err; i++)
		err = add_sample(to, tree, &times->samples.items[i]);
	return err ? err : make_noise(times, row);
}

void sample_times__free(struct sample_times *times)
{
	vec_free(&times->samples);
	vec_free(&times->stretches);
	vec_free(&times->rows);
	vec_free(&times->noise);
	*times = (struct sample_times){0};
}
