// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/wire/received.h"

#include "base/vec.h"
#include "base/whole_io.h"
#include "net/wire/protocol.h"
#include "shard/crc32c.h"
#include "shard/index.h"

#include <string.h>

enum { RECEIVED_SEQ, RECEIVED_KIND, RECEIVED_SZ, RECEIVED_CRC, RECEIVED_WALL_TS, RECEIVED_COLUMN_CNT };

static const struct shard_column columns[RECEIVED_COLUMN_CNT] = {
	[RECEIVED_SEQ] = {"seq", SHARD_U64, SHARD_UNIT_ID, false},
	[RECEIVED_KIND] = {"kind", SHARD_U64, SHARD_UNIT_NONE, false},
	[RECEIVED_SZ] = {"sz", SHARD_U64, SHARD_UNIT_NONE, false},
	[RECEIVED_CRC] = {"crc", SHARD_U64, SHARD_UNIT_NONE, false},
	[RECEIVED_WALL_TS] = {"wall_ts", SHARD_U64, SHARD_UNIT_NONE, false},
};

const struct shard_table received_table = {RECEIVED_TABLE, columns, RECEIVED_COLUMN_CNT};

void received__put(struct shard_row *row, const struct received *received)
{
	memset(row->nulls, 0, sizeof(row->nulls));
	row->values[RECEIVED_SEQ].u64 = received->seq;
	row->values[RECEIVED_KIND].u64 = received->kind;
	row->values[RECEIVED_SZ].u64 = received->sz;
	row->values[RECEIVED_CRC].u64 = received->crc;
	row->values[RECEIVED_WALL_TS].u64 = received->wall_ts;
}

/* 1: a whole block begins at off; 0: none; -errno. */
static int block_at(int fd, uint64_t off, uint64_t sz, struct shard_block_header *header)
{
	uint8_t bytes[SHARD_BLOCK_HEADER_MAX];
	ssize_t n = off < sz ? whole_read(fd, bytes, sizeof(bytes), (int64_t)off) : 0;

	if (n < 0)
		return n;
	if (shard_block_header__get(header, bytes, n))
		return 0;
	return (uint64_t)header->header_sz + header->stored_sz <= sz - off;
}

static int trailer_at(int fd, uint64_t off, uint64_t sz)
{
	uint8_t bytes[SHARD_TRAILER_SZ];
	uint64_t index_off;
	ssize_t n;

	if (sz - off != SHARD_TRAILER_SZ)
		return 0;
	n = whole_read(fd, bytes, sizeof(bytes), (int64_t)off);
	if (n < 0)
		return n;
	return !shard_trailer__get(&index_off, bytes, n);
}

static int scan__read(struct received_scan *scan, int fd, uint64_t off, size_t sz)
{
	ssize_t n;

	scan->body.cnt = 0;
	if (vec_reserve(&scan->body, sz))
		return -ENOMEM;
	n = whole_read(fd, scan->body.items, sz, (int64_t)off);
	if (n < 0)
		return n;
	scan->body.cnt = n;
	return 0;
}

/* Whether the rows of the account at hand speak of just the blocks that were met since the one before. */
static bool scan__rows_fit(const struct received_scan *scan)
{
	size_t block = 0;

	for (size_t i = 0; i < scan->rows.cnt; i++) {
		const struct received *row = &scan->rows.items[i];

		if (row->kind != PROTOCOL_BLOCK)
			continue;
		if (block >= scan->block_szs.cnt || scan->block_szs.items[block] != row->sz)
			return false;
		block++;
	}
	return block == scan->block_szs.cnt;
}

static int scan__take_rows(struct received_scan *scan, const struct shard_block *block)
{
	const struct shard_block_column *found[RECEIVED_COLUMN_CNT];

	for (int c = 0; c < RECEIVED_COLUMN_CNT; c++) {
		found[c] = shard_block__column(block, columns[c].name);
		if (!found[c] || found[c]->type != SHARD_U64)
			return 0;
	}
	if (vec_reserve(&scan->rows, block->row_cnt))
		return -ENOMEM;
	for (uint32_t i = 0; i < block->row_cnt; i++)
		scan->rows.items[scan->rows.cnt++] = (struct received){
			.seq = found[RECEIVED_SEQ]->values[i].u64,
			.kind = found[RECEIVED_KIND]->values[i].u64,
			.sz = found[RECEIVED_SZ]->values[i].u64,
			.crc = found[RECEIVED_CRC]->values[i].u64,
			.wall_ts = found[RECEIVED_WALL_TS]->values[i].u64,
		};
	if (scan__rows_fit(scan))
		return 1;
	scan->rows.cnt = 0;
	return 0;
}

/* The account at off, whose header is given: 1: scan->rows has its rows; 0: it is none; -errno. */
static int scan__account(struct received_scan *scan, int fd, uint64_t off, const struct shard_block_header *header)
{
	struct shard_block block;
	int err = scan__read(scan, fd, off + header->header_sz, header->stored_sz);

	scan->rows.cnt = 0;
	if (err)
		return err;
	if (scan->body.cnt != header->stored_sz || crc32c(0, scan->body.items, scan->body.cnt) != header->body_crc)
		return 0;
	err = shard_unpacker__unpack(&scan->unpacker, header, scan->body.items, &block);
	if (err)
		return err == -ENOMEM ? err : 0;
	return scan__take_rows(scan, &block);
}

