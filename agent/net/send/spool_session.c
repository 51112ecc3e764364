// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/send/spool_session.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/dirs.h"
#include "base/names.h"
#include "shard/crc32c.h"
#include "shard/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define ACCOUNT_MAGIC "WLSPOOL2"
#define ACCOUNT_SZ    80
#define ACCOUNT_CRC   76
/* An account that was torn (a crash of the machine) does not tell which numbers are taken: these are left out. */
#define SEQ_SKIP 1024

static int save_account(const struct spool_session *session)
{
	const struct spool_account *account = &session->account;
	uint8_t bytes[ACCOUNT_SZ];

	memcpy(bytes, ACCOUNT_MAGIC, 8);
	put_le(bytes + 8, account->session_id, 8);
	put_le(bytes + 16, account->next_seq, 8);
	put_le(bytes + 24, account->emitted, 8);
	put_le(bytes + 32, account->lost, 8);
	put_le(bytes + 40, account->told_lost, 8);
	put_le(bytes + 48, account->told_ts, 8);
	put_le(bytes + 56, account->emitted_baseline, 8);
	put_le(bytes + 64, account->lost_baseline, 8);
	put_le(bytes + 72, account->ended, 4);
	put_le(bytes + ACCOUNT_CRC, crc32c(0, bytes, ACCOUNT_CRC), 4);
	return pwrite(session->account_fd, bytes, sizeof(bytes), 0) == sizeof(bytes) ? 0 : -EIO;
}

static int load_account(struct spool_session *session)
{
	struct spool_account *account = &session->account;
	uint8_t bytes[ACCOUNT_SZ];

	if (pread(session->account_fd, bytes, sizeof(bytes), 0) != sizeof(bytes) ||
	    memcmp(bytes, ACCOUNT_MAGIC, 8) != 0 || get_le(bytes + ACCOUNT_CRC, 4) != crc32c(0, bytes, ACCOUNT_CRC) ||
	    get_le(bytes + 8, 8) != account->session_id)
		return -EBADMSG;
	account->next_seq = get_le(bytes + 16, 8);
	account->emitted = get_le(bytes + 24, 8);
	account->lost = get_le(bytes + 32, 8);
	account->told_lost = get_le(bytes + 40, 8);
	account->told_ts = get_le(bytes + 48, 8);
	account->emitted_baseline = get_le(bytes + 56, 8);
	account->lost_baseline = get_le(bytes + 64, 8);
	account->ended = get_le(bytes + 72, 4);
	return 0;
}

static int fail(struct spool_session *session, int err)
{
	if (session->account_fd >= 0)
		close(session->account_fd);
	if (session->dir_fd >= 0)
		close(session->dir_fd);
	session->account_fd = session->dir_fd = -1;
	return err;
}

/* The uploader renames and removes what is in there.  Without CAP_CHOWN, root shares it with a group that it is in. */
static int share_dir(int dir_fd, uid_t uid, gid_t gid)
{
	if (geteuid() || !fchown(dir_fd, uid, gid))
		return 0;
	return errno == EPERM && !fchown(dir_fd, (uid_t)-1, gid) && !fchmod(dir_fd, 0770) ? 0 : -errno;
}

