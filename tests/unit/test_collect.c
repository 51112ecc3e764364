// SPDX-License-Identifier: GPL-2.0-or-later
/* The collector's small parts: sets of numbers, budgets, peers, tokens, addresses, metrics. */
#include "net/collect/identity.h"
#include "net/collect/limiter.h"
#include "net/collect/metrics.h"
#include "net/collect/peers.h"
#include "net/collect/seqset.h"
#include "net/wire/listen.h"
#include "test_shard_util.h"
#include "unit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SECOND_NS 1000000000ull

static bool has(const struct seqset *set, uint64_t seq)
{
	for (size_t i = 0; i < set->cnt; i++)
		if (set->items[i].first <= seq && seq <= set->items[i].last)
			return true;
	return false;
}

/* Against a plain bitmap, in any order, with things taken back. */
static void sets_of_numbers(void)
{
	bool there[300] = {false};
	struct seqset set = {0};
	struct test_rng rng = {7};

	for (int i = 0; i < 20000; i++) {
		uint64_t seq = test_rng__below(&rng, 300);

		if (test_rng__below(&rng, 3)) {
			CU_ASSERT_EQUAL(seqset__add(&set, seq), !there[seq]);
			there[seq] = true;
		} else {
			seqset__remove(&set, seq);
			there[seq] = false;
		}
		CU_ASSERT_EQUAL(has(&set, seq), there[seq]);
	}
	for (uint64_t seq = 0; seq < 300; seq++)
		CU_ASSERT_EQUAL(has(&set, seq), there[seq]);
	for (size_t i = 1; i < set.cnt; i++)
		CU_ASSERT(set.items[i - 1].last + 1 < set.items[i].first);
	seqset__clear(&set);
	for (uint64_t seq = 0; seq < 100000; seq++)
		CU_ASSERT_EQUAL(seqset__add(&set, seq), 1);
	CU_ASSERT_EQUAL(set.cnt, 1);
	seqset__clear(&set);
}

static void budgets(void)
{
	struct limiter limiter;
	uint64_t now_ns = SECOND_NS;
	char name[32];

	CU_ASSERT_EQUAL_FATAL(limiter__init(&limiter, 10, 1000, 100), 0);
	for (int i = 0; i < 20; i++)
		CU_ASSERT_EQUAL(limiter__take(&limiter, "a", 0, now_ns), 0);
	CU_ASSERT_EQUAL(limiter__take(&limiter, "a", 0, now_ns), 1);
	CU_ASSERT_EQUAL(limiter__take(&limiter, "b", 0, now_ns), 0);
	CU_ASSERT_EQUAL(limiter__take(&limiter, "a", 0, now_ns + SECOND_NS / 10), 0);
	CU_ASSERT_EQUAL(limiter__take(&limiter, "a", 0, now_ns + SECOND_NS / 10), 1);
	/* Bytes may be owed. */
	CU_ASSERT_EQUAL(limiter__take(&limiter, "c", 7000, now_ns), 0);
	CU_ASSERT_EQUAL(limiter__take(&limiter, "c", 1, now_ns), 5);
	CU_ASSERT(limiter__take(&limiter, "c", 1, now_ns + 4 * SECOND_NS) > 0);
	CU_ASSERT_EQUAL(limiter__take(&limiter, "c", 1, now_ns + 6 * SECOND_NS), 0);
	/* Nobody is told to wait for ever, and more clients than it has room for are no failure. */
	/* Rows are known after the request, and owed then. */
	CU_ASSERT_EQUAL(limiter__take(&limiter, "e", 1, now_ns), 0);
	limiter__take_rows(&limiter, "e", 500, now_ns);
	CU_ASSERT_EQUAL(limiter__take(&limiter, "e", 1, now_ns), 3);
	CU_ASSERT(limiter__take(&limiter, "e", 1, now_ns + 2 * SECOND_NS) > 0);
	CU_ASSERT_EQUAL(limiter__take(&limiter, "e", 1, now_ns + 4 * SECOND_NS), 0);
	CU_ASSERT_EQUAL(limiter__take(&limiter, "d", 1ull << 40, now_ns), 0);
	CU_ASSERT_EQUAL(limiter__take(&limiter, "d", 1, now_ns), 60);
	for (int i = 0; i < 3 * LIMITER_SLOTS; i++) {
		snprintf(name, sizeof(name), "host-%d", i);
		CU_ASSERT_EQUAL(limiter__take(&limiter, name, 1, now_ns + i), 0);
	}
	limiter__clear(&limiter);
}

