// SPDX-License-Identifier: GPL-2.0-or-later
/* The projection into a real server: every row once, whatever happened meanwhile. */
#include "base/random.h"
#include "clickhouse_fixture.h"
#include "fleet/ask.h"
#include "net/project/project_internal.h"
#include "row_writer.h"
#include "said.h"
#include "test_shard_util.h"
#include "unit.h"

#include <json-c/json.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DAY_NS   86400000000000ULL
#define NOW_NS   (20770 * DAY_NS) /* 2026-11-13 */
#define ROW_CNT  300
#define HOSTILE  "it's\\ a\ttab \"q\" '; DROP TABLE intervals; -- \xc3\xa4\xff"
#define SETTLE_S 20

static char url[96];

/* A database of its own for a test: NULL where it is skipped. */
static struct clickhouse *open_database(const char *name)
{
	const char *server_url = clickhouse_fixture(), *what;
	struct clickhouse_opts opts = {.url = url};
	struct clickhouse *server;

	if (!server_url)
		return NULL;
	snprintf(url, sizeof(url), "%s%s", server_url, name);
	server = clickhouse__new(&opts, &what);
	CU_ASSERT_PTR_NOT_NULL_FATAL(server);
	return server;
}

/* A session of a host, whose intervals begin at wall_ns and go on over midnight; without anchors: nobody knows when. */
static void write_session(const char *dir, const char *host, uint64_t id, uint64_t wall_ns, bool anchors,
			  const char *type)
{
	struct row_writer to;
	char text[32];

	row_writer_open(&to, dir, host, id, 100);
	row_put_session(&to, "kernel", "6.12.0");
	row_put_session(&to, "comm", "server");
	if (anchors) {
		snprintf(text, sizeof(text), "%llu", (unsigned long long)wall_ns);
		row_put_session(&to, "mono_anchor_ns", "1000000");
		row_put_session(&to, "wall_anchor_ns", text);
	}
	for (uint64_t i = 0; i < ROW_CNT; i++) {
		row_put_interval(&to, i + 1, 7, type, 1000000 + i * 1000000, 1000000 + i * 1000000 + 1000 * (i + 1), 0,
				 0);
		if (i % 50 == 49)
			CU_ASSERT_FATAL(!shard_writer__flush(to.writer, false));
	}
	row_writer_close(&to);
}

static struct projector *open_projector(struct clickhouse *server, const char *dir, const char *name)
{
	static const char *paths[1];
	const struct project_opts opts = {
		.paths = paths, .path_cnt = 1, .name = name, .patience_ns = SETTLE_S * 1000000000ULL};
	struct projector *projector;

	paths[0] = dir;
	projector = projector__new(&opts, server);
	CU_ASSERT_PTR_NOT_NULL_FATAL(projector);
	return projector;
}

static void on_difference(void *owner, const struct project_difference *difference)
{
	(void)difference;
	++*(unsigned *)owner;
}

/* Whether the database has the rows of the shards, each once, and no other. */
static bool is_equal(struct clickhouse *server, const char *dir, uint64_t row_cnt)
{
	struct projector *projector = open_projector(server, dir, "verify");
	struct project_verdict verdict;
	unsigned differences = 0;
	int err = projector__verify(projector, &verdict, on_difference, &differences);

	projector__free(projector);
	return !err && !differences && !verdict.missing_blocks && !verdict.wrong_blocks && !verdict.extra_rows &&
	       verdict.rows == row_cnt;
}

static struct project_stats project(struct clickhouse *server, const char *dir, const char *name)
{
	struct projector *projector = open_projector(server, dir, name);
	struct project_stats stats;

	CU_ASSERT_EQUAL(projector__run(projector), 0);
	projector__stats(projector, &stats);
	projector__free(projector);
	return stats;
}

static void what_is_there_is_not_inserted_again(void)
{
	struct clickhouse *server = open_database("again");
	struct project_stats stats;
	struct test_dir dir;

	if (!server)
		return;
	test_dir__make(&dir);
	/* The first one's rows are of two days. */
	write_session(dir.path, "a", 1, NOW_NS - 150000000, true, "tcp:80");
	write_session(dir.path, "b", 2, NOW_NS + DAY_NS, true, "tcp:80");
	stats = project(server, dir.path, "one");
	CU_ASSERT(stats.rows == 2 * ROW_CNT && !stats.known_rows && stats.sessions == 2);
	CU_ASSERT(is_equal(server, dir.path, 2 * ROW_CNT));
	CU_ASSERT_EQUAL(clickhouse_fixture_number(server, "SELECT uniqExact(day) FROM again.intervals"), 3);
	CU_ASSERT_EQUAL(clickhouse_fixture_number(
				server, "SELECT toUInt64(sum(ns_other) + sum(ns_oncpu)) FROM again.intervals"),
			clickhouse_fixture_number(server, "SELECT toUInt64(sum(latency_ns)) FROM again.intervals"));
	stats = project(server, dir.path, "one");
	CU_ASSERT(!stats.rows && stats.known_rows == 2 * ROW_CNT && !stats.inserts);
	/* Without the list of blocks, the rows themselves tell. */
	CU_ASSERT_EQUAL(clickhouse__do(server, "DROP TABLE again.blocks"), 0);
	CU_ASSERT_EQUAL(clickhouse__do(server, "DROP TABLE again.version"), 0);
	write_session(dir.path, "c", 3, NOW_NS, true, "tcp:80");
	stats = project(server, dir.path, "two");
	CU_ASSERT(stats.rows == ROW_CNT && stats.known_rows == 2 * ROW_CNT);
	CU_ASSERT(is_equal(server, dir.path, 3 * ROW_CNT));
	CU_ASSERT_EQUAL(clickhouse_fixture_number(server, "SELECT count() FROM again.version"), SCHEMA_VERSION);
	clickhouse__free(server);
	test_dir__remove(&dir);
}

