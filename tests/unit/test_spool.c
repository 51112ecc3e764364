// SPDX-License-Identifier: GPL-2.0-or-later
#include "spool_fixture.h"
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static uint32_t count_class(const struct spool_entries *entries, char class)
{
	uint32_t cnt = 0;

	for (size_t i = 0; i < entries->cnt; i++)
		cnt += entries->items[i].class == class;
	return cnt;
}

static void names_are_read_back_and_others_are_not(void)
{
	static const char *const bad[] = {"",
					  "account",
					  "00000000000-t-00010",
					  "000000000001-t-0001",
					  "000000000001-q-00010",
					  "000000000001-t-00010x",
					  "00000000000G-t-00010",
					  "000000000001-t-65537",
					  "000000000001_t-00010",
					  "..",
					  "../etc/passwd"};
	struct spool_entry entry = {.seq = 0xabcdef012345, .row_cnt = 4096, .class = SPOOL_TAIL}, back;
	char name[SPOOL_ENTRY_NAME_SZ], dir[SPOOL_DIR_NAME_SZ], host[SHARD_HOST_MAX + 1];
	uint64_t session_id;
	bool whole;

	for (int w = 0; w < 2; w++) {
		spool_entry_name(name, &entry, w);
		CU_ASSERT_EQUAL(spool_entry_parse(name, &back, &whole), 0);
		CU_ASSERT(back.seq == entry.seq && back.row_cnt == 4096 && back.class == 't' && whole == w);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_EQUAL(spool_entry_parse(bad[i], &back, &whole), -EINVAL);
	spool_dir_name(dir, "a-b.c", 0x12ef);
	CU_ASSERT_EQUAL(spool_dir_parse(dir, host, &session_id), 0);
	CU_ASSERT(!strcmp(host, "a-b.c") && session_id == 0x12ef);
	CU_ASSERT_EQUAL(spool_dir_parse("-0123456789abcdef", host, &session_id), -EINVAL);
	CU_ASSERT_EQUAL(spool_dir_parse("a/b-0123456789abcdef", host, &session_id), -EINVAL);
	CU_ASSERT_EQUAL(spool_dir_parse("host-0123456789abcdeF", host, &session_id), -EINVAL);
	CU_ASSERT_EQUAL(spool_dir_parse("host-0123456789abcdef.new", host, &session_id), -EINVAL);
}

static void frames_come_out_as_they_went_in(void)
{
	struct spool_fixture fixture;
	struct spool *spool = spool_fixture__begin(&fixture, 16 << 20);
	struct protocol_frame frame;
	struct shard_buf sent = {0};
	const uint8_t *payload;
	size_t off = 0;
	uint32_t cnt = 0;

	for (uint32_t i = 0; i < 20; i++)
		CU_ASSERT_EQUAL(spool_fixture_put(spool, i % 2 ? SPOOL_TAIL : SPOOL_BASELINE, i, 100 + i * 1000), 0);
	CU_ASSERT_EQUAL(spool_fixture__send_all(&fixture, &sent), 20);
	while (protocol_body__next(sent.items, sent.cnt, &off, &frame, &payload) == 1) {
		CU_ASSERT(frame.seq == cnt && frame.kind == PROTOCOL_BLOCK && frame.sz == 100 + cnt * 1000);
		CU_ASSERT(!memcmp(payload, &cnt, sizeof(cnt)));
		cnt++;
	}
	CU_ASSERT(cnt == 20 && off == sent.cnt);
	CU_ASSERT_EQUAL(fixture.shared.used_bytes, 0);
	/* Its end: the counts, then the end frame, then nothing is left of it. */
	spool__finish(spool);
	CU_ASSERT_EQUAL(spool_fixture__send_all(&fixture, &sent), 1);
	spool__tick(spool, 1);
	CU_ASSERT(!spool__is_done(spool));
	off = sent.cnt;
	CU_ASSERT_EQUAL(spool_fixture__send_all(&fixture, &sent), 1);
	CU_ASSERT_EQUAL(protocol_body__next(sent.items, sent.cnt, &off, &frame, &payload), 1);
	CU_ASSERT(frame.kind == PROTOCOL_END && frame.seq == 21);
	spool__tick(spool, 2);
	CU_ASSERT(spool__is_done(spool));
	CU_ASSERT(spool_fixture__session_dir(&fixture, TEST_SESSION) < 0);
	CU_ASSERT_EQUAL(fixture.shared.spare_bytes, 0);
	vec_free(&sent);
	spool_fixture__end(&fixture);
}

/* The newest row of `loss` among what was sent. */
static void check_told(const struct shard_buf *sent, uint64_t emitted, uint64_t lost)
{
	struct protocol_frame frame;
	const uint8_t *payload;
	struct shard_buf file = {0};
	uint64_t told_emitted = UINT64_MAX, told_lost = UINT64_MAX;
	const struct shard_block *block;
	struct shard_reader *reader;
	struct test_dir dir;
	char path[128];
	size_t off = 0;

	test_shard__begin(&file);
	while (protocol_body__next(sent->items, sent->cnt, &off, &frame, &payload) == 1) {
		/* Those of the fixture are no blocks. */
		if (frame.sz < SHARD_BLOCK_HEADER_SZ || memcmp(payload, SHARD_BLOCK_MAGIC, SHARD_MAGIC_SZ))
			continue;
		CU_ASSERT_FATAL(!vec_reserve(&file, frame.sz));
		memcpy(file.items + file.cnt, payload, frame.sz);
		file.cnt += frame.sz;
	}
	test_dir__make(&dir);
	snprintf(path, sizeof(path), "%s/a.wls", dir.path);
	test_file__write(path, file.items, file.cnt);
	reader = test_reader__open(path);
	while (shard_reader__next(reader, &block) == 1) {
		CU_ASSERT_STRING_EQUAL(block->table, "loss");
		CU_ASSERT_EQUAL_FATAL(block->row_cnt, 2);
		CU_ASSERT_STRING_EQUAL(shard_block__column(block, "class")->values[0].str, "spool");
		CU_ASSERT_STRING_EQUAL(shard_block__column(block, "class")->values[1].str, "spool_baseline");
		CU_ASSERT(shard_block__column(block, "emitted")->values[1].u64 <=
			  shard_block__column(block, "emitted")->values[0].u64);
		CU_ASSERT(shard_block__column(block, "lost")->values[1].u64 <=
			  shard_block__column(block, "lost")->values[0].u64);
		told_emitted = shard_block__column(block, "emitted")->values[0].u64;
		told_lost = shard_block__column(block, "lost")->values[0].u64;
	}
	CU_ASSERT_EQUAL(told_emitted, emitted);
	CU_ASSERT_EQUAL(told_lost, lost);
	shard_reader__free(reader);
	test_dir__remove(&dir);
	vec_free(&file);
}

static void the_oldest_baseline_goes_first(void)
{
	struct spool_fixture fixture;
	struct spool *spool = spool_fixture__begin(&fixture, 1 << 20);
	struct spool_entries entries = {0};
	struct shard_buf sent = {0};
	uint64_t rows_left = 0;

	/* 1 MiB is 256 files: 3 facts, 100 tail, 100 baseline, and then 400 of the baseline more. */
	for (uint32_t i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(spool_fixture_put(spool, SPOOL_FACTS, i, 100), 0);
	for (uint32_t i = 0; i < 200; i++)
		CU_ASSERT_EQUAL(spool_fixture_put(spool, i % 2 ? SPOOL_TAIL : SPOOL_BASELINE, i, 100), 0);
	for (uint32_t i = 0; i < 400; i++) {
		CU_ASSERT_EQUAL(spool_fixture_put(spool, SPOOL_BASELINE, i, 100), 0);
		CU_ASSERT(fixture.shared.used_bytes <= 1 << 20);
	}
	spool_fixture__list(&fixture, TEST_SESSION, &entries);
	CU_ASSERT_EQUAL(count_class(&entries, SPOOL_TAIL), 100);
	CU_ASSERT_EQUAL(count_class(&entries, SPOOL_FACTS), 3);
	CU_ASSERT(count_class(&entries, SPOOL_BASELINE) > 50);
	/* What is left of the baseline is its newest part, without a hole. */
	for (size_t i = entries.cnt; i-- > entries.cnt - count_class(&entries, SPOOL_BASELINE);)
		CU_ASSERT_EQUAL(entries.items[i].class, SPOOL_BASELINE);
	/* Then the tail, oldest first, but never the facts. */
	for (uint32_t i = 0; i < 300; i++)
		CU_ASSERT_EQUAL(spool_fixture_put(spool, SPOOL_TAIL, i, 100), 0);
	spool_fixture__list(&fixture, TEST_SESSION, &entries);
	CU_ASSERT_EQUAL(count_class(&entries, SPOOL_BASELINE), 0);
	CU_ASSERT_EQUAL(count_class(&entries, SPOOL_FACTS), 3);
	CU_ASSERT_EQUAL(entries.items[entries.cnt - 1].seq, 902);
	for (size_t i = 0; i < entries.cnt; i++)
		rows_left += entries.items[i].row_cnt;
	/* Every row is there or counted. */
	spool__finish(spool);
	CU_ASSERT_EQUAL(spool_fixture__send_all(&fixture, &sent), entries.cnt + 1);
	check_told(&sent, 900 * ROW_CNT, 900 * ROW_CNT - rows_left);
	vec_free(&sent);
	vec_free(&entries);
	spool_fixture__end(&fixture);
}

static void totals_that_were_superseded_go_before_all(void)
{
	struct spool_fixture fixture;
	struct spool *spool = spool_fixture__begin(&fixture, 1 << 20);
	struct spool_entries entries = {0};
	struct spool_stats stats;

	for (uint32_t i = 0; i < 1000; i++)
		CU_ASSERT_EQUAL(spool_fixture_put(spool, i % 20 ? SPOOL_TOTALS : SPOOL_BASELINE, i, 100), 0);
	spool_fixture__list(&fixture, TEST_SESSION, &entries);
	CU_ASSERT_EQUAL(count_class(&entries, SPOOL_BASELINE), 50);
	CU_ASSERT_EQUAL(entries.items[entries.cnt - 1].seq, 999);
	CU_ASSERT(count_class(&entries, SPOOL_TOTALS) >= 4);
	spool__stats(spool, &stats);
	CU_ASSERT(stats.emitted == 50 * ROW_CNT && !stats.lost && stats.dropped_bytes);
	vec_free(&entries);
	spool_fixture__end(&fixture);
}

static void what_is_on_the_wire_stays(void)
{
	struct spool_fixture fixture;
	struct spool *spool = spool_fixture__begin(&fixture, 1 << 20);
	struct spool_entries entries = {0};
	struct spool_stats stats;

	for (uint32_t i = 0; i < 200; i++)
		CU_ASSERT_EQUAL(spool_fixture_put(spool, SPOOL_BASELINE, i, 100), 0);
	fixture.shared.slots[0].inflight_to = 9;
	fixture.shared.slots[0].inflight_from = 5;
	for (uint32_t i = 0; i < 2000; i++)
		CU_ASSERT_EQUAL(spool_fixture_put(spool, SPOOL_BASELINE, i, 100), 0);
	spool_fixture__list(&fixture, TEST_SESSION, &entries);
	for (size_t i = 0; i < 5; i++)
		CU_ASSERT(entries.items[i].seq == 5 + i && entries.items[i].class == SPOOL_BASELINE);
	CU_ASSERT(entries.items[5].seq > 1000);
	spool__stats(spool, &stats);
	CU_ASSERT_EQUAL(stats.lost, (2200 - entries.cnt) * ROW_CNT);
	vec_free(&entries);
	spool_fixture__end(&fixture);
}

static void a_block_beyond_the_spool_is_counted(void)
{
	struct spool_fixture fixture;
	struct spool *spool = spool_fixture__begin(&fixture, 1 << 20);
	struct spool_stats stats;

	CU_ASSERT_EQUAL(spool_fixture_put(spool, SPOOL_TAIL, 0, 1 << 20), -EOVERFLOW);
	CU_ASSERT_EQUAL(spool_fixture_put(spool, SPOOL_TAIL, 1, 1 << 19), 0);
	CU_ASSERT_EQUAL(spool_fixture_put(spool, SPOOL_TAIL, 2, 1 << 19), 0);
	spool__stats(spool, &stats);
	CU_ASSERT(stats.emitted == 3 * ROW_CNT && stats.lost == 2 * ROW_CNT);
	spool_fixture__end(&fixture);
}

static void old_frames_expire(void)
{
	struct timespec old[2] = {{.tv_sec = time(NULL) - 2 * 86400}, {.tv_sec = time(NULL) - 2 * 86400}};
	struct spool_fixture fixture;
	struct spool *spool = spool_fixture__begin(&fixture, 1 << 20);
	struct spool_entries entries = {0};
	char name[SPOOL_ENTRY_NAME_SZ];
	struct spool_stats stats;
	int fd;

	for (uint32_t i = 0; i < 10; i++)
		CU_ASSERT_EQUAL(spool_fixture_put(spool, SPOOL_TAIL, i, 100), 0);
	spool_fixture__list(&fixture, TEST_SESSION, &entries);
	fd = spool_fixture__session_dir(&fixture, TEST_SESSION);
	for (size_t i = 0; i < 4; i++) {
		spool_entry_name(name, &entries.items[i], true);
		CU_ASSERT_EQUAL(utimensat(fd, name, old, 0), 0);
	}
	close(fd);
	spool__tick(spool, DAY_NS);
	spool__stats(spool, &stats);
	CU_ASSERT_EQUAL(stats.lost, 4 * ROW_CNT);
	spool_fixture__list(&fixture, TEST_SESSION, &entries);
	/* The first that is left, and the row that tells the loss. */
	CU_ASSERT(entries.cnt == 7 && entries.items[0].seq == 4 && entries.items[6].class == SPOOL_TOTALS);
	vec_free(&entries);
	spool_fixture__end(&fixture);
}

/* Somebody's who lives is left alone; somebody's who is gone is sent, counted and closed. */
static void leftovers_are_taken_over(void)
{
	struct spool_fixture fixture, other;
	struct spool *spool = spool_fixture__begin(&fixture, 1 << 20);
	struct shard_buf sent = {0};
	struct spool_stats stats;

	other.dir = fixture.dir;
	for (uint32_t i = 0; i < 5; i++)
		CU_ASSERT_EQUAL(spool_fixture_put(spool, SPOOL_TAIL, i, 5000), 0);
	spool_fixture__open(&other, 1 << 20);
	spool__stats(other.spool, &stats);
	CU_ASSERT(!stats.adopted_cnt && !other.shared.used_bytes);
	spool__free(spool);
	/* It looks now and then. */
	spool__tick(other.spool, 31 * 1000000000ULL);
	spool__stats(other.spool, &stats);
	CU_ASSERT_EQUAL(stats.adopted_cnt, 1);
	CU_ASSERT_EQUAL(other.shared.used_bytes, 5 * 8192);
	CU_ASSERT_EQUAL(spool_fixture__send_all(&other, &sent), 5);
	for (uint64_t i = 0; i < 3; i++) {
		spool__tick(other.spool, (32 + i) * 1000000000ULL);
		spool_fixture__send_all(&other, &sent);
	}
	CU_ASSERT(spool__is_done(other.spool));
	check_told(&sent, 5 * ROW_CNT, 0);
	vec_free(&sent);
	fixture.spool = other.spool;
	spool_fixture__end(&fixture);
}

/* Whatever happens in whatever order: the bound holds, and every row is stored, waiting or counted as lost. */
static void rows_balance_whatever_happens(void)
{
	static const char classes[] = {SPOOL_TOTALS, SPOOL_BASELINE, SPOOL_BASELINE, SPOOL_TAIL, SPOOL_FACTS};
	struct spool_fixture fixture;
	struct spool *spool = spool_fixture__begin(&fixture, 1 << 20);
	struct spool_entries entries = {0};
	struct shard_buf sent = {0};
	struct test_rng rng = {3};
	uint64_t given = 0, stored = 0, waiting = 0;
	struct spool_stats stats;

	for (uint32_t i = 0; i < 3000; i++) {
		char class = classes[test_rng__below(&rng, sizeof(classes))];

		if (!test_rng__below(&rng, 300)) {
			spool_fixture__list(&fixture, TEST_SESSION, &entries);
			for (size_t e = 0; e < entries.cnt; e++)
				stored += entries.items[e].row_cnt;
			sent.cnt = 0;
			spool_fixture__send_all(&fixture, &sent);
		}
		given += class == SPOOL_BASELINE || class == SPOOL_TAIL ? ROW_CNT : 0;
		spool_fixture_put(spool, class, i, 100 + test_rng__below(&rng, 30000));
		CU_ASSERT(fixture.shared.used_bytes + fixture.shared.spare_bytes <= 1 << 20);
		if (i % 50 == 0)
			spool__tick(spool, i * 100000000ULL);
	}
	spool_fixture__list(&fixture, TEST_SESSION, &entries);
	for (size_t e = 0; e < entries.cnt; e++)
		waiting += entries.items[e].row_cnt;
	spool__stats(spool, &stats);
	CU_ASSERT_EQUAL(stats.emitted, given);
	CU_ASSERT(stats.lost > 0 && stored > 0);
	CU_ASSERT_EQUAL(stats.emitted, stored + waiting + stats.lost);
	vec_free(&sent);
	vec_free(&entries);
	spool_fixture__end(&fixture);
}

/* Frames name hosts, requests and arguments: whatever the umask is, only the owner and the uploader read them. */
static void others_cannot_read_frames(void)
{
	mode_t mask = umask(0);
	struct spool_fixture fixture;
	struct spool *spool = spool_fixture__begin(&fixture, 16 << 20);
	int dir_fd = spool_fixture__session_dir(&fixture, TEST_SESSION);
	struct spool_entries entries = {0};
	char name[SPOOL_ENTRY_NAME_SZ];
	struct stat st, dir_st;

	CU_ASSERT_EQUAL(spool_fixture_put(spool, SPOOL_TAIL, 0, 100), 0);
	umask(0777);
	CU_ASSERT_EQUAL(spool_fixture_put(spool, SPOOL_TAIL, 1, 100), 0);
	umask(mask);
	CU_ASSERT_EQUAL(spool_list(dir_fd, &entries), 0);
	CU_ASSERT_EQUAL(entries.cnt, 2);
	CU_ASSERT_EQUAL(fstat(dir_fd, &dir_st), 0);
	for (size_t i = 0; i < entries.cnt; i++) {
		spool_entry_name(name, &entries.items[i], true);
		CU_ASSERT_EQUAL(fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
		CU_ASSERT(!(st.st_mode & 0137) && (geteuid() || ((st.st_mode & 0777) == 0640)));
		CU_ASSERT_EQUAL(st.st_gid, dir_st.st_gid);
	}
	vec_free(&entries);
	close(dir_fd);
	spool_fixture__end(&fixture);
}

/* The directory is the uploader's, who may have laid a link to anything where the next frame goes. */
static void a_link_in_the_way_is_not_written_through(void)
{
	struct spool_fixture fixture;
	struct spool *spool = spool_fixture__begin(&fixture, 16 << 20);
	int dir_fd = spool_fixture__session_dir(&fixture, TEST_SESSION);
	struct spool_entry entry = {.row_cnt = ROW_CNT, .class = SPOOL_TAIL};
	struct spool_entries entries = {0};
	char name[SPOOL_ENTRY_NAME_SZ];
	struct stat st;
	int fd = openat(dir_fd, "victim", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(write(fd, "secret", 6), 6);
	for (entry.seq = 0; entry.seq < 4; entry.seq++) {
		spool_entry_name(name, &entry, false);
		CU_ASSERT_EQUAL(linkat(dir_fd, "victim", dir_fd, name, 0), 0);
	}
	for (uint32_t i = 0; i < 2; i++)
		CU_ASSERT_EQUAL(spool_fixture_put(spool, SPOOL_TAIL, i, 100), 0);
	CU_ASSERT_EQUAL(fstat(fd, &st), 0);
	CU_ASSERT(st.st_size == 6 && (st.st_mode & 0777) == 0600);
	/* Two of its names have gone, so they were in the way. */
	CU_ASSERT_EQUAL(st.st_nlink, 3);
	CU_ASSERT_EQUAL(spool_list(dir_fd, &entries), 0);
	CU_ASSERT_EQUAL(count_class(&entries, SPOOL_TAIL), 2);
	vec_free(&entries);
	close(fd);
	close(dir_fd);
	spool_fixture__end(&fixture);
}

static void a_directory_that_cannot_be_used_says_why(void)
{
	struct spool_shared *shared = calloc(1, sizeof(*shared));
	struct spool_opts opts = {.dir = "/dev/null/spool", .max_bytes = 1 << 20, .max_age_ns = 1, .shared = shared};

	CU_ASSERT(!spool__new(&opts) && errno == ENOTDIR);
	opts.dir = "";
	CU_ASSERT(!spool__new(&opts) && errno == ENOENT);
	free(shared);
}

int suite_spool(void)
{
	static const struct unit_test tests[] = {
		{"names are read back and others are not", names_are_read_back_and_others_are_not},
		{"frames come out as they went in", frames_come_out_as_they_went_in},
		{"the oldest baseline goes first", the_oldest_baseline_goes_first},
		{"totals that were superseded go before all", totals_that_were_superseded_go_before_all},
		{"what is on the wire stays", what_is_on_the_wire_stays},
		{"a block beyond the spool is counted", a_block_beyond_the_spool_is_counted},
		{"old frames expire", old_frames_expire},
		{"leftovers are taken over", leftovers_are_taken_over},
		{"rows balance whatever happens", rows_balance_whatever_happens},
		{"others cannot read frames", others_cannot_read_frames},
		{"a link in the way is not written through", a_link_in_the_way_is_not_written_through},
		{"a directory that cannot be used says why", a_directory_that_cannot_be_used_says_why},
	};

	return unit_suite("spool", tests, sizeof(tests) / sizeof(tests[0]));
}
