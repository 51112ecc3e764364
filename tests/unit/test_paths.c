// SPDX-License-Identifier: GPL-2.0-or-later
/* From shards with a planted chain to what a report says of it. */
#include "test_analysis_fixture.h"
#include "test_shard_util.h"
#include "trace_fixture.h"
#include "unit.h"

#include "analysis/paths.h"
#include "analysis/story.h"
#include "view/text_story.h"
#include "view/view.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CNT 2000

/* A recording, all the way to its report. */
struct whole {
	struct test_dir dir;
	struct shard_reader *reader;
	struct dataset dataset;
	struct traces traces;
	struct paths paths;
	struct report report;
};

static void whole_make_of(struct whole *whole, const char *type, void (*write)(const char *dir, uint64_t cnt))
{
	const struct dataset_filter filter = {.type = type};
	struct report_opts opts = {.tail = 0.95, .seed = 1, .paths = &whole->paths, .slowest = 5};

	test_dir__make(&whole->dir);
	write(whole->dir.path, CNT);
	whole->reader = test_reader__open(whole->dir.path);
	CU_ASSERT_EQUAL_FATAL(dataset_load(&whole->dataset, whole->reader, &filter), 0);
	CU_ASSERT_EQUAL_FATAL(traces_load(&whole->traces, whole->reader), 1);
	CU_ASSERT_EQUAL_FATAL(paths_make(&whole->paths, &whole->traces, &whole->dataset, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(report_make(&whole->report, &whole->dataset, &opts), 0);
}

static void whole_make(struct whole *whole, const char *type)
{
	whole_make_of(whole, type, trace_fixture_write);
}

static void whole_free(struct whole *whole)
{
	report_free(&whole->report);
	paths_free(&whole->paths);
	traces_free(&whole->traces);
	dataset_free(&whole->dataset);
	shard_reader__free(whole->reader);
	test_dir__remove(&whole->dir);
}

static const struct path_line *line_of(const struct report *report, enum wl_category category)
{
	for (size_t i = 0; i < report->path->line_cnt; i++)
		if (report->path->lines[i].category == category)
			return &report->path->lines[i];
	return NULL;
}

static void the_planted_chain_is_found(void)
{
	const struct path_line *lock, *runq;
	struct whole whole;

	whole_make(&whole, NULL);
	lock = line_of(&whole.report, WL_CATEGORY_LOCK);
	runq = line_of(&whole.report, WL_CATEGORY_RUNQ);
	CU_ASSERT_FATAL(lock && runq);
	CU_ASSERT_EQUAL(lock, &whole.report.path->lines[0]);
	CU_ASSERT_STRING_EQUAL(lock->role, "flusher");
	CU_ASSERT_STRING_EQUAL(lock->object, "web+0x40");
	CU_ASSERT_STRING_EQUAL(lock->culprit_comm, "flusher");
	CU_ASSERT(lock->culprit_pid == TRACE_PID && lock->culprit_tid == TRACE_FLUSHER);
	CU_ASSERT(lock->doing == WL_CATEGORY_IO_DISK && lock->doing_share > 0.99);
	CU_ASSERT_DOUBLE_EQUAL(lock->tail_share, 0.6, 1e-6);
	CU_ASSERT(lock->late_ns == 300000 && lock->typical_ns == 0 && lock->late_met == 1);
	CU_ASSERT_STRING_EQUAL(runq->role, "flusher");
	CU_ASSERT_STRING_EQUAL(runq->culprit_comm, "hog");
	CU_ASSERT(runq->culprit_pid == TRACE_HOG && runq->wait == WL_CATEGORY_LOCK);
	CU_ASSERT_DOUBLE_EQUAL(runq->tail_share, 0.4, 1e-6);
	/* The same in the ranking of causes. */
	CU_ASSERT_FATAL(whole.report.cause_cnt >= 2);
	CU_ASSERT_EQUAL(whole.report.causes[0].category, WL_CATEGORY_LOCK);
	CU_ASSERT_EQUAL(whole.report.causes[0].culprit_tid, TRACE_FLUSHER);
	CU_ASSERT_EQUAL(whole.report.causes[1].category, WL_CATEGORY_RUNQ);
	CU_ASSERT_EQUAL(whole.report.causes[1].culprit_pid, TRACE_HOG);
	CU_ASSERT_PTR_NOT_NULL(strstr(whole.report.causes[1].what, "behind a lock (web+0x40)"));
	whole_free(&whole);
}

/* The same recording, where the process that had the CPU was the recorder. */
static void the_recorder_is_apart_from_the_path(void)
{
	struct report_opts opts = {.tail = 0.95, .seed = 1};
	struct dataset_own own = {0, TRACE_HOG};
	double shares = 0;
	struct whole whole;

	test_dir__make(&whole.dir);
	trace_fixture_write(whole.dir.path, CNT);
	whole.reader = test_reader__open(whole.dir.path);
	CU_ASSERT_EQUAL_FATAL(dataset_load(&whole.dataset, whole.reader, NULL), 0);
	whole.dataset.own = &own;
	whole.dataset.own_cnt = 1;
	CU_ASSERT_EQUAL_FATAL(traces_load(&whole.traces, whole.reader), 1);
	CU_ASSERT_EQUAL_FATAL(paths_make(&whole.paths, &whole.traces, &whole.dataset, NULL), 0);
	opts.paths = &whole.paths;
	CU_ASSERT_EQUAL_FATAL(report_make(&whole.report, &whole.dataset, &opts), 0);
	CU_ASSERT_DOUBLE_EQUAL(whole.report.our_own.share, 0.4, 5e-3);
	CU_ASSERT_PTR_NULL(line_of(&whole.report, WL_CATEGORY_RUNQ));
	for (size_t i = 0; i < whole.report.cause_cnt; i++)
		CU_ASSERT_NOT_EQUAL(whole.report.causes[i].category, WL_CATEGORY_RUNQ);
	for (size_t i = 0; i < whole.report.path->line_cnt; i++)
		shares += whole.report.path->lines[i].tail_share;
	ASSERT_NEAR(shares + whole.report.path->rest.tail_share, 1);
	whole_free(&whole);
}

static void the_parts_sum_to_the_whole(void)
{
	struct whole whole;
	double shares = 0, mean_ns = 0;
	size_t wrong = 0;

	whole_make(&whole, NULL);
	for (size_t row = 0; row < whole.dataset.row_cnt; row++) {
		uint64_t sum = 0;

		for (int c = 0; c < WL_CATEGORY_CNT; c++)
			sum += whole.dataset.category_ns[c] ? whole.dataset.category_ns[c][row] : 0;
		wrong += sum != whole.dataset.latency_ns[row];
	}
	CU_ASSERT_EQUAL(wrong, 0);
	for (size_t i = 0; i < whole.report.path->line_cnt; i++) {
		shares += whole.report.path->lines[i].tail_share;
		mean_ns += whole.report.path->lines[i].mean_ns;
	}
	ASSERT_NEAR(shares + whole.report.path->rest.tail_share, 1);
	CU_ASSERT_DOUBLE_EQUAL(mean_ns, (1801 * 100000. + 199 * 600000.) / 2000, 1e-3);
	whole_free(&whole);
}

static void a_lossy_interval_is_counted_and_not_ranked(void)
{
	struct whole whole;

	whole_make(&whole, NULL);
	CU_ASSERT_EQUAL(whole.report.path->walked, CNT + 1);
	CU_ASSERT_EQUAL(whole.report.path->lossy, 1);
	CU_ASSERT_FALSE(whole.paths.ranked[5]);
	CU_ASSERT(whole.paths.ranked[15]);
	for (size_t i = 0; i < whole.paths.entries.cnt; i++)
		CU_ASSERT_NOT_EQUAL_FATAL(whole.paths.entries.items[i].row, 5);
	/* It keeps what its own counters say. */
	CU_ASSERT_EQUAL(whole.dataset.category_ns[WL_CATEGORY_LOCK][5], 500000);
	CU_ASSERT_EQUAL(whole.report.latency.count, CNT + 1);
	for (size_t i = 0; i < whole.report.path->slowest_cnt; i++)
		CU_ASSERT_NOT_EQUAL(whole.report.path->slowest[i].sid, 6);
	CU_ASSERT_EQUAL(whole.report.path->slowest_cnt, 5);
	CU_ASSERT_EQUAL(whole.report.path->slowest[0].sid, 16);
	whole_free(&whole);
}

static void crosstalk_is_told_by_type(void)
{
	const struct crosstalk_line *line;
	struct whole whole;

	whole_make(&whole, "tcp:80");
	CU_ASSERT_EQUAL(whole.dataset.row_cnt, CNT);
	CU_ASSERT_EQUAL_FATAL(whole.report.path->crosstalk_cnt, 1);
	line = whole.report.path->crosstalk;
	CU_ASSERT_STRING_EQUAL(line->type, "tcp:80");
	CU_ASSERT_STRING_EQUAL(line->by_type, "tcp:81");
	CU_ASSERT_EQUAL(line->count, 199);
	CU_ASSERT_EQUAL(line->mean_ns, 500000);
	CU_ASSERT_DOUBLE_EQUAL(line->share, 199 * 500000. / (1800 * 100000. + 199 * 600000.), 1e-9);
	whole_free(&whole);
}

static char *printed(const struct report *report, bool json)
{
	struct view_opts opts = {.top = 10};
	char *text = NULL;
	size_t sz;
	FILE *out = open_memstream(&text, &sz);

	CU_ASSERT_EQUAL(json ? view_json(out, report) : view_text(out, report, &opts), 0);
	fclose(out);
	return text;
}

static void crosstalk_with_what_was_not_kept_has_a_type(void)
{
	struct whole whole;

	whole_make_of(&whole, NULL, trace_fixture_write_unkept);
	CU_ASSERT_EQUAL_FATAL(whole.report.path->crosstalk_cnt, 1);
	CU_ASSERT_STRING_EQUAL(whole.report.path->crosstalk->type, "tcp:80");
	CU_ASSERT_STRING_EQUAL(whole.report.path->crosstalk->by_type, "tcp:82");
	whole_free(&whole);
}

static void both_views_tell_it(void)
{
	struct json_object *root, *path, *lines, *slowest, *steps, *crosstalk, *value;
	struct whole whole;
	char *text;

	whole_make(&whole, NULL);
	text = printed(&whole.report, false);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "Along the critical path"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "sid 16 (tcp:80): 600"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "`flusher` (tid 103) has it and waits for a"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "Locks between requests"));
	free(text);
	text = printed(&whole.report, true);
	root = json_tokener_parse(text);
	free(text);
	CU_ASSERT(json_object_object_get_ex(root, "path", &path));
	CU_ASSERT(json_object_object_get_ex(path, "lines", &lines));
	CU_ASSERT(json_object_object_get_ex(json_object_array_get_idx(lines, 0), "category", &value));
	CU_ASSERT_STRING_EQUAL(json_object_get_string(value), "lock");
	CU_ASSERT(json_object_object_get_ex(path, "slowest", &slowest));
	CU_ASSERT(json_object_object_get_ex(json_object_array_get_idx(slowest, 0), "steps", &steps));
	CU_ASSERT_EQUAL(json_object_array_length(steps), 5);
	CU_ASSERT(json_object_object_get_ex(json_object_array_get_idx(slowest, 0), "sid", &value));
	CU_ASSERT_STRING_EQUAL(json_object_get_string(value), "16");
	CU_ASSERT(json_object_object_get_ex(root, "crosstalk", &crosstalk));
	CU_ASSERT_EQUAL(json_object_array_length(crosstalk), 1);
	json_object_put(root);

	/* Without any detail both keys are there, and null. */
	whole.report.path = NULL;
	text = printed(&whole.report, true);
	root = json_tokener_parse(text);
	free(text);
	CU_ASSERT(json_object_object_get_ex(root, "path", &path) && !path);
	CU_ASSERT(json_object_object_get_ex(root, "crosstalk", &crosstalk) && !crosstalk);
	json_object_put(root);
	whole_free(&whole);
}

