// SPDX-License-Identifier: GPL-2.0-or-later
/* Recordings with values: variables that were not read all the time are neither absent nor cheap. */
#include "analysis/value_stats.h"
#include "analysis/values.h"
#include "row_writer.h"
#include "shard/open.h"
#include "test_shard_util.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define TICKS    400
#define TICK_NS  1000000ULL
#define FIRST_TS 1000000000ULL

enum { SCAN, WORK };  /* places and functions */
enum { ITEMS, RARE }; /* variables */

static void put_place(struct row_writer *to, uint64_t id, const char *function)
{
	row_begin(to, SHARD_TABLE_PLACE);
	row_set_u64(to, PLACE_ID, id);
	row_set_u64(to, PLACE_ADDR, 0x1000 + id);
	row_set_str(to, PLACE_FUNCTION, function);
	row_end(to, SHARD_TABLE_PLACE);
}

static void put_variable_of(struct row_writer *to, uint64_t id, const char *name, int64_t part, const char *kind,
			    uint64_t sz, const char *tags)
{
	row_begin(to, SHARD_TABLE_VARIABLE);
	row_set_u64(to, VARIABLE_ID, id);
	row_set_str(to, VARIABLE_MODULE, "program");
	row_set_str(to, VARIABLE_FILE, "scan.c");
	row_set_str(to, VARIABLE_FUNCTION, "scan");
	row_set_str(to, VARIABLE_NAME, name);
	row_set_str(to, VARIABLE_TYPE, "int");
	row_set_str(to, VARIABLE_KIND, kind);
	row_set_u64(to, VARIABLE_SIZE, sz);
	row_set_str(to, VARIABLE_TAGS, tags);
	if (part >= 0)
		row_set_u64(to, VARIABLE_PART, (uint64_t)part);
	row_end(to, SHARD_TABLE_VARIABLE);
}

static void put_variable(struct row_writer *to, uint64_t id, const char *name, int64_t part)
{
	put_variable_of(to, id, name, part, "signed", 4, "cond");
}

static void put_turn(struct row_writer *to, uint64_t tick, uint64_t part, bool is_read)
{
	row_begin(to, SHARD_TABLE_VALUE_PLAN);
	row_set_ts(to, VALUE_PLAN_TS, FIRST_TS + tick * TICK_NS);
	row_set_u64(to, VALUE_PLAN_PART, part);
	row_set_u64(to, VALUE_PLAN_IS_READ, is_read);
	row_end(to, SHARD_TABLE_VALUE_PLAN);
}

static void put_value_in_turn(struct row_writer *to, uint64_t tick, uint64_t depth, uint64_t place, int variable,
			      uint64_t value, uint64_t turn)
{
	row_begin(to, SHARD_TABLE_VALUE);
	row_set_ts(to, VALUE_TS, FIRST_TS + tick * TICK_NS + 1);
	row_set_u64(to, VALUE_TID, 7);
	row_set_u64(to, VALUE_DEPTH, depth);
	row_set_u64(to, VALUE_PLACE, place);
	if (variable >= 0) {
		row_set_u64(to, VALUE_VARIABLE, (uint64_t)variable);
		row_set_u64(to, VALUE_VALUE, value);
	}
	if (turn > 1)
		row_set_u64(to, VALUE_TURN, turn);
	row_end(to, SHARD_TABLE_VALUE);
}

static void put_value(struct row_writer *to, uint64_t tick, uint64_t depth, uint64_t place, int variable,
		      uint64_t value)
{
	put_value_in_turn(to, tick, depth, place, variable, value, 1);
}

/* In `scan`, where `items` is always read and `rare` has values in every tick from `from` on; -1: never. */
static void record(const char *dir, uint64_t session, bool has_plan, int64_t rare_read_from, int64_t rare_from)
{
	struct row_writer to;

	row_writer_open(&to, dir, "host", session, 7);
	row_put_session(&to, "values", "*");
	put_place(&to, SCAN, "scan");
	put_variable(&to, ITEMS, "items", has_plan ? 0 : -1);
	if (rare_from >= 0)
		put_variable(&to, RARE, "rare", has_plan ? 1 : -1);
	if (has_plan)
		put_turn(&to, 0, 0, true);
	/* Somebody's turn, if it is nobody else's. */
	if (has_plan)
		put_turn(&to, rare_read_from >= 0 ? (uint64_t)rare_read_from : TICKS + 1, 1, true);
	for (uint64_t tick = 0; tick < TICKS; tick++) {
		put_value(&to, tick, 0, SCAN, ITEMS, tick * 7919 % 10);
		if (rare_from >= 0 && tick >= (uint64_t)rare_from)
			put_value(&to, tick, 0, SCAN, RARE, tick % 5);
	}
	row_writer_close(&to);
}

