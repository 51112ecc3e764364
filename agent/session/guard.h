/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A process of its own, whylate-guard, that sleeps until the agent is killed.  The kernel takes the hooks of a killed
 * agent away in the agent's last steps, for which it needs some 30 ms of CPU time; as an idle task it gets them only
 * when nobody else wants the CPU: beside four programs that compute on two CPUs it took a minute, and the target paid
 * for the hooks meanwhile.  The guard gives the agent's threads the highest nice value then, and ends.
 */
#ifndef WHYLATE_SESSION_GUARD_H
#define WHYLATE_SESSION_GUARD_H

#include <sys/types.h>

/*
 * Called by a thread that gets a CPU at once: the guard acts when that thread ends.  It keeps CAP_SYS_NICE of the
 * thread's capabilities.  The process, or -errno.
 */
pid_t guard_start(void);
/* Ends it without a deed; nothing for a pid that is not positive.  Before the thread that started it ends. */
void guard_end(pid_t pid);

#endif
