// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What each host has of the store, and what goes when that is too much.  A host's own limits cost only its own shards.
 * The limit of all costs the host that has most: a host below its equal share loses nothing as long as another one is
 * beyond its own (max-min fairness).
 */
#include "net/collect/store_internal.h"

#include "base/dirs.h"
#include "base/order.h"
#include "base/text.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DISK_BLOCK    512  /* st_blocks */
#define DISK_FILE_MIN 4096 /* a file costs an inode and a name, whatever is in it */

struct store_host *store__host(struct store *store, const char *name)
{
	size_t from = search_first(0, store->hosts.cnt, at, strcmp(store->hosts.items[at]->name, name) >= 0);
	struct store_host *host;

	if (from < store->hosts.cnt && !strcmp(store->hosts.items[from]->name, name))
		return store->hosts.items[from];
	host = calloc(1, sizeof(*host));
	if (!host || vec_reserve(&store->hosts, 1)) {
		free(host);
		return NULL;
	}
	snprintf(host->name, sizeof(host->name), "%s", name);
	memmove(store->hosts.items + from + 1, store->hosts.items + from,
		(store->hosts.cnt++ - from) * sizeof(*store->hosts.items));
	store->hosts.items[from] = host;
	return host;
}

void store__drop_host(struct store *store, struct store_host *host)
{
	if (host->parts.cnt || host->session_cnt)
		return;
	for (size_t i = 0; i < store->hosts.cnt; i++) {
		if (store->hosts.items[i] != host)
			continue;
		memmove(store->hosts.items + i, store->hosts.items + i + 1,
			(--store->hosts.cnt - i) * sizeof(*store->hosts.items));
		break;
	}
	vec_free(&host->parts);
	free(host);
}

struct store_part *store__add_part(struct store *store, const struct store_part *part)
{
	struct store_part *copy = malloc(sizeof(*copy));

	if (!copy || vec_push(&part->host->parts, copy)) {
		free(copy);
		return NULL;
	}
	*copy = *part;
	copy->disk_sz = 0;
	store->stats.files++;
	store__measure_part(store, copy, part->sz, 0);
	/* cppcheck-suppress memleak */
	return copy;
}

void store__drop_part(struct store *store, struct store_part *part)
{
	struct store_host *host = part->host;

	if (!vec_take_out(&host->parts, part))
		return;
	host->disk_sz -= part->disk_sz;
	store->stats.bytes -= part->disk_sz;
	store->stats.files--;
	free(part);
}

void store__measure_part(struct store *store, struct store_part *part, uint64_t sz, uint64_t blocks)
{
	uint64_t disk_sz = blocks * DISK_BLOCK;

	if (disk_sz < DISK_FILE_MIN)
		disk_sz = DISK_FILE_MIN;
	part->sz = sz;
	store->stats.bytes += disk_sz - part->disk_sz;
	part->host->disk_sz += disk_sz - part->disk_sz;
	part->disk_sz = disk_sz;
}

static bool host_is_over(const struct store *store, const struct store_host *host)
{
	return (store->opts.host_max_bytes && host->disk_sz > store->opts.host_max_bytes) ||
	       host->parts.cnt > store->opts.host_max_files;
}

static bool all_are_over(const struct store *store)
{
	return store->opts.max_bytes && store->stats.bytes > store->opts.max_bytes;
}

bool store__is_over(const struct store *store)
{
	for (size_t i = 0; i < store->hosts.cnt; i++)
		if (host_is_over(store, store->hosts.items[i]))
			return true;
	return all_are_over(store);
}

static bool goes_first(const struct store_part *a, const struct store_part *b)
{
	if (a->last_s != b->last_s)
		return a->last_s < b->last_s;
	return a->no < b->no;
}

static struct store_part *oldest_part(const struct store_host *host)
{
	struct store_part *oldest = NULL;

	for (size_t i = 0; i < host->parts.cnt; i++) {
		struct store_part *part = host->parts.items[i];

		if (!part->open && (!oldest || goes_first(part, oldest)))
			oldest = part;
	}
	return oldest;
}