static void a_story_is_told(void)
{
	const struct view_opts opts = {.top = 0};
	const struct trace_interval *interval;
	struct arena *arena = arena__new();
	struct path path = {0};
	struct story story;
	struct whole whole;
	char *text = NULL;
	size_t sz;
	FILE *out;

	whole_make(&whole, NULL);
	interval = traces_interval(&whole.traces, traces_session(&whole.traces, TRACE_SESSION), 16);
	CU_ASSERT_FATAL(interval != NULL);
	CU_ASSERT_EQUAL(story_make(&story, &whole.traces, NULL, interval, &path, arena), 0);
	CU_ASSERT(story.step_cnt == 5 && story.steps[2].category == WL_CATEGORY_LOCK);
	CU_ASSERT_STRING_EQUAL(story.steps[2].other_type, "tcp:81");
	CU_ASSERT_STRING_EQUAL(story.steps[1].culprit_comm, "hog");
	out = open_memstream(&text, &sz);
	CU_ASSERT_EQUAL(view_story(out, &story, &opts), 0);
	fclose(out);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "goes to `hog` (pid 900)"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "in fsync"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "50 %"));
	free(text);
	CU_ASSERT_PTR_NULL(traces_interval(&whole.traces, traces_session(&whole.traces, TRACE_SESSION), 999999));
	CU_ASSERT_PTR_NULL(traces_session(&whole.traces, 1));
	path__clear(&path);
	arena__free(arena);
	whole_free(&whole);
}

