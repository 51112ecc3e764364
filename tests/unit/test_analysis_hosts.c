// SPDX-License-Identifier: GPL-2.0-or-later
/* Several hosts: loaded from a store's layout by name and time, compared with each other. */
#include "analysis/results.h"
#include "shard/writer.h"
#include "test_analysis_fixture.h"
#include "test_shard_util.h"
#include "unit.h"
#include "view/view.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define ROWS_EACH 400
#define SECOND_NS 1000000000ull
#define BEGIN_NS  (1795262400 * SECOND_NS) /* 2026-11-21 12:00 */

static void say(struct shard_writer *writer, const char *key, const char *value)
{
	struct shard_row row = {0};

	row.values[SESSION_TS].u64 = 1;
	row.values[SESSION_KEY].str = key;
	row.values[SESSION_VALUE].str = value;
	CU_ASSERT_EQUAL(shard_writer__append(writer, SHARD_TABLE_SESSION, &row), 0);
}

static void add_module(struct shard_writer *writer, const char *path, const char *build_id)
{
	struct shard_row row = {0};

	row.values[MODULE_PATH].str = path;
	row.values[MODULE_BUILD_ID].str = build_id;
	CU_ASSERT_EQUAL(shard_writer__append(writer, SHARD_TABLE_MODULE, &row), 0);
}

/* One interval a second; every tenth has so much more time in softirqs. */
static void add_rows(struct shard_writer *writer, uint64_t boot_ns, uint64_t softirq_ns)
{
	for (uint64_t i = 0; i < ROWS_EACH; i++) {
		struct shard_row row = {0};
		uint64_t running_ns = 100000 + i * 7919 % 10007, extra_ns = i % 10 ? 0 : softirq_ns;

		for (uint32_t c = 0; c < shard_tables[SHARD_TABLE_INTERVAL].column_cnt; c++) {
			if (shard_tables[SHARD_TABLE_INTERVAL].columns[c].type == SHARD_STR)
				row.values[c].str = "";
			if (shard_tables[SHARD_TABLE_INTERVAL].columns[c].nullable)
				shard_row__set_null(&row, c);
		}
		row.values[INTERVAL_SID].u64 = i;
		row.values[INTERVAL_BEGIN_TS].u64 = boot_ns + i * SECOND_NS;
		row.values[INTERVAL_END_TS].u64 = boot_ns + i * SECOND_NS + running_ns + extra_ns;
		row.values[INTERVAL_WEIGHT].f64 = 1;
		row.values[interval_column_length(WL_STATE_RUNNING)].u64 = running_ns;
		row.values[interval_column_length(WL_STATE_SOFTIRQ_NET_RX)].u64 = extra_ns;
		CU_ASSERT_EQUAL(shard_writer__append(writer, SHARD_TABLE_INTERVAL, &row), 0);
	}
}

static void make_host(const struct test_dir *dir, const char *name, uint64_t session_id, const char *kernel,
		      const char *build_id, uint64_t softirq_ns)
{
	struct shard_writer_opts opts = {.host = name, .session_id = session_id, .block_rows = 50};
	uint64_t boot_ns = session_id * 1000 * SECOND_NS;
	struct shard_writer *writer;
	char path[200], number[32];

	snprintf(path, sizeof(path), "%s/%s/2026-11-21", dir->path, name);
	opts.dir = path;
	writer = shard_writer__new(&opts);
	CU_ASSERT_PTR_NOT_NULL_FATAL(writer);
	/* The facts come last: files may hold blocks in any order. */
	add_rows(writer, boot_ns, softirq_ns);
	CU_ASSERT_EQUAL(shard_writer__flush(writer, false), 0);
	say(writer, "host", "what it calls itself");
	say(writer, "kernel", kernel);
	snprintf(number, sizeof(number), "%llu", (unsigned long long)boot_ns);
	say(writer, "mono_anchor_ns", number);
	say(writer, "begin_ts", number);
	snprintf(number, sizeof(number), "%llu", (unsigned long long)(boot_ns + ROWS_EACH * SECOND_NS));
	say(writer, "end_ts", number);
	snprintf(number, sizeof(number), "%llu", BEGIN_NS);
	say(writer, "wall_anchor_ns", number);
	add_module(writer, "/usr/sbin/server", build_id);
	add_module(writer, "/usr/lib/libc.so.6", "same");
	CU_ASSERT_EQUAL(shard_writer__free(writer), 0);
}

