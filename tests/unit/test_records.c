// SPDX-License-Identifier: GPL-2.0-or-later
/* One record on its way down the sinks of a recording that has no capture. */
#include "session/recording.h"
#include "session/sinks.h"
#include "test_shard_util.h"
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MS 1000000ULL

static const struct record_options options = {.pid = 1};
static struct test_dir dir;

static void open_recording(struct recording *recording)
{
	*recording = (struct recording){.options = &options};
	recording->threads = thread_names__new();
	recording->retention = retention__new(0.99, 1);
	test_dir__make(&dir);
	recording->journal.writer = shard_writer__new(
		&(struct shard_writer_opts){.dir = dir.path, .host = "h", .session_id = TEST_SESSION});
	CU_ASSERT_FATAL(recording->threads && recording->retention && recording->journal.writer);
	CU_ASSERT_FATAL(!recording_summaries_begin(recording));
}

static void close_recording(struct recording *recording)
{
	thread_names__free(recording->threads);
	retention__free(recording->retention);
	summaries__free(recording->summaries);
	request_types__free(recording->types);
	trace__free(recording->trace);
	vec_free(&recording->target.processes);
	shard_writer__free(recording->journal.writer);
	test_dir__remove(&dir);
}

static int take(struct recording *recording, void *record, uint16_t kind, size_t sz)
{
	struct wl_record_header *header = record;

	header->kind = kind;
	header->sz = sz;
	return recording_on_record(recording, header);
}

static void kinds_that_no_sink_takes(void)
{
	struct wl_record_header header = {0};
	struct recording recording;

	open_recording(&recording);
	CU_ASSERT_EQUAL(take(&recording, &header, 0, sizeof(header)), -EBADMSG);
	CU_ASSERT_EQUAL(take(&recording, &header, WL_RECORD_KIND_CNT, sizeof(header)), -EBADMSG);
	/* Calls, where nothing is probed. */
	CU_ASSERT_EQUAL(take(&recording, &header, WL_RECORD_INVOCATION, sizeof(struct wl_invocation_record)), -EBADMSG);
	CU_ASSERT_EQUAL(recording.intervals.received, 0);
	close_recording(&recording);
}

static void ended_and_not_kept(void)
{
	struct wl_brief_record brief = {.sid = 1, .begin_ts = 5 * MS, .end_ts = 7 * MS, .rate = 1U << 31};
	const struct summary *summary;
	struct recording recording;

	open_recording(&recording);
	CU_ASSERT_EQUAL(take(&recording, &brief, WL_RECORD_BRIEF, sizeof(brief)), 0);
	CU_ASSERT_EQUAL(recording.intervals.received, 1);
	CU_ASSERT_EQUAL(recording.intervals.passed_over, 1);
	CU_ASSERT_EQUAL(recording.intervals.kept, 0);
	CU_ASSERT_DOUBLE_EQUAL(recording.intervals.represented, 2, 0);
	summary = summaries__next(recording.summaries, 0, true);
	CU_ASSERT_PTR_NOT_NULL_FATAL(summary);
	CU_ASSERT_DOUBLE_EQUAL(summary->count, 2, 0);
	close_recording(&recording);
}

/* It is counted, and reaches no sink behind retention. */
static void impossible_times(void)
{
	struct wl_interval_record kept = {.sid = 1, .begin_ts = 7 * MS, .end_ts = 5 * MS};
	struct wl_brief_record brief = {.sid = 2, .begin_ts = 7 * MS, .end_ts = 5 * MS};
	struct recording recording;

	open_recording(&recording);
	CU_ASSERT_EQUAL(take(&recording, &kept, WL_RECORD_INTERVAL, sizeof(kept)), 0);
	CU_ASSERT_EQUAL(take(&recording, &brief, WL_RECORD_BRIEF, sizeof(brief)), 0);
	CU_ASSERT_EQUAL(recording.intervals.received, 2);
	CU_ASSERT_EQUAL(recording.intervals.impossible, 2);
	CU_ASSERT_EQUAL(recording.intervals.kept + recording.intervals.passed_over, 0);
	CU_ASSERT_DOUBLE_EQUAL(recording.intervals.represented, 0, 0);
	CU_ASSERT_PTR_NULL(summaries__next(recording.summaries, 0, true));
	close_recording(&recording);
}

