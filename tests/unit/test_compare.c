// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/compare.h"
#include "analysis/compare_side.h"
#include "analysis/findings.h"
#include "base/random.h"
#include "row_writer.h"
#include "test_analysis_fixture.h"
#include "test_shard_util.h"
#include "unit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS 1000000.0

/* How requests come about, and which of them are kept. */
struct population {
	size_t request_cnt;   /* of each side */
	double memory;        /* of the logarithm of latencies, from one request to the next */
	double episode_share; /* of the requests are in slow episodes … */
	double episode_len;   /* … of so many requests on average */
	double kept_above_ns; /* all requests from there on are kept, one in eight of the others */
	double slow_share[2]; /* of each side's requests are of type "slow", which takes ten times as long … */
	double factor[2];     /* … and what each side's latencies are multiplied with */
	double lock_share[2]; /* of each side's requests wait for a lock, 5 ms on average */
	double quick[2];      /* what each side's times on the CPU below 1.2 ms are multiplied with as well */
};

static const struct population plain = {1500, 0, 0, 1, 0, {0, 0}, {1, 1}, {0.05, 0.05}, {1, 1}};

static double uniform(uint64_t *state)
{
	return ((double)(random_next(state) >> 11) + 0.5) * 0x1p-53;
}

/* Normal, by Box and Muller. */
static double normal(uint64_t *state)
{
	return sqrt(-2 * log(uniform(state))) * cos(2 * M_PI * uniform(state));
}

struct two_sides {
	struct analysis_fixture fixture;
	uint64_t *begin_ts;
	uint8_t *sides;
};

static void fill_side(struct two_sides *two, const struct population *of, int side, uint64_t *state)
{
	struct dataset *dataset = &two->fixture.dataset;
	double level = normal(state);
	bool is_slow = false;

	for (size_t i = 0; i < of->request_cnt; i++) {
		bool type = uniform(state) < of->slow_share[side];
		double oncpu_ns, lock_ns = 0, ends = 1 / of->episode_len;
		double begins = of->episode_share / (1 - of->episode_share) * ends;
		size_t row = dataset->row_cnt;

		level = of->memory * level + sqrt(1 - of->memory * of->memory) * normal(state);
		is_slow = uniform(state) < (is_slow ? 1 - ends : begins);
		oncpu_ns = MS * exp(0.5 * level) * of->factor[side] * (type ? 10 : 1) * (is_slow ? 20 : 1);
		if (oncpu_ns < 1.2 * MS)
			oncpu_ns *= of->quick[side];
		if (uniform(state) < of->lock_share[side])
			lock_ns = -5 * MS * log(uniform(state));
		if (oncpu_ns + lock_ns < of->kept_above_ns && uniform(state) >= 0.125)
			continue;
		dataset->row_cnt++;
		dataset->weight[row] = oncpu_ns + lock_ns < of->kept_above_ns ? 8 : 1;
		two->begin_ts[row] = (uint64_t)((double)(i + (size_t)side * of->request_cnt) * MS);
		two->sides[row] = side ? COMPARE_IN_B : COMPARE_IN_A;
		dataset->type[row] = fixture_string(&two->fixture, type ? "slow" : "fast");
		fixture_add(&two->fixture, row, WL_CATEGORY_ONCPU, (uint64_t)oncpu_ns);
		fixture_add(&two->fixture, row, WL_CATEGORY_LOCK, (uint64_t)lock_ns);
	}
}

static void two_sides__init(struct two_sides *two, const struct population *of, uint64_t seed)
{
	uint64_t state = random_mix(seed + 1);
	size_t room = 2 * of->request_cnt;

	analysis_fixture_init(&two->fixture, room);
	two->begin_ts = calloc(room, sizeof(*two->begin_ts));
	two->sides = calloc(room, sizeof(*two->sides));
	CU_ASSERT_FATAL(two->begin_ts && two->sides);
	two->fixture.dataset.begin_ts = two->begin_ts;
	/* Columns are made with their first value, for as many rows as there are then. */
	fixture_add(&two->fixture, 0, WL_CATEGORY_ONCPU, 0);
	fixture_add(&two->fixture, 0, WL_CATEGORY_LOCK, 0);
	two->fixture.dataset.row_cnt = 0;
	fill_side(two, of, 0, &state);
	fill_side(two, of, 1, &state);
}

