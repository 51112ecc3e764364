// SPDX-License-Identifier: GPL-2.0-or-later
#include "live/watch_keep.h"
#include "row_writer.h"
#include "test_shard_util.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000ULL
#define MS        1000000ULL

static void conditions_are_parsed(void)
{
	static const struct {
		const char *text;
		enum watch_figure figure;
		double value;
		bool below;
		uint64_t for_ns;
		const char *type;
	} cases[] = {
		{"p99>20ms for 10s", WATCH_PERCENTILE, 20e6, false, 10 * SECOND_NS, ""},
		{"p99.9 > 1s", WATCH_PERCENTILE, 1e9, false, 10 * SECOND_NS, ""},
		{" mean>500us for 1m of tcp:6379 GET", WATCH_MEAN, 500e3, false, 60 * SECOND_NS, "tcp:6379 GET"},
		{"rate<100 for 5s", WATCH_RATE, 100, true, 5 * SECOND_NS, ""},
		{"share(100ms)>1% of tcp:80", WATCH_SHARE, 0.01, false, 10 * SECOND_NS, "tcp:80"},
	};
	static const char *const wrong[] = {"",
					    "p99",
					    "p99>",
					    "p99>20",
					    "p0>1ms",
					    "p100>1ms",
					    "p99=20ms",
					    "p99>20ms for",
					    "p99>20ms for 1h",
					    "mean>1%",
					    "share>1%",
					    "share()>1%",
					    "share(1ms)>2",
					    "rate>1ms",
					    "p99>20ms of",
					    "p99>20ms or mean>1ms",
					    "p99>20ms for 10s 5s",
					    "latency>20ms"};
	struct watch_when when;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CU_ASSERT_EQUAL(watch_when_parse(&when, cases[i].text), 0);
		CU_ASSERT_EQUAL(when.figure, cases[i].figure);
		CU_ASSERT_DOUBLE_EQUAL(when.value, cases[i].value, 1e-6);
		CU_ASSERT_EQUAL(when.below, cases[i].below);
		CU_ASSERT_EQUAL(when.for_ns, cases[i].for_ns);
		CU_ASSERT_STRING_EQUAL(when.type, cases[i].type);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CU_ASSERT_EQUAL(watch_when_parse(&when, wrong[i]), -EINVAL);
}

/* 100 requests a second of `usual` ns; from `from` seconds on, `late` of them of `late_ns`, each for `weight`. */
static size_t seconds_met(const char *text, uint64_t from, size_t late, uint64_t late_ns, double weight, double *value)
{
	struct watch_state *state;
	struct watch_when when;
	size_t met = 0;

	CU_ASSERT_EQUAL_FATAL(watch_when_parse(&when, text), 0);
	state = watch_state__new(&when);
	CU_ASSERT_FATAL(state != NULL);
	for (uint64_t s = 0; s < 40; s++) {
		for (size_t i = 0; i < 100; i++)
			CU_ASSERT_EQUAL(watch_state__add(state, s * SECOND_NS + i * 10 * MS,
							 s >= from && i < late ? late_ns : MS,
							 s >= from && i < late ? 1 : weight),
					0);
		met += watch_state__met(state, 0, (s + 1) * SECOND_NS, value);
	}
	watch_state__free(state);
	return met;
}

static void conditions_are_met_when_they_are(void)
{
	double value;

	/* The last 10 s hold 1 % of late ones from the sixth second on, of 2 % in each. */
	CU_ASSERT_EQUAL(seconds_met("p99>20ms for 10s", 20, 2, 50 * MS, 1, &value), 15);
	CU_ASSERT_DOUBLE_EQUAL(value, 50e6, 1);
	CU_ASSERT_EQUAL(seconds_met("p99>20ms for 10s", 20, 1, 50 * MS, 1, &value), 0);
	CU_ASSERT_EQUAL(seconds_met("share(20ms)>0.5% for 10s", 20, 1, 50 * MS, 1, &value), 15);
	CU_ASSERT_DOUBLE_EQUAL(value, 0.01, 1e-9);
	CU_ASSERT_EQUAL(seconds_met("mean>1.4ms for 10s", 20, 1, 50 * MS, 1, &value), 12);
	CU_ASSERT_EQUAL(seconds_met("rate<150 for 10s", 0, 0, 0, 1, &value), 31);
	CU_ASSERT_EQUAL(seconds_met("rate>150 for 10s", 0, 0, 0, 2, &value), 31);
	CU_ASSERT_DOUBLE_EQUAL(value, 200, 1e-9);
	/* Those that are not late stand for ten each. */
	CU_ASSERT_EQUAL(seconds_met("p99>20ms for 10s", 0, 5, 50 * MS, 10, &value), 0);
	/* Fewer than five requests are no tail. */
	CU_ASSERT_EQUAL(seconds_met("p99>20ms for 1s", 0, 4, 50 * MS, 1, &value), 0);
}

/* --- the shards of an armed recording ------------------------------------------------------------------------------
 */

static bool is_there(const char *dir, const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return !access(path, F_OK);
}

