// SPDX-License-Identifier: GPL-2.0-or-later
/* Requests by type and context: planted chains, locks and stacks are what is told. */
#include "row_writer.h"
#include "test_shard_util.h"
#include "trace_fixture.h"
#include "unit.h"

#include "analysis/contexts.h"
#include "view/contexts.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CNT 2000

struct whole {
	struct test_dir dir;
	struct shard_reader *reader;
	struct dataset dataset;
	struct traces traces;
	struct paths paths;
	struct contexts contexts;
	bool traced;
};

static void whole_load(struct whole *whole, double tail)
{
	whole->reader = test_reader__open(whole->dir.path);
	CU_ASSERT_EQUAL_FATAL(dataset_load(&whole->dataset, whole->reader, NULL), 0);
	whole->traced = traces_load(&whole->traces, whole->reader) == 1;
	whole->paths = (struct paths){0};
	if (whole->traced)
		CU_ASSERT_EQUAL_FATAL(paths_make(&whole->paths, &whole->traces, &whole->dataset, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(contexts_make(&whole->contexts, &whole->dataset, whole->traced ? &whole->paths : NULL,
					    whole->reader, tail),
			      0);
}

static void whole_free(struct whole *whole)
{
	contexts_free(&whole->contexts);
	paths_free(&whole->paths);
	if (whole->traced)
		traces_free(&whole->traces);
	dataset_free(&whole->dataset);
	shard_reader__free(whole->reader);
	test_dir__remove(&whole->dir);
}

static const struct context_type *type_of(const struct whole *whole, const char *name)
{
	for (size_t i = 0; i < whole->contexts.types.cnt; i++)
		if (!strcmp(whole->dataset.strings[whole->contexts.types.items[i].name], name))
			return &whole->contexts.types.items[i];
	CU_FAIL_FATAL("there is no such type");
	return NULL;
}

static char *printed(const struct contexts *contexts, int (*view)(FILE *out, const struct contexts *contexts))
{
	char *text = NULL;
	size_t sz;
	FILE *out = open_memstream(&text, &sz);

	CU_ASSERT_EQUAL(view(out, contexts), 0);
	fclose(out);
	return text;
}

static int as_text(FILE *out, const struct contexts *contexts)
{
	return view_contexts_text(out, contexts, &(struct view_opts){.top = 10});
}

/* The late ones of tcp:80 wait for a lock that is held for one of tcp:81, and nobody else waits. */
static void the_planted_lock_is_crosstalk(void)
{
	const struct context_crossing *crossing;
	struct whole whole;
	char *text;

	test_dir__make(&whole.dir);
	trace_fixture_write(whole.dir.path, CNT);
	whole_load(&whole, 0.95);
	CU_ASSERT_EQUAL(whole.contexts.types.cnt, 2);
	CU_ASSERT_EQUAL_FATAL(whole.contexts.by_type.items.cnt, 1);
	crossing = whole.contexts.by_type.items.items;
	CU_ASSERT_EQUAL(&whole.contexts.types.items[crossing->type], type_of(&whole, "tcp:80"));
	CU_ASSERT_STRING_EQUAL(contexts_string(&whole.contexts, crossing->by_type), "tcp:81");
	CU_ASSERT_EQUAL(crossing->category, WL_CATEGORY_LOCK);
	CU_ASSERT_EQUAL(crossing->count, 199);
	CU_ASSERT_EQUAL(crossing->wait_ns, 199 * 500000.);
	CU_ASSERT_EQUAL_FATAL(whole.contexts.by_type.waits.cnt, 199);
	for (size_t i = 0; i < 199; i++) {
		CU_ASSERT_EQUAL(whole.contexts.by_type.waits.items[i].ns, 500000);
		CU_ASSERT_EQUAL(whole.contexts.by_type.waits.items[i].crossing, crossing->id);
	}
	CU_ASSERT_PTR_NULL(whole.contexts.row_chain);
	CU_ASSERT_DOUBLE_EQUAL(crossing->tail_share, 1, 1e-9);
	/* Who is in the way is no stage of the request. */
	for (size_t i = 0; i < whole.contexts.lines.cnt; i++)
		CU_ASSERT_EQUAL(whole.contexts.lines.items[i].stage, 0);
	text = printed(&whole.contexts, as_text);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "Crosstalk"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "tcp:81"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "record with --stacks"));
	free(text);
	whole_free(&whole);
}

static const char *text_at(struct json_object *object, const char *key)
{
	struct json_object *value = NULL;

	CU_ASSERT_FATAL(json_object_object_get_ex(object, key, &value));
	return json_object_get_string(value);
}