static void a_recording_goes_on(void)
{
	struct clickhouse *server = open_database("growing");
	struct projector *projector;
	struct project_stats stats;
	struct row_writer to;
	struct test_dir dir;
	char text[32];

	if (!server)
		return;
	test_dir__make(&dir);
	row_writer_open(&to, dir.path, "a", 5, 100);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)NOW_NS);
	projector = open_projector(server, dir.path, "follower");
	for (uint64_t i = 0; i < 5; i++) {
		row_put_interval(&to, i + 1, 7, "t", 2000000 + i, 3000000 + i, 0, 0);
		if (i == 2) {
			row_put_session(&to, "mono_anchor_ns", "1000000");
			row_put_session(&to, "wall_anchor_ns", text);
		}
		CU_ASSERT_FATAL(!shard_writer__flush(to.writer, false));
		CU_ASSERT_EQUAL(projector__run(projector), 0);
		projector__stats(projector, &stats);
		/* Until something says what time it was, rows wait. */
		CU_ASSERT(stats.rows == (i < 2 ? 0 : i + 1) && stats.waiting_rows == (i < 2 ? i + 1 : 0));
	}
	row_writer_close(&to);
	projector__free(projector);
	CU_ASSERT(is_equal(server, dir.path, 5));
	clickhouse__free(server);
	test_dir__remove(&dir);
}

static void hostile_names_are_names(void)
{
	struct clickhouse *server = open_database("hostile");
	struct clickhouse_rows rows;
	struct test_dir dir;

	if (!server)
		return;
	test_dir__make(&dir);
	write_session(dir.path, "a", 9, NOW_NS, true, HOSTILE);
	CU_ASSERT_EQUAL(project(server, dir.path, "one").rows, ROW_CNT);
	CU_ASSERT_EQUAL_FATAL(clickhouse__ask(server, "SELECT DISTINCT type FROM hostile.intervals", 1, &rows), 0);
	CU_ASSERT_EQUAL_FATAL(rows.row_cnt, 1);
	CU_ASSERT_STRING_EQUAL(rows.cells[0], HOSTILE);
	clickhouse_rows__free(&rows);
	clickhouse__free(server);
	test_dir__remove(&dir);
}

/* What one that was killed has left: rows without a line in the list, a gate, and an INSERT that comes too late. */
static void a_dead_projector_is_fenced(void)
{
	struct clickhouse *server = open_database("fenced");
	struct projector *dead;
	struct test_dir dir;
	size_t half;

	if (!server)
		return;
	test_dir__make(&dir);
	write_session(dir.path, "a", 11, NOW_NS, true, "t");
	dead = open_projector(server, dir.path, "mortal");
	CU_ASSERT_EQUAL_FATAL(schema_apply(server, NULL, &dead->about), 0);
	CU_ASSERT_EQUAL_FATAL(projector__scan(dead), 0);
	CU_ASSERT_EQUAL_FATAL(projector__take_turn(dead), 0);
	half = dead->blocks.cnt / 2;
	for (size_t b = 0; b < dead->blocks.cnt; b++) {
		struct project_sums sums;

		rowbinary__reset(&dead->rows);
		CU_ASSERT_EQUAL_FATAL(projector__put_rows(dead, &dead->blocks.items[b], &sums), 0);
		if (b < half)
			CU_ASSERT_EQUAL_FATAL(projector__insert(dead, b, b + 1), 0);
	}
	/* Its successor; then the last of its statements arrives. */
	CU_ASSERT_EQUAL(project(server, dir.path, "mortal").rows, ROW_CNT - half * 50);
	if (!dead->about.tokens) {
		CU_ASSERT_EQUAL(projector__insert(dead, dead->blocks.cnt - 1, dead->blocks.cnt), -EPROTO);
		CU_ASSERT_EQUAL(clickhouse__code(server), CLICKHOUSE_NO_SUCH_TABLE);
	}
	CU_ASSERT(is_equal(server, dir.path, ROW_CNT));
	CU_ASSERT_EQUAL(clickhouse_fixture_number(server,
						  "SELECT count() FROM system.tables WHERE database = 'fenced' AND "
						  "(name LIKE 'gate%' OR name LIKE 'pour%')"),
			0);
	dead->gate = 0;
	projector__free(dead);
	clickhouse__free(server);
	test_dir__remove(&dir);
}

/* Each block is in both stores. */
static void two_collectors_share_a_database(void)
{
	struct clickhouse *server = open_database("shared");
	struct test_dir dirs[2];
	pid_t pids[2];
	int status;

	if (!server)
		return;
	for (int i = 0; i < 2; i++) {
		test_dir__make(&dirs[i]);
		for (uint64_t s = 0; s < 4; s++)
			write_session(dirs[i].path, "a", 20 + s, NOW_NS + s * DAY_NS, true, "t");
	}
	for (int i = 0; i < 2; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			const char *what;
			struct clickhouse_opts opts = {.url = url};
			struct clickhouse *own = clickhouse__new(&opts, &what);
			struct projector *projector = open_projector(own, dirs[i].path, i ? "left" : "right");

			_exit(projector__run(projector) ? 1 : 0);
		}
	}
	for (int i = 0; i < 2; i++)
		CU_ASSERT(waitpid(pids[i], &status, 0) == pids[i] && WIFEXITED(status) && !WEXITSTATUS(status));
	for (int i = 0; i < 2; i++) {
		CU_ASSERT(is_equal(server, dirs[i].path, 4 * ROW_CNT));
		test_dir__remove(&dirs[i]);
	}
	clickhouse__free(server);
}

