// SPDX-License-Identifier: GPL-2.0-only
#include "base/names.h"
#include "unit.h"
#include "view/page.h"
#include "view/utf8.h"
#include "view/view.h"

#include <errno.h>
#include <json-c/json.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOSTILE "ba\x1b[2J\xff\xc3(\n\r\x9b" "31m\xe2\x80\xae\xc2\x9b" "evil\"\\\x7f"

/* A report as the analysis would hand it over, by hand, with something unknown in every corner. */
struct fixture {
	struct dataset dataset;
	struct report report;
	struct cause causes[3];
	struct event_line events[4];
	struct type_line types[2];
	struct dataset_event hw;
	uint64_t hw_values[4];
};

static const char *const fixture_evidence[] = {
	"late 1.77 ms, typical 3 µs on average; 96 % of the late requests met it",
	"`backup` (pid 901) had the CPU in 88 % of them, on CPU 1, and it ran there for 3.9 s of the 30.0 s that were recorded",
};

static void fixture_breakdown(struct fixture *fixture)
{
	static const struct breakdown_line first[] = {
		{ WL_CATEGORY_RUNQ, true, 41234.4, 0.62, { 0.58, 0.66 }, 0.41, { 0.372, 0.449 }, 3012, 1.77e6 },
		{ WL_CATEGORY_FAULT_MAJOR, true, 20000, 0.31, { 0.2, 0.4 }, 0.22, { -0.024, 0.3 }, 0, 9.8e5 },
		{ WL_CATEGORY_ONCPU, true, 150765.6, -0.002, { -0.01, 0.004 }, 0.006, { 0, 0.01 }, 177e3, 199e3 },
	};
	size_t at = 0;

	for (; at < 3; at++)
		fixture->report.breakdown[at] = first[at];
	for (int i = 0; i < WL_CATEGORY_CNT; i++) {
		struct breakdown_line *line = &fixture->report.breakdown[at];

		if (i == WL_CATEGORY_RUNQ || i == WL_CATEGORY_FAULT_MAJOR || i == WL_CATEGORY_ONCPU)
			continue;
		*line = (struct breakdown_line){ .category = i, .measured = i != WL_CATEGORY_THROTTLED };
		if (!line->measured)
			line->mean_ns = line->tail_share = NAN;
		at++;
	}
}

static void fixture_init(struct fixture *fixture)
{
	static const char *const hooks[] = { "tp_btf/sched_switch" };
	static const char *const notes[] = { "the rate was lowered to 25 % after 12 s: tracing cost more than 3 %" };
	static const struct shard_damage damage[] = { { "/var/tmp/rec/host7-1-3.wls", 81920, 1234, "torn tail" } };

	memset(fixture, 0, sizeof(*fixture));
	fixture->hw = (struct dataset_event){ .name = "hw.cycles", .values = fixture->hw_values };
	fixture->dataset = (struct dataset){
		.row_cnt = 12402, .host = "host7", .kernel = "6.18", .comm = "redis-server", .pid = 812,
		.duration_s = 30, .intervals_seen = 104233, .hooks_missing = (const char **)hooks, .hooks_missing_cnt = 1,
		.notes = (const char **)notes, .note_cnt = 1, .damage = damage, .damage_cnt = 1, .events = &fixture->hw,
		.event_cnt = 1, .intervals_flagged = 7,
	};
	fixture->dataset.category_unmeasured[WL_CATEGORY_THROTTLED] = true;
	fixture->dataset.loss[WL_LOSS_INTERVAL].emitted = 12402;
	fixture->causes[0] = (struct cause){ 1, WL_CATEGORY_RUNQ, 0.41, { 0.372, 0.449 }, 0.62,
		"waiting for a CPU; `backup` (pid 901) ran instead", NULL, NULL, "backup", 901, 902,
		(const char **)fixture_evidence, 2 };
	fixture->causes[1] = (struct cause){ 2, WL_CATEGORY_FAULT_MAJOR, 0.22, { -0.024, 0.3 }, 0.31,
		"major page faults in /usr/lib/x86_64-linux-gnu/libc.so.6", NULL, "libc.so.6", NULL, -1, -1, NULL, 0 };
	fixture->causes[2] = (struct cause){ 3, WL_CATEGORY_ONCPU, 0.006, { NAN, NAN }, NAN, "running its own code", NULL,
		"", "", -1, -1, NULL, 0 };
	fixture->events[0] = (struct event_line){ "runq.preempt.ns", 0.38, 0.38, 1.2e6, 0.973, NULL, NAN, NULL, 41000 };
	fixture->events[1] = (struct event_line){ "switch.involuntary.count", 0.36, 0.021, 4, 0.97, "runq.preempt.ns", 0.92,
		NULL, 0.25 };
	fixture->events[2] = (struct event_line){ "hw.branches", 0.3, NAN, 1e6, 0.9, NULL, NAN, "hw.branch_misses", 3e5 };
	fixture->events[3] = (struct event_line){ "fault.minor.count", 0, 0, NAN, NAN, NULL, NAN, NULL, 0 };
	fixture->types[0] = (struct type_line){ "tcp:6379", 104000.4, 212e3, 4.31e6 };
	fixture->types[1] = (struct type_line){ "unix:/run/redis.sock", 233, 1e6, NAN };
	fixture->report.dataset = &fixture->dataset;
	fixture->report.tail = 0.99;
	fixture->report.tail_threshold_ns = 4.31e6;
	fixture->report.latency = (struct latency_summary){ 104233.2, 212000.6, 2.25e12, 2.12, 180e3, 250e3, 4.31e6, 7.2e6,
		9.8e6 };
	fixture->report.causes = fixture->causes;
	fixture->report.cause_cnt = 3;
	fixture->report.events = fixture->events;
	fixture->report.event_cnt = 4;
	fixture->report.types = fixture->types;
	fixture->report.type_cnt = 2;
	fixture_breakdown(fixture);
}

