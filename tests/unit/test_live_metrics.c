// SPDX-License-Identifier: GPL-2.0-or-later
/* What a recording counts while it runs, and the forms in which Prometheus gets it. */
#include "base/exphist.h"
#include "net/send/live_metrics.h"
#include "test_shard_util.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOSTILE "it's\\ \"q\"} 1\nevil 2\xff"

static void buckets_hold_what_they_say(void)
{
	/* An upper bound belongs to its bucket. */
	CU_ASSERT_EQUAL(exphist_index(1), 0);
	CU_ASSERT_EQUAL(exphist_index(nextafter(1, 2)), 1);
	CU_ASSERT_EQUAL(exphist_index(2), 8);
	CU_ASSERT_EQUAL(exphist_index(0.5), -8);
	CU_ASSERT_EQUAL(exphist_index(0), EXPHIST_MIN);
	CU_ASSERT_EQUAL(exphist_index(1e9), EXPHIST_MAX);
	for (double seconds = 2e-9; seconds < 10000; seconds *= 1.0037) {
		int i = exphist_index(seconds);

		CU_ASSERT_FATAL(seconds > exp2((i - 1) / 8.0) * (1 - 1e-12) && seconds <= exp2(i / 8.0) * (1 + 1e-12));
	}
}

static void clients_get_what_they_like(void)
{
	static const struct {
		const char *accept;
		enum live_format format;
	} cases[] = {
		{NULL, LIVE_TEXT},
		{"", LIVE_TEXT},
		{"*/*", LIVE_TEXT},
		{"application/json", LIVE_TEXT},
		{"application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
		 LIVE_OPENMETRICS},
		{"text/plain;q=0.9, application/openmetrics-text;q=0.2", LIVE_TEXT},
		{"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,"
		 "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;q=0.5",
		 LIVE_PROTOBUF},
		{"application/vnd.google.protobuf;proto=other.Message,text/plain;q=0.5", LIVE_TEXT},
		{"application/openmetrics-textual", LIVE_TEXT},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CU_ASSERT_EQUAL(live_format_of(cases[i].accept), cases[i].format);
}

static struct live_metrics *make(void)
{
	const struct live_exemplar exemplar = {
		.session = 0xabc, .sid = 77, .trace_id = "0123456789abcdef0123456789abcdef"};
	const uint64_t category_ns[WL_CATEGORY_CNT] = {[WL_CATEGORY_ONCPU] = 1000000, [WL_CATEGORY_LOCK] = 3000000};
	struct live_metrics *metrics = calloc(1, sizeof(*metrics));
	char type[32];
	uint32_t series;

	CU_ASSERT_PTR_NOT_NULL_FATAL(metrics);
	strcpy(metrics->host, "web-1");
	strcpy(metrics->comm, HOSTILE);
	metrics->bpf_s = NAN;
	metrics->agent_s = 0.25;
	metrics->loss_known[0] = true;
	metrics->lost[0] = 3;
	series = live_metrics__series(metrics, "tcp:80 " HOSTILE);
	CU_ASSERT_EQUAL(live_metrics__series(metrics, "tcp:80 " HOSTILE), series);
	for (int i = 0; i < 100; i++)
		live_metrics__saw(metrics, series, 1000000, 2);
	live_metrics__saw(metrics, series, 4000000, 2);
	live_metrics__late(metrics, series, 4000000, 2, category_ns, &exemplar);
	for (unsigned i = 0; i < 100; i++) {
		snprintf(type, sizeof(type), "GET /%u", i);
		live_metrics__saw(metrics, live_metrics__series(metrics, type), 1000, 1);
		live_metrics__root(metrics, WL_CATEGORY_LOCK, type, "vacuum", 1e6);
	}
	return metrics;
}

static unsigned count_of(const char *text, const char *what)
{
	unsigned cnt = 0;

	for (const char *at = text; (at = strstr(at, what)); at++)
		cnt++;
	return cnt;
}

static void a_text_is_bounded_and_well_formed(void)
{
	struct live_metrics *metrics = make();
	char command[256], path[128];
	struct test_dir dir;
	size_t sz;
	char *text = live_metrics__print(metrics, LIVE_TEXT, &sz);

	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	CU_ASSERT_EQUAL(sz, strlen(text));
	CU_ASSERT_EQUAL(count_of(text, "whylate_request_seconds_count{"), LIVE_TYPES_MAX + 1);
	CU_ASSERT_EQUAL(count_of(text, "whylate_root_late_seconds_total{"), LIVE_ROOTS_MAX + 1);
	CU_ASSERT_EQUAL(count_of(text, "root=\"other\",category=\"other\""), 1);
	CU_ASSERT_EQUAL(count_of(text, "type=\"other\",le=\"+Inf\"} 81\n"), 1);
	CU_ASSERT_EQUAL(count_of(text, ",le=\"+Inf\"} 202\n"), 1);
	CU_ASSERT_EQUAL(count_of(text, "category=\"lock\"} 0.0060000000000000001\n"), 1);
	CU_ASSERT(!strstr(text, "\nevil") && !strstr(text, "# {") && !strstr(text, "nan"));
	CU_ASSERT(!strstr(text, "whylate_bpf_cpu_seconds") && strstr(text, "whylate_agent_cpu_seconds_total"));
	test_dir__make(&dir);
	snprintf(path, sizeof(path), "%s/metrics", dir.path);
	test_file__write(path, (const uint8_t *)text, sz);
	snprintf(command, sizeof(command), "promtool check metrics <%s", path);
	if (system("command -v promtool >/dev/null 2>&1"))
		printf("\n    skipped: promtool is not installed ");
	else
		CU_ASSERT_EQUAL(system(command), 0);
	free(text);
	text = live_metrics__print(metrics, LIVE_OPENMETRICS, &sz);
	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "# {trace_id=\"0123456789abcdef0123456789abcdef\",session="
					    "\"0000000000000abc\",sid=\"77\"} 0.004\n"));
	CU_ASSERT(!strcmp(text + sz - 6, "# EOF\n"));
	free(text);
	free(metrics);
	test_dir__remove(&dir);
}

