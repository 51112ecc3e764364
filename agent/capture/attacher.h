/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A process of its own, whylate-attach, that makes the links of probes and holds them.
 *
 * The kernel takes back a link of many sites that it is in the middle of making when the caller is killed, and Linux
 * 6.18 gives up on that half-way ("failed to unregister, leaking uprobe"): the breakpoints stay in the target.  So the
 * caller is one whom nobody has a reason to kill: it is in a session of its own, ignores the terminal's signals and
 * does nothing else.  When the agent has ended, however it ended, it finishes the call that it is in, closes every link
 * and ends.
 *
 * Closing a link may wait for as long as any thread of the machine sits in a call that returns through a probe (SRCU),
 * long after the breakpoints are gone.  So whatever is closed is closed in a thread of its own, and nobody waits.
 *
 * One thread of the agent only.
 */
#ifndef WHYLATE_CAPTURE_ATTACHER_H
#define WHYLATE_CAPTURE_ATTACHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct attacher;

/* Where in a file, and with what. */
struct attach_site {
	uint64_t file_off;
	uint64_t semaphore_off; /* 0: none */
	uint64_t cookie;
};

/* By which some links of a group are closed. */
enum attach_part {
	ATTACH_ALL,
	ATTACH_LIBRARY, /* of a file that anybody may map */
	ATTACH_PROGRAM, /* of the target's own executable */
	ATTACH_WIDE,    /* likewise, in links that name no process */
};

/* Sites of one kind, in one file. */
struct attach_sites {
	uint32_t group; /* by which they are closed */
	enum attach_part part;
	pid_t pid; /* the process: no other that maps the file has a probe; 0 with ATTACH_WIDE */
	int program_fd;
	int file_fd;
	bool is_return;
	bool multi; /* one uprobe_multi link, not a link for each site */
	const struct attach_site *sites;
	size_t cnt;
};

/*
 * Starts the process, with what privilege this one has, of which it keeps what attaching takes: uprobe_multi links take
 * CAP_BPF and CAP_PERFMON, a link for each site CAP_SYS_ADMIN as well.  NULL and errno.
 */
struct attacher *attacher__new(bool multi);
/* Closes everything, and waits at most so long until that is done; NULL-safe. */
void attacher__free(struct attacher *attacher, uint64_t patience_ns);

/*
 * 0, or -errno with none of them attached and in *refused the first one that the kernel does not take (cnt: it is none
 * of them by itself); -EOWNERDEAD: the process is gone.
 */
int attacher__attach(struct attacher *attacher, const struct attach_sites *sites, size_t *refused);

/*
 * Closes the links of a group, or of a part of it, those of one process or of all (0), the latest first.  Does not
 * wait: the ticket, never 0, says when it is done; 0: the process is gone, and its links with it.
 */
uint32_t attacher__close(struct attacher *attacher, uint32_t group, enum attach_part part, pid_t pid);
/* Is what was closed by then, that ticket included, still under way? */
bool attacher__is_closing(struct attacher *attacher, uint32_t ticket);
/* How many are under way, after waiting for all of them for at most patience_ns. */
size_t attacher__closing(struct attacher *attacher, uint64_t patience_ns);

pid_t attacher__pid(const struct attacher *attacher);

/* Has the process ended by itself, which means that it was killed?  What it held is detached then. */
bool attacher__is_gone(struct attacher *attacher);

#endif
