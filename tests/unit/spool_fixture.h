/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A spool in a directory of its own, and the other side of it. */
#ifndef WHYLATE_TESTS_SPOOL_FIXTURE_H
#define WHYLATE_TESTS_SPOOL_FIXTURE_H

#include "net/send/spool.h"
#include "net/send/spool_session.h"
#include "test_shard_util.h"

#define DAY_NS  (86400ULL * 1000000000)
#define ROW_CNT 10

struct spool_fixture {
	struct test_dir dir;
	struct spool_shared shared;
	struct spool *spool;
};

/* Opens the spool in the directory that is there. */
struct spool *spool_fixture__open(struct spool_fixture *fixture, uint64_t max_bytes);
/* Makes the directory and a spool in it, with session TEST_SESSION of `host`, published. */
struct spool *spool_fixture__begin(struct spool_fixture *fixture, uint64_t max_bytes);
void spool_fixture__end(struct spool_fixture *fixture);
/* To be closed; -1: it is not there. */
int spool_fixture__session_dir(const struct spool_fixture *fixture, uint64_t session_id);
/* A payload that tells its number; ROW_CNT rows where the class has any. */
int spool_fixture_put(struct spool *spool, char class, uint32_t seq, size_t sz);
void spool_fixture__list(const struct spool_fixture *fixture, uint64_t session_id, struct spool_entries *entries);
/* What an uploader does with a collector that takes everything: how many frames that were. */
uint64_t spool_fixture__send_all(struct spool_fixture *fixture, struct shard_buf *sent);
void spool_fixture__write(const struct spool_fixture *fixture, const char *name, const uint8_t *bytes, size_t sz);
void spool_fixture__remove(const struct spool_fixture *fixture, const char *name);

#endif
