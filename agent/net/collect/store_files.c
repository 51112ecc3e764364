// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/collect/store_internal.h"

#include "base/dirs.h"
#include "base/whole_io.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DAY_S    86400
#define NO_END   1000000u
#define NEW_NAME ".new" /* a shard without its header yet */
#define TORN     ".torn"
#define WRITER   ", collector; host: " /* in the headers of a store's own shards */

int32_t store__today(const struct store *store)
{
	return store__wall_ns(store) / 1000000000 / DAY_S;
}

static void day_name(int32_t day, char name[STORE_DAY_SZ])
{
	time_t seconds = (time_t)day * DAY_S;
	struct tm tm;

	gmtime_r(&seconds, &tm);
	if (!strftime(name, STORE_DAY_SZ, "%Y-%m-%d", &tm))
		strcpy(name, "9999-12-31");
}

static bool day_of(const char *name, int32_t *day)
{
	struct tm tm = {0};
	char again[STORE_DAY_SZ];
	const char *end = strptime(name, "%Y-%m-%d", &tm);

	if (!end || *end || strlen(name) != STORE_DAY_SZ - 1)
		return false;
	*day = timegm(&tm) / DAY_S;
	day_name(*day, again);
	return !strcmp(again, name);
}

void store_part__path(const struct store_part *part, char path[STORE_PATH_SZ])
{
	char day[STORE_DAY_SZ];

	day_name(part->day, day);
	snprintf(path, STORE_PATH_SZ, "%s/%s/%s-%016" PRIx64 "-%06u.wls", part->host->name, day, part->host->name,
		 part->session_id, part->no);
}

/* HOST-SESSION-NO.wls of that host. */
static bool part_of(const char *name, const char *host, struct store_part *part)
{
	size_t host_sz = strlen(host);
	char again[STORE_NAME_SZ];
	unsigned no;

	if (strncmp(name, host, host_sz) || strlen(name) != host_sz + sizeof("-0123456789abcdef-000000.wls") - 1)
		return false;
	if (sscanf(name + host_sz, "-%16" SCNx64 "-%6u.wls", &part->session_id, &no) != 2)
		return false;
	part->no = no;
	snprintf(again, sizeof(again), "%s-%016" PRIx64 "-%06u.wls", host, part->session_id, no);
	return !strcmp(again, name);
}

