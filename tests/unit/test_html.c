// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/compare.h"
#include "base/random.h"
#include "test_analysis_fixture.h"
#include "unit.h"
#include "view/html.h"
#include "view/html_pack.h"
#include "view_fixture.h"

#include <errno.h>
#include <gnutls/crypto.h>
#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define MARKUP    "</script><img src=x onerror=\"a('b')\">&amp;<!--"
#define HARMLESS  "name"
#define PAGE_MAX  (3u << 20)
#define DATA_OPEN "<script type=\"application/octet-stream\" id=\"data\">"

/* --- pages ---------------------------------------------------------------------------------------------------------
 */

/* A report whose every name is the same text. */
static char *verdict_of(const char *name)
{
	const char *names[] = {name, name, name};
	struct cause_way way = {.category = WL_CATEGORY_LOCK, .share = 0.3, .hops = {name}, .hop_cnt = 1};
	struct dataset_host dataset_host = {.name = name};
	struct host_line hosts[] = {
		{.host = &dataset_host, .tail_ns = 2e6, .tail_ci = {1e6, 3e6}, .peers_tail_ns = 1e6},
		{.host = &dataset_host, .tail_ns = 1e6, .tail_ci = {NAN, NAN}, .peers_tail_ns = 2e6}};
	struct value_line variable = {.variable = name,
				      .function = name,
				      .typical_lo = 8,
				      .typical_hi = 14,
				      .late_median = 652,
				      .beyond_share = 0.9};
	struct value_report values = {.variables = &variable, .variable_cnt = 1};
	struct fixture fixture;
	struct html html;
	char *text = NULL;
	size_t sz;
	FILE *out = open_memstream(&text, &sz);

	fixture_init(&fixture);
	fixture.dataset.comm = fixture.dataset.host = fixture.dataset.kernel = name;
	fixture.dataset.notes = names;
	fixture.report.hosts = hosts;
	fixture.report.host_cnt = 2;
	fixture.report.values = &values;
	fixture.events[0].event = name;
	fixture.causes[0].what = name;
	fixture.causes[0].evidence = names;
	fixture.causes[0].evidence_cnt = 3;
	fixture.causes[0].has_root = true;
	fixture.causes[0].root.call_path = names;
	fixture.causes[0].root.call_path_cnt = 3;
	fixture.causes[0].ways = &way;
	fixture.causes[0].way_cnt = 1;
	html__open(&html, out, name);
	html__header(&html, &fixture.report);
	html__causes(&html, &fixture.report, 0);
	html__breakdown(&html, &fixture.report);
	html__charts(&html, &fixture.report, 0);
	CU_ASSERT_EQUAL(html__close(&html), 0);
	fclose(out);
	return text;
}

/* Two sides of which everything has that name. */
static char *comparison_of(const char *name)
{
	const struct view_opts opts = {.top = 0};
	struct compare_facts facts[COMPARE_SIDE_CNT] = {
		{.label = name, .host = name, .comm = name, .kernel = name, .pid = 7},
		{.label = name, .host = name, .comm = name, .pid = -1, .duration_s = 3},
	};
	struct compare_line line = {.name = name, .known = true, .gain = {{.p99_ns = 2e6}, {.p99_ns = 3e6}}};
	struct compare_type types[2] = {{.type = name, .in_both = true}, {.type = name}};
	struct comparison comparison = {
		.tail = 0.99,
		.types = types,
		.type_cnt = 2,
		.mixed = true,
		.whole = {{.p99_ns = 2e6}, {.p99_ns = 17e6}},
		.roots = {&line, 1},
		.categories = {&line, 1},
		.functions = {&line, 1},
		.events = {&line, 1},
		.verdict = COMPARE_WORSE,
	};
	char *text = NULL;
	size_t sz;
	FILE *out = open_memstream(&text, &sz);

	line.mean_diff = line.late_diff = (struct compare_difference){.value = 5, .ci = {1, 9}, .differs = true};
	for (size_t m = 0; m < COMPARE_METRIC_CNT; m++)
		comparison.metrics[m] = (struct compare_metric){.name = "p50", .like = line.mean_diff, .limit = NAN};
	CU_ASSERT_EQUAL(view_compare_html(out, &comparison, facts, &opts), 0);
	fclose(out);
	return text;
}

