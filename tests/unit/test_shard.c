// SPDX-License-Identifier: GPL-2.0-or-later
#include "test_shard_util.h"
#include "unit.h"

#include <whylate/record.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static struct shard_writer *open_writer(const struct test_dir *dir, struct shard_writer_opts opts)
{
	struct shard_writer *writer;

	opts.dir = dir->path;
	opts.host = opts.host ?: "host";
	opts.session_id = TEST_SESSION;
	writer = shard_writer__new(&opts);
	CU_ASSERT_PTR_NOT_NULL_FATAL(writer);
	return writer;
}

static unsigned count_entries(const char *path)
{
	struct dirent *entry;
	DIR *dir = opendir(path);
	unsigned cnt = 0;

	while ((entry = readdir(dir)))
		cnt += entry->d_name[0] != '.';
	closedir(dir);
	return cnt;
}

static void the_tables_are_what_their_files_say(void)
{
	const struct shard_table *interval = &shard_tables[SHARD_TABLE_INTERVAL];

	for (int t = 0; t < SHARD_TABLE_CNT; t++) {
		CU_ASSERT(shard_tables[t].column_cnt <= SHARD_ROW_COLUMNS_MAX);
		CU_ASSERT(strlen(shard_tables[t].name) < SHARD_TABLE_NAME_SZ);
		for (uint32_t c = 0; c < shard_tables[t].column_cnt; c++) {
			CU_ASSERT_PTR_NOT_NULL_FATAL(shard_tables[t].columns[c].name);
			for (uint32_t other = 0; other < c; other++)
				CU_ASSERT(strcmp(shard_tables[t].columns[c].name, shard_tables[t].columns[other].name));
		}
	}
	CU_ASSERT_EQUAL(interval->column_cnt, INTERVAL_FIXED_CNT + 2 * WL_STATE_CNT + WL_TALLY_CNT + SHARD_HW_CNT);
	CU_ASSERT_EQUAL(shard_tables[SHARD_TABLE_SESSION].column_cnt, SESSION_FIXED_CNT);
	CU_ASSERT_STRING_EQUAL(interval->columns[INTERVAL_END_TS].name, "end_ts");
	CU_ASSERT_STRING_EQUAL(interval->columns[interval_column_length(WL_STATE_QUEUE)].name, "ns.queue");
	CU_ASSERT_EQUAL(interval->columns[interval_column_length(WL_STATE_QUEUE)].unit, SHARD_UNIT_NS);
	CU_ASSERT_STRING_EQUAL(interval->columns[interval_column_count(WL_STATE_UNKNOWN)].name, "n.unknown");
	CU_ASSERT_STRING_EQUAL(interval->columns[interval_column_tally(WL_TALLY_MIGRATION)].name, "n.migration");
	CU_ASSERT_STRING_EQUAL(interval->columns[interval_column_hw(SHARD_HW_ITLB_MISSES)].name, "hw.itlb_misses");
	CU_ASSERT(interval->columns[interval_column_hw(SHARD_HW_CYCLES)].nullable);
}

#define ROUND_ROWS 300

static void round_trip(enum shard_codec codec, uint32_t block_rows)
{
	struct shard_writer_opts opts = {.block_rows = block_rows, .codec = codec, .codec_set = true};
	static struct shard_row rows[SHARD_TABLE_CNT][ROUND_ROWS];
	struct test_rng rng = {7 + codec};
	uint32_t seen[SHARD_TABLE_CNT] = {0};
	const struct shard_damage *damage;
	const struct shard_block *block;
	struct shard_writer *writer;
	struct shard_reader *reader;
	struct test_dir dir;

	test_dir__make(&dir);
	writer = open_writer(&dir, opts);
	for (int i = 0; i < ROUND_ROWS; i++) {
		for (int t = 0; t < SHARD_TABLE_CNT; t++) {
			test_row__fill(&rows[t][i], &shard_tables[t], &rng);
			CU_ASSERT_EQUAL(shard_writer__append(writer, t, &rows[t][i]), 0);
		}
	}
	CU_ASSERT_EQUAL(shard_writer__free(writer), 0);
	reader = test_reader__open(dir.path);
	while (shard_reader__next(reader, &block) == 1) {
		int t = 0;

		while (strcmp(shard_tables[t].name, block->table))
			t++;
		CU_ASSERT(block->session_id == TEST_SESSION && block->column_cnt == shard_tables[t].column_cnt);
		for (uint32_t i = 0; i < block->row_cnt; i++)
			CU_ASSERT(test_row__equals(&rows[t][seen[t]++], &shard_tables[t], block, i));
	}
	for (int t = 0; t < SHARD_TABLE_CNT; t++)
		CU_ASSERT_EQUAL(seen[t], ROUND_ROWS);
	CU_ASSERT_EQUAL(shard_reader__damage(reader, &damage), 0);
	shard_reader__free(reader);
	test_dir__remove(&dir);
}