/* The rest of a session is with another collector, which never got its anchors. */
static void a_clock_is_shared(void)
{
	struct clickhouse *server = open_database("clocks");
	struct project_stats stats;
	struct test_dir first, second;

	if (!server)
		return;
	test_dir__make(&first);
	test_dir__make(&second);
	write_session(first.path, "a", 71, NOW_NS, true, "t");
	write_session(second.path, "a", 71, NOW_NS, false, "u");
	CU_ASSERT_EQUAL(project(server, second.path, "second").waiting_rows, ROW_CNT);
	CU_ASSERT_EQUAL(project(server, first.path, "first").rows, ROW_CNT);
	stats = project(server, second.path, "second");
	CU_ASSERT(stats.rows == ROW_CNT && !stats.waiting_rows);
	CU_ASSERT_EQUAL(clickhouse_fixture_number(server, "SELECT uniqExact(begin_ns) FROM clocks.intervals"), ROW_CNT);
	CU_ASSERT_EQUAL(clickhouse_fixture_number(server, "SELECT count() FROM clocks.clocks"), 1);
	CU_ASSERT_EQUAL(project_forget(server, "a", SETTLE_S * 1000000000ULL), 0);
	CU_ASSERT_EQUAL(clickhouse_fixture_number(server, "SELECT count() FROM clocks.clocks"), 0);
	clickhouse__free(server);
	test_dir__remove(&first);
	test_dir__remove(&second);
}

static void a_killed_server_comes_back(void)
{
	struct clickhouse *server = open_database("killed");
	struct test_dir dir;

	if (!server)
		return;
	test_dir__make(&dir);
	write_session(dir.path, "a", 31, NOW_NS, true, "t");
	CU_ASSERT_EQUAL(project(server, dir.path, "one").rows, ROW_CNT);
	write_session(dir.path, "b", 32, NOW_NS, true, "t");
	clickhouse_fixture_kill();
	CU_ASSERT_PTR_NOT_NULL_FATAL(clickhouse_fixture());
	CU_ASSERT_EQUAL(project(server, dir.path, "one").rows, ROW_CNT);
	CU_ASSERT(is_equal(server, dir.path, 2 * ROW_CNT));
	clickhouse__free(server);
	test_dir__remove(&dir);
}

static void a_later_version_is_left_alone(void)
{
	struct clickhouse *server = open_database("later");
	struct schema_server about;
	struct projector *projector;
	struct test_dir dir;

	if (!server)
		return;
	test_dir__make(&dir);
	write_session(dir.path, "a", 41, NOW_NS, true, "t");
	CU_ASSERT_EQUAL_FATAL(schema_apply(server, NULL, &about), 0);
	CU_ASSERT_EQUAL_FATAL(clickhouse__do(server, "INSERT INTO later.version SELECT 1000, now()"), 0);
	projector = open_projector(server, dir.path, "one");
	said_begin();
	CU_ASSERT_EQUAL(projector__run(projector), -EPROTONOSUPPORT);
	CU_ASSERT(said_one_line(said_end(), "of a later version of whylate"));
	projector__free(projector);
	CU_ASSERT_EQUAL(clickhouse_fixture_number(server, "SELECT count() FROM later.intervals"), 0);
	clickhouse__free(server);
	test_dir__remove(&dir);
}

/* Six hosts, one of them with another setting and late. */
static void write_fleet(const char *dir)
{
	for (uint64_t h = 0; h < 6; h++) {
		struct row_writer to;
		char host[16], text[32];

		snprintf(host, sizeof(host), "host-%d", (int)h);
		row_writer_open(&to, dir, host, 50 + h, 100);
		snprintf(text, sizeof(text), "%llu", (unsigned long long)NOW_NS);
		row_put_session(&to, "mono_anchor_ns", "1000000");
		row_put_session(&to, "wall_anchor_ns", text);
		row_put_session(&to, "kernel", "6.12.0");
		row_put_session(&to, "setting.it's", h == 3 ? "bad '\\" : "good");
		for (uint64_t i = 0; i < ROW_CNT; i++)
			row_put_interval(&to, i + 1, 7, "t'", 1000000 + i * 1000000,
					 1000000 + i * 1000000 + (h == 3 && i % 10 == 0 ? 9000000 : 100000 + i * 100),
					 0, 0);
		row_writer_close(&to);
	}
}

static struct fleet_answer ask(struct clickhouse *server, struct arena *arena, enum fleet_question question,
			       const char *fact, const char *type)
{
	struct fleet_ask about = {.server = server, .arena = arena, .filter = {.type = type}};
	struct fleet_answer answer = {.question = question, .fact = fact, .tail = 0.95};
	int err = fleet_ask(&about, &answer);

	if (err)
		fprintf(stderr, "question %d: %s: %s\n", question, strerror(-err), clickhouse__text(server));
	CU_ASSERT_EQUAL_FATAL(err, 0);
	return answer;
}

