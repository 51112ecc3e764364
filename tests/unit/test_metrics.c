// SPDX-License-Identifier: GPL-2.0-or-later
/* Metrics as Prometheus's own checker reads them. */
#include "analysis/findings.h"
#include "net/collect/metrics.h"
#include "row_writer.h"
#include "test_shard_util.h"
#include "trace_fixture.h"
#include "unit.h"
#include "view/export_metrics.h"
#include "view/metrics_read.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOSTILE "it's\\ \"q\"} 1\nevil 2\xff"

/* Whether promtool has nothing to say against the file; true where it is not there, which is said. */
static bool promtool(const char *what, const char *path)
{
	char command[512], line[256];
	FILE *in;
	bool silent = true;

	if (system("command -v promtool >/dev/null 2>&1")) {
		printf("\n    skipped: promtool is not installed ");
		return true;
	}
	snprintf(command, sizeof(command), "promtool check %s %s%s 2>&1", what, strcmp(what, "rules") ? "<" : "", path);
	in = popen(command, "r");
	while (in && fgets(line, sizeof(line), in))
		if (!strcmp(what, "metrics") || strstr(line, "FAILED")) {
			fprintf(stderr, "promtool: %s", line);
			silent = false;
		}
	return in && !pclose(in) && silent;
}

/* The text of a file, to be freed. */
static char *text_of(const char *path)
{
	struct shard_buf bytes = {0};

	test_file__read(path, &bytes);
	CU_ASSERT_FATAL(!vec_reserve(&bytes, 1));
	bytes.items[bytes.cnt] = '\0';
	return (char *)bytes.items;
}

static void export_to(const char *dir, const char *path, bool openmetrics)
{
	struct shard_reader *reader = test_reader__open(dir);
	FILE *out = fopen(path, "we");

	CU_ASSERT_FATAL(out != NULL);
	CU_ASSERT_EQUAL(export_metrics_of(out, reader, openmetrics), 0);
	fclose(out);
	shard_reader__free(reader);
}

/* What follows the last brace of a line: labels may hold others. */
static const char *behind_labels(const char *line)
{
	const char *found = NULL;

	for (; *line && *line != '\n'; line++)
		if (!strncmp(line, "\"} ", 3))
			found = line + 3;
	return found;
}

/* The value of the one series that begins so; NAN: there is none, or several. */
static double value_of(const char *text, const char *begin)
{
	const char *line = strstr(text, begin), *value = line ? behind_labels(line) : NULL;

	return value && !strstr(value, begin) ? strtod(value, NULL) : NAN;
}

static void buckets_add_up(const char *text)
{
	double before = 0, sum = 0, value;
	unsigned buckets = 0;

	for (const char *line = text; line; line = strchr(line, '\n')) {
		const char *brace;

		line += *line == '\n';
		if (strncmp(line, "whylate_request_seconds_bucket", 30))
			continue;
		brace = behind_labels(line);
		CU_ASSERT_FATAL(brace != NULL);
		value = strtod(brace, NULL);
		/* Bounds grow from one to the next, and begin again with the next series. */
		if (strstr(line, "le=\"1e-05\"") && strstr(line, "le=\"1e-05\"") < brace)
			before = 0;
		CU_ASSERT(value >= before);
		before = value;
		buckets++;
		if (strstr(line, "+Inf") && strstr(line, "+Inf") < brace)
			sum += value;
	}
	CU_ASSERT(buckets > 0 && sum > 0);
}

static void a_recording_is_metrics(void)
{
	struct test_dir dir;
	char path[128], *text;

	test_dir__make(&dir);
	trace_fixture_write(dir.path, 200);
	snprintf(path, sizeof(path), "%s/metrics", dir.path);
	export_to(dir.path, path, false);
	CU_ASSERT(promtool("metrics", path));
	text = text_of(path);
	buckets_add_up(text);
	CU_ASSERT(value_of(text, "whylate_request_seconds_count{host=\"host\",comm=\"web\",type=\"tcp:80\"") >= 200);
	CU_ASSERT(strstr(text, "whylate_late_seconds_total") && strstr(text, "category=\"lock\""));
	CU_ASSERT(strstr(text, "whylate_root_late_seconds_total") && !strstr(text, "# {") && !strstr(text, "# EOF"));
	free(text);
	export_to(dir.path, path, true);
	text = text_of(path);
	CU_ASSERT(strstr(text, "# {session=\"") && strlen(text) > 6 && !strcmp(text + strlen(text) - 6, "# EOF\n"));
	CU_ASSERT(strstr(text, "# TYPE whylate_late_seconds counter") != NULL);
	free(text);
	test_dir__remove(&dir);
}

static void hostile_types_stay_within_their_quotes(void)
{
	struct row_writer to;
	struct test_dir dir;
	char path[128], type[64], *text;
	unsigned series = 0;

	test_dir__make(&dir);
	row_writer_open(&to, dir.path, "h", 3, 5);
	row_put_session(&to, "comm", HOSTILE);
	row_put_interval(&to, 1, 7, HOSTILE, 1000, 2000000, 0, 0);
	for (uint64_t i = 0; i < 500; i++) {
		snprintf(type, sizeof(type), "GET /%u", (unsigned)i % 100);
		row_put_interval(&to, i + 2, 7, type, 1000 + i, 3000000 + i * 1000, 0, 0);
	}
	row_writer_close(&to);
	snprintf(path, sizeof(path), "%s/metrics", dir.path);
	export_to(dir.path, path, false);
	CU_ASSERT(promtool("metrics", path));
	text = text_of(path);
	buckets_add_up(text);
	CU_ASSERT_PTR_NULL(strstr(text, "\nevil"));
	for (const char *at = text; (at = strstr(at, "whylate_request_seconds_count{")); at++)
		series++;
	CU_ASSERT_EQUAL(series, METRICS_TYPES_MAX + 1);
	CU_ASSERT(strstr(text, "type=\"other\"") != NULL);
	free(text);
	test_dir__remove(&dir);
}

static void a_collector_speaks_the_same_language(void)
{
	const struct store_result result = {.stored = 3, .stored_bytes = 1000};
	const struct metrics_times times = {.max_ts = 5, .mono_anchor_ns = 1, .wall_anchor_ns = 1795471120000000000};
	struct metrics metrics;
	struct test_dir dir;
	char path[128];
	FILE *out;

	test_dir__make(&dir);
	snprintf(path, sizeof(path), "%s/metrics", dir.path);
	metrics__init(&metrics);
	metrics__stored(&metrics, "web-1", &result, &times, 1795471121);
	metrics__stored(&metrics, "web-2", &result, &times, 1795471122);
	out = fopen(path, "we");
	CU_ASSERT_EQUAL(metrics__print(&metrics, out), 0);
	fclose(out);
	metrics__clear(&metrics);
	CU_ASSERT(promtool("metrics", path));
	test_dir__remove(&dir);
}

static void the_alert_rules_are_rules(void)
{
	CU_ASSERT(promtool("rules", "packaging/whylate.rules.yml"));
}

int suite_metrics(void)
{
	static const struct unit_test tests[] = {
		{"a recording is metrics", a_recording_is_metrics},
		{"hostile types stay within their quotes", hostile_types_stay_within_their_quotes},
		{"a collector speaks the same language", a_collector_speaks_the_same_language},
		{"the alert rules are rules", the_alert_rules_are_rules},
	};

	return unit_suite("metrics", tests, sizeof(tests) / sizeof(tests[0]));
}