/* One request for each tick, of which `late` say how long it lasted; they have 1000 items. */
static void record_requests(const char *dir, const uint64_t *late, size_t late_cnt, size_t typical_cnt)
{
	struct row_writer to;

	row_writer_open(&to, dir, "host", 1, 7);
	row_put_session(&to, "values", "*");
	put_place(&to, SCAN, "scan");
	put_variable(&to, ITEMS, "items", -1);
	for (uint64_t tick = 0; tick < late_cnt + typical_cnt; tick++) {
		row_begin(&to, SHARD_TABLE_VALUE);
		row_set_ts(&to, VALUE_TS, FIRST_TS + tick * TICK_NS + 1);
		row_set_u64(&to, VALUE_TID, 7);
		row_set_u64(&to, VALUE_SID, tick + 1);
		row_set_u64(&to, VALUE_PLACE, SCAN);
		row_set_u64(&to, VALUE_VARIABLE, ITEMS);
		row_set_u64(&to, VALUE_VALUE, tick < late_cnt && late[tick] > 2 * TICK_NS ? 1000 : tick * 7919 % 10);
		row_end(&to, SHARD_TABLE_VALUE);
	}
	row_writer_close(&to);
}

/* So many late requests had a sample.  The tail begins at 9 ms, the typical half ends at 1 ms. */
static size_t late_beside(uint64_t typical_ns, const uint64_t *late, size_t late_cnt, double *ratio)
{
	enum { TYPICAL = 60 };
	uint64_t latency_ns[2 * TYPICAL], sid[2 * TYPICAL], session_id;
	double weight[2 * TYPICAL];
	uint32_t session[2 * TYPICAL] = {0};
	struct dataset dataset = {.row_cnt = late_cnt + TYPICAL,
				  .latency_ns = latency_ns,
				  .sid = sid,
				  .weight = weight,
				  .session = session,
				  .session_ids = &session_id};
	struct report report = {.dataset = &dataset, .tail_threshold_ns = 9e6, .typical_ns = 1e6};
	const struct report_opts opts = {.tail = 0.99};
	struct shard_reader *reader;
	struct test_dir dir;
	struct values values;
	size_t cnt;

	CU_ASSERT_FATAL(late_cnt <= TYPICAL);
	for (size_t row = 0; row < dataset.row_cnt; row++) {
		latency_ns[row] = row < late_cnt ? late[row] : typical_ns;
		sid[row] = row + 1;
		weight[row] = 1;
	}
	test_dir__make(&dir);
	record_requests(dir.path, late, late_cnt, TYPICAL);
	reader = shards_open(&(const char *){dir.path}, 1);
	report.arena = arena__new();
	CU_ASSERT_FATAL(reader && report.arena);
	CU_ASSERT_EQUAL_FATAL(values_load(&values, reader), 0);
	session_id = values.session_ids.items[0];
	CU_ASSERT_EQUAL_FATAL(values_report(&report, &values, &opts), 0);
	CU_ASSERT_EQUAL(report.values->typical_cnt, TYPICAL);
	cnt = report.values->late_cnt;
	*ratio = report.values->variable_cnt ? report.values->variables[0].ratio : NAN;
	values_free(&values);
	arena__free(report.arena);
	shard_reader__free(reader);
	test_dir__remove(&dir);
	return cnt;
}

static size_t late_of(const uint64_t *late, size_t late_cnt, double *ratio)
{
	return late_beside(TICK_NS, late, late_cnt, ratio);
}

/* The typical half has no sample: those that a tick has made longer do. */
static void where_no_typical_request_has_a_sample_near_ones_count(void)
{
	uint64_t late[40];
	double ratio;

	for (size_t i = 0; i < 40; i++)
		late[i] = 9000000;
	CU_ASSERT_EQUAL(late_beside(1500000, late, 40, &ratio), 40);
	CU_ASSERT_EQUAL(ratio, 0);
}