static void every_table_survives_every_codec(void)
{
	round_trip(SHARD_CODEC_NONE, 1);
	round_trip(SHARD_CODEC_ZLIB, 64);
	round_trip(SHARD_CODEC_ZSTD, 65);
	round_trip(SHARD_CODEC_ZSTD, 0);
}

static void shards_rotate_by_size_and_stay_in_order(void)
{
	struct shard_writer_opts opts = {.block_rows = 10, .rotate_bytes = 3000, .host = "a/b c"};
	const struct shard_block *block;
	struct shard_writer_stats stats;
	struct shard_writer *writer;
	struct shard_reader *reader;
	struct shard_row row = {0};
	uint64_t bytes = 0, wanted = 0;
	struct test_dir dir;
	char path[200];

	test_dir__make(&dir);
	writer = open_writer(&dir, opts);
	row.values[THREAD_EVENT].str = row.values[THREAD_COMM].str = "";
	for (int i = 0; i < 1000; i++) {
		row.values[THREAD_TS].u64 = i;
		CU_ASSERT_EQUAL(shard_writer__append(writer, SHARD_TABLE_THREAD, &row), 0);
	}
	CU_ASSERT_EQUAL(shard_writer__flush(writer, true), 0);
	shard_writer__stats(writer, &stats);
	CU_ASSERT(stats.shard_cnt > 3);
	CU_ASSERT_EQUAL(stats.rows[SHARD_TABLE_THREAD], 1000);
	CU_ASSERT_EQUAL(stats.rows_on_disk[SHARD_TABLE_THREAD], 1000);
	for (unsigned i = 0; i < stats.shard_cnt; i++) {
		struct stat st;

		snprintf(path, sizeof(path), "%s/a_b_c-0123456789abcdef-%06u.wls", dir.path, i);
		CU_ASSERT_EQUAL(stat(path, &st), 0);
		bytes += st.st_size;
	}
	CU_ASSERT_STRING_EQUAL(path, shard_writer__path(writer));
	CU_ASSERT_EQUAL(bytes, stats.bytes);
	CU_ASSERT_EQUAL(count_entries(dir.path), stats.shard_cnt);
	CU_ASSERT_EQUAL(shard_writer__free(writer), 0);
	reader = test_reader__open(dir.path);
	while (shard_reader__next(reader, &block) == 1)
		for (uint32_t i = 0; i < block->row_cnt; i++)
			CU_ASSERT_EQUAL(shard_block__column(block, "ts")->values[i].u64, wanted++);
	CU_ASSERT_EQUAL(wanted, 1000);
	shard_reader__free(reader);
	test_dir__remove(&dir);
}

static void put_session_row(struct shard_writer *writer, const char *key)
{
	struct shard_row row = {0};

	row.values[SESSION_KEY].str = key;
	row.values[SESSION_VALUE].str = "";
	CU_ASSERT_EQUAL(shard_writer__append(writer, SHARD_TABLE_SESSION, &row), 0);
	CU_ASSERT_EQUAL(shard_writer__flush(writer, false), 0);
}

static void shards_rotate_by_age_and_never_overwrite(void)
{
	struct shard_writer_stats stats;
	struct shard_writer *writer;
	struct shard_reader *reader;
	struct test_dir dir;
	char taken[200];

	test_dir__make(&dir);
	snprintf(taken, sizeof(taken), "%s/_host-0123456789abcdef-000001.wls", dir.path);
	test_file__write(taken, (const uint8_t *)"precious", 8);
	writer = open_writer(&dir, (struct shard_writer_opts){.rotate_age_ns = 1, .host = ".host"});
	CU_ASSERT_EQUAL(shard_writer__flush(writer, false), 0);
	put_session_row(writer, "first");
	put_session_row(writer, "second");
	shard_writer__stats(writer, &stats);
	CU_ASSERT_EQUAL(stats.shard_cnt, 2);
	CU_ASSERT_PTR_NOT_NULL(strstr(shard_writer__path(writer), "-000002.wls"));
	CU_ASSERT_EQUAL(shard_writer__free(writer), 0);
	reader = test_reader__open(dir.path);
	CU_ASSERT_EQUAL(test_reader__count_rows(reader, "session"), 2);
	CU_ASSERT_PTR_NOT_NULL_FATAL(test_reader__damage(reader, "foreign file"));
	CU_ASSERT_STRING_EQUAL(test_reader__damage(reader, "foreign file")->path, taken);
	shard_reader__free(reader);
	test_dir__remove(&dir);
}

