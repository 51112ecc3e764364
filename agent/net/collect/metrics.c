// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/collect/metrics.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/order.h"
#include "base/vec.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define HOSTS_MAX     4096 /* more are counted, but not each on its own */
#define SAY_CNT       10
#define SAY_WINDOW_NS (10 * 1000000000ull)

static const struct {
	const char *name;
	unsigned status;
	bool again;
} refusals[REFUSAL_CNT] = {
#define REFUSAL(id, name, status, again) [REFUSAL_##id] = {name, status, again},
#include "net/wire/refusal.def"
};

unsigned refusal_status(enum refusal refusal)
{
	return refusals[refusal].status;
}

bool refusal_may_come_again(enum refusal refusal)
{
	return refusals[refusal].again;
}

void metrics__init(struct metrics *metrics)
{
	memset(metrics, 0, sizeof(*metrics));
	pthread_mutex_init(&metrics->lock, NULL);
}

/* NULL where there is no room for another one. */
static struct metrics_host *metrics__host(struct metrics *metrics, const char *host)
{
	size_t from = search_first(0, metrics->hosts.cnt, at, strcmp(metrics->hosts.items[at].host, host) >= 0);
	struct metrics_host *items;

	if (from < metrics->hosts.cnt && !strcmp(metrics->hosts.items[from].host, host))
		return &metrics->hosts.items[from];
	if (metrics->hosts.cnt >= HOSTS_MAX || vec_reserve(&metrics->hosts, 1))
		return NULL;
	items = metrics->hosts.items;
	memmove(items + from + 1, items + from, (metrics->hosts.cnt++ - from) * sizeof(*items));
	items[from] = (struct metrics_host){.lag_s = NAN, .clock_s = NAN};
	strcpy(items[from].host, host);
	return &items[from];
}

void metrics__stored(struct metrics *metrics, const char *host, const struct store_result *result,
		     const struct metrics_times *times, double wall_s)
{
	struct metrics_host *entry;

	pthread_mutex_lock(&metrics->lock);
	metrics->requests++;
	metrics->blocks += result->stored;
	metrics->bytes += result->stored_bytes;
	metrics->duplicates += result->duplicates;
	entry = metrics__host(metrics, host);
	if (entry) {
		entry->blocks += result->stored;
		entry->bytes += result->stored_bytes;
		entry->duplicates += result->duplicates;
		entry->last_seen_s = wall_s;
		if (times->wall_anchor_ns)
			entry->clock_s = ((double)times->wall_anchor_ns - (double)times->mono_anchor_ns) / 1e9;
		if (times->max_ts && !isnan(entry->clock_s))
			entry->lag_s = wall_s - ((double)times->max_ts / 1e9 + entry->clock_s);
	}
	pthread_mutex_unlock(&metrics->lock);
}

void metrics__refused(struct metrics *metrics, enum refusal refusal, const char *client, const char *host,
		      const char *why)
{
	uint64_t now_ns = monotonic_ns(), more = 0;
	bool say;

	pthread_mutex_lock(&metrics->lock);
	metrics->refusals[refusal]++;
	if (!metrics->said[refusal].since_ns || now_ns - metrics->said[refusal].since_ns > SAY_WINDOW_NS) {
		more = metrics->said[refusal].cnt > SAY_CNT ? metrics->said[refusal].cnt - SAY_CNT : 0;
		metrics->said[refusal].since_ns = now_ns;
		metrics->said[refusal].cnt = 0;
	}
	say = metrics->said[refusal].cnt++ < SAY_CNT;
	pthread_mutex_unlock(&metrics->lock);
	if (more)
		log_warn("refused %" PRIu64 " more requests like these: %s", more, refusals[refusal].name);
	if (say)
		log_warn("refused a request of %s%s%s: %u, %s", client, *host ? " for " : "", host,
			 refusals[refusal].status, why);
}

void metrics__committed(struct metrics *metrics, double seconds, int store_err, const struct store_stats *store)
{
	pthread_mutex_lock(&metrics->lock);
	if (seconds > 0) {
		metrics->commits++;
		metrics->commit_s += seconds;
	}
	metrics->store_err = store_err;
	metrics->store = *store;
	pthread_mutex_unlock(&metrics->lock);
}

int metrics__store_err(struct metrics *metrics)
{
	int err;

	pthread_mutex_lock(&metrics->lock);
	err = metrics->store_err;
	pthread_mutex_unlock(&metrics->lock);
	return err;
}

static void print_one(FILE *out, const char *name, const char *type, const char *help, double value)
{
	fprintf(out, "# HELP whylate_collect_%s %s\n# TYPE whylate_collect_%s %s\nwhylate_collect_%s %.17g\n", name,
		help, name, type, name, value);
}