static void questions_are_answered(void)
{
	struct clickhouse *server = open_database("questions");
	struct fleet_answer answer;
	struct arena *arena;
	struct test_dir dir;

	if (!server)
		return;
	arena = arena__new();
	test_dir__make(&dir);
	write_fleet(dir.path);
	CU_ASSERT_EQUAL(project(server, dir.path, "one").rows, 6 * ROW_CNT);
	answer = ask(server, arena, FLEET_HOSTS, NULL, "t'");
	CU_ASSERT(answer.requests == 6 * ROW_CNT && answer.group_cnt == 6 && answer.late_host_cnt == 1);
	CU_ASSERT_STRING_EQUAL(answer.groups[0].name, "host-3");
	CU_ASSERT(answer.groups[0].stands_out && answer.groups[0].late_requests >= ROW_CNT / 10);
	CU_ASSERT_STRING_EQUAL(answer.facts[0].key, "setting.it's");
	CU_ASSERT_STRING_EQUAL(answer.facts[0].value, "bad '\\");
	CU_ASSERT(answer.facts[0].late == 1 && !answer.facts[0].other);
	CU_ASSERT_DOUBLE_EQUAL(answer.facts[0].p, 1.0 / 6, 1e-9);
	fleet_answer_free(&answer);
	answer = ask(server, arena, FLEET_BY, "setting.it's", NULL);
	CU_ASSERT(answer.group_cnt == 2 && answer.groups[0].host_cnt == 1 && answer.groups[1].host_cnt == 5);
	fleet_answer_free(&answer);
	answer = ask(server, arena, FLEET_SINCE, NULL, NULL);
	CU_ASSERT_FALSE(answer.change.found);
	fleet_answer_free(&answer);
	answer = ask(server, arena, FLEET_ROOTS, NULL, NULL);
	CU_ASSERT_EQUAL(answer.root_cnt, 0);
	fleet_answer_free(&answer);
	answer = ask(server, arena, FLEET_HOSTS, NULL, "no such'; DROP TABLE intervals");
	CU_ASSERT(!answer.requests && !answer.group_cnt);
	fleet_answer_free(&answer);
	arena__free(arena);
	clickhouse__free(server);
	test_dir__remove(&dir);
}

/* Five days of four hosts, of many weights and three types; two sessions of a host a day, of different kernels. */
static void write_days(const char *dir)
{
	static const char *const types[] = {"a", "b", "it's"};
	uint64_t state = 11;

	for (uint64_t s = 0; s < 40; s++) {
		uint64_t host = s % 4, day = s / 8, begin_ns = NOW_NS + day * DAY_NS + (s / 4 % 2) * DAY_NS / 2;
		struct row_writer to;
		char name[16], text[32];

		snprintf(name, sizeof(name), "h%d", (int)host);
		row_writer_open(&to, dir, name, 500 + s, 100);
		snprintf(text, sizeof(text), "%llu", (unsigned long long)begin_ns);
		row_put_session(&to, "mono_anchor_ns", "1000000");
		row_put_session(&to, "wall_anchor_ns", text);
		row_put_session(&to, "kernel", (host + day) % 2 ? "6.12" : "6.1");
		for (uint64_t i = 0; i < 400; i++) {
			/* Some go on over midnight. */
			uint64_t begin_ts = 1000000 + i * (DAY_NS / 790), ns = 100000 + random_next(&state) % 1000000;

			if (day >= 3 && host == 2 && i % 8 == 0)
				ns *= 20;
			row_begin_interval(&to, i + 1, 7, types[random_next(&state) % 3], begin_ts, begin_ts + ns,
					   ns / 3, 0);
			to.row.values[INTERVAL_WEIGHT].f64 = i % 37 ? 1 + (double)(random_next(&state) % 50) / 8 : 0;
			row_end(&to, SHARD_TABLE_INTERVAL);
		}
		row_writer_close(&to);
	}
}

