/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Independent tasks on a few threads.  What a task computes must not depend on its worker: reports are reproducible. */
#ifndef WHYLATE_ANALYSIS_PARALLEL_H
#define WHYLATE_ANALYSIS_PARALLEL_H

#include <stddef.h>

#define PARALLEL_WORKERS_MAX 4

/* 0 or -errno.  `worker` is below parallel_workers(): an index into whatever scratch memory the caller keeps. */
typedef int (*parallel_fn)(void *ctx, size_t task, unsigned worker);

/* One per CPU that is online, at most PARALLEL_WORKERS_MAX. */
unsigned parallel_workers(void);
/* Runs every task once and waits for all; after a failure no further task begins, and that error is returned. */
int parallel_run(size_t task_cnt, parallel_fn fn, void *ctx);

#endif
