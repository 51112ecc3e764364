/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files collector*.c share; for them only. */
#ifndef WHYLATE_NET_COLLECT_COLLECTOR_INTERNAL_H
#define WHYLATE_NET_COLLECT_COLLECTOR_INTERNAL_H

#include "base/vec.h"
#include "net/collect/collector.h"
#include "net/collect/identity.h"
#include "net/collect/limiter.h"
#include "net/collect/metrics.h"
#include "net/collect/peers.h"
#include "net/wire/block_check.h"

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#define CHECKERS_MAX 8
#define CLIENT_SZ    64 /* a peer's address and port */

/* One TCP connection.  Its fields are under collector->connections_lock, but for those marked. */
struct connection {
	struct connection *next, *before;
	int fd;
	uint64_t deadline_ts;   /* 0: none, we are at work ourselves */
	uint64_t idle_since_ts; /* 0: a request is under way */
	bool served;            /* there was a request */
	bool refused;           /* the one under way is: it is only read to its end */
	bool excess;            /* beyond the limit: it is told so */
	bool shut;
	struct peer *peer; /* its address */
	/* Of the thread that serves it */
	char client[CLIENT_SZ];
	bool judged;
	enum identity_verdict verdict;
	const char *why;
	char *names; /* of its certificate */
};

/* One request from its header to its answer. */
struct request {
	struct request *next; /* in the committer's queue */
	struct collector *collector;
	struct MHD_Connection *mhd;
	struct connection *connection;
	char host[SHARD_HOST_MAX + 1];
	uint64_t session_id;
	bool is_get;
	bool closes;      /* its answer is the last one of the connection */
	uint64_t body_sz; /* announced */
	struct shard_buf body;
	struct peer *peer; /* whose memory the body is */
	VEC(struct store_frame) frames;
	uint64_t row_cnt; /* of the table interval */
	struct metrics_times times;
	/* What comes of it */
	enum refusal refusal;
	const char *why;
	int64_t bad_frame; /* -1: none in particular */
	unsigned retry_s;
	bool queued, decided;
	int err;
	struct store_result result;
};

struct collector {
	struct collector_opts opts;
	gnutls_x509_trust_list_t trust; /* NULL: no certificates of clients */
	struct MHD_Daemon *mhd;
	struct store *store;
	struct limiter limiter;
	struct metrics metrics;
	_Atomic bool stopping;
	_Atomic uint64_t body_bytes;
	_Atomic unsigned request_cnt; /* of them under way */

	pthread_mutex_t queue_lock;
	pthread_cond_t queue_cond;
	struct request *queue, **queue_end;
	bool queue_closed;
	pthread_t committer;
	bool committer_runs;
	int full_err; /* the committer's: of the last request, if the disk was full */

	pthread_mutex_t connections_lock;
	struct connection *connections;
	uint32_t connection_cnt;
	struct peers peers;

	pthread_mutex_t checkers_lock;
	struct block_checker *checkers[CHECKERS_MAX]; /* not in use */
	uint32_t checker_cnt;
};

/* collector_request.c: the callbacks of libmicrohttpd. */
enum MHD_Result collector_on_request(void *cls, struct MHD_Connection *mhd, const char *url, const char *method,
				     const char *version, const char *data, size_t *data_sz, void **request);
void collector_on_completed(void *cls, struct MHD_Connection *mhd, void **request,
			    enum MHD_RequestTerminationCode code);
void request__free_body(struct request *request);

/* collector_strict.c: why a request's header is refused for its form, a static string; NULL: it is not. */
const char *collector_why_not_strict(struct MHD_Connection *mhd, const char *method, const char *path,
				     const char *version);

/* collector_check.c: the body as frames, each checked. */
void request__check(struct request *request);
void request__refuse(struct request *request, enum refusal refusal, const char *why);
void collector__free_checkers(struct collector *collector);

/* collector_connection.c */
void collector_on_connection(void *cls, struct MHD_Connection *mhd, void **context,
			     enum MHD_ConnectionNotificationCode code);
struct connection *connection_of(struct MHD_Connection *mhd);
void connection__set_deadline(struct collector *collector, struct connection *connection, uint64_t in_ns);
void connection__set_idle(struct collector *collector, struct connection *connection);
/* Its request is refused, whatever else arrives of it: others need not wait for that. */
void connection__set_refused(struct collector *collector, struct connection *connection);
/* Whether the connection's client may write under that name: IDENTITY_FITS, or what is wrong and *why. */
enum identity_verdict connection__judge(struct collector *collector, struct connection *connection,
					struct MHD_Connection *mhd, const char *host, const char **why);
void collector__close_slow(struct collector *collector);

/* collector_commit.c: the thread that owns the store. */
int collector__start_committer(struct collector *collector);
void collector__queue(struct collector *collector, struct request *request);
/* Does what is in the queue, and ends. */
void collector__stop_committer(struct collector *collector);

#endif
