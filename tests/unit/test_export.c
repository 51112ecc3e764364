// SPDX-License-Identifier: GPL-2.0-or-later
#include "row_writer.h"
#include "test_shard_util.h"
#include "trace_fixture.h"
#include "unit.h"
#include "wire_fields.h"

#include "analysis/story.h"
#include "view/export.h"

#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CNT 200

struct sink {
	FILE *out;
	char *bytes;
	size_t sz;
};

static void sink__open(struct sink *sink)
{
	*sink = (struct sink){0};
	sink->out = open_memstream(&sink->bytes, &sink->sz);
}

static void sink__close(struct sink *sink)
{
	fclose(sink->out);
}

static struct shard_reader *recording(struct test_dir *dir)
{
	test_dir__make(dir);
	trace_fixture_write(dir->path, CNT);
	return test_reader__open(dir->path);
}

static void every_row_is_a_line_of_json(void)
{
	size_t segments = 0, intervals = 0, nulls = 0, lines = 0;
	struct json_object *row, *value;
	struct shard_reader *reader;
	struct test_dir dir;
	struct sink sink;
	char *rest, *line;

	reader = recording(&dir);
	sink__open(&sink);
	CU_ASSERT_EQUAL(export_jsonl(sink.out, reader, NULL), 0);
	sink__close(&sink);
	for (rest = sink.bytes; (line = strsep(&rest, "\n")) && *line; lines++) {
		row = json_tokener_parse(line);
		CU_ASSERT_FATAL(row != NULL);
		CU_ASSERT(json_object_object_get_ex(row, "table", &value));
		segments += !strcmp(json_object_get_string(value), "segment");
		intervals += !strcmp(json_object_get_string(value), "interval");
		nulls += json_object_object_get_ex(row, "owner_tid", &value) && !value;
		json_object_put(row);
	}
	shard_reader__rewind(reader);
	CU_ASSERT_EQUAL(lines, test_reader__count_rows(reader, NULL));
	CU_ASSERT_EQUAL(intervals, CNT + 1);
	CU_ASSERT(segments > CNT && nulls == segments - CNT / 10);
	free(sink.bytes);

	sink__open(&sink);
	CU_ASSERT_EQUAL(export_jsonl(sink.out, reader, "nonsense"), -ENOENT);
	sink__close(&sink);
	CU_ASSERT_EQUAL(sink.sz, 0);
	free(sink.bytes);
	shard_reader__free(reader);
	test_dir__remove(&dir);
}

/* Of a store of several hosts every row says whose it is. */
static void rows_name_their_host(void)
{
	static const char *const hosts[] = {"db-1", "web.2"};
	struct shard_row row = {.values = {[SESSION_KEY].str = "k", [SESSION_VALUE].str = "v"}};
	struct shard_reader *reader;
	struct test_dir dir;
	struct sink sink;
	char path[128];

	test_dir__make(&dir);
	for (size_t i = 0; i < 2; i++) {
		struct shard_buf bytes = {0};

		test_shard__begin(&bytes);
		test_shard__put_block(&bytes, &shard_tables[SHARD_TABLE_SESSION], &row, 1, SHARD_CODEC_NONE);
		snprintf(path, sizeof(path), "%s/%s-0123456789abcdef-00000%zu.wls", dir.path, hosts[i], i);
		test_file__write(path, bytes.items, bytes.cnt);
		vec_free(&bytes);
	}
	reader = test_reader__open(dir.path);
	sink__open(&sink);
	CU_ASSERT_EQUAL(export_csv(sink.out, reader, NULL), 0);
	sink__close(&sink);
	CU_ASSERT_STRING_EQUAL(sink.bytes, "table,session,ts,key,value,host\r\n"
					   "session,0123456789abcdef,0,k,v,db-1\r\n"
					   "session,0123456789abcdef,0,k,v,web.2\r\n");
	free(sink.bytes);
	sink__open(&sink);
	CU_ASSERT_EQUAL(export_jsonl(sink.out, reader, NULL), 0);
	sink__close(&sink);
	CU_ASSERT_STRING_EQUAL(sink.bytes,
			       "{\"table\":\"session\",\"session\":\"0123456789abcdef\",\"ts\":0,\"key\":\"k\","
			       "\"value\":\"v\",\"host\":\"db-1\"}\n"
			       "{\"table\":\"session\",\"session\":\"0123456789abcdef\",\"ts\":0,\"key\":\"k\","
			       "\"value\":\"v\",\"host\":\"web.2\"}\n");
	free(sink.bytes);
	shard_reader__free(reader);
	test_dir__remove(&dir);
}