/* What report_make() gives for a recording without intervals: numbers NAN, lists empty. */
static void fixture_init_empty(struct fixture *fixture)
{
	memset(fixture, 0, sizeof(*fixture));
	fixture->dataset.pid = -1;
	fixture->report.dataset = &fixture->dataset;
	fixture->report.tail = 0.99;
	fixture->report.tail_threshold_ns = NAN;
	fixture->report.latency = (struct latency_summary){ NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN };
	fixture->report.records_lost_share = NAN;
}

static char *text_of(const struct fixture *fixture, const char *locale, uint32_t top, bool colour)
{
	const struct view_opts opts = { .top = top, .colour = colour };
	char *text = NULL;
	size_t sz;
	FILE *out = open_memstream(&text, &sz);

	setlocale(LC_CTYPE, locale);
	CU_ASSERT_EQUAL(view_text(out, &fixture->report, &opts), 0);
	fclose(out);
	return text;
}

static char *json_text_of(const struct fixture *fixture)
{
	char *text = NULL;
	size_t sz;
	FILE *out = open_memstream(&text, &sz);

	CU_ASSERT_EQUAL(view_json(out, &fixture->report), 0);
	fclose(out);
	CU_ASSERT_EQUAL(strlen(text), sz);
	return text;
}

static struct json_object *json_of(const struct fixture *fixture)
{
	char *text = json_text_of(fixture);
	struct json_object *root = json_tokener_parse(text);

	CU_ASSERT_PTR_NOT_NULL_FATAL(root);
	free(text);
	return root;
}

/* "causes.0.culprit.pid": the value there, and that the key is there at all. */
static struct json_object *at(struct json_object *object, const char *path)
{
	char steps[128], *rest = steps, *step;

	snprintf(steps, sizeof(steps), "%s", path);
	while ((step = strsep(&rest, "."))) {
		if (json_object_is_type(object, json_type_array))
			object = json_object_array_get_idx(object, (size_t)atoi(step));
		else if (!json_object_object_get_ex(object, step, &object))
			CU_FAIL(path);
	}
	return object;
}

#define CHECK_TYPE(root, path, type) CU_ASSERT_EQUAL(json_object_get_type(at(root, path)), json_type_##type)
#define CHECK_NULL(root, path) CHECK_TYPE(root, path, null)
#define CHECK_STRING(root, path, value)                                                              \
	do {                                                                                         \
		CHECK_TYPE(root, path, string);                                                      \
		CU_ASSERT_STRING_EQUAL(json_object_get_string(at(root, path)), value);               \
	} while (0)