static void directories_are_made_or_the_reason_is_given(void)
{
	struct shard_writer_opts opts = {.host = "", .session_id = 1};
	struct shard_writer *writer;
	struct test_dir dir;
	char path[200];

	test_dir__make(&dir);
	snprintf(path, sizeof(path), "%s/a/b/c/", dir.path);
	opts.dir = path;
	writer = shard_writer__new(&opts);
	CU_ASSERT_PTR_NOT_NULL_FATAL(writer);
	CU_ASSERT_PTR_NOT_NULL(strstr(shard_writer__path(writer), "/host-0000000000000001-000000.wls"));
	CU_ASSERT_EQUAL(shard_writer__free(writer), 0);
	snprintf(path, sizeof(path), "%s/file", dir.path);
	test_file__write(path, (const uint8_t *)"", 0);
	CU_ASSERT(!shard_writer__new(&opts) && errno == ENOTDIR);
	snprintf(path, sizeof(path), "%s/file/below", dir.path);
	CU_ASSERT(!shard_writer__new(&opts) && errno == ENOTDIR);
	opts.dir = "";
	CU_ASSERT(!shard_writer__new(&opts) && errno == ENOENT);
	CU_ASSERT_EQUAL(shard_writer__free(NULL), 0);
	test_dir__remove(&dir);
}

static void a_row_that_breaks_the_schema_is_not_taken(void)
{
	static char too_long[SHARD_STRING_MAX + 2];
	struct shard_row row = {0};
	struct shard_writer_stats stats;
	struct shard_writer *writer;
	struct shard_reader *reader;
	struct test_dir dir;

	test_dir__make(&dir);
	writer = open_writer(&dir, (struct shard_writer_opts){0});
	row.values[SESSION_TS].u64 = 5;
	row.values[SESSION_KEY].str = "key";
	CU_ASSERT_EQUAL(shard_writer__append(writer, SHARD_TABLE_SESSION, &row), -EINVAL);
	memset(too_long, 'x', sizeof(too_long) - 1);
	row.values[SESSION_VALUE].str = too_long;
	CU_ASSERT_EQUAL(shard_writer__append(writer, SHARD_TABLE_SESSION, &row), -E2BIG);
	shard_row__set_null(&row, SESSION_VALUE);
	CU_ASSERT_EQUAL(shard_writer__append(writer, SHARD_TABLE_SESSION, &row), -EINVAL);
	CU_ASSERT_EQUAL(shard_writer__append(writer, SHARD_TABLE_CNT, &row), -EINVAL);
	/* Nothing of the refused rows may shine through this one. */
	memset(&row, 0, sizeof(row));
	row.values[SESSION_KEY].str = "";
	row.values[SESSION_VALUE].str = too_long + 1;
	shard_row__set_null(&row, 77); /* no such column */
	CU_ASSERT_EQUAL(shard_writer__append(writer, SHARD_TABLE_SESSION, &row), 0);
	CU_ASSERT_EQUAL(shard_writer__flush(writer, false), 0);
	shard_writer__stats(writer, &stats);
	CU_ASSERT_EQUAL(stats.rows[SHARD_TABLE_SESSION], 1);
	reader = test_reader__open(dir.path);
	row.nulls[1] = 0;
	{
		const struct shard_block *block;

		CU_ASSERT_EQUAL_FATAL(shard_reader__next(reader, &block), 1);
		CU_ASSERT(test_row__equals(&row, &shard_tables[SHARD_TABLE_SESSION], block, 0));
	}
	shard_reader__free(reader);
	CU_ASSERT_EQUAL(shard_writer__free(writer), 0);
	test_dir__remove(&dir);
}

