// SPDX-License-Identifier: GPL-2.0-or-later
/* The collector's store: what was committed is there, whole and once, whatever happened meanwhile. */
#include "net/collect/store.h"
#include "net/wire/block_check.h"
#include "shard/crc32c.h"
#include "test_shard_util.h"
#include "unit.h"

#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOST      "host-1"
#define FRAME_CNT 40
#define DAY_NS    (86400 * 1000000000ull)

static uint64_t fake_monotonic_ns, fake_wall_ns;

static uint64_t fake_monotonic(void)
{
	return fake_monotonic_ns;
}

static uint64_t fake_wall(void)
{
	return fake_wall_ns;
}

/* 2026-11-21 12:00, and an hour after boot. */
static void reset_clocks(void)
{
	fake_monotonic_ns = 3600 * 1000000000ull;
	fake_wall_ns = 1795262400 * 1000000000ull;
}

struct frames {
	struct shard_buf bytes; /* the blocks one after the other */
	size_t offs[FRAME_CNT];
	struct store_frame frames[FRAME_CNT];
};

/* Frames 0 to FRAME_CNT - 1 of TEST_SESSION, each with a block of its own. */
static void make_frames(struct frames *all)
{
	struct test_rng rng = {5};
	struct shard_row rows[30];

	memset(all, 0, sizeof(*all));
	for (int i = 0; i < FRAME_CNT; i++) {
		const struct shard_table *table = &shard_tables[i % SHARD_TABLE_CNT];
		uint32_t row_cnt = 1 + test_rng__below(&rng, 30);

		for (uint32_t r = 0; r < row_cnt; r++)
			test_row__fill(&rows[r], table, &rng);
		all->offs[i] = all->bytes.cnt;
		test_shard__put_block(&all->bytes, table, rows, row_cnt, SHARD_CODEC_ZSTD);
		all->frames[i].frame =
			(struct protocol_frame){.kind = PROTOCOL_BLOCK, .seq = i, .sz = all->bytes.cnt - all->offs[i]};
	}
	for (int i = 0; i < FRAME_CNT; i++) {
		all->frames[i].payload = all->bytes.items + all->offs[i];
		all->frames[i].frame.crc = crc32c(0, all->frames[i].payload, all->frames[i].frame.sz);
	}
}

static struct store *open_store(const char *dir)
{
	struct store_opts opts = {.dir = dir, .monotonic = fake_monotonic, .wall = fake_wall};
	struct store *store = store__open(&opts);

	CU_ASSERT_PTR_NOT_NULL_FATAL(store);
	return store;
}

/* Stores them in one batch: 0 or what put or commit said. */
static int put(struct store *store, const struct store_frame *frames, uint32_t cnt, struct store_result *result)
{
	int err = store__put(store, HOST, TEST_SESSION, frames, cnt, result);

	if (err)
		return err;
	store__commit(store);
	return store__committed(result);
}

static void put_all(const char *dir, const struct frames *all, int from, int to)
{
	struct store *store = open_store(dir);
	struct store_result result;

	CU_ASSERT_EQUAL(put(store, all->frames + from, to - from, &result), 0);
	CU_ASSERT_EQUAL(result.stored + result.duplicates, (uint32_t)(to - from));
	store__close(store);
}

/* How often the block of each frame is in the store's files, byte for byte; `damage`: of any kind. */
static void count_blocks(const char *dir, const struct frames *all, int cnts[FRAME_CNT], size_t *damage_cnt)
{
	struct shard_buf bytes = {0};
	struct shard_reader *reader = test_reader__open(dir);
	const struct shard_damage *damage;
	char pattern[200];
	glob_t found;

	memset(cnts, 0, FRAME_CNT * sizeof(*cnts));
	snprintf(pattern, sizeof(pattern), "%s/" HOST "/*/*.wls", dir);
	CU_ASSERT_FATAL(!glob(pattern, 0, NULL, &found));
	for (size_t f = 0; f < found.gl_pathc; f++) {
		test_file__read(found.gl_pathv[f], &bytes);
		for (int i = 0; i < FRAME_CNT; i++)
			for (const uint8_t *at = bytes.items;
			     (at = memmem(at, bytes.items + bytes.cnt - at, all->frames[i].payload,
					  all->frames[i].frame.sz));
			     at++)
				cnts[i]++;
	}
	globfree(&found);
	vec_free(&bytes);
	test_reader__count_rows(reader, NULL);
	*damage_cnt = shard_reader__damage(reader, &damage);
	shard_reader__free(reader);
}

