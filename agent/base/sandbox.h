/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is left to a process that reads what others wrote: an allowlist of system calls (seccomp), no new privileges,
 * and no file that it writes but below the directories that it names (Landlock, on kernels that have it).  For good,
 * and for all threads that begin later: to be entered before there is a second one.
 */
#ifndef WHYLATE_BASE_SANDBOX_H
#define WHYLATE_BASE_SANDBOX_H

#include <stdbool.h>

struct sandbox {
	bool network;        /* sockets */
	bool threads;        /* new threads, but no new process */
	int writable_fds[2]; /* directories below which files may be made, written and removed; -1: none */
};

/* 0 or -errno; what it does not let pass fails with EPERM from then on. */
int sandbox_enter(const struct sandbox *sandbox);

#endif
