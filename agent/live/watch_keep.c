// SPDX-License-Identifier: GPL-2.0-or-later
#include "live/watch_keep.h"

#include "analysis/dataset.h"
#include "base/dirs.h"
#include "base/vec.h"
#include "session/scratch.h"
#include "shard/columns.h"
#include "shard/inputs.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CLAIM_TRIES 8

struct kept_file {
	char name[NAME_MAX + 1];
	off_t sz;      /* when it was read last */
	size_t blocks; /* of requests, that were taken */
	bool linked;   /* into the event's directory */
	bool there;
};

struct watch_keep {
	char *dir, *type, *event_dir; /* NULL: no event */
	uint64_t before_ns;
	char first[NAME_MAX + 1];
	VEC(struct kept_file) files;
};

struct watch_keep *watch_keep__new(const char *dir, const char *type, uint64_t before_ns)
{
	struct watch_keep *keep = calloc(1, sizeof(*keep));

	if (!keep)
		return NULL;
	keep->dir = strdup(dir);
	keep->type = strdup(type);
	keep->before_ns = before_ns;
	if (keep->dir && keep->type)
		return keep;
	watch_keep__free(keep);
	return NULL;
}

void watch_keep__free(struct watch_keep *keep)
{
	if (!keep)
		return;
	free(keep->dir);
	free(keep->type);
	free(keep->event_dir);
	vec_free(&keep->files);
	free(keep);
}

static struct kept_file *file_of(struct watch_keep *keep, const char *name)
{
	struct kept_file added = {.sz = -1};

	for (size_t i = 0; i < keep->files.cnt; i++)
		if (!strcmp(keep->files.items[i].name, name))
			return &keep->files.items[i];
	snprintf(added.name, sizeof(added.name), "%s", name);
	return vec_push(&keep->files, added) ? NULL : &keep->files.items[keep->files.cnt - 1];
}

/* --- requests ------------------------------------------------------------------------------------------------------
 */

static int take_block(const struct watch_keep *keep, const struct shard_block *block, struct watch_state *state)
{
	const struct shard_block_column *begin = block_column(block, "begin_ts", SHARD_U64),
					*end = block_column(block, "end_ts", SHARD_U64),
					*weight = block_column(block, "weight", SHARD_F64),
					*type = block_column(block, "type", SHARD_STR);

	for (uint32_t row = 0; begin && end && weight && type && row < block->row_cnt; row++) {
		uint64_t begin_ts = begin->values[row].u64, end_ts = end->values[row].u64;
		double of = weight->values[row].f64;
		const char *name = type->values[row].str;

		if (end_ts < begin_ts || !isfinite(of) || !(of > 0) ||
		    (*keep->type && (!name || !dataset_type_fits(name, keep->type))))
			continue;
		if (watch_state__add(state, end_ts, end_ts - begin_ts, of))
			return -ENOMEM;
	}
	return 0;
}

/* The blocks that were appended since. */
static int take_file(const struct watch_keep *keep, struct kept_file *file, struct watch_state *state)
{
	static const char *const tables[] = {"interval"};
	const struct shard_block *block;
	struct shard_reader *reader;
	const char *paths[1], *bad;
	char path[PATH_MAX];
	size_t number = 0;
	int err;

	snprintf(path, sizeof(path), "%s/%s", keep->dir, file->name);
	paths[0] = path;
	reader = shard_reader__open(paths, 1, &bad);
	/* It may have no block so far. */
	if (!reader)
		return errno == ENOMEM ? -ENOMEM : 0;
	err = shard_reader__select(reader, tables, 1);
	while (!err && (err = shard_reader__next(reader, &block)) > 0) {
		err = number++ < file->blocks ? 0 : take_block(keep, block, state);
	}
	file->blocks = number > file->blocks ? number : file->blocks;
	shard_reader__free(reader);
	return err;
}

/* --- files ---------------------------------------------------------------------------------------------------------
 */

static int link_file(const struct watch_keep *keep, struct kept_file *file)
{
	char from[PATH_MAX], to[PATH_MAX];

	snprintf(from, sizeof(from), "%s/%s", keep->dir, file->name);
	snprintf(to, sizeof(to), "%s/%s", keep->event_dir, file->name);
	if (link(from, to) && errno != EEXIST)
		return -errno;
	file->linked = true;
	return 0;
}

static int look_at(struct watch_keep *keep, const char *name, time_t now, struct watch_state *state)
{
	char path[PATH_MAX];
	struct kept_file *file;
	struct stat st;
	int err = 0;

	snprintf(path, sizeof(path), "%s/%s", keep->dir, name);
	if (lstat(path, &st) || !S_ISREG(st.st_mode))
		return 0;
	file = file_of(keep, name);
	if (!file)
		return -ENOMEM;
	file->there = true;
	if (st.st_size != file->sz) {
		file->sz = st.st_size;
		err = state ? take_file(keep, file, state) : 0;
	}
	if (!err && keep->event_dir && !file->linked)
		err = link_file(keep, file);
	if (!err && strcmp(name, keep->first) &&
	    now - st.st_mtime > (time_t)((keep->before_ns + WATCH_SHARD_NS) / 1000000000) && unlink(path))
		err = -errno;
	return err;
}