/* Rows as an enemy would write them: whatever they say, they are counted or clipped. */
static void rows_at_random_are_survived(void)
{
	struct test_rng rng = {99};

	for (int round = 0; round < 20; round++) {
		const struct dataset_filter none = {};
		struct shard_writer_opts opts = {.host = "x", .session_id = TEST_SESSION};
		struct report_opts report_opts = {.tail = 0.9, .seed = 1, .slowest = 3};
		struct shard_writer *writer;
		struct shard_reader *reader;
		struct dataset dataset;
		struct traces traces;
		struct report report;
		struct paths paths;
		struct test_dir dir;
		struct shard_row row;

		test_dir__make(&dir);
		opts.dir = dir.path;
		writer = shard_writer__new(&opts);
		for (int i = 0; i < 400; i++) {
			enum shard_table_id table = (enum shard_table_id)test_rng__below(&rng, SHARD_TABLE_CNT);

			test_row__fill(&row, &shard_tables[table], &rng);
			CU_ASSERT_EQUAL(shard_writer__append(writer, table, &row), 0);
		}
		CU_ASSERT_EQUAL(shard_writer__free(writer), 0);
		reader = test_reader__open(dir.path);
		CU_ASSERT_EQUAL_FATAL(dataset_load(&dataset, reader, &none), 0);
		CU_ASSERT_EQUAL_FATAL(traces_load(&traces, reader), 1);
		CU_ASSERT_EQUAL_FATAL(paths_make(&paths, &traces, &dataset, NULL), 0);
		report_opts.paths = &paths;
		CU_ASSERT_EQUAL_FATAL(report_make(&report, &dataset, &report_opts), 0);
		free(printed(&report, true));
		free(printed(&report, false));
		report_free(&report);
		paths_free(&paths);
		traces_free(&traces);
		dataset_free(&dataset);
		shard_reader__free(reader);
		test_dir__remove(&dir);
	}
}

