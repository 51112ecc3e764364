// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/resolve_internal.h"

#include "target/proc_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static uint64_t cpu_of(const struct target_process *process)
{
	target_processes one = {0};
	uint64_t cpu_ns = vec_push(&one, *process) ? 0 : target_cpu_ns(&one);

	vec_free(&one);
	return cpu_ns;
}

static const struct target_process *busiest(const target_processes *processes)
{
	const struct target_process *found = NULL;
	uint64_t most_ns = 0;

	for (size_t i = 0; i < processes->cnt; i++) {
		uint64_t cpu_ns = cpu_of(&processes->items[i]);

		if (!found || cpu_ns > most_ns) {
			found = &processes->items[i];
			most_ns = cpu_ns;
		}
	}
	return found;
}

/* Of those that listen the busiest, or the one that forked it; where none does, the busiest of all. */
static int main_process(const target_processes *members, pid_t *pid)
{
	target_port_owners owners = {0};
	target_processes listening = {0};
	const struct target_process *most;
	int err = target_port_owners_read(members, 0, &owners);

	for (size_t i = 0; i < owners.cnt && !err; i++)
		if (!resolve_find(&listening, owners.items[i].pid))
			err = vec_push(&listening, *resolve_find(members, owners.items[i].pid));
	most = busiest(listening.cnt ? &listening : members);
	*pid = most ? resolve_root_of(listening.cnt ? &listening : members, most) : 0;
	vec_free(&listening);
	vec_free(&owners);
	return err;
}

static int take_cgroup(const struct target_cgroup *cgroup, struct target_set *set)
{
	target_processes members = {0}, roots = {0};
	pid_t first = 0;
	int err = target_cgroup_processes(cgroup, &members);

	set->cgroup = *cgroup;
	if (err == -ENOENT || (!err && !members.cnt)) {
		log_error("cgroup '%s' %s", cgroup->path, err ? "has just been removed" : "has no process in it");
		err = -ESRCH;
	} else if (!err && resolve_find(&members, getpid())) {
		log_error("cgroup '%s' has whylate itself in it: start whylate outside of it", cgroup->path);
		err = -EINVAL;
	}
	if (!err)
		err = main_process(&members, &first);
	if (!err)
		err = target_check(first);
	if (!err)
		err = resolve_add_pid(set, first);
	if (!err)
		err = target_roots(&members, &roots);
	for (size_t i = 0; i < roots.cnt && !err; i++)
		err = resolve_add_pid(set, roots.items[i].pid);
	vec_free(&members);
	vec_free(&roots);
	return err;
}

int resolve_cgroup_path(const char *path, struct target_set *set)
{
	struct target_cgroup cgroup;
	int err = target_cgroup_open(path, &cgroup);

	if (err)
		log_error("there is no cgroup '%.300s': %s (`cat /proc/PID/cgroup` shows that of a process)", path,
			  strerror(-err));
	return err ? err : take_cgroup(&cgroup, set);
}

int resolve_cgroup_name(enum target_kind kind, const char *name, struct target_set *set)
{
	static const char *const words[] = {
		[CGROUP_UNIT] = "unit", [CGROUP_CONTAINER] = "container", [CGROUP_POD] = "pod"};
	enum cgroup_kind cgroup_kind = kind == TARGET_BY_UNIT  ? CGROUP_UNIT
				       : kind == TARGET_BY_POD ? CGROUP_POD
							       : CGROUP_CONTAINER;
	target_cgroups found = {0};
	int err = target_cgroups_find(cgroup_kind, name, &found);

	if (err) {
		log_error("the cgroups cannot be listed: %s", strerror(-err));
	} else if (found.cnt > 1) {
		log_error("%zu %ss match '%.80s': choose with", found.cnt, words[cgroup_kind], name);
		for (size_t i = 0; i < found.cnt && i < LISTED_MAX; i++)
			log_error("  --cgroup %s", found.items[i].path);
		err = -ENOTUNIQ;
	} else if (!found.cnt) {
		struct offered offered = {0};
		char what[256], wanted[256];

		/* A unit without its kind is a service. */
		snprintf(wanted, sizeof(wanted), "%.200s%s", name,
			 cgroup_kind == CGROUP_UNIT && !strchr(name, '.') ? ".service" : "");
		nearest_init(&offered.nearest, wanted, NEAREST_SHOWN);
		target_cgroups_names(cgroup_kind, resolve_offer, &offered);
		snprintf(what, sizeof(what), "no %s '%.100s' has a cgroup here", words[cgroup_kind], name);
		proc_make_printable(what);
		resolve_say_none(what, &offered, cgroup_kind == CGROUP_UNIT ? "there are" : NULL);
		resolve_offered_free(&offered);
		err = -ESRCH;
	} else {
		err = take_cgroup(&found.items[0], set);
	}
	vec_free(&found);
	return err;
}