static void two_sides__free(struct two_sides *two)
{
	analysis_fixture_free(&two->fixture);
	free(two->begin_ts);
	free(two->sides);
}

static void compare(struct comparison *comparison, const struct two_sides *two)
{
	const struct compare_opts opts = {
		.tail = 0.99, .bootstrap_cnt = 100, .seed = 7, .limits = {0, NAN, NAN, 0, NAN}};

	CU_ASSERT_EQUAL_FATAL(comparison_make(comparison, &two->fixture.dataset, two->sides, &opts), 0);
}

static size_t count_verdicts(const struct population *of, size_t pairs, uint64_t seed, enum compare_verdict verdict,
			     size_t *lists)
{
	size_t cnt = 0;

	for (size_t i = 0; i < pairs; i++) {
		struct two_sides two;
		struct comparison comparison;
		bool differs = false;

		two_sides__init(&two, of, seed + i);
		compare(&comparison, &two);
		cnt += comparison.verdict == verdict;
		for (size_t l = 0; l < comparison.categories.cnt; l++)
			differs = differs || comparison.categories.lines[l].mean_diff.differs ||
				  comparison.categories.lines[l].late_diff.differs;
		*lists += differs;
		comparison_free(&comparison);
		two_sides__free(&two);
	}
	return cnt;
}

/* Of one population: no more than one comparison in twenty may find a difference, in latencies as in each list. */
static void equal_populations_do_not_differ(void)
{
	struct population cases[] = {plain, plain, plain, plain};
	size_t pairs = getenv("COMPARE_RATES") ? 300 : 15, all = 0, same = 0, lists = 0;
	double most;

	cases[1].kept_above_ns = 3 * MS;
	cases[2].memory = 0.9;
	cases[3].kept_above_ns = 3 * MS;
	cases[3].episode_share = 0.02;
	cases[3].episode_len = 15;
	cases[3].slow_share[0] = cases[3].slow_share[1] = 0.3;
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		size_t of_case = count_verdicts(&cases[c], pairs, 1000 * c, COMPARE_SAME, &lists);

		same += of_case;
		all += pairs;
	}
	/* Two standard errors above one in twenty. */
	most = (double)all / 20 + 2 * sqrt((double)all * 0.05 * 0.95);
	CU_ASSERT((double)(all - same) <= most);
	CU_ASSERT((double)lists <= most);
	if (getenv("COMPARE_RATES"))
		printf("false alarms: %zu of %zu in latencies, %zu in categories\n", all - same, all, lists);
}

static void a_shift_is_found(void)
{
	struct population shifted = plain;
	size_t lists = 0;

	shifted.kept_above_ns = 3 * MS;
	shifted.factor[1] = 1.5;
	CU_ASSERT(count_verdicts(&shifted, 12, 77, COMPARE_WORSE, &lists) >= 10);
	CU_ASSERT(lists >= 10);
	shifted.factor[1] = 1 / 1.5;
	CU_ASSERT(count_verdicts(&shifted, 12, 78, COMPARE_BETTER, &lists) >= 10);
}

/*
 * The median grows, what few and long waits make of mean and p99 hides it: that is a difference, though none that a
 * limit is on.
 */
static void a_shift_of_the_median_alone_is_a_difference(void)
{
	struct population quick = plain;
	struct two_sides two;
	struct comparison comparison;

	quick.request_cnt = 4000;
	quick.lock_share[0] = quick.lock_share[1] = 0.3;
	quick.quick[1] = 1.2;
	two_sides__init(&two, &quick, 31);
	compare(&comparison, &two);
	CU_ASSERT_FALSE(comparison.metrics[0].like.differs);
	CU_ASSERT_FALSE(comparison.metrics[3].like.differs);
	CU_ASSERT_TRUE(comparison.metrics[1].like.differs);
	CU_ASSERT_EQUAL(comparison.verdict, COMPARE_WORSE);
	CU_ASSERT_FALSE(comparison.exceeds);
	comparison_free(&comparison);
	two_sides__free(&two);
}