static void much_text_makes_a_block_full(void)
{
	static char text[SHARD_STRING_MAX];
	struct shard_row row = {0};
	struct shard_writer_stats stats;
	struct shard_writer *writer;
	struct shard_reader *reader;
	struct test_dir dir;

	test_dir__make(&dir);
	writer = open_writer(&dir, (struct shard_writer_opts){0});
	memset(text, 'x', sizeof(text) - 1);
	row.values[SESSION_KEY].str = "key";
	row.values[SESSION_VALUE].str = text;
	for (int i = 0; i < 9; i++) {
		text[0] = 'a' + i;
		CU_ASSERT_EQUAL(shard_writer__append(writer, SHARD_TABLE_SESSION, &row), 0);
	}
	shard_writer__stats(writer, &stats);
	CU_ASSERT(stats.rows_on_disk[SHARD_TABLE_SESSION] > 3);
	CU_ASSERT_EQUAL(shard_writer__free(writer), 0);
	reader = test_reader__open(dir.path);
	CU_ASSERT_EQUAL(test_reader__count_rows(reader, "session"), 9);
	shard_reader__free(reader);
	test_dir__remove(&dir);
}

/* Lets no file of this process grow beyond sz; the old limit is returned in *old. */
static void limit_file_sz(rlim_t sz, struct rlimit *old)
{
	struct rlimit limit;

	signal(SIGXFSZ, SIG_IGN);
	CU_ASSERT_FATAL(!getrlimit(RLIMIT_FSIZE, old));
	limit = (struct rlimit){.rlim_cur = sz, .rlim_max = old->rlim_max};
	CU_ASSERT_FATAL(!setrlimit(RLIMIT_FSIZE, &limit));
}

static void unlimit_file_sz(const struct rlimit *old)
{
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_FSIZE, old), 0);
	signal(SIGXFSZ, SIG_DFL);
}

/* A file size limit stands in for a full disk: write() comes back short, then fails. */
static void a_full_disk_costs_the_last_block_and_is_told(void)
{
	struct shard_writer_opts opts = {.block_rows = 50, .codec = SHARD_CODEC_NONE, .codec_set = true};
	const struct shard_damage *damage;
	struct shard_writer_stats stats;
	struct shard_writer *writer;
	struct shard_reader *reader;
	struct rlimit old;
	struct test_rng rng = {8};
	struct shard_row row;
	struct test_dir dir;
	struct stat st;
	int err = 0;

	test_dir__make(&dir);
	writer = open_writer(&dir, opts);
	limit_file_sz(100000, &old);
	for (int i = 0; !err && i < 100000; i++) {
		test_row__fill(&row, &shard_tables[SHARD_TABLE_INTERVAL], &rng);
		err = shard_writer__append(writer, SHARD_TABLE_INTERVAL, &row);
	}
	unlimit_file_sz(&old);
	CU_ASSERT_EQUAL(err, -EFBIG);
	CU_ASSERT_EQUAL(shard_writer__append(writer, SHARD_TABLE_INTERVAL, &row), -EFBIG);
	CU_ASSERT_EQUAL(shard_writer__flush(writer, true), -EFBIG);
	shard_writer__stats(writer, &stats);
	CU_ASSERT_EQUAL(stats.rows[SHARD_TABLE_INTERVAL], stats.rows_on_disk[SHARD_TABLE_INTERVAL] + 50);
	CU_ASSERT_EQUAL(stat(shard_writer__path(writer), &st), 0);
	CU_ASSERT_EQUAL((uint64_t)st.st_size, stats.bytes);
	CU_ASSERT_EQUAL(shard_writer__free(writer), -EFBIG);
	reader = test_reader__open(dir.path);
	CU_ASSERT_EQUAL(test_reader__count_rows(reader, "interval"), stats.rows_on_disk[SHARD_TABLE_INTERVAL]);
	CU_ASSERT_EQUAL_FATAL(shard_reader__damage(reader, &damage), 1);
	CU_ASSERT(!strcmp(damage->what, "not closed") && !damage->sz);
	shard_reader__free(reader);
	test_dir__remove(&dir);
}