#define CHECK_INT(root, path, value)                                                                 \
	do {                                                                                         \
		CHECK_TYPE(root, path, int);                                                         \
		CU_ASSERT_EQUAL(json_object_get_int64(at(root, path)), value);                       \
	} while (0)
#define CHECK_NUMBER(root, path, value)                                                              \
	do {                                                                                         \
		CHECK_TYPE(root, path, double);                                                      \
		CU_ASSERT_DOUBLE_EQUAL(json_object_get_double(at(root, path)), value, 1e-9);         \
	} while (0)

static void durations_have_three_digits_and_a_unit(void)
{
	static const struct {
		double ns;
		const char *text;
	} cases[] = {
		{ 0, "0 ns" },         { 817, "817 ns" },        { 999.4, "999 ns" },    { 999.6, "1.00 µs" },
		{ 12345, "12.3 µs" },  { 1.234e6, "1.23 ms" },   { 9.996e6, "10.0 ms" }, { 3.42e9, "3.42 s" },
		{ 30e9, "30.0 s" },    { 999.7e6, "1.00 s" },    { 600e9, "600 s" },     { 9000e9, "2.50 h" },
		{ -12345, "-12.3 µs" }, { -0.2, "0 ns" },        { NAN, "–" },           { INFINITY, "–" },
		{ 1e15, "278 h" },     { 1e17, "1157 d" },       { 1e30, "1e+16 d" },
	};
	char buf[15];

	setlocale(LC_CTYPE, "C.UTF-8");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CU_ASSERT_STRING_EQUAL(view_duration(buf, sizeof(buf), cases[i].ns), cases[i].text);
	setlocale(LC_CTYPE, "C");
	CU_ASSERT_STRING_EQUAL(view_duration(buf, sizeof(buf), 12345), "12.3 us");
	CU_ASSERT_STRING_EQUAL(view_duration(buf, sizeof(buf), NAN), "-");
}

static void every_duration_fits_15_bytes(void)
{
	char whole[64], buf[15];

	setlocale(LC_CTYPE, "C.UTF-8");
	for (double ns = 1e-3; isfinite(ns); ns *= 1.37) {
		view_duration(whole, sizeof(whole), -ns);
		CU_ASSERT_STRING_EQUAL(view_duration(buf, sizeof(buf), -ns), whole);
	}
	setlocale(LC_CTYPE, "C");
}

static void utf8_is_told_from_bytes(void)
{
	static const char *const bad[] = { "\x80", "\xc0\xaf", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
					   "\xf4\x90\x80\x80", "\xf5", "\xff", "\xe2\x82" };
	static const char *const good[] = { "a", "é", "–", "中", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf", "\xee\x80\x80" };
	uint32_t codepoint;
	char *copy;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const char *str = bad[i];

		CU_ASSERT_FALSE(utf8_next(&str, &codepoint));
		CU_ASSERT(str > bad[i] && str <= bad[i] + strlen(bad[i]));
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		const char *str = good[i];

		CU_ASSERT(utf8_next(&str, &codepoint));
		CU_ASSERT_EQUAL(*str, '\0');
	}
	copy = utf8_valid("a\xffz\xe2\x82" "b");
	CU_ASSERT_STRING_EQUAL(copy, "a" UTF8_REPLACEMENT "z" UTF8_REPLACEMENT "b");
	free(copy);
	copy = utf8_printable("\x1b[1m\xff – 中", false);
	CU_ASSERT_STRING_EQUAL(copy, "\\x1b[1m\\xff - \\u4e2d");
	free(copy);
}

