/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of the threads seen so far, by tid and time: threads are renamed, and tids are used again.  Of threads that
 * have ended, and of those whose end nobody will tell, THREAD_NAMES_GONE are remembered, since rows may still name
 * them; of names that somebody had before, THREAD_NAMES_EARLIER.
 */
#ifndef WHYLATE_MODEL_THREAD_NAMES_H
#define WHYLATE_MODEL_THREAD_NAMES_H

#include <stddef.h>
#include <stdint.h>

#define THREAD_NAMES_GONE    16384
#define THREAD_NAMES_EARLIER 1024
/* A name is told after what happened under it, by at most this much. */
#define THREAD_NAMES_LAG_NS 100000ULL

struct thread_names;

struct thread_names *thread_names__new(void);
void thread_names__free(struct thread_names *names);
/* Remembers a copy of comm (up to 15 bytes), which the thread has had since that monotonic time. 0 or -ENOMEM. */
int thread_names__set(struct thread_names *names, uint32_t tid, uint64_t since_ts, const char *comm);
/*
 * The thread has ended, or nobody will tell when it does: its name goes when as many others have come here after it,
 * unless somebody has asked for it meanwhile.
 */
void thread_names__gone(struct thread_names *names, uint32_t tid);
/*
 * What it was called at that time: before its first name, that.  NULL when the thread was never seen, or is long gone;
 * valid until the next set or gone.
 */
const char *thread_names__get(const struct thread_names *names, uint32_t tid, uint64_t ts);

#endif
