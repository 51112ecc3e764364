/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `collect --project`: the projection of the store in a process of its own, beside the collector. */
#ifndef WHYLATE_FLEET_COLLECT_PROJECT_H
#define WHYLATE_FLEET_COLLECT_PROJECT_H

#include "fleet/projection.h"
#include "net/collect/store.h"

/*
 * Starts it: 0 or -errno.  To be called by the user who is to run it, and before there are threads.  It ends with its
 * parent; if the projection fails it begins again after some seconds.
 */
int collect_project_start(const struct project_options *options, struct clickhouse *server);

/* Deletes a host from the store and (NULL: there is none) the database: an exit code, after lines that say what went.
 */
int collect_forget_host(const struct store_opts *opts, const char *host, struct clickhouse *server);

#endif