static void json_has_every_key_of_the_schema(void)
{
	struct fixture fixture;
	struct json_object *root;

	fixture_init(&fixture);
	root = json_of(&fixture);
	CHECK_STRING(root, "schema", "whylate.report/1");
	CHECK_STRING(root, "session.host", "host7");
	CHECK_STRING(root, "session.kernel", "6.18");
	CHECK_INT(root, "session.pid", 812);
	CHECK_STRING(root, "session.comm", "redis-server");
	CHECK_NUMBER(root, "session.duration_s", 30);
	CHECK_INT(root, "session.intervals_seen", 104233);
	CHECK_INT(root, "session.intervals_kept", 12402);
	CHECK_INT(root, "session.records_lost", 0);
	CHECK_STRING(root, "session.hooks_missing.0", "tp_btf/sched_switch");
	CHECK_NUMBER(root, "tail", 0.99);
	CHECK_INT(root, "tail_threshold_ns", 4310000);
	CHECK_INT(root, "latency.count", 104233);
	CHECK_INT(root, "latency.mean_ns", 212001);
	CHECK_NUMBER(root, "latency.variance_ns2", 2.25e12);
	CHECK_NUMBER(root, "latency.cov", 2.12);
	CHECK_INT(root, "latency.p50_ns", 180000);
	CHECK_INT(root, "latency.p90_ns", 250000);
	CHECK_INT(root, "latency.p99_ns", 4310000);
	CHECK_INT(root, "latency.p999_ns", 7200000);
	CHECK_INT(root, "latency.max_ns", 9800000);
	CHECK_TYPE(root, "factors", array);
	CU_ASSERT_EQUAL(json_object_array_length(at(root, "factors")), 0);
	CHECK_INT(root, "loss.by_class.interval", 0);
	for (int i = 0; i < WL_LOSS_CNT; i++)
		CU_ASSERT(json_object_object_get_ex(at(root, "loss.by_class"), loss_name(i), NULL));
	CHECK_INT(root, "loss.detail.interval.emitted", 12402);
	CHECK_INT(root, "loss.detail.interval.lost", 0);
	CHECK_INT(root, "loss.intervals_flagged", 7);
	CHECK_STRING(root, "types.1.type", "unix:/run/redis.sock");
	CHECK_INT(root, "types.0.count", 104000);
	CHECK_NULL(root, "types.1.p99_ns");
	CHECK_TYPE(root, "notes.0", string);
	CHECK_STRING(root, "damage.0.path", "/var/tmp/rec/host7-1-3.wls");
	CHECK_INT(root, "damage.0.off", 81920);
	CHECK_INT(root, "damage.0.sz", 1234);
	CHECK_STRING(root, "damage.0.what", "torn tail");
	json_object_put(root);
}

static void json_breakdown_has_each_category_once(void)
{
	struct fixture fixture;
	struct json_object *root, *line;
	bool there[WL_CATEGORY_CNT] = { false };

	fixture_init(&fixture);
	root = json_of(&fixture);
	CU_ASSERT_EQUAL(json_object_array_length(at(root, "breakdown")), WL_CATEGORY_CNT);
	CHECK_STRING(root, "breakdown.0.category", "runq");
	CHECK_INT(root, "breakdown.0.mean_ns", 41234);
	CHECK_NUMBER(root, "breakdown.0.variance_share", 0.62);
	CHECK_NUMBER(root, "breakdown.0.variance_share_ci.1", 0.66);
	CHECK_NUMBER(root, "breakdown.0.tail_share", 0.41);
	CHECK_NUMBER(root, "breakdown.1.tail_share_ci.0", -0.024);
	for (size_t i = 0; i < WL_CATEGORY_CNT; i++) {
		line = json_object_array_get_idx(at(root, "breakdown"), i);
		int category = category_by_name(json_object_get_string(at(line, "category")));

		CU_ASSERT_FATAL(category >= 0);
		CU_ASSERT_FALSE(there[category]);
		there[category] = true;
		CU_ASSERT_EQUAL(json_object_array_length(at(line, "tail_share_ci")), 2);
		if (category != WL_CATEGORY_THROTTLED)
			continue;
		CHECK_NULL(line, "mean_ns");
		CHECK_NULL(line, "variance_share");
		CHECK_NULL(line, "variance_share_ci.0");
		CHECK_NULL(line, "tail_share");
		CHECK_NULL(line, "tail_share_ci.1");
	}
	json_object_put(root);
}

