// SPDX-License-Identifier: GPL-2.0-or-later
#include "values/schema_cache.h"

#include "base/hash.h"
#include "base/log.h"
#include "values/schema_bytes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX  ".schema"
#define NAME_SZ 200

static uint64_t hash_text(uint64_t sum, const char *text)
{
	return fnv1a(sum, text ? text : "\n", text ? strlen(text) + 1 : 1);
}

/* By what decides what is in it, besides the build: the options. False: it has no build id to go by. */
static bool file_name(const struct value_schema *schema, const struct value_schema_opts *opts, char name[NAME_SZ])
{
	uint64_t sum = FNV1A_BEGIN, sz;
	struct stat st;

	if (strlen(schema->build_id) < 16 || stat(opts->path, &st))
		return false;
	sum = hash_text(hash_text(hash_text(sum, opts->file), opts->function), opts->either);
	sz = (uint64_t)st.st_size * 2 + opts->all_locals;
	sum = fnv1a(sum, &sz, sizeof(sz));
	return snprintf(name, NAME_SZ, "%s-%016llx" SUFFIX, schema->build_id, (unsigned long long)sum) < NAME_SZ;
}

/* --- the directory ------------------------------------------------------------------------------------------------ */

/* Nobody else can write there. */
static bool is_own(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_uid == geteuid() && !(st.st_mode & 022);
}

static int open_within(int at_fd, const char *name)
{
	int fd = openat(at_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT && !mkdirat(at_fd, name, 0700))
		fd = openat(at_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && is_own(fd))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* $XDG_CACHE_HOME/whylate or ~/.cache/whylate; -1: there is none that is the user's own. */
static int open_dir(const struct value_schema_opts *opts)
{
	const char *base = opts->cache_dir ? opts->cache_dir : secure_getenv("XDG_CACHE_HOME");
	bool in_home = !base || *base != '/';
	int fd, cache_fd, home_fd;

	if (in_home)
		base = secure_getenv("HOME");
	home_fd = base && *base == '/' ? open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (home_fd < 0)
		return -1;
	/* A home that is another user's (sudo) is none. */
	cache_fd = !is_own(home_fd) ? -1 : in_home ? open_within(home_fd, ".cache") : dup(home_fd);
	close(home_fd);
	if (cache_fd < 0)
		return -1;
	fd = open_within(cache_fd, "whylate");
	close(cache_fd);
	return fd;
}

static bool is_schema(const char *name)
{
	size_t len = strlen(name);

	return len > sizeof(SUFFIX) && !strcmp(name + len - (sizeof(SUFFIX) - 1), SUFFIX);
}

/* Leaves room for one more. */
static void make_room(int dir_fd)
{
	char oldest[NAME_MAX + 1] = "";
	time_t oldest_s = 0;
	struct dirent *entry;
	int own_fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), cnt = 0;
	DIR *dir = own_fd < 0 ? NULL : fdopendir(own_fd);
	struct stat st;

	if (!dir && own_fd >= 0)
		close(own_fd);
	while (dir && (entry = readdir(dir))) {
		if (!is_schema(entry->d_name) || fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		cnt++;
		if (!*oldest || st.st_mtime < oldest_s) {
			oldest_s = st.st_mtime;
			snprintf(oldest, sizeof(oldest), "%s", entry->d_name);
		}
	}
	if (dir)
		closedir(dir);
	if (cnt >= SCHEMA_CACHE_FILES)
		unlinkat(dir_fd, oldest, 0);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* The whole file, the caller's to free; NULL: none, or none that is to be believed. */
static uint8_t *read_file(int dir_fd, const char *name, size_t *sz)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	uint8_t *bytes = NULL;
	struct stat st;
	size_t got = 0;

	if (fd >= 0 && is_own(fd) && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0 &&
	    (uint64_t)st.st_size <= SCHEMA_SZ_MAX)
		bytes = malloc((size_t)st.st_size);
	while (bytes && got < (size_t)st.st_size) {
		ssize_t more = read(fd, bytes + got, (size_t)st.st_size - got);

		if (more <= 0) {
			free(bytes);
			bytes = NULL;
		} else {
			got += (size_t)more;
		}
	}
	if (bytes)
		futimens(fd, NULL);
	if (fd >= 0)
		close(fd);
	*sz = got;
	return bytes;
}

bool schema_cache_load(struct value_schema *schema, const struct value_schema_opts *opts)
{
	char name[NAME_SZ];
	int dir_fd = file_name(schema, opts, name) ? open_dir(opts) : -1;
	bool is_taken = false;
	uint8_t *bytes;
	size_t sz;

	if (dir_fd < 0)
		return false;
	bytes = read_file(dir_fd, name, &sz);
	if (bytes)
		is_taken = !schema_bytes_take(schema, bytes, sz);
	free(bytes);
	close(dir_fd);
	return is_taken;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static void write_file(int dir_fd, const char *name, const uint8_t *bytes, size_t sz)
{
	char fresh[NAME_SZ + 32];
	size_t put = 0;
	ssize_t more = 0;
	int fd;

	snprintf(fresh, sizeof(fresh), ".%s.%d", name, (int)getpid());
	fd = openat(dir_fd, fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	while (fd >= 0 && put < sz && (more = write(fd, bytes + put, sz - put)) > 0)
		put += (size_t)more;
	if (fd >= 0 && (close(fd) || put < sz || renameat(dir_fd, fresh, dir_fd, name))) {
		log_debug("the schema cannot be kept: %s", strerror(errno));
		unlinkat(dir_fd, fresh, 0);
	}
}

void schema_cache_store(const struct value_schema *schema, const struct value_schema_opts *opts, const void *bytes,
			size_t sz)
{
	char name[NAME_SZ];
	int dir_fd = schema->variables.cnt && file_name(schema, opts, name) ? open_dir(opts) : -1;

	if (dir_fd < 0)
		return;
	make_room(dir_fd);
	write_file(dir_fd, name, bytes, sz);
	close(dir_fd);
}