/* A few more requests that wait for a lock: the lines that grow are lock's. */
static void the_part_that_grew_is_named(void)
{
	struct population locks = plain;
	struct two_sides two;
	struct comparison comparison;
	double mean = 0, total;

	locks.request_cnt = 4000;
	locks.lock_share[1] = 0.1;
	two_sides__init(&two, &locks, 5);
	compare(&comparison, &two);
	CU_ASSERT_EQUAL(comparison.verdict, COMPARE_WORSE);
	CU_ASSERT_TRUE(comparison.exceeds);
	CU_ASSERT_FATAL(comparison.categories.cnt > 1);
	CU_ASSERT_STRING_EQUAL(comparison.categories.lines[0].name, "lock");
	CU_ASSERT_TRUE(comparison.categories.lines[0].mean_diff.differs);
	CU_ASSERT_DOUBLE_EQUAL(comparison.categories.lines[0].mean_diff.value, 0.05 * 5 * MS, 0.1 * MS);
	for (size_t l = 0; l < comparison.categories.cnt; l++)
		mean += comparison.categories.lines[l].mean_diff.value;
	total = comparison.metrics[0].like_ns[COMPARE_B] - comparison.metrics[0].like_ns[COMPARE_A];
	CU_ASSERT_DOUBLE_EQUAL(mean, total, 1);
	comparison_free(&comparison);
	two_sides__free(&two);
}

/* Simpson's paradox: each type is faster, all together are slower. */
static void the_mix_of_types_is_taken_out(void)
{
	struct population mixed = plain;
	struct two_sides two;
	struct comparison comparison;

	mixed.request_cnt = 4000;
	mixed.slow_share[0] = 0.1;
	mixed.slow_share[1] = 0.3;
	mixed.factor[1] = 0.8;
	mixed.lock_share[0] = mixed.lock_share[1] = 0;
	two_sides__init(&two, &mixed, 9);
	compare(&comparison, &two);
	CU_ASSERT_TRUE(comparison.mixed);
	CU_ASSERT(comparison.metrics[0].all.ci.lo > 0.2);
	CU_ASSERT_EQUAL(comparison.verdict, COMPARE_BETTER);
	CU_ASSERT_FALSE(comparison.exceeds);
	CU_ASSERT_DOUBLE_EQUAL(comparison.metrics[0].like.value, -0.2, 0.04);
	CU_ASSERT_DOUBLE_EQUAL(comparison.metrics[3].like.value, -0.2, 0.08);
	CU_ASSERT_EQUAL(comparison.type_cnt, 2);
	for (size_t t = 0; t < comparison.type_cnt; t++)
		CU_ASSERT_DOUBLE_EQUAL(comparison.types[t].mean.value, -0.2, 0.06);
	comparison_free(&comparison);
	two_sides__free(&two);
}