/* A recording of `cnt` requests: half of them of a type with that name, waits for a task with that name. */
struct recording {
	struct analysis_fixture fixture;
	struct findings findings;
};

static void recording_init(struct recording *recording, size_t cnt, const char *name)
{
	const struct report_opts opts = {.tail = 0.99, .bootstrap_cnt = 10, .seed = 1, .keep_rows = true};
	struct dataset *dataset = &recording->fixture.dataset;
	uint64_t state = 5;
	uint32_t string;

	memset(recording, 0, sizeof(*recording));
	analysis_fixture_init(&recording->fixture, cnt);
	string = fixture_string(&recording->fixture, name);
	dataset->begin_ts = calloc(cnt, sizeof(*dataset->begin_ts));
	dataset->comm = dataset->host = name;
	dataset->intervals_seen = cnt;
	for (size_t row = 0; row < cnt; row++) {
		dataset->begin_ts[row] = row * 100000 + random_next(&state) % 100000;
		dataset->weight[row] = row % 2 ? 1 : 7.5;
		dataset->type[row] = row % 2 ? string : 0;
		fixture_add(&recording->fixture, row, WL_CATEGORY_ONCPU, 50000 + random_next(&state) % 1000000);
		fixture_add(&recording->fixture, row, WL_CATEGORY_IO_NET, random_next(&state) % 70000);
		fixture_add(&recording->fixture, row, WL_CATEGORY_RUNQ,
			    row % 100 ? random_next(&state) % 3000 : 4000000 + random_next(&state) % 1000000);
		fixture_blame(&recording->fixture, row, WL_CATEGORY_RUNQ, (struct dataset_blame){.who = string});
	}
	recording->findings.dataset = *dataset;
	CU_ASSERT_EQUAL_FATAL(report_make(&recording->findings.report, &recording->findings.dataset, &opts), 0);
}

static void recording_free(struct recording *recording)
{
	report_free(&recording->findings.report);
	free(recording->fixture.dataset.begin_ts);
	analysis_fixture_free(&recording->fixture);
}

static char *page_of(const struct recording *recording, size_t *sz)
{
	const struct view_opts opts = {.top = 0};
	char *text = NULL;
	FILE *out = open_memstream(&text, sz);

	CU_ASSERT_EQUAL(view_html(out, &recording->findings, NULL, &opts), 0);
	fclose(out);
	CU_ASSERT_EQUAL(strlen(text), *sz);
	return text;
}

/* --- what is in them -----------------------------------------------------------------------------------------------
 */

static size_t count_of(const char *text, const char *part)
{
	size_t cnt = 0;

	while ((text = strstr(text, part))) {
		cnt++;
		text += strlen(part);
	}
	return cnt;
}

/* However hostile a name, the page has as much markup as with a harmless one. */
static void check_same_markup(const char *harmless, const char *hostile)
{
	static const char *const marks[] = {"<", ">", "\"", "'", "<script", "<img", "<!--"};

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		CU_ASSERT_EQUAL(count_of(harmless, marks[i]), count_of(hostile, marks[i]));
	CU_ASSERT(fixture_is_utf8(hostile));
	for (const char *at = hostile; *at; at++)
		CU_ASSERT((unsigned char)*at >= ' ' || *at == '\n' || *at == '\t');
}

