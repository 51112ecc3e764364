// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/segments.h"
#include "base/random.h"
#include "model/sketch.h"
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

struct weighted {
	uint64_t ns;
	double weight;
};

static int by_ns(const void *left, const void *right)
{
	const struct weighted *a = left, *b = right;

	return (a->ns > b->ns) - (a->ns < b->ns);
}

/* The smallest value that holds the share q of the weight; the values are sorted. */
static double exact_quantile(const struct weighted *values, size_t cnt, double q)
{
	double total = 0, below = 0;

	for (size_t i = 0; i < cnt; i++)
		total += values[i].weight;
	for (size_t i = 0; i < cnt; i++) {
		below += values[i].weight;
		if (below >= q * total * (1 - 1e-9))
			return (double)values[i].ns;
	}
	return (double)values[cnt - 1].ns;
}

enum shape { LOGNORMAL, PARETO, TIES, CONSTANT, TINY, FAR_APART, SHAPE_CNT };

static uint64_t draw(enum shape shape, uint64_t *state)
{
	switch (shape) {
	case PARETO: /* neither variance nor mean */
		return (uint64_t)(1e4 * pow(uniform(state), -1 / 0.9));
	case TIES:
		return 1000 << random_next(state) % 5;
	case CONSTANT:
		return 123456;
	case TINY:
		return random_next(state) % 50;
	case FAR_APART:
		return random_next(state) % 100 ? 1000 + random_next(state) % 10 : 3600000000000ULL;
	default:
		return latency(state, 1);
	}
}

/* Against the exact quantiles of the same values: weights, heavy tails, ties; the sketches are merged at random. */
static void quantiles_are_off_by_a_class_at_most(void)
{
	enum { CNT = 3000, PARTS = 7 };
	static struct weighted values[CNT];
	static float parts[PARTS][LOGHIST_CLASS_CNT];
	static double merged[2][LOGHIST_CLASS_CNT];
	uint64_t state = 5;

	for (int round = 0; round < 20 * SHAPE_CNT; round++) {
		bool weighted = round / SHAPE_CNT % 2;

		memset(parts, 0, sizeof(parts));
		memset(merged, 0, sizeof(merged));
		for (size_t i = 0; i < CNT; i++) {
			values[i].ns = draw(round % SHAPE_CNT, &state);
			values[i].weight = weighted ? (float)pow(uniform(&state), -0.5) : 1 + random_next(&state) % 9;
			parts[random_next(&state) % PARTS][loghist_class(values[i].ns)] += (float)values[i].weight;
		}
		for (int p = 0; p < PARTS; p++)
			for (uint32_t c = 0; c < LOGHIST_CLASS_CNT; c++) {
				merged[0][c] += parts[p][c];
				merged[1][c] += parts[(3 * p + round) % PARTS][c];
			}
		qsort(values, CNT, sizeof(*values), by_ns);
		for (int n = 0; n < 20; n++) {
			double q = n < 4 ? 1 - pow(10, -n - 1) : uniform(&state), one, other;
			double lo = exact_quantile(values, CNT, q * (1 - 1e-6)),
			       hi = exact_quantile(values, CNT, fmin(1, q * (1 + 1e-6)));

			one = segment_quantile(merged[0], LOGHIST_CLASS_CNT, 0, q);
			other = segment_quantile(merged[1], LOGHIST_CLASS_CNT, 0, q);
			/* The sums of floats differ by their rounding, which may move a quantile to its neighbour. */
			CU_ASSERT(one >= lo - lo / 32 - 1 && one <= hi + hi / 32 + 1);
			CU_ASSERT(other >= lo - lo / 32 - 1 && other <= hi + hi / 32 + 1);
			CU_ASSERT(weighted || one == other);
		}
	}
	CU_ASSERT(isnan(segment_quantile(merged[0], 0, 0, 0.5)));
}