/* A type that is new is no part of like for like. */
static void types_of_one_side_are_apart(void)
{
	struct population mixed = plain;
	struct two_sides two;
	struct comparison comparison;

	mixed.slow_share[1] = 0.5;
	two_sides__init(&two, &mixed, 10);
	compare(&comparison, &two);
	CU_ASSERT_EQUAL(comparison.verdict, COMPARE_SAME);
	CU_ASSERT(comparison.metrics[0].all.ci.lo > 1);
	CU_ASSERT_DOUBLE_EQUAL(comparison.like_share[COMPARE_A], 1, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(comparison.like_share[COMPARE_B], 0.5, 0.05);
	CU_ASSERT_FALSE(comparison.types[1].in_both);
	comparison_free(&comparison);
	two_sides__free(&two);
}

/* What a comparison says it would see, it sees about as often as it says. */
static void the_detectable_size_is_detected(void)
{
	struct population shifted = plain;
	struct comparison comparison;
	struct two_sides two;
	size_t lists = 0, found;

	two_sides__init(&two, &shifted, 21);
	compare(&comparison, &two);
	CU_ASSERT_EQUAL(comparison.verdict, COMPARE_SAME);
	shifted.factor[1] = 1 + comparison.metrics[0].like.detectable;
	CU_ASSERT(shifted.factor[1] > 1.01 && shifted.factor[1] < 1.4);
	comparison_free(&comparison);
	two_sides__free(&two);
	found = count_verdicts(&shifted, 20, 500, COMPARE_WORSE, &lists);
	CU_ASSERT(found >= 12);
	if (getenv("COMPARE_RATES"))
		printf("a shift by the detectable %.1f %%: found in %zu of 20\n", 100 * (shifted.factor[1] - 1), found);
}

static void the_same_rows_are_the_same(void)
{
	struct two_sides two;
	struct comparison comparison;

	two_sides__init(&two, &plain, 3);
	memset(two.sides, COMPARE_IN_A | COMPARE_IN_B, two.fixture.dataset.row_cnt);
	compare(&comparison, &two);
	CU_ASSERT_EQUAL(comparison.verdict, COMPARE_SAME);
	CU_ASSERT_DOUBLE_EQUAL(comparison.metrics[3].like.value, 0, 1e-12);
	CU_ASSERT_EQUAL(comparison.both_cnt, two.fixture.dataset.row_cnt);
	comparison_free(&comparison);
	two_sides__free(&two);
}

static void few_rows_tell_nothing(void)
{
	struct population few = plain;
	struct two_sides two;
	struct comparison comparison;
	const struct compare_opts opts = {.tail = 0.99, .limits = {0, NAN, NAN, 0, NAN}};

	few.request_cnt = 3;
	two_sides__init(&two, &few, 3);
	compare(&comparison, &two);
	CU_ASSERT_EQUAL(comparison.verdict, COMPARE_UNKNOWN);
	CU_ASSERT_FALSE(comparison.exceeds);
	comparison_free(&comparison);
	memset(two.sides, COMPARE_IN_A, two.fixture.dataset.row_cnt);
	CU_ASSERT_EQUAL(comparison_make(&comparison, &two.fixture.dataset, two.sides, &opts), -ENODATA);
	two_sides__free(&two);
}

/* All late requests of B are in one episode, which says nothing of how such episodes differ. */
static void late_requests_of_one_episode_tell_nothing(void)
{
	struct population even = plain;
	struct two_sides two;
	struct comparison comparison;
	struct dataset *dataset;

	even.lock_share[COMPARE_A] = even.lock_share[COMPARE_B] = 0;
	two_sides__init(&two, &even, 5);
	dataset = &two.fixture.dataset;
	for (size_t row = 2000; row < 2020; row++)
		fixture_add(&two.fixture, row, WL_CATEGORY_LOCK, 50000000);
	compare(&comparison, &two);
	CU_ASSERT_EQUAL(dataset->row_cnt, 3000);
	for (size_t l = 0; l < comparison.categories.cnt; l++) {
		const struct compare_line *line = &comparison.categories.lines[l];

		if (strcmp(line->name, "lock"))
			continue;
		CU_ASSERT(line->late_diff.value > 30e6);
		CU_ASSERT(isnan(line->late_diff.ci.lo) && isnan(line->late_diff.ci.hi));
		CU_ASSERT_FALSE(line->late_diff.differs);
	}
	comparison_free(&comparison);
	two_sides__free(&two);
}

static void students_t_is_right(void)
{
	CU_ASSERT_DOUBLE_EQUAL(compare_student(4), 2.7764, 0.01);
	CU_ASSERT_DOUBLE_EQUAL(compare_student(9), 2.2622, 0.001);
	CU_ASSERT_DOUBLE_EQUAL(compare_student(39), 2.0227, 0.001);
	CU_ASSERT(isnan(compare_student(0)));
}

static void sides_are_parsed(void)
{
	static const char *const wrong[] = {"rec@",       "rec@-",           "rec@14:00", "rec@14:10-14:00",
					    "rec@0s-10x", "rec@0s-1s@2s-3s", "rec@host="};
	const uint64_t begin = 1795219200ull * 1000000000, hour = 3600ull * 1000000000;
	struct side side;
	const char *bad;

	CU_ASSERT_EQUAL(side__parse(&side, "rec@host=web*@14:00-14:10", &bad), 0);
	CU_ASSERT_STRING_EQUAL(side.path, "rec");
	CU_ASSERT_STRING_EQUAL(side.host, "web*");
	CU_ASSERT_TRUE(side.has_span);
	CU_ASSERT_EQUAL(side_time__wall_ns(&side.from, begin + 13 * hour, begin + 15 * hour), begin + 14 * hour);
	/* A recording from 23:00 on: 14:00 is of the next day if it lasts that long. */
	CU_ASSERT_EQUAL(side_time__wall_ns(&side.from, begin + 23 * hour, begin + 47 * hour), begin + 38 * hour);
	CU_ASSERT_EQUAL(side_time__wall_ns(&side.from, begin + 23 * hour, begin + 24 * hour), begin + 14 * hour);
	side__free(&side);
	CU_ASSERT_EQUAL(side__parse(&side, "a@b/rec@30-1.5m", &bad), 0);
	CU_ASSERT_STRING_EQUAL(side.path, "a@b/rec");
	CU_ASSERT_EQUAL(side_time__wall_ns(&side.from, begin, 0), begin + 30ull * 1000000000);
	CU_ASSERT_EQUAL(side_time__wall_ns(&side.to, begin, 0), begin + 90ull * 1000000000);
	side__free(&side);
	CU_ASSERT_EQUAL(side__parse(&side, "rec@2026-11-21T14:00-", &bad), 0);
	CU_ASSERT_EQUAL(side.from.kind, SIDE_TIME_WALL);
	CU_ASSERT_EQUAL(side.to.kind, SIDE_TIME_OPEN);
	side__free(&side);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		CU_ASSERT_EQUAL(side__parse(&side, wrong[i], &bad), -EINVAL);
		side__free(&side);
	}
}