static void json_events_and_causes(void)
{
	struct fixture fixture;
	struct json_object *root;

	fixture_init(&fixture);
	root = json_of(&fixture);
	CU_ASSERT_EQUAL(json_object_array_length(at(root, "events")), 3);
	CHECK_STRING(root, "events.0.event", "runq.preempt.ns");
	CHECK_NUMBER(root, "events.0.impact", 0.38);
	CHECK_INT(root, "events.0.threshold", 1200000);
	CHECK_NUMBER(root, "events.0.threshold_percentile", 0.973);
	CHECK_NULL(root, "events.0.explained_by");
	CHECK_NUMBER(root, "events.1.impact_adjusted", 0.021);
	CHECK_NUMBER(root, "events.1.threshold", 4);
	CHECK_STRING(root, "events.1.explained_by", "runq.preempt.ns");
	CHECK_NULL(root, "events.2.threshold");
	CU_ASSERT_EQUAL(json_object_array_length(at(root, "events_dropped")), 1);
	CHECK_STRING(root, "events_dropped.0.dropped_for", "hw.branch_misses");
	CHECK_NULL(root, "events_dropped.0.impact_adjusted");
	CHECK_INT(root, "causes.0.rank", 1);
	CHECK_STRING(root, "causes.0.category", "runq");
	CHECK_NUMBER(root, "causes.0.share", 0.41);
	CHECK_NUMBER(root, "causes.0.share_ci.0", 0.372);
	CHECK_STRING(root, "causes.0.what", "waiting for a CPU; `backup` (pid 901) ran instead");
	CHECK_NULL(root, "causes.0.function");
	CHECK_NULL(root, "causes.0.object");
	CHECK_INT(root, "causes.0.culprit.pid", 901);
	CHECK_INT(root, "causes.0.culprit.tid", 902);
	CHECK_STRING(root, "causes.0.culprit.comm", "backup");
	CHECK_NULL(root, "causes.0.culprit.function");
	CHECK_STRING(root, "causes.0.evidence.0", fixture_evidence[0]);
	CHECK_STRING(root, "causes.1.object", "libc.so.6");
	CHECK_NULL(root, "causes.1.culprit.pid");
	CHECK_NULL(root, "causes.1.culprit.tid");
	CHECK_NULL(root, "causes.1.culprit.comm");
	CHECK_TYPE(root, "causes.1.evidence", array);
	CHECK_NULL(root, "causes.2.object");
	CHECK_NULL(root, "causes.2.share_ci.0");
	CHECK_NULL(root, "causes.2.variance_share");
	json_object_put(root);
}

static void json_of_nothing_is_nulls_and_empty_lists(void)
{
	struct fixture fixture;
	struct json_object *root;

	fixture_init_empty(&fixture);
	root = json_of(&fixture);
	CHECK_NULL(root, "session.host");
	CHECK_NULL(root, "session.kernel");
	CHECK_NULL(root, "session.pid");
	CHECK_NULL(root, "session.comm");
	CHECK_NULL(root, "session.duration_s");
	CHECK_INT(root, "session.intervals_kept", 0);
	CHECK_INT(root, "latency.count", 0);
	CHECK_NULL(root, "latency.mean_ns");
	CHECK_NULL(root, "latency.max_ns");
	CHECK_NULL(root, "latency.cov");
	CHECK_NULL(root, "tail_threshold_ns");
	CU_ASSERT_EQUAL(json_object_array_length(at(root, "breakdown")), WL_CATEGORY_CNT);
	CU_ASSERT_EQUAL(json_object_array_length(at(root, "causes")), 0);
	CU_ASSERT_EQUAL(json_object_array_length(at(root, "events")), 0);
	json_object_put(root);
}

static bool is_valid_utf8(const char *str)
{
	uint32_t codepoint;

	while (*str)
		if (!utf8_next(&str, &codepoint))
			return false;
	return true;
}

