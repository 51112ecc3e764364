// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/utf8.h"
#include "unit.h"
#include "view/format.h"
#include "view/page.h"
#include "view/view.h"
#include "view_fixture.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *text_of(const struct fixture *fixture, const char *locale, uint32_t top, bool colour)
{
	const struct view_opts opts = {.top = top, .colour = colour};
	char *text = NULL;
	size_t sz;
	FILE *out = open_memstream(&text, &sz);

	setlocale(LC_CTYPE, locale);
	CU_ASSERT_EQUAL(view_text(out, &fixture->report, &opts), 0);
	fclose(out);
	return text;
}

static void durations_have_three_digits_and_a_unit(void)
{
	static const struct {
		double ns;
		const char *text;
	} cases[] = {
		{0, "0 ns"},        {817, "817 ns"},      {999.4, "999 ns"},    {999.6, "1.00 µs"},
		{999.7, "1.00 µs"}, {12345, "12.3 µs"},   {1.234e6, "1.23 ms"}, {9.996e6, "10.0 ms"},
		{3.42e9, "3.42 s"}, {30e9, "30.0 s"},     {999.7e6, "1.00 s"},  {600e9, "600 s"},
		{9000e9, "2.50 h"}, {-12345, "-12.3 µs"}, {-0.2, "0 ns"},       {NAN, "–"},
		{INFINITY, "–"},    {1e15, "278 h"},      {1e17, "1157 d"},     {1e30, "1e+16 d"},
	};
	char buf[15];

	setlocale(LC_CTYPE, "C.UTF-8");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CU_ASSERT_STRING_EQUAL(view_duration(buf, sizeof(buf), cases[i].ns), cases[i].text);
	setlocale(LC_CTYPE, "C");
	CU_ASSERT_STRING_EQUAL(view_duration(buf, sizeof(buf), 12345), "12.3 us");
	CU_ASSERT_STRING_EQUAL(view_duration(buf, sizeof(buf), NAN), "-");
}

static void a_change_of_many_times_is_a_factor(void)
{
	char buf[FORMAT_SZ], ci[FORMAT_CI_SZ];

	CU_ASSERT_STRING_EQUAL(format_change(buf, 1.58), "+158 %");
	CU_ASSERT_STRING_EQUAL(format_change(buf, -0.5), "-50 %");
	CU_ASSERT_STRING_EQUAL(format_change(buf, 9.99), "+999 %");
	CU_ASSERT_STRING_EQUAL(format_change(buf, 10), "11 times");
	CU_ASSERT_STRING_EQUAL(format_change(buf, 5033.36), "5,034 times");
	CU_ASSERT_STRING_EQUAL(format_change_ci(ci, (struct ci){-0.53, 47.73}), "[-53 % to 49 times]");
	format_change(buf, INFINITY);
	CU_ASSERT(strlen(buf) < FORMAT_SZ);
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
	static const char *const bad[] = {
		"\x80", "\xc0\xaf", "\xc3",    "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80",
		"\xf5", "\xff",     "\xe2\x82"};
	static const char *const good[] = {"a", "é", "–", "中", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"};
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
	copy = utf8_valid("a\xffz\xe2\x82"
			  "b");
	CU_ASSERT_STRING_EQUAL(copy, "a" UTF8_REPLACEMENT "z" UTF8_REPLACEMENT "b");
	free(copy);
	copy = utf8_printable("\x1b[1m\xff – 中", false);
	CU_ASSERT_STRING_EQUAL(copy, "\\x1b[1m\\xff - \\u4e2d");
	free(copy);
}

static void a_unit_stays_with_its_number(void)
{
	static const struct {
		const char *words, *wrapped;
	} cases[] = {
		{"instead of 915 µs, more", "instead of\n  915 µs, more\n"},
		{"instead of 9 (99 %)", "instead of 9\n  (99 %)\n"},
		{"instead of 9 100 s.", "instead of 9\n  100 s.\n"},
		{"instead of 9 seconds", "instead of 9\n  seconds\n"},
		{"instead of 9 ms", "instead of\n  9 ms\n"},
	};

	setlocale(LC_CTYPE, "C.UTF-8");
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct page page;
		char *text;
		size_t sz;
		FILE *out = open_memstream(&text, &sz);

		page__open(&page, out, false);
		page.columns = 14;
		page__paragraph(&page, 0, cases[i].words, 2);
		CU_ASSERT_EQUAL(page__close(&page), 0);
		fclose(out);
		CU_ASSERT_STRING_EQUAL(text, cases[i].wrapped);
		free(text);
	}
}