/* Each culprit once or, beyond the room, with the others of its category: the sums are those of what was given. */
static void culprits_are_bounded_and_sum_up(void)
{
	double given[WL_CATEGORY_CNT] = {0}, kept[WL_CATEGORY_CNT] = {0}, largest = 0;
	struct summaries *summaries = summaries__new(0);
	static char text[SUMMARY_CULPRITS_SZ];
	const struct summary *summary;
	uint64_t state = 3;
	char what[300];

	for (int i = 0; i < 20000; i++) {
		enum wl_category category = random_next(&state) % 2 ? WL_CATEGORY_LOCK : WL_CATEGORY_RUNQ;
		double ns = (double)(random_next(&state) % 1000);
		bool frequent = random_next(&state) % 4 == 0;

		memset(what, 'x', sizeof(what));
		snprintf(what, sizeof(what), "%s\n%d", frequent ? "frequent" : "rare", frequent ? 1 : i % 997);
		if (i % 50 == 0)
			what[strlen(what)] = 'y'; /* longer than there is room for */
		what[sizeof(what) - 1] = '\0';
		given[category] += ns;
		CU_ASSERT_EQUAL(summaries__waited(summaries, 1, category, what, ns, 5), 0);
	}
	summary = summaries__next(summaries, 0, true);
	CU_ASSERT_PTR_NOT_NULL_FATAL(summary);
	CU_ASSERT(summary->culprit_cnt <= SUMMARY_CULPRITS_MAX);
	for (uint32_t i = 0; i < summary->culprit_cnt; i++) {
		kept[summary->culprits[i].category] += summary->culprits[i].ns;
		largest = fmax(largest, summary->culprits[i].ns);
		CU_ASSERT_PTR_NULL(strchr(summary->culprits[i].what, '\n'));
	}
	for (int c = 0; c < WL_CATEGORY_CNT; c++)
		CU_ASSERT_DOUBLE_EQUAL(kept[c] + summary->others_ns[c], given[c], 1e-6 * given[c]);
	CU_ASSERT(largest > 0.2 * given[WL_CATEGORY_LOCK]);
	summary_culprits_text(text, summary);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, " frequent 1\n"));
	summaries__free(summaries);
}