static bool is_near(double a, double b)
{
	return (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-9 * fmax(1, fabs(a));
}

static const struct fleet_group *same_group(const struct fleet_answer *answer, const char *name)
{
	for (size_t g = 0; g < answer->group_cnt; g++)
		if (!strcmp(answer->groups[g].name, name))
			return &answer->groups[g];
	return NULL;
}

/* Everything that a question says, from sums of days and from each row. */
static void answers_are_the_same(struct clickhouse *server, enum fleet_question question, const char *fact,
				 const struct question_filter *filter)
{
	struct arena *arena = arena__new();
	struct fleet_ask about = {.server = server, .arena = arena, .filter = *filter};
	struct fleet_answer sums = {.question = question, .fact = fact, .tail = 0.97}, rows = sums;

	CU_ASSERT_EQUAL_FATAL(fleet_ask(&about, &sums), 0);
	about.from_rows = true;
	CU_ASSERT_EQUAL_FATAL(fleet_ask(&about, &rows), 0);
	CU_ASSERT(is_near(sums.requests, rows.requests) && is_near(sums.tail_ns, rows.tail_ns));
	CU_ASSERT(sums.begin_ns == rows.begin_ns && sums.end_ns == rows.end_ns);
	CU_ASSERT_EQUAL_FATAL(sums.group_cnt, rows.group_cnt);
	CU_ASSERT(sums.late_host_cnt == rows.late_host_cnt && sums.fact_cnt == rows.fact_cnt);
	for (size_t g = 0; g < sums.group_cnt; g++) {
		const struct fleet_group *one = &sums.groups[g], *other = same_group(&rows, one->name);

		CU_ASSERT_PTR_NOT_NULL_FATAL(other);
		CU_ASSERT(is_near(one->requests, other->requests) && is_near(one->effective, other->effective));
		CU_ASSERT(one->median_ns == other->median_ns && one->tail_ns == other->tail_ns);
		CU_ASSERT(one->tail_ci.lo == other->tail_ci.lo && one->tail_ci.hi == other->tail_ci.hi);
		CU_ASSERT(one->stands_out == other->stands_out && is_near(one->late_requests, other->late_requests));
		for (int c = 0; c < WL_CATEGORY_CNT; c++)
			CU_ASSERT(is_near(one->late_ns[c], other->late_ns[c]));
	}
	CU_ASSERT(sums.change.found == rows.change.found && sums.change.since_ns == rows.change.since_ns);
	CU_ASSERT(is_near(sums.change.p, rows.change.p) && is_near(sums.change.after_share, rows.change.after_share));
	fleet_answer_free(&sums);
	fleet_answer_free(&rows);
	arena__free(arena);
}

static void all_answers_are_the_same(struct clickhouse *server)
{
	const struct question_filter filters[] = {
		{0},
		{.type = "it's"},
		{.host = "h[2]"},
		{.host = "h?", .type = "a"},
		{.since_ns = NOW_NS + DAY_NS},
		{.since_ns = NOW_NS + DAY_NS + 1, .until_ns = NOW_NS + 3 * DAY_NS + DAY_NS / 3},
		{.until_ns = NOW_NS + 3 * DAY_NS, .type = "b"},
		{.since_ns = NOW_NS + 2 * DAY_NS + 77, .until_ns = NOW_NS + 2 * DAY_NS + DAY_NS / 2},
	};

	for (size_t f = 0; f < sizeof(filters) / sizeof(filters[0]); f++) {
		answers_are_the_same(server, FLEET_SINCE, NULL, &filters[f]);
		if (filters[f].host && strchr(filters[f].host, '['))
			continue; /* no host is called that */
		answers_are_the_same(server, FLEET_HOSTS, NULL, &filters[f]);
		answers_are_the_same(server, FLEET_BY, "kernel", &filters[f]);
	}
}

static void sums_answer_like_rows(void)
{
	struct clickhouse *server = open_database("sums");
	struct project_days days;
	struct test_dir dir;
	size_t whole = 0;

	if (!server)
		return;
	test_dir__make(&dir);
	write_days(dir.path);
	CU_ASSERT_EQUAL(project(server, dir.path, "one").days, 5);
	CU_ASSERT_EQUAL(clickhouse_fixture_number(server, "SELECT sum(row_cnt) FROM sums.rollup_late"), 16000);
	CU_ASSERT_EQUAL(clickhouse_fixture_number(server, "SELECT sum(row_cnt) FROM sums.histograms WHERE every = 1"),
			16000);
	all_answers_are_the_same(server);
	/* Rows that nobody summed: their days are answered from the rows. */
	CU_ASSERT_EQUAL(clickhouse__do(server, "INSERT INTO sums.intervals SELECT * FROM sums.intervals WHERE day = "
					       "toDate('2026-11-15') AND type = 'a'"),
			0);
	/* Sums that nobody named, as a projector leaves them that is killed. */
	CU_ASSERT_EQUAL(clickhouse__do(server,
				       "INSERT INTO sums.rollup_times SELECT day, generation + 1, type, minute, "
				       "bucket, row_cnt, w, w2, begin_min, begin_max FROM sums.rollup_times "
				       "WHERE day = toDate('2026-11-16')"),
			0);
	CU_ASSERT_EQUAL_FATAL(project_days__load(&days, server), 0);
	for (size_t i = 0; i < days.cnt; i++)
		whole += days.items[i].is_whole;
	CU_ASSERT(days.cnt == 5 && whole == 4);
	project_days__free(&days);
	all_answers_are_the_same(server);
	/* Nothing to insert, but a day to sum; what was summed before it stays for questions that have begun. */
	CU_ASSERT_EQUAL(project(server, dir.path, "one").days, 1);
	all_answers_are_the_same(server);
	CU_ASSERT_EQUAL(project(server, dir.path, "one").days, 0);
	CU_ASSERT_EQUAL(project_forget(server, "h1", 20000000000ULL), 0);
	CU_ASSERT_EQUAL(clickhouse_fixture_number(server, "SELECT count() FROM sums.rollup_late WHERE host = 'h1'"), 0);
	CU_ASSERT_EQUAL(clickhouse_fixture_number(server, "SELECT count() FROM sums.histograms WHERE host = 'h1'"), 0);
	CU_ASSERT_EQUAL(clickhouse_fixture_number(server, "SELECT count() FROM sums.summed_days"), 0);
	all_answers_are_the_same(server);
	clickhouse__free(server);
	test_dir__remove(&dir);
}

/* Cells are the hosts' requests, by day from sums and from rows alike, by minutes from rows. */
static void check_heat(struct clickhouse *server, const struct question_filter *filter, bool from_rows,
		       uint64_t step_ns)
{
	struct arena *arena = arena__new();
	struct fleet_ask about = {
		.server = server, .arena = arena, .filter = *filter, .from_rows = from_rows, .heat = true};
	struct fleet_answer answer = {.question = FLEET_HOSTS, .tail = 0.97};
	double weight = 0, late = 0;

	CU_ASSERT_EQUAL_FATAL(fleet_ask(&about, &answer), 0);
	CU_ASSERT(answer.heat_group_cnt == 4 && answer.heat_step_ns == step_ns && answer.heat_cnt > 8);
	for (size_t i = 0; i < answer.heat_cnt; i++) {
		weight += answer.heat[i].weight;
		late += answer.heat[i].late;
		CU_ASSERT(answer.heat[i].begin_ns >= answer.heat_begin_ns &&
			  answer.heat[i].begin_ns + step_ns <= answer.heat_end_ns);
	}
	CU_ASSERT(is_near(weight, answer.requests));
	CU_ASSERT(late > 0.02 * weight && late < 0.08 * weight);
	fleet_answer_free(&answer);
	arena__free(arena);
}

static void hosts_have_heat(void)
{
	const struct question_filter all = {0},
				     day = {.since_ns = NOW_NS + 3 * DAY_NS, .until_ns = NOW_NS + 4 * DAY_NS};
	struct clickhouse *server = open_database("heat");
	struct test_dir dir;

	if (!server)
		return;
	test_dir__make(&dir);
	write_days(dir.path);
	/* After a week. */
	write_session(dir.path, "h1", 999, NOW_NS + 7 * DAY_NS, true, "a");
	CU_ASSERT_EQUAL(project(server, dir.path, "one").rows, 16000 + ROW_CNT);
	check_heat(server, &all, false, DAY_NS);
	check_heat(server, &all, true, DAY_NS);
	check_heat(server, &day, false, 15 * 60000000000ULL);
	clickhouse__free(server);
	test_dir__remove(&dir);
}

static void old_days_leave(void)
{
	struct clickhouse *server = open_database("kept");
	struct project_verdict verdict;
	struct projector *projector;
	struct timespec now;
	struct test_dir dir;
	unsigned differences = 0;

	if (!server)
		return;
	test_dir__make(&dir);
	write_days(dir.path);
	CU_ASSERT_EQUAL(project(server, dir.path, "one").rows, 16000);
	projector = open_projector(server, dir.path, "keeper");
	clock_gettime(CLOCK_REALTIME, &now);
	projector->opts.keep_ns = (uint64_t)now.tv_sec * 1000000000 - (NOW_NS + 2 * DAY_NS + DAY_NS / 2);
	CU_ASSERT_EQUAL(projector__run(projector), 0);
	projector__free(projector);
	CU_ASSERT_EQUAL(clickhouse_fixture_number(server, "SELECT toUInt64(toUInt16(min(day))) FROM kept.intervals"),
			NOW_NS / DAY_NS + 2);
	CU_ASSERT_EQUAL(clickhouse_fixture_number(server, "SELECT count() FROM kept.intervals"), 9600);
	/* Nobody brings them back, and nobody misses them. */
	CU_ASSERT_EQUAL(clickhouse__do(server, "TRUNCATE TABLE kept.blocks"), 0);
	CU_ASSERT_EQUAL(project(server, dir.path, "two").rows, 0);
	CU_ASSERT_EQUAL(clickhouse_fixture_number(server, "SELECT count() FROM kept.intervals"), 9600);
	projector = open_projector(server, dir.path, "verify");
	CU_ASSERT_EQUAL(projector__verify(projector, &verdict, on_difference, &differences), 0);
	projector__free(projector);
	CU_ASSERT_EQUAL(differences, 0);
	CU_ASSERT_EQUAL(verdict.rows, 9600);
	CU_ASSERT_EQUAL(verdict.expired_blocks, 2 * verdict.blocks / 3);
	all_answers_are_the_same(server);
	clickhouse__free(server);
	test_dir__remove(&dir);
}

/* A database of before has its table, and gets the columns that came later. */
static void columns_are_added(void)
{
	struct clickhouse *server = open_database("columns");
	struct test_dir dir;

	if (!server)
		return;
	test_dir__make(&dir);
	write_session(dir.path, "a", 71, NOW_NS, true, "t");
	CU_ASSERT_EQUAL(project(server, dir.path, "one").rows, ROW_CNT);
	CU_ASSERT_EQUAL(clickhouse__do(server, "ALTER TABLE columns.intervals DROP COLUMN trace_id"), 0);
	CU_ASSERT_EQUAL(clickhouse__do(server, "ALTER TABLE columns.intervals DROP COLUMN context"), 0);
	CU_ASSERT_EQUAL(clickhouse__do(server, "DROP TABLE columns.version"), 0);
	CU_ASSERT_EQUAL(clickhouse__do(server, "CREATE TABLE columns.version (version UInt32, at DateTime) ENGINE = "
					       "MergeTree ORDER BY version"),
			0);
	CU_ASSERT_EQUAL(clickhouse__do(server, "INSERT INTO columns.version SELECT 3, now()"), 0);
	write_session(dir.path, "b", 72, NOW_NS, true, "t");
	CU_ASSERT_EQUAL(project(server, dir.path, "one").rows, ROW_CNT);
	CU_ASSERT_EQUAL(clickhouse_fixture_number(
				server, "SELECT count() FROM columns.intervals WHERE trace_id = '' AND context = 0"),
			2 * ROW_CNT);
	CU_ASSERT(is_equal(server, dir.path, 2 * ROW_CNT));
	clickhouse__free(server);
	test_dir__remove(&dir);
}

/* Every `from` becomes `to`, to be freed. */
static char *with_replaced(const char *text, const char *from, const char *to)
{
	char *out = NULL;
	size_t sz = 0;
	FILE *stream = open_memstream(&out, &sz);

	for (const char *hit; (hit = strstr(text, from)); text = hit + strlen(from))
		fprintf(stream, "%.*s%s", (int)(hit - text), text, to);
	fputs(text, stream);
	fclose(stream);
	return out;
}

/* As Grafana's plugin does it with what the dashboard's variables and the time on screen say. */
static char *as_asked(const char *sql)
{
	static const char *const macros[][2] = {{"${database}", "dashboard"},
						{"${late_ms}", "5"},
						{"$__fromTime", "toDateTime(100000000)"},
						{"$__toTime", "toDateTime(2000000000)"}};
	char *text = strdup(sql);

	for (size_t i = 0; i < sizeof(macros) / sizeof(macros[0]); i++) {
		char *next = with_replaced(text, macros[i][0], macros[i][1]);

		free(text);
		text = next;
	}
	return text;
}

static void the_dashboard_asks_what_there_is(void)
{
	struct json_object *root, *panels, *targets, *sql;
	struct clickhouse *server = open_database("dashboard");
	size_t with_rows = 0;
	struct test_dir dir;

	if (!server)
		return;
	test_dir__make(&dir);
	write_fleet(dir.path);
	CU_ASSERT_EQUAL(project(server, dir.path, "one").rows, 6 * ROW_CNT);
	root = json_object_from_file("packaging/grafana-fleet.json");
	CU_ASSERT_FATAL(root && json_object_object_get_ex(root, "panels", &panels));
	for (size_t i = 0; i < json_object_array_length(panels); i++) {
		char *text, *counted = NULL;

		CU_ASSERT_FATAL(json_object_object_get_ex(json_object_array_get_idx(panels, i), "targets", &targets));
		CU_ASSERT_FATAL(json_object_object_get_ex(json_object_array_get_idx(targets, 0), "rawSql", &sql));
		text = as_asked(json_object_get_string(sql));
		CU_ASSERT_PTR_NULL(strchr(text, '$'));
		CU_ASSERT_FATAL(asprintf(&counted, "SELECT count() FROM (%s)", text) > 0);
		with_rows += clickhouse_fixture_number(server, counted) > 0;
		free(counted);
		free(text);
	}
	/* Without causes and loss two of the panels are empty. */
	CU_ASSERT(with_rows == 4 && json_object_array_length(panels) == 6);
	json_object_put(root);
	clickhouse__free(server);
	test_dir__remove(&dir);
}

static void tokens_change(struct clickhouse *server, const char *dir)
{
	struct projector *projector = open_projector(server, dir, "tokens");
	char before[PROJECT_TOKEN_SZ], after[PROJECT_TOKEN_SZ];
	size_t changed = 0;

	CU_ASSERT_EQUAL_FATAL(projector__scan(projector), 0);
	for (int asked = 0; asked < 2; asked++) {
		/* As on a server that has them. */
		projector->about.ignores_again = asked;
		CU_ASSERT_EQUAL(projector__ask_forgotten(projector), 0);
		for (size_t s = 0; s < projector->sessions.cnt; s++) {
			struct project_session *session = &projector->sessions.items[s];

			project_token(after, session, 7);
			changed +=
				session->forgotten_cnt == 1 && !strcmp(session->host, "lose-me") && strlen(after) > 32;
			project_token(before, &(struct project_session){.id = session->id}, 7);
			CU_ASSERT_EQUAL(strcmp(before, after) != 0, session->forgotten_cnt > 0);
		}
	}
	CU_ASSERT_EQUAL(changed, 1);
	projector__free(projector);
}

static void a_host_is_forgotten(void)
{
	struct clickhouse *server = open_database("forgotten");
	struct test_dir dir;

	if (!server)
		return;
	test_dir__make(&dir);
	write_session(dir.path, "keep-me", 61, NOW_NS, true, "t");
	write_session(dir.path, "lose-me", 62, NOW_NS, true, "t");
	CU_ASSERT_EQUAL(project(server, dir.path, "one").rows, 2 * ROW_CNT);
	CU_ASSERT_EQUAL(project_forget(server, "lose-me' OR '1' = '1", SETTLE_S * 1000000000ULL), 0);
	CU_ASSERT_EQUAL(clickhouse_fixture_number(server, "SELECT count() FROM forgotten.intervals"), 2 * ROW_CNT);
	CU_ASSERT_EQUAL(project_forget(server, "lose-me", SETTLE_S * 1000000000ULL), 0);
	CU_ASSERT_EQUAL(clickhouse_fixture_number(server, "SELECT count() FROM forgotten.intervals"), ROW_CNT);
	CU_ASSERT_EQUAL(clickhouse_fixture_number(server, "SELECT count() FROM forgotten.facts WHERE host = 'lose-me'"),
			0);
	CU_ASSERT_EQUAL(
		clickhouse_fixture_number(server, "SELECT count() FROM forgotten.sessions WHERE host = 'keep-me'"), 1);
	CU_ASSERT_EQUAL(
		clickhouse_fixture_number(server, "SELECT count() FROM forgotten.forgotten WHERE host = 'lose-me'"), 1);
	/* Another collector still has it: it comes back, under other tokens. */
	CU_ASSERT_EQUAL(project(server, dir.path, "one").rows, ROW_CNT);
	CU_ASSERT(is_equal(server, dir.path, 2 * ROW_CNT));
	tokens_change(server, dir.path);
	clickhouse__free(server);
	test_dir__remove(&dir);
}

/* A client of the database `granted`, as that user. */
static struct clickhouse *open_as(const char *dir, const char *user, const char *database)
{
	char path[128], text[64];
	struct clickhouse_opts opts = {.url = url, .credentials_path = path};
	struct clickhouse *server;
	const char *what;

	snprintf(path, sizeof(path), "%s/%s.secret", dir, user);
	snprintf(text, sizeof(text), "%s:" CLICKHOUSE_FIXTURE_PASSWORD, user);
	test_file__write(path, (const uint8_t *)text, strlen(text));
	CU_ASSERT_FATAL(!chmod(path, 0600));
	snprintf(url, sizeof(url), "%s%s", clickhouse_fixture(), database);
	server = clickhouse__new(&opts, &what);
	CU_ASSERT_PTR_NOT_NULL_FATAL(server);
	return server;
}

static int run_once(struct clickhouse *server, const char *dir)
{
	struct projector *projector = open_projector(server, dir, "granted");
	int err = projector__run(projector);

	projector__free(projector);
	return err;
}

/* What docs/whylate-project.1 says that users need, each with no more than that. */
static void users_need_no_more_than_it_says(void)
{
	struct clickhouse *all = open_database("granted"), *owner, *writer, *reader, *stranger;
	struct fleet_answer answer;
	struct test_dir dir, secrets;
	struct arena *arena;

	if (!all)
		return;
	arena = arena__new();
	test_dir__make(&dir);
	test_dir__make(&secrets);
	/* Administrators make the database; its owner the tables, and may not make another database. */
	CU_ASSERT_EQUAL(clickhouse__do(all, "CREATE DATABASE granted"), 0);
	owner = open_as(secrets.path, "owner", "granted");
	write_fleet(dir.path);
	CU_ASSERT_EQUAL(run_once(owner, dir.path), 0);
	CU_ASSERT(is_equal(owner, dir.path, 6 * ROW_CNT));
	stranger = open_as(secrets.path, "owner", "elsewhere");
	said_begin();
	CU_ASSERT_EQUAL(run_once(stranger, dir.path), -EPROTO);
	CU_ASSERT(said_one_line(said_end(), "the database refuses"));
	/* Without DDL: what needs none is done; on a server without tokens new rows need it, and a line says so. */
	writer = open_as(secrets.path, "writer", "granted");
	CU_ASSERT_EQUAL(run_once(writer, dir.path), 0);
	CU_ASSERT(is_equal(writer, dir.path, 6 * ROW_CNT));
	write_session(dir.path, "late", 99, NOW_NS, true, "t");
	said_begin();
	if (clickhouse_fixture_number(all, "SELECT toUInt64(version() < '22')")) {
		CU_ASSERT_EQUAL(run_once(writer, dir.path), -EACCES);
		CU_ASSERT(said_one_line(said_end(), "needs CREATE and DROP TABLE"));
		CU_ASSERT_EQUAL(run_once(owner, dir.path), 0);
	} else {
		CU_ASSERT_EQUAL(run_once(writer, dir.path), 0);
		said_end();
	}
	CU_ASSERT(is_equal(writer, dir.path, 7 * ROW_CNT));
	/* Who asks needs SELECT. */
	reader = open_as(secrets.path, "reader", "granted");
	answer = ask(reader, arena, FLEET_HOSTS, NULL, NULL);
	CU_ASSERT(answer.group_cnt == 7 && answer.requests == 7 * ROW_CNT);
	fleet_answer_free(&answer);
	CU_ASSERT_EQUAL(project_forget(reader, "late", SETTLE_S * 1000000000ULL), -EPROTO);
	CU_ASSERT_EQUAL(project_forget(owner, "late", SETTLE_S * 1000000000ULL), 0);
	CU_ASSERT_EQUAL(clickhouse_fixture_number(all, "SELECT count() FROM granted.intervals"), 6 * ROW_CNT);
	arena__free(arena);
	clickhouse__free(owner);
	clickhouse__free(writer);
	clickhouse__free(reader);
	clickhouse__free(stranger);
	clickhouse__free(all);
	test_dir__remove(&secrets);
	test_dir__remove(&dir);
}

int suite_project_server(void)
{
	static const struct unit_test tests[] = {
		{"what is there is not inserted again", what_is_there_is_not_inserted_again},
		{"a recording goes on", a_recording_goes_on},
		{"hostile names are names", hostile_names_are_names},
		{"a dead projector is fenced", a_dead_projector_is_fenced},
		{"two collectors share a database", two_collectors_share_a_database},
		{"a clock is shared", a_clock_is_shared},
		{"a killed server comes back", a_killed_server_comes_back},
		{"questions are answered", questions_are_answered},
		{"the dashboard asks what there is", the_dashboard_asks_what_there_is},
		{"a host is forgotten", a_host_is_forgotten},
		{"sums answer like rows", sums_answer_like_rows},
		{"hosts have heat", hosts_have_heat},
		{"old days leave", old_days_leave},
		{"columns are added", columns_are_added},
		{"users need no more than it says", users_need_no_more_than_it_says},
		{"a later version is left alone", a_later_version_is_left_alone},
	};

	return unit_suite("project_server", tests, sizeof(tests) / sizeof(tests[0]));
}