static void expect_each_once(const char *dir, const struct frames *all)
{
	int cnts[FRAME_CNT];
	size_t damage_cnt;

	count_blocks(dir, all, cnts, &damage_cnt);
	for (int i = 0; i < FRAME_CNT; i++)
		CU_ASSERT_EQUAL(cnts[i], 1);
	CU_ASSERT_EQUAL(damage_cnt, 0);
}

static void what_is_put_is_there(void)
{
	struct store_result result;
	struct frames all;
	struct test_dir dir;
	struct store *store;
	char path[200];

	reset_clocks();
	test_dir__make(&dir);
	make_frames(&all);
	store = open_store(dir.path);
	CU_ASSERT_EQUAL(put(store, all.frames, 10, &result), 0);
	CU_ASSERT(result.stored == 10 && result.duplicates == 0);
	CU_ASSERT_EQUAL(put(store, all.frames + 10, FRAME_CNT - 10, &result), 0);
	snprintf(path, sizeof(path), "%s/" HOST "/2026-11-21/" HOST "-0123456789abcdef-000000.wls", dir.path);
	CU_ASSERT_EQUAL(access(path, R_OK), 0);
	store__close(store);
	expect_each_once(dir.path, &all);
	vec_free(&all.bytes);
	test_dir__remove(&dir);
}

static void repetitions_are_known(void)
{
	struct store_result result;
	struct store_frame twice[2], other;
	struct frames all;
	struct test_dir dir;
	struct store *store;

	reset_clocks();
	test_dir__make(&dir);
	make_frames(&all);
	store = open_store(dir.path);
	/* The second half first, then all, then all again after a restart. */
	CU_ASSERT_EQUAL(put(store, all.frames + 20, 20, &result), 0);
	CU_ASSERT_EQUAL(put(store, all.frames, FRAME_CNT, &result), 0);
	CU_ASSERT(result.stored == 20 && result.duplicates == 20);
	CU_ASSERT_EQUAL(put(store, all.frames, FRAME_CNT, &result), 0);
	CU_ASSERT(result.stored == 0 && result.duplicates == FRAME_CNT);
	store__close(store);
	store = open_store(dir.path);
	CU_ASSERT_EQUAL(put(store, all.frames, FRAME_CNT, &result), 0);
	CU_ASSERT(result.stored == 0 && result.duplicates == FRAME_CNT);
	/* The same number with other bytes: the request is refused as a whole. */
	twice[0] = all.frames[0];
	twice[0].frame.seq = 1000;
	twice[1] = all.frames[1];
	twice[1].frame.seq = 7;
	CU_ASSERT_EQUAL(put(store, twice, 2, &result), -EEXIST);
	CU_ASSERT_EQUAL(result.bad_frame, 1);
	/* Its first frame was not kept; the same bytes twice in one request are one frame. */
	twice[1] = twice[0];
	CU_ASSERT_EQUAL(put(store, twice, 2, &result), 0);
	CU_ASSERT(result.stored == 1 && result.duplicates == 1);
	other = all.frames[3];
	other.frame.seq = 1000;
	CU_ASSERT_EQUAL(put(store, &other, 1, &result), -EEXIST);
	twice[0].frame.seq = twice[1].frame.seq = 1001;
	twice[1].payload = all.frames[5].payload;
	twice[1].frame.sz = all.frames[5].frame.sz;
	twice[1].frame.crc = all.frames[5].frame.crc;
	CU_ASSERT_EQUAL(put(store, twice, 2, &result), -EEXIST);
	store__close(store);
	vec_free(&all.bytes);
	test_dir__remove(&dir);
}

/* A batch may hold several requests of a session, and of others. */
static void batches(void)
{
	struct store_result results[4];
	struct frames all;
	struct test_dir dir;
	struct store *store;

	reset_clocks();
	test_dir__make(&dir);
	make_frames(&all);
	store = open_store(dir.path);
	CU_ASSERT_EQUAL(store__put(store, HOST, TEST_SESSION, all.frames, 20, &results[0]), 0);
	CU_ASSERT_EQUAL(store__put(store, "other", TEST_SESSION, all.frames, 20, &results[1]), 0);
	CU_ASSERT_EQUAL(store__put(store, HOST, TEST_SESSION, all.frames + 10, 30, &results[2]), 0);
	CU_ASSERT_EQUAL(store__put(store, HOST, TEST_SESSION, all.frames, FRAME_CNT, &results[3]), 0);
	store__commit(store);
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(store__committed(&results[i]), 0);
	CU_ASSERT(results[1].stored == 20 && results[2].stored == 20 && results[2].duplicates == 10);
	CU_ASSERT_EQUAL(results[3].duplicates, FRAME_CNT);
	store__close(store);
	expect_each_once(dir.path, &all);
	vec_free(&all.bytes);
	test_dir__remove(&dir);
}

