// SPDX-License-Identifier: GPL-2.0-or-later
/* What was lost on the way, and what of it belongs to the time that was asked for. */
#include "row_writer.h"
#include "test_analysis_fixture.h"
#include "test_shard_util.h"
#include "unit.h"

#include "analysis/results.h"
#include "view/view.h"

#include <whylate/record.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define S  1000000000ULL
#define MS 1000000ULL
#define US 1000ULL

#define SECONDS 100
#define WALL_NS (1795262400 * S)
#define BOOT_NS (5000 * S)
#define PER_S   50   /* rows of the baseline sample in a second, … */
#define WEIGHT  20.0 /* … each for so many intervals; and 10 late ones */
#define LATE    10
#define SEEN    (uint64_t)(SECONDS * (PER_S * WEIGHT + LATE))
#define LATE_NS (10 * MS)

static void put_row(struct row_writer *to, uint64_t sid, uint64_t begin_ts, uint64_t latency_ns, bool late)
{
	row_begin(to, SHARD_TABLE_INTERVAL);
	row_set_u64(to, INTERVAL_SID, sid);
	row_set_u64(to, INTERVAL_BEGIN_TS, begin_ts);
	row_set_u64(to, INTERVAL_PICKUP_TS, begin_ts);
	row_set_u64(to, INTERVAL_END_TS, begin_ts + latency_ns);
	row_set_str(to, INTERVAL_TYPE, "tcp:80");
	to->row.values[INTERVAL_WEIGHT].f64 = late ? 1 : WEIGHT;
	row_set_u64(to, INTERVAL_FLAGS, late ? 0 : WL_INTERVAL_BASELINE);
	row_set_u64(to, interval_column_length(late ? WL_STATE_BLOCKED_DISK : WL_STATE_RUNNING), latency_ns);
	row_end(to, SHARD_TABLE_INTERVAL);
}

static void put_loss(struct row_writer *to, uint64_t ts, const char *class, uint64_t emitted, uint64_t lost)
{
	row_begin(to, SHARD_TABLE_LOSS);
	row_set_u64(to, LOSS_TS, ts);
	row_set_str(to, LOSS_CLASS, class);
	row_set_u64(to, LOSS_EMITTED, emitted);
	row_set_u64(to, LOSS_LOST, lost);
	row_end(to, SHARD_TABLE_LOSS);
}

static void put_number(struct row_writer *to, const char *key, uint64_t number)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
	row_put_session(to, key, text);
}

/*
 * The first `dropped_s` seconds of the baseline, and the first late ones of `late_dropped` seconds, went.  In second s,
 * 2 interval records were lost and 100 emitted, and totals of that are told each 10 s.
 */
static void write_recording(const char *dir, uint64_t dropped_s, uint64_t late_dropped)
{
	uint64_t baseline = SECONDS * PER_S, late = SECONDS * LATE, end_ts = BOOT_NS + SECONDS * S;
	struct row_writer to;

	row_writer_open(&to, dir, "web-1", 77, 1);
	put_number(&to, "mono_anchor_ns", BOOT_NS);
	put_number(&to, "wall_anchor_ns", WALL_NS);
	put_number(&to, "begin_ts", BOOT_NS);
	put_number(&to, "end_ts", end_ts);
	put_number(&to, "intervals_seen", SEEN);
	for (uint64_t s = 0; s < SECONDS; s++) {
		for (uint64_t i = 0; i < PER_S && s >= dropped_s; i++)
			put_row(&to, s * 1000 + i, BOOT_NS + s * S + i * MS, 100 * US + i * US, false);
		for (uint64_t i = 0; i < LATE && s >= late_dropped; i++)
			put_row(&to, s * 1000 + 500 + i, BOOT_NS + s * S + 500 * MS + i * MS, LATE_NS, true);
		if (s % 10 == 9)
			put_loss(&to, BOOT_NS + (s + 1) * S, "interval", (s + 1) * 100, (s + 1) * 2);
	}
	if (dropped_s || late_dropped) {
		put_loss(&to, end_ts, "spool", baseline + late, dropped_s * PER_S + late_dropped * LATE);
		put_loss(&to, end_ts, "spool_baseline", baseline, dropped_s * PER_S);
	}
	row_writer_close(&to);
}

struct loaded {
	struct test_dir dir;
	struct dataset dataset;
	struct report report;
};

