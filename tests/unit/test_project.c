// SPDX-License-Identifier: GPL-2.0-or-later
/* What goes into the database and what comes out of it, as bytes. */
#include "base/loghist.h"
#include "net/project/project_internal.h"
#include "net/project/sql.h"
#include "test_shard_util.h"
#include "unit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void rows_are_bytes_in_order(void)
{
	static const uint8_t expected[] = {0x34, 0x12, 0x78, 0x56, 0x34, 0x12, 8, 7,    6,    5, 4,   3,   2,
					   1,    0,    0,    0,    0,    0,    0, 0xf8, 0x3f, 2, 'h', 'i', 0};
	struct rowbinary rows = {0};

	rowbinary__u16(&rows, 0x1234);
	rowbinary__u32(&rows, 0x12345678);
	rowbinary__u64(&rows, 0x0102030405060708);
	rowbinary__f64(&rows, 1.5);
	rowbinary__str(&rows, "hi");
	rowbinary__str(&rows, NULL);
	rowbinary__end_row(&rows);
	CU_ASSERT(!rows.err && rows.row_cnt == 1);
	CU_ASSERT_EQUAL_FATAL(rows.bytes.cnt, sizeof(expected));
	CU_ASSERT(!memcmp(rows.bytes.items, expected, sizeof(expected)));
	rowbinary__free(&rows);
}

static void long_strings_have_long_lengths(void)
{
	static const struct {
		size_t sz;
		uint8_t prefix[3], prefix_sz;
	} cases[] = {{127, {127}, 1}, {128, {0x80, 1}, 2}, {16383, {0xff, 0x7f}, 2}, {16384, {0x80, 0x80, 1}, 3}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rowbinary rows = {0};
		char *text = malloc(cases[i].sz + 1);

		CU_ASSERT_FATAL(text != NULL);
		memset(text, 'x', cases[i].sz);
		text[cases[i].sz] = '\0';
		rowbinary__str(&rows, text);
		CU_ASSERT_EQUAL_FATAL(rows.bytes.cnt, cases[i].prefix_sz + cases[i].sz);
		CU_ASSERT(!memcmp(rows.bytes.items, cases[i].prefix, cases[i].prefix_sz));
		CU_ASSERT(!memcmp(rows.bytes.items + cases[i].prefix_sz, text, cases[i].sz));
		free(text);
		rowbinary__free(&rows);
	}
}

/* What a server reads of it: a literal's bytes between its quotes; NULL: it ends early, or not at all. */
static char *read_literal(const char *text)
{
	char *bytes = malloc(strlen(text) + 1), *to = bytes;
	const char *c = text;
	unsigned value;

	if (*c++ != '\'')
		goto fail;
	while (*c != '\'') {
		if (!*c)
			goto fail;
		if (*c != '\\') {
			*to++ = *c++;
			continue;
		}
		c++;
		if (*c == '\'' || *c == '\\') {
			*to++ = *c++;
		} else if (*c == 'x' && sscanf(c + 1, "%2X", &value) == 1) {
			*to++ = (char)value;
			c += 3;
		} else {
			goto fail;
		}
	}
	*to = '\0';
	if (!c[1])
		return bytes;
fail:
	free(bytes);
	return NULL;
}

static void no_name_leaves_its_quotes(void)
{
	static const char *const names[] = {
		"plain",        "",
		"it's",         "\\",
		"\\'",          "'; DROP TABLE intervals; --",
		"tab\there",    "line\nend",
		"\x7f\x01",     "\xff\xfe not utf-8",
		"''''",         "\\\\'\\",
		"ends with \\",
	};
	uint64_t seed = 3;

	for (size_t i = 0; i < 2000; i++) {
		char random_name[24] = {0};
		const char *name = random_name;
		struct sql sql = {0};
		char *text, *read;

		for (size_t c = 0; c < sizeof(random_name) - 1; c++)
			random_name[c] = "'\\xn0\n\t;-"[(seed = seed * 6364136223846793005ULL + 1) >> 33 & 7];
		if (i < sizeof(names) / sizeof(names[0]))
			name = names[i];
		sql__put_text(&sql, name);
		text = sql__end(&sql);
		CU_ASSERT_FATAL(text != NULL);
		read = read_literal(text);
		CU_ASSERT_FATAL(read && !strcmp(read, name));
		free(read);
		free(text);
	}
}

