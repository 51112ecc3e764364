/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What this process may do, and giving up what it does not need.  Capabilities belong to threads: all of this is for
 * the time before there is a second one.
 */
#ifndef WHYLATE_BASE_PRIVILEGE_H
#define WHYLATE_BASE_PRIVILEGE_H

#include <stdbool.h>
#include <stddef.h>

struct privilege {
	const char *name; /* "CAP_BPF" */
	const char *what; /* what it is needed for */
	bool had;
	bool required; /* nothing can be recorded without it */
};

#define PRIVILEGE_CNT 7

/* What a recording can use; CAP_SYS_ADMIN stands for CAP_BPF and CAP_PERFMON as in the kernel. */
void privilege_survey(struct privilege privileges[PRIVILEGE_CNT]);

/*
 * From now on with the rights of the user who started the program, whatever its file gave it (make install SETCAP=1): 0
 * or -errno after a line.
 */
int privilege_as_caller(void);
/* 0, or -EPERM after one line that names what is missing. */
int privilege_check(void);

/* What only some recordings do later on. */
struct privilege_uses {
	bool more_processes; /* functions of children are still to be looked up and probed */
	bool changes_user;   /* a child becomes another user, and is replaced and ended */
	bool spools;         /* the spool is in a directory of another user, whose it gets */
	bool writes_foreign; /* the output is in a directory of another user */
};

/*
 * Gives up, for good, all capabilities that no part of the recording uses.  Failing to is said at most in the log: what
 * runs with more than it needs still runs.
 */
void privilege_narrow(const struct privilege_uses *uses);

/*
 * The recording is attached.  Gives up what only loading and looking around took, and the system calls that no
 * recording makes any more: becoming or changing another program, loading BPF programs and kernel modules, changing
 * mounts, users or the clock, as far as the uses allow.
 */
void privilege_confine(const struct privilege_uses *uses);

/*
 * For a process whose recorder, another one, is under way: no program that it starts has a privilege that it has not
 * itself.  One that only shows what was recorded keeps what its files take: the output in a directory of another user,
 * recordings of another user.
 */
void privilege_confine_viewer(bool reads_foreign, bool writes_foreign);
/* One that keeps events, and starts programs as another user. */
void privilege_confine_watch(void);

#endif