/* A process that puts them in batches of five and is killed before it closes anything. */
static void put_and_die(const char *dir, const struct frames *all)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		struct store_opts opts = {.dir = dir, .monotonic = fake_monotonic, .wall = fake_wall};
		struct store *store = store__open(&opts);
		struct store_result result;
		bool good = store;

		for (int i = 0; good && i < FRAME_CNT; i += 5)
			good = !put(store, all->frames + i, 5, &result);
		_exit(good ? 0 : 1);
	}
	CU_ASSERT_FATAL(pid > 0 && waitpid(pid, &status, 0) == pid);
	CU_ASSERT_FATAL(WIFEXITED(status) && !WEXITSTATUS(status));
}

static void only_shard(const char *dir, char path[200])
{
	snprintf(path, 200, "%s/" HOST "/2026-11-21/" HOST "-0123456789abcdef-000000.wls", dir);
}

static void a_killed_collector_loses_nothing(void)
{
	struct store_stats stats;
	struct frames all;
	struct test_dir dir;
	struct store *store;

	reset_clocks();
	test_dir__make(&dir);
	make_frames(&all);
	put_and_die(dir.path, &all);
	store = open_store(dir.path);
	store__stats(store, &stats);
	CU_ASSERT(stats.repaired_files == 1 && stats.repaired_bytes == 0);
	store__close(store);
	expect_each_once(dir.path, &all);
	put_all(dir.path, &all, 0, FRAME_CNT);
	expect_each_once(dir.path, &all);
	vec_free(&all.bytes);
	test_dir__remove(&dir);
}

/* Cut anywhere, what is left is whole, accounted for, and is completed by sending all once more. */
static void a_torn_shard_is_repaired(void)
{
	struct shard_buf bytes = {0};
	struct frames all;
	struct test_dir dir;
	char path[200];

	reset_clocks();
	make_frames(&all);
	test_dir__make(&dir);
	put_and_die(dir.path, &all);
	only_shard(dir.path, path);
	test_file__read(path, &bytes);
	test_dir__remove(&dir);
	for (size_t sz = 0; sz < bytes.cnt; sz += sz < 300 ? 41 : 997) {
		test_dir__make(&dir);
		put_and_die(dir.path, &all);
		only_shard(dir.path, path);
		CU_ASSERT_EQUAL(truncate(path, sz), 0);
		put_all(dir.path, &all, 0, FRAME_CNT);
		expect_each_once(dir.path, &all);
		test_dir__remove(&dir);
	}
	vec_free(&bytes);
	vec_free(&all.bytes);
}

/* The disk had written the account, but not all of its blocks, when its power went. */
static void an_account_without_its_blocks_is_not_believed(void)
{
	struct shard_buf bytes = {0};
	struct store_stats stats;
	struct frames all;
	struct test_dir dir;
	struct store *store;
	char path[200];
	uint8_t *block;
	int cnts[FRAME_CNT];
	size_t damage_cnt;

	reset_clocks();
	test_dir__make(&dir);
	make_frames(&all);
	put_and_die(dir.path, &all);
	only_shard(dir.path, path);
	test_file__read(path, &bytes);
	block = memmem(bytes.items, bytes.cnt, all.frames[37].payload, all.frames[37].frame.sz);
	CU_ASSERT_PTR_NOT_NULL_FATAL(block);
	memset(block + SHARD_BLOCK_HEADER_SZ, 0, all.frames[37].frame.sz - SHARD_BLOCK_HEADER_SZ);
	test_file__write(path, bytes.items, bytes.cnt);
	store = open_store(dir.path);
	store__stats(store, &stats);
	CU_ASSERT(stats.repaired_files == 1 && stats.repaired_bytes > all.frames[37].frame.sz);
	store__close(store);
	count_blocks(dir.path, &all, cnts, &damage_cnt);
	CU_ASSERT_EQUAL(damage_cnt, 0);
	for (int i = 0; i < FRAME_CNT; i++)
		CU_ASSERT_EQUAL(cnts[i], i < 35);
	put_all(dir.path, &all, 0, FRAME_CNT);
	expect_each_once(dir.path, &all);
	vec_free(&bytes);
	vec_free(&all.bytes);
	test_dir__remove(&dir);
}

