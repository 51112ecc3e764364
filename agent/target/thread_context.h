/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where a process publishes the trace that a thread works for: OpenTelemetry's thread context (OTEP 4947). */
#ifndef WHYLATE_TARGET_THREAD_CONTEXT_H
#define WHYLATE_TARGET_THREAD_CONTEXT_H

#include "target/target.h"

/*
 * The offset of the thread-local pointer `otel_thread_ctx_v1` from the thread pointer, the same in all threads.  0, or
 * -errno: -ENOENT no file of the process defines it, -ENOTSUP it does not lie in the static thread-local storage,
 * -EACCES or -ESRCH the memory cannot be read.
 */
int thread_context_slot(pid_t pid, const target_mappings *mappings, int64_t *slot);

#endif
