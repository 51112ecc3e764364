/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files store*.c share; for them only. */
#ifndef WHYLATE_NET_COLLECT_STORE_INTERNAL_H
#define WHYLATE_NET_COLLECT_STORE_INTERNAL_H

#include "base/vec.h"
#include "net/collect/seqset.h"
#include "net/collect/store.h"
#include "net/wire/received.h"
#include "shard/pack.h"

/* One host's share of the store: its files, and how many of its sessions are in memory. */
struct store_host {
	char name[SHARD_HOST_MAX + 1];
	uint64_t disk_sz;
	uint32_t session_cnt;
	VEC(struct store_part *) parts;
};

/* One file of the store. */
struct store_part {
	struct store_host *host;
	uint64_t session_id;
	uint32_t no;
	int32_t day; /* since 1970 */
	uint64_t sz;
	uint64_t disk_sz; /* what it takes on the disk */
	int64_t last_s;   /* when it last grew, CLOCK_REALTIME */
	bool open;        /* a session writes it */
};

/* One session of one host, while it is of interest. */
struct store_session {
	struct store_host *host;
	uint64_t id;
	struct seqset seqs; /* stored, and in this batch */
	uint32_t next_no;
	uint64_t used_ts; /* monotonic */
	/* The file at hand; fd < 0: none */
	int fd;
	struct store_part *part;
	uint64_t sz;      /* with what is not committed */
	uint64_t safe_sz; /* what is */
	uint32_t block_cnt;
	bool is_new;      /* its directory entry is not on disk yet */
	bool has_account; /* something in it is committed */
	/* The batch */
	bool touched;
	bool ended;
	int err;     /* of the last commit */
	bool broken; /* nobody knows what its file holds */
	VEC(struct received) pending;
};

struct store {
	char *dir;
	struct store_opts opts;
	int fd, lock_fd;
	dev_t dev;
	ino_t ino;
	uint64_t wall_base_ns, monotonic_base_ns;
	VEC(struct store_host *) hosts; /* by name */
	VEC(struct store_session *) sessions;
	VEC(struct store_session *) touched;
	struct received_scan scan;
	struct shard_packer packer;
	struct shard_stage *stage;
	struct shard_buf block;
	struct shard_row row;
	struct store_stats stats;
	uint64_t retention_ts;
	uint64_t syncfs_ns, fdatasync_ns; /* what they take lately, the latter per file */
	uint32_t sync_cnt;
	bool committed; /* a batch has ended whose sessions are still marked */
};

#define STORE_DAY_SZ  sizeof("YYYY-MM-DD")
#define STORE_NAME_SZ (SHARD_HOST_MAX + sizeof("-0123456789abcdef-000000.wls"))
#define STORE_PATH_SZ (SHARD_HOST_MAX + 1 + STORE_DAY_SZ + STORE_NAME_SZ)

/* store_files.c: names, and what is found on disk. */
void store_part__path(const struct store_part *part, char path[STORE_PATH_SZ]);
int32_t store__today(const struct store *store);
/* Fills store->hosts; repairs and closes what was left open. */
int store__find_parts(struct store *store);
/* Creates the session's next file of the day: 0 or -errno. */
int store__create_part(struct store *store, struct store_session *session);
/* Closes the session's file, if it has one: in order, with index and trailer, or as it is. */
void store__leave_part(struct store *store, struct store_session *session, bool finish);
/* Unlinks the part, then its directories where nothing else is in them, and forgets it: 0 or -errno. */
int store__delete_part(struct store *store, struct store_part *part);

/* store_hosts.c: hosts, and what each may have. */
/* The host of that name, made if need be; NULL: no memory. */
struct store_host *store__host(struct store *store, const char *name);
/* Forgets it unless it has files or sessions. */
void store__drop_host(struct store *store, struct store_host *host);
/* A copy of the part becomes the host's: NULL: no memory. */
struct store_part *store__add_part(struct store *store, const struct store_part *part);
/* Forgets the part; its file is the caller's business. */
void store__drop_part(struct store *store, struct store_part *part);
/* Its file has so many bytes now, `blocks` of 512 on the disk. */
void store__measure_part(struct store *store, struct store_part *part, uint64_t sz, uint64_t blocks);
/* Whether a host, or all of them, have more than they may. */
bool store__is_over(const struct store *store);
/* Deletes by age, then what hosts have beyond their limits, then what all have beyond theirs. */
void store__retain(struct store *store);

/* store_session.c */
/* 0 with *found, read from disk if need be; -errno. */
int store__session(struct store *store, const char *host, uint64_t session_id, struct store_session **found);
/* The host's that was used least recently and is not of this batch, or NULL. */
struct store_session *store__idlest_session(const struct store *store, const struct store_host *host);
/* Closes its file as it is, or in order, and forgets it. */
void store__forget_session(struct store *store, struct store_session *session, bool finish);
void store__forget_sessions(struct store *store, bool finish);
/* The checksums of frames that are on disk: sets crcs[i] and found[i] for the cnt ascending numbers. */
int store__stored_crcs(struct store *store, const struct store_session *session, const uint64_t *seqs, uint32_t *crcs,
		       bool *found, uint32_t cnt);

#endif
