/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Control groups as targets: where one lies by what systemd, a container runtime or Kubernetes calls it, and which
 * processes are in its subtree.  Version 2, and each hierarchy of version 1, with controllers or only a name.
 */
#ifndef WHYLATE_TARGET_CGROUP_H
#define WHYLATE_TARGET_CGROUP_H

#include "target/target.h"

#include <limits.h>

struct target_cgroup {
	uint64_t id;         /* as the kernel has it in its kernfs node; 0: none */
	uint32_t hierarchy;  /* of version 1, as in /proc/self/cgroup; 0: version 2 */
	char path[PATH_MAX]; /* its directory */
};

typedef VEC(struct target_cgroup) target_cgroups; /* vec_free() */

/* A directory of a mounted hierarchy, or a path in one as /proc/PID/cgroup has it. 0 or -errno (-ENOENT). */
int target_cgroup_open(const char *path, struct target_cgroup *cgroup);

enum cgroup_kind { CGROUP_UNIT, CGROUP_CONTAINER, CGROUP_POD };

/*
 * Does a directory of that name belong to the unit, the container (id or its beginning) or the pod?
 * "nginx" is nginx.service; docker-ID.scope, cri-containerd-ID.scope, libpod-ID.scope and ID are containers;
 * kubepods-burstable-podUID.slice, with '_' for '-', and podUID are pods.
 */
bool target_cgroup_matches(enum cgroup_kind kind, const char *dir_name, const char *wanted);

/* Those that match, outermost only, in the first hierarchy that has any. 0 or -ENOMEM. */
int target_cgroups_find(enum cgroup_kind kind, const char *wanted, target_cgroups *found);
/* Names of units, containers or pods, for nearest names: each is handed to `take`. */
void target_cgroups_names(enum cgroup_kind kind, void (*take)(void *owner, const char *name), void *owner);

/* The living processes of the subtree are added to the list. 0, -ENOENT when the cgroup is gone, -ENOMEM. */
int target_cgroup_processes(const struct target_cgroup *cgroup, target_processes *processes);
/* Is that very cgroup still there? */
bool target_cgroup_exists(const struct target_cgroup *cgroup);
/* Where a process is, in version 2 if it is not in its root, else in a hierarchy of version 1; "" when unknown. */
void target_cgroup_of(pid_t pid, char *buf, size_t sz);

#endif
