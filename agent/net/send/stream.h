/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A recording's way to a collector: the spool on our side, and the uploader (upload_process.h), a child or `whylate
 * upload`.  The two share a directory and a page of counters; the recording waits for neither network nor uploader.
 */
#ifndef WHYLATE_NET_SEND_STREAM_H
#define WHYLATE_NET_SEND_STREAM_H

#include "net/send/spool.h"
#include "net/send/upload_process.h"

struct stream_opts {
	struct upload_opts upload; /* of a child; url is NULL: `whylate upload` sends */
	const char *spool_dir;
	uint64_t spool_max_bytes;
	uint64_t spool_max_age_ns;
};

struct stream;

/*
 * Opens the spool and starts or finds the uploader; call it early, before there is anything that a child should not
 * have.  NULL and errno after one line that says what is wrong with what the user gave (a file that cannot be read, a
 * bad key).
 */
struct stream *stream__new(const struct stream_opts *opts);

/* Our session; a shard_writer's sink from then on (stream is its owner).  Held back until stream__publish(). */
int stream__begin(struct stream *stream, const char *host, uint64_t session_id);
void stream__put(void *stream, const struct shard_block_header *header, bool baseline, const void *bytes, size_t sz);
void stream__publish(struct stream *stream);
void stream__abandon(struct stream *stream);

/* Several times a second: wakes the uploader for what was put, and looks after losses, limits and its health. */
/* The uploading process, 0: there is none. */
pid_t stream__pid(const struct stream *stream);
void stream__tick(struct stream *stream);
void stream__set_limits(struct stream *stream, uint64_t max_bytes, uint64_t max_age_ns);

struct stream_stats {
	uint64_t sent_blocks, sent_bytes, duplicate_blocks, refused_blocks;
	uint64_t emitted_rows, lost_rows; /* of `interval`, of our session */
	uint64_t waiting_bytes;           /* still in the spool */
	uint64_t cpu_ns;                  /* of the uploader */
};
void stream__stats(const struct stream *stream, struct stream_stats *stats);

/*
 * Our session is over: sends what is left, for at most that long.  What is not sent stays in the spool for the next
 * recording.
 */
void stream__finish(struct stream *stream, uint64_t linger_ns);
void stream__free(struct stream *stream);

#endif