static void counters_alone_have_no_traces(void)
{
	struct shard_writer_opts opts = {.host = "x", .session_id = TEST_SESSION};
	struct test_rng rng = {3};
	struct shard_writer *writer;
	struct shard_reader *reader;
	struct traces traces;
	struct test_dir dir;
	struct shard_row row;

	test_dir__make(&dir);
	opts.dir = dir.path;
	writer = shard_writer__new(&opts);
	test_row__fill(&row, &shard_tables[SHARD_TABLE_INTERVAL], &rng);
	CU_ASSERT_EQUAL(shard_writer__append(writer, SHARD_TABLE_INTERVAL, &row), 0);
	CU_ASSERT_EQUAL(shard_writer__free(writer), 0);
	reader = test_reader__open(dir.path);
	CU_ASSERT_EQUAL(traces_load(&traces, reader), 0);
	shard_reader__free(reader);
	test_dir__remove(&dir);
}

int suite_paths(void)
{
	static const struct unit_test tests[] = {
		{"the planted chain is found", the_planted_chain_is_found},
		{"the recorder is apart from the path", the_recorder_is_apart_from_the_path},
		{"the parts sum to the whole", the_parts_sum_to_the_whole},
		{"a lossy interval is counted and not ranked", a_lossy_interval_is_counted_and_not_ranked},
		{"crosstalk is told by type", crosstalk_is_told_by_type},
		{"crosstalk with what was not kept has a type", crosstalk_with_what_was_not_kept_has_a_type},
		{"both views tell it", both_views_tell_it},
		{"a story is told", a_story_is_told},
		{"rows at random are survived", rows_at_random_are_survived},
		{"counters alone have no traces", counters_alone_have_no_traces},
	};

	return unit_suite("paths", tests, sizeof(tests) / sizeof(tests[0]));
}