static int parse(const char *text, size_t sz, uint32_t column_cnt, struct clickhouse_rows *rows)
{
	/* Of its own size, so that a read beyond it is seen. */
	char *bytes = malloc(sz + 1);

	memcpy(bytes, text, sz);
	bytes[sz] = '\0';
	return clickhouse_rows__parse(rows, bytes, sz, column_cnt);
}

static void answers_are_read_strictly(void)
{
	static const struct {
		const char *text;
		uint32_t column_cnt;
	} wrong[] = {
		{"1\t2", 2},       {"1\t2\n3\n", 2}, {"1\n", 2},    {"1\t2\t3\n", 2}, {"a\\q\n", 1}, {"a\\\n", 1},
		{"\n\n1\t2\n", 2}, {"x\n", 0},       {"x\n", 1000}, {"a\\b\tb", 2},   {"\\", 1},
	};
	static const char good[] = "1\ta\\tb\\n\\\\\\'\n\t\n";
	struct clickhouse_rows rows;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CU_ASSERT(parse(wrong[i].text, strlen(wrong[i].text), wrong[i].column_cnt, &rows) < 0);
	CU_ASSERT_EQUAL_FATAL(parse(good, sizeof(good) - 1, 2, &rows), 0);
	CU_ASSERT_EQUAL_FATAL(rows.row_cnt, 2);
	CU_ASSERT_STRING_EQUAL(rows.cells[0], "1");
	CU_ASSERT_STRING_EQUAL(rows.cells[1], "a\tb\n\\'");
	CU_ASSERT(!*rows.cells[2] && !*rows.cells[3]);
	clickhouse_rows__free(&rows);
	/* A NUL does not end a cell early, nor does every shorter answer do harm. */
	CU_ASSERT_EQUAL_FATAL(parse("a\0b\\0c\n", 7, 1, &rows), 0);
	CU_ASSERT_STRING_EQUAL(rows.cells[0], "a?b?c");
	clickhouse_rows__free(&rows);
	for (size_t sz = 0; sz < sizeof(good); sz++)
		if (!parse(good, sz, 2, &rows))
			clickhouse_rows__free(&rows);
}

static void numbers_are_whole_numbers(void)
{
	uint64_t number;
	double value;

	CU_ASSERT(clickhouse_u64("18446744073709551615", &number) && number == UINT64_MAX);
	CU_ASSERT(clickhouse_u64("0", &number) && !number);
	CU_ASSERT(!clickhouse_u64("18446744073709551616", &number) && !clickhouse_u64("-1", &number));
	CU_ASSERT(!clickhouse_u64("", &number) && !clickhouse_u64(" 1", &number) && !clickhouse_u64("1x", &number));
	CU_ASSERT(clickhouse_f64("1.5e3", &value) && value == 1500);
	CU_ASSERT(clickhouse_f64("nan", &value) && isnan(value));
	CU_ASSERT(!clickhouse_f64("", &value) && !clickhouse_f64("1,5", &value) && !clickhouse_f64("inf", &value));
}

static void servers_say_their_version(void)
{
	struct schema_server server;

	CU_ASSERT(schema_server__parse(&server, "18.16.1") && server.major == 18 && server.minor == 16 &&
		  !server.tokens);
	CU_ASSERT(schema_server__parse(&server, "22.1.9.9") && !server.tokens);
	CU_ASSERT(schema_server__parse(&server, "22.2.2.1") && server.tokens);
	CU_ASSERT(schema_server__parse(&server, "25.3") && server.tokens);
	CU_ASSERT(!schema_server__parse(&server, "") && !schema_server__parse(&server, "ClickHouse 25.3"));
	CU_ASSERT(schema_ttl_days("MergeTree ORDER BY day TTL day + toIntervalDay(92) SETTINGS x = 1") == 92);
	CU_ASSERT(!schema_ttl_days("MergeTree ORDER BY day") && !schema_ttl_days("TTL day + toIntervalDay(x)"));
	CU_ASSERT(!schema_server__parse(&server, "25x") && !schema_server__parse(&server, "25.3x"));
}

static bool is_made(const char *pattern, bool local, const char *wanted)
{
	char *made = schema_cluster_statement(pattern, "db", "one-two", local);
	bool same = made && !strcmp(made, wanted);

	free(made);
	return same;
}

