/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a process that reads hostile input may still do: an allowlist of system calls (seccomp), no new privileges, and
 * files below the directories that it names (Landlock, on kernels that have it).  For good, and for all threads that
 * begin later: it is entered before there is a second one.
 */
#ifndef WHYLATE_BASE_SANDBOX_H
#define WHYLATE_BASE_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sandbox {
	bool network;      /* sockets; none of TCP gets a port of its own (Landlock) */
	bool accepts_only; /* no connect(); of TCP, only sockets that listen already (Landlock) */
	bool threads;      /* new threads, but no new process */
	bool links;        /* BPF links, and a socket that is open already */
	bool read_only;    /* no file is opened for writing, made or removed */
	bool computes; /* memory, time, and descriptors that are open or come over a socket: nothing by name, no threads
			*/
	int writable_fds[3]; /* directories below which files may be made, written and removed, or files; -1: none */
	const int *readable_fds; /* files, and directories below which files may be read */
	size_t readable_cnt;     /* 0: all files may be read */
};

/*
 * 0 or -errno: the first part that failed; the others hold all the same.  From then on a call that the sandbox does not
 * allow fails with EPERM, a file with EACCES.
 */
int sandbox_enter(const struct sandbox *sandbox);
/* Has a sanitizer built this program, which looks around by calls of its own?  Then there is no allowlist. */
bool sandbox_is_sanitized(void);
/* The allowlist alone, for a process that has no_new_privs: 0 or -errno. */
int sandbox_filter_calls(const struct sandbox *sandbox);

/* Of a libseccomp filter: the action for these calls; then the filter is loaded unless err is set, and freed. */
int sandbox_filter_add(void *filter, uint32_t action, const int *calls, size_t cnt);
int sandbox_filter_load(void *filter, int err);

#endif