/* Late requests of two contexts wait for the lock that a request of the second one's has. */
static void crosstalk_is_told_by_context(void)
{
	struct json_object *root, *list, *value;
	uint32_t chains[2], seen = 0;
	struct whole whole;
	char *text, id[17];

	test_dir__make(&whole.dir);
	trace_fixture_write_contexts(whole.dir.path, CNT);
	whole_load(&whole, 0.95);
	chains[0] = context_chains__find(&whole.contexts.chains, TRACE_SESSION, TRACE_CONTEXT);
	chains[1] = context_chains__find(&whole.contexts.chains, TRACE_SESSION, TRACE_CONTEXT_BEHIND);
	CU_ASSERT(chains[0] > CONTEXT_CHAIN_OTHER && chains[1] > chains[0]);
	CU_ASSERT_EQUAL(whole.contexts.by_type.items.cnt, 1);
	CU_ASSERT_EQUAL_FATAL(whole.contexts.by_context.items.cnt, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct context_crossing *crossing = &whole.contexts.by_context.items.items[i];

		seen |= crossing->chain == chains[0] ? 1 : crossing->chain == chains[1] ? 2 : 4;
		CU_ASSERT_EQUAL(crossing->by_chain, chains[1]);
		CU_ASSERT_STRING_EQUAL(contexts_string(&whole.contexts, crossing->by_type), "tcp:81");
		/* 200 late ones, of which one of the first context is not ranked. */
		CU_ASSERT_EQUAL(crossing->count, crossing->chain == chains[0] ? 99 : 100);
		CU_ASSERT_EQUAL(crossing->wait_ns, crossing->count * 500000.);
	}
	CU_ASSERT_EQUAL(seen, 3);
	CU_ASSERT_EQUAL(whole.contexts.by_context.waits.cnt, 199);
	text = printed(&whole.contexts, view_contexts_json);
	root = json_tokener_parse(text);
	CU_ASSERT_FATAL(json_object_object_get_ex(root, "crosstalk_by_context", &list));
	CU_ASSERT_EQUAL_FATAL(json_object_array_length(list), 2);
	value = json_object_array_get_idx(list, 0);
	snprintf(id, sizeof(id), "%016lx", whole.contexts.chains.items.items[chains[1]].id);
	CU_ASSERT_STRING_EQUAL(text_at(value, "context"), id);
	CU_ASSERT_STRING_EQUAL(text_at(value, "by_context"), id);
	CU_ASSERT_STRING_EQUAL(text_at(value, "by_type"), "tcp:81");
	json_object_put(root);
	free(text);
	text = printed(&whole.contexts, as_text);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "Crosstalk by context"));
	CU_ASSERT_PTR_NOT_NULL(
		strstr(text, "1  tcp:80, after socket asked by ask; then socket asked by reply > ask\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "2  tcp:81, after socket asked by ask; then"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "3  tcp:80, after socket asked by ask\n"));
	CU_ASSERT_PTR_NOT_NULL(
		strstr(text, "\n  waits, and in the way:         2\n  1                        50.0 ms\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\n  3                        49.5 ms\n"));
	free(text);
	whole_free(&whole);
}

/* The holder's request was not kept: of which context it was is not known. */
static void the_context_of_what_was_not_kept_is_not_known(void)
{
	struct json_object *root, *list, *value;
	struct whole whole;
	char *text;

	test_dir__make(&whole.dir);
	trace_fixture_write_unkept(whole.dir.path, CNT);
	whole_load(&whole, 0.95);
	text = printed(&whole.contexts, view_contexts_json);
	root = json_tokener_parse(text);
	CU_ASSERT_FATAL(json_object_object_get_ex(root, "crosstalk_by_context", &list));
	CU_ASSERT_EQUAL_FATAL(json_object_array_length(list), 1);
	list = json_object_array_get_idx(list, 0);
	CU_ASSERT_STRING_EQUAL(text_at(list, "by_type"), "tcp:82");
	CU_ASSERT_STRING_EQUAL(text_at(list, "context"), "0000000000000000");
	CU_ASSERT(json_object_object_get_ex(list, "by_context", &value) && !value);
	json_object_put(root);
	free(text);
	text = printed(&whole.contexts, as_text);
	CU_ASSERT_PTR_NULL(strstr(text, "Crosstalk by context"));
	free(text);
	whole_free(&whole);
}

/* The time of a line and of those behind it is that of the paths; lateness is divided among the types. */
static void parts_sum_to_the_whole(void)
{
	double lines_ns = 0, types_ns = 0, late = 0, rows_ns = 0, ranked_ns = 0;
	struct whole whole;

	test_dir__make(&whole.dir);
	trace_fixture_write(whole.dir.path, CNT);
	whole_load(&whole, 0.95);
	for (size_t i = 0; i < whole.contexts.lines.cnt; i++)
		lines_ns += whole.contexts.lines.items[i].cpu_ns + whole.contexts.lines.items[i].wait_ns;
	for (size_t i = 0; i < whole.contexts.types.cnt; i++) {
		types_ns += whole.contexts.types.items[i].cpu_ns + whole.contexts.types.items[i].wait_ns;
		late += whole.contexts.types.items[i].late_share;
	}
	for (size_t row = 0; row < whole.dataset.row_cnt; row++) {
		double ns = whole.dataset.weight[row] * (double)whole.dataset.latency_ns[row];

		rows_ns += ns;
		ranked_ns += whole.paths.ranked[row] ? ns : 0;
	}
	CU_ASSERT_DOUBLE_EQUAL(lines_ns, ranked_ns, 1);
	CU_ASSERT_DOUBLE_EQUAL(types_ns, rows_ns, 1);
	CU_ASSERT_DOUBLE_EQUAL(late, 1, 1e-9);
	whole_free(&whole);
}

static void put_stack(struct row_writer *to, uint64_t sid, uint64_t delays, const char *state, const char *frames,
		      const char *kernel, double ns)
{
	row_begin(to, SHARD_TABLE_STACK);
	row_set_u64(to, STACK_PID, 100);
	row_set_u64(to, STACK_TID, 101);
	row_set_u64(to, STACK_TS, 1000);
	if (sid)
		row_set_u64(to, STACK_SID, sid);
	if (delays)
		row_set_u64(to, STACK_DELAYS, delays);
	row_set_str(to, STACK_STATE, state);
	row_set_str(to, STACK_FRAMES, frames);
	if (kernel)
		row_set_str(to, STACK_KERNEL_FRAMES, kernel);
	to->row.values[STACK_WEIGHT].f64 = ns;
	row_end(to, SHARD_TABLE_STACK);
}

static void put_in_context(struct row_writer *to, uint64_t sid, uint64_t context)
{
	row_begin_interval(to, sid, 101, "tcp:80 GET /", 1000 * sid, 1000 * sid + 500, 0, 0);
	if (context)
		row_set_u64(to, INTERVAL_CONTEXT, context);
	row_end(to, SHARD_TABLE_INTERVAL);
	row_begin(to, SHARD_TABLE_STACK);
	row_set_u64(to, STACK_PID, 100);
	row_set_u64(to, STACK_TID, 101);
	row_set_u64(to, STACK_TS, 1000);
	row_set_u64(to, STACK_SID, sid);
	if (context)
		row_set_u64(to, STACK_CONTEXT, context);
	row_set_str(to, STACK_STATE, "running");
	row_set_str(to, STACK_FRAMES, "main;loop;write");
	to->row.values[STACK_WEIGHT].f64 = 10;
	row_end(to, SHARD_TABLE_STACK);
}

static const struct context_part *part_in(const struct whole *whole, uint64_t session_id, uint64_t id)
{
	uint32_t chain = context_chains__find(&whole->contexts.chains, session_id, id);

	for (size_t i = 0; i < whole->contexts.parts.cnt; i++)
		if (whole->contexts.parts.items[i].chain == chain)
			return &whole->contexts.parts.items[i];
	CU_FAIL_FATAL("no request is in that context");
	return NULL;
}

/* Recordings number contexts as they like: equal chains are one, and one that comes back to itself is folded. */
static void equal_chains_are_one_context(void)
{
	struct row_writer to = {0};
	const struct context_chain *chain;
	struct whole whole;
	uint32_t folded;
	char *text;

	test_dir__make(&whole.dir);
	row_writer_open(&to, whole.dir.path, "one", 7, 100);
	row_put_context(&to, 31, 30, 6, "main;loop;reply;ask"); /* before its parent */
	row_put_context(&to, 30, 0, 5, "main;loop;read;connect");
	row_put_context(&to, 32, 31, 5, "main;loop;read;connect"); /* the chain has that already */
	put_in_context(&to, 1, 0);
	put_in_context(&to, 2, 30);
	put_in_context(&to, 3, 31);
	row_writer_close(&to);
	row_writer_open(&to, whole.dir.path, "two", 8, 100);
	row_put_context(&to, 900, 0, 5, "main;loop;read;connect");
	row_put_context(&to, 901, 900, 6, "main;loop;reply;ask");
	put_in_context(&to, 4, 901);
	put_in_context(&to, 5, WL_CONTEXT_ID_OTHER);
	put_in_context(&to, 6, 12345);
	row_writer_close(&to);
	whole_load(&whole, 0.9);
	CU_ASSERT_EQUAL_FATAL(whole.contexts.chains.items.cnt, 4);
	CU_ASSERT_EQUAL(whole.contexts.chains.broken, 0);
	folded = context_chains__find(&whole.contexts.chains, 7, 32);
	CU_ASSERT_EQUAL(folded, context_chains__find(&whole.contexts.chains, 7, 30));
	CU_ASSERT_EQUAL(folded, context_chains__find(&whole.contexts.chains, 8, 900));
	chain = &whole.contexts.chains.items.items[context_chains__find(&whole.contexts.chains, 8, 901)];
	CU_ASSERT_EQUAL(chain->parent, folded);
	for (size_t row = 0; row < whole.dataset.row_cnt; row++)
		CU_ASSERT_EQUAL(whole.contexts.row_chain[row],
				whole.dataset.sid[row] == 1   ? CONTEXT_CHAIN_NONE
				: whole.dataset.sid[row] == 2 ? folded
				: whole.dataset.sid[row] <= 4 ? context_chains__find(&whole.contexts.chains, 8, 901)
							      : CONTEXT_CHAIN_OTHER);
	CU_ASSERT_EQUAL(part_in(&whole, 7, 0)->count, 1);
	CU_ASSERT_EQUAL(part_in(&whole, 7, 30)->count, 1);
	CU_ASSERT_EQUAL(part_in(&whole, 7, 31)->count, 2);
	CU_ASSERT_EQUAL(part_in(&whole, 8, 12345)->count, 2);
	CU_ASSERT_EQUAL(part_in(&whole, 8, 12345)->chain, CONTEXT_CHAIN_OTHER);
	CU_ASSERT_DOUBLE_EQUAL(view_part_cpu_share(&whole.contexts, part_in(&whole, 7, 31)), 2. / 6, 1e-9);
	text = printed(&whole.contexts, as_text);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "after socket asked by read > connect; then socket asked by reply > ask"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "as it came in"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "other contexts"));
	free(text);
	text = printed(&whole.contexts, view_contexts_folded);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "tcp:80 GET /;as it came in;on;main;loop;write 10\n"));
	CU_ASSERT_PTR_NOT_NULL(
		strstr(text, "tcp:80 GET /;after socket asked by read > connect;on;main;loop;write 10\n"));
	CU_ASSERT_PTR_NULL(strstr(text, "tcp:80 GET /;on;"));
	free(text);
	whole_free(&whole);
}