/* The type that the first bytes give is that of every later sink; the record itself stays as it came. */
static void named_before_it_is_summed_up(void)
{
	static const char first[] = "GET /orders HTTP/1.1\r\n\r\n";
	struct wl_brief_record *brief = calloc(1, sizeof(*brief) + sizeof(first));
	const struct summary *summary;
	struct recording recording;
	char type[INTERVAL_TYPE_LEN];

	open_recording(&recording);
	recording.types = request_types__new(REQUEST_NONE);
	CU_ASSERT_FATAL(brief && recording.types);
	brief->begin_ts = MS;
	brief->end_ts = 2 * MS;
	brief->type = WL_SOURCE_TCP << 16 | 80;
	brief->conn = 1;
	brief->first_len = brief->first_total = sizeof(first) - 1;
	memcpy(brief->first, first, sizeof(first) - 1);
	CU_ASSERT_EQUAL(take(&recording, brief, WL_RECORD_BRIEF, sizeof(*brief) + sizeof(first)), 0);
	CU_ASSERT_EQUAL(brief->type, WL_SOURCE_TCP << 16 | 80);
	summary = summaries__next(recording.summaries, 0, true);
	CU_ASSERT_PTR_NOT_NULL_FATAL(summary);
	CU_ASSERT_STRING_EQUAL(interval_type_name(summary->type, NULL, NULL, recording.types, type, sizeof(type)),
			       "tcp:80 GET /orders");
	free(brief);
	close_recording(&recording);
}

static int take_mysql(struct recording *recording, const char *first, size_t len)
{
	struct wl_brief_record *brief = calloc(1, sizeof(*brief) + len);
	static uint64_t sid;
	int err;

	CU_ASSERT_PTR_NOT_NULL_FATAL(brief);
	brief->sid = ++sid;
	brief->begin_ts = MS;
	brief->end_ts = 2 * MS;
	brief->type = WL_SOURCE_TCP << 16 | 3306;
	brief->conn = 1;
	brief->first_len = brief->first_total = (uint32_t)len;
	memcpy(brief->first, first, len);
	err = take(recording, brief, WL_RECORD_BRIEF, sizeof(*brief) + len);
	free(brief);
	return err;
}

/* The ring that has the execution is read before the one that has the preparation. */
static void executed_before_it_was_prepared(void)
{
	static const char query[] = "\x09\0\0\0\x03SELECT 7", execute[] = "\x0a\0\0\0\x17\2\0\0\0\0\1\0\0\0",
			  prepared[] = "\x02\0\0\0\xff"
				       "DELETE 12";
	struct recording recording;
	char type[INTERVAL_TYPE_LEN];
	bool is_seen = false;

	open_recording(&recording);
	recording.types = request_types__new(REQUEST_NONE);
	CU_ASSERT_PTR_NOT_NULL_FATAL(recording.types);
	CU_ASSERT_EQUAL(take_mysql(&recording, query, sizeof(query) - 1), 0);
	CU_ASSERT_EQUAL(take_mysql(&recording, execute, sizeof(execute) - 1), 0);
	CU_ASSERT_EQUAL(recording.intervals.received, 1);
	CU_ASSERT_EQUAL(take_mysql(&recording, prepared, sizeof(prepared) - 1), 0);
	CU_ASSERT_EQUAL(recording.intervals.received, 2);
	CU_ASSERT_EQUAL(recording_hand_early(&recording), 0);
	CU_ASSERT_EQUAL(recording.intervals.received, 3);
	/* What nobody was seen to prepare is taken as it is, once. */
	CU_ASSERT_EQUAL(take_mysql(&recording, "\x0a\0\0\0\x17\7\0\0\0\0\1\0\0\0", sizeof(execute) - 1), 0);
	CU_ASSERT_EQUAL(recording_hand_early(&recording), 0);
	CU_ASSERT_EQUAL(recording_hand_early(&recording), 0);
	CU_ASSERT_EQUAL(recording.intervals.received, 4);
	for (const struct summary *s; (s = summaries__next(recording.summaries, 0, true));) {
		interval_type_name(s->type, NULL, NULL, recording.types, type, sizeof(type));
		is_seen |= !strcmp(type, "tcp:3306 DELETE ?") && s->count == 1;
	}
	CU_ASSERT(is_seen);
	vec_free(&recording.early.records);
	close_recording(&recording);
}