static size_t count_files(const char *pattern_below, const char *dir)
{
	char pattern[300];
	size_t cnt;
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/%s", dir, pattern_below);
	cnt = glob(pattern, 0, NULL, &found) ? 0 : found.gl_pathc;
	globfree(&found);
	return cnt;
}

static void days_ends_and_sizes_begin_another_shard(void)
{
	struct store_opts opts = {.monotonic = fake_monotonic, .wall = fake_wall, .rotate_bytes = 1};
	struct store_frame end = {.frame = {.kind = PROTOCOL_END, .seq = 500}};
	struct store_result result;
	struct frames all;
	struct test_dir dir;
	struct store *store;

	reset_clocks();
	test_dir__make(&dir);
	make_frames(&all);
	store = open_store(dir.path);
	CU_ASSERT_EQUAL(put(store, all.frames, 10, &result), 0);
	fake_monotonic_ns += DAY_NS;
	CU_ASSERT_EQUAL(put(store, all.frames + 10, 10, &result), 0);
	CU_ASSERT_EQUAL(count_files(HOST "/2026-11-21/*-000000.wls", dir.path), 1);
	CU_ASSERT_EQUAL(count_files(HOST "/2026-11-22/*-000001.wls", dir.path), 1);
	CU_ASSERT_EQUAL(put(store, &end, 1, &result), 0);
	CU_ASSERT_EQUAL(put(store, &end, 1, &result), 0);
	CU_ASSERT_EQUAL(result.duplicates, 1);
	CU_ASSERT_EQUAL(put(store, all.frames + 20, 10, &result), 0);
	CU_ASSERT_EQUAL(count_files(HOST "/2026-11-22/*.wls", dir.path), 2);
	/* A quarter of an hour of silence. */
	fake_monotonic_ns += 1000 * 1000000000ull;
	store__tick(store);
	CU_ASSERT_EQUAL(put(store, all.frames + 30, 10, &result), 0);
	CU_ASSERT_EQUAL(count_files(HOST "/2026-11-22/*.wls", dir.path), 3);
	store__close(store);
	expect_each_once(dir.path, &all);
	/* The wall clock is read once: a jump of it moves nothing. */
	fake_wall_ns = 0;
	opts.dir = dir.path;
	store = store__open(&opts);
	CU_ASSERT_PTR_NOT_NULL_FATAL(store);
	fake_wall_ns = UINT64_MAX;
	CU_ASSERT_EQUAL(store__wall_ns(store), 0);
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(store__put(store, "other", 1, all.frames + i, 1, &result), 0);
		store__commit(store);
	}
	CU_ASSERT_EQUAL(count_files("other/1970-01-01/*.wls", dir.path), 3);
	store__close(store);
	vec_free(&all.bytes);
	test_dir__remove(&dir);
}

static void retention_deletes_the_oldest(void)
{
	struct store_opts opts = {
		.monotonic = fake_monotonic, .wall = fake_wall, .keep_ns = 3 * DAY_NS, .rotate_bytes = 1};
	struct store_result result;
	struct store_stats stats, before;
	struct frames all;
	struct test_dir dir;
	struct store *store;

	reset_clocks();
	test_dir__make(&dir);
	make_frames(&all);
	opts.dir = dir.path;
	store = store__open(&opts);
	CU_ASSERT_PTR_NOT_NULL_FATAL(store);
	for (int i = 0; i < 6; i++) {
		CU_ASSERT_EQUAL(put(store, all.frames + i, 1, &result), 0);
		fake_monotonic_ns += DAY_NS;
	}
	/* Days 0 to 5, now it is day 6: 3 to 5 are kept. */
	store__tick(store);
	CU_ASSERT_EQUAL(count_files(HOST "/*/*.wls", dir.path), 3);
	CU_ASSERT_EQUAL(count_files(HOST "/*", dir.path), 3);
	store__stats(store, &before);
	CU_ASSERT(before.deleted_files == 3 && before.files == 3);
	store__close(store);
	/* Of what is left, only what fits. */
	opts.keep_ns = 0;
	opts.max_bytes = before.bytes - 1;
	store = store__open(&opts);
	CU_ASSERT_PTR_NOT_NULL_FATAL(store);
	store__stats(store, &stats);
	CU_ASSERT(stats.bytes >= before.bytes && stats.files == 3);
	store__tick(store);
	store__stats(store, &stats);
	CU_ASSERT(stats.files == 2 && stats.bytes <= opts.max_bytes);
	CU_ASSERT_EQUAL(count_files(HOST "/*/*.wls", dir.path), 2);
	store__close(store);
	opts.max_bytes = 1;
	store = store__open(&opts);
	store__tick(store);
	CU_ASSERT_EQUAL(count_files("*", dir.path), 0);
	store__close(store);
	vec_free(&all.bytes);
	test_dir__remove(&dir);
}

