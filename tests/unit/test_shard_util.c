// SPDX-License-Identifier: GPL-2.0-or-later
#include "test_shard_util.h"

#include "unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* splitmix64, Steele et al. 2014: the same rows in every run. */
uint64_t test_rng__next(struct test_rng *rng)
{
	uint64_t z = rng->state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

uint64_t test_rng__below(struct test_rng *rng, uint64_t n)
{
	return test_rng__next(rng) % n;
}

void test_dir__make(struct test_dir *dir)
{
	strcpy(dir->path, "/tmp/whylate-test-XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir->path));
}

static void remove_tree(const char *path)
{
	struct dirent *entry;
	DIR *dir = opendir(path);
	char below[600];

	while (dir && (entry = readdir(dir))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		snprintf(below, sizeof(below), "%s/%s", path, entry->d_name);
		if (entry->d_type == DT_DIR)
			remove_tree(below);
		else
			unlink(below);
	}
	if (dir)
		closedir(dir);
	rmdir(path);
}

void test_dir__remove(const struct test_dir *dir)
{
	remove_tree(dir->path);
}

static const char *random_string(struct test_rng *rng)
{
	static const char *const strings[] = {
		"", "a", "redis-server", "tcp:6379", "kworker/1:2", "ein Übel", "\xff\xfe not UTF-8", "line\nbreak",
	};
	static char numbered[64][12], longest[3000];
	unsigned i = test_rng__below(rng, 80);

	if (i < 8)
		return strings[i];
	if (i == 79) {
		memset(longest, 'x', sizeof(longest) - 1);
		return longest;
	}
	i %= 64;
	snprintf(numbered[i], sizeof(numbered[i]), "thread-%u", i);
	return numbered[i];
}

static uint64_t random_u64(struct test_rng *rng)
{
	switch (test_rng__below(rng, 16)) {
	case 0:
		return UINT64_MAX;
	case 1:
		return test_rng__below(rng, 8);
	case 2:
		return test_rng__next(rng) >> test_rng__below(rng, 64);
	default:
		return 0;
	}
}

void test_row__fill(struct shard_row *row, const struct shard_table *table, struct test_rng *rng)
{
	static const double doubles[] = {0, -0.0, 1, 100, 0.1, -1e300, 5e-324, 1.0 / 0.0};

	memset(row, 0, sizeof(*row));
	for (uint32_t c = 0; c < table->column_cnt; c++) {
		if (table->columns[c].type == SHARD_STR)
			row->values[c].str = random_string(rng);
		else if (table->columns[c].type == SHARD_F64)
			row->values[c].f64 = doubles[test_rng__below(rng, 8)];
		else
			row->values[c].u64 = random_u64(rng);
		/* The value that stays behind the null is to be ignored. */
		if (table->columns[c].nullable && test_rng__below(rng, 3))
			shard_row__set_null(row, c);
	}
}

bool test_row__equals(const struct shard_row *row, const struct shard_table *table, const struct shard_block *block,
		      uint32_t idx)
{
	for (uint32_t c = 0; c < table->column_cnt; c++) {
		const struct shard_block_column *column = shard_block__column(block, table->columns[c].name);
		bool is_null;

		if (!column || column->type != table->columns[c].type || column->unit != table->columns[c].unit ||
		    column->nullable != table->columns[c].nullable)
			return false;
		is_null = column->nulls && column->nulls[idx / 64] >> idx % 64 & 1;
		if (is_null != shard_row__is_null(row, c))
			return false;
		if (is_null                     ? column->values[idx].u64 != 0
		    : column->type == SHARD_STR ? strcmp(column->values[idx].str, row->values[c].str)
						: column->values[idx].u64 != row->values[c].u64)
			return false;
	}
	return true;
}

static uint64_t mix(uint64_t digest, uint64_t value)
{
	struct test_rng rng = {digest ^ value};

	return test_rng__next(&rng);
}

static uint64_t mix_string(uint64_t digest, const char *str)
{
	for (; *str; str++)
		digest = mix(digest, (uint8_t)*str);
	return mix(digest, 256);
}

uint64_t test_block__digest(const struct shard_block *block)
{
	uint64_t digest = mix_string(mix(block->session_id, block->row_cnt), block->table);

	for (uint32_t c = 0; c < block->column_cnt; c++) {
		const struct shard_block_column *column = &block->columns[c];

		digest = mix_string(digest, column->name);
		digest = mix(digest, column->type << 16 | column->unit << 8 | column->nullable);
		for (uint32_t i = 0; i < block->row_cnt; i++) {
			if (column->nulls && column->nulls[i / 64] >> i % 64 & 1)
				digest = mix(digest, 257);
			else if (column->type == SHARD_STR)
				digest = mix_string(digest, column->values[i].str);
			else
				digest = mix(digest, column->values[i].u64);
		}
	}
	return digest;
}

void test_file__read(const char *path, struct shard_buf *bytes)
{
	FILE *file = fopen(path, "r");
	struct stat st;

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	CU_ASSERT_FATAL(!fstat(fileno(file), &st));
	bytes->cnt = 0;
	CU_ASSERT_FATAL(!vec_reserve(bytes, st.st_size + 1));
	bytes->cnt = fread(bytes->items, 1, st.st_size, file);
	CU_ASSERT_EQUAL(bytes->cnt, (size_t)st.st_size);
	fclose(file);
}

void test_file__write(const char *path, const uint8_t *bytes, size_t sz)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0640);

	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_FATAL(write(fd, bytes, sz) == (ssize_t)sz);
	close(fd);
}

void test_shard__begin(struct shard_buf *bytes)
{
	struct shard_file_header header = {.major = SHARD_VERSION_MAJOR, .session_id = TEST_SESSION};

	CU_ASSERT_FATAL(!shard_file_header__put(bytes, &header, "a test"));
}

void test_shard__put_block(struct shard_buf *bytes, const struct shard_table *table, const struct shard_row *rows,
			   uint32_t row_cnt, enum shard_codec codec)
{
	struct shard_block_header header = {.kind = SHARD_BLOCK_ROWS, .codec = codec, .session_id = TEST_SESSION};
	struct shard_stage *stage = shard_stage__new(table, row_cnt);
	struct shard_packer packer = {0};

	CU_ASSERT_PTR_NOT_NULL_FATAL(stage);
	for (uint32_t i = 0; i < row_cnt; i++)
		CU_ASSERT_EQUAL(shard_stage__append(stage, &rows[i]), 0);
	CU_ASSERT_EQUAL(shard_packer__pack(&packer, stage, &header, bytes), 0);
	shard_packer__clear(&packer);
	shard_stage__free(stage);
}

struct shard_reader *test_reader__open(const char *path)
{
	const char *bad_path;
	struct shard_reader *reader = shard_reader__open(&path, 1, &bad_path);

	CU_ASSERT_PTR_NOT_NULL_FATAL(reader);
	return reader;
}

uint64_t test_reader__count_rows(struct shard_reader *reader, const char *table)
{
	const struct shard_block *block;
	uint64_t row_cnt = 0;
	int ret;

	while ((ret = shard_reader__next(reader, &block)) == 1)
		if (!table || !strcmp(block->table, table))
			row_cnt += block->row_cnt;
	CU_ASSERT_EQUAL(ret, 0);
	return row_cnt;
}

const struct shard_damage *test_reader__damage(const struct shard_reader *reader, const char *what)
{
	const struct shard_damage *damage;
	size_t cnt = shard_reader__damage(reader, &damage);

	for (size_t i = 0; i < cnt; i++)
		if (!strcmp(damage[i].what, what))
			return &damage[i];
	return NULL;
}
