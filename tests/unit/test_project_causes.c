// SPDX-License-Identifier: GPL-2.0-or-later
/* Causes in a real server: by the hour of a session, and only of hours that have grown. */
#include "clickhouse_fixture.h"
#include "fleet/ask.h"
#include "net/project/project_internal.h"
#include "row_writer.h"
#include "test_shard_util.h"
#include "unit.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define SECOND_NS   1000000000ULL
#define FIRST_HOUR  10
#define WALL_NS     (20770ULL * 86400 * SECOND_NS + 7 * PROJECT_HOUR_NS) /* when the session's clock was 0 */
#define LATE_CNT    5
#define DAY_NS      (86400 * SECOND_NS)
#define PATIENCE_NS (20 * SECOND_NS)

/* Stands for an analysis: each hour has as many late requests as told, by one root of its own and one of all hours. */
struct analyses {
	uint64_t from_ts[8];
	size_t cnt;
};

static int analyse(void *owner, const struct project_segment *segment, const struct project_sink *sink)
{
	struct analyses *analyses = owner;
	char function[32];
	struct project_cause all = {.tail_weight = LATE_CNT};
	struct project_cause often = {.rank = 1,
				      .category = "oncpu",
				      .kind = "code",
				      .function = "often",
				      .what = "often",
				      .share = 0.6,
				      .tail_weight = LATE_CNT,
				      .late_sid = segment->from_ts / PROJECT_HOUR_NS};
	struct project_cause once = {.rank = 2, .category = "oncpu", .kind = "code", .share = 0.2};
	int err = 0;

	CU_ASSERT_FATAL(analyses->cnt < sizeof(analyses->from_ts) / sizeof(analyses->from_ts[0]));
	CU_ASSERT(segment->path_cnt > 0 && segment->until_ts - segment->from_ts == PROJECT_HOUR_NS);
	analyses->from_ts[analyses->cnt++] = segment->from_ts;
	snprintf(function, sizeof(function), "hour %" PRIu64, segment->from_ts / PROJECT_HOUR_NS);
	once.function = once.what = function;
	once.tail_weight = LATE_CNT;
	err = sink->cause(sink->owner, &all) ?: sink->cause(sink->owner, &often) ?: sink->cause(sink->owner, &once);
	for (uint64_t i = 0; !err && i < LATE_CNT; i++)
		err = sink->late(sink->owner, &(struct project_late){
						      .sid = i + 1, .latency_ns = 9, .ns = 7, .weight = 1, .rank = 1});
	return err;
}

/* Requests of that hour: its first and last second.  Equal blocks would be one. */
static void put_hour(struct row_writer *to, uint64_t hour, uint64_t sid)
{
	uint64_t begin_ts = hour * PROJECT_HOUR_NS;

	row_put_interval(to, sid, 7, "t", begin_ts, begin_ts + SECOND_NS, 0, 0);
	row_put_interval(to, sid + 1000, 7, "t", begin_ts + PROJECT_HOUR_NS - 2 * SECOND_NS,
			 begin_ts + PROJECT_HOUR_NS - SECOND_NS, 0, 0);
	CU_ASSERT_FATAL(!shard_writer__flush(to->writer, false));
}

static struct projector *open_projector(struct clickhouse *server, const char *dir, struct analyses *analyses,
					uint64_t keep_causes_ns)
{
	static const char *paths[1];
	const struct project_opts opts = {.paths = paths,
					  .path_cnt = 1,
					  .name = "causes",
					  .patience_ns = PATIENCE_NS,
					  .keep_causes_ns = keep_causes_ns,
					  .causes = analyse,
					  .owner = analyses};
	struct projector *projector;

	paths[0] = dir;
	projector = projector__new(&opts, server);
	CU_ASSERT_PTR_NOT_NULL_FATAL(projector);
	return projector;
}

static const struct fleet_root *root_of(const struct fleet_answer *answer, const char *function)
{
	for (size_t i = 0; i < answer->root_cnt; i++)
		if (!strcmp(answer->roots[i].function, function))
			return &answer->roots[i];
	return NULL;
}