/* A shard of that name with so many requests that end from first_ts on, a millisecond apart, seconds_ago. */
static void put_shard(const char *dir, const char *name, size_t cnt, uint64_t first_ts, time_t seconds_ago)
{
	struct timespec times[2] = {{.tv_sec = time(NULL) - seconds_ago}, {.tv_sec = time(NULL) - seconds_ago}};
	struct test_dir scratch;
	struct row_writer to;
	char command[1024], path[512];

	test_dir__make(&scratch);
	row_writer_open(&to, scratch.path, "host", 7, 1);
	for (size_t i = 0; i < cnt; i++)
		row_put_interval(&to, i + 1, 1, i % 2 ? "read" : "write", first_ts + i * MS, first_ts + i * MS + MS, 0,
				 0);
	row_writer_close(&to);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	snprintf(command, sizeof(command), "mv %s/*.wls %s", scratch.path, path);
	CU_ASSERT_EQUAL_FATAL(system(command), 0);
	CU_ASSERT_EQUAL(utimensat(AT_FDCWD, path, times, 0), 0);
	test_dir__remove(&scratch);
}

static double rate_at(struct watch_state *state, uint64_t now_ts)
{
	double value;

	watch_state__met(state, 0, now_ts, &value);
	return value;
}

static void old_shards_go_and_those_of_an_event_stay(void)
{
	struct test_dir dir;
	struct watch_when when;
	struct watch_state *state;
	struct watch_keep *keep;
	char armed[256], event[256];

	test_dir__make(&dir);
	snprintf(armed, sizeof(armed), "%s/armed", dir.path);
	snprintf(event, sizeof(event), "%s/event", dir.path);
	CU_ASSERT_EQUAL_FATAL(watch_when_parse(&when, "rate>1000000 for 10s of read"), 0);
	state = watch_state__new(&when);
	keep = watch_keep__new(armed, when.type, WATCH_BEFORE_NS);
	/* The recorder has not begun. */
	CU_ASSERT_EQUAL(watch_keep__look(keep, state), 0);
	CU_ASSERT_EQUAL_FATAL(mkdir(armed, 0755), 0);
	put_shard(armed, "h-7-000000.wls", 100, SECOND_NS, 500);
	put_shard(armed, "h-7-000001.wls", 100, SECOND_NS, 300);
	put_shard(armed, "h-7-000002.wls", 100, SECOND_NS, 20);
	CU_ASSERT_EQUAL(watch_keep__look(keep, state), 0);
	/* Each request is taken once, and only those of the type. */
	CU_ASSERT_DOUBLE_EQUAL(rate_at(state, 11 * SECOND_NS), 15, 1e-9);
	CU_ASSERT_EQUAL(watch_keep__look(keep, state), 0);
	CU_ASSERT_DOUBLE_EQUAL(rate_at(state, 11 * SECOND_NS), 15, 1e-9);
	CU_ASSERT_TRUE(is_there(armed, "h-7-000000.wls"));
	CU_ASSERT_FALSE(is_there(armed, "h-7-000001.wls"));
	CU_ASSERT_TRUE(is_there(armed, "h-7-000002.wls"));
	CU_ASSERT_EQUAL(watch_keep__begin(keep, event), 0);
	put_shard(armed, "h-7-000003.wls", 10, 2 * SECOND_NS, 0);
	CU_ASSERT_EQUAL(watch_keep__look(keep, state), 0);
	CU_ASSERT_TRUE(is_there(event, "h-7-000000.wls"));
	CU_ASSERT_TRUE(is_there(event, "h-7-000002.wls"));
	CU_ASSERT_TRUE(is_there(event, "h-7-000003.wls"));
	CU_ASSERT_DOUBLE_EQUAL(rate_at(state, 11 * SECOND_NS), 15.5, 1e-9);
	watch_keep__end(keep);
	put_shard(armed, "h-7-000004.wls", 10, 3 * SECOND_NS, 0);
	CU_ASSERT_EQUAL(watch_keep__look(keep, state), 0);
	CU_ASSERT_FALSE(is_there(event, "h-7-000004.wls"));
	watch_keep__remove(keep);
	CU_ASSERT_FALSE(is_there(dir.path, "armed"));
	CU_ASSERT_TRUE(is_there(event, "h-7-000002.wls"));
	watch_keep__free(keep);
	watch_state__free(state);
	watch_remove_dir(event);
	test_dir__remove(&dir);
}

static void make(const char *dir, const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	CU_ASSERT_EQUAL_FATAL(mkdir(path, 0755), 0);
}