#define US       1000ULL
#define REQUESTS 400

static void put_tick(struct row_writer *to, uint64_t ts, const char *frames)
{
	row_begin(to, SHARD_TABLE_STACK);
	row_set_ts(to, STACK_TS, ts);
	row_set_u64(to, STACK_PID, 200);
	row_set_u64(to, STACK_TID, 200);
	row_set_str(to, STACK_STATE, "running");
	row_set_str(to, STACK_FRAMES, frames);
	row_end(to, SHARD_TABLE_STACK);
}

/* Each request parses for 200 µs, then replies for 100 µs; on side b it sorts for 300 µs in between. */
static void put_side(const char *dir, const char *host, uint64_t session_id, bool sorts)
{
	struct row_writer to;

	row_writer_open(&to, dir, host, session_id, 200);
	row_put_thread(&to, 200, 200, "server");
	for (uint64_t i = 0; i < REQUESTS; i++) {
		uint64_t begin_ts = (i + 1) * 1000 * US, at = begin_ts + 200 * US + i % 7 * US;
		uint64_t end_ts = at + (sorts ? 400 : 100) * US;

		row_put_segment(&to, 200, begin_ts, end_ts, "running", i + 1);
		for (uint64_t ts = begin_ts + (i % 50) * US; ts < end_ts; ts += 50 * US)
			put_tick(&to, ts,
				 ts < at                       ? "main;serve;parse"
				 : sorts && ts < at + 300 * US ? "main;serve;lookup;sort"
							       : "main;serve;reply");
		row_put_interval(&to, i + 1, 200, "tcp:80", begin_ts, end_ts, 0, 0);
	}
	row_writer_close(&to);
}

static const struct compare_line *line_named(const struct compare_list *list, const char *name)
{
	for (size_t i = 0; i < list->cnt; i++)
		if (!strcmp(list->lines[i].name, name))
			return &list->lines[i];
	return NULL;
}

/* Both recordings, whose critical paths are known, side by side. */
struct followed {
	struct findings findings;
	struct comparison comparison;
	struct test_dir dir;
	uint8_t *sides;
};