/*
 * Deletes the host's oldest shard; where all of them are being written, the one of the session that was idle longest is
 * closed first.  False: nothing went.  The caller holds the host.
 */
static bool delete_oldest(struct store *store, struct store_host *host)
{
	struct store_part *part = oldest_part(host);
	struct store_session *idlest = part ? NULL : store__idlest_session(store, host);

	if (!idlest)
		return part && !store__delete_part(store, part);
	/* A session that never committed takes its part with it. */
	store__forget_session(store, idlest, true);
	part = oldest_part(host);
	return !part || !store__delete_part(store, part);
}

static void delete_by_age(struct store *store, struct store_host *host, int64_t before_s)
{
	for (size_t i = host->parts.cnt; i--;)
		if (!host->parts.items[i]->open && host->parts.items[i]->last_s < before_s)
			(void)store__delete_part(store, host->parts.items[i]);
}

static struct store_host *largest_host(const struct store *store)
{
	struct store_host *largest = NULL;

	for (size_t i = 0; i < store->hosts.cnt; i++)
		if (!largest || store->hosts.items[i]->disk_sz > largest->disk_sz)
			largest = store->hosts.items[i];
	return largest;
}

/* It stays in the list, whatever goes of it. */
static void hold(struct store_host *host)
{
	host->session_cnt++;
}

static void release(struct store *store, struct store_host *host)
{
	host->session_cnt--;
	store__drop_host(store, host);
}

static bool shrink_largest(struct store *store)
{
	struct store_host *largest = largest_host(store);
	bool gone;

	if (!largest)
		return false;
	hold(largest);
	gone = delete_oldest(store, largest);
	release(store, largest);
	return gone;
}

void store__retain(struct store *store)
{
	int64_t now_s = store__wall_ns(store) / 1000000000;

	/* From the end: a host that has nothing any more leaves the list. */
	for (size_t i = store->hosts.cnt; i--;) {
		struct store_host *host = store->hosts.items[i];

		hold(host);
		if (store->opts.keep_ns)
			delete_by_age(store, host, now_s - (int64_t)(store->opts.keep_ns / 1000000000));
		while (host_is_over(store, host) && delete_oldest(store, host))
			;
		release(store, host);
	}
	while (all_are_over(store) && shrink_largest(store))
		;
}

/* Files of one day that no part stands for: torn ones that were set aside. */
static int delete_aside(int host_fd, const char *day)
{
	DIR *dir = dir_open(host_fd, day, O_NOFOLLOW);
	const struct dirent *entry;
	int err = 0;

	if (!dir && errno == ENOTDIR)
		return 0;
	while (!err && (entry = dir_next(dir)))
		if (text_ends(entry->d_name, ".torn") && unlinkat(dirfd(dir), entry->d_name, 0))
			err = -errno;
	err = dir_close(dir, err);
	if (!err)
		unlinkat(host_fd, day, AT_REMOVEDIR);
	return err;
}

static int delete_all_aside(struct store *store, const char *host)
{
	DIR *dir = dir_open(store->fd, host, O_NOFOLLOW);
	const struct dirent *entry;
	int err = 0;

	if (!dir && errno == ENOENT)
		return 0;
	while (!err && (entry = dir_next(dir)))
		if (entry->d_name[0] != '.')
			err = delete_aside(dirfd(dir), entry->d_name);
	err = dir_close(dir, err);
	if (!err)
		unlinkat(store->fd, host, AT_REMOVEDIR);
	return err;
}

int store__forget(struct store *store, const char *name)
{
	struct store_host *host = NULL;
	bool stuck = false;
	int err;

	for (size_t i = 0; i < store->hosts.cnt && !host; i++)
		if (!strcmp(store->hosts.items[i]->name, name))
			host = store->hosts.items[i];
	if (host) {
		hold(host);
		while (host->parts.cnt && delete_oldest(store, host))
			;
		stuck = host->parts.cnt;
		release(store, host);
	} else if (faccessat(store->fd, name, F_OK, AT_SYMLINK_NOFOLLOW)) {
		return -errno;
	}
	err = delete_all_aside(store, name);
	return err ?: stuck ? -EIO : 0;
}
