/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `collect --project`: the projection of the store in a process of its own, beside the collector. */
#ifndef WHYLATE_FLEET_COLLECT_PROJECT_H
#define WHYLATE_FLEET_COLLECT_PROJECT_H

#include "fleet/projection.h"
#include "net/collect/store.h"

#include <sys/types.h>

/*
 * Forks: its pid; or 0 in the new process, which has none of the descriptors but the standard ones and *collector_fd, a
 * pidfd of its parent; or -errno.  To be called by the user who is to run it, and before there are threads.
 */
pid_t collect_project_fork(int *collector_fd);
/*
 * What the new process does, in a confined child, until the collector has ended, by whatever; if the projection fails
 * it begins again after some seconds.
 */
_Noreturn void collect_project_run(const struct project_options *options, struct clickhouse *server, int collector_fd);

/* Deletes a host from the store and (NULL: there is none) the database: an exit code, after lines that say what went.
 */
int collect_forget_host(const struct store_opts *opts, const char *host, struct clickhouse *server);

#endif
