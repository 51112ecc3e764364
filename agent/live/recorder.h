/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A child process that records without end into small shards, which this process reads while they are written. */
#ifndef WHYLATE_LIVE_RECORDER_H
#define WHYLATE_LIVE_RECORDER_H

#include "session/options.h"

/*
 * Records into `dir`, a new shard every shard_ns.  It ends on SIGTERM, and when this process ends, however that ends;
 * its exit code is that of `record`.  The pid, or -1 and errno.
 */
pid_t recorder_start(const struct record_options *options, const char *dir, uint64_t shard_ns);

#endif
