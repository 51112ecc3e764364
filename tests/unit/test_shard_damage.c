// SPDX-License-Identifier: GPL-2.0-or-later
#include "shard/crc32c.h"
#include "test_shard_util.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

#define BLOCKS_MAX 32

/* A small shard of every table, closed, and what is where in it. */
struct sample {
	struct test_dir dir;
	char path[100]; /* a copy to maltreat */
	struct shard_buf bytes;
	uint32_t block_cnt;
	uint64_t offs[BLOCKS_MAX];
	uint64_t ends[BLOCKS_MAX];
	uint64_t digests[BLOCKS_MAX];
};

/* Every block's place, by its header, the index included. */
static void sample__locate(struct sample *sample)
{
	struct shard_file_header file_header;
	struct shard_block_header header;
	uint64_t off;

	CU_ASSERT_FATAL(!shard_file_header__get(&file_header, sample->bytes.items, sample->bytes.cnt));
	off = file_header.header_sz;
	while (!shard_block_header__get(&header, sample->bytes.items + off, sample->bytes.cnt - off)) {
		if (header.kind == SHARD_BLOCK_ROWS) {
			sample->offs[sample->block_cnt] = off;
			sample->ends[sample->block_cnt++] = off + header.header_sz + header.stored_sz;
		}
		off += header.header_sz + header.stored_sz;
	}
	CU_ASSERT_EQUAL(off + SHARD_TRAILER_SZ, sample->bytes.cnt);
}

static void sample__make(struct sample *sample)
{
	struct shard_writer_opts opts = {.host = "h", .session_id = TEST_SESSION, .block_rows = 3};
	struct test_rng rng = {11};
	const struct shard_block *block;
	struct shard_writer *writer;
	struct shard_reader *reader;
	struct shard_row row;
	uint32_t i = 0;

	memset(sample, 0, sizeof(*sample));
	test_dir__make(&sample->dir);
	opts.dir = sample->dir.path;
	writer = shard_writer__new(&opts);
	CU_ASSERT_PTR_NOT_NULL_FATAL(writer);
	for (unsigned r = 0; r < 12; r++) {
		unsigned table = r < 3 ? SHARD_TABLE_INTERVAL : r % SHARD_TABLE_CNT;

		do {
			test_row__fill(&row, &shard_tables[table], &rng);
		} while (shard_tables[table].columns[0].unit == SHARD_UNIT_TS && row.values[0].u64 == UINT64_MAX);
		CU_ASSERT_EQUAL(shard_writer__append(writer, table, &row), 0);
	}
	snprintf(sample->path, sizeof(sample->path), "%s", shard_writer__path(writer));
	CU_ASSERT_EQUAL(shard_writer__free(writer), 0);
	test_file__read(sample->path, &sample->bytes);
	sample__locate(sample);
	reader = test_reader__open(sample->path);
	while (shard_reader__next(reader, &block) == 1)
		sample->digests[i++] = test_block__digest(block);
	CU_ASSERT_EQUAL(i, sample->block_cnt);
	shard_reader__free(reader);
}

static void sample__free(struct sample *sample)
{
	vec_free(&sample->bytes);
	test_dir__remove(&sample->dir);
}

/*
 * Reads the maltreated file: what comes must be blocks of the sample, in order and unaltered.  Returns which came, one
 * bit each, and how many places were reported damaged.
 */
static uint32_t sample__read(const struct sample *sample, size_t *damage_cnt)
{
	struct shard_reader *reader = test_reader__open(sample->path);
	const struct shard_damage *damage;
	const struct shard_block *block;
	uint32_t i = 0, seen = 0;
	int ret;

	while ((ret = shard_reader__next(reader, &block)) == 1) {
		uint64_t digest = test_block__digest(block);

		while (i < sample->block_cnt && sample->digests[i] != digest)
			i++;
		CU_ASSERT(i < sample->block_cnt);
		seen |= 1u << i++;
	}
	CU_ASSERT_EQUAL(ret, 0);
	*damage_cnt = shard_reader__damage(reader, &damage);
	shard_reader__free(reader);
	return seen;
}

