// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/segments.h"
#include "base/random.h"
#include "model/summaries.h"
#include "row_writer.h"
#include "test_shard_util.h"
#include "unit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MINUTE_NS SUMMARY_PERIOD_NS
#define BEGIN_NS  (29920320 * MINUTE_NS) /* a full hour on the wall */

static double uniform(uint64_t *state)
{
	return ((double)(random_next(state) >> 11) + 0.5) * 0x1p-53;
}

static uint64_t latency(uint64_t *state, double factor)
{
	double normal = sqrt(-2 * log(uniform(state))) * cos(2 * M_PI * uniform(state));

	return (uint64_t)(factor * 1e6 * exp(0.7 * normal));
}

static int compare_u64(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

/* However many sketches are merged, a quantile is off by 1/64 of itself at most. */
static void quantiles_are_off_by_a_64th_at_most(void)
{
	static const double quantiles[] = {0.01, 0.25, 0.5, 0.9, 0.99, 0.999};
	enum { CNT = 20000 };
	static uint64_t values[CNT];
	static double merged[LOGHIST_CLASS_CNT];
	uint64_t state = 5;

	for (int round = 0; round < 8; round++) {
		memset(merged, 0, sizeof(merged));
		for (size_t i = 0; i < CNT; i++) {
			values[i] = latency(&state, pow(10, round - 4));
			merged[loghist_class(values[i])]++;
		}
		qsort(values, CNT, sizeof(*values), compare_u64);
		for (size_t q = 0; q < sizeof(quantiles) / sizeof(quantiles[0]); q++) {
			double exact = (double)values[(size_t)ceil(quantiles[q] * CNT) - 1];
			double sketched = segment_quantile(merged, LOGHIST_CLASS_CNT, 0, quantiles[q]);

			/* The interpolation within a class may be off by the class, 1/32 at most. */
			CU_ASSERT(fabs(sketched - exact) <= exact / 32 + 1);
		}
	}
	CU_ASSERT(isnan(segment_quantile(merged, 0, 0, 0.5)));
}

static void take(struct row_writer *to, struct summaries *summaries, bool all)
{
	static char sketch[LOGHIST_CLASS_CNT * 20];
	const struct summary *summary;

	while ((summary = summaries__next(summaries, UINT64_MAX / 2, all))) {
		uint64_t begin_ts = summaries__begin_ts(summaries, summary);

		CU_ASSERT(summary_sketch_text(sketch, sizeof(sketch), summary->weights) > 0);
		row_begin(to, SHARD_TABLE_SUMMARY);
		row_set_u64(to, SUMMARY_BEGIN_TS, begin_ts);
		row_set_u64(to, SUMMARY_END_TS, begin_ts + MINUTE_NS);
		row_set_str(to, SUMMARY_TYPE, summary->type == UINT32_MAX ? "" : summary->type ? "write" : "read");
		to->row.values[SUMMARY_COUNT].f64 = summary->count;
		to->row.values[SUMMARY_SUM_NS].f64 = summary->sum_ns;
		row_set_u64(to, SUMMARY_MAX_NS, summary->max_ns);
		row_set_str(to, SUMMARY_SKETCH, sketch);
		to->row.values[SUMMARY_CATEGORY_COUNT].f64 = summary->category_count;
		row_set_str(to, SUMMARY_CATEGORIES, "oncpu:1000 lock:2000");
		row_end(to, SHARD_TABLE_SUMMARY);
	}
}

struct long_recording {
	struct test_dir dir;
	struct shard_reader *reader;
};

/* So many minutes of 200 requests; from minute `changed` on they take `factor` times as long. */
static void record(struct long_recording *recording, size_t minutes, size_t changed, double factor, uint64_t seed)
{
	const uint64_t category_ns[WL_CATEGORY_CNT] = {[WL_CATEGORY_ONCPU] = 1000, [WL_CATEGORY_LOCK] = 2000};
	struct summaries *summaries = summaries__new((int64_t)BEGIN_NS);
	struct row_writer to;
	uint64_t state = random_mix(seed);
	char text[32];

	CU_ASSERT_FATAL(summaries != NULL);
	test_dir__make(&recording->dir);
	row_writer_open(&to, recording->dir.path, "host", 7, 1);
	row_put_session(&to, "mono_anchor_ns", "0");
	snprintf(text, sizeof(text), "%llu", (unsigned long long)BEGIN_NS);
	row_put_session(&to, "wall_anchor_ns", text);
	for (size_t m = 0; m < minutes; m++)
		for (size_t i = 0; i < 200; i++) {
			uint64_t ts = m * MINUTE_NS + i * (MINUTE_NS / 200);
			uint64_t ns = latency(&state, m >= changed ? factor : 1);

			CU_ASSERT_EQUAL(summaries__saw(summaries, i % 4 == 0, ns, 2, ts), 0);
			CU_ASSERT_EQUAL(summaries__kept(summaries, i % 4 == 0, category_ns, 1, ts), 0);
		}
	take(&to, summaries, false);
	take(&to, summaries, true);
	row_writer_close(&to);
	summaries__free(summaries);
	recording->reader = test_reader__open(recording->dir.path);
}

static void forget(struct long_recording *recording)
{
	shard_reader__free(recording->reader);
	test_dir__remove(&recording->dir);
}

static void a_change_is_found_where_it_is(void)
{
	const struct dataset_filter filter = {0}, reads = {.type = "read"};
	struct long_recording recording;
	struct segments segments;

	record(&recording, 200, 120, 1.6, 3);
	CU_ASSERT_EQUAL_FATAL(segments_make(&segments, recording.reader, &filter, 5 * MINUTE_NS, 0.99), 0);
	CU_ASSERT_TRUE(segments.from_summaries);
	CU_ASSERT_EQUAL(segments.cnt, 40);
	CU_ASSERT_EQUAL(segments.bad_rows, 0);
	CU_ASSERT_EQUAL(segments.changes.cnt, 1);
	if (segments.changes.cnt) {
		CU_ASSERT(segments.changes.items[0].at >= 23 && segments.changes.items[0].at <= 25);
		CU_ASSERT_DOUBLE_EQUAL(segments.changes.items[0].after_ns / segments.changes.items[0].before_ns, 1.6,
				       0.25);
	}
	CU_ASSERT(segments.worst >= 24);
	for (size_t s = 0; s < segments.cnt; s++) {
		CU_ASSERT_DOUBLE_EQUAL(segments.items[s].count, 5 * 200 * 2, 1e-6);
		CU_ASSERT(segments.items[s].tail_ci.lo <= segments.items[s].tail_ns &&
			  segments.items[s].tail_ci.hi >= segments.items[s].tail_ns);
		CU_ASSERT_EQUAL(segments.items[s].begin_wall_ns, BEGIN_NS + s * 5 * MINUTE_NS);
	}
	segments_free(&segments);
	CU_ASSERT_EQUAL_FATAL(segments_make(&segments, recording.reader, &reads, 20 * MINUTE_NS, 0.9), 0);
	CU_ASSERT_EQUAL(segments.cnt, 10);
	CU_ASSERT_DOUBLE_EQUAL(segments.items[0].count, 20 * 150 * 2, 1e-6);
	segments_free(&segments);
	forget(&recording);
}

static void chance_is_no_change(void)
{
	const struct dataset_filter filter = {0};
	size_t changed = 0;

	for (uint64_t seed = 0; seed < 15; seed++) {
		struct long_recording recording;
		struct segments segments;

		record(&recording, 60, 60, 1, 100 + seed);
		CU_ASSERT_EQUAL_FATAL(segments_make(&segments, recording.reader, &filter, 2 * MINUTE_NS, 0.99), 0);
		changed += segments.changes.cnt > 0;
		segments_free(&segments);
		forget(&recording);
	}
	CU_ASSERT(changed <= 1);
}

/* The intervals of a segment's p99 hold the true one about as often as they say. */
static void intervals_hold_the_true_tail(void)
{
	const struct dataset_filter filter = {0};
	double truth = 1e6 * exp(0.7 * 2.3263);
	struct long_recording recording;
	struct segments segments;
	size_t held = 0;

	record(&recording, 400, 400, 1, 9);
	CU_ASSERT_EQUAL_FATAL(segments_make(&segments, recording.reader, &filter, 10 * MINUTE_NS, 0.99), 0);
	for (size_t s = 0; s < segments.cnt; s++)
		held += segments.items[s].tail_ci.lo <= truth && segments.items[s].tail_ci.hi >= truth;
	CU_ASSERT_EQUAL(segments.cnt, 40);
	CU_ASSERT(held >= 35);
	segments_free(&segments);
	forget(&recording);
}

static void damaged_sketches_are_left_out(void)
{
	static const char *const sketches[] = {"12:1 9999999:1", "x", "1:nan", "5:-1", "5:1e300", "7", "7:", "7:1x"};
	const struct dataset_filter filter = {0};
	struct long_recording recording;
	struct segments segments;
	struct row_writer to;

	test_dir__make(&recording.dir);
	row_writer_open(&to, recording.dir.path, "host", 7, 1);
	row_put_session(&to, "mono_anchor_ns", "1");
	row_put_session(&to, "wall_anchor_ns", "1795219200000000000");
	for (size_t i = 0; i <= sizeof(sketches) / sizeof(sketches[0]); i++) {
		row_begin(&to, SHARD_TABLE_SUMMARY);
		row_set_u64(&to, SUMMARY_BEGIN_TS, 1 + i * MINUTE_NS);
		row_set_u64(&to, SUMMARY_END_TS, 1 + (i + 1) * MINUTE_NS);
		to.row.values[SUMMARY_COUNT].f64 = 5;
		row_set_str(&to, SUMMARY_SKETCH, i ? sketches[i - 1] : "600:5");
		row_set_str(&to, SUMMARY_CATEGORIES, i % 2 ? "oncpu:" : "nothing:5 oncpu");
		row_end(&to, SHARD_TABLE_SUMMARY);
	}
	row_writer_close(&to);
	recording.reader = test_reader__open(recording.dir.path);
	CU_ASSERT_EQUAL_FATAL(segments_make(&segments, recording.reader, &filter, MINUTE_NS, 0.99), 0);
	CU_ASSERT_EQUAL(segments.rows, 1);
	CU_ASSERT_EQUAL(segments.bad_rows, sizeof(sketches) / sizeof(sketches[0]));
	CU_ASSERT(isnan(segments.items[0].tail_ci.lo));
	segments_free(&segments);
	CU_ASSERT_EQUAL(
		segments_make(&segments, recording.reader, &(struct dataset_filter){.type = "no"}, MINUTE_NS, 0.99),
		-ENOENT);
	forget(&recording);
}

/* One minute has room for so many types; the requests of others are counted together. */
static void many_types_are_bounded(void)
{
	struct summaries *summaries = summaries__new(0);
	const struct summary *summary;
	double others = 0;
	size_t cnt = 0;

	for (uint32_t type = 0; type < 3 * SUMMARY_TYPES_MAX; type++)
		CU_ASSERT_EQUAL(summaries__saw(summaries, type, 1000, 1, 5), 0);
	CU_ASSERT_PTR_NULL(summaries__next(summaries, MINUTE_NS, false));
	while ((summary = summaries__next(summaries, 2 * MINUTE_NS, false))) {
		cnt++;
		others += summary->type == UINT32_MAX ? summary->count : 0;
	}
	CU_ASSERT_EQUAL(cnt, SUMMARY_TYPES_MAX + 1);
	CU_ASSERT_DOUBLE_EQUAL(others, 2 * SUMMARY_TYPES_MAX, 1e-9);
	summaries__free(summaries);
}

int suite_segments(void)
{
	static const struct unit_test tests[] = {
		{"quantiles are off by a 64th at most", quantiles_are_off_by_a_64th_at_most},
		{"a change is found where it is", a_change_is_found_where_it_is},
		{"chance is no change", chance_is_no_change},
		{"intervals hold the true tail", intervals_hold_the_true_tail},
		{"damaged sketches are left out", damaged_sketches_are_left_out},
		{"many types are bounded", many_types_are_bounded},
	};

	return unit_suite("segments", tests, sizeof(tests) / sizeof(tests[0]));
}