static void where_few_are_late_those_half_as_late_count_too(void)
{
	uint64_t late[60];
	double ratio;

	/* Two of the tail, ten half as late, and what is less late than that. */
	for (size_t i = 0; i < 20; i++)
		late[i] = i < 2 ? 9000000 : i < 12 ? 5000000 : 4900000;
	CU_ASSERT_EQUAL(late_of(late, 2, &ratio), 2);
	CU_ASSERT(isnan(ratio));
	CU_ASSERT_EQUAL(late_of(late, 20, &ratio), 12);
	CU_ASSERT_EQUAL(ratio, 0);
	/* The latest first, and no more than are needed. */
	for (size_t i = 0; i < 60; i++)
		late[i] = (i % 6 ? 8000000 : 9000000) + i;
	CU_ASSERT_EQUAL(late_of(late, 60, &ratio), 30);
	/* Of the tail itself all count. */
	for (size_t i = 0; i < 60; i++)
		late[i] = 9000000 + i;
	CU_ASSERT_EQUAL(late_of(late, 60, &ratio), 60);
}

static const struct value_line *line_of(const struct value_report *report, const char *name)
{
	for (size_t i = 0; i < report->variable_cnt; i++)
		if (!strcmp(report->variables[i].variable, name))
			return &report->variables[i];
	return NULL;
}

/* The discount of `rare`, of which only the slow recording has values. */
static double discount_of_rare(bool has_plan, int64_t normal_read_from)
{
	struct arena *arena = arena__new();
	const struct value_line *rare;
	struct value_report *report;
	struct test_dir dirs[2];
	const char *paths[2];
	double ratio = NAN;

	CU_ASSERT_PTR_NOT_NULL_FATAL(arena);
	for (int d = 0; d < 2; d++) {
		test_dir__make(&dirs[d]);
		paths[d] = dirs[d].path;
	}
	record(paths[0], 1, has_plan, normal_read_from, -1);
	record(paths[1], 2, has_plan, 0, 0);
	CU_ASSERT_EQUAL_FATAL(values_compare_paths(&report, paths, 2, 1, arena), 1);
	rare = line_of(report, "rare");
	if (rare)
		ratio = rare->ratio;
	for (int d = 0; d < 2; d++)
		test_dir__remove(&dirs[d]);
	arena__free(arena);
	return ratio;
}

/* `scan`, which only the slow recording has, goes through items, or the like, of which all are of one type. */
static uint8_t pattern_by_members_of(const char *base)
{
	struct arena *arena = arena__new();
	struct value_report *report;
	struct test_dir dirs[2];
	struct row_writer to;
	const char *paths[2];
	uint8_t pattern;

	CU_ASSERT_PTR_NOT_NULL_FATAL(arena);
	for (uint64_t d = 0; d < 2; d++) {
		test_dir__make(&dirs[d]);
		paths[d] = dirs[d].path;
		row_writer_open(&to, paths[d], "host", 1 + d, 7);
		row_put_session(&to, "values", "*");
		put_place(&to, SCAN, d ? "scan" : "other");
		/* In any order. */
		put_variable(&to, 1, "item->type", -1);
		put_variable_of(&to, 2, base, -1, "pointer", 8, "args");
		for (uint64_t tick = 0; tick < TICKS; tick++) {
			put_value(&to, tick, 0, SCAN, d ? 1 : -1, 3);
			if (d)
				put_value(&to, tick, 0, SCAN, 2, 4096 + 8 * tick);
		}
		row_writer_close(&to);
	}
	CU_ASSERT_EQUAL_FATAL(values_compare_paths(&report, paths, 2, 1, arena), 1);
	CU_ASSERT_STRING_EQUAL_FATAL(report->functions[0].function, "scan");
	pattern = report->functions[0].pattern;
	for (int d = 0; d < 2; d++)
		test_dir__remove(&dirs[d]);
	arena__free(arena);
	return pattern;
}

/*
 * `flags` of each of many elements stays for four ticks where `scan` is the innermost frame.  Where it is a caller, a
 * read in the kernel has its turn at one of two ticks, and the value stays for two samples: nothing differs.
 */
