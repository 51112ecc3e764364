/* SPDX-License-Identifier: GPL-2.0-or-later */
/* resolve.c finds processes, resolve_cgroup.c those of a cgroup. */
#ifndef WHYLATE_TARGET_RESOLVE_INTERNAL_H
#define WHYLATE_TARGET_RESOLVE_INTERNAL_H

#include "target/nearest.h"
#include "target/resolve.h"

#define LISTED_MAX    10
#define NEAREST_SHOWN 3

/* Names that there are, of which those are shown that are near to what was asked for. */
struct offered {
	struct nearest nearest;
	VEC(char *) names;
};

void resolve_offer(void *owner, const char *name);
void resolve_offered_free(struct offered *offered);
/* The names that are near, or where none is, some that there are. */
void resolve_say_none(const char *what, struct offered *offered, const char *see);

/* NULL: it is not among them. */
const struct target_process *resolve_find(const target_processes *processes, pid_t pid);
/* Its outermost ancestor, itself included, that is among them; a process between two of them need not be. */
pid_t resolve_root_of(const target_processes *processes, const struct target_process *process);
/* Once: 0 or -ENOMEM. */
int resolve_add_pid(struct target_set *set, pid_t pid);

/* 0, or -errno after a line. */
int resolve_cgroup_path(const char *path, struct target_set *set);
int resolve_cgroup_name(enum target_kind kind, const char *name, struct target_set *set);

#endif