static void names_are_no_markup_in_the_verdict(void)
{
	static const char *const names[] = {MARKUP, HOSTILE, "\"><b>", "'", "\xff<\xfe>"};
	char *harmless = verdict_of(HARMLESS);

	CU_ASSERT(count_of(harmless, HARMLESS) >= 12);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *hostile = verdict_of(names[i]);

		check_same_markup(harmless, hostile);
		free(hostile);
	}
	free(harmless);
}

static void names_are_no_markup_in_a_comparison(void)
{
	static const char *const names[] = {MARKUP, HOSTILE};
	char *harmless = comparison_of(HARMLESS);

	CU_ASSERT(count_of(harmless, HARMLESS) >= 12);
	CU_ASSERT_EQUAL(count_of(harmless, "<script"), 0);
	CU_ASSERT_EQUAL(count_of(harmless, "p99 without it</td>"), 1);
	CU_ASSERT_EQUAL(count_of(harmless, ">instead of 2.00 ms and 17.0 ms<"), 1);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *hostile = comparison_of(names[i]);

		check_same_markup(harmless, hostile);
		free(hostile);
	}
	free(harmless);
}

static void names_are_no_markup_in_the_page(void)
{
	struct recording recording;
	char *harmless, *hostile;
	size_t sz;

	recording_init(&recording, 2000, HARMLESS);
	harmless = page_of(&recording, &sz);
	recording_free(&recording);
	recording_init(&recording, 2000, MARKUP);
	hostile = page_of(&recording, &sz);
	recording_free(&recording);
	check_same_markup(harmless, hostile);
	CU_ASSERT_PTR_NULL(strstr(hostile, "<img"));
	free(harmless);
	free(hostile);
}

/* The first element of that kind: what is in it. */
static char *content_of(const char *page, const char *open, const char *close)
{
	const char *begin = strstr(page, open), *end;

	CU_ASSERT_PTR_NOT_NULL_FATAL(begin);
	begin += strlen(open);
	end = strstr(begin, close);
	CU_ASSERT_PTR_NOT_NULL_FATAL(end);
	return strndup(begin, (size_t)(end - begin));
}

static void check_admitted(const char *page, const char *directive, const char *open, const char *close)
{
	char *content = content_of(page, open, close), *hash = NULL, *policy;
	uint8_t digest[32];
	size_t sz;
	FILE *out = open_memstream(&hash, &sz);

	CU_ASSERT_EQUAL(gnutls_hash_fast(GNUTLS_DIG_SHA256, content, strlen(content), digest), 0);
	fprintf(out, "%s 'sha256-", directive);
	html_put_base64(out, digest, sizeof(digest));
	fclose(out);
	policy = content_of(page, "Content-Security-Policy\" content=\"", "\"");
	CU_ASSERT_PTR_NOT_NULL(strstr(policy, hash));
	CU_ASSERT_PTR_NOT_NULL(strstr(policy, "default-src 'none'"));
	CU_ASSERT_PTR_NULL(strstr(policy, "unsafe"));
	free(policy);
	free(content);
	free(hash);
}

static void the_policy_admits_its_own_script_and_style_only(void)
{
	struct recording recording;
	size_t sz;
	char *page;

	recording_init(&recording, 200, HARMLESS);
	page = page_of(&recording, &sz);
	recording_free(&recording);
	check_admitted(page, "script-src", "<script>", "</script>");
	check_admitted(page, "style-src", "<style>", "</style>");
	CU_ASSERT_EQUAL(count_of(page, "<script"), 2);
	CU_ASSERT_EQUAL(count_of(page, "style=\""), 0);
	CU_ASSERT_EQUAL(count_of(page, " src=\""), 0);
	CU_ASSERT_EQUAL(count_of(page, "<link"), 0);
	free(page);
}

/* --- the data block, read as the page reads it ---------------------------------------------------------------------
 */

struct block {
	uint8_t *bytes;
	size_t sz;
	struct json_object *header;
	size_t first; /* of the columns */
};

static int digit(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = strchr(digits, c);

	return at && c ? (int)(at - digits) : -1;
}

