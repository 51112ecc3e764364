// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What anybody may post to a collector, and ask it for: a body's frames and the blocks in them, the path, and the shard
 * that a collector finds at its start.  Built and run by `make fuzz`.
 *
 * No corpus is needed: the mutator begins with real frames, and repairs the checksums of most of what it made.
 */
#include "net/wire/block_check.h"
#include "net/wire/protocol.h"
#include "net/wire/received.h"
#include "shard/crc32c.h"
#include "shard/pack.h"

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

static void check_path(const uint8_t *bytes, size_t sz)
{
	char path[256], again[PROTOCOL_PATH_SZ], host[SHARD_HOST_MAX + 1];
	uint64_t session_id;

	sz = sz < sizeof(path) - 1 ? sz : sizeof(path) - 1;
	memcpy(path, bytes, sz);
	path[sz] = 0;
	if (protocol_path__get(path, host, &session_id))
		return;
	/* There is one way to say it. */
	NEED(protocol_host_is_valid(host) && !strchr(host, '/') && host[0] != '.');
	protocol_path__put(again, host, session_id);
	NEED(!strcmp(path, again));
}

static int count(void *ctx, const struct received *received)
{
	(void)received;
	++*(size_t *)ctx;
	return 0;
}

static void check_shard(const uint8_t *bytes, size_t sz)
{
	static struct received_scan scan;
	struct shard_buf end = {0};
	static int fd = -1;
	size_t row_cnt = 0;

	if (fd < 0)
		fd = memfd_create("fuzz.wls", 0);
	if (fd < 0 || ftruncate(fd, 0) || pwrite(fd, bytes, sz, 0) != (ssize_t)sz)
		return;
	NEED(!received_scan__file(&scan, fd, sz, count, &row_cnt));
	NEED(scan.good_sz <= sz && (scan.is_shard || !scan.good_sz) && (scan.account_cnt || !row_cnt));
	if (scan.is_shard && !received_index(fd, scan.good_sz, scan.session_id, &end))
		NEED(end.cnt >= SHARD_TRAILER_SZ);
	vec_free(&end);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz)
{
	static struct block_checker checker;
	struct block_checked checked;
	struct protocol_frame frame;
	const uint8_t *payload;
	const char *what = NULL;
	size_t off = 0;

	block_checker__begin(&checker);
	while (protocol_body__next(bytes, sz, &off, &frame, &payload) == 1) {
		NEED(payload >= bytes && payload + frame.sz <= bytes + sz && off <= sz);
		if (frame.kind == PROTOCOL_BLOCK &&
		    block_checker__check(&checker, payload, frame.sz, SESSION, &checked, &what))
			NEED(what);
	}
	check_path(bytes, sz);
	check_shard(bytes, sz);
	return 0;
}

static void put_block(struct shard_buf *out, const struct shard_table *table, unsigned *seed)
{
	struct shard_block_header header = {.kind = SHARD_BLOCK_ROWS, .session_id = SESSION};
	struct shard_stage *stage = shard_stage__new(table, 1 + rand_r(seed) % 8);
	struct shard_packer packer = {0};
	struct shard_row row = {0};

	for (uint32_t c = 0; c < table->column_cnt; c++) {
		if (table->columns[c].type == SHARD_STR)
			row.values[c].str = "text";
		else
			row.values[c].u64 = rand_r(seed);
	}
	while (!shard_stage__full(stage))
		NEED(!shard_stage__append(stage, &row));
	NEED(!shard_packer__pack(&packer, stage, &header, out));
	shard_packer__clear(&packer);
	shard_stage__free(stage);
}

