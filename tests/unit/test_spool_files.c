// SPDX-License-Identifier: GPL-2.0-or-later
/* The files of the spool: which are written again, and what a crash leaves of them. */
#include "spool_fixture.h"
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static ino_t inode_of(int dir_fd, const char *name)
{
	struct stat st;

	return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) ? 0 : st.st_ino;
}

/* Larger and smaller than what was in them; a few are kept, of no more than 64 KiB, and all are counted. */
static void files_of_sent_frames_are_written_again(void)
{
	struct spool_fixture fixture;
	struct spool *spool = spool_fixture__begin(&fixture, 16 << 20);
	int dir_fd = spool_fixture__session_dir(&fixture, TEST_SESSION);
	struct spool_entry first = {.class = SPOOL_TAIL, .row_cnt = ROW_CNT};
	char name[SPOOL_ENTRY_NAME_SZ], spare_name[SPOOL_SPARE_NAME_SZ];
	struct shard_buf sent = {0};
	struct protocol_frame frame;
	struct test_rng rng = {5};
	const uint8_t *payload;
	uint32_t cnt = 0, next = 0;
	size_t off = 0;

	for (int round = 0; round < 60; round++) {
		uint64_t spare_bytes = 0;
		ino_t spare;
		struct stat st;

		spool_spare_name(spare_name, 0);
		spare = inode_of(dir_fd, spare_name);
		CU_ASSERT(!spare == !round);
		first.seq = cnt;
		for (uint64_t i = test_rng__below(&rng, 25); i + 1; i--, cnt++)
			CU_ASSERT_EQUAL(spool_fixture_put(spool, SPOOL_TAIL, cnt, 100 + test_rng__below(&rng, 70000)),
					0);
		spool_entry_name(name, &first, true);
		CU_ASSERT(!spare || inode_of(dir_fd, name) == spare);
		spool_fixture__send_all(&fixture, &sent);
		for (unsigned int i = 0; i < SPOOL_SPARES; i++) {
			spool_spare_name(spare_name, i);
			if (fstatat(dir_fd, spare_name, &st, AT_SYMLINK_NOFOLLOW))
				continue;
			CU_ASSERT(st.st_size <= SPOOL_SPARE_MAX);
			spare_bytes += spool_disk_sz(st.st_size);
		}
		CU_ASSERT_EQUAL(fixture.shared.spare_bytes, spare_bytes);
		CU_ASSERT_EQUAL(fixture.shared.used_bytes, 0);
	}
	for (; protocol_body__next(sent.items, sent.cnt, &off, &frame, &payload) == 1; next++)
		CU_ASSERT(frame.seq == next && !memcmp(payload, &next, sizeof(next)));
	CU_ASSERT(next == cnt && off == sent.cnt);
	close(dir_fd);
	vec_free(&sent);
	spool_fixture__end(&fixture);
}

/* A spool that is full gives them up before any frame. */
static void spare_files_go_first(void)
{
	struct spool_fixture fixture;
	struct spool *spool = spool_fixture__begin(&fixture, 1 << 20);
	struct spool_entries entries = {0};
	struct shard_buf sent = {0};
	struct spool_stats stats;

	for (uint32_t i = 0; i < 12; i++)
		CU_ASSERT_EQUAL(spool_fixture_put(spool, SPOOL_BASELINE, i, 60000), 0);
	spool_fixture__send_all(&fixture, &sent);
	CU_ASSERT(fixture.shared.spare_bytes > 12 * 60000);
	for (uint32_t i = 12; i < 16; i++)
		CU_ASSERT_EQUAL(spool_fixture_put(spool, SPOOL_BASELINE, i, 250000), 0);
	CU_ASSERT_EQUAL(fixture.shared.spare_bytes, 0);
	spool__stats(spool, &stats);
	CU_ASSERT_EQUAL(stats.dropped_bytes, 0);
	spool_fixture__list(&fixture, TEST_SESSION, &entries);
	CU_ASSERT_EQUAL(entries.cnt, 4);
	vec_free(&entries);
	vec_free(&sent);
	spool_fixture__end(&fixture);
}