static int open_dir(int at_fd, const char *name)
{
	int fd = openat(at_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* The directory of that name, made if need be: a descriptor or -errno. */
static int make_open_dir(int at_fd, const char *name, bool *is_new)
{
	if (!mkdirat(at_fd, name, 0750))
		*is_new = true;
	else if (errno != EEXIST)
		return -errno;
	return open_dir(at_fd, name);
}

/* Index and trailer behind the accounted part, and nothing else. */
static int close_file(int fd, uint64_t good_sz, uint64_t session_id, uint64_t *sz)
{
	struct shard_buf end = {0};
	int err = received_index(fd, good_sz, session_id, &end);

	if (!err && ftruncate(fd, good_sz))
		err = -errno;
	if (!err)
		err = whole_write(fd, end.items, end.cnt, (int64_t)good_sz);
	/* Without them it is whole all the same. */
	*sz = good_sz + (err ? 0 : end.cnt);
	if (err && ftruncate(fd, good_sz))
		*sz = good_sz + end.cnt;
	vec_free(&end);
	return err;
}

static int no_row(void *ctx, const struct received *received)
{
	(void)ctx;
	(void)received;
	return 0;
}

/* Cuts what has no account, and closes it.  1: nothing is left of it. */
static int repair(struct store *store, int fd, struct store_part *part)
{
	const struct received_scan *scan = &store->scan;
	uint64_t before_sz = part->sz;
	int err = received_scan__file(&store->scan, fd, part->sz, no_row, NULL);

	if (err || scan->closed)
		return err;
	/* What somebody else put there under a name of ours is not ours to touch. */
	if (scan->is_shard ? scan->session_id != part->session_id : !scan->is_begun)
		return 0;
	store->stats.repaired_files++;
	store->stats.repaired_bytes += before_sz - scan->good_sz;
	if (!scan->account_cnt)
		return 1;
	return close_file(fd, scan->good_sz, part->session_id, &part->sz);
}

static bool ends_with_trailer(int fd, uint64_t sz)
{
	uint8_t bytes[SHARD_TRAILER_SZ];
	uint64_t index_off;

	return sz > sizeof(bytes) && pread(fd, bytes, sizeof(bytes), sz - sizeof(bytes)) == (ssize_t)sizeof(bytes) &&
	       !shard_trailer__get(&index_off, bytes, sizeof(bytes));
}

static int keep_part(struct store *store, const struct store_part *found, int fd)
{
	struct store_part *part = store__add_part(store, found);
	struct stat st;

	if (!part)
		return -ENOMEM;
	if (fstat(fd, &st))
		return -errno;
	store__measure_part(store, part, found->sz, st.st_blocks);
	return 0;
}

static bool is_our_own(int fd)
{
	char text[512];
	ssize_t sz = pread(fd, text, sizeof(text), 0);

	return sz > 0 && memmem(text, sz, WRITER, strlen(WRITER));
}

/*
 * There is no account in it.  Ours has nothing then that was acknowledged, and goes; one that somebody put there stays,
 * under a name that is no shard's.
 */
static int drop_torn(struct store *store, int day_fd, const char *name, int fd)
{
	char aside[STORE_NAME_SZ + sizeof(TORN)];

	if (is_our_own(fd) || store->scan.is_begun)
		return unlinkat(day_fd, name, 0) ? -errno : 0;
	snprintf(aside, sizeof(aside), "%s" TORN, name);
	if (renameat2(day_fd, name, day_fd, aside, RENAME_NOREPLACE))
		return errno == EEXIST ? 0 : -errno;
	store->stats.aside_files++;
	return 0;
}

/* One entry of a day's directory. */
static int find_part(struct store *store, int day_fd, const char *name, struct store_part *part)
{
	struct stat st;
	int fd, err = 0;

	if (!strncmp(name, NEW_NAME, strlen(NEW_NAME))) {
		unlinkat(day_fd, name, 0);
		return 0;
	}
	if (!part_of(name, part->host->name, part))
		return 0;
	fd = openat(day_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return errno == ENOENT || errno == ELOOP ? 0 : -errno;
	if (fstat(fd, &st))
		err = -errno;
	if (err || !S_ISREG(st.st_mode))
		goto cleanup;
	part->sz = st.st_size;
	part->last_s = st.st_mtime;
	if (!ends_with_trailer(fd, part->sz))
		err = repair(store, fd, part);
	if (err > 0)
		err = drop_torn(store, day_fd, name, fd);
	else if (!err || err == -ENOSPC || err == -EDQUOT)
		err = keep_part(store, part, fd);
cleanup:
	close(fd);
	return err;
}

typedef int (*entry_fn)(struct store *store, int dir_fd, const char *name, struct store_part *part);

/* Calls fn for each entry of the directory.  What is no directory, or gone, is passed over. */
static int enter(struct store *store, int at_fd, const char *name, entry_fn fn, struct store_part *part)
{
	DIR *dir = dir_open(at_fd, name, O_NOFOLLOW);
	const struct dirent *entry;
	int err = 0;

	if (!dir && (errno == ENOTDIR || errno == ENOENT || errno == ELOOP))
		return 0;
	while (!err && (entry = dir_next(dir)))
		err = fn(store, dirfd(dir), entry->d_name, part);
	return dir_close(dir, err);
}

static int find_day(struct store *store, int host_fd, const char *name, struct store_part *part)
{
	return day_of(name, &part->day) ? enter(store, host_fd, name, find_part, part) : 0;
}

static int find_host(struct store *store, int store_fd, const char *name, struct store_part *part)
{
	int err;

	if (!protocol_host_is_valid(name))
		return 0;
	part->host = store__host(store, name);
	if (!part->host)
		return -ENOMEM;
	err = enter(store, store_fd, name, find_day, part);
	store__drop_host(store, part->host);
	return err;
}

int store__find_parts(struct store *store)
{
	struct store_part part = {0};

	return enter(store, store->fd, ".", find_host, &part);
}

static int write_header(int fd, const struct store *store, const struct store_part *part, uint64_t *sz)
{
	struct shard_file_header header = {
		.major = SHARD_VERSION_MAJOR,
		.minor = SHARD_VERSION_MINOR,
		.session_id = part->session_id,
		.seq = part->no,
		.created_wall_ts = store__wall_ns(store),
	};
	struct shard_buf bytes = {0};
	char text[256];
	int err;

	snprintf(text, sizeof(text), "whylate shard, layout: docs/SHARD-FORMAT.md; writer: whylate %s" WRITER "%s\n",
		 WHYLATE_VERSION, part->host->name);
	err = shard_file_header__put(&bytes, &header, text);
	if (!err)
		err = whole_write(fd, bytes.items, bytes.cnt, 0);
	*sz = bytes.cnt;
	vec_free(&bytes);
	return err;
}

/* A file appears under its name with its header in it. */
static int create_file(const struct store *store, int day_fd, struct store_part *part)
{
	char path[STORE_PATH_SZ];
	int fd, err;

	unlinkat(day_fd, NEW_NAME, 0);
	fd = openat(day_fd, NEW_NAME, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
	if (fd < 0)
		return -errno;
	err = write_header(fd, store, part, &part->sz);
	for (; !err && part->no < NO_END; part->no++) {
		store_part__path(part, path);
		if (!renameat2(day_fd, NEW_NAME, day_fd, strrchr(path, '/') + 1, RENAME_NOREPLACE))
			return fd;
		if (errno != EEXIST)
			err = -errno;
	}
	unlinkat(day_fd, NEW_NAME, 0);
	close(fd);
	return err ?: -EEXIST;
}

int store__create_part(struct store *store, struct store_session *session)
{
	struct store_part part = {
		.host = session->host, .session_id = session->id, .no = session->next_no, .day = store__today(store)};
	int host_fd, day_fd, fd;
	char day[STORE_DAY_SZ];
	bool is_new = false;

	part.last_s = store__wall_ns(store) / 1000000000;
	part.open = true;
	day_name(part.day, day);
	host_fd = make_open_dir(store->fd, part.host->name, &is_new);
	if (host_fd < 0)
		return host_fd;
	day_fd = make_open_dir(host_fd, day, &is_new);
	close(host_fd);
	if (day_fd < 0)
		return day_fd;
	fd = create_file(store, day_fd, &part);
	if (fd >= 0 && !(session->part = store__add_part(store, &part))) {
		close(fd);
		fd = -ENOMEM;
	}
	close(day_fd);
	if (fd < 0)
		return fd;
	session->next_no = part.no + 1;
	session->fd = fd;
	session->sz = session->safe_sz = part.sz;
	session->block_cnt = 0;
	session->is_new = true;
	session->has_account = false;
	return 0;
}

void store__leave_part(struct store *store, struct store_session *session, bool finish)
{
	struct store_part *part = session->part;
	char path[STORE_PATH_SZ];
	struct stat st;

	if (session->fd < 0)
		return;
	part->open = false;
	store_part__path(part, path);
	if (!session->has_account)
		unlinkat(store->fd, path, 0);
	else if (finish)
		close_file(session->fd, session->safe_sz, session->id, &session->safe_sz);
	store__measure_part(store, part, session->safe_sz, fstat(session->fd, &st) ? 0 : st.st_blocks);
	if (!session->has_account)
		store__drop_part(store, part);
	close(session->fd);
	session->fd = -1;
	session->part = NULL;
}

int store__delete_part(struct store *store, struct store_part *part)
{
	char path[STORE_PATH_SZ];

	store_part__path(part, path);
	if (unlinkat(store->fd, path, 0) && errno != ENOENT)
		return -errno;
	store->stats.deleted_files++;
	store->stats.deleted_bytes += part->disk_sz;
	store__drop_part(store, part);
	/* The day's directory, then the host's: they stay where there is something else in them. */
	for (int level = 0; level < 2; level++) {
		*strrchr(path, '/') = 0;
		if (unlinkat(store->fd, path, AT_REMOVEDIR))
			break;
	}
	return 0;
}
