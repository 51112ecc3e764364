/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * GET /metrics of a recording, answered by a process of its own without any privilege.  The two share memory: a request
 * asks for a snapshot, which the recording copies there when it comes round.
 */
#ifndef WHYLATE_NET_SEND_METRICS_SERVER_H
#define WHYLATE_NET_SEND_METRICS_SERVER_H

#include "net/send/live_metrics.h"

#include <stdbool.h>
#include <sys/types.h>

struct metrics_server;

/*
 * Listens, and forks.  To be called before there are threads, and while the caller may still become another user.
 * insecure: on any address, not only on loopback.  NULL and errno after a line that says why.
 */
struct metrics_server *metrics_server__new(const char *address, bool insecure);
/* Has anybody asked since the last snapshot? */
bool metrics_server__wants(const struct metrics_server *server);
void metrics_server__put(struct metrics_server *server, const struct live_metrics *metrics);
pid_t metrics_server__pid(const struct metrics_server *server);
/* The process ends, as it does where the caller is killed.  NULL-safe. */
void metrics_server__free(struct metrics_server *server);

#endif
