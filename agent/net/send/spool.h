/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The spool on the side of the recording: what was recorded rests on disk until the collector has it.  Bounded in size
 * and age: when it is full, superseded totals go first, then the oldest blocks of the baseline, then the oldest of the
 * tail, then other facts; rows of intervals that went are counted and told to the collector as loss of class `spool`.
 * Never waits for anybody.  One thread; its directory may be shared with other recordings, each has sessions of its
 * own.
 */
#ifndef WHYLATE_NET_SEND_SPOOL_H
#define WHYLATE_NET_SEND_SPOOL_H

#include "net/send/spool_files.h"

#include <sys/stat.h>
#include <sys/types.h>

#define SPOOL_BYTES_MIN (1u << 20)

struct spool_opts {
	const char *dir;     /* made if it does not exist (0700) */
	uint64_t max_bytes;  /* on disk, of this recording and of what it took over */
	uint64_t max_age_ns; /* of a frame */
	const char *owner;   /* a user's name: whose it becomes where it is root's and empty; NULL: stays root's */
	struct spool_shared *shared;
};

/*
 * Opens the directory, and makes it if need be, with the owner of spool_opts; *st is what it has become.  A descriptor
 * or -errno; -EKEYREJECTED: it is root's.
 */
int spool_root_open(const char *dir, const char *owner, struct stat *st);
/* A line that says so. */
void spool_root_say(const char *dir, const char *owner, int err);

struct spool;

/* Opens it and takes over what is left from earlier recordings.  NULL and errno; EKEYREJECTED: it is root's. */
struct spool *spool__new(const struct spool_opts *opts);

/* Our session: nothing of it is sent before spool__publish().  0 or -errno. */
int spool__begin(struct spool *spool, const char *host, uint64_t session_id);
void spool__publish(struct spool *spool);
/* Nothing was recorded: removes what was not published. */
void spool__abandon(struct spool *spool);

/*
 * A block of our session.  0; -errno where it had to be dropped, which is counted: -ENOSPC: no room (ours, or the
 * disk's), -EOVERFLOW: larger than the spool.
 */
int spool__put(struct spool *spool, char class, uint32_t row_cnt, const void *block, size_t sz);

/* Now and then: counts what was refused, expires, tells losses, takes over and removes what is finished. */
void spool__tick(struct spool *spool, uint64_t now_ts);
/* Our session is over: what is left are its last counts and its end, put by spool__tick() when all else is sent. */
void spool__finish(struct spool *spool);
/* Everything is sent and told, of all sessions. */
bool spool__is_done(const struct spool *spool);

void spool__set_limits(struct spool *spool, uint64_t max_bytes, uint64_t max_age_ns);

struct spool_stats {
	uint64_t emitted, lost; /* of our session, rows of `interval` */
	uint64_t dropped_bytes; /* of all, since spool__new() */
	uint64_t adopted_cnt;   /* sessions taken over that had something to send */
};
void spool__stats(const struct spool *spool, struct spool_stats *stats);
/* The directory's; -1: it could not be opened. */
int spool__root_fd(const struct spool *spool);

/* What is not sent stays for the next recording. */
void spool__free(struct spool *spool);

#endif