/* Whether the blocks from off on are those of scan->rows: 1, 0, -errno. */
static int scan__verify(struct received_scan *scan, int fd, uint64_t off)
{
	for (size_t i = 0; i < scan->rows.cnt; i++) {
		const struct received *row = &scan->rows.items[i];
		int err;

		if (row->kind != PROTOCOL_BLOCK)
			continue;
		err = scan__read(scan, fd, off, row->sz);
		if (err)
			return err;
		if (scan->body.cnt != row->sz || crc32c(0, scan->body.items, row->sz) != row->crc)
			return 0;
		off += row->sz;
	}
	return 1;
}

static int scan__hand_on(struct received_scan *scan, received_fn fn, void *ctx)
{
	int err = 0;

	for (size_t i = 0; !err && i < scan->rows.cnt; i++)
		err = fn(ctx, &scan->rows.items[i]);
	return err;
}

static int scan__begin(struct received_scan *scan, int fd, uint64_t sz)
{
	struct shard_file_header header;
	int err = scan__read(scan, fd, 0, sz < SHARD_FILE_HEADER_MAX ? sz : SHARD_FILE_HEADER_MAX);

	scan->good_sz = 0;
	scan->closed = scan->is_shard = scan->is_begun = false;
	scan->rows.cnt = scan->block_szs.cnt = scan->account_cnt = 0;
	if (err)
		return err;
	err = scan->body.cnt ? shard_file_header__get(&header, scan->body.items, scan->body.cnt) : -EAGAIN;
	scan->is_begun = err == -EAGAIN;
	if (err || header.major != SHARD_VERSION_MAJOR)
		return 0;
	scan->is_shard = true;
	scan->session_id = header.session_id;
	scan->good_sz = header.header_sz;
	return 0;
}

/* What ends the accounted part: index and trailer, or anything else.  The account before it waits in scan->rows. */
static int scan__end(struct received_scan *scan, int fd, uint64_t sz, uint64_t group_off, uint64_t end_off)
{
	struct shard_block_header header;
	uint64_t off = end_off;
	int found = block_at(fd, off, sz, &header), good;

	if (found > 0 && header.kind == SHARD_BLOCK_INDEX)
		off += header.header_sz + header.stored_sz;
	good = found < 0 ? found : trailer_at(fd, off, sz);
	if (good < 0)
		return good;
	scan->closed = good;
	if (!good)
		good = scan__verify(scan, fd, group_off);
	if (good < 0)
		return good;
	if (!good) {
		scan->rows.cnt = 0;
		scan->account_cnt--;
	}
	scan->good_sz = good ? end_off : group_off;
	return 0;
}

int received_scan__file(struct received_scan *scan, int fd, uint64_t sz, received_fn fn, void *ctx)
{
	uint64_t off, group_off, end_off;
	struct shard_block_header header;
	int ret = scan__begin(scan, fd, sz);

	if (ret || !scan->is_shard)
		return ret;
	/* group_off: where the blocks of the account begin that waits in scan->rows; end_off: where that one ends. */
	off = group_off = end_off = scan->good_sz;
	while ((ret = block_at(fd, off, sz, &header)) > 0) {
		uint32_t block_sz = header.header_sz + header.stored_sz;

		if (header.kind != SHARD_BLOCK_ROWS || header.session_id != scan->session_id)
			break;
		if (strcmp(header.table, RECEIVED_TABLE)) {
			if (vec_push(&scan->block_szs, block_sz))
				return -ENOMEM;
			off += block_sz;
			continue;
		}
		ret = scan__hand_on(scan, fn, ctx);
		if (!ret)
			ret = scan__account(scan, fd, off, &header);
		if (ret <= 0)
			break;
		off += block_sz;
		group_off = end_off;
		end_off = off;
		scan->block_szs.cnt = 0;
		scan->account_cnt++;
	}
	if (ret < 0)
		return ret;
	/* Where an account is damaged its rows are gone, and those before it were handed on and are good. */
	if (!scan->rows.cnt)
		group_off = end_off;
	ret = scan__end(scan, fd, sz, group_off, end_off);
	return ret ?: scan__hand_on(scan, fn, ctx);
}

void received_scan__clear(struct received_scan *scan)
{
	shard_unpacker__clear(&scan->unpacker);
	vec_free(&scan->body);
	vec_free(&scan->block_szs);
	vec_free(&scan->rows);
}

static int index_fill(struct shard_stage *index, int fd, uint64_t off, uint64_t good_sz)
{
	struct shard_block_header header;
	int ret;

	while ((ret = block_at(fd, off, good_sz, &header)) > 0 && !shard_stage__full(index)) {
		uint32_t block_sz = header.header_sz + header.stored_sz;

		ret = shard_index__add(index, &header, off, block_sz);
		if (ret)
			return ret;
		off += block_sz;
	}
	return ret < 0 ? ret : 0;
}

int received_index(int fd, uint64_t good_sz, uint64_t session_id, struct shard_buf *end)
{
	struct shard_file_header header;
	uint8_t bytes[SHARD_FILE_HEADER_MAX];
	struct shard_packer packer = {0};
	struct shard_stage *index;
	ssize_t n = whole_read(fd, bytes, good_sz < sizeof(bytes) ? good_sz : sizeof(bytes), 0);
	int err;

	if (n < 0)
		return n;
	if (shard_file_header__get(&header, bytes, n))
		return -EIO;
	index = shard_index__new(SHARD_ROWS_MAX);
	if (!index)
		return -errno;
	err = index_fill(index, fd, header.header_sz, good_sz);
	if (!err)
		err = shard_index__put(index, &packer, SHARD_CODEC_ZSTD, session_id, good_sz, end);
	shard_packer__clear(&packer);
	shard_stage__free(index);
	return err;
}
