/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of this room share; for them only. */
#ifndef WHYLATE_NET_PROJECT_PROJECT_INTERNAL_H
#define WHYLATE_NET_PROJECT_PROJECT_INTERNAL_H

#include "base/idmap.h"
#include "net/project/project.h"
#include "net/project/rowbinary.h"
#include "net/project/schema.h"
#include "shard/growing.h"
#include "shard/inputs.h"
#include "shard/unpack.h"

#define PROJECT_FACTS_MAX   1024 /* of a session */
#define PROJECT_VALUE_MAX   4096
#define PROJECT_LOSSES_MAX  65536
#define PROJECT_PATH_PREFIX "build:"

struct project_fact {
	char *key, *value;
};

/* The newest totals of a class on a CPU. */
struct project_loss {
	char class[32];
	uint64_t cpu, emitted, lost;
};

/* A session's requests of one hour of its clock. */
struct project_hour {
	uint32_t no;           /* its clock / PROJECT_HOUR_NS */
	uint64_t version;      /* its session's, when its last block came */
	uint64_t sent_version; /* that the database has the causes of */
	uint64_t analysed_ts;  /* or first seen, CLOCK_MONOTONIC */
};

struct project_session {
	uint64_t id;
	char host[SHARD_HOST_MAX + 1];
	char *recording; /* the directory of its first file */
	VEC(struct project_fact) facts;
	VEC(struct project_loss) losses;
	VEC(uint32_t) files;    /* indexes into projector->shards.files */
	uint64_t forgotten_cnt; /* how often its host was, until this turn */
	bool clock_known;
	bool clock_shared;                      /* the database has one of it */
	int64_t clock_ns;                       /* from its monotonic clock to CLOCK_REALTIME, by its first anchors */
	int64_t mono_anchor_ns, wall_anchor_ns; /* 0: not seen */
	uint64_t min_ts, max_ts;                /* of its intervals; min > max: none */
	uint64_t version;                       /* blocks seen, of any table */
	uint64_t interval_rows;
	uint64_t grown_ts;              /* when its last block was seen, CLOCK_MONOTONIC */
	uint64_t sent_version;          /* that the database has */
	VEC(struct project_hour) hours; /* with requests, as they came */
	bool asked;                     /* which of its blocks the database has */
};

/* A stored block of intervals. */
struct project_block {
	uint64_t id;
	uint32_t session, file;
	uint64_t off;
	uint32_t row_cnt;
	uint64_t min_ts;
	bool done;   /* certainly in the database */
	bool listed; /* in the table `blocks` */
	bool bad;
};

struct projector {
	struct project_opts opts;
	struct clickhouse *server;
	struct schema_server about;
	bool applied;
	uint64_t name, rng;
	struct shard_growing shards; /* its open file serves the reading of blocks, too */
	struct idmap session_ids;
	VEC(struct project_session) sessions;
	struct idmap block_ids; /* (session, block) → index into blocks */
	VEC(struct project_block) blocks;
	size_t pending_from; /* all blocks before it are done and listed */
	uint64_t gate;       /* 0: none */
	char *columns;
	/* Memory of the block that is read. */
	uint32_t file_no;
	struct shard_unpacker unpacker;
	struct shard_buf body;
	struct rowbinary rows;
	VEC(uint64_t) parts; /* a block's categories */
	uint64_t rolled_ts;  /* when days were last looked at for rollups, CLOCK_MONOTONIC; 0: not yet */
	bool denial_said, keep_denial_said;
	uint16_t horizon;        /* blocks of days before it are not to be in the database; 0: none is too old */
	uint16_t causes_horizon; /* likewise, of hours that are analysed */
	uint64_t kept_ts;        /* when days were dropped last, CLOCK_MONOTONIC; 0: not yet */
	struct project_stats stats;
	int code; /* of the statement that failed, and the server's words */
	bool was_away;
	char text[CLICKHOUSE_TEXT_SZ];
};