static void a_full_disk_is_an_error(void)
{
	const struct view_opts opts = {.top = 10};
	struct fixture fixture;
	FILE *full;

	fixture_init(&fixture);
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
	check_has(text, "redis-server (pid 812) on host7, Linux 6.18: 30.0 s\n"
			"104,233 requests seen, 12,402 kept (weights applied)\n");
	check_has(text, "latency  mean 212 µs  p50 180 µs  "
			"p90 250 µs  p99 4.31 ms  p99.9 7.20 ms  max 9.80 ms  cov 2.12\n");
	check_has(text, "Why the slowest 1 % (≥ 4.31 ms) are late, compared with the typical half:\n"
			"  1.  41 % [37–45]     waiting for a CPU; `backup` (pid 901) ran instead\n"
			"        late 1.77 ms, typical 3 µs on average; 96 % of the late requests met it\n");
	check_has(text, "  2.  22 % [-2 to 30]  major page faults in /usr/lib/x86_64-linux-gnu/libc.so.6\n");
	check_has(text, "  3. 0.6 %             running its own code\n");
	check_has(text, "  no time in: ");
	check_has(text, "switch.involuntary.count");
	check_has(text, "runq.preempt.ns 92 %\n");
	CU_ASSERT_PTR_NULL(strstr(text, "hw.branches"));
	check_has(text, "Loss: none  (emitted 12,402 = written 12,402 + lost 0)\n");
	check_has(text, "Uncertain requests: 7 of 12,402 kept (");
	check_has(text, "Not measured on this kernel: throttled");
	check_has(text, "tp_btf/sched_switch");
	check_has(text, "Note: the rate was lowered");
	check_has(text, "/var/tmp/rec/host7-1-3.wls: torn tail at byte 81,920, 1,234 bytes not read\n");
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
	CU_ASSERT_EQUAL(column_after(heading, "requests"), column_after(strchr(heading, '\n') + 1, "104,000"));
	CU_ASSERT_EQUAL(column_after(heading, "p99"), column_after(strchr(strchr(heading, '\n') + 1, '\n') + 1, "–"));
	free(text);
}