static void turns_are_those_of_the_place(void)
{
	enum { ELEMENT_TICKS = 4 };
	struct arena *arena = arena__new();
	struct value_report *report;
	struct test_dir dirs[2];
	struct row_writer to;
	const char *paths[2];

	CU_ASSERT_PTR_NOT_NULL_FATAL(arena);
	for (uint64_t d = 0; d < 2; d++) {
		test_dir__make(&dirs[d]);
		paths[d] = dirs[d].path;
		row_writer_open(&to, paths[d], "host", 1 + d, 7);
		row_put_session(&to, "values", "*");
		put_place(&to, SCAN, "scan");
		put_place(&to, SCAN + 1, "scan");
		put_variable_of(&to, 1, "node", 0, "pointer", 8, "cond");
		for (uint64_t tick = 0; tick < TICKS; tick++) {
			bool is_caller = d && tick >= TICKS / 2;

			if (is_caller && tick % 2)
				continue;
			put_value_in_turn(&to, tick, is_caller, is_caller ? SCAN + 1 : SCAN, 1,
					  4096 + tick / ELEMENT_TICKS, is_caller ? 2 : 1);
		}
		row_writer_close(&to);
	}
	CU_ASSERT_EQUAL_FATAL(values_compare_paths(&report, paths, 2, 1, arena), 1);
	CU_ASSERT_EQUAL_FATAL(report->variable_cnt, 1);
	CU_ASSERT_EQUAL(report->variables[0].ratio, VALUE_DEFAULT_DISCOUNT);
	for (int d = 0; d < 2; d++)
		test_dir__remove(&dirs[d]);
	arena__free(arena);
}

static void members_know_the_pointer_that_they_are_by(void)
{
	CU_ASSERT_EQUAL(pattern_by_members_of("item"), VALUE_PATTERN_MISSING_CONSTRAINT);
	CU_ASSERT_EQUAL(pattern_by_members_of("it"), VALUE_PATTERN_WRONG_CONSTRAINT);
}

static void what_was_not_read_is_not_absent(void)
{
	CU_ASSERT_EQUAL(discount_of_rare(false, 0), 0);
	/* It was read all the time, or known to be, and was not there. */
	CU_ASSERT_EQUAL(discount_of_rare(true, 0), 0);
	/* Its turn never came. */
	CU_ASSERT_EQUAL(discount_of_rare(true, -1), 0.8);
}

/* `work` runs beneath `scan`, whose only variable is read at one half of the ticks. */
static void turns_make_a_function_no_cheaper(void)
{
	struct arena *arena = arena__new();
	struct value_report *report;
	struct test_dir dirs[2];
	const char *paths[2];

	CU_ASSERT_PTR_NOT_NULL_FATAL(arena);
	for (int d = 0; d < 2; d++) {
		struct row_writer to;

		test_dir__make(&dirs[d]);
		paths[d] = dirs[d].path;
		row_writer_open(&to, paths[d], "host", (uint64_t)d + 1, 7);
		row_put_session(&to, "values", "*");
		put_place(&to, SCAN, "scan");
		put_place(&to, WORK, "work");
		put_variable(&to, ITEMS, "items", 0);
		for (uint64_t tick = 0; tick < TICKS; tick++) {
			bool is_read = tick / 50 % 2;

			if (tick % 50 == 0)
				put_turn(&to, tick, 0, is_read);
			put_value(&to, tick, 0, WORK, -1, 0);
			put_value(&to, tick, 1, SCAN, is_read ? ITEMS : -1, tick * 7919 % 10 + 20 * (uint64_t)d);
		}
		row_writer_close(&to);
	}
	CU_ASSERT_EQUAL_FATAL(values_compare_paths(&report, paths, 2, 1, arena), 1);
	CU_ASSERT_FATAL(report->function_cnt == 2);
	CU_ASSERT_STRING_EQUAL(report->functions[0].function, "scan");
	CU_ASSERT_EQUAL(report->functions[0].variable_cost, TICKS);
	CU_ASSERT_EQUAL(report->functions[0].ratio, 0);
	for (int d = 0; d < 2; d++)
		test_dir__remove(&dirs[d]);
	arena__free(arena);
}