/* Ids of a hostile shard: each row leads somewhere, and what cannot be true is counted. */
static void made_up_contexts_end(void)
{
	struct row_writer to = {0};
	struct whole whole;

	test_dir__make(&whole.dir);
	row_writer_open(&to, whole.dir.path, "host", 7, 100);
	row_put_context(&to, 30, 31, 5, "a");
	row_put_context(&to, 31, 30, 6, "b");
	row_put_context(&to, 32, 32, 7, "c");
	row_put_context(&to, 33, 99, 8, "d");
	row_put_context(&to, 30, 0, 9, "again");
	row_put_context(&to, 0, 30, 10, "none");
	row_put_context(&to, WL_CONTEXT_ID_OTHER, 30, 11, "other");
	for (uint64_t id = 100; id < 300; id++)
		row_put_context(&to, id, id + 1, id, "deep");
	put_in_context(&to, 1, 30);
	put_in_context(&to, 2, 32);
	put_in_context(&to, 3, 100);
	row_writer_close(&to);
	whole_load(&whole, 0.9);
	CU_ASSERT(whole.contexts.chains.broken >= 3);
	for (size_t i = 1; i < whole.contexts.chains.items.cnt; i++)
		CU_ASSERT(whole.contexts.chains.items.items[i].parent < i);
	for (uint64_t id = 30; id < 34; id++)
		CU_ASSERT(context_chains__find(&whole.contexts.chains, 7, id) > CONTEXT_CHAIN_OTHER);
	whole_free(&whole);
}

