// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the store says is on the disk was synced before it said so: the calls that do it are ours here, and note what
 * the files were at that moment.
 */
#include "test_shard_util.h"
#include "unit.h"

#include "net/collect/store.h"
#include "shard/crc32c.h"

#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SYNCED_MAX 256
#define HOST_CNT   5
#define BATCH_CNT  12
#define FILES_OPEN 20 /* for nftw() */

/* By inode: the size of a file, 0 for a directory. */
static struct synced {
	ino_t ino;
	off_t sz;
} synced[SYNCED_MAX];
static size_t synced_cnt, syncfs_cnt, fdatasync_cnt, unsynced_cnt;
static const char *watched; /* the store's directory; NULL: nobody looks */

static struct synced *synced_of(ino_t ino)
{
	for (size_t i = 0; i < synced_cnt; i++)
		if (synced[i].ino == ino)
			return &synced[i];
	return NULL;
}

static void note(const struct stat *st)
{
	struct synced *known = synced_of(st->st_ino);

	if (!known && synced_cnt < SYNCED_MAX) {
		known = &synced[synced_cnt++];
		known->ino = st->st_ino;
	}
	if (known)
		known->sz = S_ISDIR(st->st_mode) ? 0 : st->st_size;
}

static int note_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)path, (void)type, (void)ftw;
	note(st);
	return 0;
}

int fdatasync(int fd)
{
	struct stat st;

	fdatasync_cnt++;
	if (watched && !fstat(fd, &st))
		note(&st);
	return (int)syscall(SYS_fdatasync, fd);
}

int fsync(int fd)
{
	struct stat st;

	if (watched && !fstat(fd, &st))
		note(&st);
	return (int)syscall(SYS_fsync, fd);
}

int syncfs(int fd)
{
	syncfs_cnt++;
	if (watched)
		nftw(watched, note_one, FILES_OPEN, FTW_PHYS);
	return (int)syscall(SYS_syncfs, fd);
}

/* Every shard, and every directory on the way to it. */
static int check_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	const char *dot = strrchr(path, '.');
	const struct synced *known = synced_of(st->st_ino);

	(void)ftw;
	if (type == FTW_D || (dot && !strcmp(dot, ".wls")))
		unsynced_cnt += !known || (type == FTW_F && known->sz < st->st_size);
	return 0;
}

static void put_one(struct store *store, const char *host, uint64_t seq, const struct shard_buf *block,
		    struct store_result *result)
{
	const struct store_frame frame = {
		.frame = {.kind = PROTOCOL_BLOCK,
			  .seq = seq,
			  .sz = (uint32_t)block->cnt,
			  .crc = crc32c(0, block->items, block->cnt)},
		.payload = block->items,
	};

	CU_ASSERT_EQUAL(store__put(store, host, TEST_SESSION, &frame, 1, result), 0);
}

/* Batches of one host's and of several hosts' requests: files are synced one by one, or all at once. */
static void what_is_acknowledged_was_synced(void)
{
	const struct shard_table *table = &shard_tables[SHARD_TABLE_LOSS];
	struct store_result results[HOST_CNT];
	struct shard_buf block = {0};
	struct test_rng rng = {11};
	struct store_opts opts = {0};
	struct shard_row row;
	struct test_dir dir;
	struct store *store;
	char host[16];

	test_dir__make(&dir);
	test_row__fill(&row, table, &rng);
	test_shard__put_block(&block, table, &row, 1, SHARD_CODEC_ZSTD);
	opts.dir = watched = dir.path;
	synced_cnt = syncfs_cnt = fdatasync_cnt = unsynced_cnt = 0;
	store = store__open(&opts);
	CU_ASSERT_PTR_NOT_NULL_FATAL(store);
	for (uint64_t batch = 0; batch < BATCH_CNT; batch++) {
		uint64_t host_cnt = batch % 2 ? HOST_CNT : 1;

		for (uint64_t h = 0; h < host_cnt; h++) {
			snprintf(host, sizeof(host), "host-%d", (int)h);
			put_one(store, host, batch, &block, &results[h]);
		}
		store__commit(store);
		for (uint64_t h = 0; h < host_cnt; h++)
			CU_ASSERT_EQUAL(store__committed(&results[h]), 0);
		CU_ASSERT_EQUAL(nftw(dir.path, check_one, FILES_OPEN, FTW_PHYS), 0);
	}
	CU_ASSERT_EQUAL(unsynced_cnt, 0);
	/* Both ways were gone. */
	CU_ASSERT(syncfs_cnt > 0 && fdatasync_cnt > 0);
	store__close(store);
	watched = NULL;
	vec_free(&block);
	test_dir__remove(&dir);
}

static const struct unit_test tests[] = {
	{"what is acknowledged was synced", what_is_acknowledged_was_synced},
};

int suite_store_sync(void)
{
	return unit_suite("store_sync", tests, sizeof(tests) / sizeof(tests[0]));
}