static void thread_gets_its_name(void)
{
	struct wl_task_record task = {
		.event = WL_TASK_SEEN, .ts = MS, .pid = 7, .tid = 8, .comm = "worker", .parent_pid = 1};
	struct recording recording;

	open_recording(&recording);
	CU_ASSERT_EQUAL(take(&recording, &task, WL_RECORD_TASK, sizeof(task)), 0);
	CU_ASSERT_STRING_EQUAL(thread_names__get(recording.threads, 8, 2 * MS), "worker");
	/* A thread is no process of the target. */
	CU_ASSERT_EQUAL(recording.target.processes.cnt, 0);
	task = (struct wl_task_record){.event = WL_TASK_RENAMED, .ts = 3 * MS, .pid = 7, .tid = 8, .comm = "flusher"};
	CU_ASSERT_EQUAL(take(&recording, &task, WL_RECORD_TASK, sizeof(task)), 0);
	CU_ASSERT_STRING_EQUAL(thread_names__get(recording.threads, 8, 2 * MS), "worker");
	CU_ASSERT_STRING_EQUAL(thread_names__get(recording.threads, 8, 4 * MS), "flusher");
	task.event = WL_TASK_RENAMED + 1;
	CU_ASSERT_EQUAL(take(&recording, &task, WL_RECORD_TASK, sizeof(task)), -EBADMSG);
	close_recording(&recording);
}

static int no_row(void *owner, enum shard_table_id table, const struct shard_row *row)
{
	(void)owner, (void)table, (void)row;
	return 0;
}

static void trace_takes_what_is_its_own(void)
{
	struct wl_brief_record brief = {.sid = 1, .begin_ts = 5 * MS, .end_ts = 7 * MS};
	struct wl_segment_record segment = {.begin_ts = MS, .end_ts = 2 * MS, .tid = 8, .pid = 7};
	struct wl_stack_record stack = {0};
	struct recording recording;
	struct trace_counts counts;

	open_recording(&recording);
	/* In counters mode nothing takes it. */
	CU_ASSERT_EQUAL(take(&recording, &segment, WL_RECORD_SEGMENT, sizeof(segment)), 0);
	recording.trace = trace__new(&(struct trace_opts){
		.memory = 1 << 20, .append = no_row, .owner = &recording, .threads = recording.threads});
	CU_ASSERT_PTR_NOT_NULL_FATAL(recording.trace);
	CU_ASSERT_EQUAL(take(&recording, &segment, WL_RECORD_SEGMENT, sizeof(segment)), 0);
	CU_ASSERT_EQUAL(take(&recording, &brief, WL_RECORD_BRIEF, sizeof(brief)), 0);
	CU_ASSERT_EQUAL(take(&recording, &stack, WL_RECORD_STACK, sizeof(stack)), 0);
	trace__counts(recording.trace, &counts);
	CU_ASSERT_EQUAL(counts.taken[WL_RECORD_SEGMENT], 1);
	CU_ASSERT_EQUAL(counts.taken[WL_RECORD_STACK], 0);
	close_recording(&recording);
}

int suite_records(void)
{
	static const struct unit_test tests[] = {
		{"kinds that no sink takes", kinds_that_no_sink_takes},
		{"an interval that is not kept", ended_and_not_kept},
		{"times that cannot be true go no further", impossible_times},
		{"a request is named before it is summed up", named_before_it_is_summed_up},
		{"a statement is executed before it was prepared", executed_before_it_was_prepared},
		{"a thread gets its name", thread_gets_its_name},
		{"trace mode takes what is its own", trace_takes_what_is_its_own},
	};

	return unit_suite("records", tests, sizeof(tests) / sizeof(tests[0]));
}