static void make_store(struct test_dir *dir)
{
	test_dir__make(dir);
	make_host(dir, "host-a", 1, "6.1.0", "aaaa", 1000);
	make_host(dir, "host-b", 2, "6.1.0", "aaaa", 1500);
	make_host(dir, "slow-c", 3, "6.12.0", "bbbb", 500000);
}

static int load(struct dataset *dataset, const struct test_dir *dir, const struct dataset_filter *filter)
{
	struct shard_reader *reader = test_reader__open(dir->path);
	int err = dataset_load(dataset, reader, filter);

	shard_reader__free(reader);
	return err;
}

static void a_store_is_loaded_by_host(void)
{
	struct dataset dataset;
	struct test_dir dir;

	make_store(&dir);
	CU_ASSERT_EQUAL_FATAL(load(&dataset, &dir, &(struct dataset_filter){}), 0);
	CU_ASSERT_EQUAL(dataset.row_cnt, 3 * ROWS_EACH);
	CU_ASSERT_EQUAL_FATAL(dataset.host_cnt, 3);
	CU_ASSERT_STRING_EQUAL(dataset.hosts[0].name, "host-a");
	CU_ASSERT_STRING_EQUAL(dataset.hosts[2].name, "slow-c");
	CU_ASSERT_STRING_EQUAL(dataset.hosts[2].kernel, "6.12.0");
	CU_ASSERT_EQUAL(dataset.hosts[1].row_cnt, ROWS_EACH);
	CU_ASSERT_EQUAL(dataset.hosts[1].begin_wall_ns, BEGIN_NS);
	CU_ASSERT_EQUAL(dataset.hosts[1].end_wall_ns, BEGIN_NS + ROWS_EACH * SECOND_NS);
	for (size_t row = 0; row < dataset.row_cnt; row++)
		CU_ASSERT_EQUAL(dataset.host_idx[row], dataset.begin_ts[row] / SECOND_NS / 1000 - 1);
	dataset_free(&dataset);
	test_dir__remove(&dir);
}

static void hosts_are_chosen_by_name(void)
{
	struct dataset dataset;
	struct test_dir dir;

	make_store(&dir);
	CU_ASSERT_EQUAL_FATAL(load(&dataset, &dir, &(struct dataset_filter){.host = "host-*"}), 0);
	CU_ASSERT(dataset.row_cnt == 2 * ROWS_EACH && dataset.host_cnt == 2 && dataset.module_cnt == 4);
	ASSERT_NEAR(dataset.duration_s, 2.0 * ROWS_EACH);
	dataset_free(&dataset);
	CU_ASSERT_EQUAL_FATAL(load(&dataset, &dir, &(struct dataset_filter){.host = "slow-c"}), 0);
	CU_ASSERT(dataset.row_cnt == ROWS_EACH && dataset.host_cnt == 1 && !dataset.host_idx);
	dataset_free(&dataset);
	CU_ASSERT_EQUAL(load(&dataset, &dir, &(struct dataset_filter){.host = "host"}), -ESRCH);
	test_dir__remove(&dir);
}

static void rows_are_chosen_by_time(void)
{
	struct dataset_filter filter = {.since_wall_ns = BEGIN_NS + 100 * SECOND_NS};
	struct dataset dataset;
	struct test_dir dir;

	make_store(&dir);
	CU_ASSERT_EQUAL_FATAL(load(&dataset, &dir, &filter), 0);
	CU_ASSERT_EQUAL(dataset.row_cnt, 3 * (ROWS_EACH - 100));
	dataset_free(&dataset);
	filter.until_wall_ns = BEGIN_NS + 150 * SECOND_NS;
	CU_ASSERT_EQUAL_FATAL(load(&dataset, &dir, &filter), 0);
	CU_ASSERT_EQUAL(dataset.row_cnt, 3 * 50);
	ASSERT_NEAR(dataset.duration_s, 3.0 * 50);
	dataset_free(&dataset);
	filter = (struct dataset_filter){.until_wall_ns = BEGIN_NS};
	CU_ASSERT_EQUAL(load(&dataset, &dir, &filter), -ESRCH);
	filter = (struct dataset_filter){.since_wall_ns = BEGIN_NS + (ROWS_EACH + 1) * SECOND_NS};
	CU_ASSERT_EQUAL(load(&dataset, &dir, &filter), -ESRCH);
	test_dir__remove(&dir);
}

