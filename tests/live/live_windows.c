// SPDX-License-Identifier: GPL-2.0-or-later
/* Hooks attached in windows only, at low rates or under a budget: what is seen there stands for everything. */
#include "base/exit_code.h"
#include "harness.h"
#include "net.h"
#include "servers.h"
#include "session.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WINDOWS_MAX 1024

struct rows {
	uint64_t cnt[WINDOWS_MAX], first_ts[WINDOWS_MAX], last_ts[WINDOWS_MAX]; /* by window: of the begins */
	uint64_t windowless_cnt, windowless_last_ts, longest_ns;
	uint64_t uneven_cnt; /* windowless, and yet standing for others */
	double weight_min, weight_max;
};

static void take_row(void *owner, const struct interval *interval)
{
	struct rows *rows = owner;
	uint64_t window;

	if (!interval_value(interval, "window", &window) || window >= WINDOWS_MAX) {
		rows->windowless_cnt++;
		rows->uneven_cnt += interval->weight != 1;
		if (interval->begin_ts > rows->windowless_last_ts)
			rows->windowless_last_ts = interval->begin_ts;
		return;
	}
	if (!rows->cnt[window]++)
		rows->first_ts[window] = rows->last_ts[window] = interval->begin_ts;
	if (interval->begin_ts < rows->first_ts[window])
		rows->first_ts[window] = interval->begin_ts;
	if (interval->begin_ts > rows->last_ts[window])
		rows->last_ts[window] = interval->begin_ts;
	if (interval->latency_ns > rows->longest_ns)
		rows->longest_ns = interval->latency_ns;
	if (!rows->weight_min || interval->weight < rows->weight_min)
		rows->weight_min = interval->weight;
	if (interval->weight > rows->weight_max)
		rows->weight_max = interval->weight;
}

/* No request of a window arrived earlier or later than it selects, however late the agent came to close it. */
static void check_lengths(const struct rows *rows, uint64_t length_ns)
{
	for (int i = 0; i < WINDOWS_MAX; i++)
		if (rows->cnt[i])
			CHECKF(rows->last_ts[i] - rows->first_ts[i] <= length_ns, "window %d has arrivals over %lu ns",
			       i, rows->last_ts[i] - rows->first_ts[i]);
}

struct pace {
	uint64_t cnt, ts;
};

static bool pace_begin(struct pace *pace, const struct redis *redis)
{
	pace->ts = now_ns();
	return redis_processed(redis, &pace->cnt);
}

/* What Redis itself counted since then, by the second. */
static double pace_end(const struct pace *pace, const struct redis *redis)
{
	uint64_t cnt = 0;

	redis_processed(redis, &cnt);
	return (double)(cnt - pace->cnt) * 1e9 / (double)(now_ns() - pace->ts);
}

/* The estimate is what the rows' weights sum to, and about as many as there were. */
static void check_seen(const struct session *session, double truth)
{
	double seen = (double)session_number(session, "intervals_seen");

	CHECKF(seen > truth / 2 && seen < truth * 2, "%.0f, where about %.0f were", seen, truth);
	CHECKF(seen - session->weight_sum < 1 && session->weight_sum - seen < 1, "weights sum to %.0f, not %.0f",
	       session->weight_sum, seen);
}

/*
 * Five seconds in strata of one, or longer ones after a window that had to wait: rows stand for fifty requests each or
 * more, and together for about as many as there were.  Five windows of a load that comes and goes with the machine are
 * few: a factor of two is what this can tell, and a wrong weight is off by fifty.
 */