static int load(struct identity_tokens *tokens, const char *text, unsigned *line)
{
	struct test_dir dir;
	char path[100];
	int err;

	test_dir__make(&dir);
	snprintf(path, sizeof(path), "%s/tokens", dir.path);
	test_file__write(path, (const uint8_t *)text, strlen(text));
	err = identity_tokens__load(tokens, path, line);
	test_dir__remove(&dir);
	return err;
}

/* An entry is one as long as anybody holds it; names that are too long are cut, not overrun. */
static void peers(void)
{
	struct peers peers = {0};
	struct peer *all[3 * PEERS_BUCKETS], *again;
	char name[2 * PEER_KEY_SZ];

	for (int i = 0; i < 3 * PEERS_BUCKETS; i++) {
		snprintf(name, sizeof(name), "host-%d", i);
		all[i] = peers__hold(&peers, name);
		CU_ASSERT_PTR_NOT_NULL_FATAL(all[i]);
		CU_ASSERT_STRING_EQUAL(all[i]->key, name);
		CU_ASSERT_EQUAL(all[i]->connection_cnt++, 0);
	}
	again = peers__hold(&peers, "host-7");
	CU_ASSERT_PTR_EQUAL(again, all[7]);
	peers__drop(&peers, again);
	CU_ASSERT_PTR_EQUAL(peers__hold(&peers, "host-7"), all[7]);
	peers__drop(&peers, all[7]);
	for (int i = 0; i < 3 * PEERS_BUCKETS; i++) {
		CU_ASSERT_EQUAL(all[i]->connection_cnt, 1);
		peers__drop(&peers, all[i]);
	}
	for (int i = 0; i < PEERS_BUCKETS; i++)
		CU_ASSERT_PTR_NULL(peers.buckets[i]);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	again = peers__hold(&peers, name);
	CU_ASSERT_PTR_NOT_NULL_FATAL(again);
	CU_ASSERT_EQUAL(strlen(again->key), PEER_KEY_SZ - 1);
	peers__drop(&peers, again);
	peers__drop(&peers, NULL);
}

static void tokens(void)
{
	static const char *const bad[] = {
		"host-a short\n", "host-a\n", "../a 0123456789abcdef\n", "host-a 0123456789abcdef more\n", "\n\nhost-a",
	};
	struct identity_tokens known = {0};
	unsigned line;

	CU_ASSERT_EQUAL(load(&known,
			     "# all\n\nhost-a 0123456789abcdef\n host-b\tfedcba9876543210 \nhost-a another-one-of-a-0",
			     &line),
			0);
	CU_ASSERT_EQUAL(known.cnt, 3);
	CU_ASSERT_EQUAL(identity_tokens__judge(&known, "Bearer 0123456789abcdef", "host-a"), IDENTITY_FITS);
	CU_ASSERT_EQUAL(identity_tokens__judge(&known, "bearer another-one-of-a-0", "host-a"), IDENTITY_FITS);
	CU_ASSERT_EQUAL(identity_tokens__judge(&known, "Bearer fedcba9876543210", "host-a"), IDENTITY_OTHER);
	CU_ASSERT_EQUAL(identity_tokens__judge(&known, "Bearer 0123456789abcdeX", "host-a"), IDENTITY_UNKNOWN);
	CU_ASSERT_EQUAL(identity_tokens__judge(&known, "Basic 0123456789abcdef", "host-a"), IDENTITY_UNKNOWN);
	CU_ASSERT_EQUAL(identity_tokens__judge(&known, "", "host-a"), IDENTITY_UNKNOWN);
	CU_ASSERT_EQUAL(identity_tokens__judge(&known, NULL, "host-a"), IDENTITY_NONE);
	identity_tokens__clear(&known);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT(load(&known, bad[i], &line) == -EINVAL && line == (i == 4 ? 3 : 1) && !known.cnt);
	CU_ASSERT_EQUAL(identity_tokens__load(&known, "/nonexistent", &line), -ENOENT);
	CU_ASSERT(identity_names_have("host-a\nhost-b\n", "host-b"));
	CU_ASSERT(!identity_names_have("host-a\nhost-b\n", "host"));
	CU_ASSERT(!identity_names_have("host-a\nhost-b\n", "ost-b"));
	CU_ASSERT(!identity_names_have("", ""));
}