/* Side b is session 8. */
static void followed__compare(struct followed *followed)
{
	struct compare_opts opts = {.tail = 0.99, .bootstrap_cnt = 100, .seed = 7, .limits = {0, NAN, NAN, 0, NAN}};
	struct shard_reader *reader = test_reader__open(followed->dir.path);
	struct findings *findings = &followed->findings;
	const struct dataset *dataset = &findings->dataset;

	*findings = (struct findings){0};
	CU_ASSERT_EQUAL_FATAL(dataset_load(&findings->dataset, reader, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(findings_follow(findings, reader, true), 1);
	followed->sides = calloc(dataset->row_cnt, 1);
	for (size_t row = 0; row < dataset->row_cnt; row++)
		followed->sides[row] = dataset->session_ids[dataset->session[row]] == 8 ? COMPARE_IN_B : COMPARE_IN_A;
	opts.paths = &findings->paths;
	opts.roots = &findings->roots;
	CU_ASSERT_EQUAL_FATAL(comparison_make(&followed->comparison, dataset, followed->sides, &opts), 0);
	shard_reader__free(reader);
}

static void followed__free(struct followed *followed)
{
	comparison_free(&followed->comparison);
	free(followed->sides);
	findings_unfollow(&followed->findings);
	dataset_free(&followed->findings.dataset);
	test_dir__remove(&followed->dir);
}

/* Its callers did not change, though it is in their time; the lines sum to the difference of the means. */
static void the_function_that_grew_is_named(void)
{
	struct followed followed;
	const struct comparison *comparison = &followed.comparison;
	const struct compare_list *functions = &comparison->functions;
	double sum = 0;

	test_dir__make(&followed.dir);
	put_side(followed.dir.path, "a", 7, false);
	put_side(followed.dir.path, "b", 8, true);
	followed__compare(&followed);
	CU_ASSERT_EQUAL(functions->cnt, 5);
	CU_ASSERT_STRING_EQUAL(functions->lines[0].name, "sort");
	CU_ASSERT(functions->lines[0].mean_diff.differs);
	CU_ASSERT_DOUBLE_EQUAL(functions->lines[0].mean_diff.value, 300000, 15000);
	CU_ASSERT_EQUAL(functions->lines[0].mean[COMPARE_A], 0);
	CU_ASSERT_PTR_NULL(line_named(functions, "serve"));
	for (size_t i = 1; i < functions->cnt; i++)
		CU_ASSERT(fabs(functions->lines[i].mean_diff.value) < 15000);
	for (size_t i = 0; i < functions->cnt; i++)
		sum += functions->lines[i].mean_diff.value;
	CU_ASSERT_DOUBLE_EQUAL(sum, comparison->metrics[0].like_ns[1] - comparison->metrics[0].like_ns[0], 1);
	CU_ASSERT_PTR_NOT_NULL(line_named(functions, "in no sampled function"));
	CU_ASSERT_EQUAL(comparison->verdict, COMPARE_WORSE);
	followed__free(&followed);
}

/* Each request runs for 300 µs; every `every`th waits for a disk for 1 ms. */
static void put_disk_side(const char *dir, const char *host, uint64_t session_id, uint64_t every)
{
	struct row_writer to;

	row_writer_open(&to, dir, host, session_id, 200);
	row_put_thread(&to, 200, 200, "server");
	for (uint64_t i = 0; i < REQUESTS; i++) {
		uint64_t begin_ts = (i + 1) * 2000 * US, wait_ns = i % every ? 0 : 1000 * US;
		uint64_t at = begin_ts + 100 * US, end_ts = at + wait_ns + 200 * US;

		row_put_segment(&to, 200, begin_ts, at, "running", i + 1);
		if (wait_ns)
			row_put_segment(&to, 200, at, at + wait_ns, "blocked.disk", i + 1);
		row_put_segment(&to, 200, at + wait_ns, end_ts, "running", i + 1);
		row_put_interval(&to, i + 1, 200, "tcp:80", begin_ts, end_ts, 0, 0);
	}
	row_writer_close(&to);
}

static const struct compare_line *root_of(const struct comparison *comparison, enum root_kind kind)
{
	for (size_t i = 0; i < comparison->roots.cnt; i++) {
		const struct cause *root = comparison->roots.lines[i].root;

		if (root && root->root.kind == kind)
			return &comparison->roots.lines[i];
	}
	return NULL;
}

/* One request in 400 of A waits for the disk, which p99 does not see; one in 20 of B.  Four beyond p99 give no
 * interval. */
static void a_root_has_a_gain_on_either_side(void)
{
	struct followed followed;
	const struct cause_gain *whole = followed.comparison.whole;
	const struct compare_line *disk;

	test_dir__make(&followed.dir);
	put_disk_side(followed.dir.path, "a", 7, REQUESTS);
	put_disk_side(followed.dir.path, "b", 8, 20);
	followed__compare(&followed);
	CU_ASSERT_EQUAL(whole[COMPARE_A].p99_ns, 300.0 * US);
	CU_ASSERT_EQUAL(whole[COMPARE_B].p99_ns, 1300.0 * US);
	CU_ASSERT_DOUBLE_EQUAL(whole[COMPARE_B].mean_ns, 350.0 * US, 1);
	disk = root_of(&followed.comparison, ROOT_DISK);
	CU_ASSERT_PTR_NOT_NULL_FATAL(disk);
	for (int s = 0; s < COMPARE_SIDE_CNT; s++) {
		CU_ASSERT_EQUAL(disk->gain[s].p99_ns, 300.0 * US);
		CU_ASSERT_EQUAL(disk->gain[s].p999_ns, 300.0 * US);
		CU_ASSERT_DOUBLE_EQUAL(disk->gain[s].mean_ns, 300.0 * US, 1);
		CU_ASSERT(isnan(disk->gain[s].p99_ci.lo));
		CU_ASSERT(isnan(disk->gain[s].p99_ci.hi));
	}
	followed__free(&followed);
}

/* What both sides do has its gain on both; what A has none of changes nothing there. */
static void a_root_of_one_side_has_no_gain_on_the_other(void)
{
	struct followed followed;
	const struct compare_line *disk;

	test_dir__make(&followed.dir);
	put_disk_side(followed.dir.path, "a", 7, 20);
	put_side(followed.dir.path, "b", 8, false);
	followed__compare(&followed);
	disk = root_of(&followed.comparison, ROOT_DISK);
	CU_ASSERT_PTR_NOT_NULL_FATAL(disk);
	CU_ASSERT_EQUAL(disk->gain[COMPARE_A].p99_ns, 300.0 * US);
	CU_ASSERT_EQUAL(disk->gain[COMPARE_B].p99_ns, followed.comparison.whole[COMPARE_B].p99_ns);
	CU_ASSERT_EQUAL(disk->gain[COMPARE_B].mean_ns, followed.comparison.whole[COMPARE_B].mean_ns);
	followed__free(&followed);
}

int suite_compare(void)
{
	static const struct unit_test tests[] = {
		{"equal populations do not differ", equal_populations_do_not_differ},
		{"a shift is found", a_shift_is_found},
		{"a shift of the median alone is a difference", a_shift_of_the_median_alone_is_a_difference},
		{"the part that grew is named", the_part_that_grew_is_named},
		{"the function that grew is named", the_function_that_grew_is_named},
		{"a root has a gain on either side", a_root_has_a_gain_on_either_side},
		{"a root of one side has no gain on the other", a_root_of_one_side_has_no_gain_on_the_other},
		{"the mix of types is taken out", the_mix_of_types_is_taken_out},
		{"types of one side are apart", types_of_one_side_are_apart},
		{"the detectable size is detected", the_detectable_size_is_detected},
		{"the same rows are the same", the_same_rows_are_the_same},
		{"few rows tell nothing", few_rows_tell_nothing},
		{"late requests of one episode tell nothing", late_requests_of_one_episode_tell_nothing},
		{"Student's t is right", students_t_is_right},
		{"sides are parsed", sides_are_parsed},
	};

	return unit_suite("compare", tests, sizeof(tests) / sizeof(tests[0]));
}
