// SPDX-License-Identifier: GPL-2.0-or-later
/* `report` on what is there and on what is not: by nobody, from whole, torn, corrupt, foreign and missing shards. */
#include "harness.h"
#include "net.h"
#include "servers.h"
#include "session.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define QUESTION_CNT 4000

static void expect_refusal(const char *path)
{
	struct process process;

	CHECKF(whylate_as(&process, "nobody", 20, "report %s", path) == 1, "%s: %s", path, process_err(&process));
	said_one_line(&process, path, NULL);
	CHECK(!*process_out(&process));
	process_end(&process);
}

static void test_nothing_there(void)
{
	struct path empty_dir = temp_path("empty-dir"), empty = temp_path("empty.wls"),
		    foreign = temp_path("foreign.wls");
	struct path text = temp_path("notes.txt"), secret = temp_path("secret.wls");

	CHECK(!mkdir(empty_dir.s, 0755));
	CHECK(!file_write(empty.s, "", 0));
	CHECK(!file_write(foreign.s,
			  "\x7f"
			  "ELF is what this is not",
			  24));
	CHECK(!file_write(text.s, "buy milk\n", 9));
	CHECK(!file_write(secret.s, "", 0) && !chmod(secret.s, 0600));
	expect_refusal("/nonexistent/recording");
	expect_refusal(empty_dir.s);
	expect_refusal(empty.s);
	expect_refusal(foreign.s);
	expect_refusal(text.s);
	expect_refusal(secret.s);
	expect_refusal("/dev/null");
}

/* A short recording of Redis: the path of its shard. */
static bool record_shard(struct path *shard, const char *dir_name)
{
	struct client client = {.question = "GET x\r\n",
				.answer_end = "$-1\r\n",
				.connection_cnt = 4,
				.requests_each = QUESTION_CNT / 4};
	struct recording recording = {0};
	struct redis redis;
	glob_t found;
	bool good;

	good = redis_start(&redis, ANY_CPU) && client_open(&client, redis.port) &&
	       recording_start(&recording, dir_name, redis.process.pid, "--tail none --budget 100%% --ring-size 32M") &&
	       client_run(&client) && CHECK(recording_stop(&recording) == 0);
	client_close(&client);
	if (good) {
		struct path pattern = temp_path("%s/*.wls", dir_name);

		good = CHECK(!glob(pattern.s, 0, NULL, &found) && found.gl_pathc == 1);
		if (good)
			snprintf(shard->s, sizeof(shard->s), "%s", found.gl_pathv[0]);
		globfree(&found);
	}
	recording_end(&recording);
	redis_end(&redis);
	return good;
}

static void test_report_as_nobody(void)
{
	struct session session;
	struct process process;
	struct path shard;
	json_object *root;

	if (!record_shard(&shard, "whole"))
		return;
	session_read(&session, temp_path("whole").s, NULL, NULL);
	session_check(&session);
	session_check_no_loss(&session);
	CHECKF(session.row_cnt == QUESTION_CNT, "%lu rows", session.row_cnt);
	root = report_read(temp_path("whole").s, NULL);
	report_check_schema(root);
	CHECK(json_number(root, "session.intervals_seen") == QUESTION_CNT);
	CHECK(json_number(root, "session.intervals_kept") == QUESTION_CNT);
	CHECK(json_number(root, "latency.count") == QUESTION_CNT);
	CHECK(!strcmp(json_text(root, "session.comm"), "redis-server"));
	json_object_put(root);
	/* The same in words, by the file instead of its directory, and of a type that does not exist. */
	CHECK(whylate_as(&process, "nobody", 20, "report %s", shard.s) == 0);
	CHECK(strstr(process_out(&process), "redis-server") != NULL);
	CHECKF(!*process_err(&process), "%s", process_err(&process));
	process_end(&process);
	CHECK(whylate_as(&process, "nobody", 20, "report --type tcp:1 %s", shard.s) == 1);
	said_one_line(&process, "tcp:1", "there are tcp:");
	process_end(&process);
}

static void expect_damage(const char *name, const char *data, size_t sz, uint64_t rows_least)
{
	struct path dir = temp_path("damaged-%s", name), file = temp_path("damaged-%s/x-1-000000.wls", name);
	struct session session;
	struct process process;
	json_object *root;

	CHECK(!mkdir(dir.s, 0755) && !file_write(file.s, data, sz));
	if (session_read(&session, dir.s, NULL, NULL)) {
		CHECK(session.damage_cnt > 0);
		CHECK(!session.uneven_cnt);
		CHECKF(session.row_cnt >= rows_least, "%s: %lu rows are left", name, session.row_cnt);
	}
	root = report_read(dir.s, NULL);
	report_check_schema(root);
	CHECKF(json_at(root, "damage.0.what") != NULL, "%s", name);
	json_object_put(root);
	CHECK(whylate_as(&process, "nobody", 20, "report %s", dir.s) == 0);
	/* A long path is shortened in the middle. */
	CHECKF(strstr(process_out(&process), "Damaged files") && strstr(process_out(&process), "x-1-000000.wls"),
	       "%s: damage is not mentioned: %s", name, process_out(&process));
	process_end(&process);
}

static void test_damaged_shards(void)
{
	struct path shard;
	size_t sz = 0;
	char *data;

	if (!record_shard(&shard, "to-damage"))
		return;
	data = file_read(shard.s, &sz);
	if (!CHECK(data && sz > 2000))
		return;
	/* The tail torn off in the middle of the last block but one, or so; a bit flipped in the middle; both. */
	expect_damage("tail", data, sz - 300, 1);
	data[sz / 2] ^= 0x10;
	expect_damage("bit", data, sz, 0);
	memset(data + sz / 2, 0xff, 200);
	expect_damage("hole", data, sz * 3 / 4, 0);
	free(data);
}

static const struct live_test tests[] = {
	{"nothing_there", test_nothing_there, SHORT},
	{"report_as_nobody", test_report_as_nobody, SHORT},
	{"damaged_shards", test_damaged_shards, SHORT},
};

int suite_damage(void)
{
	return live_suite("damage", tests, sizeof(tests) / sizeof(tests[0]));
}
