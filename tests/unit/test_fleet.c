// SPDX-License-Identifier: GPL-2.0-or-later
/* Statistics over many hosts, against enumeration and what was planted. */
#include "analysis/fleet.h"
#include "base/loghist.h"
#include "test_shard_util.h"
#include "unit.h"
#include "view/fleet.h"

#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct test_rng rng = {1};

static double share(void)
{
	return (double)(test_rng__next(&rng) >> 11) * 0x1p-53;
}

static int by_value(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

static void add(struct fleet_group *group, uint64_t ns, double weight)
{
	uint32_t class_no = loghist_class(ns);
	size_t at = 0;

	while (at < group->bins.cnt && group->bins.items[at].class_no < class_no)
		at++;
	if (at == group->bins.cnt || group->bins.items[at].class_no != class_no) {
		CU_ASSERT_FATAL(!vec_push(&group->bins, (struct fleet_bin){0}));
		memmove(&group->bins.items[at + 1], &group->bins.items[at],
			(group->bins.cnt - 1 - at) * sizeof(group->bins.items[0]));
		group->bins.items[at] = (struct fleet_bin){.class_no = class_no};
	}
	group->bins.items[at].weight += weight;
	group->bins.items[at].weight2 += weight * weight;
}

static void quantiles_are_those_of_the_values(void)
{
	uint64_t values[1001];

	for (int round = 0; round < 20; round++) {
		struct fleet_group group = {.name = "a"};
		double got;

		for (size_t i = 0; i < 1001; i++) {
			values[i] = (uint64_t)exp(5 + 12 * share());
			add(&group, values[i], 1);
		}
		qsort(values, 1001, sizeof(values[0]), by_value);
		for (double q = 0.05; q < 1; q += 0.05) {
			got = fleet_quantile(group.bins.items, group.bins.cnt, q);
			CU_ASSERT_DOUBLE_EQUAL_FATAL(got / (double)values[(size_t)ceil(q * 1001) - 1], 1, 1.0 / 32);
		}
		vec_free(&group.bins);
	}
	CU_ASSERT(isnan(fleet_quantile(NULL, 0, 0.5)));
}

/* The interval holds the true quantile as often as it says. */
static void intervals_hold(void)
{
	const double truth = -log(0.05) * 1e6;
	int inside = 0;

	for (int round = 0; round < 400; round++) {
		struct fleet_group group = {.name = "a"};

		for (int i = 0; i < 1500; i++)
			add(&group, (uint64_t)(-log(1 - share()) * 1e6), 1);
		CU_ASSERT_EQUAL_FATAL(fleet_compare(&group, 1, 0.95), 0);
		CU_ASSERT_FALSE(group.stands_out);
		/* By half a class on each side. */
		inside += group.tail_ci.lo * (1 - 1.0 / 64) <= truth && truth <= group.tail_ci.hi * (1 + 1.0 / 64);
		vec_free(&group.bins);
	}
	CU_ASSERT(inside >= 365);
}

static void who_stands_out_is_who_is_late(void)
{
	static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
	struct fleet_group groups[6] = {0};

	for (int h = 0; h < 6; h++) {
		groups[h].name = names[h];
		for (int i = 0; i < 3000; i++)
			add(&groups[h], (uint64_t)((h == 4 && i % 20 == 0 ? 5e6 : 1e6) * (1 + share())), 1 + h % 2);
	}
	CU_ASSERT_EQUAL(fleet_compare(groups, 6, 0.99), 0);
	CU_ASSERT_STRING_EQUAL(groups[0].name, "e");
	CU_ASSERT(groups[0].stands_out && groups[0].tail_ns > 4e6 && groups[0].peers_tail_ns < 2.1e6);
	CU_ASSERT_DOUBLE_EQUAL(groups[0].effective, 3000, 1e-6);
	for (int i = 1; i < 6; i++)
		CU_ASSERT_FALSE(groups[i].stands_out);
	for (int i = 0; i < 6; i++)
		vec_free(&groups[i].bins);
	CU_ASSERT_EQUAL(fleet_compare(groups, 0, 1), -EINVAL);
}

/* Every way in which `have` of n hosts can have it. */
static double enumerate_fisher(unsigned late, unsigned late_cnt, unsigned other, unsigned other_cnt)
{
	unsigned n = late_cnt + other_cnt, have = late + other, all = 0, as_many = 0;

	for (unsigned mask = 0; mask < 1u << n; mask++) {
		if ((unsigned)__builtin_popcount(mask) != have)
			continue;
		all++;
		as_many += (unsigned)__builtin_popcount(mask & ((1u << late_cnt) - 1)) >= late;
	}
	return (double)as_many / all;
}

static void chance_is_what_enumeration_says(void)
{
	for (unsigned late_cnt = 1; late_cnt <= 5; late_cnt++)
		for (unsigned other_cnt = 1; other_cnt <= 6; other_cnt++)
			for (unsigned late = 0; late <= late_cnt; late++)
				for (unsigned other = 0; other <= other_cnt; other++)
					CU_ASSERT_DOUBLE_EQUAL_FATAL(fleet_fisher(late, late_cnt, other, other_cnt),
								     enumerate_fisher(late, late_cnt, other, other_cnt),
								     1e-9);
	CU_ASSERT_DOUBLE_EQUAL(fleet_fisher(3, 3, 0, 9997), 6.0 / (1e4 * 9999.0 * 9998.0), 1e-15);
}

static void many_facts_need_more(void)
{
	struct fleet_fact facts[60] = {{.key = "setting", .value = "bad", .late = 3, .other = 0},
				       {.key = "everywhere", .value = "x", .late = 3, .other = 17},
				       {.key = "nowhere", .value = "x", .late = 0, .other = 5}};
	double before = 0;

	for (int i = 3; i < 60; i++)
		facts[i] = (struct fleet_fact){.key = "k", .value = "v", .late = 1, .other = 1 + (uint32_t)i % 12};
	fleet_rank_facts(facts, 60, 3, 17);
	CU_ASSERT_STRING_EQUAL(facts[0].value, "bad");
	CU_ASSERT_DOUBLE_EQUAL(facts[0].p, 1.0 / 1140, 1e-12);
	/* 58 of them were tested. */
	CU_ASSERT_DOUBLE_EQUAL(facts[0].p_adjusted, 58.0 / 1140, 1e-12);
	for (int i = 0; i < 60; i++) {
		CU_ASSERT(facts[i].p_adjusted >= facts[i].p && facts[i].p_adjusted >= before &&
			  facts[i].p_adjusted <= 1);
		before = facts[i].p_adjusted;
	}
	CU_ASSERT(facts[58].p == 1 && facts[59].p == 1);
}

/* Of facts that mean nothing, few are called significant in any of many fleets. */
static void chance_alone_is_not_believed(void)
{
	int believed = 0;

	for (int round = 0; round < 300; round++) {
		struct fleet_fact facts[40];

		for (int f = 0; f < 40; f++) {
			facts[f] = (struct fleet_fact){.key = "k", .value = "v"};
			for (int h = 0; h < 40; h++)
				if (share() < 0.3)
					*(h < 8 ? &facts[f].late : &facts[f].other) += 1;
		}
		fleet_rank_facts(facts, 40, 8, 32);
		believed += facts[0].p_adjusted < 0.05;
	}
	CU_ASSERT(believed <= 25);
}

static void one_bad_host_does_not_blame_its_kernel(void)
{
	struct fleet_group groups[2] = {{.name = "6.1", .stands_out = true}, {.name = "6.12"}};
	struct fleet_host_tail hosts[20];

	for (int h = 0; h < 20; h++)
		hosts[h] =
			(struct fleet_host_tail){.tail_ns = 1e6 + (h * 7) % 20 + (h == 0 ? 2e7 : 0), .group = h >= 5};
	CU_ASSERT_EQUAL(fleet_compare_hosts(groups, 2, hosts, 20), 0);
	CU_ASSERT(!groups[0].stands_out && groups[0].host_cnt == 5 && groups[1].host_cnt == 15);
	for (int h = 0; h < 5; h++)
		hosts[h].tail_ns = 2e7 + h;
	groups[0].stands_out = true;
	CU_ASSERT_EQUAL(fleet_compare_hosts(groups, 2, hosts, 20), 0);
	CU_ASSERT(groups[0].stands_out && groups[0].rank_p < 0.01);
	/* All alike: ties throughout. */
	for (int h = 0; h < 20; h++)
		hosts[h].tail_ns = 1e6;
	CU_ASSERT_EQUAL(fleet_compare_hosts(groups, 2, hosts, 20), 0);
	CU_ASSERT(!groups[0].stands_out && groups[0].rank_p == 1);
}

static void a_change_is_found_where_it_is(void)
{
	struct fleet_step steps[100];
	struct fleet_change change;
	int believed = 0;

	for (int round = 0; round < 200; round++) {
		for (int i = 0; i < 100; i++) {
			steps[i] = (struct fleet_step){.begin_ns = 1000 + (uint64_t)i, .weight = 200, .weight2 = 400};
			for (int r = 0; r < 100; r++)
				steps[i].late += share() < 0.01 ? 2 : 0;
		}
		believed += fleet_find_change(steps, 100).found;
	}
	CU_ASSERT(believed <= 6);
	for (int i = 70; i < 100; i++)
		steps[i].late += 8;
	change = fleet_find_change(steps, 100);
	CU_ASSERT(change.found && change.since_ns >= 1069 && change.since_ns <= 1071);
	CU_ASSERT(change.after_share > 0.03 && change.before_share < 0.02);
	CU_ASSERT_FALSE(fleet_find_change(steps, 1).found);
	CU_ASSERT_FALSE(fleet_find_change(NULL, 0).found);
}

static void what_is_not_known_is_null(void)
{
	struct fleet_group group = {.name = "it's \"a\" host\n\xff", .late_requests = NAN, .rank_p = NAN};
	const struct fleet_answer answer = {.question = FLEET_HOSTS,
					    .database = "d",
					    .tail = 0.99,
					    .requests = 1,
					    .tail_ns = NAN,
					    .groups = &group,
					    .group_cnt = 1};
	const struct view_opts opts = {0};
	struct json_object *root, *array, *value;
	char *text = NULL;
	size_t sz = 0;
	FILE *out = open_memstream(&text, &sz);

	CU_ASSERT_EQUAL(fleet_compare(&group, 1, 0.99), 0);
	CU_ASSERT_EQUAL(view_fleet_json(out, &answer), 0);
	fclose(out);
	root = json_tokener_parse(text);
	CU_ASSERT_FATAL(root != NULL);
	CU_ASSERT(json_object_object_get_ex(root, "tail_ns", &value) && !value);
	CU_ASSERT_FATAL(json_object_object_get_ex(root, "groups", &array) && json_object_array_length(array) == 1);
	CU_ASSERT(json_object_object_get_ex(json_object_array_get_idx(array, 0), "late_requests", &value) && !value);
	json_object_put(root);
	free(text);
	out = open_memstream(&text, &sz);
	CU_ASSERT_EQUAL(view_fleet_text(out, &answer, &opts), 0);
	fclose(out);
	CU_ASSERT(!strchr(text, '\xff') && strstr(text, "Hosts"));
	free(text);
}

static void a_page_has_each_host_and_no_markup_of_a_name(void)
{
	struct fleet_group groups[] = {
		{.name = "<script>alert(1)</script>",
		 .requests = 100,
		 .median_ns = 1e6,
		 .tail_ns = 2e7,
		 .peers_tail_ns = 2e6,
		 .stands_out = true,
		 .cause = "a & b <i>",
		 .cause_share = 0.9,
		 .recordings = {{.session_id = 1, .sid = 77, .path = "store/<b>", .host = "x"}},
		 .recording_cnt = 1},
		{.name = "web-2", .requests = 50, .median_ns = 1e6, .tail_ns = 2e6, .peers_tail_ns = 2e7},
	};
	struct fleet_heat heat[] = {{.group = 0, .begin_ns = 86400000000000, .weight = 100, .late = 100},
				    {.group = 1, .begin_ns = 172800000000000, .weight = 50, .late = 0}};
	struct fleet_answer answer = {.question = FLEET_HOSTS,
				      .database = "d",
				      .tail = 0.99,
				      .requests = 150,
				      .tail_ns = 5e6,
				      .begin_ns = 86400000000000,
				      .end_ns = 259200000000000,
				      .groups = groups,
				      .group_cnt = 2,
				      .heat = heat,
				      .heat_cnt = 2,
				      .heat_group_cnt = 2,
				      .heat_step_ns = 86400000000000,
				      .heat_begin_ns = 86400000000000,
				      .heat_end_ns = 259200000000000};
	const struct view_opts opts = {.top = 10};
	char *text = NULL;
	size_t sz = 0;
	FILE *out = open_memstream(&text, &sz);

	for (int c = 0; c < WL_CATEGORY_CNT; c++)
		groups[0].late_ns[c] = groups[1].late_ns[c] = c == WL_CATEGORY_LOCK ? 9e6 : NAN;
	CU_ASSERT_FATAL(out && !view_fleet_html(out, &answer, &opts));
	fclose(out);
	CU_ASSERT(strstr(text, "&lt;script&gt;alert(1)") && !strstr(text, "<script>alert"));
	CU_ASSERT(strstr(text, "a &amp; b &lt;i&gt;") && strstr(text, "store/&lt;b&gt; 77"));
	CU_ASSERT(strstr(text, "href=\"#host-1\"") && strstr(text, "id=\"host-1\"") && strstr(text, "it stands out"));
	/* All late is red, none is grey; each where its day is. */
	CU_ASSERT_PTR_NOT_NULL(
		strstr(text, "<rect x=\"180.00\" y=\"0\" width=\"350.00\" height=\"13\" fill=\"rgb(180,20,30)\">"));
	CU_ASSERT_PTR_NOT_NULL(
		strstr(text, "<rect x=\"530.00\" y=\"14\" width=\"350.00\" height=\"13\" fill=\"rgb(232,236,240)\">"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "web-2, 1970-01-03 00:00 UTC: 50 requests, late 0 %"));
	free(text);
}

int suite_fleet(void)
{
	static const struct unit_test tests[] = {
		{"quantiles are those of the values", quantiles_are_those_of_the_values},
		{"intervals hold", intervals_hold},
		{"who stands out is who is late", who_stands_out_is_who_is_late},
		{"chance is what enumeration says", chance_is_what_enumeration_says},
		{"many facts need more", many_facts_need_more},
		{"chance alone is not believed", chance_alone_is_not_believed},
		{"one bad host does not blame its kernel", one_bad_host_does_not_blame_its_kernel},
		{"a change is found where it is", a_change_is_found_where_it_is},
		{"what is not known is null", what_is_not_known_is_null},
		{"a page has each host and no markup of a name", a_page_has_each_host_and_no_markup_of_a_name},
	};

	return unit_suite("fleet", tests, sizeof(tests) / sizeof(tests[0]));
}