/* A body of a few frames, or a shard of a few blocks and their account. */
static size_t make_seed(uint8_t *bytes, size_t max_sz, unsigned seed)
{
	struct shard_file_header file = {.major = SHARD_VERSION_MAJOR, .session_id = SESSION};
	struct shard_buf out = {0}, block = {0};
	bool is_shard = rand_r(&seed) % 2;
	size_t sz;

	if (is_shard)
		NEED(!shard_file_header__put(&out, &file, ""));
	for (unsigned i = 0, cnt = 1 + rand_r(&seed) % 3; i < cnt; i++) {
		struct protocol_frame frame = {.kind = PROTOCOL_BLOCK, .seq = i};

		block.cnt = 0;
		put_block(&block, i && is_shard ? &received_table : &shard_tables[rand_r(&seed) % SHARD_TABLE_CNT],
			  &seed);
		frame.sz = block.cnt;
		frame.crc = crc32c(0, block.items, block.cnt);
		NEED(!vec_reserve(&out, PROTOCOL_FRAME_HEADER_SZ + block.cnt));
		if (!is_shard) {
			protocol_frame__put(out.items + out.cnt, &frame);
			out.cnt += PROTOCOL_FRAME_HEADER_SZ;
		}
		memcpy(out.items + out.cnt, block.items, block.cnt);
		out.cnt += block.cnt;
	}
	sz = out.cnt < max_sz ? out.cnt : max_sz;
	memcpy(bytes, out.items, sz);
	vec_free(&out);
	vec_free(&block);
	return sz;
}

static uint32_t get_u32(const uint8_t *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

static void put_u32(uint8_t *bytes, uint32_t value)
{
	memcpy(bytes, &value, sizeof(value));
}

static void repair_block(uint8_t *block, size_t left)
{
	uint32_t header_sz, stored_sz;

	if (left < SHARD_BLOCK_HEADER_SZ || memcmp(block, SHARD_BLOCK_MAGIC, SHARD_MAGIC_SZ))
		return;
	header_sz = get_u32(block + 8);
	stored_sz = get_u32(block + 36);
	if (header_sz < SHARD_BLOCK_HEADER_SZ || header_sz > SHARD_BLOCK_HEADER_MAX || header_sz > left)
		return;
	if (stored_sz <= left - header_sz)
		put_u32(block + 80, crc32c(0, block + header_sz, stored_sz));
	put_u32(block + header_sz - 4, crc32c(0, block, header_sz - 4));
}

static void repair(uint8_t *bytes, size_t sz)
{
	uint8_t *end = bytes + sz;

	for (uint8_t *pos = bytes; (pos = memmem(pos, end - pos, SHARD_BLOCK_MAGIC, SHARD_MAGIC_SZ)); pos++)
		repair_block(pos, end - pos);
	for (uint8_t *pos = bytes; (pos = memmem(pos, end - pos, PROTOCOL_FRAME_MAGIC, PROTOCOL_FRAME_MAGIC_SZ));
	     pos++) {
		size_t left = end - pos;

		if (left < PROTOCOL_FRAME_HEADER_SZ)
			break;
		if (get_u32(pos + 16) <= left - PROTOCOL_FRAME_HEADER_SZ)
			put_u32(pos + 20, crc32c(0, pos + PROTOCOL_FRAME_HEADER_SZ, get_u32(pos + 16)));
		put_u32(pos + 28, crc32c(0, pos, 28));
	}
	if (sz >= SHARD_FILE_HEADER_MIN && !memcmp(bytes, SHARD_FILE_MAGIC, SHARD_MAGIC_SZ) &&
	    get_u32(bytes + 12) >= SHARD_FILE_HEADER_MIN && get_u32(bytes + 12) <= sz)
		put_u32(bytes + get_u32(bytes + 12) - 4, crc32c(0, bytes, get_u32(bytes + 12) - 4));
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t sz, size_t max_sz, unsigned seed)
{
	if (sz < PROTOCOL_FRAME_HEADER_SZ || seed % 256 == 0)
		sz = make_seed(bytes, max_sz, seed);
	else
		sz = LLVMFuzzerMutate(bytes, sz, max_sz);
	if (seed % 8)
		repair(bytes, sz);
	return sz;
}