/* The first message of a stream as protoc reads it, to be freed. */
static char *decode_first(const char *bytes, size_t sz)
{
	char command[512], path[128], out_path[160];
	struct shard_buf text = {0};
	struct test_dir dir;
	size_t at = 0, len = 0;

	do
		len |= (size_t)(bytes[at] & 0x7f) << 7 * at;
	while (bytes[at++] & 0x80);
	CU_ASSERT_FATAL(at + len <= sz);
	test_dir__make(&dir);
	snprintf(path, sizeof(path), "%s/family", dir.path);
	snprintf(out_path, sizeof(out_path), "%s/text", dir.path);
	test_file__write(path, (const uint8_t *)bytes + at, len);
	snprintf(command, sizeof(command),
		 "protoc -I tests/unit --decode=io.prometheus.client.MetricFamily prometheus.proto <%s >%s", path,
		 out_path);
	CU_ASSERT_EQUAL(system(command), 0);
	test_file__read(out_path, &text);
	CU_ASSERT_FATAL(!vec_reserve(&text, 1));
	text.items[text.cnt] = '\0';
	test_dir__remove(&dir);
	return (char *)text.items;
}

static void a_native_histogram_counts_the_same(void)
{
	struct live_metrics *metrics = make();
	char *bytes, *text;
	size_t sz;

	if (system("command -v protoc >/dev/null 2>&1")) {
		printf("\n    skipped: protoc is not installed ");
		free(metrics);
		return;
	}
	bytes = live_metrics__print(metrics, LIVE_PROTOBUF, &sz);
	CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
	text = decode_first(bytes, sz);
	CU_ASSERT(strstr(text, "name: \"whylate_request_seconds\"") && strstr(text, "type: HISTOGRAM"));
	CU_ASSERT_EQUAL(count_of(text, "sample_count_float: "), LIVE_TYPES_MAX + 1);
	CU_ASSERT(strstr(text, "sample_count_float: 202") && strstr(text, "schema: 3"));
	/* 1 ms is in bucket -79, (2^-10, 2^(-79/8)], 4 ms in -63; 15 in between are empty. */
	CU_ASSERT(strstr(text, "offset: -79") && strstr(text, "length: 17"));
	CU_ASSERT(strstr(text, "positive_count: 200") && strstr(text, "positive_count: 2\n"));
	CU_ASSERT(strstr(text, "upper_bound: inf") && strstr(text, "value: \"77\""));
	/* A field that the definition has not would be a number. */
	CU_ASSERT_PTR_NULL(strstr(text, "\n  5: "));
	free(text);
	free(bytes);
	free(metrics);
}

int suite_live_metrics(void)
{
	static const struct unit_test tests[] = {
		{"buckets hold what they say", buckets_hold_what_they_say},
		{"clients get what they like", clients_get_what_they_like},
		{"a text is bounded and well formed", a_text_is_bounded_and_well_formed},
		{"a native histogram counts the same", a_native_histogram_counts_the_same},
	};

	return unit_suite("live_metrics", tests, sizeof(tests) / sizeof(tests[0]));
}
