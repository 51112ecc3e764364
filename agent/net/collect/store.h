/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where a collector keeps what it receives: STORE/HOST/YYYY-MM-DD/HOST-SESSION-NO.wls, shards that any reader can read
 * at any time.  The blocks of a batch of requests are appended, then an account of them (received.h), then the file is
 * synced; only then may anybody say that they are stored.  One thread only; one process per directory.
 */
#ifndef WHYLATE_NET_COLLECT_STORE_H
#define WHYLATE_NET_COLLECT_STORE_H

#include "net/wire/protocol.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store_opts {
	const char *dir;       /* made if it does not exist (0750) */
	uint64_t keep_ns;      /* delete shards that got nothing for so long; 0: never */
	uint64_t max_bytes;    /* on disk; beyond it the oldest shards of the host that has most go; 0: no limit */
	uint64_t rotate_bytes; /* 0: 64 MiB, or a part of max_bytes */
	uint32_t session_max;  /* in memory at once, with a file open each; 0: 1024 */
	/* Of each host; beyond them its own oldest shards go, and its own idle sessions. */
	uint64_t host_max_bytes;   /* 0: no limit but max_bytes */
	uint32_t host_max_files;   /* 0: 65536 */
	uint32_t host_session_max; /* in memory at once; 0: 64 */
	/* For tests; NULL: the real ones. */
	uint64_t (*monotonic)(void);
	uint64_t (*wall)(void);
};

struct store_frame {
	struct protocol_frame frame;
	const uint8_t *payload; /* of a block that was checked */
};

struct store_result {
	uint32_t stored, duplicates;
	uint64_t stored_bytes;
	uint32_t bad_frame; /* index of the one at fault, for -EEXIST and -ENOBUFS */
	struct store_session *session;
};

struct store_stats {
	uint64_t bytes, files, sessions;       /* bytes: on disk */
	uint64_t deleted_files, deleted_bytes; /* by retention */
	uint64_t repaired_files, repaired_bytes;
	uint64_t aside_files; /* torn ones that no collector wrote: renamed to NAME.torn */
};

struct store;

/*
 * Opens the directory, repairs and closes the shards that were open when it was left.  NULL and errno: EBUSY: another
 * process has it.
 */
struct store *store__open(const struct store_opts *opts);

/* Whether the directory is still there and still the same: 0, -ENOENT and the like.  It is opened again if it came
 * back. */
int store__check(struct store *store);

/*
 * A request's frames, as a whole or not at all.  0: they are stored once the next store__commit() says so; until then
 * the payloads may go.  -EEXIST: one of the numbers is stored with other bytes; -ENOBUFS: too many gaps; -EAGAIN:
 * commit first; -ENOSPC, -EDQUOT, -EIO, …
 */
int store__put(struct store *store, const char *host, uint64_t session_id, const struct store_frame *frames,
	       uint32_t cnt, struct store_result *result);
/* Ends the batch.  What became of each request's part is told by store__committed() until the next store__put(). */
void store__commit(struct store *store);
/* 0: it is on disk; -errno: it is not in the store. */
int store__committed(const struct store_result *result);

/* Closes idle sessions, deletes by age and size.  To be called every few seconds, outside of a batch. */
void store__tick(struct store *store);
void store__stats(const struct store *store, struct store_stats *stats);
/* CLOCK_REALTIME as the store takes it: that of its opening and the monotonic time since, so that no jump moves it. */
uint64_t store__wall_ns(const struct store *store);

/* Deletes all that a host has, damaged shards that were set aside too: 0; -ENOENT: it has nothing; -errno. */
int store__forget(struct store *store, const char *host);

/* Closes the sessions' shards in order.  NULL-safe. */
void store__close(struct store *store);

#endif
