// SPDX-License-Identifier: GPL-2.0-or-later
#include "shard/format.h"

#include "base/bytes.h"
#include "shard/crc32c.h"

#include <string.h>

/* The three frames share their end: a checksum over everything before it. */
static void seal(uint8_t *bytes, size_t sz)
{
	put_le(bytes + sz - 4, crc32c(0, bytes, sz - 4), 4);
}

static int check_seal(const uint8_t *bytes, size_t sz)
{
	return get_le(bytes + sz - 4, 4) == crc32c(0, bytes, sz - 4) ? 0 : -EBADMSG;
}

static int check_magic(const uint8_t *bytes, size_t sz, const char *magic)
{
	if (memcmp(bytes, magic, sz < SHARD_MAGIC_SZ ? sz : SHARD_MAGIC_SZ))
		return -ENODATA;
	return sz < SHARD_MAGIC_SZ ? -EAGAIN : 0;
}

int shard_file_header__put(struct shard_buf *out, const struct shard_file_header *header, const char *text)
{
	size_t text_sz = strlen(text), header_sz = SHARD_FILE_HEADER_MIN + text_sz;
	uint8_t *bytes;

	if (header_sz > SHARD_FILE_HEADER_MAX)
		return -E2BIG;
	if (vec_reserve(out, header_sz))
		return -ENOMEM;
	bytes = out->items + out->cnt;
	memset(bytes, 0, header_sz);
	memcpy(bytes, SHARD_FILE_MAGIC, SHARD_MAGIC_SZ);
	put_le(bytes + 8, header->major, 2);
	put_le(bytes + 10, header->minor, 2);
	put_le(bytes + 12, header_sz, 4);
	put_le(bytes + 16, header->session_id, 8);
	put_le(bytes + 24, header->created_wall_ts, 8);
	put_le(bytes + 32, header->seq, 4);
	put_le(bytes + 40, text_sz, 4);
	memcpy(bytes + 44, text, text_sz);
	seal(bytes, header_sz);
	out->cnt += header_sz;
	return 0;
}

int shard_file_header__get(struct shard_file_header *header, const uint8_t *bytes, size_t sz)
{
	int err = check_magic(bytes, sz, SHARD_FILE_MAGIC);

	if (err)
		return err;
	if (sz < SHARD_FILE_HEADER_MIN)
		return -EAGAIN;
	header->header_sz = get_le(bytes + 12, 4);
	if (header->header_sz < SHARD_FILE_HEADER_MIN || header->header_sz > SHARD_FILE_HEADER_MAX)
		return -EBADMSG;
	if (sz < header->header_sz)
		return -EAGAIN;
	header->major = get_le(bytes + 8, 2);
	header->minor = get_le(bytes + 10, 2);
	header->session_id = get_le(bytes + 16, 8);
	header->created_wall_ts = get_le(bytes + 24, 8);
	header->seq = get_le(bytes + 32, 4);
	return check_seal(bytes, header->header_sz);
}

void shard_block_header__put(uint8_t bytes[SHARD_BLOCK_HEADER_SZ], const struct shard_block_header *header)
{
	memset(bytes, 0, SHARD_BLOCK_HEADER_SZ);
	memcpy(bytes, SHARD_BLOCK_MAGIC, SHARD_MAGIC_SZ);
	put_le(bytes + 8, SHARD_BLOCK_HEADER_SZ, 4);
	bytes[12] = header->kind;
	bytes[13] = header->codec;
	put_le(bytes + 16, header->session_id, 8);
	put_le(bytes + 24, header->row_cnt, 4);
	put_le(bytes + 28, header->column_cnt, 4);
	put_le(bytes + 32, header->raw_sz, 4);
	put_le(bytes + 36, header->stored_sz, 4);
	put_le(bytes + 40, header->min_ts, 8);
	put_le(bytes + 48, header->max_ts, 8);
	memcpy(bytes + 56, header->table, strnlen(header->table, SHARD_TABLE_NAME_SZ - 1));
	put_le(bytes + 80, header->body_crc, 4);
	seal(bytes, SHARD_BLOCK_HEADER_SZ);
}

static int check_caps(const struct shard_block_header *header)
{
	if (!header->row_cnt || header->row_cnt > SHARD_ROWS_MAX)
		return -EOVERFLOW;
	if (!header->column_cnt || header->column_cnt > SHARD_COLUMNS_MAX)
		return -EOVERFLOW;
	if (header->row_cnt * header->column_cnt > SHARD_CELLS_MAX)
		return -EOVERFLOW;
	if (!header->raw_sz || header->raw_sz > SHARD_RAW_MAX)
		return -EOVERFLOW;
	if (!header->stored_sz || header->stored_sz > SHARD_RAW_MAX)
		return -EOVERFLOW;
	return 0;
}

int shard_block_header__get(struct shard_block_header *header, const uint8_t *bytes, size_t sz)
{
	int err = check_magic(bytes, sz, SHARD_BLOCK_MAGIC);

	if (err)
		return err;
	if (sz < SHARD_BLOCK_HEADER_SZ)
		return -EAGAIN;
	header->header_sz = get_le(bytes + 8, 4);
	if (header->header_sz < SHARD_BLOCK_HEADER_SZ || header->header_sz > SHARD_BLOCK_HEADER_MAX)
		return -EBADMSG;
	if (sz < header->header_sz)
		return -EAGAIN;
	if (check_seal(bytes, header->header_sz))
		return -EBADMSG;
	header->kind = bytes[12];
	header->codec = bytes[13];
	header->session_id = get_le(bytes + 16, 8);
	header->row_cnt = get_le(bytes + 24, 4);
	header->column_cnt = get_le(bytes + 28, 4);
	header->raw_sz = get_le(bytes + 32, 4);
	header->stored_sz = get_le(bytes + 36, 4);
	header->min_ts = get_le(bytes + 40, 8);
	header->max_ts = get_le(bytes + 48, 8);
	memcpy(header->table, bytes + 56, SHARD_TABLE_NAME_SZ);
	header->table[SHARD_TABLE_NAME_SZ - 1] = 0;
	header->body_crc = get_le(bytes + 80, 4);
	return check_caps(header);
}

void shard_trailer__put(uint8_t bytes[SHARD_TRAILER_SZ], uint64_t index_off)
{
	memset(bytes, 0, SHARD_TRAILER_SZ);
	memcpy(bytes, SHARD_END_MAGIC, SHARD_MAGIC_SZ);
	put_le(bytes + 8, index_off, 8);
	seal(bytes, SHARD_TRAILER_SZ);
}

int shard_trailer__get(uint64_t *index_off, const uint8_t *bytes, size_t sz)
{
	int err = check_magic(bytes, sz, SHARD_END_MAGIC);

	if (err)
		return err;
	if (sz < SHARD_TRAILER_SZ)
		return -EAGAIN;
	*index_off = get_le(bytes + 8, 8);
	return check_seal(bytes, SHARD_TRAILER_SZ);
}
