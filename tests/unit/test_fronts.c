// SPDX-License-Identifier: GPL-2.0-or-later
/* Requests by the one at the front: a web server asks a database, whose requests wait for each other there. */
#include "row_writer.h"
#include "test_shard_util.h"
#include "unit.h"

#include "analysis/contexts.h"
#include "view/contexts.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define US     1000ULL
#define CNT    100
#define PERIOD (1000 * US)
#define WEB    100
#define DB     200
#define DISK   300
/* Sids of the requests at the front of a round; those of the database are 1,000,000 more. */
#define SID(k, admin) ((k) * 2 + (admin) + 1)
#define BEHIND        1000000

struct whole {
	struct test_dir dir;
	struct shard_reader *reader;
	struct dataset dataset;
	struct traces traces;
	struct paths paths;
	struct contexts contexts;
};

/* from_ts 0: 5 µs before. */
static void put_asked(struct row_writer *to, uint32_t from_tid, uint32_t to_tid, uint64_t ts, uint64_t from_ts,
		      uint64_t from_sid, uint64_t sid, bool mixed)
{
	char from_addr[32];

	snprintf(from_addr, sizeof(from_addr), "127.0.0.1:%u", from_tid);
	row_begin(to, SHARD_TABLE_HANDOFF);
	row_set_str(to, HANDOFF_KIND, "socket");
	row_set_str(to, HANDOFF_CERTAINTY, "observed");
	row_set_str(to, HANDOFF_FROM_ADDR, from_addr);
	row_set_str(to, HANDOFF_TO_ADDR, "127.0.0.1:33");
	row_set_u64(to, HANDOFF_SID, sid);
	row_set_u64(to, HANDOFF_FROM_PID, WEB);
	row_set_u64(to, HANDOFF_FROM_TID, from_tid);
	row_set_ts(to, HANDOFF_FROM_TS, from_ts ? from_ts : ts - 5 * US);
	row_set_u64(to, HANDOFF_TO_PID, DB);
	row_set_u64(to, HANDOFF_TO_TID, to_tid);
	row_set_ts(to, HANDOFF_TO_TS, ts);
	if (from_sid)
		row_set_u64(to, HANDOFF_FROM_SID, from_sid);
	if (mixed)
		row_set_u64(to, HANDOFF_MIXED, 1);
	row_end(to, SHARD_TABLE_HANDOFF);
}

/*
 * The statement of /admin asks a third program.  In each round "GET /a" on thread 101 and "GET /admin" on 102 ask the
 * database, threads 201 and 202, 10 µs later. The statement of the latter takes 300 µs of the CPU and has a lock; that
 * of the former waits for it for 200 µs and takes 20 µs.  In round 3 the bytes for 201 were sent for several requests,
 * in round 4 for one that was not kept; in round 5 more for another one, in round 6 for the same one, in round 7 for
 * another one on another connection are read later. In round 8 the call that read them was interrupted after the
 * pickup; in round 9 its receive is lost, and only that of a reply is there.
 */
static void put_round(struct row_writer *to, uint64_t k)
{
	uint64_t ts = (k + 1) * PERIOD, asked_ts = ts + 10 * US, locked_ts = asked_ts + 100 * US,
		 wake_ts = locked_ts + 200 * US;
	uint64_t a = SID(k, 0), admin = SID(k, 1);

	to->pid = WEB;
	row_put_segment(to, 101, ts, asked_ts, "running", a);
	row_put_segment(to, 102, ts, asked_ts, "running", admin);
	row_put_interval(to, a, 101, "tcp:80 GET /a", ts, wake_ts + 100 * US, 0, 0);
	row_put_interval(to, admin, 102, "tcp:80 GET /admin", ts, wake_ts + 100 * US, 0, 0);
	put_asked(to, 101, 201,
		  k == 8   ? locked_ts + 90 * US
		  : k == 9 ? wake_ts
			   : locked_ts - 10 * US,
		  k == 8 ? locked_ts - 20 * US : 0, k == 4 ? 999999 : a, a + BEHIND, k == 3);
	if (k == 5 || k == 6)
		put_asked(to, 101, 201, locked_ts - 5 * US, 0, k == 5 ? admin : a, a + BEHIND, false);
	if (k == 7)
		put_asked(to, 102, 201, locked_ts - 5 * US, 0, admin, a + BEHIND, false);
	put_asked(to, 102, 202, asked_ts, 0, admin, admin + BEHIND, false);
	to->pid = DB;
	row_put_segment(to, 202, asked_ts, wake_ts + 10 * US, "running", admin + BEHIND);
	row_put_segment(to, 201, locked_ts - 10 * US, locked_ts, "running", a + BEHIND);
	row_begin_segment(to, 201, locked_ts, wake_ts, "blocked.futex", a + BEHIND);
	row_set_u64(to, SEGMENT_OWNER_TID, 202);
	row_end(to, SHARD_TABLE_SEGMENT);
	row_put_wakeup(to, 201, wake_ts, 202, "db");
	row_put_segment(to, 201, wake_ts, wake_ts + 10 * US, "running", a + BEHIND);
	row_put_interval(to, a + BEHIND, 201, "tcp:33 SELECT", locked_ts - 10 * US, wake_ts + 10 * US, 200 * US, 0);
	row_put_interval(to, admin + BEHIND, 202, "tcp:33 UPDATE", asked_ts, wake_ts + 10 * US, 0, 0);
	to->pid = DISK;
	put_asked(to, 202, 301, asked_ts + 50 * US, 0, admin + BEHIND, admin + 2 * BEHIND, false);
	row_put_segment(to, 301, asked_ts + 50 * US, asked_ts + 60 * US, "running", admin + 2 * BEHIND);
	row_put_interval(to, admin + 2 * BEHIND, 301, "tcp:44", asked_ts + 50 * US, asked_ts + 60 * US, 0, 0);
}