static void text_tells_our_own_apart(void)
{
	struct fixture fixture;
	char *text;

	fixture_init(&fixture);
	text = text_of(&fixture, "C", 10, false);
	CU_ASSERT_PTR_NULL(strstr(text, "our own"));
	free(text);
	fixture.report.our_own = (struct own_line){.known = true, .share = 0.012, .late_ns = 20000, .typical_ns = 300};
	text = text_of(&fixture, "C", 10, false);
	check_has(text, "our own: 1 %; late requests waited 20.0 us for a CPU that whylate had, typical ones 300 ns");
	free(text);
	fixture.report.our_own.share = 0.0001;
	text = text_of(&fixture, "C", 10, false);
	check_has(text, "our own: below 0.1 %");
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
	static const char *const locales[] = {"C", "C.UTF-8"};
	struct fixture fixture;
	char path[400];
	char *text;

	memset(path, 'x', sizeof(path));
	memcpy(path, "/\x1b]0;t\a", 7);
	strcpy(path + sizeof(path) - 10, "/lib\xff.so");
	for (size_t i = 0; i < 2; i++) {
		const struct shard_damage damage = {path, UINT64_MAX, UINT64_MAX, HOSTILE};

		fixture_init(&fixture);
		fixture.dataset.comm = fixture.dataset.host = fixture.dataset.kernel = HOSTILE;
		fixture.dataset.damage = &damage;
		fixture.dataset.notes = (const char *[]){path};
		fixture.causes[0].what = HOSTILE;
		fixture.causes[1].what = path;
		fixture.types[0].type = path;
		fixture.events[1].explained_by = path;
		text = text_of(&fixture, locales[i], 0, false);
		CU_ASSERT(fixture_is_utf8(text));
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
	fixture.dataset.loss[WL_LOSS_MISSED_RUN] = (struct dataset_loss){5000, 3};
	fixture.dataset.loss[WL_LOSS_SCOPE].lost = 13402;
	fixture.dataset.event_cnt = 0;
	fixture.report.records_lost_share = 162 / 12402.;
	text = text_of(&fixture, "C.UTF-8", 10, false);
	check_has(text, "Loss: 162 records, 1 % of the requests  (emitted 12,402 = written 12,240 + lost 162)\n");
	check_has(text, "  interval             162 of 12,402");
	check_has(text, "  missed_run             3 of 5,000");
	check_has(text, "  scope             13,402                trace mode: threads outside that mattered");
	check_has(text, "Hardware counters: absent");
	check_tidy(text);
	free(text);
	memset(fixture.dataset.loss, 0, sizeof(fixture.dataset.loss));
	fixture.dataset.records_lost = 0;
	text = text_of(&fixture, "C.UTF-8", 10, false);
	check_has(text, "Loss: not known");
	free(text);
}

static void what_windows_may_miss_is_told(void)
{
	struct fixture fixture;
	char *text;

	fixture_init(&fixture);
	text = text_of(&fixture, "C.UTF-8", 10, false);
	CU_ASSERT_PTR_NULL(strstr(text, "Observed"));
	free(text);
	fixture.dataset.window_cnt = 12;
	fixture.dataset.duration_s = 3;
	fixture.dataset.window_selecting_s = 0.24;
	text = text_of(&fixture, "C.UTF-8", 10, false);
	check_has(text, "observed in 12 windows, 8 % of the time");
	/* ln 0.05 / ln 0.92 = 35.9 */
	check_has(text, "Observed: 8 % of 3.00 s, in 12 windows; ");
	check_has(text, "one that happened 36 times with");
	CU_ASSERT_PTR_NULL(strstr(text, "Few windows"));
	check_tidy(text);
	free(text);
	fixture.dataset.window_selecting_s = 0.0003;
	text = text_of(&fixture, "C.UTF-8", 10, false);
	check_has(text, "below 0.1 % of the time");
	check_has(text, "29,956 times");
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
		{"durations have three digits and a unit", durations_have_three_digits_and_a_unit},
		{"a change of many times is a factor", a_change_of_many_times_is_a_factor},
		{"every duration fits 15 bytes", every_duration_fits_15_bytes},
		{"UTF-8 is told from bytes", utf8_is_told_from_bytes},
		{"a unit stays with its number", a_unit_stays_with_its_number},
		{"a full disk is an error", a_full_disk_is_an_error},
		{"text gives the answer first", text_gives_the_answer_first},
		{"text columns line up", text_columns_line_up},
		{"our own is told apart", text_tells_our_own_apart},
		{"text is ASCII where the locale is", text_is_ascii_where_the_locale_is},
		{"text disarms hostile names", text_disarms_hostile_names},
		{"colour adds nothing but colour", colour_adds_nothing_but_colour},
		{"top limits the lists and says so", top_limits_the_lists_and_says_so},
		{"loss is told by class", loss_is_told_by_class},
		{"what windows may miss is told", what_windows_may_miss_is_told},
		{"nothing recorded is explained", nothing_recorded_is_explained},
	};

	return unit_suite("view", tests, sizeof(tests) / sizeof(tests[0]));
}
