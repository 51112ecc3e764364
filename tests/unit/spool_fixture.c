// SPDX-License-Identifier: GPL-2.0-or-later
#include "spool_fixture.h"

#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct spool *spool_fixture__open(struct spool_fixture *fixture, uint64_t max_bytes)
{
	struct spool_opts opts = {
		.dir = fixture->dir.path, .max_bytes = max_bytes, .max_age_ns = DAY_NS, .shared = &fixture->shared};

	memset(&fixture->shared, 0, sizeof(fixture->shared));
	fixture->spool = spool__new(&opts);
	CU_ASSERT_PTR_NOT_NULL_FATAL(fixture->spool);
	return fixture->spool;
}

struct spool *spool_fixture__begin(struct spool_fixture *fixture, uint64_t max_bytes)
{
	struct spool *spool;

	test_dir__make(&fixture->dir);
	spool = spool_fixture__open(fixture, max_bytes);
	CU_ASSERT_EQUAL_FATAL(spool__begin(spool, "host", TEST_SESSION), 0);
	spool__publish(spool);
	return spool;
}

void spool_fixture__end(struct spool_fixture *fixture)
{
	spool__free(fixture->spool);
	test_dir__remove(&fixture->dir);
}

int spool_fixture__session_dir(const struct spool_fixture *fixture, uint64_t session_id)
{
	char name[SPOOL_DIR_NAME_SZ], path[200];

	spool_dir_name(name, "host", session_id);
	snprintf(path, sizeof(path), "%s/%s", fixture->dir.path, name);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* A payload that tells its number. */
int spool_fixture_put(struct spool *spool, char class, uint32_t seq, size_t sz)
{
	static uint8_t bytes[1 << 20];

	memset(bytes, (int)seq, sz);
	memcpy(bytes, &seq, sizeof(seq));
	return spool__put(spool, class, class == SPOOL_BASELINE || class == SPOOL_TAIL ? ROW_CNT : 0, bytes, sz);
}

void spool_fixture__list(const struct spool_fixture *fixture, uint64_t session_id, struct spool_entries *entries)
{
	int fd = spool_fixture__session_dir(fixture, session_id);

	entries->cnt = 0;
	if (fd < 0)
		return;
	CU_ASSERT_EQUAL(spool_list(fd, entries), 0);
	close(fd);
}

/* What an uploader does with a collector that takes everything. */
uint64_t spool_fixture__send_all(struct spool_fixture *fixture, struct shard_buf *sent)
{
	uint64_t cnt = 0;

	for (size_t i = 0; i < SPOOL_SLOTS; i++) {
		struct spool_slot *slot = &fixture->shared.slots[i];
		struct spool_entries entries = {0};
		int fd;

		if (!(slot->generation & 1))
			continue;
		fd = spool_fixture__session_dir(fixture, slot->session_id);
		CU_ASSERT_FATAL(fd >= 0);
		CU_ASSERT_EQUAL(spool_list(fd, &entries), 0);
		for (size_t e = 0; e < entries.cnt; e++) {
			size_t before = sent->cnt;

			CU_ASSERT_EQUAL(spool_read(fd, &entries.items[e], PROTOCOL_BODY_MAX, sent), 0);
			spool_retire(fd, &entries.items[e], sent->cnt - before, slot, &fixture->shared);
			cnt++;
		}
		slot->drained = true;
		vec_free(&entries);
		close(fd);
	}
	return cnt;
}

void spool_fixture__write(const struct spool_fixture *fixture, const char *name, const uint8_t *bytes, size_t sz)
{
	int dir_fd = spool_fixture__session_dir(fixture, TEST_SESSION);
	int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	CU_ASSERT_FATAL(fd >= 0 && write(fd, bytes, sz) == (ssize_t)sz);
	close(fd);
	close(dir_fd);
}

void spool_fixture__remove(const struct spool_fixture *fixture, const char *name)
{
	int dir_fd = spool_fixture__session_dir(fixture, TEST_SESSION);

	unlinkat(dir_fd, name, 0);
	close(dir_fd);
}
