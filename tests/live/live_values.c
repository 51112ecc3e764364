// SPDX-License-Identifier: GPL-2.0-or-later
/* Values of variables: what the recording has is what the program had, and the report names the one that differs. */
#include "harness.h"
#include "servers.h"
#include "session.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUESTS_MAX 20000
#define IDS_MAX      8
/* See tests/workloads/basket.c. */
#define FEW_MOST      14
#define MANY_LEAST    900
#define DISCOUNT_MOST 0.4 /* half of what a variable without a difference gets */

/* What the program itself wrote down. */
struct request_log {
	struct {
		uint64_t from_ts, to_ts, items;
	} lines[REQUESTS_MAX];
	size_t cnt;
};

struct seen {
	struct request_log log;
	const char *variable, *functions[2]; /* whose values are compared */
	const char *module;                  /* of them; NULL: any */
	int64_t ids[IDS_MAX];                /* of the variable in several functions */
	size_t id_cnt;
	size_t part_cnt;          /* of them have a part */
	double begin_ts, read_ts; /* of the recording; the first time a part was read that was not from the beginning */
	uint64_t right, wrong, other; /* values of `items`; of other variables */
	uint64_t right_of[IDS_MAX];   /* of each id */
};

static bool log_read(struct request_log *log, const char *path)
{
	FILE *file = fopen(path, "r");
	unsigned long from_ts, to_ts, items;

	if (!CHECK(file != NULL))
		return false;
	while (log->cnt < REQUESTS_MAX && fscanf(file, "%lu %lu %lu", &from_ts, &to_ts, &items) == 3) {
		log->lines[log->cnt].from_ts = from_ts;
		log->lines[log->cnt].to_ts = to_ts;
		log->lines[log->cnt++].items = items;
	}
	fclose(file);
	return CHECKF(log->cnt > 100, "%zu requests", log->cnt);
}

static void take_variable(void *owner, json_object *row)
{
	const char *function = json_text(row, "function");
	struct seen *seen = owner;

	if (strcmp(json_text(row, "name"), seen->variable) || !function ||
	    (strcmp(function, seen->functions[0]) && strcmp(function, seen->functions[1])) || seen->id_cnt == IDS_MAX ||
	    (seen->module && strcmp(json_text(row, "module"), seen->module)))
		return;
	seen->part_cnt += json_at(row, "part") != NULL;
	seen->ids[seen->id_cnt++] = (int64_t)json_number(row, "id");
}

static void take_value(void *owner, json_object *row)
{
	json_object *variable = json_at(row, "variable"), *ts = json_at(row, "ts");
	struct seen *seen = owner;
	bool under_way = false, found = false;
	size_t id = IDS_MAX;
	uint64_t value, at;

	if (!variable || !ts)
		return;
	for (size_t i = 0; i < seen->id_cnt; i++)
		id = json_object_get_int64(variable) == seen->ids[i] ? i : id;
	seen->other += id == IDS_MAX;
	if (id == IDS_MAX)
		return;
	value = (uint64_t)json_number(row, "value");
	at = json_object_get_uint64(ts);
	for (size_t i = 0; i < seen->log.cnt; i++) {
		if (at < seen->log.lines[i].from_ts || at > seen->log.lines[i].to_ts)
			continue;
		under_way = true;
		found |= seen->log.lines[i].items == value;
	}
	seen->right += found;
	seen->right_of[id] += found;
	seen->wrong += under_way && !found;
}

static void take_turn(void *owner, json_object *row)
{
	struct seen *seen = owner;
	double ts = json_number(row, "ts");

	if (!seen->begin_ts || ts < seen->begin_ts)
		seen->begin_ts = ts;
	if (json_number(row, "is_read") && ts > seen->begin_ts + 5e8 && (!seen->read_ts || ts < seen->read_ts))
		seen->read_ts = ts;
}

/*
 * `items` leads the report, and in one of its two functions it has values of typical requests, too. Some late requests
 * are late for another reason, a neighbour's CPU time for one: they raise the discount, and half of all would move the
 * median.
 */
static void check_report(const struct seen *seen, const char *dir)
{
	json_object *report = report_read(dir, ""), *variables = report ? json_at(report, "values.variables") : NULL;
	bool found = false;

	(void)seen;
	if (!CHECK(variables != NULL))
		goto cleanup;
	CHECK(!strcmp(json_text(variables, "0.variable"), "items"));
	for (size_t i = 0; i < json_object_array_length(variables); i++) {
		json_object *line = json_object_array_get_idx(variables, i);

		found |= !strcmp(json_text(line, "variable"), "items") &&
			 json_number(line, "discount") < DISCOUNT_MOST && json_number(line, "typical_hi") <= FEW_MOST &&
			 json_number(line, "late_median") >= MANY_LEAST;
	}
	CHECKF(found, "variables: %s", json_object_to_json_string(variables));
cleanup:
	json_object_put(report);
}