static void a_file_cut_anywhere_gives_every_block_before_the_cut(void)
{
	struct sample sample;
	size_t damage_cnt;

	sample__make(&sample);
	for (size_t sz = 0; sz <= sample.bytes.cnt; sz++) {
		uint32_t wanted = 0;

		for (uint32_t i = 0; i < sample.block_cnt; i++)
			wanted |= (sample.ends[i] <= sz) << i;
		test_file__write(sample.path, sample.bytes.items, sz);
		CU_ASSERT_EQUAL(sample__read(&sample, &damage_cnt), wanted);
		CU_ASSERT_EQUAL(damage_cnt, sz < sample.bytes.cnt);
	}
	sample__free(&sample);
}

static void a_flipped_bit_costs_its_block_and_no_other(void)
{
	struct sample sample;
	size_t damage_cnt;

	sample__make(&sample);
	for (size_t at = 0; at < sample.bytes.cnt; at++) {
		uint32_t wanted = (1u << sample.block_cnt) - 1;
		bool within = at < sample.offs[0] || at >= sample.bytes.cnt - SHARD_TRAILER_SZ;

		for (uint32_t i = 0; i < sample.block_cnt; i++) {
			if (at < sample.offs[i] || at >= sample.ends[i])
				continue;
			wanted &= ~(1u << i);
			within = true;
		}
		sample.bytes.items[at] ^= 1 << at % 8;
		test_file__write(sample.path, sample.bytes.items, sample.bytes.cnt);
		CU_ASSERT_EQUAL(sample__read(&sample, &damage_cnt), wanted);
		/* The index is not looked at unless its header breaks: a flip within costs nothing. */
		CU_ASSERT(within ? damage_cnt == 1 : damage_cnt <= 1);
		sample.bytes.items[at] ^= 1 << at % 8;
	}
	sample__free(&sample);
}

static void bytes_that_are_missing_or_too_many_cost_their_block(void)
{
	struct sample sample;
	struct shard_buf bytes = {0};
	struct test_rng rng = {12};
	size_t damage_cnt;

	sample__make(&sample);
	CU_ASSERT_FATAL(!vec_reserve(&bytes, sample.bytes.cnt + 1000));
	for (int round = 0; round < 300; round++) {
		size_t at = test_rng__below(&rng, sample.bytes.cnt), sz = 1 + test_rng__below(&rng, 200);
		uint32_t wanted = 0, seen;
		bool insert = round % 2;
		size_t resume = insert ? at : at + sz;

		if (resume > sample.bytes.cnt)
			resume = sample.bytes.cnt;
		for (uint32_t i = 0; i < sample.block_cnt; i++)
			wanted |= (uint32_t)(sample.ends[i] <= at || sample.offs[i] >= resume) << i;
		memcpy(bytes.items, sample.bytes.items, at);
		bytes.cnt = at;
		while (insert && sz--)
			bytes.items[bytes.cnt++] = round % 4 == 1 ? 0 : test_rng__next(&rng);
		memcpy(bytes.items + bytes.cnt, sample.bytes.items + resume, sample.bytes.cnt - resume);
		bytes.cnt += sample.bytes.cnt - resume;
		test_file__write(sample.path, bytes.items, bytes.cnt);
		seen = sample__read(&sample, &damage_cnt);
		CU_ASSERT(damage_cnt > 0);
		CU_ASSERT_EQUAL(seen & wanted, wanted);
	}
	vec_free(&bytes);
	sample__free(&sample);
}

