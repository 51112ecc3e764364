// SPDX-License-Identifier: GPL-2.0-or-later
/* Weights: what selection in the kernel and retention in the agent leave out, the rows that are kept stand for. */
#include "harness.h"
#include "net.h"
#include "servers.h"
#include "session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool load_redis(const struct redis *redis, unsigned int requests)
{
	struct process load = {0};
	bool good = redis_load_start(&load, redis, ANY_CPU, requests, 10) && CHECK(process_wait(&load, 60) == 0);

	process_end(&load);
	return good;
}

/*
 * Each request is selected with probability p by itself and weighs 1/p: over n of them the sum has the standard
 * deviation sqrt(n (1 - p) / p).  A right one is off by more than five of these once in 1.7 million runs.
 */
static void test_rate(void)
{
	struct recording recording = {0};
	const double rate = 0.1;
	struct session session;
	struct redis redis;
	double seen, sigma;

	if (!redis_start(&redis, ANY_CPU) ||
	    !recording_start(&recording, "rate", redis.process.pid,
			     "--rate 10%% --tail none --budget 100%% --ring-size 32M") ||
	    !load_redis(&redis, 100000))
		goto cleanup;
	CHECK(recording_stop(&recording) == 0);
	if (!session_read(&session, recording.dir.s, NULL, NULL))
		goto cleanup;
	session_check(&session);
	session_check_no_loss(&session);
	seen = (double)session_number(&session, "intervals_seen");
	sigma = sqrt(seen * (1 - rate) / rate);
	CHECKF(fabs(seen - 100000) <= 1000, "%.0f", seen);
	CHECKF(fabs(session.weight_sum - seen) <= 5 * sigma, "the weights sum to %.0f of %.0f, sigma %.0f",
	       session.weight_sum, seen, sigma);
	CHECKF((double)session.row_cnt < 2 * rate * seen, "%lu rows", session.row_cnt);
cleanup:
	recording_end(&recording);
	redis_end(&redis);
}

struct latencies {
	struct {
		uint64_t ns;
		double weight;
	} *items;
	size_t cnt, room;
	double variance_sum; /* of the sum of the weights */
};

static void take_latency(void *owner, const struct interval *interval)
{
	struct latencies *latencies = owner;

	/* Horvitz and Thompson: a row that was kept with probability p and weighs 1/p adds (1 - p) / p^2 to the
	 * estimate. */
	latencies->variance_sum += interval->weight * (interval->weight - 1);
	if (latencies->cnt == latencies->room) {
		latencies->room = latencies->room ? 2 * latencies->room : 4096;
		latencies->items = realloc(latencies->items, latencies->room * sizeof(*latencies->items));
		if (!latencies->items)
			abort();
	}
	latencies->items[latencies->cnt].ns = interval->latency_ns;
	latencies->items[latencies->cnt++].weight = interval->weight;
}

/* How many rows that were certain to be kept are later than this. */
static double cnt_above(const struct latencies *latencies, double latency_ns)
{
	double cnt = 0;

	for (size_t i = 0; i < latencies->cnt; i++)
		cnt += (double)latencies->items[i].ns > latency_ns && latencies->items[i].weight <= 1;
	return cnt;
}

static double weight_most(const struct latencies *latencies)
{
	double most = 1;

	for (size_t i = 0; i < latencies->cnt; i++)
		most = fmax(most, latencies->items[i].weight);
	return most;
}

/*
 * Quantiles are compared by rank, where their error is known, not by value, where it depends on how steep the
 * distribution is: of n requests, n/100 lie above the p99 of a recording that keeps them all.  The other one knows for
 * certain of those above that it kept with weight 1; the rest it has sampled with weights up to w, and each request
 * that is sampled adds at most w to the variance of a count, times (1/100)^2 for those below, which only norm it.
 */
static void check_p99(const struct latencies *all, const struct latencies *thin, double p99_ns)
{
	double cnt = (double)all->cnt, above = cnt_above(all, p99_ns), sampled = above - cnt_above(thin, p99_ns);
	double sigma = sqrt(weight_most(thin) * (fmax(sampled, 0) + cnt * 0.01 * 0.01));

	/* Both saw the same requests, but not with the same nanoseconds: one of 2000 may change sides. */
	CHECKF(fabs(above - 0.01 * cnt) <= 5 * sigma + cnt / 2000, "%.0f of %.0f lie above p99 %.0f ns, sigma %.0f",
	       above, cnt, p99_ns, sigma);
}