/* What the directory's files take on the disk. */
static uint64_t bytes_on_disk(const char *dir, const char *host)
{
	char pattern[200];
	uint64_t bytes = 0;
	struct stat st;
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/%s/*/*.wls", dir, host);
	if (glob(pattern, 0, NULL, &found))
		return 0;
	for (size_t f = 0; f < found.gl_pathc; f++)
		bytes += stat(found.gl_pathv[f], &st) ? 0 : (uint64_t)st.st_blocks * 512;
	globfree(&found);
	return bytes;
}

/* A session with one small frame, ended: a file of its own. */
static void put_small_session(struct store *store, const char *host, uint64_t session_id, struct store_frame frame)
{
	struct store_result result;

	frame.frame.seq = 0;
	CU_ASSERT_EQUAL(store__put(store, host, session_id, &frame, 1, &result), 0);
	store__commit(store);
	CU_ASSERT_EQUAL(store__committed(&result), 0);
	store__tick(store);
}

#define LIMIT (256u << 10)

/* One host sends sessions of nothing without end: the others keep everything, and the store keeps its limit. */
static void one_host_pushes_out_no_other(void)
{
	struct store_opts opts = {.monotonic = fake_monotonic, .wall = fake_wall, .max_bytes = LIMIT};
	struct store_result result;
	struct store_stats stats;
	int cnts[FRAME_CNT];
	size_t damage_cnt;
	struct frames all;
	struct test_dir dir;
	struct store *store;

	reset_clocks();
	test_dir__make(&dir);
	make_frames(&all);
	opts.dir = dir.path;
	store = store__open(&opts);
	CU_ASSERT_PTR_NOT_NULL_FATAL(store);
	CU_ASSERT_EQUAL(put(store, all.frames, FRAME_CNT, &result), 0);
	for (uint64_t id = 1; id <= 200; id++) {
		fake_monotonic_ns += 1000000000;
		put_small_session(store, "greedy", id, all.frames[0]);
		CU_ASSERT(bytes_on_disk(dir.path, "*") <= LIMIT);
	}
	store__stats(store, &stats);
	CU_ASSERT(stats.bytes <= LIMIT && stats.bytes > LIMIT / 2 && stats.deleted_files > 100);
	/* What was acknowledged last is there, also of the greedy one. */
	CU_ASSERT_EQUAL(count_files("greedy/*/greedy-00000000000000c8-*.wls", dir.path), 1);
	store__close(store);
	/* Not the damage: the greedy one's blocks are of a session that they do not name. */
	count_blocks(dir.path, &all, cnts, &damage_cnt);
	for (int i = 0; i < FRAME_CNT; i++)
		CU_ASSERT_EQUAL(cnts[i], 1);
	vec_free(&all.bytes);
	test_dir__remove(&dir);
}

static void a_host_has_limits_of_its_own(void)
{
	struct store_opts opts = {
		.monotonic = fake_monotonic, .wall = fake_wall, .host_max_files = 10, .host_session_max = 3};
	struct store_result result;
	struct store_stats stats;
	struct frames all;
	struct test_dir dir;
	struct store *store;

	reset_clocks();
	test_dir__make(&dir);
	make_frames(&all);
	opts.dir = dir.path;
	store = store__open(&opts);
	CU_ASSERT_PTR_NOT_NULL_FATAL(store);
	CU_ASSERT_EQUAL(put(store, all.frames, 1, &result), 0);
	for (uint64_t id = 1; id <= 30; id++) {
		fake_monotonic_ns += 1000000000;
		put_small_session(store, "greedy", id, all.frames[0]);
		store__stats(store, &stats);
		CU_ASSERT(stats.sessions <= 4 && stats.files <= 11);
	}
	CU_ASSERT_EQUAL(count_files("greedy/*/*.wls", dir.path), 10);
	CU_ASSERT_EQUAL(count_files("greedy/*/greedy-000000000000001e-*.wls", dir.path), 1);
	store__close(store);
	opts.host_max_bytes = 20 << 10;
	opts.host_max_files = 0;
	store = store__open(&opts);
	CU_ASSERT_PTR_NOT_NULL_FATAL(store);
	store__tick(store);
	CU_ASSERT(bytes_on_disk(dir.path, "greedy") <= 20 << 10);
	CU_ASSERT_EQUAL(count_files("greedy/*/*.wls", dir.path), 5);
	store__close(store);
	/* Another host's limits are not touched by it. */
	CU_ASSERT(bytes_on_disk(dir.path, HOST) > 0);
	vec_free(&all.bytes);
	test_dir__remove(&dir);
}

static void a_full_disk_costs_no_block(void)
{
	struct rlimit old, limit;
	struct store_result result;
	struct frames all;
	struct test_dir dir;
	struct store *store;
	int refused_cnt = 0;
	size_t sz = 0;

	reset_clocks();
	test_dir__make(&dir);
	make_frames(&all);
	store = open_store(dir.path);
	CU_ASSERT_EQUAL(put(store, all.frames, 10, &result), 0);
	for (int i = 0; i < 10; i++)
		sz += all.frames[i].frame.sz;
	/* A limit of the size of files stands in for it: in the middle of the blocks, then of the account. */
	signal(SIGXFSZ, SIG_IGN);
	CU_ASSERT_FATAL(!getrlimit(RLIMIT_FSIZE, &old));
	limit = (struct rlimit){.rlim_cur = sz + 1500, .rlim_max = old.rlim_max};
	CU_ASSERT_FATAL(!setrlimit(RLIMIT_FSIZE, &limit));
	CU_ASSERT_EQUAL(put(store, all.frames + 10, 20, &result), -EFBIG);
	for (int i = 10; i < FRAME_CNT; i++) {
		int err = put(store, all.frames + i, 1, &result);

		CU_ASSERT(!err || err == -EFBIG);
		refused_cnt += err != 0;
	}
	CU_ASSERT(refused_cnt > 20);
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_FSIZE, &old), 0);
	signal(SIGXFSZ, SIG_DFL);
	CU_ASSERT_EQUAL(put(store, all.frames, FRAME_CNT, &result), 0);
	store__close(store);
	expect_each_once(dir.path, &all);
	vec_free(&all.bytes);
	test_dir__remove(&dir);
}