static void test_estimate(void)
{
	struct recording recording = {0};
	struct process load = {0};
	struct rows rows = {0};
	struct session session;
	struct redis redis;
	struct pace pace;
	double truth;

	if (!redis_start(&redis, ANY_CPU) || !redis_load_start(&load, &redis, ANY_CPU, 3000000, 20) ||
	    !pace_begin(&pace, &redis) ||
	    !recording_start(&recording, "windows", redis.process.pid, "-d 5s --rate 2%% --tail none"))
		goto cleanup;
	CHECK(process_wait(&recording.process, 20) == 0);
	truth = pace_end(&pace, &redis) * 5;
	if (!session_read(&session, recording.dir.s, take_row, &rows))
		goto cleanup;
	session_check(&session);
	session_check_no_loss(&session);
	CHECKF(session_number(&session, "windows") >= 2 && session_number(&session, "windows") <= 6, "%lu windows",
	       session_number(&session, "windows"));
	check_seen(&session, truth);
	CHECKF(rows.weight_min > 49.9 && rows.weight_max < 500, "weights from %f to %f", rows.weight_min,
	       rows.weight_max);
	CHECK(!rows.windowless_cnt && !rows.cnt[0]);
	check_lengths(&rows, 25 * NS_PER_MS);
	CHECK(!session.lost[WL_LOSS_CUT]);
cleanup:
	process_end(&load);
	recording_end(&recording);
	redis_end(&redis);
}

#define DRAIN_LOADS 8

/*
 * Requests that take twice as long as a window selects: it stays open for those that began in it.  Each load asks in
 * bursts, as often as it is answered; together they ask at any time, if Redis does not answer all of them at one beat
 * of its clock, which is ten a second by default.
 */
static void test_drain(void)
{
	struct process loads[DRAIN_LOADS] = {0};
	struct recording recording = {0};
	struct rows rows = {0};
	struct session session;
	struct redis redis;

	if (!redis_start(&redis, ANY_CPU) || !CHECK(port_answers(redis.port, "CONFIG SET hz 100\r\n", "+OK\r\n")))
		goto cleanup;
	for (int i = 0; i < DRAIN_LOADS; i++) {
		if (process_start(&loads[i], "redis-benchmark -p %d -c 5 -n 400 -q BLPOP nothing 0.1", redis.port))
			goto cleanup;
		sleep_ms(100 / DRAIN_LOADS);
	}
	if (!recording_start(&recording, "windows-drain", redis.process.pid, "-d 4s --rate 5%% --tail none"))
		goto cleanup;
	CHECK(process_wait(&recording.process, 20) == 0);
	if (!session_read(&session, recording.dir.s, take_row, &rows))
		goto cleanup;
	session_check(&session);
	CHECKF(session.row_cnt >= 10, "%lu rows in %s windows", session.row_cnt, session_key(&session, "windows"));
	CHECKF(rows.longest_ns >= 100 * NS_PER_MS, "%lu ns at most", rows.longest_ns);
	CHECKF(!session.lost[WL_LOSS_CUT], "%lu cut", session.lost[WL_LOSS_CUT]);
	check_lengths(&rows, 63 * NS_PER_MS);
cleanup:
	for (int i = 0; i < DRAIN_LOADS; i++)
		process_end(&loads[i]);
	recording_end(&recording);
	redis_end(&redis);
}

