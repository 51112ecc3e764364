// SPDX-License-Identifier: GPL-2.0-or-later
#include "shard/growing.h"

#include "base/arena.h"
#include "base/log.h"
#include "shard/inputs.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

int shard_growing__init(struct shard_growing *growing)
{
	*growing = (struct shard_growing){.file = {.fd = -1}};
	growing->arena = growing->paths.arena = arena__new();
	return growing->arena ? 0 : -ENOMEM;
}

void shard_growing__free(struct shard_growing *growing)
{
	vec_free(&growing->files);
	intern__free(&growing->paths);
	arena__free(growing->arena);
	shard_file__close(&growing->file);
	shard_damages__clear(&growing->damages);
}

int shard_growing__open(struct shard_growing *growing, uint32_t no, uint64_t off)
{
	int err;

	growing->file.path = growing->files.items[no].path;
	growing->file.idx = no;
	growing->file.damages = &growing->damages;
	err = shard_file__open(&growing->file);
	if (!err && off > growing->file.off)
		growing->file.off = growing->file.sure_off = off;
	return err;
}

/* From where it was left to its present end. */
static int look_at_file(struct shard_growing *growing, uint32_t no, const struct shard_growing_owner *owner)
{
	struct shard_block_header header;
	int err = shard_growing__open(growing, no, growing->files.items[no].next_off);

	if (err)
		return err == -ENOENT ? 0 : err;
	while (!err && (err = shard_file__next(&growing->file, &header)) > 0) {
		err = header.kind == SHARD_BLOCK_ROWS ? owner->take(owner->owner, no, &header) : 0;
		growing->files.items[no].next_off = growing->file.off;
	}
	if (!err)
		growing->files.items[no].sz = growing->file.sz;
	shard_file__close(&growing->file);
	return err;
}

int shard_growing__look(struct shard_growing *growing, const char *const *paths, size_t path_cnt,
			const struct shard_growing_owner *owner)
{
	struct shard_inputs inputs = {0};
	struct stat st;
	int err = 0;

	for (size_t i = 0; !err && i < path_cnt; i++) {
		err = shard_inputs__add(&inputs, paths[i]);
		if (err)
			log_error("cannot read '%s': %s", paths[i], strerror(-err));
	}
	for (size_t i = 0; !err && i < inputs.cnt; i++) {
		const char *path = inputs.items[i].path;
		uint32_t no, cnt = growing->paths.cnt;

		if (owner->should_stop && owner->should_stop(owner->owner)) {
			err = -ECANCELED;
			break;
		}
		err = intern__id(&growing->paths, path, &no);
		if (!err && no == cnt)
			err = vec_push(&growing->files,
				       (struct shard_growing_file){.path = growing->paths.strings[no]});
		if (!err && !stat(path, &st) && (uint64_t)st.st_size != growing->files.items[no].sz)
			err = look_at_file(growing, no, owner);
		if (err)
			log_error("cannot read '%s': %s", path, strerror(-err));
	}
	shard_inputs__clear(&inputs);
	return err;
}