static void json_survives_hostile_names(void)
{
	struct fixture fixture;
	struct json_object *root;
	uint32_t codepoint;
	char *text;

	fixture_init(&fixture);
	fixture.dataset.comm = fixture.causes[0].what = fixture.causes[0].culprit_comm = fixture.types[0].type = HOSTILE;
	fixture.report.latency.max_ns = 1e300;
	fixture.report.latency.variance_ns2 = INFINITY;
	fixture.dataset.loss[WL_LOSS_TASK].lost = UINT64_MAX;
	text = json_text_of(&fixture);
	CU_ASSERT(is_valid_utf8(text));
	CU_ASSERT_PTR_NULL(strstr(text, "Infinity"));
	CU_ASSERT_PTR_NULL(strstr(text, "NaN"));
	CU_ASSERT_PTR_NULL(strstr(text, "-0.0"));
	for (const char *str = text; *str;) {
		CU_ASSERT(utf8_next(&str, &codepoint));
		CU_ASSERT(codepoint == '\n' || !utf8_acts(codepoint));
	}
	free(text);
	root = json_of(&fixture);
	CHECK_STRING(root, "session.comm", "ba\x1b[2J" UTF8_REPLACEMENT UTF8_REPLACEMENT "(\n\r" UTF8_REPLACEMENT
		     "31m\xe2\x80\xae\xc2\x9b" "evil\"\\\x7f");
	CHECK_INT(root, "latency.max_ns", INT64_MAX);
	CHECK_NULL(root, "latency.variance_ns2");
	json_object_put(root);
}

static void a_full_disk_is_an_error(void)
{
	const struct view_opts opts = { .top = 10 };
	struct fixture fixture;
	FILE *full;

	fixture_init(&fixture);
	full = fopen("/dev/full", "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(full);
	CU_ASSERT_EQUAL(view_json(full, &fixture.report), -EIO);
	fclose(full);
	full = fopen("/dev/full", "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(full);
	CU_ASSERT_EQUAL(view_text(full, &fixture.report, &opts), -EIO);
	fclose(full);
}

static void check_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fprintf(stderr, "\nmissing: %s\n", part);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, part));
}

/* Every line at most PAGE_COLUMNS wide, without blanks at its end, and nothing in it that a terminal would obey. */
static void check_tidy(char *text)
{
	char *rest = text, *line;
	uint32_t codepoint;

	CU_ASSERT(*text && text[strlen(text) - 1] == '\n');
	while ((line = strsep(&rest, "\n"))) {
		CU_ASSERT(!*line || line[strlen(line) - 1] != ' ');
		if (utf8_width(line) > PAGE_COLUMNS)
			fprintf(stderr, "\ntoo wide: %s\n", line);
		CU_ASSERT(utf8_width(line) <= PAGE_COLUMNS);
		for (const char *str = line; *str;)
			CU_ASSERT(utf8_next(&str, &codepoint) && !utf8_acts(codepoint));
	}
}

static void text_gives_the_answer_first(void)
{
	struct fixture fixture;
	char *text;

	fixture_init(&fixture);
	text = text_of(&fixture, "C.UTF-8", 10, false);
	if (getenv("SHOW_VIEW"))
		fputs(text, stderr);
	check_has(text, "redis-server (pid 812) on host7, Linux 6.18: 30.0 s, 104,233 requests seen,");
	check_has(text, "12,402 kept (weights applied)\n");
	check_has(text, "latency  mean 212 µs  p50 180 µs  p90 250 µs  p99 4.31 ms  p99.9 7.20 ms  max 9.80 ms  cov 2.12\n");
	check_has(text, "Why the slowest 1 % (≥ 4.31 ms) are late, compared with the typical half:\n"
			"  1.  41 % [37–45]    waiting for a CPU; `backup` (pid 901) ran instead\n"
			"        late 1.77 ms, typical 3 µs on average; 96 % of the late requests met it\n");
	check_has(text, "  2.  22 % [-2 to 30] major page faults in /usr/lib/x86_64-linux-gnu/libc.so.6\n" + 0);
	check_has(text, "  3. 0.6 %            running its own code\n");
	check_has(text, "  no time in: ");
	check_has(text, "switch.involuntary.count");
	check_has(text, "runq.preempt.ns 92 %\n");
	CU_ASSERT_PTR_NULL(strstr(text, "hw.branches"));
	check_has(text, "Loss: none  (emitted 12,402 = written 12,402 + lost 0)\n");
	check_has(text, "Uncertain requests: 7 of 12,402 kept");
	check_has(text, "Not measured on this kernel: throttled");
	check_has(text, "tp_btf/sched_switch");
	check_has(text, "Note: the rate was lowered");
	check_has(text, "/var/tmp/rec/host7-1-3.wls: torn tail at byte 81,920, 1,234 not read\n");
	CU_ASSERT_PTR_NULL(strstr(text, "Hardware counters"));
	CU_ASSERT(strstr(text, "1.  41 %") < strstr(text, "Where the time goes"));
	CU_ASSERT_PTR_NULL(strchr(text, '\x1b'));
	check_tidy(text);
	free(text);
}

