/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a user names as the target, and the processes that it is: PIDs, a command, a program, a port, or what systemd, a
 * container runtime or Kubernetes keeps in a control group.
 */
#ifndef WHYLATE_TARGET_RESOLVE_H
#define WHYLATE_TARGET_RESOLVE_H

#include "target/cgroup.h"

enum target_kind {
	TARGET_NOT_NAMED,
	TARGET_BY_PID,
	TARGET_BY_COMM,
	TARGET_BY_EXE,
	TARGET_BY_PORT,
	TARGET_BY_UNIT,
	TARGET_BY_CONTAINER,
	TARGET_BY_POD,
	TARGET_BY_CGROUP,
};

/* As on the command line; the names are its owner's. */
struct target_query {
	enum target_kind kind;
	VEC(const char *) names; /* several only of PIDs, commands, programs and ports */
	pid_t pidns_of;          /* PIDs are those in the PID namespace of this process; 0: ours */
};

struct target_set {
	/*
	 * The main process first, whose program symbols are looked up in; then the others, none a descendant of
	 * another. Their descendants belong to the target as well, unless there is a cgroup, which says who does.
	 */
	VEC(pid_t) pids;
	struct target_cgroup cgroup; /* id 0: none */
	char name[128];              /* "port 80"; "" for PIDs */
};

/* 0, or -errno after lines that say what is wrong and name candidates. */
int target_resolve(const struct target_query *query, struct target_set *set);
void target_set_free(struct target_set *set);
/* On stderr: each process with its command line and cgroup, for what a name resolved to. */
void target_set_say(const struct target_set *set);
/* The living processes of the target, the main process first; without children only those of `pids`. 0, -ESRCH,
 * -ENOMEM. */
int target_set_processes(const struct target_set *set, bool children, target_processes *processes);
/*
 * Of the processes those that are no descendants of another one of them are kept. 0 or -ENOMEM.
 */
int target_roots(const target_processes *processes, target_processes *roots);

#endif