/* Reads what the program and the recording say. */
static bool compare(struct seen *seen, const char *dir, const char *log)
{
	struct session session;

	if (!session_read(&session, dir, NULL, NULL) || !log_read(&seen->log, log))
		return false;
	visit_rows(dir, "variable", take_variable, seen);
	visit_rows(dir, "value_plan", take_turn, seen);
	visit_rows(dir, "value", take_value, seen);
	printf("\n    %lu values of `%s`, %lu of other variables ...", seen->right, seen->variable, seen->other);
	return CHECKF(seen->right >= 50 && !seen->wrong, "%lu right, %lu wrong", seen->right, seen->wrong);
}

/* One program under load, recorded with its values. */
struct values_case {
	const char *workload, *log_variable; /* the environment's, for what the program writes down */
	unsigned int seconds;
	const char *args;
	const char *variable, *functions[2], *module; /* as in struct seen */
	void (*check)(const struct seen *seen, const char *dir);
};

static void run_case(const struct values_case *of)
{
	struct path log = temp_path("%s.log", of->workload);
	struct seen *seen = calloc(1, sizeof(*seen));
	struct recording recording = {0};
	struct workload workload = {0};

	setenv(of->log_variable, log.s, 1);
	if (!CHECK(seen != NULL) || !workload_start(&workload, of->workload, of->seconds) ||
	    !recording_start(&recording, of->workload, workload.server_pid, "%s --stacks=997 --budget 100%% -d 60s",
			     of->args))
		goto cleanup;
	seen->variable = of->variable;
	memcpy(seen->functions, of->functions, sizeof(seen->functions));
	seen->module = of->module;
	workload_go(&workload);
	if (!workload_finish(&workload, 30))
		goto cleanup;
	CHECK(process_wait(&recording.process, 10) == 0);
	if (compare(seen, recording.dir.s, log.s))
		of->check(seen, recording.dir.s);
cleanup:
	unsetenv(of->log_variable);
	workload_end(&workload);
	recording_end(&recording);
	free(seen);
}

static void test_items(void)
{
	run_case(&(struct values_case){
		.workload = "basket",
		.log_variable = "BASKET_LOG",
		.seconds = 4,
		.args = "--values=basket.c --mode trace",
		.variable = "items",
		.functions = {"handle", "normalize_basket"},
		.check = check_report,
	});
}

static void check_parts(const struct seen *seen, const char *dir)
{
	(void)dir;
	CHECKF(seen->part_cnt == seen->id_cnt && seen->read_ts > 0, "%zu of %zu have a part", seen->part_cnt,
	       seen->id_cnt);
}

/* Its library comes a second and a half after the beginning: its variables are read from then on, and it is noted. */
static void test_late_library(void)
{
	run_case(&(struct values_case){
		.workload = "plugin",
		.log_variable = "PLUGIN_LOG",
		.seconds = 6,
		.args = "--values",
		.variable = "table->items",
		.functions = {"plugin_scan", "plugin_scan"},
		.module = "libwlplugin.so",
		.check = check_parts,
	});
}

static void check_both(const struct seen *seen, const char *dir)
{
	(void)dir;
	if (CHECKF(seen->id_cnt == 2, "%zu", seen->id_cnt))
		CHECKF(seen->right_of[0] >= 50 && seen->right_of[1] >= 50, "%lu and %lu", seen->right_of[0],
		       seen->right_of[1]);
}

/* Members that pointers of callers lead to: one in a register, one in the frame of code without optimisation. */
static void test_callers(void)
{
	run_case(&(struct values_case){
		.workload = "order",
		.log_variable = "ORDER_LOG",
		.seconds = 4,
		.args = "--values=order.c",
		.variable = "order->items",
		.functions = {"price_part", "price_order"},
		.check = check_both,
	});
}

/* Of two programs that are recorded together, both. */
static void test_second_program(void)
{
	struct path log = temp_path("basket.log");
	struct seen *seen = calloc(1, sizeof(*seen));
	struct recording recording = {0};
	struct workload first = {0}, second = {0};

	setenv("BASKET_LOG", log.s, 1);
	if (!CHECK(seen != NULL) || !workload_start(&first, "library", 6) || !workload_start(&second, "basket", 6) ||
	    !recording_start(&recording, "values-two", first.server_pid,
			     "-p %d --values --stacks=997 --budget 100%% -d 60s", (int)second.server_pid))
		goto cleanup;
	*seen = (struct seen){.variable = "items", .functions = {"handle", "normalize_basket"}, .module = "basket"};
	workload_go(&first);
	workload_go(&second);
	if (!workload_finish(&second, 30) || !workload_finish(&first, 30))
		goto cleanup;
	CHECK(process_wait(&recording.process, 10) == 0);
	compare(seen, recording.dir.s, log.s);
cleanup:
	unsetenv("BASKET_LOG");
	workload_end(&first);
	workload_end(&second);
	recording_end(&recording);
	free(seen);
}

int suite_values(void)
{
	static const struct live_test tests[] = {
		{"items_of_baskets", test_items, SHORT},
		{"a_library_that_comes_later", test_late_library, REST},
		{"a_second_program", test_second_program, REST},
		{"members_of_callers", test_callers, SHORT},
	};

	return live_suite("values", tests, sizeof(tests) / sizeof(tests[0]));
}
