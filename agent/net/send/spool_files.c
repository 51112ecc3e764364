// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/send/spool_files.h"

#include "base/dirs.h"
#include "base/order.h"
#include "base/whole_io.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEQ_DIGITS     12
#define ROW_DIGITS     5
#define SESSION_DIGITS 16
#define NAME_LEN       (SEQ_DIGITS + 1 + 1 + 1 + ROW_DIGITS)

void spool_entry_name(char name[SPOOL_ENTRY_NAME_SZ], const struct spool_entry *entry, bool whole)
{
	snprintf(name, SPOOL_ENTRY_NAME_SZ, "%s%0*" PRIx64 "-%c-%0*u", whole ? "" : ".", SEQ_DIGITS,
		 (uint64_t)(entry->seq & PROTOCOL_SEQ_MAX), entry->class, ROW_DIGITS,
		 entry->row_cnt > SHARD_ROWS_MAX ? SHARD_ROWS_MAX : entry->row_cnt);
}

int spool_entry_parse(const char *name, struct spool_entry *entry, bool *whole)
{
	*whole = name[0] != '.';
	if (!*whole)
		name++;
	if (strlen(name) != NAME_LEN || strspn(name, "0123456789abcdef") != SEQ_DIGITS || name[SEQ_DIGITS] != '-' ||
	    !strchr("rbtfexy", name[SEQ_DIGITS + 1]) || name[SEQ_DIGITS + 2] != '-' ||
	    strspn(name + SEQ_DIGITS + 3, "0123456789") != ROW_DIGITS)
		return -EINVAL;
	entry->seq = strtoull(name, NULL, 16);
	entry->class = name[SEQ_DIGITS + 1];
	entry->row_cnt = strtoul(name + SEQ_DIGITS + 3, NULL, 10);
	return entry->row_cnt > SHARD_ROWS_MAX ? -EINVAL : 0;
}

void spool_dir_name(char name[SPOOL_DIR_NAME_SZ], const char *host, uint64_t session_id)
{
	snprintf(name, SPOOL_DIR_NAME_SZ, "%.*s-%0*" PRIx64, SHARD_HOST_MAX, host, SESSION_DIGITS, session_id);
}

int spool_dir_parse(const char *name, char host[SHARD_HOST_MAX + 1], uint64_t *session_id)
{
	size_t sz = strlen(name), host_sz;

	if (sz < SESSION_DIGITS + 2 || sz >= SPOOL_DIR_NAME_SZ)
		return -EINVAL;
	host_sz = sz - SESSION_DIGITS - 1;
	if (name[host_sz] != '-' || strspn(name + host_sz + 1, "0123456789abcdef") != SESSION_DIGITS)
		return -EINVAL;
	memcpy(host, name, host_sz);
	host[host_sz] = 0;
	*session_id = strtoull(name + host_sz + 1, NULL, 16);
	return protocol_host_is_valid(host) ? 0 : -EINVAL;
}

ORDER(by_seq, struct spool_entry, BY(a->seq, b->seq));

int spool_list(int dir_fd, struct spool_entries *entries)
{
	DIR *dir = dir_open(dir_fd, ".", 0);
	const struct dirent *found;
	struct spool_entry entry;
	bool whole;
	int err = 0;

	entries->cnt = 0;
	while (!err && (found = dir_next(dir)))
		if (!spool_entry_parse(found->d_name, &entry, &whole) && whole)
			err = vec_push(entries, entry);
	err = dir_close(dir, err);
	vec_sort(entries, by_seq);
	return err;
}

/* Whether these bytes are one frame, whole, of that number. */
static int check_frame(const uint8_t *bytes, size_t sz, uint64_t seq)
{
	struct protocol_frame frame;
	const uint8_t *payload;
	size_t off = 0;

	if (protocol_body__next(bytes, sz, &off, &frame, &payload) != 1 || off != sz || frame.seq != seq)
		return -EBADMSG;
	return 0;
}

int spool_read(int dir_fd, const struct spool_entry *entry, size_t max, struct shard_buf *out)
{
	char name[SPOOL_ENTRY_NAME_SZ];
	ssize_t got = 0;
	struct stat st;
	int fd, err = 0;

	spool_entry_name(name, entry, true);
	fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		err = -errno;
	else if (!S_ISREG(st.st_mode) || st.st_size > PROTOCOL_BODY_MAX)
		err = -EBADMSG;
	else if ((uint64_t)st.st_size > max)
		err = -E2BIG;
	else if (vec_reserve(out, st.st_size))
		err = -ENOMEM;
	if (!err)
		got = whole_read(fd, out->items + out->cnt, st.st_size, IO_HERE);
	if (!err && got != st.st_size)
		err = got < 0 ? (int)got : -EBADMSG;
	close(fd);
	if (!err)
		err = check_frame(out->items + out->cnt, st.st_size, entry->seq);
	if (!err)
		out->cnt += st.st_size;
	return err;
}

void spool_free_bytes(_Atomic uint64_t *counted, uint64_t sz)
{
	uint64_t before = atomic_load(counted);

	while (!atomic_compare_exchange_weak(counted, &before, before > sz ? before - sz : 0))
		;
}

void spool_spare_name(char name[SPOOL_SPARE_NAME_SZ], unsigned int number)
{
	snprintf(name, SPOOL_SPARE_NAME_SZ, "spare-%u", number % SPOOL_SPARES);
}

/* Counted before it is there: whoever removes it takes it from the count. */
static bool become_spare(int dir_fd, const char *name, uint64_t disk_sz, struct spool_slot *slot,
			 struct spool_shared *shared)
{
	uint32_t missing = ~atomic_load(&slot->spares) & ((1u << SPOOL_SPARES) - 1);
	unsigned int number = missing ? __builtin_ctz(missing) : 0;
	char spare_name[SPOOL_SPARE_NAME_SZ];

	if (!missing || disk_sz > SPOOL_SPARE_MAX)
		return false;
	spool_spare_name(spare_name, number);
	atomic_fetch_add(&shared->spare_bytes, disk_sz);
	if (renameat(dir_fd, name, dir_fd, spare_name)) {
		spool_free_bytes(&shared->spare_bytes, disk_sz);
		return false;
	}
	atomic_fetch_or(&slot->spares, 1u << number);
	return true;
}

void spool_retire(int dir_fd, const struct spool_entry *entry, uint64_t sz, struct spool_slot *slot,
		  struct spool_shared *shared)
{
	uint64_t disk_sz = spool_disk_sz(sz);
	char name[SPOOL_ENTRY_NAME_SZ];

	spool_entry_name(name, entry, true);
	if (become_spare(dir_fd, name, disk_sz, slot, shared) || !unlinkat(dir_fd, name, 0))
		spool_free_bytes(&shared->used_bytes, disk_sz);
}

uint64_t spool_drop_spares(int dir_fd, struct spool_shared *shared)
{
	char name[SPOOL_SPARE_NAME_SZ];
	uint64_t freed = 0;
	struct stat st;

	for (unsigned int i = 0; i < SPOOL_SPARES; i++) {
		spool_spare_name(name, i);
		if (!fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) && !unlinkat(dir_fd, name, 0))
			freed += spool_disk_sz(st.st_size);
	}
	if (shared)
		spool_free_bytes(&shared->spare_bytes, freed);
	return freed;
}