static void addresses(void)
{
	static const char *const bad[] = {
		"",        "127.0.0.1", "127.0.0.1:", "127.0.0.1:x",     "::1:80",
		"[::1]80", "[::1:80",   "1:2:3",      "127.0.0.1:65536", ":-1",
	};
	struct listener listener;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_EQUAL(listener__open(&listener, bad[i]), -EINVAL);
	CU_ASSERT_EQUAL_FATAL(listener__open(&listener, "127.0.0.1:0"), 0);
	CU_ASSERT(listener.loopback && !strncmp(listener.address, "127.0.0.1:", 10) && atoi(listener.address + 10) > 0);
	CU_ASSERT_EQUAL(listener__open(&(struct listener){0}, listener.address), -EADDRINUSE);
	close(listener.fd);
	CU_ASSERT_EQUAL_FATAL(listener__open(&listener, "0.0.0.0:0"), 0);
	CU_ASSERT(!listener.loopback);
	close(listener.fd);
}

static void what_is_counted(void)
{
	static const char *const lines[] = {
		"\nwhylate_collect_blocks_total 7\n",
		"\nwhylate_collect_duplicates_total 3\n",
		"\nwhylate_collect_host_blocks_total{host=\"a\"} 7\n",
		"\nwhylate_collect_host_last_seen_seconds{host=\"a\"} 1000\n",
		"\nwhylate_collect_host_lag_seconds{host=\"a\"} 5\n",
		"\nwhylate_collect_store_up 0\n",
		"\nwhylate_collect_refusals_total{reason=\"disk_full\",status=\"507\"} 0\n",
	};
	const struct store_result result = {.stored = 7, .duplicates = 3, .stored_bytes = 100};
	const struct metrics_times anchors = {.mono_anchor_ns = 10 * SECOND_NS, .wall_anchor_ns = 960 * SECOND_NS};
	const struct metrics_times times = {.max_ts = 45 * SECOND_NS};
	const struct store_result none = {0};
	const struct store_stats stats = {0};
	struct metrics metrics;
	char *text = NULL;
	size_t sz = 0;
	FILE *out;

	metrics__init(&metrics);
	metrics__stored(&metrics, "a", &result, &anchors, 990);
	metrics__stored(&metrics, "a", &none, &times, 1000);
	metrics__stored(&metrics, "b", &none, &times, 1000);
	metrics__committed(&metrics, 0.5, -ENOENT, &stats);
	out = open_memstream(&text, &sz);
	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	CU_ASSERT_EQUAL(metrics__print(&metrics, out), 0);
	fclose(out);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		CU_ASSERT(strstr(text, lines[i]) != NULL);
	/* Whose clock is not known has no lag. */
	CU_ASSERT(!strstr(text, "lag_seconds{host=\"b\"}"));
	free(text);
	metrics__clear(&metrics);
}

static const struct unit_test tests[] = {
	{"sets of numbers", sets_of_numbers},
	{"budgets", budgets},
	{"peers", peers},
	{"tokens", tokens},
	{"addresses", addresses},
	{"what is counted", what_is_counted},
};

int suite_collect(void)
{
	return unit_suite("collect", tests, sizeof(tests) / sizeof(tests[0]));
}