static void take(struct row_writer *to, struct summaries *summaries, bool all)
{
	static char sketch[SKETCH_TEXT_SZ];
	const struct summary *summary;

	while ((summary = summaries__next(summaries, UINT64_MAX / 2, all))) {
		uint64_t begin_ts = summaries__begin_ts(summaries, summary);

		sketch_text(sketch, summary->weights);
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

/* Days of one request length an hour: the sine of the hour, times 1.3 from `changed` on. */
static void put_days(const char *dir, const char *host, uint64_t session, size_t hours, size_t changed, uint32_t salt)
{
	struct row_writer to;
	char sketch[128], culprits[64], text[32];

	row_writer_open(&to, dir, host, session, 1);
	row_put_session(&to, "mono_anchor_ns", "1");
	snprintf(text, sizeof(text), "%llu", (unsigned long long)BEGIN_NS);
	row_put_session(&to, "wall_anchor_ns", text);
	for (size_t hour = 0; hour < hours; hour++) {
		double factor = exp(0.4 * sin(2 * M_PI * (double)(hour % 24) / 24)) * (hour >= changed ? 1.3 : 1);
		uint32_t class_no =
			loghist_class((uint64_t)(1e6 * factor * (1 + 0.01 * (double)(random_mix(hour) % 5))));

		row_begin(&to, SHARD_TABLE_SUMMARY);
		row_set_u64(&to, SUMMARY_BEGIN_TS, 1 + hour * 60 * MINUTE_NS);
		row_set_u64(&to, SUMMARY_END_TS, 1 + hour * 60 * MINUTE_NS + MINUTE_NS);
		to.row.values[SUMMARY_COUNT].f64 = 7 + salt;
		to.row.values[SUMMARY_CATEGORY_COUNT].f64 = 5;
		snprintf(sketch, sizeof(sketch), "%u:%u.5 %u:6.5", class_no - salt, salt, class_no);
		row_set_str(&to, SUMMARY_SKETCH, sketch);
		row_set_str(&to, SUMMARY_CATEGORIES, "lock:1000");
		snprintf(culprits, sizeof(culprits), "lock 750 a %u\nlock 1.5e2 b 1\nlock 100 ", salt);
		row_set_str(&to, SUMMARY_CULPRITS, culprits);
		row_end(&to, SHARD_TABLE_SUMMARY);
	}
	row_writer_close(&to);
}

static void the_daily_rhythm_is_no_change(void)
{
	const struct dataset_filter filter = {0};
	struct long_recording recording;
	struct segments segments;

	test_dir__make(&recording.dir);
	put_days(recording.dir.path, "host", 7, 24 * 10, 24 * 6 + 5, 1);
	recording.reader = test_reader__open(recording.dir.path);
	CU_ASSERT_EQUAL_FATAL(segments_make(&segments, recording.reader, &filter, 60 * MINUTE_NS, 0.99), 0);
	CU_ASSERT_TRUE(segments.rhythm.is_known);
	CU_ASSERT_DOUBLE_EQUAL(segments.rhythm.high / segments.rhythm.low, exp(0.8), 0.15);
	CU_ASSERT(abs((int)segments.rhythm.high_min - 6 * 60) <= 60);
	CU_ASSERT_EQUAL_FATAL(segments.changes.cnt, 1);
	CU_ASSERT(llabs((long long)segments.changes.items[0].at - (24 * 6 + 5)) <= 1);
	CU_ASSERT_DOUBLE_EQUAL(segments.changes.items[0].after_ns / segments.changes.items[0].before_ns, 1.3, 0.06);
	segments_free(&segments);
	forget(&recording);
}

static void stores_add_up_in_any_order(void)
{
	static const char *const hosts[2][3] = {{"a", "b", "c"}, {"c", "a", "b"}};
	const struct dataset_filter filter = {0};
	struct long_recording recordings[2];
	struct segments segments[2];

	for (int order = 0; order < 2; order++) {
		test_dir__make(&recordings[order].dir);
		for (uint32_t h = 0; h < 3; h++)
			put_days(recordings[order].dir.path, hosts[order][h], 7 + h, 30, 30, 1 + h);
		recordings[order].reader = test_reader__open(recordings[order].dir.path);
		CU_ASSERT_EQUAL_FATAL(
			segments_make(&segments[order], recordings[order].reader, &filter, 60 * MINUTE_NS, 0.99), 0);
	}
	CU_ASSERT_EQUAL_FATAL(segments[0].cnt, 30);
	CU_ASSERT_EQUAL_FATAL(segments[1].cnt, 30);
	CU_ASSERT_EQUAL(segments[0].rows, 90);
	for (size_t s = 0; s < 30; s++) {
		const struct segment *one = &segments[0].items[s], *other = &segments[1].items[s];

		CU_ASSERT_EQUAL(one->count, 27);
		CU_ASSERT_EQUAL(one->count, other->count);
		CU_ASSERT_EQUAL(one->tail_ns, other->tail_ns);
		CU_ASSERT_EQUAL(one->p50_ns, other->p50_ns);
		CU_ASSERT_EQUAL(one->category_ns[WL_CATEGORY_LOCK], 200);
		/* a 1, a 2, a 3 once, b 1 of all three; the others of a category have no name. */
		CU_ASSERT_EQUAL_FATAL(one->culprits.cnt, 4);
		CU_ASSERT_EQUAL(one->culprits.items[0].ns, 50);
		CU_ASSERT_EQUAL(one->culprits.items[3].ns, 30);
		CU_ASSERT_STRING_EQUAL(segments[0].culprits[one->culprits.items[3].what], "b 1");
		CU_ASSERT_EQUAL(other->culprits.items[3].ns, 30);
	}
	for (int order = 0; order < 2; order++) {
		segments_free(&segments[order]);
		forget(&recordings[order]);
	}
}

static const char *random_number(char text[48], uint64_t *state)
{
	static const char *const formats[] = {"%.7g", "%.0f", "%.15g", "%.3f", "%.17g", "%.12e"};

	snprintf(text, 48, formats[random_next(state) % 6],
		 (double)(random_next(state) % 1000000000000000) *
			 pow(10, (double)(random_next(state) % 14) - (double)(random_next(state) % 14)));
	return text;
}

/* As strtod() does, to the last bit. */
static void numbers_are_read_as_they_were_written(void)
{
	enum { CNT = 5000 };
	const struct dataset_filter filter = {0};
	struct long_recording recording;
	struct segments segments;
	struct row_writer to;
	uint64_t state = 11;
	char number[48], text[96];
	static double wanted[CNT];

	test_dir__make(&recording.dir);
	row_writer_open(&to, recording.dir.path, "host", 7, 1);
	row_put_session(&to, "mono_anchor_ns", "0");
	snprintf(text, sizeof(text), "%llu", (unsigned long long)BEGIN_NS);
	row_put_session(&to, "wall_anchor_ns", text);
	for (size_t m = 0; m < CNT; m++) {
		snprintf(text, sizeof(text), "newer:1 lock:%s runq:7", random_number(number, &state));
		wanted[m] = strtod(number, NULL);
		row_begin(&to, SHARD_TABLE_SUMMARY);
		row_set_u64(&to, SUMMARY_BEGIN_TS, m * MINUTE_NS);
		row_set_u64(&to, SUMMARY_END_TS, (m + 1) * MINUTE_NS);
		to.row.values[SUMMARY_COUNT].f64 = 1;
		to.row.values[SUMMARY_CATEGORY_COUNT].f64 = 1;
		row_set_str(&to, SUMMARY_SKETCH, "400:1");
		row_set_str(&to, SUMMARY_CATEGORIES, text);
		row_end(&to, SHARD_TABLE_SUMMARY);
	}
	row_writer_close(&to);
	recording.reader = test_reader__open(recording.dir.path);
	CU_ASSERT_EQUAL_FATAL(segments_make(&segments, recording.reader, &filter, MINUTE_NS, 0.99), 0);
	CU_ASSERT_EQUAL_FATAL(segments.cnt, CNT);
	for (size_t m = 0; m < CNT; m++) {
		CU_ASSERT_EQUAL(segments.items[m].category_ns[WL_CATEGORY_LOCK], wanted[m]);
		CU_ASSERT_EQUAL(segments.items[m].category_ns[WL_CATEGORY_RUNQ], 7);
	}
	segments_free(&segments);
	forget(&recording);
}

/* Of two things that requests wait for, one takes more from day to day; the sum of both stays. */
static void what_is_waited_for_drifts(void)
{
	const struct dataset_filter filter = {0};
	struct long_recording recording;
	struct segments segments;
	struct row_writer to;
	uint64_t state = 17;
	char text[64];

	test_dir__make(&recording.dir);
	row_writer_open(&to, recording.dir.path, "host", 7, 1);
	row_put_session(&to, "mono_anchor_ns", "0");
	snprintf(text, sizeof(text), "%llu", (unsigned long long)BEGIN_NS);
	row_put_session(&to, "wall_anchor_ns", text);
	for (size_t hour = 0; hour < 24 * 20; hour++) {
		unsigned grows = 1000 + (unsigned)hour * 2 + (unsigned)(random_next(&state) % 300);

		row_begin(&to, SHARD_TABLE_SUMMARY);
		row_set_u64(&to, SUMMARY_BEGIN_TS, hour * 60 * MINUTE_NS);
		row_set_u64(&to, SUMMARY_END_TS, hour * 60 * MINUTE_NS + MINUTE_NS);
		to.row.values[SUMMARY_COUNT].f64 = 10;
		to.row.values[SUMMARY_SUM_NS].f64 = 50000;
		to.row.values[SUMMARY_CATEGORY_COUNT].f64 = 10;
		row_set_str(&to, SUMMARY_SKETCH, "400:10");
		row_set_str(&to, SUMMARY_CATEGORIES, "lock:50000");
		snprintf(text, sizeof(text), "lock %u table\nlock %u index", grows * 10, (5000 - grows) * 10);
		row_set_str(&to, SUMMARY_CULPRITS, text);
		row_end(&to, SHARD_TABLE_SUMMARY);
	}
	row_writer_close(&to);
	recording.reader = test_reader__open(recording.dir.path);
	CU_ASSERT_EQUAL_FATAL(segments_make(&segments, recording.reader, &filter, 60 * MINUTE_NS, 0.99), 0);
	CU_ASSERT_FALSE(segments.drifts[WL_CATEGORY_LOCK].found);
	CU_ASSERT_EQUAL_FATAL(segments.culprit_drift_cnt, 2);
	for (size_t d = 0; d < 2; d++) {
		const struct segment_drift *drift = &segments.culprit_drifts[d];
		bool grows = !strcmp(segments.culprits[drift->what], "table");

		CU_ASSERT_TRUE(drift->drift.found);
		CU_ASSERT_DOUBLE_EQUAL(drift->drift.per_day, grows ? 48 : -48, 5);
	}
	segments_free(&segments);
	forget(&recording);
}

/*
 * Three segments and three others: of random orders every tenth has the same ones on both sides, so that no level is
 * certain, whichever way the sums of these orders are rounded.
 */
static void six_segments_have_no_change(void)
{
	const struct dataset_filter filter = {0};
	uint64_t state = 4;

	for (int round = 0; round < 20; round++) {
		struct long_recording recording;
		struct segments segments;
		struct row_writer to;
		char text[32];

		test_dir__make(&recording.dir);
		row_writer_open(&to, recording.dir.path, "host", 7, 1);
		row_put_session(&to, "mono_anchor_ns", "1");
		row_put_session(&to, "wall_anchor_ns", "1795219200000000000");
		for (size_t i = 0; i < 6; i++) {
			row_begin(&to, SHARD_TABLE_SUMMARY);
			row_set_u64(&to, SUMMARY_BEGIN_TS, 1 + i * MINUTE_NS);
			to.row.values[SUMMARY_COUNT].f64 = 9;
			snprintf(text, sizeof(text), "%u:9", (unsigned)(400 + 40 * (i / 3) + random_next(&state) % 9));
			row_set_str(&to, SUMMARY_SKETCH, text);
			row_end(&to, SHARD_TABLE_SUMMARY);
		}
		row_writer_close(&to);
		recording.reader = test_reader__open(recording.dir.path);
		CU_ASSERT_EQUAL_FATAL(segments_make(&segments, recording.reader, &filter, MINUTE_NS, 0.99), 0);
		CU_ASSERT_EQUAL(segments.cnt, 6);
		CU_ASSERT_EQUAL(segments.changes.cnt, 0);
		segments_free(&segments);
		forget(&recording);
	}
}

static void damaged_sketches_are_left_out(void)
{
	static const char *const sketches[] = {
		"12:1 9999999:1", "x", "1:nan", "5:-1", "5:1e300", "7", "7:", "7:1x", "7=", "7=203"};
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
		{"quantiles are off by a class at most", quantiles_are_off_by_a_class_at_most},
		{"culprits are bounded and sum up", culprits_are_bounded_and_sum_up},
		{"the daily rhythm is no change", the_daily_rhythm_is_no_change},
		{"stores add up in any order", stores_add_up_in_any_order},
		{"numbers are read as they were written", numbers_are_read_as_they_were_written},
		{"what is waited for drifts", what_is_waited_for_drifts},
		{"a change is found where it is", a_change_is_found_where_it_is},
		{"chance is no change", chance_is_no_change},
		{"intervals hold the true tail", intervals_hold_the_true_tail},
		{"six segments have no change", six_segments_have_no_change},
		{"damaged sketches are left out", damaged_sketches_are_left_out},
		{"many types are bounded", many_types_are_bounded},
	};

	return unit_suite("segments", tests, sizeof(tests) / sizeof(tests[0]));
}