/* The first shard has the smallest name. */
static void note_first(struct watch_keep *keep, const char *name)
{
	if (!*keep->first || strcmp(name, keep->first) < 0)
		snprintf(keep->first, sizeof(keep->first), "%s", name);
}

int watch_keep__look(struct watch_keep *keep, struct watch_state *state)
{
	DIR *dir = dir_open(AT_FDCWD, keep->dir, 0);
	const struct dirent *entry;
	size_t kept = 0;
	int err = 0;

	/* The recording makes it when it begins. */
	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	for (size_t i = 0; i < keep->files.cnt; i++)
		keep->files.items[i].there = false;
	while ((entry = dir_next(dir)))
		if (shard_name_is(entry->d_name))
			note_first(keep, entry->d_name);
	rewinddir(dir);
	while (!err && (entry = dir_next(dir)))
		if (shard_name_is(entry->d_name))
			err = look_at(keep, entry->d_name, time(NULL), state);
	dir_close(dir, 0);
	for (size_t i = 0; i < keep->files.cnt; i++)
		if (keep->files.items[i].there)
			keep->files.items[kept++] = keep->files.items[i];
	keep->files.cnt = kept;
	return err;
}

int watch_keep__begin(struct watch_keep *keep, const char *event_dir)
{
	int err = 0;

	if (mkdir(event_dir, 0755))
		return -errno;
	keep->event_dir = strdup(event_dir);
	if (!keep->event_dir)
		err = -ENOMEM;
	for (size_t i = 0; i < keep->files.cnt && !err; i++) {
		keep->files.items[i].linked = false;
		err = link_file(keep, &keep->files.items[i]);
	}
	if (!err || err == -ENOENT)
		return 0;
	watch_remove_dir(event_dir);
	watch_keep__end(keep);
	return err;
}

void watch_keep__end(struct watch_keep *keep)
{
	free(keep->event_dir);
	keep->event_dir = NULL;
}

/* Follows no link: a user who can write to the parent directory could make root empty another one. */
void watch_remove_dir(const char *path)
{
	DIR *dir = dir_open(AT_FDCWD, path, O_NOFOLLOW);
	const struct dirent *entry;

	while ((entry = dir_next(dir)))
		unlinkat(dirfd(dir), entry->d_name, 0);
	dir_close(dir, 0);
	rmdir(path);
}

static int is_event(const struct dirent *entry)
{
	static const char shape[] = "0000-00-00T00-00-00Z";
	size_t i = 0;

	for (; shape[i] && entry->d_name[i]; i++)
		if (shape[i] == '0' ? !isdigit((unsigned char)entry->d_name[i]) : entry->d_name[i] != shape[i])
			return 0;
	return !shape[i] && !entry->d_name[i];
}

static bool is_armed(const char *name)
{
	static const char prefix[] = "armed.";
	const char *digits = name + sizeof(prefix) - 1;

	return !strncmp(name, prefix, sizeof(prefix) - 1) && *digits && !digits[strspn(digits, "0123456789")];
}

void watch_keep_newest(const char *dir, uint64_t keep)
{
	struct dirent **entries;
	int cnt = scandir(dir, &entries, is_event, alphasort);

	for (int i = 0; i < cnt; i++) {
		char path[PATH_MAX + 257];

		snprintf(path, sizeof(path), "%s/%s", dir, entries[i]->d_name);
		if ((uint64_t)i + keep < (uint64_t)cnt)
			watch_remove_dir(path);
		free(entries[i]);
	}
	if (cnt >= 0)
		free(entries);
}

int watch_keep_claim(const char *dir)
{
	int fd = -EEXIST;

	/* Another one's sweep may come between making it and locking it. */
	for (int i = 0; fd < 0 && i < CLAIM_TRIES; i++) {
		if (mkdir(dir, 0755))
			return -errno;
		fd = scratch_take(AT_FDCWD, dir);
	}
	return fd;
}

/* A pid does not tell: in a container it is the same one after each start. */
void watch_keep_sweep(const char *dir)
{
	DIR *place = dir_open(AT_FDCWD, dir, 0);
	const struct dirent *entry;

	while ((entry = dir_next(place))) {
		char path[PATH_MAX + 257];
		int fd = is_armed(entry->d_name) ? scratch_take(dirfd(place), entry->d_name) : -ENOENT;

		if (fd < 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		watch_remove_dir(path);
		close(fd);
	}
	dir_close(place, 0);
}

void watch_keep__remove(struct watch_keep *keep)
{
	watch_remove_dir(keep->dir);
}