/* A tree per type, its nodes the sums of what is below them; without --mode trace there is nothing else. */
static void each_type_has_its_call_tree(void)
{
	struct row_writer to = {0};
	struct json_object *root, *value;
	const struct context_node *node;
	struct whole whole;
	char *text;

	test_dir__make(&whole.dir);
	row_writer_open(&to, whole.dir.path, "host", 7, 100);
	row_put_interval(&to, 1, 101, "tcp:80 GET /a;b", 1000, 2000, 0, 0);
	row_put_interval(&to, 2, 101, "tcp:80 GET /b", 3000, 9000, 0, 0);
	put_stack(&to, 1, 0, "running", "main;serve;a", NULL, 10);
	put_stack(&to, 1, 0, "running", "main;serve", "entry;tick", 20);
	put_stack(&to, 1, 0, "blocked.futex", "main;serve;lock", NULL, 30);
	put_stack(&to, 2, 0, "running", "main;serve;?0x1;a", NULL, 40);
	put_stack(&to, 3, 0, "running", "not kept", NULL, 50);
	put_stack(&to, 0, 2, "running", "other", NULL, 60);
	row_writer_close(&to);
	whole_load(&whole, 0.9);
	CU_ASSERT_FALSE(whole.traced);
	CU_ASSERT_EQUAL(whole.contexts.sample_cnt, 5);
	node = &whole.contexts.nodes.items[type_of(&whole, "tcp:80 GET /a;b")->node];
	CU_ASSERT(node->all_on_ns == 30 && node->all_off_ns == 30 && !node->on_ns);
	node = &whole.contexts.nodes.items[type_of(&whole, "tcp:80 GET /b")->node];
	CU_ASSERT(node->all_on_ns == 40 && !node->all_off_ns);
	CU_ASSERT_NOT_EQUAL_FATAL(whole.contexts.no_request, UINT32_MAX);
	CU_ASSERT_EQUAL(whole.contexts.nodes.items[whole.contexts.no_request].all_on_ns, 60);
	text = printed(&whole.contexts, view_contexts_folded);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "tcp:80 GET /a:b;on;main;serve;a 10\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "tcp:80 GET /a:b;on;main;serve;entry_[k];tick_[k] 20\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "tcp:80 GET /a:b;off;main;serve;lock 30\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "tcp:80 GET /b;on;main;serve;a 40\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "no request;on;other 60\n"));
	CU_ASSERT_PTR_NULL(strstr(text, "not kept"));
	free(text);
	text = printed(&whole.contexts, view_contexts_json);
	root = json_tokener_parse(text);
	CU_ASSERT_FATAL(json_object_object_get_ex(root, "crosstalk", &value) && !value);
	CU_ASSERT_FATAL(json_object_object_get_ex(root, "crosstalk_by_context", &value) && !value);
	CU_ASSERT_FATAL(json_object_object_get_ex(root, "types", &value));
	CU_ASSERT_EQUAL(json_object_array_length(value), 2);
	json_object_put(root);
	free(text);
	text = printed(&whole.contexts, as_text);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "record with --mode trace"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "main > serve"));
	free(text);
	whole_free(&whole);
}

