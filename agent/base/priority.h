/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The scheduling class of the agent's threads.  SCHED_IDLE has a CPU only while no other thread wants it, and gives it
 * up at once to a thread that wakes up.  SCHED_BATCH shares the CPU like any other thread, but does not preempt when it
 * wakes up.  SCHED_OTHER of the highest nice value gets one soon after it wakes up, whoever has it.  From SCHED_IDLE to
 * the others takes CAP_SYS_NICE or an RLIMIT_NICE that allows the nice value.
 */
#ifndef WHYLATE_BASE_PRIORITY_H
#define WHYLATE_BASE_PRIORITY_H

#include <sched.h>
#include <stdbool.h>
#include <sys/types.h>

/* May a thread of this process become SCHED_BATCH again once it is SCHED_IDLE? */
bool priority_can_return(void);

/* tid 0: the calling thread.  0 or -errno. */
int priority_lower(pid_t tid); /* SCHED_IDLE */
int priority_raise(pid_t tid); /* SCHED_BATCH */
/* SCHED_OTHER, nice -20; what the thread starts meanwhile is of nice 0. */
int priority_prefer(pid_t tid);
/* All threads of this process that are SCHED_IDLE, but the calling one. */
void priority_raise_others(void);
/* priority_prefer() for all threads of a process. */
void priority_prefer_all(pid_t pid);

/*
 * The CPUs on which a thread that may use `ours` is not in the way of one that uses `theirs`: false where there are
 * none or where there is nothing to choose.
 */
bool priority_cpus(const cpu_set_t *ours, const cpu_set_t *theirs, cpu_set_t *apart);

#endif