static void block_read(struct block *block, const char *page)
{
	char *text = content_of(page, DATA_OPEN, "</script>"), *json;
	size_t packed_cnt = 0, len = strlen(text), header_sz;
	uint8_t *packed = malloc(len);
	uLongf room = 64u << 20;

	CU_ASSERT_EQUAL(len % 4, 0);
	for (size_t i = 0; i < len; i += 4) {
		uint32_t group = 0;
		unsigned pads = 0;

		for (size_t d = 0; d < 4; d++) {
			pads += text[i + d] == '=';
			CU_ASSERT_FATAL(text[i + d] == '=' || digit(text[i + d]) >= 0);
			group = group << 6 | (uint32_t)(text[i + d] == '=' ? 0 : digit(text[i + d]));
		}
		for (unsigned b = 0; b < 3 - pads; b++)
			packed[packed_cnt++] = (uint8_t)(group >> (16 - 8 * b));
	}
	block->bytes = malloc(room);
	CU_ASSERT_EQUAL_FATAL(uncompress(block->bytes, &room, packed, packed_cnt), Z_OK);
	block->sz = room;
	header_sz = block->bytes[0] | (size_t)block->bytes[1] << 8 | (size_t)block->bytes[2] << 16 |
		    (size_t)block->bytes[3] << 24;
	json = strndup((char *)block->bytes + 4, header_sz);
	block->header = json_tokener_parse(json);
	block->first = 4 + header_sz;
	CU_ASSERT_PTR_NOT_NULL_FATAL(block->header);
	free(json);
	free(packed);
	free(text);
}

static void block_free(struct block *block)
{
	json_object_put(block->header);
	free(block->bytes);
}

static struct json_object *header_at(const struct block *block, const char *key)
{
	struct json_object *value = NULL;

	CU_ASSERT_FATAL(json_object_object_get_ex(block->header, key, &value));
	return value;
}

static const uint8_t *column_of(const struct block *block, const char *name)
{
	struct json_object *off = NULL;

	CU_ASSERT_FATAL(json_object_object_get_ex(header_at(block, "columns"), name, &off));
	return block->bytes + block->first + json_object_get_uint64(off);
}

static uint64_t next(const uint8_t **at)
{
	uint64_t value = 0;

	for (unsigned shift = 0;; shift += 7) {
		value |= (uint64_t)(**at & 127) << shift;
		if (!(*(*at)++ & 128))
			return value;
	}
}

static double ns_of(uint64_t code)
{
	uint64_t shift;

	if (code < 512)
		return (double)code;
	shift = code / 256 - 1;
	return ((double)(code - shift * 256) + 0.5) * pow(2, (double)shift) - 0.5;
}

static void lengths_are_rounded_by_a_fifth_of_a_percent(void)
{
	uint64_t before = 0;

	for (uint64_t ns = 0; ns < 1ULL << 62; ns += ns / 97 + 1) {
		uint64_t code = html_pack__ns_code(ns);

		CU_ASSERT(code >= before && code < 1 << 14);
		CU_ASSERT(fabs(ns_of(code) - (double)ns) <= (double)ns / 512);
		before = code;
	}
}

