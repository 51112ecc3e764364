/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The projection of shards into ClickHouse: every kept interval once, and the state of every session.  The shards stay
 * the truth; the database can be dropped and made again.
 *
 * Exactly once.  A stored block is known by its session and a hash of its header, whose fields hold the payload's
 * checksum: the same block has the same number in every file of every collector.  Rows carry it, and an INSERT is one
 * part of one partition, whole or not there.  So the table itself says which blocks it has.  What is left is an INSERT
 * of a projector that was killed, still under way in the server while its successor looks:
 *   - servers with tokens (≥ 22.2) ignore the second INSERT of a block;
 *   - older ones get rows through a gate, a table of engine Null with a materialized view into `intervals`, whose name
 *     no other projector ever uses.  A projector drops all other gates (DROP waits for their INSERTs, and later ones
 *     find no table), then looks which blocks are there, then inserts.  A gate that is younger than half a minute is
 *     another projector's turn, which it ends by itself after some seconds.
 *
 * Threads: one per projector.
 */
#ifndef WHYLATE_NET_PROJECT_PROJECT_H
#define WHYLATE_NET_PROJECT_PROJECT_H

#include "net/project/clickhouse.h"

#include <stddef.h>

/* An hour of a session, by its clock: that of its host, so that all collectors cut its sessions alike. */
#define PROJECT_HOUR_NS UINT64_C(3600000000000)
struct project_segment {
	uint64_t from_ts, until_ts;
	const char *const *paths; /* the files of its session */
	size_t path_cnt;
};

/* What made requests late, as the caller's analysis has it; strings are borrowed, NULL: not known. */
struct project_cause {
	uint32_t rank; /* 0: of all causes */
	const char *category, *what, *kind, *role, *type, *function, *call_path, *object, *culprit, *culprit_host;
	double share, share_lo, share_hi, late_ns, typical_ns;
	double tail_weight; /* how many late requests the segment had */
	uint64_t late_sid;  /* of these the one that it held up most */
};

/* A late request, and which cause held it up most. */
struct project_late {
	uint64_t sid, latency_ns, ns; /* ns: of latency_ns, by that cause */
	double weight;
	uint32_t rank;
};

/* Where an analysis puts what it finds: 0 or -errno. */
struct project_sink {
	int (*cause)(void *owner, const struct project_cause *cause);
	int (*late)(void *owner, const struct project_late *late);
	void *owner;
};

struct project_opts {
	const char *const *paths; /* stores, directories, shards */
	size_t path_cnt;
	const char *cluster; /* tables that are to be made are made on it; NULL: on the server */
	const char *name;    /* of this projector, the same when it is started again; NULL: by host and first path */
	bool redact;         /* types and command lines may be personal data: only their hashes */
	/* Keyed with this (HMAC), where it is not NULL: who has not got it cannot try what a hash may be of. */
	const void *salt;
	size_t salt_sz;
	uint64_t patience_ns;    /* how long to try again without an answer of the server */
	uint64_t keep_ns;        /* days that are older leave the database; 0: none */
	uint64_t keep_causes_ns; /* likewise what was found of them: causes, and late requests by cause */
	uint64_t settle_ns;      /* a session that grows is analysed when nothing came for so long; 0: at once */
	/*
	 * Puts rank 0, the causes of requests that began in that segment, and the slowest of its late requests into the
	 * sink: 0 or -errno.  NULL: none are wanted.
	 */
	int (*causes)(void *owner, const struct project_segment *segment, const struct project_sink *sink);
	bool (*should_stop)(void *owner);
	void *owner;
};

struct project_stats {
	uint64_t blocks, rows;             /* inserted */
	uint64_t known_blocks, known_rows; /* were there before */
	uint64_t waiting_blocks,
		waiting_rows;            /* nothing says when they were: no clock anchors of their session so far */
	uint64_t bad_blocks, bad_rows;   /* damaged */
	uint64_t sessions, causes, days; /* days: rolled up */
	uint64_t inserts, retries;
};

struct projector;

/* NULL and errno. */
struct projector *projector__new(const struct project_opts *opts, struct clickhouse *server);
void projector__free(struct projector *projector);

/*
 * Brings what is new in the shards into the database.  0; -ECANCELED; else -errno after a line that says why.  Can be
 * called again: it reads on where files have grown.
 */
int projector__run(struct projector *projector);
void projector__stats(const struct projector *projector, struct project_stats *stats);

/* A session whose rows in the database are not those of its shards. */
struct project_difference {
	uint64_t session, block;
	const char *host;
	uint64_t shard_rows, database_rows, shard_latency_ns, database_latency_ns;
	double shard_weight, database_weight;
};

struct project_verdict {
	uint64_t sessions, blocks, rows, latency_ns; /* of the shards; modulo 2^64 */
	double weight;
	uint64_t missing_blocks, wrong_blocks; /* of those */
	uint64_t extra_blocks, extra_rows;     /* in the database only, of sessions that the shards have */
	uint64_t waiting_blocks, bad_blocks;   /* as in project_stats */
	uint64_t expired_blocks;               /* of days that are no longer to be in the database */
};

/* Compares counts and sums block by block; on_difference is called for each that differs.  0 or -errno. */
int projector__verify(struct projector *projector, struct project_verdict *verdict,
		      void (*on_difference)(void *owner, const struct project_difference *difference), void *owner);

/*
 * Deletes a host's rows from all tables, and waits until they are gone: 0; -ETIMEDOUT: the server is still at it; as
 * clickhouse__ask().  Blocks of it that are still in a store come back with the next projection.
 */
int project_forget(struct clickhouse *server, const char *host, uint64_t patience_ns);

#endif