/* A block whose texts hold everything that a format might stumble over. */
static struct shard_reader *hostile(struct test_dir *dir)
{
	const struct shard_table *table = &shard_tables[SHARD_TABLE_SESSION];
	static const char *const texts[] = {"a,b", "say \"hi\"", "two\r\nlines", "\xff\xfe", "\x1b[2J\xe2\x80\xae", ""};
	struct shard_row rows[6] = {0};
	struct shard_buf bytes = {0};
	char path[128];

	test_dir__make(dir);
	for (size_t i = 0; i < 6; i++) {
		rows[i].values[SESSION_TS].u64 = UINT64_MAX - i;
		rows[i].values[SESSION_KEY].str = "k";
		rows[i].values[SESSION_VALUE].str = texts[i];
	}
	test_shard__begin(&bytes);
	test_shard__put_block(&bytes, table, rows, 6, SHARD_CODEC_NONE);
	snprintf(path, sizeof(path), "%s/x.wls", dir->path);
	test_file__write(path, bytes.items, bytes.cnt);
	vec_free(&bytes);
	return test_reader__open(path);
}

static void hostile_texts_stay_within_their_fields(void)
{
	struct shard_reader *reader;
	struct test_dir dir;
	struct sink sink;

	reader = hostile(&dir);
	sink__open(&sink);
	CU_ASSERT_EQUAL(export_csv(sink.out, reader, NULL), 0);
	sink__close(&sink);
	CU_ASSERT_STRING_EQUAL(sink.bytes,
			       "table,session,ts,key,value,host\r\n"
			       "session,0123456789abcdef,18446744073709551615,k,\"a,b\",\r\n"
			       "session,0123456789abcdef,18446744073709551614,k,\"say \"\"hi\"\"\",\r\n"
			       "session,0123456789abcdef,18446744073709551613,k,\"two\r\nlines\",\r\n"
			       "session,0123456789abcdef,18446744073709551612,k,\xef\xbf\xbd\xef\xbf\xbd,\r\n"
			       "session,0123456789abcdef,18446744073709551611,k,\x1b[2J\xe2\x80\xae,\r\n"
			       "session,0123456789abcdef,18446744073709551610,k,\"\",\r\n");
	free(sink.bytes);

	sink__open(&sink);
	CU_ASSERT_EQUAL(export_jsonl(sink.out, reader, "session"), 0);
	sink__close(&sink);
	CU_ASSERT_PTR_NOT_NULL(strstr(sink.bytes, "\"value\":\"say \\\"hi\\\"\",\"host\":null}\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(sink.bytes, "\"value\":\"two\\u000d\\u000alines\",\"host\":null}\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(sink.bytes, "\"value\":\"\\u001b[2J\\u202e\",\"host\":null}\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(sink.bytes, "\"ts\":18446744073709551615,"));
	free(sink.bytes);
	shard_reader__free(reader);
	test_dir__remove(&dir);
}

static void time_off_the_cpu_is_folded(void)
{
	const struct dataset_filter none = {};
	struct shard_reader *reader;
	struct dataset dataset;
	struct traces traces;
	struct paths paths;
	struct test_dir dir;
	struct sink sink;

	reader = recording(&dir);
	CU_ASSERT_EQUAL_FATAL(dataset_load(&dataset, reader, &none), 0);
	/* Counters: 20 late ones with 500 µs each. */
	sink__open(&sink);
	CU_ASSERT_EQUAL(export_folded(sink.out, &dataset, NULL), 0);
	sink__close(&sink);
	CU_ASSERT_STRING_EQUAL(sink.bytes, "tcp:80;lock 10000000\n");
	free(sink.bytes);
	CU_ASSERT_EQUAL_FATAL(traces_load(&traces, reader), 1);
	CU_ASSERT_EQUAL_FATAL(paths_make(&paths, &traces, &dataset, NULL), 0);
	sink__open(&sink);
	CU_ASSERT_EQUAL(export_folded(sink.out, &dataset, &paths), 0);
	sink__close(&sink);
	/* Nineteen by their paths, and the lossy one by its counters. */
	CU_ASSERT_STRING_EQUAL(sink.bytes, "tcp:80;lock;flusher;lock;web+0x40 5700000\n"
					   "tcp:80;lock;flusher;runq;web+0x40;hog 3800000\n"
					   "tcp:80;lock 500000\n");
	free(sink.bytes);
	paths_free(&paths);
	traces_free(&traces);
	dataset_free(&dataset);
	shard_reader__free(reader);
	test_dir__remove(&dir);
}

