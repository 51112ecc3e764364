// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/names.h"
#include "base/utf8.h"
#include "unit.h"
#include "view/view.h"
#include "view_fixture.h"

#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
#define CHECK_NULL(root, path)       CHECK_TYPE(root, path, null)
#define CHECK_STRING(root, path, value)                                                \
	do {                                                                           \
		CHECK_TYPE(root, path, string);                                        \
		CU_ASSERT_STRING_EQUAL(json_object_get_string(at(root, path)), value); \
	} while (0)
#define CHECK_INT(root, path, value)                                           \
	do {                                                                   \
		CHECK_TYPE(root, path, int);                                   \
		CU_ASSERT_EQUAL(json_object_get_int64(at(root, path)), value); \
	} while (0)
#define CHECK_NUMBER(root, path, value)                                                      \
	do {                                                                                 \
		CHECK_TYPE(root, path, double);                                              \
		CU_ASSERT_DOUBLE_EQUAL(json_object_get_double(at(root, path)), value, 1e-9); \
	} while (0)

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
	bool there[WL_CATEGORY_CNT] = {false};

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

static void json_our_own(void)
{
	struct fixture fixture;
	struct json_object *root;

	fixture_init(&fixture);
	root = json_of(&fixture);
	CHECK_NULL(root, "our_own");
	json_object_put(root);
	fixture.report.our_own = (struct own_line){true, 0.004, {0.001, 0.006}, NAN, 300, 0, 20000};
	root = json_of(&fixture);
	CHECK_NUMBER(root, "our_own.share", 0.004);
	CHECK_NUMBER(root, "our_own.share_ci.1", 0.006);
	CHECK_NULL(root, "our_own.variance_share");
	CHECK_INT(root, "our_own.typical_ns", 0);
	CHECK_INT(root, "our_own.late_ns", 20000);
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
	CHECK_NUMBER(root, "events.0.gain", 0.41);
	CHECK_NUMBER(root, "events.0.gain_ci.1", 0.44);
	CHECK_NUMBER(root, "events.0.impact", 0.38);
	CHECK_NUMBER(root, "events.0.impact_ci.0", 0.31);
	CHECK_NULL(root, "events.1.gain_ci.0");
	CHECK_STRING(root, "events.0.correlated_with", "hw.cycles");
	CHECK_NULL(root, "events.1.correlation");
	CHECK_NUMBER(root, "recording_length.needed_s", 2.7);
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

static void json_survives_hostile_names(void)
{
	struct fixture fixture;
	struct json_object *root;
	uint32_t codepoint;
	char *text;

	fixture_init(&fixture);
	fixture.dataset.comm = fixture.types[0].type = HOSTILE;
	fixture.causes[0].what = fixture.causes[0].culprit_comm = HOSTILE;
	fixture.report.breakdown[0].tail_share = -0.0;
	fixture.report.latency.max_ns = 1e300;
	fixture.report.latency.variance_ns2 = INFINITY;
	fixture.dataset.loss[WL_LOSS_TASK].lost = UINT64_MAX;
	text = json_text_of(&fixture);
	CU_ASSERT(fixture_is_utf8(text));
	CU_ASSERT_PTR_NULL(strstr(text, "Infinity"));
	CU_ASSERT_PTR_NULL(strstr(text, "NaN"));
	CU_ASSERT_PTR_NULL(strstr(text, "-0.0,"));
	for (const char *str = text; *str;) {
		CU_ASSERT(utf8_next(&str, &codepoint));
		CU_ASSERT(codepoint == '\n' || !utf8_acts(codepoint));
	}
	free(text);
	root = json_of(&fixture);
	CHECK_STRING(root, "session.comm",
		     "ba\x1b[2J" UTF8_REPLACEMENT UTF8_REPLACEMENT "(\n\r" UTF8_REPLACEMENT "31m\xe2\x80\xae\xc2\x9b"
		     "evil\"\\\x7f");
	CHECK_INT(root, "latency.max_ns", INT64_MAX);
	CHECK_NULL(root, "latency.variance_ns2");
	/* How many there were of these, nobody counted. */
	CHECK_NULL(root, "loss.detail.task.emitted");
	CHECK_INT(root, "loss.detail.scope.emitted", 0);
	json_object_put(root);
}

static void a_full_disk_is_an_error(void)
{
	struct fixture fixture;
	FILE *full = fopen("/dev/full", "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(full);
	fixture_init(&fixture);
	CU_ASSERT_EQUAL(view_json(full, &fixture.report), -EIO);
	fclose(full);
}

int suite_view_json(void)
{
	static const struct unit_test tests[] = {
		{"has every key of the schema", json_has_every_key_of_the_schema},
		{"breakdown has each category once", json_breakdown_has_each_category_once},
		{"our own", json_our_own},
		{"events and causes", json_events_and_causes},
		{"of nothing is nulls and empty lists", json_of_nothing_is_nulls_and_empty_lists},
		{"survives hostile names", json_survives_hostile_names},
		{"a full disk is an error", a_full_disk_is_an_error},
	};

	return unit_suite("view_json", tests, sizeof(tests) / sizeof(tests[0]));
}
