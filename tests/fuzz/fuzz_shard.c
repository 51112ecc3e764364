// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Whatever is in a file: the reader must not crash, hang, or take memory beyond its caps.
 *
 *   clang-19 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -std=gnu11 -D_GNU_SOURCE \
 *         -DWHYLATE_VERSION='"fuzz"' -Iinclude -Iagent tests/fuzz/fuzz_shard.c agent/shard/[a-z]*.c -lzstd -lz \
 *         -o fuzz_shard
 *   ./fuzz_shard -max_len=8192 -len_control=0
 *
 * No corpus is needed: the mutator begins with real blocks, and repairs the checksums of most of what it made, because
 * behind them is where the reader's own care begins.
 */
#include "shard/crc32c.h"
#include "shard/pack.h"
#include "shard/reader.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

size_t LLVMFuzzerMutate(uint8_t *bytes, size_t sz, size_t max_sz);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t sz, size_t max_sz, unsigned seed);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz);

#define SESSION 0x5eed
#define NEED(ok)                          \
	do {                              \
		if (!(ok))                \
			__builtin_trap(); \
	} while (0)

/* Reads everything that was delivered: ASan judges whether it is there. */
static uint64_t touch(const struct shard_block *block)
{
	uint64_t sum = strlen(block->table);

	for (uint32_t c = 0; c < block->column_cnt; c++) {
		const struct shard_block_column *column = &block->columns[c];

		sum += strlen(column->name);
		for (uint32_t i = 0; i < block->row_cnt; i++) {
			bool is_null = column->nulls && column->nulls[i / 64] >> i % 64 & 1;

			if (is_null)
				NEED(column->nullable && !column->values[i].u64);
			else if (column->type == SHARD_STR)
				sum += strlen(column->values[i].str);
			else
				sum += column->values[i].u64;
		}
	}
	return sum;
}

static void read_all(const char *path)
{
	struct shard_reader *reader;
	const struct shard_block *block;
	const struct shard_damage *damage;
	const char *bad_path;
	size_t damage_cnt[2];
	uint64_t sum[2] = {0};

	reader = shard_reader__open(&path, 1, &bad_path);
	if (!reader)
		return;
	for (int pass = 0; pass < 2; pass++) {
		while (shard_reader__next(reader, &block) == 1)
			sum[pass] += touch(block);
		damage_cnt[pass] = shard_reader__damage(reader, &damage);
		shard_reader__rewind(reader);
	}
	NEED(sum[0] == sum[1] && damage_cnt[0] == damage_cnt[1]);
	shard_reader__free(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz)
{
	static int fd = -1;
	char path[64];

	if (fd < 0)
		fd = memfd_create("fuzz.wls", 0);
	if (fd < 0 || ftruncate(fd, 0) || pwrite(fd, bytes, sz, 0) != (ssize_t)sz)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	read_all(path);
	return 0;
}

static void fill_row(struct shard_row *row, const struct shard_table *table, unsigned *seed)
{
	static const char *const strings[] = {"", "task", "tcp:80", "a longer name of something"};

	memset(row, 0, sizeof(*row));
	for (uint32_t c = 0; c < table->column_cnt; c++) {
		unsigned dice = rand_r(seed);

		if (table->columns[c].type == SHARD_STR)
			row->values[c].str = strings[dice % 4];
		else if (dice % 3)
			row->values[c].u64 = (uint64_t)dice << dice % 33;
		if (table->columns[c].nullable && dice % 2)
			shard_row__set_null(row, c);
	}
}

static void put_block(struct shard_buf *out, const struct shard_table *table, enum shard_codec codec, unsigned *seed)
{
	struct shard_block_header header = {.kind = SHARD_BLOCK_ROWS, .codec = codec, .session_id = SESSION};
	unsigned row_cnt = 1 + rand_r(seed) % 80;
	struct shard_stage *stage = shard_stage__new(table, row_cnt);
	struct shard_packer packer = {0};
	struct shard_row row;

	while (!shard_stage__full(stage)) {
		fill_row(&row, table, seed);
		NEED(!shard_stage__append(stage, &row));
	}
	NEED(!shard_packer__pack(&packer, stage, &header, out));
	shard_packer__clear(&packer);
	shard_stage__free(stage);
}

/* Mostly uncompressed, where a mutation means something. */
static size_t make_seed(uint8_t *bytes, size_t max_sz, unsigned seed)
{
	static const uint8_t codecs[] = {SHARD_CODEC_NONE, SHARD_CODEC_NONE, SHARD_CODEC_ZLIB, SHARD_CODEC_ZSTD};
	struct shard_file_header header = {.major = SHARD_VERSION_MAJOR, .session_id = SESSION};
	unsigned block_cnt = 1 + seed % 3;
	struct shard_buf out = {0};
	size_t sz;

	NEED(!shard_file_header__put(&out, &header, ""));
	while (block_cnt--)
		put_block(&out, &shard_tables[rand_r(&seed) % SHARD_TABLE_CNT], codecs[rand_r(&seed) % 4], &seed);
	sz = out.cnt < max_sz ? out.cnt : max_sz;
	memcpy(bytes, out.items, sz);
	vec_free(&out);
	return sz;
}

static uint32_t get_u32(const uint8_t *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

static void seal(uint8_t *bytes, size_t sz)
{
	uint32_t crc = crc32c(0, bytes, sz - 4);

	memcpy(bytes + sz - 4, &crc, sizeof(crc));
}

static void repair_block(uint8_t *block, size_t left)
{
	uint32_t header_sz = get_u32(block + 8), stored_sz = get_u32(block + 36), crc;

	if (header_sz < SHARD_BLOCK_HEADER_SZ || header_sz > SHARD_BLOCK_HEADER_MAX || header_sz > left)
		return;
	if (stored_sz <= left - header_sz) {
		crc = crc32c(0, block + header_sz, stored_sz);
		memcpy(block + 80, &crc, sizeof(crc));
	}
	seal(block, header_sz);
}

static void repair(uint8_t *bytes, size_t sz)
{
	uint8_t *pos = bytes, *end = bytes + sz;

	if (sz >= SHARD_FILE_HEADER_MIN && get_u32(bytes + 12) >= SHARD_FILE_HEADER_MIN && get_u32(bytes + 12) <= sz)
		seal(bytes, get_u32(bytes + 12));
	for (; (pos = memmem(pos, end - pos, SHARD_BLOCK_MAGIC, SHARD_MAGIC_SZ)); pos++) {
		if (end - pos < SHARD_BLOCK_HEADER_SZ)
			break;
		repair_block(pos, end - pos);
	}
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t sz, size_t max_sz, unsigned seed)
{
	if (sz < SHARD_FILE_HEADER_MIN || seed % 256 == 0)
		sz = make_seed(bytes, max_sz, seed);
	else
		sz = LLVMFuzzerMutate(bytes, sz, max_sz);
	if (seed % 8)
		repair(bytes, sz);
	return sz;
}