/* One recording of two stacks that occur twice, and of rows that no writer makes. */
static void user_stacks_are_folded(void)
{
	static const struct {
		const char *state, *frames;
		double ns;
		const char *kernel_frames;
		uint64_t delays;
	} stacks[] = {
		{"running", "_start;main;work", 100.4, NULL, 0},
		{"blocked.futex", "_start;main;lock", 7000, NULL, 0},
		{"running", "_start;main;work", 200, NULL, 0},
		{"blocked.futex", "_start;main;lock", 1000, NULL, 0},
		{"nonsense", "a\nb", 5, NULL, 0},
		{"running", "nothing", 0, NULL, 0},
		{"running", "not a number", NAN, NULL, 0},
		{"running", "_start;hog", 70, "entry;sys_hog", 2},
	};
	enum { STACKS = sizeof(stacks) / sizeof(stacks[0]) };
	struct shard_row rows[STACKS] = {0};
	struct shard_reader *reader;
	struct shard_buf bytes = {0};
	struct test_dir dir;
	struct sink sink;
	char path[128];

	for (size_t i = 0; i < STACKS; i++) {
		rows[i].values[STACK_STATE].str = stacks[i].state;
		rows[i].values[STACK_FRAMES].str = stacks[i].frames;
		rows[i].values[STACK_WEIGHT].f64 = stacks[i].ns;
		rows[i].values[STACK_KERNEL_FRAMES].str = stacks[i].kernel_frames;
		if (!stacks[i].kernel_frames)
			shard_row__set_null(&rows[i], STACK_KERNEL_FRAMES);
		rows[i].values[STACK_DELAYS].u64 = stacks[i].delays;
		shard_row__set_null(&rows[i], STACK_SID);
	}
	test_dir__make(&dir);
	test_shard__begin(&bytes);
	test_shard__put_block(&bytes, &shard_tables[SHARD_TABLE_STACK], rows, STACKS, SHARD_CODEC_NONE);
	snprintf(path, sizeof(path), "%s/x.wls", dir.path);
	test_file__write(path, bytes.items, bytes.cnt);
	vec_free(&bytes);
	reader = test_reader__open(path);
	sink__open(&sink);
	CU_ASSERT_EQUAL(export_folded_stacks(sink.out, reader), 0);
	sink__close(&sink);
	CU_ASSERT_STRING_EQUAL(sink.bytes, "stack;lock;blocked.futex;_start;main;lock 8000\n"
					   "stack;oncpu;_start;main;work 300\n"
					   "stack;delaying;_start;hog;entry_[k];sys_hog_[k] 70\n"
					   "stack;?;nonsense;a b 5\n");
	free(sink.bytes);
	shard_reader__free(reader);
	test_dir__remove(&dir);

	/* A recording without any. */
	reader = recording(&dir);
	sink__open(&sink);
	CU_ASSERT_EQUAL(export_folded_stacks(sink.out, reader), 0);
	sink__close(&sink);
	CU_ASSERT_EQUAL(sink.sz, 0);
	free(sink.bytes);
	shard_reader__free(reader);
	test_dir__remove(&dir);
}

struct seen {
	size_t samples, stacks_of_samples;
	size_t packets, tracks, begins, ends, instants, flows, flow_ends;
	size_t bad_nesting;
	uint64_t last_track, last_flow, flow_ts;
	int depth;
};

static void see_event(struct seen *seen, const struct field *event, uint64_t ts)
{
	const uint8_t *at = event->bytes, *end = at + event->value;
	struct field field;
	uint64_t type = 0, track = 0;

	while (next_field(&at, end, &field)) {
		if (field.number == 9)
			type = field.value;
		if (field.number == 11)
			track = field.value;
		if (field.number == 47) {
			seen->flows++;
			seen->last_flow = field.value;
			seen->flow_ts = ts;
		}
		if (field.number == 48)
			seen->flow_ends += field.value == seen->last_flow && ts >= seen->flow_ts;
	}
	CU_ASSERT_EQUAL(at, end);
	seen->begins += type == 1;
	seen->ends += type == 2;
	seen->instants += type == 3;
	if (track != seen->last_track && type != 3) {
		seen->bad_nesting += seen->depth != 0;
		seen->depth = 0;
		seen->last_track = track;
	}
	seen->depth += type == 1 ? 1 : type == 2 ? -1 : 0;
	seen->bad_nesting += seen->depth < 0 || !track;
}