/* project.c: keeps what the server said, since the end of a turn is other statements.  err 0: nothing. */
void projector__note_failure(struct projector *projector, int err);
bool projector__is_stopped(const struct projector *projector);

/* project_scan.c: files → sessions and blocks.  0 or -errno. */
int projector__scan(struct projector *projector);
/* Which block this is, wherever it is stored. */
uint64_t project_block_id(const struct shard_block_header *header);
/* The day of CLOCK_REALTIME on which the block begins, since 1970; false where its session has no clock. */
bool projector__day(const struct projector *projector, const struct project_block *block, uint16_t *day);
const char *project_session__fact(const struct project_session *session, const char *key);
void project_session__clear(struct project_session *session);

/* project_rows.c: decodes a block; its rows are appended to projector->rows.  0; -EBADMSG: damaged; -errno. */
struct project_sums {
	uint64_t rows, latency_ns; /* the latter as the database adds: modulo 2^64 */
	double weight;
};
int projector__put_rows(struct projector *projector, const struct project_block *block, struct project_sums *sums);
/* The text as it is, or its hash where texts are to be redacted; buf is memory for it. */
#define PROJECT_REDACTED_SZ 96
const char *projector__redacted(const struct projector *projector, const char *text, char buf[PROJECT_REDACTED_SZ]);

/* project_gate.c */
/* Nobody else inserts from now on, and projector__ask_known() may look: 0; -EAGAIN: it is another one's turn; -EACCES:
 * the user may not make a gate; -errno.
 */
int projector__take_turn(struct projector *projector);
void projector__end_turn(struct projector *projector);
/* Of a cluster: waits until the server that is asked has what the others have.  0 or as clickhouse__do(). */
int projector__sync(struct projector *projector);
/* Marks the blocks that the database has. */
int projector__ask_known(struct projector *projector);
/* Servers with tokens remember those of rows that were deleted: asks how often hosts were forgotten. */
int projector__ask_forgotten(struct projector *projector);
/* Of a block, until its host is forgotten. */
#define PROJECT_TOKEN_SZ 64
void project_token(char token[PROJECT_TOKEN_SZ], const struct project_session *session, uint64_t block);
/* projector->rows, of the blocks from … to (exclusive) of that day. */
int projector__insert(struct projector *projector, size_t from, size_t to);
/* Notes in the database that blocks are in it. */
int projector__list_done(struct projector *projector);

/*
 * project_clocks.c: of a session whose blocks came to several collectors one alone has the anchors.  Takes what others
 * have put into the database; and puts there what is not.  0 or as clickhouse__ask().
 */
int projector__take_clocks(struct projector *projector);
int projector__put_clocks(struct projector *projector);

/* project_keep.c: drops days that are too old; the blocks of those count as done.  0 or as clickhouse__ask(). */
int projector__keep(struct projector *projector);
int projector__ask_horizon(struct projector *projector);
bool projector__is_expired(const struct projector *projector, const struct project_block *block);

/* project_state.c: sessions, facts, loss that the database has not got.  0 or -errno. */
int projector__put_state(struct projector *projector);
const char *project_session__host(const struct project_session *session);
/* Of CLOCK_REALTIME; 0: not known. */
uint64_t project_session__wall_ns(const struct project_session *session, uint64_t ts);
/* The rows so far, into that table; they are forgotten then. */
int projector__send(struct projector *projector, struct rowbinary *rows, const char *table_and_columns);

/* project_causes.c: a block of the session belongs to these hours.  0 or -ENOMEM. */
int project_session__touch_hours(struct project_session *session, const struct shard_block_header *header);
/* Analyses the hours that have grown.  0 or -errno. */
int projector__put_causes(struct projector *projector);

/* project_rollups.c: sums of the days whose rows are not those that were summed.  0 or -errno. */
int projector__put_rollups(struct projector *projector);

#endif