/* Made and locked under another name first, so that nobody takes it for one that was left behind. */
int spool_session__create(struct spool_session *session, int root_fd, const char *host, uint64_t session_id, uid_t uid,
			  gid_t gid)
{
	char name[SPOOL_DIR_NAME_SZ], new_name[SPOOL_DIR_NAME_SZ + 4];
	int err = 0;

	memset(session, 0, sizeof(*session));
	session->dir_fd = session->account_fd = -1;
	session->account.session_id = session_id;
	session->gid = gid;
	shard_host_name(session->host, host);
	spool_dir_name(name, session->host, session_id);
	snprintf(new_name, sizeof(new_name), "%s.new", name);
	if (mkdirat(root_fd, new_name, 0700))
		return -errno;
	session->dir_fd = openat(root_fd, new_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (session->dir_fd >= 0)
		session->account_fd = openat(session->dir_fd, SPOOL_ACCOUNT,
					     O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (session->account_fd < 0 || flock(session->account_fd, LOCK_EX | LOCK_NB))
		err = -errno;
	if (!err)
		err = save_account(session);
	if (!err)
		err = share_dir(session->dir_fd, uid, gid);
	if (!err && renameat(root_fd, new_name, root_fd, name))
		err = -errno;
	if (!err)
		return 0;
	if (session->dir_fd >= 0)
		unlinkat(session->dir_fd, SPOOL_ACCOUNT, 0);
	unlinkat(root_fd, new_name, AT_REMOVEDIR);
	return fail(session, err);
}

/* A file that was being put: known to the account, or in nobody's count. */
static int settle(struct spool_session *session, const struct spool_entry *entry)
{
	char name[SPOOL_ENTRY_NAME_SZ], whole_name[SPOOL_ENTRY_NAME_SZ];

	spool_entry_name(name, entry, false);
	spool_entry_name(whole_name, entry, true);
	if (entry->seq >= session->account.next_seq)
		return unlinkat(session->dir_fd, name, 0) ? -errno : 0;
	/* The uploader looks whether it is whole. */
	return renameat(session->dir_fd, name, session->dir_fd, whole_name) ? -errno : 0;
}

static int settle_all(struct spool_session *session)
{
	DIR *dir = dir_open(session->dir_fd, ".", 0);
	const struct dirent *found;
	struct spool_entry entry;
	bool whole;
	int err = 0;

	while (!err && (found = dir_next(dir)))
		if (!spool_entry_parse(found->d_name, &entry, &whole) && !whole)
			err = settle(session, &entry);
	return dir_close(dir, err);
}

static void count_emitted(struct spool_account *account, char class, uint32_t row_cnt)
{
	account->emitted += row_cnt;
	account->emitted_baseline += spool_is_baseline(class) ? row_cnt : 0;
}

static void count_lost(struct spool_account *account, char class, uint32_t row_cnt)
{
	account->lost += row_cnt;
	account->lost_baseline += spool_is_baseline(class) ? row_cnt : 0;
}

/* From what is there; what was sent already is in nobody's memory. */
static int rebuild_account(struct spool_session *session)
{
	struct spool_account *account = &session->account;
	struct spool_entries entries = {0};
	int err = spool_list(session->dir_fd, &entries);

	*account = (struct spool_account){.session_id = account->session_id, .next_seq = SEQ_SKIP};
	for (size_t i = 0; !err && i < entries.cnt; i++) {
		count_emitted(account, entries.items[i].class, entries.items[i].row_cnt);
		account->next_seq = entries.items[i].seq + SEQ_SKIP;
	}
	vec_free(&entries);
	return err ? err : save_account(session);
}

int spool_session__adopt(struct spool_session *session, int root_fd, const char *name)
{
	struct stat st;
	int err;

	memset(session, 0, sizeof(*session));
	session->dir_fd = session->account_fd = -1;
	session->over = true;
	err = spool_dir_parse(name, session->host, &session->account.session_id);
	if (err)
		return err;
	session->dir_fd = openat(root_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (session->dir_fd < 0)
		return -errno;
	if (fstat(session->dir_fd, &st))
		return fail(session, -errno);
	session->gid = st.st_gid;
	session->account_fd =
		openat(session->dir_fd, SPOOL_ACCOUNT, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
	if (session->account_fd < 0 || flock(session->account_fd, LOCK_EX | LOCK_NB))
		return fail(session, -errno);
	if (fstat(session->account_fd, &st) || !S_ISREG(st.st_mode) || !st.st_nlink)
		return fail(session, -EAGAIN); /* its owner has just removed it */
	if (st.st_nlink > 1)
		return fail(session, -EPERM); /* somebody else's file, by another name */
	err = load_account(session);
	if (err)
		err = rebuild_account(session);
	if (!err)
		err = settle_all(session);
	if (err)
		return fail(session, err);
	spool_drop_spares(session->dir_fd, NULL);
	spool_session__count_refused(session);
	return 0;
}

static int write_frame(int fd, const struct protocol_frame *frame, const void *bytes)
{
	uint8_t header[PROTOCOL_FRAME_HEADER_SZ];
	struct iovec parts[] = {{header, sizeof(header)}, {(void *)bytes, frame->sz}};
	size_t part = 0;

	protocol_frame__put(header, frame);
	while (part < 2) {
		ssize_t n = writev(fd, parts + part, 2 - part);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n && parts[part].iov_len)
			return -ENOSPC;
		for (; part < 2 && (size_t)n >= parts[part].iov_len; part++)
			n -= parts[part].iov_len;
		if (part < 2) {
			parts[part].iov_base = (uint8_t *)parts[part].iov_base + n;
			parts[part].iov_len -= n;
		}
	}
	return 0;
}

/*
 * A spare file under that name, *room what is in it already; -ENOENT: there is none.  The directory is the uploader's:
 * what it may have put there instead is not written to.
 */
static int take_spare(struct spool_session *session, const char *name, uint64_t *room)
{
	char spare_name[SPOOL_SPARE_NAME_SZ];
	struct stat st;
	uint32_t spares;

	while ((spares = atomic_load(&session->slot->spares))) {
		unsigned int number = __builtin_ctz(spares);
		int fd;

		atomic_fetch_and(&session->slot->spares, ~(1u << number));
		spool_spare_name(spare_name, number);
		fd = openat(session->dir_fd, spare_name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
		if (fd < 0)
			continue;
		if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_nlink == 1 && st.st_uid == geteuid()) {
			spool_free_bytes(&session->shared->spare_bytes, spool_disk_sz(st.st_size));
			*room = st.st_size;
			if (!renameat(session->dir_fd, spare_name, session->dir_fd, name))
				return fd;
		}
		unlinkat(session->dir_fd, spare_name, 0);
		close(fd);
	}
	return -ENOENT;
}

/* *room: bytes that are in it and are to be written over. */
static int open_file(struct spool_session *session, const char *name, uint64_t *room)
{
	int fd = take_spare(session, name, room);

	if (fd >= 0)
		return fd;
	*room = 0;
	/* What bears the name by now is of an agent that was killed, or the uploader's, to whom the directory belongs.
	 */
	unlinkat(session->dir_fd, name, 0);
	fd = openat(session->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	/* Root's uploader is another user: it reads them as its group's, whatever our umask is. */
	if (fd < 0 || geteuid() || (!fchown(fd, (uid_t)-1, session->gid) && !fchmod(fd, 0640)))
		return fd < 0 ? -errno : fd;
	close(fd);
	unlinkat(session->dir_fd, name, 0);
	return -EPERM;
}

/* The frame comes to the disk first, then into the account, then into sight. */
int spool_session__put(struct spool_session *session, char class, uint32_t row_cnt, const void *bytes, size_t sz)
{
	struct spool_entry entry = {.seq = session->account.next_seq, .row_cnt = row_cnt, .class = class};
	struct protocol_frame frame = {.kind = class == SPOOL_END ? PROTOCOL_END : PROTOCOL_BLOCK, .seq = entry.seq};
	char name[SPOOL_ENTRY_NAME_SZ], whole_name[SPOOL_ENTRY_NAME_SZ];
	struct spool_account before = session->account;
	uint64_t file_sz = PROTOCOL_FRAME_HEADER_SZ + sz, room;
	int fd, err;

	if (sz > PROTOCOL_PAYLOAD_MAX || entry.seq > PROTOCOL_SEQ_MAX)
		return -EOVERFLOW;
	frame.sz = sz;
	frame.crc = crc32c(0, bytes, sz);
	spool_entry_name(name, &entry, false);
	spool_entry_name(whole_name, &entry, true);
	fd = open_file(session, name, &room);
	if (fd < 0)
		return fd;
	err = write_frame(fd, &frame, bytes);
	/* Written over and then cut: ext4 writes a file to the disk at once that was cut to nothing before. */
	if (!err && room > file_sz && ftruncate(fd, (off_t)file_sz))
		err = -errno;
	if (close(fd) && !err)
		err = -errno;
	if (!err) {
		session->account.next_seq++;
		count_emitted(&session->account, class, row_cnt);
		session->account.ended |= class == SPOOL_END;
		err = save_account(session);
	}
	if (!err && renameat(session->dir_fd, name, session->dir_fd, whole_name))
		err = -errno;
	if (err) {
		session->account = before;
		unlinkat(session->dir_fd, name, 0);
		return err;
	}
	atomic_fetch_add(&session->shared->used_bytes, spool_disk_sz(file_sz));
	atomic_store(&session->slot->drained, false);
	return 0;
}

static bool is_inflight(const struct spool_slot *slot, uint64_t seq)
{
	return seq >= atomic_load(&slot->inflight_from) && seq <= atomic_load(&slot->inflight_to);
}

static uint64_t disk_sz_of(const struct spool_session *session, const char *name)
{
	struct stat st;

	return fstatat(session->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) ? 0 : spool_disk_sz(st.st_size);
}

/* A file that was given up. */
static uint64_t remove_counted(struct spool_session *session, const struct spool_entry *entry)
{
	char name[SPOOL_ENTRY_NAME_SZ];
	uint64_t disk_sz;

	spool_entry_name(name, entry, true);
	disk_sz = disk_sz_of(session, name);
	count_lost(&session->account, entry->class, entry->row_cnt);
	save_account(session);
	unlinkat(session->dir_fd, name, 0);
	if (session->shared)
		spool_free_bytes(&session->shared->used_bytes, disk_sz);
	return disk_sz;
}

/* Renamed first and looked at then: see spool_slot. */
static uint64_t drop_one(struct spool_session *session, const struct spool_entry *entry)
{
	char name[SPOOL_ENTRY_NAME_SZ], taken_name[SPOOL_ENTRY_NAME_SZ];
	struct spool_entry taken = *entry;

	taken.class = spool_refused(entry->class);
	spool_entry_name(name, entry, true);
	spool_entry_name(taken_name, &taken, true);
	if (renameat(session->dir_fd, name, session->dir_fd, taken_name))
		return 0;
	if (is_inflight(session->slot, entry->seq)) {
		renameat(session->dir_fd, taken_name, session->dir_fd, name);
		return 0;
	}
	return remove_counted(session, &taken);
}

uint64_t spool_session__drop(struct spool_session *session, char class, uint64_t need, uint32_t keep)
{
	struct spool_entries entries = {0};
	uint64_t freed = 0;
	uint32_t cnt = 0;

	if (!spool_list(session->dir_fd, &entries)) {
		for (size_t i = 0; i < entries.cnt; i++)
			cnt += entries.items[i].class == class;
		for (size_t i = 0; i < entries.cnt && cnt > keep && freed < need; i++) {
			if (entries.items[i].class != class)
				continue;
			cnt--;
			freed += drop_one(session, &entries.items[i]);
		}
	}
	vec_free(&entries);
	return freed;
}

void spool_session__expire(struct spool_session *session, time_t before, time_t *oldest)
{
	struct spool_entries entries = {0};
	char name[SPOOL_ENTRY_NAME_SZ];
	struct stat st;

	*oldest = 0;
	if (!spool_list(session->dir_fd, &entries)) {
		/* They were made in the order of their numbers. */
		for (size_t i = 0; i < entries.cnt && !*oldest; i++) {
			spool_entry_name(name, &entries.items[i], true);
			if (fstatat(session->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW))
				continue;
			if (st.st_mtime < before)
				drop_one(session, &entries.items[i]);
			else
				*oldest = st.st_mtime;
		}
	}
	vec_free(&entries);
}

void spool_session__count_refused(struct spool_session *session)
{
	struct spool_entries entries = {0};

	if (!spool_list(session->dir_fd, &entries))
		for (size_t i = 0; i < entries.cnt; i++)
			if (spool_is_refused(entries.items[i].class))
				remove_counted(session, &entries.items[i]);
	vec_free(&entries);
}

void spool_session__count_unput(struct spool_session *session, char class, uint32_t row_cnt)
{
	count_emitted(&session->account, class, row_cnt);
	count_lost(&session->account, class, row_cnt);
	save_account(session);
}

static int pack_loss(const struct spool_session *session, uint64_t ts, struct shard_buf *block)
{
	struct shard_block_header header = {
		.kind = SHARD_BLOCK_ROWS, .codec = SHARD_CODEC_ZSTD, .session_id = session->account.session_id};
	struct shard_stage *stage = shard_stage__new(&shard_tables[SHARD_TABLE_LOSS], 2);
	struct shard_packer packer = {0};
	struct shard_row row = {0};
	int err;

	if (!stage)
		return -errno;
	row.values[LOSS_TS].u64 = ts;
	row.values[LOSS_CLASS].str = loss_name(WL_LOSS_SPOOL);
	row.values[LOSS_EMITTED].u64 = session->account.emitted;
	row.values[LOSS_LOST].u64 = session->account.lost;
	err = shard_stage__append(stage, &row);
	row.values[LOSS_CLASS].str = loss_name(WL_LOSS_SPOOL_BASELINE);
	row.values[LOSS_EMITTED].u64 = session->account.emitted_baseline;
	row.values[LOSS_LOST].u64 = session->account.lost_baseline;
	if (!err)
		err = shard_stage__append(stage, &row);
	if (!err)
		err = shard_packer__pack(&packer, stage, &header, block);
	shard_packer__clear(&packer);
	shard_stage__free(stage);
	return err;
}

int spool_session__tell_loss(struct spool_session *session)
{
	struct spool_account *account = &session->account;
	uint64_t lost = account->lost, ts = monotonic_ns();
	struct shard_buf block = {0};
	int err;

	/* The newest row holds, also where the machine was started anew meanwhile and its clock with it. */
	if (ts <= account->told_ts)
		ts = account->told_ts + 1;
	err = pack_loss(session, ts, &block);
	if (!err)
		err = spool_session__put(session, SPOOL_TOTALS, 0, block.items, block.cnt);
	if (!err) {
		account->told_lost = lost;
		account->told_ts = ts;
		err = save_account(session);
	}
	vec_free(&block);
	return err;
}

bool spool_session__is_empty(const struct spool_session *session)
{
	struct spool_entries entries = {0};
	bool empty = !spool_list(session->dir_fd, &entries) && !entries.cnt;

	vec_free(&entries);
	return empty;
}

uint64_t spool_session__used(const struct spool_session *session)
{
	struct spool_entries entries = {0};
	char name[SPOOL_ENTRY_NAME_SZ];
	uint64_t used = 0;

	if (!spool_list(session->dir_fd, &entries)) {
		for (size_t i = 0; i < entries.cnt; i++) {
			spool_entry_name(name, &entries.items[i], true);
			used += disk_sz_of(session, name);
		}
	}
	vec_free(&entries);
	return used;
}

void spool_session__close(struct spool_session *session, int root_fd, bool remove)
{
	char name[SPOOL_DIR_NAME_SZ];

	if (session->dir_fd < 0)
		return;
	spool_drop_spares(session->dir_fd, session->shared);
	if (remove && spool_session__is_empty(session)) {
		spool_dir_name(name, session->host, session->account.session_id);
		unlinkat(session->dir_fd, SPOOL_ACCOUNT, 0);
		unlinkat(root_fd, name, AT_REMOVEDIR);
	}
	fail(session, 0);
}
