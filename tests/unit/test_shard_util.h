/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the shard suites share: a scratch directory, random rows that can be told again, whole files in memory. */
#ifndef WHYLATE_TESTS_SHARD_UTIL_H
#define WHYLATE_TESTS_SHARD_UTIL_H

#include "shard/pack.h"
#include "shard/reader.h"
#include "shard/writer.h"

#define TEST_SESSION 0x0123456789abcdefULL

struct test_rng {
	uint64_t state;
};

uint64_t test_rng__next(struct test_rng *rng);
/* Below n. */
uint64_t test_rng__below(struct test_rng *rng, uint64_t n);

/* A new directory under /tmp; removed with everything in it by test_dir__remove(). */
struct test_dir {
	char path[64];
};

void test_dir__make(struct test_dir *dir);
void test_dir__remove(const struct test_dir *dir);

/* A row for any table: mostly zeros, sometimes extremes, nulls where they may be.  The strings are static. */
void test_row__fill(struct shard_row *row, const struct shard_table *table, struct test_rng *rng);
/* Whether row `idx` of the block says the same. */
bool test_row__equals(const struct shard_row *row, const struct shard_table *table, const struct shard_block *block,
		      uint32_t idx);

/* Over everything that a block says. */
uint64_t test_block__digest(const struct shard_block *block);

void test_file__read(const char *path, struct shard_buf *bytes);
void test_file__write(const char *path, const uint8_t *bytes, size_t sz);

/* A file header for TEST_SESSION. */
void test_shard__begin(struct shard_buf *bytes);
/* A block with these rows under any schema. */
void test_shard__put_block(struct shard_buf *bytes, const struct shard_table *table, const struct shard_row *rows,
			   uint32_t row_cnt, enum shard_codec codec);

/* One path, which must open. */
struct shard_reader *test_reader__open(const char *path);
/* Reads to the end: rows of that table, NULL for any; the reader must not fail. */
uint64_t test_reader__count_rows(struct shard_reader *reader, const char *table);
/* The damage of that name, or NULL. */
const struct shard_damage *test_reader__damage(const struct shard_reader *reader, const char *what);

#endif