static void clusters_have_two_tables_for_one(void)
{
	static const char days[] =
		"CREATE TABLE IF NOT EXISTS %d.days (day Date, n UInt64) ENGINE = MergeTree ORDER BY day";
	static const char facts[] = "CREATE TABLE IF NOT EXISTS %d.facts (key String, session UInt64) "
				    "ENGINE = ReplacingMergeTree(version) ORDER BY (session, key)";

	CU_ASSERT(is_made(days, true,
			  "CREATE TABLE IF NOT EXISTS %d.days_local ON CLUSTER 'one-two' (day Date, n UInt64) ENGINE = "
			  "ReplicatedMergeTree('/whylate/{shard}/db/days', '{replica}') ORDER BY day"));
	CU_ASSERT(is_made(days, false,
			  "CREATE TABLE IF NOT EXISTS %d.days ON CLUSTER 'one-two' (day Date, n UInt64) ENGINE = "
			  "Distributed('one-two', db, days_local, cityHash64(day))"));
	CU_ASSERT(is_made(facts, true,
			  "CREATE TABLE IF NOT EXISTS %d.facts_local ON CLUSTER 'one-two' (key String, session UInt64) "
			  "ENGINE = ReplicatedReplacingMergeTree('/whylate/{shard}/db/facts', '{replica}', version) "
			  "ORDER BY (session, key)"));
	CU_ASSERT(is_made(
		facts, false,
		"CREATE TABLE IF NOT EXISTS %d.facts ON CLUSTER 'one-two' (key String, session UInt64) ENGINE = "
		"Distributed('one-two', db, facts_local, cityHash64(session))"));
	CU_ASSERT(is_made("DROP TABLE IF EXISTS %d.days", true,
			  "DROP TABLE IF EXISTS %d.days_local ON CLUSTER 'one-two'"));
	CU_ASSERT(is_made("DROP TABLE IF EXISTS %d.days", false, "DROP TABLE IF EXISTS %d.days ON CLUSTER 'one-two'"));
	CU_ASSERT(!is_made("CREATE TABLE %d.days", true, "") && errno == EINVAL);
	CU_ASSERT(schema_cluster_is_valid("fleet-2") && !schema_cluster_is_valid("") &&
		  !schema_cluster_is_valid("a'b"));
}

static void only_safe_urls_are_taken(void)
{
	static const char *const good[] = {"clickhouse://127.0.0.1:8123/whylate", "clickhouse://localhost/w_1",
					   "clickhouse://[::1]:1/a", "clickhouses://db.example/whylate"};
	static const char *const bad[] = {
		"http://127.0.0.1:8123/whylate",
		"clickhouse://127.0.0.1:8123",
		"clickhouse://127.0.0.1:8123/",
		"clickhouse://127.0.0.1:8123/a/b",
		"clickhouse://127.0.0.1:8123/a;DROP",
		"clickhouse://127.0.0.1:8123/1a",
		"clickhouse://user:secret@127.0.0.1/a",
		"clickhouse://127.0.0.1/a?password=secret",
		"clickhouse://db.example/whylate",
		"",
		"clickhouse://",
	};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		CU_ASSERT_PTR_NULL(clickhouse_url_check(good[i], false));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_PTR_NOT_NULL(clickhouse_url_check(bad[i], false));
	CU_ASSERT_PTR_NULL(clickhouse_url_check("clickhouse://db.example/whylate", true));
}

static void a_block_has_one_number(void)
{
	const struct shard_block_header header = {.header_sz = 88,
						  .kind = 1,
						  .codec = 2,
						  .session_id = 7,
						  .row_cnt = 5,
						  .column_cnt = 6,
						  .raw_sz = 700,
						  .stored_sz = 300,
						  .min_ts = 10,
						  .max_ts = 20,
						  .table = "interval",
						  .body_crc = 99};
	struct shard_block_header others[9];

	for (size_t i = 0; i < 9; i++)
		others[i] = header;
	others[0].session_id++;
	others[1].row_cnt++;
	others[2].column_cnt++;
	others[3].raw_sz++;
	others[4].stored_sz++;
	others[5].min_ts++;
	others[6].max_ts++;
	others[7].body_crc++;
	strcpy(others[8].table, "intervals");
	CU_ASSERT_EQUAL(project_block_id(&header), project_block_id(&header));
	for (size_t i = 0; i < 9; i++)
		CU_ASSERT_NOT_EQUAL(project_block_id(&others[i]), project_block_id(&header));
}