/* Display column right after `word` in its line. */
static size_t column_after(const char *line, const char *word)
{
	const char *found = strstr(line, word);
	char *head;
	size_t column;

	CU_ASSERT_PTR_NOT_NULL_FATAL(found);
	head = strndup(line, (size_t)(found - line) + strlen(word));
	column = utf8_width(head);
	free(head);
	return column;
}

static void text_columns_line_up(void)
{
	struct fixture fixture;
	const char *heading, *runq, *major;
	char *text;

	fixture_init(&fixture);
	fixture.types[0].type = "中文";
	text = text_of(&fixture, "C.UTF-8", 10, false);
	heading = strstr(text, "Where the time goes");
	runq = strstr(heading, "  runq ");
	major = strstr(heading, "  fault.major ");
	CU_ASSERT_PTR_NOT_NULL_FATAL(runq);
	CU_ASSERT_PTR_NOT_NULL_FATAL(major);
	CU_ASSERT_EQUAL(column_after(heading, "mean"), column_after(runq, "41.2 µs"));
	CU_ASSERT_EQUAL(column_after(heading, "mean"), column_after(major, "20.0 µs"));
	CU_ASSERT_EQUAL(column_after(heading, "typical"), column_after(runq, "3.01 µs"));
	CU_ASSERT_EQUAL(column_after(heading, "late"), column_after(runq, "1.77 ms"));
	CU_ASSERT_EQUAL(column_after(runq, "41 % ["), column_after(major, "22 % ["));
	heading = strstr(text, "Types");
	CU_ASSERT_EQUAL(column_after(heading, "requests"), column_after(strstr(heading, "  中文"), "104,000"));
	CU_ASSERT_EQUAL(column_after(heading, "p99"), column_after(strstr(heading, "  unix:"), "–"));
	free(text);
}

static void text_is_ascii_where_the_locale_is(void)
{
	struct fixture fixture;
	char *text;

	fixture_init(&fixture);
	fixture.causes[1].what = "major page faults in /données";
	text = text_of(&fixture, "C", 10, false);
	for (const char *str = text; *str; str++)
		CU_ASSERT((unsigned char)*str < 0x80);
	check_has(text, "mean 212 us");
	check_has(text, "(>= 4.31 ms)");
	check_has(text, "[37-45]");
	check_has(text, "typical 3 us on average");
	check_has(text, "/donn\\u00e9es");
	check_tidy(text);
	free(text);
}

static void text_disarms_hostile_names(void)
{
	static const char *const locales[] = { "C", "C.UTF-8" };
	struct fixture fixture;
	char path[400];
	char *text;

	memset(path, 'x', sizeof(path));
	memcpy(path, "/\x1b]0;t\a", 7);
	strcpy(path + sizeof(path) - 10, "/lib\xff.so");
	for (size_t i = 0; i < 2; i++) {
		const struct shard_damage damage = { path, UINT64_MAX, UINT64_MAX, HOSTILE };

		fixture_init(&fixture);
		fixture.dataset.comm = fixture.dataset.host = fixture.dataset.kernel = HOSTILE;
		fixture.dataset.damage = &damage;
		fixture.dataset.notes = (const char *[]){ path };
		fixture.causes[0].what = HOSTILE;
		fixture.causes[1].what = path;
		fixture.types[0].type = path;
		fixture.events[1].explained_by = path;
		text = text_of(&fixture, locales[i], 0, false);
		CU_ASSERT(is_valid_utf8(text));
		check_has(text, "\\x1b[2J\\xff");
		check_tidy(text);
		free(text);
	}
}

static void colour_adds_nothing_but_colour(void)
{
	struct fixture fixture;
	char *plain, *coloured, *to;

	fixture_init(&fixture);
	plain = text_of(&fixture, "C.UTF-8", 2, false);
	coloured = text_of(&fixture, "C.UTF-8", 2, true);
	CU_ASSERT_PTR_NOT_NULL(strchr(coloured, '\x1b'));
	to = coloured;
	for (const char *from = coloured; *from; from++) {
		if (*from == '\x1b')
			from = strchr(from, 'm');
		else
			*to++ = *from;
	}
	*to = '\0';
	CU_ASSERT_STRING_EQUAL(coloured, plain);
	free(plain);
	free(coloured);
}