static void a_shard_that_cannot_begin_leaves_no_file(void)
{
	struct shard_writer_opts opts = {.host = "host"};
	struct test_dir dir;
	struct rlimit old;

	test_dir__make(&dir);
	opts.dir = dir.path;
	limit_file_sz(10, &old);
	CU_ASSERT(!shard_writer__new(&opts) && errno == EFBIG);
	unlimit_file_sz(&old);
	CU_ASSERT_EQUAL(count_entries(dir.path), 0);
	test_dir__remove(&dir);
}

static void the_index_knows_every_block(void)
{
	static const char *const wanted[] = {SHARD_INDEX_TABLE};
	struct shard_buf bytes = {0};
	struct shard_block_header header;
	const struct shard_block *block;
	struct shard_writer *writer;
	struct shard_reader *reader;
	struct test_rng rng = {9};
	struct shard_row row;
	struct test_dir dir;
	char path[200];

	test_dir__make(&dir);
	writer = open_writer(&dir, (struct shard_writer_opts){.block_rows = 7});
	for (int i = 0; i < 8 * SHARD_TABLE_CNT; i++) {
		test_row__fill(&row, &shard_tables[i % SHARD_TABLE_CNT], &rng);
		CU_ASSERT_EQUAL(shard_writer__append(writer, i % SHARD_TABLE_CNT, &row), 0);
	}
	snprintf(path, sizeof(path), "%s", shard_writer__path(writer));
	CU_ASSERT_EQUAL(shard_writer__free(writer), 0);
	test_file__read(path, &bytes);
	reader = test_reader__open(path);
	CU_ASSERT_EQUAL(shard_reader__select(reader, wanted, 1), 0);
	CU_ASSERT_EQUAL_FATAL(shard_reader__next(reader, &block), 1);
	CU_ASSERT_EQUAL(block->row_cnt, 2 * SHARD_TABLE_CNT);
	for (uint32_t i = 0; i < block->row_cnt; i++) {
		uint64_t off = shard_block__column(block, "off")->values[i].u64;
		const struct shard_block_column *min_ts = shard_block__column(block, "min_ts");

		CU_ASSERT_EQUAL_FATAL(shard_block_header__get(&header, bytes.items + off, bytes.cnt - off), 0);
		CU_ASSERT_EQUAL(shard_block__column(block, "sz")->values[i].u64, header.header_sz + header.stored_sz);
		CU_ASSERT_STRING_EQUAL(shard_block__column(block, "table")->values[i].str, header.table);
		CU_ASSERT_EQUAL(shard_block__column(block, "row_cnt")->values[i].u64, header.row_cnt);
		if (header.min_ts <= header.max_ts) {
			CU_ASSERT(min_ts->values[i].u64 == header.min_ts);
		} else {
			/* Of a hand-off, one side or the other may be unknown; these rows know neither. */
			CU_ASSERT(!strcmp(header.table, "module") || !strcmp(header.table, "variable") ||
				  !strcmp(header.table, "place") || !strcmp(header.table, "symbol") ||
				  !strcmp(header.table, "handoff"));
			CU_ASSERT(min_ts->nulls && min_ts->nulls[0] >> i & 1);
		}
	}
	CU_ASSERT_EQUAL(shard_reader__next(reader, &block), 0);
	shard_reader__free(reader);
	vec_free(&bytes);
	test_dir__remove(&dir);
}

static void only_selected_tables_are_delivered(void)
{
	static const char *const wanted[] = {"loss", "no such table", "thread"};
	struct shard_writer *writer;
	struct shard_reader *reader;
	struct test_rng rng = {10};
	struct shard_row row;
	struct test_dir dir;

	test_dir__make(&dir);
	writer = open_writer(&dir, (struct shard_writer_opts){.block_rows = 3});
	for (int i = 0; i < 10 * SHARD_TABLE_CNT; i++) {
		test_row__fill(&row, &shard_tables[i % SHARD_TABLE_CNT], &rng);
		CU_ASSERT_EQUAL(shard_writer__append(writer, i % SHARD_TABLE_CNT, &row), 0);
	}
	CU_ASSERT_EQUAL(shard_writer__free(writer), 0);
	reader = test_reader__open(dir.path);
	CU_ASSERT_EQUAL(shard_reader__select(reader, wanted, 3), 0);
	CU_ASSERT_EQUAL(test_reader__count_rows(reader, NULL), 20);
	shard_reader__rewind(reader);
	CU_ASSERT_EQUAL(test_reader__count_rows(reader, "thread"), 10);
	shard_reader__rewind(reader);
	CU_ASSERT_EQUAL(shard_reader__select(reader, NULL, 0), 0);
	CU_ASSERT_EQUAL(test_reader__count_rows(reader, NULL), 10 * SHARD_TABLE_CNT);
	shard_reader__rewind(reader);
	CU_ASSERT_EQUAL(shard_reader__select(reader, wanted, 0), 0);
	CU_ASSERT_EQUAL(test_reader__count_rows(reader, NULL), 0);
	shard_reader__free(reader);
	test_dir__remove(&dir);
}