static void see_packet(struct seen *seen, const struct field *packet)
{
	const uint8_t *at = packet->bytes, *end = at + packet->value;
	struct field field;
	uint64_t ts = 0;

	seen->packets++;
	while (next_field(&at, end, &field)) {
		if (field.number == 8)
			ts = field.value;
		if (field.number == 60)
			seen->tracks++;
		seen->samples += field.number == 66;
		seen->stacks_of_samples += field.number == 12;
		if (field.number == 11)
			see_event(seen, &field, ts);
	}
	CU_ASSERT_EQUAL(at, end);
}

static void a_trace_is_written_for_perfetto(void)
{
	struct shard_reader *reader;
	struct seen seen = {0};
	struct traces traces;
	struct test_dir dir;
	struct field field;
	struct sink sink;
	const uint8_t *at, *end;

	reader = recording(&dir);
	CU_ASSERT_EQUAL_FATAL(traces_load(&traces, reader), 1);
	sink__open(&sink);
	CU_ASSERT_EQUAL(export_perfetto(sink.out, &traces, NULL), 0);
	sink__close(&sink);
	at = (const uint8_t *)sink.bytes;
	end = at + sink.sz;
	while (next_field(&at, end, &field)) {
		CU_ASSERT_EQUAL_FATAL(field.number, 1);
		see_packet(&seen, &field);
	}
	CU_ASSERT_EQUAL(at, end);
	/* One process, three threads, and every interval. */
	CU_ASSERT_EQUAL(seen.tracks, 1 + 3 + CNT + 1);
	CU_ASSERT_EQUAL(seen.begins, seen.ends);
	CU_ASSERT(seen.begins > traces.segment_cnt);
	CU_ASSERT_EQUAL(seen.bad_nesting, 0);
	CU_ASSERT_EQUAL(seen.flows, CNT / 10);
	CU_ASSERT_EQUAL(seen.flow_ends, CNT / 10);
	CU_ASSERT_EQUAL(seen.instants, 2 * seen.flows);
	CU_ASSERT_EQUAL(seen.packets, seen.tracks + seen.begins + seen.ends + seen.instants);
	free(sink.bytes);
	traces_free(&traces);
	shard_reader__free(reader);
	test_dir__remove(&dir);
}

/* How often a text is among the bytes. */
static size_t text_cnt(const struct sink *sink, const char *text)
{
	size_t cnt = 0, len = strlen(text);

	for (const char *at = sink->bytes, *end = sink->bytes + sink->sz;
	     (at = memmem(at, (size_t)(end - at), text, len)); at += len)
		cnt++;
	return cnt;
}

static void perfetto_is_told_how_requests_were_handed_on(void)
{
	struct shard_reader *reader;
	struct traces traces;
	struct test_dir dir;
	struct sink sink;

	test_dir__make(&dir);
	trace_fixture_write_contexts(dir.path, CNT);
	reader = test_reader__open(dir.path);
	CU_ASSERT_EQUAL_FATAL(traces_load(&traces, reader), 1);
	sink__open(&sink);
	CU_ASSERT_EQUAL(export_perfetto(sink.out, &traces, NULL), 0);
	sink__close(&sink);
	CU_ASSERT_EQUAL(text_cnt(&sink, "after socket asked by ask"), CNT / 10 + 1);
	CU_ASSERT_EQUAL(text_cnt(&sink, "after socket asked by ask; then socket asked by reply > ask"), CNT / 20 + 1);
	free(sink.bytes);
	traces_free(&traces);
	shard_reader__free(reader);
	test_dir__remove(&dir);
}