static void top_limits_the_lists_and_says_so(void)
{
	struct fixture fixture;
	char *text;

	fixture_init(&fixture);
	text = text_of(&fixture, "C.UTF-8", 1, false);
	check_has(text, "… 2 more (--top 0 lists all)\n");
	check_has(text, "… 1 more (--top 0 lists all)\n");
	CU_ASSERT_PTR_NULL(strstr(text, "  2.  22 %"));
	free(text);
	text = text_of(&fixture, "C.UTF-8", 0, false);
	CU_ASSERT_PTR_NULL(strstr(text, "more ("));
	free(text);
}

static void loss_is_told_by_class(void)
{
	struct fixture fixture;
	char *text;

	fixture_init(&fixture);
	fixture.dataset.records_lost = fixture.dataset.loss[WL_LOSS_INTERVAL].lost = 162;
	fixture.dataset.loss[WL_LOSS_MISSED_RUN] = (struct dataset_loss){ 5000, 3 };
	fixture.dataset.event_cnt = 0;
	fixture.report.records_lost_share = 162 / 12402.;
	text = text_of(&fixture, "C.UTF-8", 10, false);
	check_has(text, "Loss: 162 records, 1 % of the requests  (emitted 12,402 = written 12,240 + lost 162)\n");
	check_has(text, "  interval             162 of 12,402");
	check_has(text, "  missed_run             3 of 5,000");
	check_has(text, "Hardware counters: absent");
	check_tidy(text);
	free(text);
	memset(fixture.dataset.loss, 0, sizeof(fixture.dataset.loss));
	fixture.dataset.records_lost = 0;
	text = text_of(&fixture, "C.UTF-8", 10, false);
	check_has(text, "Loss: not known");
	free(text);
}

static void nothing_recorded_is_explained(void)
{
	struct fixture fixture;
	char *text;

	fixture_init_empty(&fixture);
	text = text_of(&fixture, "C.UTF-8", 10, false);
	if (getenv("SHOW_VIEW"))
		fputs(text, stderr);
	check_has(text, "No request ended while this was recorded");
	check_has(text, "(-s)");
	check_has(text, "Loss: none");
	CU_ASSERT_PTR_NULL(strstr(text, "Why the slowest"));
	CU_ASSERT_PTR_NULL(strstr(text, "nan"));
	check_tidy(text);
	free(text);
	fixture.dataset.intervals_seen = 10;
	text = text_of(&fixture, "C", 10, false);
	check_has(text, "None of the requests was kept");
	check_tidy(text);
	free(text);
}

int suite_view(void)
{
	static const struct unit_test tests[] = {
		{ "durations have three digits and a unit", durations_have_three_digits_and_a_unit },
		{ "every duration fits 15 bytes", every_duration_fits_15_bytes },
		{ "UTF-8 is told from bytes", utf8_is_told_from_bytes },
		{ "JSON has every key of the schema", json_has_every_key_of_the_schema },
		{ "JSON breakdown has each category once", json_breakdown_has_each_category_once },
		{ "JSON events and causes", json_events_and_causes },
		{ "JSON of nothing is nulls and empty lists", json_of_nothing_is_nulls_and_empty_lists },
		{ "JSON survives hostile names", json_survives_hostile_names },
		{ "a full disk is an error", a_full_disk_is_an_error },
		{ "text gives the answer first", text_gives_the_answer_first },
		{ "text columns line up", text_columns_line_up },
		{ "text is ASCII where the locale is", text_is_ascii_where_the_locale_is },
		{ "text disarms hostile names", text_disarms_hostile_names },
		{ "colour adds nothing but colour", colour_adds_nothing_but_colour },
		{ "top limits the lists and says so", top_limits_the_lists_and_says_so },
		{ "loss is told by class", loss_is_told_by_class },
		{ "nothing recorded is explained", nothing_recorded_is_explained },
	};

	return unit_suite("view", tests, sizeof(tests) / sizeof(tests[0]));
}