static void put_shard(const struct test_dir *dir, const char *name, uint64_t ts)
{
	struct shard_buf bytes = {0};
	struct shard_row row = {0};
	char path[200];

	row.values[LOSS_TS].u64 = ts;
	row.values[LOSS_CLASS].str = "task";
	test_shard__begin(&bytes);
	test_shard__put_block(&bytes, &shard_tables[SHARD_TABLE_LOSS], &row, 1, SHARD_CODEC_NONE);
	snprintf(path, sizeof(path), "%s/%s", dir->path, name);
	test_file__write(path, bytes.items, bytes.cnt);
	vec_free(&bytes);
}

static void paths_are_read_in_order_and_once(void)
{
	const char *paths[4], *bad_path;
	const struct shard_block *block;
	struct shard_reader *reader;
	struct test_dir dir;
	char extra[200];
	uint64_t wanted = 1;

	test_dir__make(&dir);
	put_shard(&dir, "zz-0000000000000001-000009.wls", 2);
	put_shard(&dir, "aa-0000000000000001-000010.wls", 3);
	put_shard(&dir, "b-x-0000000000000002-000000.wls", 4);
	put_shard(&dir, "a-0000000000000002-000001.wls", 5);
	put_shard(&dir, "a-renamed.wls", 6);
	put_shard(&dir, "named-without-suffix", 1);
	put_shard(&dir, ".hidden.wls", 99);
	snprintf(extra, sizeof(extra), "%s/named-without-suffix", dir.path);
	paths[0] = paths[2] = extra;
	paths[1] = paths[3] = dir.path;
	reader = shard_reader__open(paths, 4, &bad_path);
	CU_ASSERT_PTR_NOT_NULL_FATAL(reader);
	while (shard_reader__next(reader, &block) == 1)
		CU_ASSERT_EQUAL(shard_block__column(block, "ts")->values[0].u64, wanted++);
	CU_ASSERT_EQUAL(wanted, 7);
	shard_reader__free(reader);
	test_dir__remove(&dir);
}

static void a_path_that_is_no_good_is_named(void)
{
	const char *paths[2], *bad_path;
	struct test_dir dir;
	char path[200];

	test_dir__make(&dir);
	paths[0] = dir.path;
	paths[1] = path;
	CU_ASSERT(!shard_reader__open(paths, 1, &bad_path) && errno == ENODATA && bad_path == dir.path);
	CU_ASSERT(!shard_reader__open(paths, 0, &bad_path) && errno == ENODATA);
	snprintf(path, sizeof(path), "%s/missing.wls", dir.path);
	CU_ASSERT(!shard_reader__open(paths, 2, &bad_path) && errno == ENOENT && bad_path == path);
	snprintf(path, sizeof(path), "%s/text", dir.path);
	test_file__write(path, (const uint8_t *)"some text of somebody", 21);
	CU_ASSERT(!shard_reader__open(paths, 2, &bad_path) && errno == ENODATA);
	CU_ASSERT(!shard_reader__open(&(const char *){"/dev/null"}, 1, &bad_path) && errno == EINVAL);
	CU_ASSERT_STRING_EQUAL(bad_path, "/dev/null");
	shard_reader__free(NULL);
	test_dir__remove(&dir);
}

struct caught {
	struct shard_buf bytes;
	uint32_t block_cnt, baseline_cnt, baseline_rows, foreign_cnt;
};

static void catch_block(void *owner, const struct shard_block_header *header, bool baseline, const void *bytes,
			size_t sz)
{
	struct caught *caught = owner;

	CU_ASSERT_EQUAL(sz, SHARD_BLOCK_HEADER_SZ + header->stored_sz);
	caught->block_cnt++;
	caught->baseline_cnt += baseline;
	caught->baseline_rows += baseline ? header->row_cnt : 0;
	caught->foreign_cnt += baseline && strcmp(header->table, "interval");
	CU_ASSERT_FATAL(!vec_reserve(&caught->bytes, sz));
	memcpy(caught->bytes.items + caught->bytes.cnt, bytes, sz);
	caught->bytes.cnt += sz;
}