/* Requests that are never answered: their number and their age are reported. */
static void test_open(void)
{
	static const char question[] = "BLPOP nothing 0\r\n";
	struct recording recording = {0};
	struct session session;
	json_object *report = NULL;
	struct redis redis;
	double weight;
	int fds[600], cnt = 0;

	if (!redis_start(&redis, ANY_CPU) ||
	    !recording_start(&recording, "windows-open", redis.process.pid, "-d 4s --rate 5%% --tail none"))
		goto cleanup;
	for (; cnt < 600 && process_runs(&recording.process); cnt++) {
		fds[cnt] = port_connect(redis.port);
		if (!CHECK(fds[cnt] >= 0) ||
		    !CHECK(send(fds[cnt], question, strlen(question), MSG_NOSIGNAL) == (ssize_t)strlen(question)))
			break;
		sleep_ms(5);
	}
	CHECK(process_wait(&recording.process, 20) == 0);
	if (!session_read(&session, recording.dir.s, NULL, NULL))
		goto cleanup;
	CHECK(session.row_cnt == 0);
	CHECK(!session.lost[WL_LOSS_CUT]);
	CHECKF(session_number(&session, "intervals_censored") > 0, "windows: %s", session_key(&session, "windows"));
	weight = (double)session_number(&session, "censored_weight");
	CHECKF(weight > cnt / 3.0 && weight < cnt * 3.0, "%s stand for %.0f of %d",
	       session_key(&session, "intervals_censored"), weight, cnt);
	CHECK(session_number(&session, "censored_longest_ns") > NS_PER_SEC);
	report = report_read(recording.dir.s, "");
	CHECK(json_number(report, "session.intervals_censored") ==
	      (double)session_number(&session, "intervals_censored"));
	json_object_put(report);
cleanup:
	while (cnt > 0)
		close(fds[--cnt]);
	recording_end(&recording);
	redis_end(&redis);
}

struct truth {
	double cnt, mean_ns, slow;
};

#define SLOW_NS (100 * NS_PER_MS)

/* Of the requests in the workload's log that began and ended in that time. */
static bool truth_read(struct truth *truth, const char *path, uint64_t from_ts, uint64_t to_ts)
{
	unsigned long begin_ts, end_ts;
	FILE *log = fopen(path, "r");

	*truth = (struct truth){0};
	while (log && fscanf(log, "%lu %lu", &begin_ts, &end_ts) == 2) {
		if (begin_ts < from_ts || end_ts > to_ts)
			continue;
		truth->cnt++;
		truth->mean_ns += (double)(end_ts - begin_ts);
		truth->slow += end_ts - begin_ts > SLOW_NS;
	}
	if (log)
		fclose(log);
	truth->mean_ns /= truth->cnt;
	truth->slow /= truth->cnt;
	return CHECK(truth->cnt > 100 && truth->slow > 0);
}

/* An estimate is near the truth, and its interval is no wider than that is near. */
static void check_estimate(json_object *report, const char *value, const char *interval, double truth, double near)
{
	double estimate = json_number(report, value), lo, hi;
	char path[64];

	snprintf(path, sizeof(path), "%s.0", interval);
	lo = json_number(report, path);
	snprintf(path, sizeof(path), "%s.1", interval);
	hi = json_number(report, path);
	CHECKF(estimate > truth * (1 - near) && estimate < truth * (1 + near), "%s: %g for %g", value, estimate, truth);
	CHECKF(lo <= estimate && estimate <= hi, "%s: %g in [%g, %g]", value, estimate, lo, hi);
	CHECKF(lo > 0 && hi < truth * 3, "%s: [%g, %g] for %g", value, lo, hi, truth);
}

/*
 * A server that stalls all of its connections for 0.2 s about every second: what windows of 30 % of the time estimate
 * is what the clients measured.  Eight stalls are few: tests/bench/episodes holds the intervals against many more.
 */
static void test_episodes(void)
{
	struct path log = temp_path("episodes-log");
	struct recording recording = {0};
	struct workload workload = {0};
	json_object *report = NULL;
	struct session session;
	struct truth truth;

	setenv("EPISODES_LOG", log.s, 1);
	setenv("EPISODES_EVERY_MS", "1000", 1);
	setenv("EPISODES_STALL_MS", "200", 1);
	if (!workload_start(&workload, "episodes", 9) ||
	    !recording_start(&recording, "windows-episodes", workload.server_pid,
			     "-d 8s --rate 30%% --duty 30%% --tail none"))
		goto cleanup;
	workload_go(&workload);
	CHECK(process_wait(&recording.process, 20) == 0);
	if (!workload_finish(&workload, 20) || !session_read(&session, recording.dir.s, NULL, NULL) ||
	    !truth_read(&truth, log.s, session_number(&session, "begin_ts"), session_number(&session, "end_ts")))
		goto cleanup;
	session_check(&session);
	CHECK(!session.lost[WL_LOSS_CUT]);
	report = report_read(recording.dir.s, "");
	check_estimate(report, "session.intervals_seen", "session.intervals_seen_ci", truth.cnt, 0.25);
	check_estimate(report, "latency.mean_ns", "latency.mean_ci", truth.mean_ns, 0.5);
	check_estimate(report, "latency.over.4.share", "latency.over.4.share_ci", truth.slow, 0.5);
	json_object_put(report);
cleanup:
	unsetenv("EPISODES_LOG");
	unsetenv("EPISODES_EVERY_MS");
	unsetenv("EPISODES_STALL_MS");
	workload_end(&workload);
	recording_end(&recording);
}