/* Two recordings of the same requests at once: one keeps everything, the other the late ones and a hundred a second. */
static void test_retention(void)
{
	struct recording all = {0}, thin = {0};
	struct latencies latencies = {0}, all_latencies = {0};
	struct session all_session, session;
	struct redis redis;
	json_object *report;
	double seen, sigma;

	if (!redis_start(&redis, ANY_CPU) ||
	    !recording_start(&all, "retain-all", redis.process.pid, "--tail none --budget 100%% --ring-size 32M") ||
	    !recording_start(&thin, "retain-thin", redis.process.pid,
			     "--tail p99 --baseline 100 --budget 100%% --ring-size 32M") ||
	    !load_redis(&redis, 400000))
		goto cleanup;
	CHECK(recording_stop(&thin) == 0);
	CHECK(recording_stop(&all) == 0);
	if (!session_read(&all_session, all.dir.s, take_latency, &all_latencies) ||
	    !session_read(&session, thin.dir.s, take_latency, &latencies))
		goto cleanup;
	session_check(&all_session);
	session_check(&session);
	seen = (double)session_number(&session, "intervals_seen");
	sigma = sqrt(latencies.variance_sum);
	/* Everything of the first second, about a hundred thousand, before there is a quantile to go by. */
	CHECKF(session.row_cnt < all_session.row_cnt * 3 / 4, "%lu of %lu rows", session.row_cnt, all_session.row_cnt);
	CHECKF(fabs(session.weight_sum - seen) <= 5 * sigma, "the weights sum to %.0f of %.0f, sigma %.0f",
	       session.weight_sum, seen, sigma);
	report = report_read(thin.dir.s, NULL);
	check_p99(&all_latencies, &latencies, json_number(report, "latency.p99_ns"));
	json_object_put(report);
cleanup:
	free(latencies.items);
	free(all_latencies.items);
	recording_end(&all);
	recording_end(&thin);
	redis_end(&redis);
}

/* Software events take the place of a PMU: two of three are on in each epoch, and the third is null. */
struct hw {
	uint64_t with_cnt[3], none_cnt, odd_cnt; /* rows with that event and the next; without any; with one or three */
	uint64_t off_cnt;
};

static void take_hw(void *owner, const struct interval *interval)
{
	static const char *const events[3] = {"sw.cpu_clock", "sw.page_faults", "sw.switches"};
	uint64_t values[3];
	struct hw *hw = owner;
	bool there[3];

	for (int e = 0; e < 3; e++)
		there[e] = interval_value(interval, events[e], &values[e]);
	if (!there[0] && !there[1] && !there[2]) {
		hw->none_cnt++;
		return;
	}
	hw->odd_cnt += there[0] + there[1] + there[2] != 2;
	for (int e = 0; e < 3; e++)
		hw->with_cnt[e] += there[e] && there[(e + 1) % 3];
	hw->off_cnt += there[0] && fabs((double)values[0] - (double)interval->ns[WL_STATE_RUNNING]) >
					   0.05 * (double)interval->ns[WL_STATE_RUNNING] + 20000;
}

static void test_hardware_counters(void)
{
	struct recording recording = {0};
	struct workload workload;
	struct session session;
	struct hw hw = {0};

	if (!workload_start(&workload, "cpu", 6) ||
	    !recording_start(&recording, "hw", workload.server_pid,
			     "-d 60s --hw-events software --tail none --budget 100%% --ring-size 32M"))
		goto cleanup;
	workload_go(&workload);
	if (!workload_finish(&workload, 30))
		goto cleanup;
	CHECK(process_wait(&recording.process, 10) == 0);
	if (!session_read(&session, recording.dir.s, take_hw, &hw))
		goto cleanup;
	session_check(&session);
	CHECKF(!hw.odd_cnt, "%lu rows have values of two rotations, or half of one", hw.odd_cnt);
	CHECKF(hw.with_cnt[0] && hw.with_cnt[1] && hw.with_cnt[2], "%lu, %lu and %lu of %lu rows", hw.with_cnt[0],
	       hw.with_cnt[1], hw.with_cnt[2], session.row_cnt);
	CHECK(session_number(&session, "hw_rotations") == 3);
	CHECKF(session_number(&session, "hw_epoch_ns") >= 900000000 &&
		       session_number(&session, "hw_epoch_ns") <= 2000000000,
	       "epochs of %s ns", session_key(&session, "hw_epoch_ns"));
	/* Only those on the border of two epochs have none: some requests are open at each of a few borders. */
	CHECKF(hw.none_cnt <= session.row_cnt / 20, "%lu of %lu rows have none", hw.none_cnt, session.row_cnt);
	/*
	 * The event counts the time of the CPU, as the state does, by another clock: they part when a guest is paused.
	 * Seen on two busy CPUs: 2 % of the rows alone, 6 to 7 % beside builds.
	 */
	CHECKF(hw.off_cnt <= (hw.with_cnt[0] + hw.with_cnt[2]) / 10,
	       "%lu of %lu rows are off by more than 5 %% and 20 us", hw.off_cnt, hw.with_cnt[0] + hw.with_cnt[2]);
cleanup:
	recording_end(&recording);
	workload_end(&workload);
}

static const struct live_test tests[] = {
	{"rate", test_rate, SHORT},
	{"retention", test_retention, REST},
	{"hardware_counters", test_hardware_counters, SHORT},
};

int suite_selection(void)
{
	return live_suite("selection", tests, sizeof(tests) / sizeof(tests[0]));
}
