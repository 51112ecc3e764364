// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The planner's sites, live: on real calls of hundreds of functions of real binaries, the site that it moved a probe to
 * is hit exactly as often as the function's entry.  Servers are stopped while the probes come and go; a thread that
 * happens to be stopped between the two is the only difference there can be.
 */
#include "harness.h"
#include "net.h"
#include "postgres.h"
#include "servers.h"
#include "session.h"

#include <stdio.h>
#include <string.h>

/* Threads that may be stopped between entry and site, at the beginning and at the end. */
#define STOPPED_BETWEEN 4

static json_object *comparison_read(struct process *prober)
{
	const char *text = strstr(process_out(prober), "{\"compared\":");

	return text ? json_tokener_parse(text) : NULL;
}

static void compare_case(pid_t pid, const char *what, const char *modules, double hit_min, double moved_min)
{
	struct process prober;
	json_object *result = NULL;

	if (process_start(&prober, "%s -p %d %s -x -n 600 -w 1500", built_path("live/prober").s, (int)pid, modules))
		return;
	if (CHECKF(process_wait(&prober, 100) == 0, "%s: %s", what, process_err(&prober)))
		result = comparison_read(&prober);
	if (CHECKF(result != NULL, "%s: %s", what, process_out(&prober))) {
		printf("\n    %s: %s", what, json_object_to_json_string(result));
		CHECKF(json_number(result, "hit") >= hit_min, "%s", what);
		CHECKF(json_number(result, "moved") >= moved_min, "%s", what);
		CHECKF(json_number(result, "off_sum") <= STOPPED_BETWEEN, "%s: %s", what, process_err(&prober));
	}
	json_object_put(result);
	process_end(&prober);
}

static void test_redis(void)
{
	struct process load = {0};
	struct redis redis;

	if (program_missing("sites_redis", "redis-server"))
		return;
	/* All its commands, not only GET. */
	if (!redis_start(&redis, ANY_CPU) ||
	    process_start(&load, "redis-benchmark -h 127.0.0.1 -p %d -n 300 -c 10 -l -q", redis.port))
		goto cleanup;
	compare_case(redis.process.pid, "redis-server", "-m redis-server", 100, 50);
	compare_case(redis.process.pid, "libc under Redis", "-m libc.so.6", 20, 10);
	CHECK(process_runs(&redis.process) && redis_answers(&redis));
cleanup:
	process_end(&load);
	redis_end(&redis);
}

static void test_postgres(void)
{
	struct launch launch = {.user = "postgres", .cpu = ANY_CPU};
	struct postgres postgres = {0};
	struct process load = {0};
	char line[200];

	if (!postgres_find(&postgres, "sites_postgres") || !postgres_start(&postgres, "pg-sites", "-c fsync=off"))
		goto cleanup;
	snprintf(line, sizeof(line), "pgbench -h 127.0.0.1 -p %d -i -q -s 1 postgres", postgres.port);
	if (!as_postgres(&postgres, &load, 60, line))
		goto cleanup;
	process_end(&load);
	launch.cwd = postgres.home.s;
	if (process_launch(&load, &launch, "%s/pgbench -h 127.0.0.1 -p %d -n -c 2 -T 60 postgres", postgres.bin.s,
			   postgres.port))
		goto cleanup;
	sleep_ms(500);
	compare_case(postgres.process.pid, "postgres", "-m postgres", 300, 100);
	compare_case(postgres.process.pid, "libc under postgres", "-m libc.so.6", 10, 5);
	CHECKF(process_runs(&load), "pgbench: %s", process_err(&load));
cleanup:
	process_end(&load);
	postgres_end(&postgres);
}

static const struct live_test tests[] = {
	{"sites_redis", test_redis, SHORT},
	{"sites_postgres", test_postgres, REST},
};

int suite_sites(void)
{
	return live_suite("sites", tests, sizeof(tests) / sizeof(tests[0]));
}