static const char *note_about(const struct session *session, const char *text)
{
	char key[32];

	for (int i = 0; i < 32; i++) {
		snprintf(key, sizeof(key), "note.%d", i);
		if (strstr(session_key(session, key), text))
			return session_key(session, key);
	}
	return NULL;
}

/* Redis at full speed leaves the agent little of two CPUs: records may be lost, and then the exit code tells. */
static void check_code(int code, struct process *process)
{
	CHECKF(code == 0 || code == EXIT_LIMITS, "%d: %s", code, process_err(process));
}

/*
 * A server so busy that the hooks cost far more than the budget: every request until that is known, then windows, and
 * what tracing costs from then on is the budget, about.  The rows of both together are as many requests as there were.
 */
static void test_budget(void)
{
	struct recording recording = {0};
	struct process load = {0};
	struct rows rows = {0};
	struct session session;
	struct redis redis;
	struct pace pace;
	double truth, cost;

	if (!redis_start(&redis, ANY_CPU) || !redis_load_start(&load, &redis, ANY_CPU, 3000000, 20) ||
	    !pace_begin(&pace, &redis) ||
	    !recording_start(&recording, "windows-budget", redis.process.pid, "-d 8s --budget 4%% --tail none"))
		goto cleanup;
	check_code(process_wait(&recording.process, 25), &recording.process);
	CHECK(strstr(process_err(&recording.process), "in windows") != NULL);
	truth = pace_end(&pace, &redis) * 8;
	if (!session_read(&session, recording.dir.s, take_row, &rows))
		goto cleanup;
	session_check(&session);
	session_check_little_loss(&session);
	CHECK(note_about(&session, "attached in windows") != NULL);
	CHECK(rows.windowless_cnt > 0 && !rows.uneven_cnt && !rows.cnt[0]);
	CHECKF(session_number(&session, "windows") >= 4, "%lu windows", session_number(&session, "windows"));
	CHECKF(rows.weight_min > 1.2, "weights from %f to %f", rows.weight_min, rows.weight_max);
	check_seen(&session, truth);
	/* The first of eight seconds cost ten times the budget, or less; what is left over is what is not in it. */
	cost = (double)session_number(&session, "cost_bpf_ns") / (double)session_number(&session, "target_cpu_ns");
	CHECKF(cost < 0.12, "tracing cost %.3f", cost);
cleanup:
	process_end(&load);
	recording_end(&recording);
	redis_end(&redis);
}

/* A server with little to do: nobody is spared anything, and nothing is left out. */
static void test_not_needed(void)
{
	enum { CNT = 200 };
	struct recording recording = {0};
	struct session session;
	struct redis redis;
	uint64_t cost_ns;

	if (!redis_start(&redis, ANY_CPU) ||
	    !recording_start(&recording, "windows-unneeded", redis.process.pid, "--tail none"))
		goto cleanup;
	for (int i = 0; i < CNT; i++) {
		CHECK(redis_answers(&redis));
		sleep_ms(8);
	}
	CHECK(recording_stop(&recording) == 0);
	if (!session_read(&session, recording.dir.s, NULL, NULL))
		goto cleanup;
	session_check(&session);
	session_check_no_loss(&session);
	CHECK(!*session_key(&session, "windows"));
	CHECKF(session_number(&session, "intervals_seen") == CNT && session.row_cnt == CNT, "%s seen, %lu rows",
	       session_key(&session, "intervals_seen"), session.row_cnt);
	cost_ns = session_number(&session, "cost_bpf_ns");
	CHECKF(cost_ns > 0 && cost_ns != UINT64_MAX, "cost: %s", session_key(&session, "cost_bpf_ns"));
cleanup:
	recording_end(&recording);
	redis_end(&redis);
}