static void types_are_asked_for_by_their_parts(void)
{
	CU_ASSERT(dataset_type_fits("tcp:80 GET /a", "tcp:80"));
	CU_ASSERT(dataset_type_fits("tcp:80 GET /a", "GET /a"));
	CU_ASSERT(dataset_type_fits("tcp:80 GET /a", "tcp:80 GET /a"));
	CU_ASSERT(dataset_type_fits("tcp:80 GET /a", "GET *"));
	CU_ASSERT(dataset_type_fits("tcp:80 GET /a", "*/a"));
	CU_ASSERT(dataset_type_fits("tcp:80 GET /u/*", "GET /u/*"));
	CU_ASSERT(dataset_type_fits("tcp:80", "tcp:80"));
	CU_ASSERT_FALSE(dataset_type_fits("tcp:8080 GET /a", "tcp:80"));
	CU_ASSERT_FALSE(dataset_type_fits("tcp:80 GET /a", "GET /"));
	CU_ASSERT_FALSE(dataset_type_fits("tcp:80 GET /a", ""));
	CU_ASSERT_FALSE(dataset_type_fits("tcp:80", "tcp:8"));
}

int suite_contexts(void)
{
	static const struct unit_test tests[] = {
		{"the planted lock is crosstalk", the_planted_lock_is_crosstalk},
		{"crosstalk is told by context", crosstalk_is_told_by_context},
		{"the context of what was not kept is not known", the_context_of_what_was_not_kept_is_not_known},
		{"parts sum to the whole", parts_sum_to_the_whole},
		{"equal chains are one context", equal_chains_are_one_context},
		{"made-up contexts end", made_up_contexts_end},
		{"each type has its call tree", each_type_has_its_call_tree},
		{"types are asked for by their parts", types_are_asked_for_by_their_parts},
	};

	return unit_suite("contexts", tests, sizeof(tests) / sizeof(tests[0]));
}