static void a_store_that_vanishes(void)
{
	struct store_result result;
	struct frames all;
	struct test_dir dir;
	struct store *store;
	char path[200], moved[200];

	reset_clocks();
	test_dir__make(&dir);
	make_frames(&all);
	snprintf(path, sizeof(path), "%s/store", dir.path);
	snprintf(moved, sizeof(moved), "%s/moved", dir.path);
	store = open_store(path);
	CU_ASSERT_EQUAL(store__check(store), 0);
	CU_ASSERT_EQUAL(put(store, all.frames, 10, &result), 0);
	CU_ASSERT_EQUAL(rename(path, moved), 0);
	CU_ASSERT_EQUAL(store__check(store), -ENOENT);
	CU_ASSERT_EQUAL(store__check(store), -ENOENT);
	CU_ASSERT_EQUAL(rename(moved, path), 0);
	CU_ASSERT_EQUAL(store__check(store), 0);
	CU_ASSERT_EQUAL(put(store, all.frames, FRAME_CNT, &result), 0);
	CU_ASSERT_EQUAL(result.duplicates, 10);
	/* Another one in its place begins at nothing. */
	CU_ASSERT_EQUAL(rename(path, moved), 0);
	CU_ASSERT_EQUAL(mkdir(path, 0755), 0);
	CU_ASSERT_EQUAL(store__check(store), 0);
	CU_ASSERT_EQUAL(put(store, all.frames, FRAME_CNT, &result), 0);
	CU_ASSERT_EQUAL(result.stored, FRAME_CNT);
	store__close(store);
	expect_each_once(path, &all);
	store__close(open_store(moved));
	expect_each_once(moved, &all);
	vec_free(&all.bytes);
	test_dir__remove(&dir);
}