/* A hostile file's part numbers take no memory, and its values stay. */
static void impossible_parts_are_refused(void)
{
	struct test_dir dir;
	struct row_writer to;
	struct shard_reader *reader;
	struct values values;

	test_dir__make(&dir);
	row_writer_open(&to, dir.path, "host", 1, 7);
	put_place(&to, SCAN, "scan");
	put_variable(&to, ITEMS, "items", INT64_MAX);
	put_turn(&to, 0, UINT64_MAX / 2, true);
	put_turn(&to, 3, 5, true);
	put_value(&to, 1, 0, SCAN, ITEMS, 3);
	put_value(&to, 4, 0, SCAN, ITEMS, 3);
	row_writer_close(&to);
	reader = shards_open(&(const char *){dir.path}, 1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(reader);
	CU_ASSERT_EQUAL_FATAL(values_load(&values, reader), 0);
	CU_ASSERT(values.bad_rows == 1 && values.rows.cnt == 2 && values.states.cnt == 2);
	CU_ASSERT(values.rows.items[0].state != values.rows.items[1].state);
	values_free(&values);
	shard_reader__free(reader);
	test_dir__remove(&dir);
}

/* A frame of a call path may be an inlined function, whose variable belongs to the function that it is in. */
static void the_first_cause_names_a_value_of_its_path(void)
{
	static const char *frames[] = {"step", "step (inlined by scan)", "find (inlined by step)", "other"};
	static const bool is_named[] = {false, true, true, false};

	for (size_t f = 0; f < sizeof(frames) / sizeof(frames[0]); f++) {
		struct value_line line = {.variable = "i",
					  .function = f == 2 ? "step" : "scan",
					  .inlined = f == 2 ? "find" : "step",
					  .where_function = f == 2 ? "step" : "scan",
					  .kind = VALUE_SIGNED,
					  .tags = VALUE_TAG_LOOP,
					  .dimension = VALUE_DIM_VALUE,
					  .typical_lo = 1,
					  .typical_hi = 9,
					  .typical_cnt = 50,
					  .late_cnt = 50,
					  .late_median = 1400,
					  .exponent = NAN};
		struct value_report values = {.variables = &line, .variable_cnt = 1};
		struct cause cause = {.what = "code",
				      .function = frames[f],
				      .has_root = true,
				      .root = {.kind = ROOT_CODE, .call_path = &frames[f], .call_path_cnt = 1}};
		struct report report = {.causes = &cause, .cause_cnt = 1, .values = &values, .arena = arena__new()};

		CU_ASSERT_PTR_NOT_NULL_FATAL(report.arena);
		CU_ASSERT_EQUAL(values_name_cause(&report), 0);
		CU_ASSERT_EQUAL(cause.value != NULL, is_named[f]);
		CU_ASSERT_EQUAL(strstr(cause.what, "`i` in `") != NULL &&
					strstr(cause.what, "1,400 (typical 1–9)") != NULL,
				is_named[f]);
		arena__free(report.arena);
	}
}

static void of_values_a_cause_names_that_of_a_loop(void)
{
	const struct value_line line = {.function = "scan",
					.where_function = "scan",
					.kind = VALUE_SIGNED,
					.dimension = VALUE_DIM_VALUE,
					.typical_cnt = 50,
					.late_cnt = 50,
					.exponent = NAN};
	const char *frame = "scan";
	struct value_line lines[4] = {line, line, line, line};
	struct value_report values = {.variables = lines, .variable_cnt = 4};
	struct cause cause = {.what = "code",
			      .function = frame,
			      .has_root = true,
			      .root = {.kind = ROOT_CODE, .call_path = &frame, .call_path_cnt = 1}};
	struct report report = {.causes = &cause, .cause_cnt = 1, .values = &values, .arena = arena__new()};

	CU_ASSERT_PTR_NOT_NULL_FATAL(report.arena);
	lines[0].variable = "handed_on";
	lines[0].tags = VALUE_TAG_ARGS;
	lines[1].variable = "tested";
	lines[1].tags = VALUE_TAG_COND;
	lines[2].variable = "counted";
	lines[2].tags = VALUE_TAG_LOOP;
	/* That normal requests never had it counts for less than any use. */
	lines[3].variable = "unknown";
	lines[3].tags = VALUE_TAG_LOOP;
	lines[3].typical_cnt = 0;
	for (size_t cnt = 1; cnt <= 4; cnt++) {
		cause.what = "code";
		values.variable_cnt = cnt;
		CU_ASSERT_EQUAL(values_name_cause(&report), 0);
		CU_ASSERT_PTR_EQUAL(cause.value, &lines[cnt < 3 ? cnt - 1 : 2]);
	}
	arena__free(report.arena);
}

int suite_values(void)
{
	static const struct unit_test tests[] = {
		{"what was not read is not absent", what_was_not_read_is_not_absent},
		{"members know the pointer that they are by", members_know_the_pointer_that_they_are_by},
		{"where few are late those half as late count too", where_few_are_late_those_half_as_late_count_too},
		{"where no typical request has a sample near ones count",
		 where_no_typical_request_has_a_sample_near_ones_count},
		{"turns make a function no cheaper", turns_make_a_function_no_cheaper},
		{"turns are those of the place", turns_are_those_of_the_place},
		{"impossible parts are refused", impossible_parts_are_refused},
		{"the first cause names a value of its path", the_first_cause_names_a_value_of_its_path},
		{"of values a cause names that of a loop", of_values_a_cause_names_that_of_a_loop},
	};

	return unit_suite("values", tests, sizeof(tests) / sizeof(tests[0]));
}
