/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the collector counts, told in the text format of Prometheus, and its log of refusals.  Any thread. */
#ifndef WHYLATE_NET_COLLECT_METRICS_H
#define WHYLATE_NET_COLLECT_METRICS_H

#include "base/vec.h"
#include "net/collect/store.h"

#include <pthread.h>
#include <stdio.h>

enum refusal {
	REFUSAL_NONE,
#define REFUSAL(id, name, status, again) REFUSAL_##id,
#include "net/wire/refusal.def"
	REFUSAL_CNT
};

unsigned refusal_status(enum refusal refusal);
bool refusal_may_come_again(enum refusal refusal);

/* What a request's blocks tell of time; 0: nothing. */
struct metrics_times {
	int64_t max_ts; /* of its intervals, by the host's monotonic clock */
	int64_t mono_anchor_ns, wall_anchor_ns;
};

struct metrics_host {
	char host[SHARD_HOST_MAX + 1];
	uint64_t blocks, bytes, duplicates;
	double last_seen_s; /* CLOCK_REALTIME */
	double lag_s;       /* NAN: not known */
	double clock_s;     /* from the host's monotonic clock to its own wall clock; NAN: not known */
};

struct metrics {
	pthread_mutex_t lock;
	uint64_t requests, blocks, bytes, duplicates, commits;
	double commit_s;
	uint64_t refusals[REFUSAL_CNT];
	uint32_t connections;
	uint64_t body_bytes;
	int store_err; /* why nothing can be stored; 0: it can */
	struct store_stats store;
	VEC(struct metrics_host) hosts; /* by name */
	struct {
		uint64_t since_ns, cnt;
	} said[REFUSAL_CNT];
};

void metrics__init(struct metrics *metrics);
/* A request that was stored, when. */
void metrics__stored(struct metrics *metrics, const char *host, const struct store_result *result,
		     const struct metrics_times *times, double wall_s);
/* Counts it, and says it: the first few of a kind in ten seconds, then how many more there were. */
void metrics__refused(struct metrics *metrics, enum refusal refusal, const char *client, const char *host,
		      const char *why);
void metrics__committed(struct metrics *metrics, double seconds, int store_err, const struct store_stats *store);
int metrics__store_err(struct metrics *metrics);
/* 0 or -ENOMEM. */
int metrics__print(struct metrics *metrics, FILE *out);
void metrics__clear(struct metrics *metrics);

#endif
