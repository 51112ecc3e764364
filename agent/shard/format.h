/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The frame of a shard file, docs/SHARD-FORMAT.md: file header, block headers, trailer, and the caps a reader holds
 * every file to.  All integers are little-endian.  What the blocks contain is in codec.h, pack.h and unpack.h.
 */
#ifndef WHYLATE_SHARD_FORMAT_H
#define WHYLATE_SHARD_FORMAT_H

#include "base/vec.h"

#include <stddef.h>
#include <stdint.h>

#define SHARD_MAGIC_SZ    8
#define SHARD_FILE_MAGIC  "\x89WLS\r\n\x1a\n"
#define SHARD_BLOCK_MAGIC "\xb5WLBLK\r\n"
#define SHARD_END_MAGIC   "\xb5WLEND\r\n"

#define SHARD_VERSION_MAJOR 1 /* another one: not readable by this code */
#define SHARD_VERSION_MINOR 0 /* only says which writer it was */

#define SHARD_FILE_HEADER_MIN  48
#define SHARD_FILE_HEADER_MAX  4096
#define SHARD_BLOCK_HEADER_SZ  88
#define SHARD_BLOCK_HEADER_MAX 256
#define SHARD_TRAILER_SZ       24
#define SHARD_TABLE_NAME_SZ    24 /* with its NUL */

/* Caps; the writer's own limits follow from them, see shard_stage__new(). */
#define SHARD_ROWS_MAX    65536u
#define SHARD_COLUMNS_MAX 1024u
#define SHARD_CELLS_MAX   (4u << 20)  /* rows × columns of a block */
#define SHARD_RAW_MAX     (64u << 20) /* a block's payload, decompressed or as stored */
#define SHARD_STRING_MAX  (1u << 20)  /* the writer's: one string, without its NUL */

#define SHARD_INDEX_TABLE "$index" /* the footer is a table, too */

enum shard_block_kind { SHARD_BLOCK_ROWS = 1, SHARD_BLOCK_INDEX = 2 };

struct shard_buf {
	uint8_t *items;
	size_t cnt;
	size_t room;
};

struct shard_file_header {
	uint16_t major;
	uint16_t minor;
	uint32_t header_sz;
	uint64_t session_id;
	uint64_t created_wall_ts; /* CLOCK_REALTIME, ns */
	uint32_t seq;
};

struct shard_block_header {
	uint32_t header_sz;
	uint8_t kind;  /* enum shard_block_kind */
	uint8_t codec; /* enum shard_codec */
	uint64_t session_id;
	uint32_t row_cnt;
	uint32_t column_cnt;
	uint32_t raw_sz;    /* payload once decompressed */
	uint32_t stored_sz; /* payload as it follows the header */
	uint64_t min_ts;    /* over all TS columns; min_ts > max_ts: there is none */
	uint64_t max_ts;
	char table[SHARD_TABLE_NAME_SZ];
	uint32_t body_crc; /* of the payload as stored */
};

/* Appends a file header with `text` after the fixed part: 0, -ENOMEM, -E2BIG. */
int shard_file_header__put(struct shard_buf *out, const struct shard_file_header *header, const char *text);
/* 0; -ENODATA: not a shard; -EAGAIN: cut short; -EBADMSG: damaged.  The version is the caller's to judge. */
int shard_file_header__get(struct shard_file_header *header, const uint8_t *bytes, size_t sz);

void shard_block_header__put(uint8_t bytes[SHARD_BLOCK_HEADER_SZ], const struct shard_block_header *header);
/* As for the file header; -EOVERFLOW: intact, but outside the caps (all is set all the same). */
int shard_block_header__get(struct shard_block_header *header, const uint8_t *bytes, size_t sz);

void shard_trailer__put(uint8_t bytes[SHARD_TRAILER_SZ], uint64_t index_off);
/* As for the file header. */
int shard_trailer__get(uint64_t *index_off, const uint8_t *bytes, size_t sz);

#endif