static void load(struct loaded *loaded, uint64_t dropped_s, uint64_t late_dropped, const struct dataset_filter *filter)
{
	const struct report_opts opts = {.tail = 0.99, .seed = 1};
	struct shard_reader *reader;

	test_dir__make(&loaded->dir);
	write_recording(loaded->dir.path, dropped_s, late_dropped);
	reader = test_reader__open(loaded->dir.path);
	CU_ASSERT_EQUAL_FATAL(dataset_load(&loaded->dataset, reader, filter), 0);
	CU_ASSERT_EQUAL_FATAL(report_make(&loaded->report, &loaded->dataset, &opts), 0);
	shard_reader__free(reader);
}

static void unload(struct loaded *loaded)
{
	report_free(&loaded->report);
	dataset_free(&loaded->dataset);
	test_dir__remove(&loaded->dir);
}

static double weight_of(const struct dataset *dataset)
{
	double weight = 0;

	for (size_t row = 0; row < dataset->row_cnt; row++)
		weight += dataset->weight[row];
	return weight;
}

static bool is_noted(const struct dataset *dataset, const char *text)
{
	for (size_t i = 0; i < dataset->note_cnt; i++)
		if (strstr(dataset->notes[i], text))
			return true;
	return false;
}

static void the_baseline_that_is_left_stands_for_what_was_dropped(void)
{
	const struct dataset_filter filter = {0};
	struct loaded whole, rest;

	load(&whole, 0, 0, &filter);
	load(&rest, 70, 0, &filter);
	CU_ASSERT_EQUAL(rest.dataset.row_cnt, SECONDS * LATE + 30 * PER_S);
	CU_ASSERT_DOUBLE_EQUAL(weight_of(&rest.dataset), (double)SEEN, 1e-6 * (double)SEEN);
	CU_ASSERT_DOUBLE_EQUAL(weight_of(&whole.dataset), (double)SEEN, 1e-6 * (double)SEEN);
	/* Percentiles and means are those of the whole: without new weights, p99 would be 10 ms. */
	CU_ASSERT_DOUBLE_EQUAL(rest.report.latency.mean_ns, whole.report.latency.mean_ns, 1);
	CU_ASSERT_DOUBLE_EQUAL(rest.report.latency.p50_ns, whole.report.latency.p50_ns, 1000);
	CU_ASSERT_DOUBLE_EQUAL(rest.report.latency.p90_ns, whole.report.latency.p90_ns, 1000);
	/* What they stood for counts as lost, not how many they were: 70 % of the baseline, which is 99 % of all. */
	CU_ASSERT_DOUBLE_EQUAL(rest.report.records_lost_share, 1 - 0.98 * (1 - 0.7 * 1000 / 1010), 1e-3);
	CU_ASSERT_DOUBLE_EQUAL(whole.report.records_lost_share, 0.02, 1e-6);
	CU_ASSERT(is_noted(&rest.dataset, "3500 of 5000 rows of the baseline sample were dropped"));
	CU_ASSERT(rest.dataset.loss[WL_LOSS_SPOOL].lost == 3500 && rest.dataset.loss[WL_LOSS_SPOOL].emitted == 6000);
	unload(&rest);
	unload(&whole);
}

static void the_report_counts_the_class_spool(void)
{
	const struct dataset_filter filter = {0};
	char *text = NULL;
	struct loaded rest;
	size_t sz = 0;
	FILE *out = open_memstream(&text, &sz);

	load(&rest, 70, 20, &filter);
	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	CU_ASSERT_EQUAL(view_json(out, &rest.report), 0);
	fputc('\n', out);
	CU_ASSERT_EQUAL(view_text(out, &rest.report, &(struct view_opts){.top = 10}), 0);
	fclose(out);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"spool\""));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"spool_baseline\""));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "3,700 of 6,000"));
	free(text);
	unload(&rest);
}

static void without_any_baseline_left_nothing_stands_for_it(void)
{
	const struct dataset_filter filter = {0};
	struct loaded rest;

	load(&rest, SECONDS, 0, &filter);
	CU_ASSERT_EQUAL(rest.dataset.row_cnt, SECONDS * LATE);
	CU_ASSERT_DOUBLE_EQUAL(weight_of(&rest.dataset), SECONDS * LATE, 1e-6);
	CU_ASSERT(rest.report.records_lost_share > 0.98);
	CU_ASSERT(is_noted(&rest.dataset, "nothing stands for them"));
	unload(&rest);
}