/* Deleted between the check and the commit: nobody may be told that it is stored. */
static void a_shard_that_is_deleted(void)
{
	struct store_result result;
	struct frames all;
	struct test_dir dir;
	struct store *store;
	char path[200];

	reset_clocks();
	test_dir__make(&dir);
	make_frames(&all);
	store = open_store(dir.path);
	CU_ASSERT_EQUAL(put(store, all.frames, 10, &result), 0);
	only_shard(dir.path, path);
	CU_ASSERT_EQUAL(store__put(store, HOST, TEST_SESSION, all.frames + 10, 10, &result), 0);
	CU_ASSERT_EQUAL(unlink(path), 0);
	store__commit(store);
	CU_ASSERT_EQUAL(store__committed(&result), -ESTALE);
	CU_ASSERT_EQUAL(put(store, all.frames, FRAME_CNT, &result), 0);
	CU_ASSERT_EQUAL(result.stored, FRAME_CNT);
	store__close(store);
	expect_each_once(dir.path, &all);
	vec_free(&all.bytes);
	test_dir__remove(&dir);
}

static void one_process_per_store(void)
{
	struct test_dir dir;
	struct store_opts opts = {.dir = dir.path};
	struct store *store;

	test_dir__make(&dir);
	store = open_store(dir.path);
	CU_ASSERT(!store__open(&opts) && errno == EBUSY);
	store__close(store);
	opts.dir = "/dev/null";
	CU_ASSERT(!store__open(&opts) && errno == ENOTDIR);
	opts.dir = "/nonexistent/store";
	CU_ASSERT(!store__open(&opts) && errno == ENOENT);
	test_dir__remove(&dir);
}

/* What is not ours stays as it is, and what only looks like a shard is no reason to fail. */
static void foreign_files(void)
{
	struct shard_buf bytes = {0}, torn = {0};
	struct store_result result;
	struct store_stats stats;
	struct frames all;
	struct test_dir dir;
	struct store *store;
	char path[200];

	reset_clocks();
	test_dir__make(&dir);
	make_frames(&all);
	put_all(dir.path, &all, 0, 10);
	snprintf(path, sizeof(path), "%s/" HOST "/2026-11-21/" HOST "-0123456789abcdef-000001.wls", dir.path);
	test_file__write(path, (const uint8_t *)"buy milk\n", 9);
	snprintf(path, sizeof(path), "%s/" HOST "/2026-11-21/notes.txt", dir.path);
	test_file__write(path, (const uint8_t *)"buy milk\n", 9);
	snprintf(path, sizeof(path), "%s/" HOST "/link", dir.path);
	CU_ASSERT_EQUAL(symlink("/", path), 0);
	snprintf(path, sizeof(path), "%s/" HOST "/2026-11-21/" HOST "-0123456789abcdef-000002.wls", dir.path);
	CU_ASSERT_EQUAL(symlink("/etc/passwd", path), 0);
	store = open_store(dir.path);
	CU_ASSERT_EQUAL(put(store, all.frames, FRAME_CNT, &result), 0);
	CU_ASSERT(result.stored == FRAME_CNT - 10 && result.duplicates == 10);
	store__close(store);
	CU_ASSERT_EQUAL(count_files(HOST "/2026-11-21/*", dir.path), 5);
	/* A torn shard that another program wrote has no account: it is moved aside. */
	test_shard__begin(&bytes);
	vec_reserve(&bytes, all.frames[0].frame.sz);
	memcpy(bytes.items + bytes.cnt, all.frames[0].payload, all.frames[0].frame.sz);
	bytes.cnt += all.frames[0].frame.sz;
	snprintf(path, sizeof(path), "%s/" HOST "/2026-11-21/" HOST "-0123456789abcdef-000009.wls", dir.path);
	test_file__write(path, bytes.items, bytes.cnt);
	store = open_store(dir.path);
	store__stats(store, &stats);
	store__close(store);
	CU_ASSERT_EQUAL(stats.aside_files, 1);
	CU_ASSERT(access(path, F_OK) && errno == ENOENT);
	strcat(path, ".torn");
	test_file__read(path, &torn);
	CU_ASSERT(torn.cnt == bytes.cnt && !memcmp(torn.items, bytes.items, bytes.cnt));
	vec_free(&torn);
	vec_free(&bytes);
	vec_free(&all.bytes);
	test_dir__remove(&dir);
}

