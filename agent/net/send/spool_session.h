/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One session's directory in the spool, on the side that fills it (spool.c): its account, adding, dropping, counting.
 */
#ifndef WHYLATE_NET_SEND_SPOOL_SESSION_H
#define WHYLATE_NET_SEND_SPOOL_SESSION_H

#include "net/send/spool_files.h"

#include <sys/types.h>

/* What must outlive the process; written before a frame can be seen. */
struct spool_account {
	uint64_t session_id;
	uint64_t next_seq;
	uint64_t emitted;                         /* rows of `interval` that were given to the spool */
	uint64_t lost;                            /* those that it dropped, or that the collector refused */
	uint64_t emitted_baseline, lost_baseline; /* of these, rows of the baseline sample */
	uint64_t told_lost;
	uint64_t told_ts; /* of the newest row that told it */
	uint32_t ended;   /* the end frame was put */
};

struct spool_session {
	char host[SHARD_HOST_MAX + 1];
	struct spool_account account;
	gid_t gid; /* of the files, which the uploader reads as their group */
	int dir_fd;
	int account_fd; /* locked as long as we own the session */
	bool over;      /* whoever recorded it has ended */
	struct spool_shared *shared;
	struct spool_slot *slot;
};

/* Makes the directory, owned by uid and gid, or shared with the gid: 0 or -errno. */
int spool_session__create(struct spool_session *session, int root_fd, const char *host, uint64_t session_id, uid_t uid,
			  gid_t gid);
/*
 * Takes over what somebody left behind, whole frames and what is known of the others.  0; -EWOULDBLOCK: somebody owns
 * it; -EAGAIN: it is being made; -errno.
 */
int spool_session__adopt(struct spool_session *session, int root_fd, const char *name);

/* Adds a frame with this payload (SPOOL_END: without any).  0 or -errno; nothing has changed then. */
int spool_session__put(struct spool_session *session, char class, uint32_t row_cnt, const void *bytes, size_t sz);

/*
 * Drops the oldest frames of a class that are not on the wire until `need` bytes are free; the newest `keep` stay.
 * Bytes on disk that were freed.
 */
uint64_t spool_session__drop(struct spool_session *session, char class, uint64_t need, uint32_t keep);
/* Drops what was last changed before this time (CLOCK_REALTIME, s); *oldest: when what is left was, 0: nothing is. */
void spool_session__expire(struct spool_session *session, time_t before, time_t *oldest);

/* Counts what the uploader gave up, and removes it. */
void spool_session__count_refused(struct spool_session *session);
/* Counts rows that could not be put: as given and as lost. */
void spool_session__count_unput(struct spool_session *session, char class, uint32_t row_cnt);
/* Puts the counts as a row of `loss`: 0 or -errno. */
int spool_session__tell_loss(struct spool_session *session);

/* Whether no frame is left. */
bool spool_session__is_empty(const struct spool_session *session);
/* Bytes on disk. */
uint64_t spool_session__used(const struct spool_session *session);

/* Lets go; with `remove`, an empty directory goes as well. */
void spool_session__close(struct spool_session *session, int root_fd, bool remove);

#endif
