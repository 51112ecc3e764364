/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A spool directory as both of its sides see it, and what they share in memory.
 *
 *   DIR/HOST-SESSION/account          counts of that session (spool_session.h); whoever holds its lock owns the session
 *   DIR/HOST-SESSION/SEQ-CLASS-ROWS   one frame each, the bytes of the wire (protocol.h)
 *   DIR/HOST-SESSION/spare-N          was a frame that was sent: to be written again
 *
 * The directory is the queue: the recording adds files, the uploader, a process of its own without privilege, removes
 * them when the collector has them.  Either may be killed at any moment, and a file is there whole or not at all.
 */
#ifndef WHYLATE_NET_SEND_SPOOL_FILES_H
#define WHYLATE_NET_SEND_SPOOL_FILES_H

#include "net/wire/protocol.h"

#include <stdatomic.h>

/* What is in a file, so that dropping needs no look into it.  In the order in which they are dropped. */
enum spool_class {
	SPOOL_TOTALS = 'r',   /* running totals: any later one says the same and more */
	SPOOL_BASELINE = 'b', /* rows of `interval`, all of them baseline */
	SPOOL_TAIL = 't',     /* rows of `interval` */
	SPOOL_FACTS = 'f',    /* other rows */
	SPOOL_END = 'e',      /* the end frame */
	SPOOL_REFUSED = 'x',  /* given up: to be counted and removed by the recording's side */
	SPOOL_REFUSED_BASELINE = 'y',
};

/* What becomes of that class when it is given up. */
static inline char spool_refused(char class)
{
	return class == SPOOL_BASELINE || class == SPOOL_REFUSED_BASELINE ? SPOOL_REFUSED_BASELINE : SPOOL_REFUSED;
}
static inline bool spool_is_refused(char class)
{
	return class == SPOOL_REFUSED || class == SPOOL_REFUSED_BASELINE;
}
static inline bool spool_is_baseline(char class)
{
	return class == SPOOL_BASELINE || class == SPOOL_REFUSED_BASELINE;
}

struct spool_entry {
	uint64_t seq;
	uint32_t row_cnt; /* of `interval` */
	char class;       /* enum spool_class */
};

struct spool_entries {
	struct spool_entry *items;
	size_t cnt, room;
};

#define SPOOL_ACCOUNT       "account"
#define SPOOL_ENTRY_NAME_SZ sizeof(".0123456789ab-t-65536")
#define SPOOL_DIR_NAME_SZ   (SHARD_HOST_MAX + sizeof("-0123456789abcdef"))

/* With a point before it: not whole yet. */
void spool_entry_name(char name[SPOOL_ENTRY_NAME_SZ], const struct spool_entry *entry, bool whole);
/* 0, or -EINVAL for any other name. */
int spool_entry_parse(const char *name, struct spool_entry *entry, bool *whole);

void spool_dir_name(char name[SPOOL_DIR_NAME_SZ], const char *host, uint64_t session_id);
int spool_dir_parse(const char *name, char host[SHARD_HOST_MAX + 1], uint64_t *session_id);

/* The whole files of a session's directory, lowest number first: 0 or -errno. */
int spool_list(int dir_fd, struct spool_entries *entries);

/*
 * Appends the frame of that file to out.  0; -ENOENT: it is gone; -EBADMSG: it is not what its name says; -E2BIG: it
 * has more than max bytes; -errno.  out->cnt is as before on failure.
 */
int spool_read(int dir_fd, const struct spool_entry *entry, size_t max, struct shard_buf *out);

/*
 * Making a file costs more than writing it: a file system passes over all inodes that were freed in the last seconds.
 * So a few files of frames that were sent stay, for the next ones.
 */
#define SPOOL_SPARES        16
#define SPOOL_SPARE_MAX     (64u << 10) /* larger ones go */
#define SPOOL_SPARE_NAME_SZ sizeof("spare-15")

void spool_spare_name(char name[SPOOL_SPARE_NAME_SZ], unsigned int number);

struct spool_slot;
struct spool_shared;
/* The file of a frame that was sent, of so many bytes: it becomes a spare one, or goes. */
void spool_retire(int dir_fd, const struct spool_entry *entry, uint64_t sz, struct spool_slot *slot,
		  struct spool_shared *shared);
/* Removes the spare files: bytes on disk that were freed.  `shared` is NULL where they are in nobody's count. */
uint64_t spool_drop_spares(int dir_fd, struct spool_shared *shared);

/* What a file of that size takes on a disk. */
static inline uint64_t spool_disk_sz(uint64_t sz)
{
	return (sz + 4095) / 4096 * 4096;
}

/* --- shared memory ------------------------------------------------------------------------------------------------ */

#define SPOOL_SLOTS 64 /* sessions at a time; others wait */

/* One session.  The recording's side fills and empties it. */
struct spool_slot {
	_Atomic uint32_t generation; /* odd: in use; host and session_id change only between an even and an odd one */
	char host[SHARD_HOST_MAX + 1];
	uint64_t session_id;
	/*
	 * The uploader's: frames of these numbers may be on the wire.  It says so before it opens a file; dropping
	 * renames the file before it looks: one of the two sees the other.  from > to: none.
	 */
	_Atomic uint64_t inflight_from, inflight_to;
	_Atomic bool refused; /* by the uploader: there are files of class SPOOL_REFUSED */
	_Atomic bool drained; /* by the uploader: it found nothing to send */
	/* A bit for each spare file, set by the uploader when it is there, cleared by whoever takes it. */
	_Atomic uint32_t spares;
};

struct spool_shared {
	_Atomic uint64_t used_bytes;  /* of all frames in the slots' sessions, as on disk */
	_Atomic uint64_t spare_bytes; /* of their spare files */
	_Atomic uint64_t stop_ts;     /* CLOCK_MONOTONIC: not beyond this, and not after everything is sent; 0: go on */
	_Atomic uint64_t sent_blocks, sent_bytes, duplicate_blocks, refused_blocks, request_cnt, failure_cnt;
	_Atomic uint64_t cpu_ns; /* of the uploader */
	struct spool_slot slots[SPOOL_SLOTS];
};

/* Never below zero: a file may have been counted by nobody. */
void spool_free_bytes(_Atomic uint64_t *counted, uint64_t sz);

#endif
