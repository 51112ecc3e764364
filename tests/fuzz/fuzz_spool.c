// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * libFuzzer: a session's directory in the spool as another user may have left it, with any account, any names and any
 * frames, which a recording then adopts, fills, counts and drops.
 */
#include "net/send/spool_session.h"

#include "base/bytes.h"
#include "shard/crc32c.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz);

#define NAME        "host-0123456789abcdef"
#define SESSION_ID  0x0123456789abcdefULL
#define ACCOUNT_SZ  80
#define ACCOUNT_CRC 76
#define FILE_CNT    4
#define NEED(ok)                 \
	do {                     \
		if (!(ok))       \
			abort(); \
	} while (0)

static char dir[] = "/tmp/whylate-fuzz-spool-XXXXXX";

static void put_file(int dir_fd, const char *name, const uint8_t *bytes, size_t sz)
{
	int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0)
		return;
	NEED(write(fd, bytes, sz) == (ssize_t)sz);
	close(fd);
}

static void empty(int dir_fd)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fdopendir(fd);
	struct dirent *entry;

	NEED(stream);
	while ((entry = readdir(stream)))
		unlinkat(dir_fd, entry->d_name, 0);
	closedir(stream);
}

/* The last byte of the input decides whether magic, session and checksum are those that are believed. */
static void put_account(int dir_fd, const uint8_t *bytes, size_t sz, bool repaired)
{
	uint8_t account[ACCOUNT_SZ] = {0};

	memcpy(account, bytes, sz < ACCOUNT_SZ ? sz : ACCOUNT_SZ);
	if (repaired) {
		memcpy(account, "WLSPOOL2", 8);
		put_le(account + 8, SESSION_ID, 8);
		put_le(account + ACCOUNT_CRC, crc32c(0, account, ACCOUNT_CRC), 4);
	}
	put_file(dir_fd, SPOOL_ACCOUNT, account, repaired || sz > ACCOUNT_SZ ? ACCOUNT_SZ : sz);
}

/* Names as the spool makes them, of any number, class and count. */
static void put_frames(int dir_fd, const uint8_t *bytes, size_t sz)
{
	struct spool_entry entry, parsed;
	char name[SPOOL_ENTRY_NAME_SZ];
	bool whole;

	for (size_t i = 0; i < FILE_CNT && sz >= 16; i++, bytes += 16, sz -= 16) {
		static const char classes[] = "rbtfexy";

		memcpy(&entry.seq, bytes, 8);
		entry.seq = bytes[8] & 1 ? entry.seq & 0xfffffffffff : bytes[0];
		entry.row_cnt = (uint32_t)(bytes[9] | bytes[10] << 8);
		entry.class = classes[bytes[11] % 7];
		spool_entry_name(name, &entry, bytes[12] & 1);
		if (!spool_entry_parse(name, &parsed, &whole))
			NEED(parsed.seq == entry.seq && parsed.class == entry.class && whole == (bytes[12] & 1));
		put_file(dir_fd, name, bytes, sz < 64 ? sz : 64);
	}
}

static void put_any_name(int dir_fd, const uint8_t *bytes, size_t sz)
{
	char name[64] = "", host[SHARD_HOST_MAX + 1];
	struct spool_entry entry;
	uint64_t session_id;
	bool whole;

	memcpy(name, bytes, sz < sizeof(name) - 1 ? sz : sizeof(name) - 1);
	spool_dir_parse(name, host, &session_id);
	if (strchr(name, '/'))
		return;
	(void)spool_entry_parse(name, &entry, &whole);
	if (*name)
		put_file(dir_fd, name, bytes, sz);
}

static void use(struct spool_session *session, int root_fd)
{
	struct spool_entries entries = {0};
	struct shard_buf out = {0};
	time_t oldest;

	NEED(!spool_list(session->dir_fd, &entries));
	for (size_t i = 1; i < entries.cnt; i++)
		NEED(entries.items[i - 1].seq <= entries.items[i].seq);
	for (size_t i = 0; i < entries.cnt; i++) {
		size_t before = out.cnt;

		if (spool_read(session->dir_fd, &entries.items[i], 1 << 16, &out))
			NEED(out.cnt == before);
	}
	spool_session__used(session);
	spool_session__count_refused(session);
	(void)spool_session__tell_loss(session);
	spool_session__expire(session, 1, &oldest);
	spool_session__drop(session, SPOOL_BASELINE, 1 << 20, 0);
	spool_session__is_empty(session);
	spool_session__close(session, root_fd, false);
	vec_free(&entries);
	vec_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz)
{
	static struct spool_shared shared;
	static int root_fd = -1;
	struct spool_session session;
	int dir_fd;

	if (root_fd < 0) {
		NEED(mkdtemp(dir));
		root_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		NEED(root_fd >= 0 && !mkdirat(root_fd, NAME, 0700));
	}
	if (!sz)
		return 0;
	dir_fd = openat(root_fd, NAME, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	NEED(dir_fd >= 0);
	sz--;
	put_account(dir_fd, bytes, sz, bytes[sz] & 1);
	if (sz > ACCOUNT_SZ)
		put_frames(dir_fd, bytes + ACCOUNT_SZ, sz - ACCOUNT_SZ);
	put_any_name(dir_fd, bytes, sz);
	if (!spool_session__adopt(&session, root_fd, NAME)) {
		memset(&shared, 0, sizeof(shared));
		session.shared = &shared;
		session.slot = &shared.slots[0];
		use(&session, root_fd);
	}
	empty(dir_fd);
	close(dir_fd);
	return 0;
}