/* Nobody who says --duty 100% gets windows, whatever it costs: each request is counted. */
static void test_no_windows(void)
{
	struct recording recording = {0};
	struct process load = {0};
	struct rows rows = {0};
	struct session session;
	struct redis redis;

	if (!redis_start(&redis, ANY_CPU) || !redis_load_start(&load, &redis, ANY_CPU, 100000, 20) ||
	    !recording_start(&recording, "windows-none", redis.process.pid, "--budget 1%% --duty 100%% --tail none"))
		goto cleanup;
	CHECK(process_wait(&load, 120) == 0);
	CHECK(recording_stop(&recording) == 0);
	if (!session_read(&session, recording.dir.s, take_row, &rows))
		goto cleanup;
	session_check(&session);
	CHECK(!*session_key(&session, "windows"));
	CHECK(note_about(&session, "attached in windows") == NULL);
	CHECK(note_about(&session, "without --duty 100% hooks may be") != NULL);
	CHECK(rows.windowless_cnt == session.row_cnt && session.row_cnt > 0);
cleanup:
	process_end(&load);
	recording_end(&recording);
	redis_end(&redis);
}

/* A budget that everything fits in, from one moment on: the hooks stay attached again. */
static void test_again(void)
{
	static const char narrow[] = "budget 1%\n", wide[] = "budget 99%\n";
	struct path file = temp_path("windows-limits");
	struct recording recording = {0};
	struct process load = {0};
	struct rows rows = {0};
	struct session session;
	struct redis redis;
	uint64_t widened_ts = 0;

	if (!redis_start(&redis, ANY_CPU) || !redis_load_start(&load, &redis, ANY_CPU, 3000000, 20) ||
	    !CHECK(!file_write(file.s, narrow, strlen(narrow))) ||
	    !recording_start(&recording, "windows-again", redis.process.pid, "-d 12s --tail none --limits %s", file.s))
		goto cleanup;
	sleep_ms(4000);
	CHECK(!file_write(file.s, wide, strlen(wide)) && !kill(recording.process.pid, SIGHUP));
	widened_ts = now_ns();
	check_code(process_wait(&recording.process, 25), &recording.process);
	if (!session_read(&session, recording.dir.s, take_row, &rows))
		goto cleanup;
	session_check(&session);
	session_check_little_loss(&session);
	CHECKF(session_number(&session, "windows") >= 2, "%lu windows", session_number(&session, "windows"));
	CHECK(rows.cnt[1] > 0 && rows.cnt[2] > 0);
	CHECK(rows.windowless_cnt > 0 && !rows.uneven_cnt);
	CHECKF(rows.windowless_last_ts > widened_ts, "no row without a window after the budget was widened");
cleanup:
	process_end(&load);
	recording_end(&recording);
	redis_end(&redis);
}

static const struct live_test tests[] = {
	{"estimate", test_estimate, SHORT},          {"drain", test_drain, REST},
	{"windows_open", test_open, SHORT},          {"windows_episodes", test_episodes, REST},
	{"windows_budget", test_budget, REST},       {"windows_unneeded", test_not_needed, SHORT},
	{"windows_refused", test_no_windows, SHORT}, {"windows_again", test_again, REST},
};

int suite_windows(void)
{
	return live_suite("windows", tests, sizeof(tests) / sizeof(tests[0]));
}
