// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/wire/block_check.h"

#include "net/wire/received.h"
#include "shard/crc32c.h"

#include <string.h>

/* An unpacker that had to become larger than this gives its memory back. */
#define KEEP_SZ (4u << 20)

static bool table_name_is_valid(const char *name)
{
	return *name >= 'a' && *name <= 'z' && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.-") == strlen(name);
}

static const struct shard_table *table_of(const char *name)
{
	for (int t = 0; t < SHARD_TABLE_CNT; t++)
		if (!strcmp(shard_tables[t].name, name))
			return &shard_tables[t];
	return NULL;
}

/* Writers list the columns in one order, mostly ours: look at the expected place first. */
static const struct shard_column *column_of(const struct shard_table *table, const char *name, uint32_t expected)
{
	if (expected < table->column_cnt && !strcmp(table->columns[expected].name, name))
		return &table->columns[expected];
	for (uint32_t c = 0; c < table->column_cnt; c++)
		if (!strcmp(table->columns[c].name, name))
			return &table->columns[c];
	return NULL;
}

static int check_schema(const struct shard_block *block)
{
	const struct shard_table *table = table_of(block->table);

	for (uint32_t c = 0; table && c < block->column_cnt; c++) {
		const struct shard_column *column = column_of(table, block->columns[c].name, c);

		if (column && column->type != block->columns[c].type)
			return -EBADMSG;
	}
	return 0;
}

static int check_header(const struct shard_block_header *header, int err, size_t sz, uint64_t session_id,
			const char **what)
{
	*what = NULL;
	if (err == -EOVERFLOW)
		*what = "its sizes are outside the limits";
	else if (err)
		*what = "it does not hold a block";
	else if (header->kind != SHARD_BLOCK_ROWS)
		*what = "its block is not one of rows";
	else if (header->session_id != session_id)
		*what = "its block is of another session";
	else if ((uint64_t)header->header_sz + header->stored_sz != sz)
		*what = "its size is not that of its block";
	else if (!table_name_is_valid(header->table) || !strcmp(header->table, RECEIVED_TABLE))
		*what = "its block's table has a name that no table may have";
	return *what ? -EBADMSG : 0;
}

void block_checker__begin(struct block_checker *checker)
{
	if (checker->unpacker.raw.room > KEEP_SZ || checker->unpacker.values.room > KEEP_SZ / sizeof(union shard_value))
		shard_unpacker__clear(&checker->unpacker);
	checker->raw_sz = checker->cell_cnt = 0;
}

int block_checker__check(struct block_checker *checker, const uint8_t *bytes, size_t sz, uint64_t session_id,
			 struct block_checked *checked, const char **what)
{
	int (*unpack)(struct shard_unpacker *, const struct shard_block_header *, const uint8_t *,
		      struct shard_block *);
	struct shard_block_header *header = &checked->header;
	int err = check_header(header, shard_block_header__get(header, bytes, sz), sz, session_id, what);

	if (err)
		return err;
	checker->raw_sz += header->raw_sz;
	checker->cell_cnt += (uint64_t)header->row_cnt * header->column_cnt;
	if (header->raw_sz > BLOCK_CHECK_RAW_MAX || checker->raw_sz > BLOCK_CHECK_TOTAL_MAX ||
	    checker->cell_cnt > BLOCK_CHECK_CELLS_MAX) {
		*what = "it unpacks to more than the limit";
		return -E2BIG;
	}
	bytes += header->header_sz;
	if (crc32c(0, bytes, header->stored_sz) != header->body_crc) {
		*what = "its block's checksum is wrong";
		return -EBADMSG;
	}
	/* Values that contradict themselves cost their sender this one block, whoever reads it says so. */
	unpack = !strcmp(header->table, "session") ? shard_unpacker__unpack : shard_unpacker__schema;
	err = unpack(&checker->unpacker, header, bytes, &checked->block);
	if (err == -ENOMEM)
		return err;
	if (err) {
		*what = err == -ENOTSUP ? "its block has a codec or an encoding that is not known here"
					: "its block is malformed";
		return -EBADMSG;
	}
	checked->block.path = NULL;
	checked->block.table = header->table;
	checked->block.session_id = session_id;
	if (check_schema(&checked->block)) {
		*what = "its block's schema contradicts its table";
		return -EBADMSG;
	}
	return 0;
}

void block_checker__clear(struct block_checker *checker)
{
	shard_unpacker__clear(&checker->unpacker);
	memset(checker, 0, sizeof(*checker));
}