/* The directory is the uploader's: what it puts in the place of a spare file is not written to. */
static void only_what_was_a_frame_is_written_again(void)
{
	static const char text[] = "somebody else's";
	struct spool_fixture fixture;
	struct spool *spool = spool_fixture__begin(&fixture, 16 << 20);
	int dir_fd = spool_fixture__session_dir(&fixture, TEST_SESSION);
	char spare_name[SPOOL_SPARE_NAME_SZ], back[sizeof(text)] = "";
	struct shard_buf sent = {0};
	int fd;

	for (unsigned int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(spool_fixture_put(spool, SPOOL_TAIL, i, 1000), 0);
	spool_fixture__send_all(&fixture, &sent);
	spool_fixture__write(&fixture, "elsewhere", (const uint8_t *)text, sizeof(text));
	for (unsigned int i = 0; i < 3; i++) {
		spool_spare_name(spare_name, i);
		CU_ASSERT_EQUAL(unlinkat(dir_fd, spare_name, 0), 0);
	}
	spool_spare_name(spare_name, 0);
	CU_ASSERT_EQUAL(linkat(dir_fd, "elsewhere", dir_fd, spare_name, 0), 0);
	spool_spare_name(spare_name, 1);
	CU_ASSERT_EQUAL(symlinkat("elsewhere", dir_fd, spare_name), 0);
	spool_spare_name(spare_name, 2);
	CU_ASSERT_EQUAL(mkfifoat(dir_fd, spare_name, 0600), 0);
	for (unsigned int i = 3; i < 6; i++)
		CU_ASSERT_EQUAL(spool_fixture_put(spool, SPOOL_TAIL, i, 1000), 0);
	CU_ASSERT_EQUAL(spool_fixture__send_all(&fixture, &sent), 3);
	fd = openat(dir_fd, "elsewhere", O_RDONLY | O_CLOEXEC);
	CU_ASSERT(read(fd, back, sizeof(back)) == sizeof(back) && !strcmp(back, text));
	close(fd);
	spool_fixture__remove(&fixture, "elsewhere");
	close(dir_fd);
	vec_free(&sent);
	spool_fixture__end(&fixture);
}

struct spool_cut {
	uint32_t readable, damaged;
};

/* Takes over what is there and reads it: how many frames are whole, how many are not. */
static struct spool_cut look_again(struct spool_fixture *fixture, uint64_t *next_seq)
{
	struct spool_session session;
	struct spool_entries entries = {0};
	struct shard_buf bytes = {0};
	struct spool_cut cut = {0};
	char name[SPOOL_DIR_NAME_SZ];
	int root_fd = open(fixture->dir.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	spool_dir_name(name, "host", TEST_SESSION);
	CU_ASSERT_EQUAL_FATAL(spool_session__adopt(&session, root_fd, name), 0);
	CU_ASSERT_EQUAL(spool_list(session.dir_fd, &entries), 0);
	for (size_t i = 0; i < entries.cnt; i++) {
		int err = spool_read(session.dir_fd, &entries.items[i], PROTOCOL_BODY_MAX, &bytes);

		CU_ASSERT(!err || err == -EBADMSG);
		cut.readable += !err;
		cut.damaged += err == -EBADMSG;
	}
	*next_seq = session.account.next_seq;
	spool_session__close(&session, root_fd, false);
	close(root_fd);
	vec_free(&entries);
	vec_free(&bytes);
	return cut;
}

/* The frame of that number as it was written, into `bytes`. */
static void read_frame(const struct spool_fixture *fixture, const struct spool_entry *entry, struct shard_buf *bytes)
{
	int fd = spool_fixture__session_dir(fixture, TEST_SESSION);

	bytes->cnt = 0;
	CU_ASSERT_EQUAL_FATAL(spool_read(fd, entry, PROTOCOL_BODY_MAX, bytes), 0);
	close(fd);
}

/* Killed, or the machine crashed, after any byte of a frame: the others are untouched, this one is whole or nothing. */
static void a_crash_at_any_byte_of_a_frame(void)
{
	struct spool_entry last = {.seq = 2, .row_cnt = ROW_CNT, .class = SPOOL_TAIL}, next = last;
	char name[SPOOL_ENTRY_NAME_SZ], hidden[SPOOL_ENTRY_NAME_SZ], next_hidden[SPOOL_ENTRY_NAME_SZ];
	struct spool_fixture fixture;
	struct spool *spool = spool_fixture__begin(&fixture, 1 << 20);
	struct shard_buf bytes = {0}, mixed = {0};
	struct spool_cut cut;
	uint64_t next_seq;

	for (uint32_t i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(spool_fixture_put(spool, SPOOL_TAIL, i, 300), 0);
	spool__free(spool);
	fixture.spool = NULL;
	next.seq = 1;
	read_frame(&fixture, &next, &mixed);
	read_frame(&fixture, &last, &bytes);
	next.seq = 3;
	spool_entry_name(name, &last, true);
	spool_entry_name(hidden, &last, false);
	spool_entry_name(next_hidden, &next, false);
	for (size_t sz = 0; sz <= bytes.cnt; sz++) {
		bool whole = sz == bytes.cnt;

		/* The account does not know it yet: it never was. */
		spool_fixture__write(&fixture, next_hidden, bytes.items, sz);
		cut = look_again(&fixture, &next_seq);
		CU_ASSERT(cut.readable == 3 && !cut.damaged && next_seq == 3);
		/* The account knows it, it was not in sight yet. */
		spool_fixture__remove(&fixture, name);
		spool_fixture__write(&fixture, hidden, bytes.items, sz);
		cut = look_again(&fixture, &next_seq);
		CU_ASSERT(cut.readable == 2U + whole && cut.damaged == !whole && next_seq == 3);
		/* It was in sight, and the disk did not get all of it. */
		spool_fixture__write(&fixture, name, bytes.items, sz);
		cut = look_again(&fixture, &next_seq);
		CU_ASSERT(cut.readable == 2U + whole && cut.damaged == !whole && next_seq == 3);
		/* It was a spare file, and the disk did not get the end of what was written over. */
		memcpy(mixed.items, bytes.items, sz);
		spool_fixture__write(&fixture, name, mixed.items, mixed.cnt);
		cut = look_again(&fixture, &next_seq);
		CU_ASSERT(cut.readable == 2U + whole && cut.damaged == !whole && next_seq == 3);
		/* A byte is another one. */
		if (whole)
			break;
		spool_fixture__write(&fixture, name, bytes.items, bytes.cnt);
		bytes.items[sz] ^= 0x10;
		spool_fixture__write(&fixture, name, bytes.items, bytes.cnt);
		cut = look_again(&fixture, &next_seq);
		CU_ASSERT(cut.readable == 2 && cut.damaged == 1);
		bytes.items[sz] ^= 0x10;
		spool_fixture__write(&fixture, name, bytes.items, bytes.cnt);
	}
	vec_free(&bytes);
	vec_free(&mixed);
	spool_fixture__end(&fixture);
}

/* Without its account a session still comes out, and gives no number twice. */
static void a_crash_at_any_byte_of_an_account(void)
{
	struct spool_fixture fixture;
	struct spool *spool = spool_fixture__begin(&fixture, 1 << 20);
	struct shard_buf account = {0};
	struct spool_cut cut;
	uint64_t next_seq;
	char path[200];

	for (uint32_t i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(spool_fixture_put(spool, SPOOL_TAIL, i, 300), 0);
	spool__free(spool);
	fixture.spool = NULL;
	snprintf(path, sizeof(path), "%s/host-%016lx/" SPOOL_ACCOUNT, fixture.dir.path, (unsigned long)TEST_SESSION);
	test_file__read(path, &account);
	CU_ASSERT_EQUAL_FATAL(account.cnt, 80);
	for (size_t sz = 0; sz <= account.cnt; sz++) {
		spool_fixture__write(&fixture, SPOOL_ACCOUNT, account.items, sz);
		cut = look_again(&fixture, &next_seq);
		CU_ASSERT(cut.readable == 3 && !cut.damaged);
		CU_ASSERT(sz == account.cnt ? next_seq == 3 : next_seq > 3);
	}
	vec_free(&account);
	spool_fixture__end(&fixture);
}

int suite_spool_files(void)
{
	static const struct unit_test tests[] = {
		{"files of sent frames are written again", files_of_sent_frames_are_written_again},
		{"spare files go first", spare_files_go_first},
		{"only what was a frame is written again", only_what_was_a_frame_is_written_again},
		{"a crash at any byte of a frame", a_crash_at_any_byte_of_a_frame},
		{"a crash at any byte of an account", a_crash_at_any_byte_of_an_account},
	};

	return unit_suite("spool_files", tests, sizeof(tests) / sizeof(tests[0]));
}
