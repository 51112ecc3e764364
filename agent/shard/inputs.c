// SPDX-License-Identifier: GPL-2.0-or-later
#include "shard/inputs.h"

#include "base/dirs.h"
#include "base/text.h"
#include "base/vec.h"
#include "shard/format.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX    ".wls"
#define SUFFIX_SZ (sizeof(SUFFIX) - 1)

#define DEPTH_MAX 8 /* a store has two */

/* "-SESSION-SEQ.wls": what a name of ours ends with. */
#define SESSION_DIGITS 16
#define SEQ_DIGITS     6
#define TAIL_SZ        (1 + SESSION_DIGITS + 1 + SEQ_DIGITS + SUFFIX_SZ)

bool shard_name_is(const char *path)
{
	return text_ends(path, SUFFIX);
}

/* Digits of fixed width compare as numbers: the tail is the key. */
static const char *name_tail(const char *path)
{
	size_t sz = strlen(path);
	const char *tail = path + (sz > TAIL_SZ ? sz - TAIL_SZ : 0);

	if (sz <= TAIL_SZ || tail[0] != '-' || tail[1 + SESSION_DIGITS] != '-')
		return NULL;
	if (strspn(tail + 1, "0123456789abcdef") != SESSION_DIGITS)
		return NULL;
	if (strspn(tail + 2 + SESSION_DIGITS, "0123456789") != SEQ_DIGITS)
		return NULL;
	return tail;
}

/* Names that are not ours come last, by themselves. */
static int by_session_and_seq(const void *left, const void *right)
{
	const struct shard_input *a = left, *b = right;
	const char *a_tail = name_tail(a->path), *b_tail = name_tail(b->path);
	int order;

	if (!a_tail != !b_tail)
		return a_tail ? -1 : 1;
	order = a_tail ? strcmp(a_tail, b_tail) : 0;
	return order ?: strcmp(a->path, b->path);
}

static bool inputs__has(const struct shard_inputs *inputs, const struct stat *st)
{
	for (size_t i = 0; i < inputs->cnt; i++)
		if (inputs->items[i].dev == st->st_dev && inputs->items[i].ino == st->st_ino)
			return true;
	return false;
}

static int inputs__push(struct shard_inputs *inputs, const char *path, const struct stat *st)
{
	struct shard_input input = {.path = strdup(path), .dev = st->st_dev, .ino = st->st_ino};

	if (!input.path)
		return -ENOMEM;
	if (vec_push(inputs, input)) {
		free(input.path);
		return -ENOMEM;
	}
	return 0;
}

static int inputs__add_file(struct shard_inputs *inputs, const char *path)
{
	char magic[SHARD_MAGIC_SZ];
	struct stat st;
	bool is_shard = shard_name_is(path);
	int fd, err = 0;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		err = -errno;
	else if (!S_ISREG(st.st_mode))
		err = -EINVAL;
	else if (!is_shard)
		is_shard = read(fd, magic, sizeof(magic)) == sizeof(magic) &&
			   !memcmp(magic, SHARD_FILE_MAGIC, sizeof(magic));
	close(fd);
	if (err || !is_shard || inputs__has(inputs, &st))
		return err;
	return inputs__push(inputs, path, &st);
}

static int inputs__add_dir(struct shard_inputs *inputs, const char *path, unsigned depth);

static bool is_dir(const char *path, unsigned char type)
{
	struct stat st;

	if (type != DT_UNKNOWN)
		return type == DT_DIR;
	return !lstat(path, &st) && S_ISDIR(st.st_mode);
}

static int inputs__add_entry(struct shard_inputs *inputs, const char *dir, const struct dirent *entry, unsigned depth)
{
	char *path;
	int err = 0;

	if (entry->d_name[0] == '.')
		return 0;
	if (asprintf(&path, "%s/%s", dir, entry->d_name) < 0)
		return -ENOMEM;
	if (is_dir(path, entry->d_type))
		err = depth < DEPTH_MAX ? inputs__add_dir(inputs, path, depth + 1) : 0;
	else if (shard_name_is(entry->d_name))
		err = inputs__add_file(inputs, path);
	free(path);
	/* Gone meanwhile, or something else by that name. */
	return err == -ENOENT || err == -EINVAL ? 0 : err;
}

static int inputs__add_dir(struct shard_inputs *inputs, const char *path, unsigned depth)
{
	DIR *dir = dir_open(AT_FDCWD, path, 0);
	const struct dirent *entry;
	int err = 0;

	while (!err && (entry = dir_next(dir)))
		err = inputs__add_entry(inputs, path, entry, depth);
	return dir_close(dir, err);
}

int shard_inputs__add(struct shard_inputs *inputs, const char *path)
{
	size_t before_cnt = inputs->cnt;
	struct stat st;
	int err;

	if (stat(path, &st))
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return inputs__add_file(inputs, path);
	err = inputs__add_dir(inputs, path, 0);
	if (inputs->cnt > before_cnt)
		qsort(inputs->items + before_cnt, inputs->cnt - before_cnt, sizeof(*inputs->items), by_session_and_seq);
	return err;
}

bool shard_name_host(const char *path, char host[SHARD_HOST_MAX + 1])
{
	const char *tail = name_tail(path), *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t sz = tail && tail > name ? (size_t)(tail - name) : 0;

	if (!sz || sz > SHARD_HOST_MAX)
		return false;
	memcpy(host, name, sz);
	host[sz] = 0;
	return true;
}

void shard_inputs__clear(struct shard_inputs *inputs)
{
	for (size_t i = 0; i < inputs->cnt; i++)
		free(inputs->items[i].path);
	vec_free(inputs);
}