/* Since the session's clock was since_ts: both roots, and none of an hour before. */
static void check_roots(struct clickhouse *server, uint64_t since_ts, size_t hour_cnt)
{
	struct fleet_answer answer = {.question = FLEET_ROOTS, .tail = 0.99};
	struct fleet_ask ask = {.server = server, .arena = arena__new()};
	const struct fleet_root *often;
	uint64_t recorded_s = hour_cnt * 3600 - 1; /* the last hour's last request ends a second before it does */

	ask.filter.since_ns = since_ts ? WALL_NS + since_ts : 0;
	CU_ASSERT_EQUAL_FATAL(fleet_ask(&ask, &answer), 0);
	CU_ASSERT_EQUAL(answer.root_cnt, 1 + hour_cnt);
	often = root_of(&answer, "often");
	CU_ASSERT_FATAL(often != NULL);
	CU_ASSERT_DOUBLE_EQUAL(often->late_requests, 0.6 * LATE_CNT * (double)hour_cnt, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(often->late_per_day, often->late_requests / (double)recorded_s * 86400, 1e-6);
	CU_ASSERT_PTR_EQUAL(root_of(&answer, "hour 10"), since_ts ? NULL : root_of(&answer, "hour 10"));
	CU_ASSERT(root_of(&answer, "hour 12") &&
		  fabs(root_of(&answer, "hour 12")->late_per_day - LATE_CNT * 0.2 / (double)recorded_s * 86400) < 1e-6);
	fleet_answer_free(&answer);
	arena__free(ask.arena);
}

static void an_hour_is_analysed_when_it_has_grown(void)
{
	const char *server_url = clickhouse_fixture(), *what;
	char url[96], text[32];
	struct clickhouse_opts opts = {.url = url};
	struct clickhouse *server;
	struct analyses analyses = {0};
	struct projector *projector;
	struct row_writer to;
	struct test_dir dir;

	if (!server_url)
		return;
	snprintf(url, sizeof(url), "%scauses", server_url);
	server = clickhouse__new(&opts, &what);
	CU_ASSERT_PTR_NOT_NULL_FATAL(server);
	test_dir__make(&dir);
	row_writer_open(&to, dir.path, "a", 5, 100);
	row_put_session(&to, "comm", "server");
	row_put_session(&to, "mono_anchor_ns", "1000");
	snprintf(text, sizeof(text), "%llu", (unsigned long long)WALL_NS + 1000);
	row_put_session(&to, "wall_anchor_ns", text);
	for (uint64_t hour = FIRST_HOUR; hour < FIRST_HOUR + 3; hour++)
		put_hour(&to, hour, hour);
	projector = open_projector(server, dir.path, &analyses, 0);
	CU_ASSERT_EQUAL(projector__run(projector), 0);
	CU_ASSERT_EQUAL(analyses.cnt, 3);
	CU_ASSERT_EQUAL(analyses.from_ts[0], FIRST_HOUR * PROJECT_HOUR_NS);
	check_roots(server, 0, 3);
	check_roots(server, (FIRST_HOUR + 1) * PROJECT_HOUR_NS, 2);
	CU_ASSERT_EQUAL(clickhouse_fixture_number(server, "SELECT count() FROM causes.late_roots WHERE rank = 1"),
			3 * LATE_CNT);
	/* What has not grown is not analysed again, by nobody. */
	CU_ASSERT_EQUAL(projector__run(projector), 0);
	CU_ASSERT_EQUAL(analyses.cnt, 3);
	put_hour(&to, FIRST_HOUR + 2, 77);
	row_writer_close(&to);
	projector__free(projector);
	projector = open_projector(server, dir.path, &analyses, 0);
	CU_ASSERT_EQUAL(projector__run(projector), 0);
	CU_ASSERT(analyses.cnt == 4 && analyses.from_ts[3] == (FIRST_HOUR + 2) * PROJECT_HOUR_NS);
	check_roots(server, 0, 3);
	projector__free(projector);
	/* A hundred years keep them, a day does not. */
	for (int is_old = 0; is_old < 2; is_old++) {
		projector = open_projector(server, dir.path, &analyses, is_old ? DAY_NS : UINT64_C(36500) * DAY_NS);
		CU_ASSERT_EQUAL(projector__run(projector), 0);
		CU_ASSERT_EQUAL(analyses.cnt, 4);
		CU_ASSERT_EQUAL(clickhouse_fixture_number(server, "SELECT uniqExact(hour) FROM causes.segment_causes"),
				is_old ? 0 : 3);
		CU_ASSERT_EQUAL(clickhouse_fixture_number(server, "SELECT uniqExact(hour) FROM causes.late_roots"),
				is_old ? 0 : 3);
		projector__free(projector);
	}
	CU_ASSERT_EQUAL(clickhouse_fixture_number(server, "SELECT count() FROM causes.intervals"), 8);
	projector = open_projector(server, dir.path, &analyses, 0);
	CU_ASSERT_EQUAL(projector__run(projector), 0);
	CU_ASSERT_EQUAL(analyses.cnt, 7);
	projector__free(projector);
	CU_ASSERT_EQUAL(project_forget(server, "a", PATIENCE_NS), 0);
	CU_ASSERT_EQUAL(clickhouse_fixture_number(server, "SELECT count() FROM causes.late_roots"), 0);
	CU_ASSERT_EQUAL(clickhouse_fixture_number(server, "SELECT count() FROM causes.segment_causes"), 0);
	clickhouse__free(server);
	test_dir__remove(&dir);
}

/* A block that claims all times costs no more than a day of hours, and times beyond all days cost no analysis. */
static void hours_are_bounded(void)
{
	struct shard_block_header header = {.table = "interval", .min_ts = 0, .max_ts = UINT64_MAX};
	struct project_session session = {.version = 1};

	CU_ASSERT_EQUAL(project_session__touch_hours(&session, &header), 0);
	CU_ASSERT_EQUAL(session.hours.cnt, 24);
	CU_ASSERT_EQUAL(session.hours.items[23].no, (uint32_t)(UINT64_MAX / PROJECT_HOUR_NS));
	session.version = 2;
	snprintf(header.table, sizeof(header.table), "wakeup");
	header.min_ts = UINT64_MAX - 1;
	CU_ASSERT_EQUAL(project_session__touch_hours(&session, &header), 0);
	CU_ASSERT(session.hours.items[23].version == 2 && session.hours.items[22].version == 1);
	header.min_ts = header.max_ts = 0;
	CU_ASSERT_EQUAL(project_session__touch_hours(&session, &header), 0);
	CU_ASSERT_EQUAL(session.hours.cnt, 24);
	vec_free(&session.hours);
}

int suite_project_causes(void)
{
	static const struct unit_test tests[] = {
		{"an hour is analysed when it has grown", an_hour_is_analysed_when_it_has_grown},
		{"hours are bounded", hours_are_bounded},
	};

	return unit_suite("project_causes", tests, sizeof(tests) / sizeof(tests[0]));
}
