/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A `whylate collect` under test, run by nobody, and what agents send it: bodies of frames with known blocks, posted by
 * curl.
 */
#ifndef WHYLATE_TESTS_COLLECTOR_H
#define WHYLATE_TESTS_COLLECTOR_H

#include "harness.h"

#include "net/wire/protocol.h"

#define SESSION_ID     0x0123456789abcdefULL
#define SESSION_TEXT   "0123456789abcdef"
#define ANSWER_SZ      1024
#define ROWS_PER_BLOCK 200

struct collector {
	struct process process;
	struct path store;
	bool tls;
	int port; /* kept over restarts */
};

/* Starts one on a free port of loopback and waits until it listens; the store is STORE_NAME below the temporary
 * directory. */
bool collector_start(struct collector *collector, const char *store_name, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The same store and port once more. */
bool collector_restart(struct collector *collector, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* SIGTERM, and its exit code. */
int collector_stop(struct collector *collector);
void collector_end(struct collector *collector);

/* Runs curl with these arguments; what follows http(s)://127.0.0.1:PORT is `path`.  The status, 0: there was none. */
int collector_ask(struct collector *collector, char answer[ANSWER_SZ], const char *path, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Posts a file to the session of that host. */
int collector_post(struct collector *collector, char answer[ANSWER_SZ], const char *host, const char *body_path,
		   const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* The answer has the status, says why, and so does a line in the log. */
void collector_expect(struct collector *collector, int status, int expected, const char *answer, const char *why);
/* Whether /healthz answers so within ten seconds: it tells what became of a batch after who sent it was told. */
bool collector_turns(struct collector *collector, int status, const char *text);
/* A value of /metrics; -1 where it is not there. */
double collector_metric(struct collector *collector, const char *name);

/* The blocks of a session: number seq is the same in every run. */
struct stream {
	struct shard_buf *blocks;
	size_t cnt;
};

bool stream_make(struct stream *stream, size_t cnt);
void stream_free(struct stream *stream);
/* Appends a frame with these bytes. */
void body_put(struct shard_buf *body, uint8_t kind, uint64_t seq, const uint8_t *bytes, size_t sz);
/* Frames `from` up to and without `to` as a file below the temporary directory. */
struct path stream_body(const struct stream *stream, size_t from, size_t to, const char *name);
/* How often each block is anywhere in the store: false and a failed check unless exactly once, where wanted[i] (NULL:
 * all). */
bool stream_is_stored(const struct stream *stream, const char *store, const bool *wanted);

#endif