static void events_of_earlier_runs_are_bounded_too(void)
{
	static const char *const others[] = {"2026-01-01", "2026-01-01T00-00-00Z.old", "a026-01-01T00-00-00Z"};
	struct test_dir dir, elsewhere;
	char link[512];

	test_dir__make(&dir);
	test_dir__make(&elsewhere);
	make(dir.path, "2026-01-01T00-00-02Z");
	make(dir.path, "2025-12-31T23-59-59Z");
	make(dir.path, "2026-01-01T00-00-01Z");
	put_shard(dir.path, "2025-12-31T23-59-59Z/h-7-000000.wls", 10, SECOND_NS, 0);
	for (size_t i = 0; i < 3; i++)
		make(dir.path, others[i]);
	watch_keep_newest(dir.path, 3);
	CU_ASSERT_TRUE(is_there(dir.path, "2025-12-31T23-59-59Z"));
	watch_keep_newest(dir.path, 2);
	CU_ASSERT_FALSE(is_there(dir.path, "2025-12-31T23-59-59Z"));
	CU_ASSERT_TRUE(is_there(dir.path, "2026-01-01T00-00-01Z"));
	CU_ASSERT_TRUE(is_there(dir.path, "2026-01-01T00-00-02Z"));
	for (size_t i = 0; i < 3; i++)
		CU_ASSERT_TRUE(is_there(dir.path, others[i]));
	/* What a link leads to is nobody's event. */
	put_shard(elsewhere.path, "h-7-000000.wls", 10, SECOND_NS, 0);
	snprintf(link, sizeof(link), "%s/2024-01-01T00-00-00Z", dir.path);
	CU_ASSERT_EQUAL(symlink(elsewhere.path, link), 0);
	watch_keep_newest(dir.path, 2);
	CU_ASSERT_TRUE(is_there(elsewhere.path, "h-7-000000.wls"));
	test_dir__remove(&dir);
	test_dir__remove(&elsewhere);
}

/* Also where it had the number that this one has, as in a container after each start. */
static void only_a_watch_that_is_gone_leaves_something_to_sweep(void)
{
	char mine[512], used[512];
	struct test_dir dir;
	int fd;

	test_dir__make(&dir);
	snprintf(mine, sizeof(mine), "%s/armed.%d", dir.path, (int)getpid());
	snprintf(used, sizeof(used), "%s/armed.7", dir.path);
	CU_ASSERT_EQUAL_FATAL(mkdir(mine, 0755), 0);
	put_shard(mine, "h-7-000000.wls", 10, SECOND_NS, 0);
	make(dir.path, "armed.1");
	make(dir.path, "armed.1x");
	make(dir.path, "armed.");
	fd = watch_keep_claim(used);
	CU_ASSERT_TRUE(fd >= 0);
	watch_keep_sweep(dir.path);
	CU_ASSERT_TRUE(is_there(dir.path, "armed.7"));
	CU_ASSERT_FALSE(is_there(dir.path, "armed.1"));
	CU_ASSERT_TRUE(is_there(dir.path, "armed.1x"));
	CU_ASSERT_TRUE(is_there(dir.path, "armed."));
	CU_ASSERT_FALSE(is_there(mine, ""));
	/* Nobody else's directory is taken. */
	CU_ASSERT_EQUAL(watch_keep_claim(used), -EEXIST);
	close(fd);
	watch_keep_sweep(dir.path);
	CU_ASSERT_FALSE(is_there(dir.path, "armed.7"));
	test_dir__remove(&dir);
}

/* The watch goes on: a later event begins as if there had been none. */
static void an_event_that_cannot_begin_leaves_nothing(void)
{
	struct test_dir dir;
	struct watch_keep *keep;
	char event[512], missing[512];

	test_dir__make(&dir);
	keep = watch_keep__new(dir.path, "", WATCH_BEFORE_NS);
	put_shard(dir.path, "h-7-000000.wls", 10, SECOND_NS, 0);
	CU_ASSERT_EQUAL(watch_keep__look(keep, NULL), 0);
	snprintf(missing, sizeof(missing), "%s/missing/event", dir.path);
	snprintf(event, sizeof(event), "%s/event", dir.path);
	CU_ASSERT_EQUAL(watch_keep__begin(keep, missing), -ENOENT);
	make(dir.path, "event");
	CU_ASSERT_EQUAL(watch_keep__begin(keep, event), -EEXIST);
	CU_ASSERT_TRUE(is_there(dir.path, "event"));
	rmdir(event);
	CU_ASSERT_EQUAL(watch_keep__begin(keep, event), 0);
	CU_ASSERT_TRUE(is_there(event, "h-7-000000.wls"));
	watch_keep__end(keep);
	watch_keep__free(keep);
	watch_remove_dir(event);
	test_dir__remove(&dir);
}

int suite_watch(void)
{
	static const struct unit_test tests[] = {
		{"conditions are parsed", conditions_are_parsed},
		{"conditions are met when they are", conditions_are_met_when_they_are},
		{"old shards go and those of an event stay", old_shards_go_and_those_of_an_event_stay},
		{"events of earlier runs are bounded, too", events_of_earlier_runs_are_bounded_too},
		{"only a watch that is gone leaves something to sweep",
		 only_a_watch_that_is_gone_leaves_something_to_sweep},
		{"an event that cannot begin leaves nothing", an_event_that_cannot_begin_leaves_nothing},
	};

	return unit_suite("watch", tests, sizeof(tests) / sizeof(tests[0]));
}