static void whole_make(struct whole *whole)
{
	struct row_writer to;

	test_dir__make(&whole->dir);
	row_writer_open(&to, whole->dir.path, "host", 0x66, WEB);
	row_put_session(&to, "comm", "nginx");
	row_put_thread(&to, WEB, WEB, "nginx");
	row_put_thread(&to, WEB, 101, "nginx");
	row_put_thread(&to, WEB, 102, "nginx");
	row_put_thread(&to, DB, DB, "mariadbd");
	row_put_thread(&to, DB, 201, "connection");
	row_put_thread(&to, DB, 202, "connection");
	row_put_thread(&to, DISK, DISK, "disk");
	for (uint64_t k = 0; k < CNT; k++)
		put_round(&to, k);
	row_writer_close(&to);
	whole->reader = test_reader__open(whole->dir.path);
	CU_ASSERT_EQUAL_FATAL(dataset_load(&whole->dataset, whole->reader, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(traces_load(&whole->traces, whole->reader), 1);
	CU_ASSERT_EQUAL_FATAL(paths_make(&whole->paths, &whole->traces, &whole->dataset, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(contexts_make(&whole->contexts, &whole->dataset, &whole->paths, whole->reader, 0.99), 0);
}

static void whole_free(struct whole *whole)
{
	contexts_free(&whole->contexts);
	paths_free(&whole->paths);
	traces_free(&whole->traces);
	dataset_free(&whole->dataset);
	shard_reader__free(whole->reader);
	test_dir__remove(&whole->dir);
}

static const struct front_line *line_of(const struct fronts *fronts, const char *type, const char *program)
{
	for (size_t i = 0; i < fronts->lines.cnt; i++)
		if (!strcmp(fronts_string(fronts, fronts->lines.items[i].type), type) &&
		    !strcmp(fronts_string(fronts, fronts->lines.items[i].program), program))
			return &fronts->lines.items[i];
	CU_FAIL_FATAL("there is no such line");
	return NULL;
}

static void who_asked_is_told_by_the_bytes(void)
{
	const struct fronts *fronts;
	struct whole whole;

	whole_make(&whole);
	fronts = &whole.contexts.fronts;
	CU_ASSERT_EQUAL(fronts->links[FRONT_OUTSIDE], 2 * CNT + 1);
	CU_ASSERT_EQUAL(fronts->links[FRONT_ASKED], 3 * CNT - 4);
	CU_ASSERT_EQUAL(fronts->links[FRONT_AMBIGUOUS], 2);
	CU_ASSERT_EQUAL(fronts->links[FRONT_UNKNOWN], 1);
	for (size_t i = 0; i < whole.traces.intervals.cnt; i++) {
		const struct front_of *of = &fronts->of[i];
		uint64_t sid = whole.traces.intervals.items[i].base.sid;

		CU_ASSERT_EQUAL(of->link == FRONT_ASKED, of->asked_by != FRONT_NONE);
		CU_ASSERT_EQUAL(whole.traces.intervals.items[of->front].base.sid,
				of->link == FRONT_ASKED ? sid % BEHIND : sid);
	}
	whole_free(&whole);
}

static void what_is_behind_is_told_by_the_type_at_the_front(void)
{
	const struct front_line *a, *admin;
	struct whole whole;

	whole_make(&whole);
	a = line_of(&whole.contexts.fronts, "tcp:80 GET /a", "mariadbd");
	admin = line_of(&whole.contexts.fronts, "tcp:80 GET /admin", "mariadbd");
	CU_ASSERT_EQUAL(a->fronts, CNT);
	CU_ASSERT_EQUAL(a->count, CNT - 4);
	CU_ASSERT_EQUAL(a->cpu_ns, (CNT - 4) * 20. * US);
	CU_ASSERT_EQUAL(a->lock_ns, (CNT - 4) * 200. * US);
	CU_ASSERT_EQUAL(admin->count, CNT);
	CU_ASSERT_EQUAL(admin->cpu_ns, CNT * 310. * US);
	CU_ASSERT_EQUAL(admin->lock_ns, 0);
	CU_ASSERT_EQUAL(admin->fronts, CNT);
	CU_ASSERT_EQUAL(line_of(&whole.contexts.fronts, "tcp:80 GET /admin", "nginx")->fronts, CNT);
	CU_ASSERT_EQUAL(line_of(&whole.contexts.fronts, "tcp:80 GET /admin", "disk")->fronts, CNT);
	CU_ASSERT_EQUAL(line_of(&whole.contexts.fronts, "tcp:80 GET /admin", "disk")->count, CNT);
	/* The four that nobody is known to have asked for have their own type at the front. */
	CU_ASSERT_DOUBLE_EQUAL(front_cpu_share(admin), 310. / 330, 1e-9);
	CU_ASSERT_EQUAL(line_of(&whole.contexts.fronts, "tcp:33 SELECT", "mariadbd")->count, 4);
	whole_free(&whole);
}

static void crosstalk_behind_is_of_the_types_at_the_front(void)
{
	const struct fronts *fronts;
	struct whole whole;

	whole_make(&whole);
	fronts = &whole.contexts.fronts;
	CU_ASSERT_EQUAL_FATAL(fronts->crossings.cnt, 2);
	CU_ASSERT_STRING_EQUAL(fronts_string(fronts, fronts->crossings.items[0].type), "tcp:80 GET /a");
	CU_ASSERT_STRING_EQUAL(fronts_string(fronts, fronts->crossings.items[0].by_type), "tcp:80 GET /admin");
	CU_ASSERT_STRING_EQUAL(fronts_string(fronts, fronts->crossings.items[0].program), "mariadbd");
	CU_ASSERT_EQUAL(fronts->crossings.items[0].category, WL_CATEGORY_LOCK);
	CU_ASSERT_EQUAL(fronts->crossings.items[0].count, CNT - 4);
	CU_ASSERT_EQUAL(fronts->crossings.items[0].wait_ns, (CNT - 4) * 200. * US);
	CU_ASSERT_STRING_EQUAL(fronts_string(fronts, fronts->crossings.items[1].type), "tcp:33 SELECT");
	whole_free(&whole);
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

static size_t array_len(struct json_object *root, const char *key)
{
	struct json_object *array;

	CU_ASSERT_FATAL(json_object_object_get_ex(root, key, &array));
	return json_object_array_length(array);
}

static void fronts_are_printed(void)
{
	struct json_object *root, *value;
	struct whole whole;
	size_t lines = 0;
	char *text;

	whole_make(&whole);
	text = printed(&whole.contexts, as_text);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "What requests at the front take in mariadbd"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "296 requests asked for by another one; not known by which 1, by one of"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "Crosstalk at the front"));
	free(text);
	text = printed(&whole.contexts, view_contexts_json);
	root = json_tokener_parse(text);
	CU_ASSERT_PTR_NOT_NULL_FATAL(root);
	CU_ASSERT_EQUAL(array_len(root, "fronts"), 6);
	CU_ASSERT_EQUAL(array_len(root, "crosstalk_at_front"), 2);
	json_object_put(root);
	free(text);
	text = printed(&whole.contexts, view_contexts_requests);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), lines++) {
		root = json_tokener_parse(line);
		CU_ASSERT_FATAL(root && json_object_object_get_ex(root, "front_type", &value));
		CU_ASSERT_EQUAL(strncmp(json_object_get_string(value), "tcp:", 4), 0);
		json_object_put(root);
	}
	CU_ASSERT_EQUAL(lines, 5 * CNT);
	free(text);
	whole_free(&whole);
}

int suite_fronts(void)
{
	static const struct unit_test tests[] = {
		{"who asked is told by the bytes", who_asked_is_told_by_the_bytes},
		{"what is behind is told by the type at the front", what_is_behind_is_told_by_the_type_at_the_front},
		{"crosstalk behind is of the types at the front", crosstalk_behind_is_of_the_types_at_the_front},
		{"fronts are printed", fronts_are_printed},
	};

	return unit_suite("fronts", tests, sizeof(tests) / sizeof(tests[0]));
}