static void too_many_gaps(void)
{
	struct store_frame frame;
	struct store_result result;
	struct frames all;
	struct test_dir dir;
	struct store *store;
	int err = 0, cnt = 0;

	reset_clocks();
	test_dir__make(&dir);
	make_frames(&all);
	store = open_store(dir.path);
	frame = all.frames[0];
	for (; !err && cnt < 10000; cnt++) {
		frame.frame.seq = 2 * cnt;
		err = store__put(store, HOST, TEST_SESSION, &frame, 1, &result);
	}
	CU_ASSERT(err == -ENOBUFS && cnt == 4097);
	store__commit(store);
	/* What closes a gap is welcome. */
	frame.frame.seq = 1;
	CU_ASSERT_EQUAL(put(store, &frame, 1, &result), 0);
	store__close(store);
	vec_free(&all.bytes);
	test_dir__remove(&dir);
}

static int check(struct block_checker *checker, const struct shard_buf *bytes, const char **what)
{
	struct block_checked checked;

	block_checker__begin(checker);
	return block_checker__check(checker, bytes->items, bytes->cnt, TEST_SESSION, &checked, what);
}

static void blocks_are_checked(void)
{
	static const struct shard_column columns[] = {{"pid", SHARD_STR, SHARD_UNIT_NONE, false}};
	static const struct shard_table wrong_type = {"interval", columns, 1}, received = {"received", columns, 1},
					bad_name = {"../x", columns, 1}, unknown = {"of_the_future", columns, 1};
	static const struct {
		const struct shard_table *table;
		const char *what; /* NULL: good */
	} cases[] = {
		{&shard_tables[SHARD_TABLE_INTERVAL], NULL},
		{&unknown, NULL},
		{&wrong_type, "schema"},
		{&received, "name"},
		{&bad_name, "name"},
	};
	struct block_checker checker = {0};
	struct shard_buf bytes = {0};
	struct test_rng rng = {3};
	struct shard_row row;
	const char *what;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		test_row__fill(&row, cases[i].table, &rng);
		bytes.cnt = 0;
		test_shard__put_block(&bytes, cases[i].table, &row, 1, SHARD_CODEC_NONE);
		CU_ASSERT_EQUAL(check(&checker, &bytes, &what), cases[i].what ? -EBADMSG : 0);
		CU_ASSERT(!cases[i].what || strstr(what, cases[i].what));
	}
	/* Any byte that is wrong, missing or too many. */
	bytes.cnt = 0;
	test_row__fill(&row, cases[0].table, &rng);
	test_shard__put_block(&bytes, cases[0].table, &row, 1, SHARD_CODEC_NONE);
	for (size_t i = 0; i < bytes.cnt; i++) {
		bytes.items[i] ^= 1;
		CU_ASSERT_EQUAL(check(&checker, &bytes, &what), -EBADMSG);
		bytes.items[i] ^= 1;
	}
	CU_ASSERT_EQUAL(check(&checker, &bytes, &what), 0);
	bytes.cnt--;
	CU_ASSERT_EQUAL(check(&checker, &bytes, &what), -EBADMSG);
	bytes.cnt += 2;
	CU_ASSERT_EQUAL(check(&checker, &bytes, &what), -EBADMSG);
	block_checker__clear(&checker);
	vec_free(&bytes);
}

static const struct unit_test tests[] = {
	{"what is put is there", what_is_put_is_there},
	{"repetitions are known", repetitions_are_known},
	{"batches", batches},
	{"a killed collector loses nothing", a_killed_collector_loses_nothing},
	{"a torn shard is repaired", a_torn_shard_is_repaired},
	{"an account without its blocks is not believed", an_account_without_its_blocks_is_not_believed},
	{"days, ends and sizes begin another shard", days_ends_and_sizes_begin_another_shard},
	{"retention deletes the oldest", retention_deletes_the_oldest},
	{"one host pushes out no other", one_host_pushes_out_no_other},
	{"a host has limits of its own", a_host_has_limits_of_its_own},
	{"a full disk costs no block", a_full_disk_costs_no_block},
	{"a store that vanishes", a_store_that_vanishes},
	{"a shard that is deleted", a_shard_that_is_deleted},
	{"one process per store", one_process_per_store},
	{"foreign files", foreign_files},
	{"too many gaps", too_many_gaps},
	{"blocks are checked", blocks_are_checked},
};

int suite_store(void)
{
	return unit_suite("store", tests, sizeof(tests) / sizeof(tests[0]));
}
