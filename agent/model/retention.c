// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/retention.h"

#include <stdlib.h>

/* A log-linear histogram: 32 buckets per power of two, so a threshold is exact to 3 %, on the side of keeping more. */
#define SUB_BITS 5
#define SUBS     (1 << SUB_BITS)
#define BUCKETS  ((64 - SUB_BITS + 1) * SUBS)
/* Until so many were seen everything is kept: a quantile of fewer means little. */
#define WARM_UP   1000
#define SECOND_NS 1000000000ULL
/* More than so many times what was to be expected of a second end it early: a load that has just begun. */
#define SURGE 2
/* The histogram forgets half of itself this often, so that the quantile follows the load. */
#define FORGET_NS (60 * SECOND_NS)

struct retention {
	double tail;
	double baseline_per_s;
	double baseline_probability;
	uint64_t threshold_ns;
	uint64_t seen;
	uint64_t second_began_ts, forgot_ts;
	double in_second; /* records in the second under way */
	double surge;     /* so many of them end it */
	double weight_sum;
	double buckets[BUCKETS];
};

static uint32_t bucket_of(uint64_t latency_ns)
{
	uint32_t shift;

	if (latency_ns < SUBS)
		return latency_ns;
	shift = 63 - __builtin_clzll(latency_ns) - SUB_BITS;
	return (shift + 1) * SUBS + (uint32_t)(latency_ns >> shift) - SUBS;
}

static uint64_t bucket_floor(uint32_t bucket)
{
	uint32_t shift;

	if (bucket < SUBS)
		return bucket;
	shift = bucket / SUBS - 1;
	return (uint64_t)(SUBS + bucket % SUBS) << shift;
}

struct retention *retention__new(double tail, double baseline_per_s)
{
	struct retention *retention = calloc(1, sizeof(*retention));

	if (!retention)
		return NULL;
	retention->tail = tail;
	retention->baseline_per_s = baseline_per_s;
	retention->baseline_probability = 1;
	retention->surge = SURGE * (baseline_per_s > WARM_UP ? baseline_per_s : WARM_UP);
	return retention;
}

void retention__free(struct retention *retention)
{
	free(retention);
}

/* Threshold and probability follow at the next second, as ever. */
void retention__set(struct retention *retention, double tail, double baseline_per_s)
{
	retention->tail = tail;
	retention->baseline_per_s = baseline_per_s;
}

static void find_threshold(struct retention *retention)
{
	double above = retention->weight_sum * (1 - retention->tail), sum = 0;

	for (uint32_t bucket = BUCKETS; bucket-- > 0;) {
		sum += retention->buckets[bucket];
		if (sum >= above && sum > 0) {
			retention->threshold_ns = bucket_floor(bucket);
			return;
		}
	}
}

static void forget_half(struct retention *retention)
{
	for (uint32_t bucket = 0; bucket < BUCKETS; bucket++)
		retention->buckets[bucket] /= 2;
	retention->weight_sum /= 2;
}

/* Threshold and probability hold for a second; both come from the time before it. */
static void next_second(struct retention *retention, uint64_t now_ts)
{
	double seconds = (double)(now_ts - retention->second_began_ts) / SECOND_NS;
	double per_s = retention->in_second / seconds, expected = per_s;

	if (retention->seen >= WARM_UP) {
		find_threshold(retention);
		retention->baseline_probability =
			per_s > retention->baseline_per_s ? retention->baseline_per_s / per_s : 1;
	}
	if (expected < retention->baseline_per_s)
		expected = retention->baseline_per_s;
	retention->surge = SURGE * (expected > WARM_UP ? expected : WARM_UP);
	retention->in_second = 0;
	retention->second_began_ts = now_ts;
	if (now_ts - retention->forgot_ts >= FORGET_NS) {
		if (retention->forgot_ts)
			forget_half(retention);
		retention->forgot_ts = now_ts;
	}
}

void retention__saw(struct retention *retention, uint64_t latency_ns, double weight, uint64_t end_ts)
{
	if (!(retention->tail > 0))
		return;
	if (!retention->second_began_ts)
		retention->second_began_ts = retention->forgot_ts = end_ts;
	if (end_ts > retention->second_began_ts &&
	    (end_ts - retention->second_began_ts >= SECOND_NS || retention->in_second >= retention->surge))
		next_second(retention, end_ts);
	retention->buckets[bucket_of(latency_ns)] += weight;
	retention->weight_sum += weight;
	retention->in_second++;
	retention->seen++;
}

uint64_t retention__late_ns(const struct retention *retention)
{
	if (!(retention->tail > 0))
		return 0;
	return retention->threshold_ns ? retention->threshold_ns : UINT64_MAX;
}

uint64_t retention__chance(const struct retention *retention)
{
	return (uint64_t)(retention->baseline_probability * 0x1p32);
}