/* The sink gets what the file gets, byte for byte, without file header, index and trailer; also where there is
 * no file. */
static void a_sink_gets_every_block(void)
{
	struct caught caught[2] = {0};
	struct shard_writer_stats stats;
	uint32_t baseline_rows = 0;
	struct shard_buf file = {0};
	struct test_dir dir;

	test_dir__make(&dir);
	for (int nowhere = 0; nowhere < 2; nowhere++) {
		struct shard_writer_opts opts = {.dir = nowhere ? NULL : dir.path,
						 .host = "host",
						 .session_id = TEST_SESSION,
						 .block_rows = 64,
						 .split_baseline = true,
						 .sink = catch_block,
						 .sink_owner = &caught[nowhere]};
		struct shard_writer *writer = shard_writer__new(&opts);
		struct test_rng rng = {5};
		struct shard_row row;

		CU_ASSERT_PTR_NOT_NULL_FATAL(writer);
		for (int i = 0; i < 1000; i++) {
			enum shard_table_id table = i % 10 ? SHARD_TABLE_INTERVAL : SHARD_TABLE_LOSS;

			test_row__fill(&row, &shard_tables[table], &rng);
			if (table == SHARD_TABLE_INTERVAL) {
				row.values[INTERVAL_FLAGS].u64 = i % 3 ? WL_INTERVAL_BASELINE | 1 : 1;
				baseline_rows += !nowhere && i % 3;
			}
			CU_ASSERT_EQUAL(shard_writer__append(writer, table, &row), 0);
		}
		CU_ASSERT_EQUAL(shard_writer__flush(writer, true), 0);
		shard_writer__stats(writer, &stats);
		CU_ASSERT_EQUAL(stats.rows_on_disk[SHARD_TABLE_INTERVAL], 900);
		if (!nowhere)
			test_file__read(shard_writer__path(writer), &file);
		CU_ASSERT_EQUAL(shard_writer__free(writer), 0);
	}
	CU_ASSERT(caught[0].block_cnt > caught[0].baseline_cnt && caught[0].baseline_cnt > 0);
	CU_ASSERT_EQUAL(caught[0].baseline_rows, baseline_rows);
	CU_ASSERT_EQUAL(caught[0].foreign_cnt, 0);
	CU_ASSERT_FATAL(file.cnt > caught[0].bytes.cnt);
	CU_ASSERT(!memcmp(file.items + file.cnt - caught[0].bytes.cnt, caught[0].bytes.items, caught[0].bytes.cnt));
	CU_ASSERT_FATAL(caught[0].bytes.cnt == caught[1].bytes.cnt);
	CU_ASSERT(!memcmp(caught[1].bytes.items, caught[0].bytes.items, caught[0].bytes.cnt));
	vec_free(&file);
	vec_free(&caught[0].bytes);
	vec_free(&caught[1].bytes);
	test_dir__remove(&dir);
}

int suite_shard(void)
{
	static const struct unit_test tests[] = {
		{"a sink gets every block", a_sink_gets_every_block},
		{"the tables are what their files say", the_tables_are_what_their_files_say},
		{"every table survives every codec", every_table_survives_every_codec},
		{"shards rotate by size and stay in order", shards_rotate_by_size_and_stay_in_order},
		{"shards rotate by age and never overwrite", shards_rotate_by_age_and_never_overwrite},
		{"directories are made or the reason is given", directories_are_made_or_the_reason_is_given},
		{"a row that breaks the schema is not taken", a_row_that_breaks_the_schema_is_not_taken},
		{"much text makes a block full", much_text_makes_a_block_full},
		{"a full disk costs the last block and is told", a_full_disk_costs_the_last_block_and_is_told},
		{"a shard that cannot begin leaves no file", a_shard_that_cannot_begin_leaves_no_file},
		{"the index knows every block", the_index_knows_every_block},
		{"only selected tables are delivered", only_selected_tables_are_delivered},
		{"paths are read in order and once", paths_are_read_in_order_and_once},
		{"a path that is no good is named", a_path_that_is_no_good_is_named},
	};

	return unit_suite("shard", tests, sizeof(tests) / sizeof(tests[0]));
}