static void expect_text(const struct report *report, const char *const *texts, size_t cnt, bool json)
{
	char *text = NULL;
	size_t sz = 0;
	FILE *out = open_memstream(&text, &sz);

	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	CU_ASSERT_EQUAL(json ? view_json(out, report) : view_text(out, report, &(struct view_opts){.top = 10}), 0);
	fclose(out);
	for (size_t i = 0; i < cnt; i++) {
		CU_ASSERT(strstr(text, texts[i]) != NULL);
		if (!strstr(text, texts[i]))
			printf("'%s' is not in:\n%s\n", texts[i], text);
	}
	free(text);
}

static void the_slow_one_stands_out(void)
{
	static const char *const texts[] = {
		"on 3 hosts",
		"slow-c's p99 is 5.5",
		"its peers' (609 us against 110 us); the difference is irq.soft",
		"kernel differs: 6.1.0 on host-a, host-b; 6.12.0 on slow-c",
		"/usr/sbin/server differs: aaaa on host-a, host-b; bbbb on slow-c",
	};
	static const char *const keys[] = {
		"\"hosts\": [",
		"\"stands_out\": true",
		"\"category\": \"irq.soft\"",
		"\"host_differences\": [",
		"\"subject\": \"kernel\"",
	};
	const struct report_opts opts = {.tail = 0.99, .seed = 1};
	struct dataset dataset;
	struct report report;
	struct test_dir dir;

	make_store(&dir);
	CU_ASSERT_EQUAL_FATAL(load(&dataset, &dir, &(struct dataset_filter){}), 0);
	CU_ASSERT_EQUAL_FATAL(report_make(&report, &dataset, &opts), 0);
	CU_ASSERT_EQUAL_FATAL(report.host_cnt, 3);
	CU_ASSERT_STRING_EQUAL(report.hosts[0].host->name, "slow-c");
	CU_ASSERT(report.hosts[0].stands_out && !report.hosts[1].stands_out && !report.hosts[2].stands_out);
	CU_ASSERT_EQUAL(report.hosts[0].differs, WL_CATEGORY_IRQ_SOFT);
	CU_ASSERT_DOUBLE_EQUAL(report.hosts[0].differs_share, 1, 0.1);
	CU_ASSERT_DOUBLE_EQUAL(report.hosts[0].latency.count, ROWS_EACH, 0);
	CU_ASSERT_EQUAL(report.difference_cnt, 2);
	expect_text(&report, texts, sizeof(texts) / sizeof(texts[0]), false);
	expect_text(&report, keys, sizeof(keys) / sizeof(keys[0]), true);
	report_free(&report);
	dataset_free(&dataset);
	test_dir__remove(&dir);
}

/* Hosts that are equal but for chance: none stands out. */
static void chance_is_no_difference(void)
{
	enum { HOSTS = 5, ROWS = 300 };
	const struct report_opts opts = {.tail = 0.99, .seed = 1};
	struct dataset_host hosts[HOSTS] = {{.name = "a"}, {.name = "b"}, {.name = "c"}, {.name = "d"}, {.name = "e"}};
	uint32_t host_idx[HOSTS * ROWS];
	struct analysis_fixture fixture;
	struct report report;
	uint64_t state = 11;
	unsigned stands_out_cnt = 0;

	for (int round = 0; round < 20; round++) {
		analysis_fixture_init(&fixture, HOSTS * ROWS);
		for (size_t row = 0; row < HOSTS * ROWS; row++) {
			host_idx[row] = row % HOSTS;
			fixture_add(&fixture, row, WL_CATEGORY_ONCPU, (uint64_t)(1e6 * fixture_exponential(&state)));
		}
		for (int h = 0; h < HOSTS; h++)
			hosts[h].row_cnt = ROWS;
		fixture.dataset.host_idx = host_idx;
		fixture.dataset.hosts = hosts;
		fixture.dataset.host_cnt = HOSTS;
		CU_ASSERT_EQUAL_FATAL(report_make(&report, &fixture.dataset, &opts), 0);
		for (size_t i = 0; i < report.host_cnt; i++)
			stands_out_cnt += report.hosts[i].stands_out;
		report_free(&report);
		analysis_fixture_free(&fixture);
	}
	/* Of 100: the lower end of an interval of 95 %. */
	CU_ASSERT(stands_out_cnt <= 8);
}

static const struct unit_test tests[] = {
	{"a store is loaded by host", a_store_is_loaded_by_host},
	{"hosts are chosen by name", hosts_are_chosen_by_name},
	{"rows are chosen by time", rows_are_chosen_by_time},
	{"the slow one stands out", the_slow_one_stands_out},
	{"chance is no difference", chance_is_no_difference},
};

int suite_hosts(void)
{
	return unit_suite("hosts", tests, sizeof(tests) / sizeof(tests[0]));
}