static void classes_keep_their_promise(void)
{
	struct test_rng rng = {9};
	uint32_t before = 0;

	for (uint64_t ns = 0; ns < 5000; ns++) {
		CU_ASSERT_FATAL(loghist_class(ns) >= before && loghist_class(ns) <= before + 1);
		before = loghist_class(ns);
	}
	for (int i = 0; i < 20000; i++) {
		uint64_t ns = test_rng__next(&rng) >> test_rng__below(&rng, 64);
		uint32_t no = loghist_class(ns);
		uint64_t floor_ns = loghist_floor(no), next_ns = loghist_floor(no + 1);

		CU_ASSERT_FATAL(no < LOGHIST_CLASS_CNT && floor_ns <= ns);
		CU_ASSERT_FATAL(no + 1 == LOGHIST_CLASS_CNT || ns < next_ns);
		CU_ASSERT_FATAL(no + 1 == LOGHIST_CLASS_CNT || next_ns - floor_ns <= floor_ns / LOGHIST_SUB_CNT + 1);
		CU_ASSERT_FATAL(loghist_middle(no) >= (double)floor_ns);
		CU_ASSERT_FATAL(no + 1 == LOGHIST_CLASS_CNT || loghist_middle(no) < (double)next_ns);
	}
	CU_ASSERT_EQUAL(loghist_class(UINT64_MAX), LOGHIST_CLASS_CNT - 1);
}

static void redacted_texts_tell_nothing_but_equality(void)
{
	struct projector projector = {.opts = {.redact = true}};
	char one[PROJECT_REDACTED_SZ], two[PROJECT_REDACTED_SZ], three[PROJECT_REDACTED_SZ];
	const char *first = projector__redacted(&projector, "GET /users/alice", one);

	CU_ASSERT(!strncmp(first, "GET #", 5) && !strstr(first, "alice"));
	CU_ASSERT_STRING_EQUAL(projector__redacted(&projector, "GET /users/alice", two), first);
	CU_ASSERT_STRING_NOT_EQUAL(projector__redacted(&projector, "GET /users/bob", three), first);
	CU_ASSERT_STRING_EQUAL(projector__redacted(&projector, "tcp:6379", two), "tcp:6379");
	CU_ASSERT_PTR_NULL(strstr(projector__redacted(&projector, "tcp:80 GET /users/alice", two), "alice"));
	/* A salt makes other hashes, and another salt others again. */
	projector.opts.salt = "sixteen characters";
	projector.opts.salt_sz = 18;
	CU_ASSERT_STRING_NOT_EQUAL(projector__redacted(&projector, "GET /users/alice", two), first);
	CU_ASSERT_STRING_EQUAL(projector__redacted(&projector, "GET /users/alice", three), two);
	projector.opts.salt = "Sixteen characters";
	CU_ASSERT_STRING_NOT_EQUAL(projector__redacted(&projector, "GET /users/alice", three), two);
	CU_ASSERT(!strncmp(three, "GET #", 5));
	projector.opts.redact = false;
	CU_ASSERT_STRING_EQUAL(projector__redacted(&projector, "GET /users/alice", two), "GET /users/alice");
}

int suite_project(void)
{
	static const struct unit_test tests[] = {
		{"rows are bytes in order", rows_are_bytes_in_order},
		{"long strings have long lengths", long_strings_have_long_lengths},
		{"no name leaves its quotes", no_name_leaves_its_quotes},
		{"answers are read strictly", answers_are_read_strictly},
		{"numbers are whole numbers", numbers_are_whole_numbers},
		{"servers say their version", servers_say_their_version},
		{"clusters have two tables for one", clusters_have_two_tables_for_one},
		{"only safe URLs are taken", only_safe_urls_are_taken},
		{"a block has one number", a_block_has_one_number},
		{"classes keep their promise", classes_keep_their_promise},
		{"redacted texts tell nothing but equality", redacted_texts_tell_nothing_but_equality},
	};

	return unit_suite("project", tests, sizeof(tests) / sizeof(tests[0]));
}