static void print_totals(FILE *out, const struct metrics *metrics)
{
	const struct {
		const char *name, *type, *help;
		double value;
	} lines[] = {
		{"requests_total", "counter", "requests whose frames are stored", (double)metrics->requests},
		{"blocks_total", "counter", "frames stored", (double)metrics->blocks},
		{"bytes_total", "counter", "bytes of blocks stored", (double)metrics->bytes},
		{"duplicates_total", "counter", "frames that were stored before", (double)metrics->duplicates},
		{"commits_total", "counter", "batches synced to disk", (double)metrics->commits},
		{"commit_seconds_total", "counter", "time spent in writing and syncing them", metrics->commit_s},
		{"connections", "gauge", "open connections", metrics->connections},
		{"body_bytes", "gauge", "memory in use for bodies", (double)metrics->body_bytes},
		{"sessions", "gauge", "sessions in memory", (double)metrics->store.sessions},
		{"store_bytes", "gauge", "bytes on disk of the shards", (double)metrics->store.bytes},
		{"store_files", "gauge", "shards in the store", (double)metrics->store.files},
		{"store_up", "gauge", "1 where the store takes blocks", metrics->store_err ? 0 : 1},
		{"deleted_files_total", "counter", "shards deleted by age or size",
		 (double)metrics->store.deleted_files},
		{"deleted_bytes_total", "counter", "bytes of those", (double)metrics->store.deleted_bytes},
		{"repaired_files_total", "counter", "shards found open at the start",
		 (double)metrics->store.repaired_files},
		{"repaired_bytes_total", "counter", "unacknowledged bytes cut off them",
		 (double)metrics->store.repaired_bytes},
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		print_one(out, lines[i].name, lines[i].type, lines[i].help, lines[i].value);
}

static void print_refusals(FILE *out, const struct metrics *metrics)
{
	fputs("# HELP whylate_collect_refusals_total requests refused\n# TYPE whylate_collect_refusals_total counter\n",
	      out);
	for (int i = REFUSAL_NONE + 1; i < REFUSAL_CNT; i++)
		fprintf(out, "whylate_collect_refusals_total{reason=\"%s\",status=\"%u\"} %" PRIu64 "\n",
			refusals[i].name, refusals[i].status, metrics->refusals[i]);
}

enum host_metric { HOST_LAST_SEEN, HOST_LAG, HOST_BLOCKS, HOST_BYTES, HOST_METRIC_CNT };

static double host_value(const struct metrics_host *host, enum host_metric metric)
{
	switch (metric) {
	case HOST_LAST_SEEN:
		return host->last_seen_s;
	case HOST_LAG:
		return host->lag_s;
	case HOST_BLOCKS:
		return (double)host->blocks;
	default:
		return (double)host->bytes;
	}
}

/* A host's name needs no escape: protocol_host_is_valid(). */
static void print_hosts(FILE *out, const struct metrics *metrics)
{
	static const struct {
		const char *name, *type, *help;
	} lines[HOST_METRIC_CNT] = {
		[HOST_LAST_SEEN] = {"host_last_seen_seconds", "gauge", "when a request was stored last, since 1970"},
		[HOST_LAG] = {"host_lag_seconds", "gauge",
			      "from the end of the newest interval to its being stored, by both clocks"},
		[HOST_BLOCKS] = {"host_blocks_total", "counter", "frames stored"},
		[HOST_BYTES] = {"host_bytes_total", "counter", "bytes of blocks stored"},
	};

	for (int m = 0; m < HOST_METRIC_CNT; m++) {
		fprintf(out, "# HELP whylate_collect_%s %s\n# TYPE whylate_collect_%s %s\n", lines[m].name,
			lines[m].help, lines[m].name, lines[m].type);
		for (size_t i = 0; i < metrics->hosts.cnt; i++) {
			double value = host_value(&metrics->hosts.items[i], m);

			if (!isnan(value))
				fprintf(out, "whylate_collect_%s{host=\"%s\"} %.17g\n", lines[m].name,
					metrics->hosts.items[i].host, value);
		}
	}
}

int metrics__print(struct metrics *metrics, FILE *out)
{
	pthread_mutex_lock(&metrics->lock);
	print_totals(out, metrics);
	print_refusals(out, metrics);
	print_hosts(out, metrics);
	pthread_mutex_unlock(&metrics->lock);
	return fflush(out) || ferror(out) ? -ENOMEM : 0;
}

void metrics__clear(struct metrics *metrics)
{
	vec_free(&metrics->hosts);
	pthread_mutex_destroy(&metrics->lock);
}