static void a_part_of_a_recording_has_its_own_counts(void)
{
	const struct dataset_filter middle = {
		.since_wall_ns = WALL_NS + 40 * S,
		.until_wall_ns = WALL_NS + 60 * S,
	};
	const struct dataset_filter beginning = {.until_wall_ns = WALL_NS + 5 * S},
				    end = {.since_wall_ns = WALL_NS + 95 * S};
	struct loaded loaded;

	load(&loaded, 0, 0, &middle);
	CU_ASSERT_EQUAL(loaded.dataset.intervals_seen, SEEN / 5);
	CU_ASSERT_EQUAL(loaded.dataset.hosts[0].intervals_seen, SEEN / 5);
	/* The totals at 60 s, without those of 30 s, which are the last ones before. */
	CU_ASSERT_EQUAL(loaded.dataset.loss[WL_LOSS_INTERVAL].emitted, 3000);
	CU_ASSERT_EQUAL(loaded.dataset.loss[WL_LOSS_INTERVAL].lost, 60);
	CU_ASSERT_EQUAL(loaded.dataset.records_lost, 60);
	CU_ASSERT_EQUAL(loaded.dataset.hosts[0].records_lost, 60);
	unload(&loaded);
	load(&loaded, 0, 0, &beginning);
	CU_ASSERT_EQUAL(loaded.dataset.intervals_seen, SEEN / 20);
	CU_ASSERT_EQUAL(loaded.dataset.loss[WL_LOSS_INTERVAL].lost, 20);
	unload(&loaded);
	load(&loaded, 0, 0, &end);
	CU_ASSERT_EQUAL(loaded.dataset.intervals_seen, SEEN / 20);
	CU_ASSERT_EQUAL(loaded.dataset.loss[WL_LOSS_INTERVAL].lost, 20);
	unload(&loaded);
}

/* 50,000 records of weight 1, then 10,000 of weight 100; 500 requests are cut in the second half. */
static void what_is_lost_weighs_as_much_as_what_is_kept_then(void)
{
	const struct report_opts opts = {.tail = 0.99, .seed = 1};
	struct loaded loaded;
	struct shard_reader *reader;
	struct row_writer to;

	for (int type = 0; type < 2; type++) {
		const struct dataset_filter filter = {.type = type ? "tcp:80" : NULL};

		test_dir__make(&loaded.dir);
		row_writer_open(&to, loaded.dir.path, "web-1", 78, 1);
		for (uint64_t i = 0; i < 60000; i++) {
			uint64_t begin_ts =
				i < 50000 ? BOOT_NS + i * 100 * US : BOOT_NS + 5 * S + (i - 50000) * 500 * US;

			row_begin(&to, SHARD_TABLE_INTERVAL);
			row_set_u64(&to, INTERVAL_SID, i);
			row_set_u64(&to, INTERVAL_BEGIN_TS, begin_ts);
			row_set_u64(&to, INTERVAL_PICKUP_TS, begin_ts);
			row_set_u64(&to, INTERVAL_END_TS, begin_ts + 50 * US);
			row_set_str(&to, INTERVAL_TYPE, i % 2 ? "tcp:80" : "tcp:8080");
			to.row.values[INTERVAL_WEIGHT].f64 = i < 50000 ? 1 : 100;
			row_set_u64(&to, interval_column_length(WL_STATE_RUNNING), 50 * US);
			row_end(&to, SHARD_TABLE_INTERVAL);
			if (i == 49999)
				put_loss(&to, BOOT_NS + 5 * S, "interval", 50000, 0);
		}
		put_loss(&to, BOOT_NS + 11 * S, "interval", 60000, 0);
		put_loss(&to, BOOT_NS + 11 * S, "cut", 0, 500);
		row_writer_close(&to);
		reader = test_reader__open(loaded.dir.path);
		CU_ASSERT_EQUAL_FATAL(dataset_load(&loaded.dataset, reader, &filter), 0);
		CU_ASSERT_EQUAL_FATAL(loaded.dataset.row_cnt, type ? 30000 : 60000);
		CU_ASSERT_EQUAL_FATAL(report_make(&loaded.report, &loaded.dataset, &opts), 0);
		shard_reader__free(reader);
		CU_ASSERT_DOUBLE_EQUAL(loaded.report.records_lost_share, 50000.0 / 1100000, 1e-9);
		unload(&loaded);
	}
}

static const struct unit_test tests[] = {
	{"the baseline that is left stands for what was dropped",
	 the_baseline_that_is_left_stands_for_what_was_dropped},
	{"the report counts the class spool", the_report_counts_the_class_spool},
	{"without any baseline left nothing stands for it", without_any_baseline_left_nothing_stands_for_it},
	{"what is lost weighs as much as what is kept then", what_is_lost_weighs_as_much_as_what_is_kept_then},
	{"a part of a recording has its own counts", a_part_of_a_recording_has_its_own_counts},
};

int suite_losses(void)
{
	return unit_suite("losses", tests, sizeof(tests) / sizeof(tests[0]));
}