static void a_full_disk_is_told(void)
{
	struct shard_reader *reader;
	struct traces traces;
	struct test_dir dir;
	FILE *full = fopen("/dev/full", "w");

	reader = recording(&dir);
	CU_ASSERT_FATAL(full != NULL);
	CU_ASSERT_EQUAL_FATAL(traces_load(&traces, reader), 1);
	CU_ASSERT_EQUAL(export_perfetto(full, &traces, NULL), -EIO);
	clearerr(full);
	CU_ASSERT_EQUAL(export_jsonl(full, reader, NULL), -EIO);
	clearerr(full);
	CU_ASSERT_EQUAL(export_csv(full, reader, NULL), -EIO);
	fclose(full);
	traces_free(&traces);
	shard_reader__free(reader);
	test_dir__remove(&dir);
}

/* Ticks are on their threads, and a step tells what the task that had the CPU was at. */
static void samples_are_drawn_and_told(void)
{
	const struct trace_interval *interval;
	struct arena *arena = arena__new();
	struct seen seen = {0};
	struct samples samples;
	struct shard_reader *reader;
	struct row_writer to;
	struct path path = {0};
	struct traces traces;
	struct story story;
	struct test_dir dir;
	struct field field;
	struct sink sink;
	const uint8_t *at, *end;

	test_dir__make(&dir);
	trace_fixture_write(dir.path, CNT);
	row_writer_open(&to, dir.path, "host", TRACE_SESSION, TRACE_PID);
	for (uint64_t ts = 15 * TRACE_PERIOD; ts < 15 * TRACE_PERIOD + TRACE_LATE_NS; ts += 50000) {
		row_begin(&to, SHARD_TABLE_STACK);
		row_set_ts(&to, STACK_TS, ts);
		row_set_u64(&to, STACK_PID, TRACE_HOG);
		row_set_u64(&to, STACK_TID, TRACE_HOG);
		row_set_str(&to, STACK_STATE, "running");
		row_set_str(&to, STACK_FRAMES, "_start;main;crunch;multiply");
		row_set_str(&to, STACK_KERNEL_FRAMES, "asm_exc_page_fault");
		row_end(&to, SHARD_TABLE_STACK);
	}
	row_writer_close(&to);
	reader = test_reader__open(dir.path);
	CU_ASSERT_EQUAL_FATAL(traces_load(&traces, reader), 1);
	CU_ASSERT_EQUAL_FATAL(samples_load(&samples, &traces, reader), 0);
	sink__open(&sink);
	CU_ASSERT_EQUAL(export_perfetto(sink.out, &traces, &samples), 0);
	sink__close(&sink);
	at = (const uint8_t *)sink.bytes;
	end = at + sink.sz;
	while (next_field(&at, end, &field))
		see_packet(&seen, &field);
	CU_ASSERT_EQUAL(seen.samples, samples.rows.cnt);
	CU_ASSERT(seen.samples >= TRACE_LATE_NS / 50000);
	CU_ASSERT_EQUAL(seen.stacks_of_samples, 1);
	free(sink.bytes);
	interval = traces_interval(&traces, traces_session(&traces, TRACE_SESSION), 16);
	CU_ASSERT_FATAL(interval && !story_make(&story, &traces, &samples, interval, &path, arena));
	CU_ASSERT_STRING_EQUAL(story.steps[1].culprit_comm, "hog");
	CU_ASSERT_PTR_NOT_NULL_FATAL(story.steps[1].call_path);
	CU_ASSERT_STRING_EQUAL(story.steps[1].call_path, "crunch > multiply");
	CU_ASSERT_PTR_NULL(story.steps[0].call_path);
	path__clear(&path);
	arena__free(arena);
	samples_free(&samples);
	traces_free(&traces);
	shard_reader__free(reader);
	test_dir__remove(&dir);
}

int suite_export(void)
{
	static const struct unit_test tests[] = {
		{"rows name their host", rows_name_their_host},
		{"every row is a line of JSON", every_row_is_a_line_of_json},
		{"hostile texts stay within their fields", hostile_texts_stay_within_their_fields},
		{"time off the CPU is folded", time_off_the_cpu_is_folded},
		{"user stacks are folded", user_stacks_are_folded},
		{"a trace is written for Perfetto", a_trace_is_written_for_perfetto},
		{"Perfetto is told how requests were handed on", perfetto_is_told_how_requests_were_handed_on},
		{"samples are drawn and told", samples_are_drawn_and_told},
		{"a full disk is told", a_full_disk_is_told},
	};

	return unit_suite("export", tests, sizeof(tests) / sizeof(tests[0]));
}