static void base64_is_base64(void)
{
	static const struct {
		const char *bytes, *text;
	} cases[] = {{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = NULL;
		size_t sz;
		FILE *out = open_memstream(&text, &sz);

		html_put_base64(out, (const uint8_t *)cases[i].bytes, strlen(cases[i].bytes));
		fclose(out);
		CU_ASSERT_STRING_EQUAL(text, cases[i].text);
		free(text);
	}
}

/* Row by row, the categories and the first cause are those of the dataset. */
static void the_block_holds_the_requests(void)
{
	const uint8_t *mask, *runq, *oncpu, *net, *cause, *weight, *host;
	struct dataset_host hosts[] = {{.name = "a"}, {.name = MARKUP}};
	struct recording recording;
	struct block block;
	uint64_t row = 0, met;
	size_t sz;
	char *page;

	recording_init(&recording, 3000, MARKUP);
	recording.findings.dataset.hosts = hosts;
	recording.findings.dataset.host_cnt = 2;
	recording.findings.dataset.host_idx = calloc(3000, sizeof(uint32_t));
	for (size_t i = 0; i < 3000; i++)
		recording.findings.dataset.host_idx[i] = i % 3 == 0;
	page = page_of(&recording, &sz);
	block_read(&block, page);
	CU_ASSERT_EQUAL(json_object_array_length(header_at(&block, "hosts")), 2);
	host = column_of(&block, "host");
	CU_ASSERT_EQUAL(json_object_get_int(header_at(&block, "rows")), 3000);
	CU_ASSERT_FALSE(json_object_get_boolean(header_at(&block, "thinned")));
	mask = column_of(&block, "mask");
	oncpu = column_of(&block, "ns.oncpu");
	runq = column_of(&block, "ns.runq");
	net = column_of(&block, "ns.io.net");
	weight = column_of(&block, "weight");
	for (size_t i = 0; i < 3000; i++) {
		const struct dataset *dataset = &recording.findings.dataset;
		uint64_t bits = next(&mask);
		struct json_object *of = json_object_array_get_idx(header_at(&block, "weights"), next(&weight));
		double latency = ns_of(next(&oncpu));

		latency += bits >> WL_CATEGORY_RUNQ & 1 ? ns_of(next(&runq)) : 0;
		latency += bits >> WL_CATEGORY_IO_NET & 1 ? ns_of(next(&net)) : 0;
		CU_ASSERT(fabs(latency - (double)dataset->latency_ns[i]) <= (double)dataset->latency_ns[i] / 512);
		CU_ASSERT_EQUAL(json_object_get_double(of), dataset->weight[i]);
		CU_ASSERT_EQUAL(next(&host), i % 3 == 0);
	}
	cause = column_of(&block, "cause.0");
	met = next(&cause);
	CU_ASSERT(met > 2900);
	for (row = next(&cause); met; met--, row += met ? 1 + next(&cause) : 0) {
		uint64_t ns = recording.findings.report.causes[0].row_ns[row];

		CU_ASSERT(fabs(ns_of(next(&cause)) - (double)ns) <= (double)ns / 512);
	}
	block_free(&block);
	free(page);
	free(recording.findings.dataset.host_idx);
	recording_free(&recording);
}

static double float_of(uint64_t code)
{
	uint32_t bits = (uint32_t)code << 12;
	float number;

	memcpy(&number, &bits, sizeof(number));
	return (double)number;
}

/* Numbers of any sign and size, row by row. */
static void the_block_holds_values(void)
{
	static const double numbers[] = {0, 1, -1, 652, -0.001, 3e30, 1e300, 123456789};
	struct value_mean means[8];
	struct value_line variables[2] = {{.variable = "pointer"}, {.variable = MARKUP, .function = "f"}};
	struct value_report values = {.variables = variables, .variable_cnt = 2, .means = means, .mean_cnt = 8};
	struct recording recording;
	const uint8_t *column;
	struct block block;
	size_t sz;
	char *page;

	for (uint32_t i = 0; i < 8; i++)
		means[i] = (struct value_mean){1, 10 * i, numbers[i]};
	recording_init(&recording, 300, HARMLESS);
	recording.findings.report.values = &values;
	page = page_of(&recording, &sz);
	block_read(&block, page);
	CU_ASSERT_EQUAL(json_object_array_length(header_at(&block, "values")), 1);
	column = column_of(&block, "value.0");
	CU_ASSERT_EQUAL_FATAL(next(&column), 8);
	for (size_t i = 0; i < 8; i++) {
		double want = fmin(numbers[i], 1e38);

		CU_ASSERT_EQUAL(next(&column), i ? 9 : 0);
		CU_ASSERT_DOUBLE_EQUAL(float_of(next(&column)), want, fabs(want) / 2000);
	}
	CU_ASSERT_EQUAL(json_object_array_length(header_at(&block, "contexts")), 0);
	CU_ASSERT_EQUAL(json_object_array_length(header_at(&block, "crosstalk")), 0);
	block_free(&block);
	free(page);
	recording_free(&recording);
}

/* More than fit: all late requests are there, the weights still sum to about what they did. */
static void a_large_recording_fits(void)
{
	const uint8_t *group, *weight;
	double sum = 0, whole = 0;
	struct recording recording;
	struct block block;
	size_t sz, cnt, late = 0, late_kept = 0;
	char *page;

	recording_init(&recording, 400000, HARMLESS);
	page = page_of(&recording, &sz);
	CU_ASSERT(sz <= PAGE_MAX);
	block_read(&block, page);
	cnt = json_object_get_uint64(header_at(&block, "rows"));
	CU_ASSERT(cnt >= 200000 && cnt < 400000);
	CU_ASSERT(json_object_get_boolean(header_at(&block, "thinned")));
	for (size_t i = 0; i < 400000; i++) {
		whole += recording.findings.dataset.weight[i];
		late += (double)recording.findings.dataset.latency_ns[i] >= recording.findings.report.tail_threshold_ns;
	}
	group = column_of(&block, "group");
	weight = column_of(&block, "weight");
	for (size_t i = 0; i < cnt; i++) {
		sum += json_object_get_double(json_object_array_get_idx(header_at(&block, "weights"), next(&weight)));
		late_kept += (next(&group) & 3) == 2;
	}
	CU_ASSERT_EQUAL(late_kept, late);
	CU_ASSERT_DOUBLE_EQUAL(sum / whole, 1, 0.01);
	block_free(&block);
	free(page);
	recording_free(&recording);
}

static void a_full_disk_is_an_error(void)
{
	const struct view_opts opts = {.top = 10};
	struct recording recording;
	FILE *full = fopen("/dev/full", "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(full);
	recording_init(&recording, 200, HARMLESS);
	CU_ASSERT_EQUAL(view_html(full, &recording.findings, NULL, &opts), -EIO);
	recording_free(&recording);
	fclose(full);
}

static void nothing_recorded_has_a_page(void)
{
	const struct view_opts opts = {.top = 10};
	struct findings findings = {0};
	struct fixture fixture;
	char *text = NULL;
	size_t sz;
	FILE *out = open_memstream(&text, &sz);

	fixture_init_empty(&fixture);
	findings.dataset = fixture.dataset;
	findings.report = fixture.report;
	findings.report.dataset = &findings.dataset;
	CU_ASSERT_EQUAL(view_html(out, &findings, NULL, &opts), 0);
	fclose(out);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "nothing to rank"));
	CU_ASSERT_PTR_NULL(strstr(text, DATA_OPEN));
	free(text);
}

int suite_html(void)
{
	static const struct unit_test tests[] = {
		{"names are no markup in the verdict", names_are_no_markup_in_the_verdict},
		{"names are no markup in the page", names_are_no_markup_in_the_page},
		{"names are no markup in a comparison", names_are_no_markup_in_a_comparison},
		{"the policy admits its own script and style only", the_policy_admits_its_own_script_and_style_only},
		{"lengths are rounded by a fifth of a percent", lengths_are_rounded_by_a_fifth_of_a_percent},
		{"base64 is base64", base64_is_base64},
		{"the block holds the requests", the_block_holds_the_requests},
		{"the block holds values", the_block_holds_values},
		{"a large recording fits", a_large_recording_fits},
		{"a full disk is an error", a_full_disk_is_an_error},
		{"nothing recorded has a page", nothing_recorded_has_a_page},
	};

	return unit_suite("html", tests, sizeof(tests) / sizeof(tests[0]));
}
