// SPDX-License-Identifier: GPL-2.0-or-later
#include "shard/reader.h"

#include "base/progress.h"
#include "base/vec.h"
#include "shard/file.h"
#include "shard/inputs.h"
#include "shard/unpack.h"

#include <string.h>
#include <sys/stat.h>

struct shard_reader {
	struct shard_inputs inputs;
	struct shard_file file; /* fd < 0: the next one is to be opened */
	struct shard_damages damages;
	struct shard_buf body;
	struct reader_slot {
		struct shard_unpacker unpacker;
		struct shard_block_header header;
		struct shard_block block;
	} slots[SHARD_READER_SLOTS];
	bool select_all;
	VEC(char *) selected;
	uint64_t from_ts, until_ts; /* the window; from 0 to UINT64_MAX: there is none */
};

struct shard_reader *shard_reader__open(const char *const *paths, size_t path_cnt, const char **bad_path)
{
	struct shard_reader *reader = calloc(1, sizeof(*reader));
	int err = reader ? 0 : -ENOMEM;

	*bad_path = "(none)";
	if (reader)
		reader->file.fd = -1;
	for (size_t i = 0; !err && i < path_cnt; i++) {
		*bad_path = paths[i];
		err = shard_inputs__add(&reader->inputs, paths[i]);
	}
	if (!err && !reader->inputs.cnt) {
		*bad_path = path_cnt ? paths[0] : "(none)";
		err = -ENODATA;
	}
	if (err) {
		shard_reader__free(reader);
		errno = -err;
		return NULL;
	}
	reader->select_all = true;
	reader->until_ts = UINT64_MAX;
	return reader;
}

static void reader__unselect(struct shard_reader *reader)
{
	for (size_t i = 0; i < reader->selected.cnt; i++)
		free(reader->selected.items[i]);
	reader->selected.cnt = 0;
}

int shard_reader__select(struct shard_reader *reader, const char *const *tables, size_t table_cnt)
{
	shard_reader__rewind(reader);
	reader__unselect(reader);
	reader->select_all = !tables;
	for (size_t i = 0; tables && i < table_cnt; i++) {
		char *name = strdup(tables[i]);

		if (!name || vec_push(&reader->selected, name)) {
			free(name);
			return -ENOMEM;
		}
	}
	return 0;
}

void shard_reader__window(struct shard_reader *reader, uint64_t from_ts, uint64_t until_ts)
{
	reader->from_ts = from_ts;
	reader->until_ts = until_ts;
}

/* Of a table whose rows mean nothing outside of their time, and all before or behind the window. */
static bool reader__is_outside(const struct shard_reader *reader, const struct shard_block_header *header)
{
	static const char *const tables[] = {"interval", "segment", "wakeup", "handoff", "invocation"};

	if (header->min_ts > header->max_ts ||
	    (header->max_ts >= reader->from_ts && header->min_ts <= reader->until_ts))
		return false;
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		if (!strcmp(header->table, tables[i]))
			return true;
	return false;
}

/* The index is for those who ask for it by name; kinds of the future are for nobody. */
static bool reader__wants(const struct shard_reader *reader, const struct shard_block_header *header)
{
	if (header->kind != SHARD_BLOCK_ROWS && header->kind != SHARD_BLOCK_INDEX)
		return false;
	if (header->kind == SHARD_BLOCK_ROWS && reader__is_outside(reader, header))
		return false;
	if (reader->select_all)
		return header->kind == SHARD_BLOCK_ROWS;
	for (size_t i = 0; i < reader->selected.cnt; i++)
		if (!strcmp(reader->selected.items[i], header->table))
			return true;
	return false;
}

/* Opens the file whose turn it is: 0, also where it has nothing to read; -errno. */
static int reader__open_file(struct shard_reader *reader)
{
	struct shard_file *file = &reader->file;
	struct shard_damage damage = {.what = "cannot be opened"};
	int err;

	file->path = damage.path = reader->inputs.items[file->idx].path;
	file->damages = &reader->damages;
	err = shard_file__open(file);
	if (!err)
		return 0;
	file->idx++;
	if (err == -ENOMEM || err == -EIO)
		return err;
	return shard_damages__add(&reader->damages, file->idx - 1, &damage);
}

static void reader__leave_file(struct shard_reader *reader)
{
	shard_file__close(&reader->file);
	reader->file.idx++;
}

/* 1: the slot's block is set; 0: this block is of no use; -errno. */
static int reader__decode(struct shard_reader *reader, struct reader_slot *slot)
{
	const struct shard_block_header *header = &slot->header;
	struct shard_block *block = &slot->block;
	int err = shard_file__body(&reader->file, header, &reader->body);

	if (err)
		return err > 0 ? 0 : err;
	err = shard_unpacker__unpack(&slot->unpacker, header, reader->body.items, block);
	if (err == -EBADMSG)
		return shard_file__refuse(&reader->file, "malformed block");
	if (err == -ENOTSUP)
		return shard_file__refuse(&reader->file, "unsupported encoding");
	if (err)
		return err;
	block->path = reader->file.path;
	block->table = header->table;
	block->session_id = header->session_id;
	return 1;
}

/* In thousandths of a file. */
static void reader__tell_progress(const struct shard_reader *reader)
{
	const struct shard_file *file = &reader->file;

	progress_done(1000 * file->idx + (file->sz ? 1000 * file->off / file->sz : 0), 1000 * reader->inputs.cnt);
}

int shard_reader__next_into(struct shard_reader *reader, unsigned slot_no, const struct shard_block **block)
{
	struct reader_slot *slot = &reader->slots[slot_no];
	int ret;

	while (reader->file.idx < reader->inputs.cnt) {
		if (reader->file.fd < 0) {
			ret = reader__open_file(reader);
			if (ret)
				return ret;
			continue;
		}
		ret = shard_file__next(&reader->file, &slot->header);
		if (ret <= 0) {
			reader__leave_file(reader);
			if (ret < 0)
				return ret;
			continue;
		}
		if (!reader__wants(reader, &slot->header))
			continue;
		ret = reader__decode(reader, slot);
		if (ret < 0)
			return ret;
		if (ret) {
			reader__tell_progress(reader);
			*block = &slot->block;
			return 1;
		}
	}
	return 0;
}

int shard_reader__next(struct shard_reader *reader, const struct shard_block **block)
{
	return shard_reader__next_into(reader, 0, block);
}

void shard_reader__rewind(struct shard_reader *reader)
{
	shard_file__close(&reader->file);
	reader->file.idx = 0;
}

size_t shard_reader__damage(const struct shard_reader *reader, const struct shard_damage **damage)
{
	*damage = reader->damages.items;
	return reader->damages.cnt;
}

uint64_t shard_reader__bytes(const struct shard_reader *reader)
{
	uint64_t bytes = 0;
	struct stat st;

	for (size_t i = 0; i < reader->inputs.cnt; i++)
		bytes += stat(reader->inputs.items[i].path, &st) ? 0 : (uint64_t)st.st_size;
	return bytes;
}

void shard_reader__free(struct shard_reader *reader)
{
	if (!reader)
		return;
	shard_file__close(&reader->file);
	shard_inputs__clear(&reader->inputs);
	shard_damages__clear(&reader->damages);
	for (unsigned i = 0; i < SHARD_READER_SLOTS; i++)
		shard_unpacker__clear(&reader->slots[i].unpacker);
	vec_free(&reader->body);
	reader__unselect(reader);
	vec_free(&reader->selected);
	free(reader);
}