static void expect_only(const struct test_dir *dir, const uint8_t *bytes, size_t sz, const char *what)
{
	const struct shard_damage *damage;
	struct shard_reader *reader;
	char path[100];

	snprintf(path, sizeof(path), "%s/x.wls", dir->path);
	test_file__write(path, bytes, sz);
	reader = test_reader__open(path);
	CU_ASSERT_EQUAL(test_reader__count_rows(reader, NULL), 0);
	shard_reader__rewind(reader);
	CU_ASSERT_EQUAL(test_reader__count_rows(reader, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(shard_reader__damage(reader, &damage), 1);
	CU_ASSERT_STRING_EQUAL(damage->what, what);
	CU_ASSERT_STRING_EQUAL(damage->path, path);
	CU_ASSERT_EQUAL(damage->off, 0);
	CU_ASSERT_EQUAL(damage->sz, sz);
	shard_reader__free(reader);
}

static void files_that_are_no_shards_are_named_for_what_they_are(void)
{
	struct shard_file_header header = {.major = SHARD_VERSION_MAJOR + 1};
	struct shard_buf bytes = {0};
	struct test_rng rng = {13};
	struct test_dir dir;

	test_dir__make(&dir);
	expect_only(&dir, NULL, 0, "empty file");
	expect_only(&dir,
		    (const uint8_t *)"\x7f"
				     "ELF and so on",
		    14, "foreign file");
	expect_only(&dir, (const uint8_t *)SHARD_FILE_MAGIC, 5, "torn tail");
	for (int i = 0; i < 200000; i++)
		CU_ASSERT_FATAL(!vec_push(&bytes, test_rng__next(&rng)));
	expect_only(&dir, bytes.items, bytes.cnt, "foreign file");
	bytes.cnt = 0;
	CU_ASSERT_EQUAL(shard_file_header__put(&bytes, &header, "of the future"), 0);
	expect_only(&dir, bytes.items, bytes.cnt, "unsupported version");
	vec_free(&bytes);
	test_dir__remove(&dir);
}

/* Makes the block that begins at `off` valid again after it was changed. */
static void reseal(struct shard_buf *bytes, size_t off, size_t header_sz)
{
	uint32_t crc = crc32c(0, bytes->items + off, header_sz - 4);

	for (int i = 0; i < 4; i++)
		bytes->items[off + header_sz - 4 + i] = crc >> 8 * i;
}

#define MID_ROWS 5

/* Three blocks of `loss`; the one in the middle begins at the returned offset and ends at *end. */
static size_t make_three(struct shard_buf *bytes, enum shard_codec codec, size_t *end)
{
	struct shard_row rows[MID_ROWS];
	struct test_rng rng = {14};
	size_t off;

	for (int i = 0; i < MID_ROWS; i++)
		test_row__fill(&rows[i], &shard_tables[SHARD_TABLE_LOSS], &rng);
	bytes->cnt = 0;
	test_shard__begin(bytes);
	test_shard__put_block(bytes, &shard_tables[SHARD_TABLE_LOSS], rows, 1, codec);
	off = bytes->cnt;
	test_shard__put_block(bytes, &shard_tables[SHARD_TABLE_LOSS], rows, MID_ROWS, codec);
	*end = bytes->cnt;
	test_shard__put_block(bytes, &shard_tables[SHARD_TABLE_LOSS], rows, 1, codec);
	return off;
}

static void expect_middle(const struct test_dir *dir, const struct shard_buf *bytes, uint64_t row_cnt, const char *what)
{
	struct shard_reader *reader;
	char path[100];

	snprintf(path, sizeof(path), "%s/x.wls", dir->path);
	test_file__write(path, bytes->items, bytes->cnt);
	reader = test_reader__open(path);
	CU_ASSERT_EQUAL(test_reader__count_rows(reader, "loss"), row_cnt);
	CU_ASSERT(!what || test_reader__damage(reader, what));
	CU_ASSERT_PTR_NOT_NULL(test_reader__damage(reader, "not closed"));
	shard_reader__free(reader);
}

static void valid_checksums_around_nonsense_are_not_believed(void)
{
	struct shard_buf bytes = {0};
	struct test_dir dir;
	size_t off, end;

	test_dir__make(&dir);
	off = make_three(&bytes, SHARD_CODEC_NONE, &end);
	expect_middle(&dir, &bytes, 2 + MID_ROWS, NULL);
	bytes.items[off + 26] = 0xff; /* row_cnt */
	reseal(&bytes, off, SHARD_BLOCK_HEADER_SZ);
	expect_middle(&dir, &bytes, 2, "outside the limits");
	off = make_three(&bytes, SHARD_CODEC_NONE, &end);
	bytes.items[off + 24] = MID_ROWS + 1;
	reseal(&bytes, off, SHARD_BLOCK_HEADER_SZ);
	expect_middle(&dir, &bytes, 2, "malformed block");
	off = make_three(&bytes, SHARD_CODEC_ZSTD, &end);
	bytes.items[off + 35] = 3; /* raw_sz: 48 MiB */
	reseal(&bytes, off, SHARD_BLOCK_HEADER_SZ);
	expect_middle(&dir, &bytes, 2, "malformed block");
	off = make_three(&bytes, SHARD_CODEC_NONE, &end);
	bytes.items[off + 39] = 3; /* stored_sz */
	reseal(&bytes, off, SHARD_BLOCK_HEADER_SZ);
	expect_middle(&dir, &bytes, 2, "damaged block");
	off = make_three(&bytes, SHARD_CODEC_NONE, &end);
	bytes.items[off + 16] ^= 1; /* session */
	reseal(&bytes, off, SHARD_BLOCK_HEADER_SZ);
	expect_middle(&dir, &bytes, 2, "damaged block");
	vec_free(&bytes);
	test_dir__remove(&dir);
}

static void what_the_future_brings_is_passed_over(void)
{
	struct shard_buf bytes = {0};
	struct test_dir dir;
	size_t off, end;

	test_dir__make(&dir);
	off = make_three(&bytes, SHARD_CODEC_NONE, &end);
	bytes.items[off + 12] = 7; /* kind */
	reseal(&bytes, off, SHARD_BLOCK_HEADER_SZ);
	expect_middle(&dir, &bytes, 2, NULL);
	off = make_three(&bytes, SHARD_CODEC_NONE, &end);
	bytes.items[off + 13] = 9; /* codec */
	reseal(&bytes, off, SHARD_BLOCK_HEADER_SZ);
	expect_middle(&dir, &bytes, 2, "unsupported encoding");
	/* A header that has grown: the new fields come before its checksum. */
	off = make_three(&bytes, SHARD_CODEC_NONE, &end);
	CU_ASSERT_FATAL(!vec_reserve(&bytes, 16));
	memmove(bytes.items + off + 100, bytes.items + off + 84, bytes.cnt - off - 84);
	bytes.cnt += 16;
	bytes.items[off + 8] = SHARD_BLOCK_HEADER_SZ + 16;
	reseal(&bytes, off, SHARD_BLOCK_HEADER_SZ + 16);
	expect_middle(&dir, &bytes, 2 + MID_ROWS, NULL);
	vec_free(&bytes);
	test_dir__remove(&dir);
}

static void unknown_tables_and_columns_come_as_they_describe_themselves(void)
{
	static const struct shard_column columns[] = {
		{"new_before", SHARD_U64, SHARD_UNIT_ID, false}, {"ts", SHARD_U64, SHARD_UNIT_TS, false},
		{"strange", 9, SHARD_UNIT_NONE, false},          {"odd_unit", SHARD_U64, 77, false},
		{"class", SHARD_STR, SHARD_UNIT_NONE, false},    {"new_after", SHARD_F64, SHARD_UNIT_NONE, true},
		{"ts2", SHARD_U64, SHARD_UNIT_TS, false},
	};
	static const struct shard_table tables[] = {{"loss", columns, 7}, {"of the future", columns, 7}};
	struct shard_row rows[2] = {0};
	struct shard_buf bytes = {0};
	const struct shard_block *block;
	struct shard_reader *reader;
	struct test_dir dir;
	char path[100];

	for (int i = 0; i < 2; i++) {
		rows[i].values[1].u64 = 1000000000000 + 50000 * i;
		rows[i].values[2].u64 = 3 + i;
		rows[i].values[4].str = "task";
		rows[i].values[5].f64 = 2.5;
		rows[i].values[6].u64 = rows[i].values[1].u64 + 7;
	}
	shard_row__set_null(&rows[1], 5);
	test_dir__make(&dir);
	test_shard__begin(&bytes);
	test_shard__put_block(&bytes, &tables[0], rows, 2, SHARD_CODEC_ZSTD);
	test_shard__put_block(&bytes, &tables[1], rows, 2, SHARD_CODEC_ZLIB);
	snprintf(path, sizeof(path), "%s/x.wls", dir.path);
	test_file__write(path, bytes.items, bytes.cnt);
	reader = test_reader__open(path);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL_FATAL(shard_reader__next(reader, &block), 1);
		CU_ASSERT_STRING_EQUAL(block->table, tables[i].name);
		CU_ASSERT_EQUAL(block->column_cnt, 6);
		CU_ASSERT_PTR_NULL(shard_block__column(block, "strange"));
		CU_ASSERT_PTR_NULL(shard_block__column(block, "lost"));
		CU_ASSERT_EQUAL(shard_block__column(block, "odd_unit")->unit, SHARD_UNIT_NONE);
		CU_ASSERT_EQUAL(shard_block__column(block, "ts")->values[1].u64, 1000000050000);
		CU_ASSERT_EQUAL(shard_block__column(block, "ts2")->values[1].u64, 1000000050007);
		CU_ASSERT_STRING_EQUAL(shard_block__column(block, "class")->values[1].str, "task");
		CU_ASSERT_EQUAL(shard_block__column(block, "new_after")->values[0].f64, 2.5);
		CU_ASSERT_EQUAL(shard_block__column(block, "new_after")->nulls[0], 2);
	}
	shard_reader__free(reader);
	vec_free(&bytes);
	test_dir__remove(&dir);
}

static void each_place_is_reported_once(void)
{
	static const char *const unselected[] = {"session"};
	const struct shard_damage *damage;
	struct shard_buf bytes = {0};
	struct shard_reader *reader;
	struct test_dir dir;
	size_t off, end;
	char path[100];

	test_dir__make(&dir);
	off = make_three(&bytes, SHARD_CODEC_NONE, &end);
	bytes.items[end - 1] ^= 1;
	snprintf(path, sizeof(path), "%s/x.wls", dir.path);
	test_file__write(path, bytes.items, bytes.cnt);
	reader = test_reader__open(path);
	/* What nobody wants is not looked at; what is found later finds its place among the rest. */
	CU_ASSERT_EQUAL(shard_reader__select(reader, unselected, 1), 0);
	CU_ASSERT_EQUAL(test_reader__count_rows(reader, NULL), 0);
	CU_ASSERT_EQUAL(shard_reader__damage(reader, &damage), 1);
	CU_ASSERT_EQUAL(shard_reader__select(reader, NULL, 0), 0);
	for (int pass = 0; pass < 3; pass++) {
		shard_reader__rewind(reader);
		CU_ASSERT_EQUAL(test_reader__count_rows(reader, NULL), 2);
	}
	CU_ASSERT_EQUAL_FATAL(shard_reader__damage(reader, &damage), 2);
	CU_ASSERT_STRING_EQUAL(damage[0].what, "checksum");
	CU_ASSERT_EQUAL(damage[0].off, off);
	CU_ASSERT_EQUAL(damage[0].sz, end - off);
	CU_ASSERT_STRING_EQUAL(damage[1].what, "not closed");
	shard_reader__free(reader);
	vec_free(&bytes);
	test_dir__remove(&dir);
}

int suite_shard_damage(void)
{
	static const struct unit_test tests[] = {
		{"a file cut anywhere gives every block before the cut",
		 a_file_cut_anywhere_gives_every_block_before_the_cut},
		{"a flipped bit costs its block and no other", a_flipped_bit_costs_its_block_and_no_other},
		{"bytes that are missing or too many cost their block",
		 bytes_that_are_missing_or_too_many_cost_their_block},
		{"files that are no shards are named for what they are",
		 files_that_are_no_shards_are_named_for_what_they_are},
		{"valid checksums around nonsense are not believed", valid_checksums_around_nonsense_are_not_believed},
		{"what the future brings is passed over", what_the_future_brings_is_passed_over},
		{"unknown tables and columns come as they describe themselves",
		 unknown_tables_and_columns_come_as_they_describe_themselves},
		{"each place is reported once", each_place_is_reported_once},
	};

	return unit_suite("shard damage", tests, sizeof(tests) / sizeof(tests[0]));
}
