// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/resolve_internal.h"

#include "base/units.h"
#include "target/proc_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CMDLINE_SZ    80
#define CGROUP_SZ     128
#define ANCESTORS_MAX 64

static const char *const kind_names[] = {
	[TARGET_BY_PID] = "-p",      [TARGET_BY_COMM] = "--comm",     [TARGET_BY_EXE] = "--exe",
	[TARGET_BY_PORT] = "--port", [TARGET_BY_UNIT] = "--unit",     [TARGET_BY_CONTAINER] = "--container",
	[TARGET_BY_POD] = "--pod",   [TARGET_BY_CGROUP] = "--cgroup",
};

/* --- processes ---------------------------------------------------------------------------------------------------- */

const struct target_process *resolve_find(const target_processes *processes, pid_t pid)
{
	for (size_t i = 0; i < processes->cnt; i++)
		if (processes->items[i].pid == pid)
			return &processes->items[i];
	return NULL;
}

static pid_t parent_of(pid_t pid)
{
	struct proc_stat stat;

	return proc_stat_read(pid, &stat) ? 0 : stat.ppid;
}

/* The outermost ancestor, itself included, that is of the list; a process between two of them need not be. */
pid_t resolve_root_of(const target_processes *processes, const struct target_process *process)
{
	pid_t root = process->pid, pid = process->ppid;

	for (int i = 0; i < ANCESTORS_MAX && pid > 0; i++) {
		const struct target_process *ancestor = resolve_find(processes, pid);

		if (ancestor)
			root = pid;
		pid = ancestor ? ancestor->ppid : parent_of(pid);
	}
	return root;
}

int target_roots(const target_processes *processes, target_processes *roots)
{
	int err = 0;

	for (size_t i = 0; i < processes->cnt && !err; i++)
		if (resolve_root_of(processes, &processes->items[i]) == processes->items[i].pid &&
		    !resolve_find(roots, processes->items[i].pid))
			err = vec_push(roots, processes->items[i]);
	return err;
}

int resolve_add_pid(struct target_set *set, pid_t pid)
{
	for (size_t i = 0; i < set->pids.cnt; i++)
		if (set->pids.items[i] == pid)
			return 0;
	return vec_push(&set->pids, pid);
}

static void describe(pid_t pid, char *text, size_t sz)
{
	char comm[16] = "?", cmdline[CMDLINE_SZ] = "", cgroup[CGROUP_SZ];

	target_comm(pid, pid, comm);
	target_cmdline(pid, cmdline, sizeof(cmdline));
	target_cgroup_of(pid, cgroup, sizeof(cgroup));
	snprintf(text, sz, "%s: \"%s\"%s%s", comm, cmdline, *cgroup ? ", cgroup " : "", cgroup);
}

/* --- PIDs --------------------------------------------------------------------------------------------------------- */

/* The PIDs of a process, from our PID namespace to its own: how many. */
static int namespace_pids(pid_t pid, int pids[], int max)
{
	char text[256], *line = text, *word;
	int cnt = 0;

	if (proc_status(pid, "NSpid", text, sizeof(text)))
		return 0;
	while (cnt < max && (word = strsep(&line, "\t ")))
		if (*word)
			pids[cnt++] = atoi(word);
	return cnt;
}

static uint64_t pid_namespace(pid_t pid)
{
	char path[PATH_MAX];

	proc_path(path, sizeof(path), "%d/ns/pid", pid);
	return proc_link_number(path, "pid");
}

#define LEVELS_MAX 32 /* MAX_PID_NS_LEVEL */

/* The process that the one of pidns_of sees as `inside`; 0. */
static pid_t translate(pid_t inside, pid_t pidns_of)
{
	int levels[LEVELS_MAX], level = namespace_pids(pidns_of, levels, LEVELS_MAX);
	uint64_t pidns = pid_namespace(pidns_of);
	target_processes all = {0};
	pid_t found = 0;

	if (!level || !pidns || target_processes_read(&all))
		return 0;
	for (size_t i = 0; i < all.cnt && !found; i++) {
		pid_t pid = all.items[i].pid;
		int cnt = namespace_pids(pid, levels, LEVELS_MAX);

		/* Deeper ones are seen from there as well, but which namespace they are seen from cannot be told. */
		if (cnt == level && levels[level - 1] == inside && pid_namespace(pid) == pidns)
			found = pid;
	}
	vec_free(&all);
	return found;
}

static int resolve_pid(const struct target_query *query, const char *word, struct target_set *set)
{
	uint64_t number;
	pid_t pid;
	int err;

	/* The command line has been looked at. */
	if (units_number(word, INT_MAX, &number))
		return -EINVAL;
	pid = (pid_t)number;
	if (query->pidns_of) {
		pid = translate(pid, query->pidns_of);
		if (!pid) {
			log_error("there is no process %s in the PID namespace of process %d", word, query->pidns_of);
			return -ESRCH;
		}
	}
	err = target_check(pid);
	return err ? err : resolve_add_pid(set, pid);
}

static int resolve_pids(const struct target_query *query, struct target_set *set)
{
	int err = 0;

	for (size_t i = 0; i < query->names.cnt && !err; i++) {
		char *text = strdup(query->names.items[i]), *rest = text, *word;

		err = text ? 0 : -ENOMEM;
		while (!err && (word = strsep(&rest, ", \t\n")))
			if (*word)
				err = resolve_pid(query, word, set);
		free(text);
	}
	return err;
}

/* --- none, or too many -------------------------------------------------------------------------------------------- */

void resolve_offer(void *owner, const char *name)
{
	struct offered *offered = owner;
	char *copy;

	for (size_t i = 0; i < offered->names.cnt; i++)
		if (!strcmp(offered->names.items[i], name))
			return;
	copy = strdup(name);
	if (!copy || vec_push(&offered->names, copy))
		free(copy);
	else
		nearest_offer(&offered->nearest, copy);
}

void resolve_offered_free(struct offered *offered)
{
	for (size_t i = 0; i < offered->names.cnt; i++)
		free(offered->names.items[i]);
	vec_free(&offered->names);
}

/* The names that are near, or where none is, some that there are. */
void resolve_say_none(const char *what, struct offered *offered, const char *see)
{
	bool any_near = offered->nearest.cnt;
	size_t cnt = any_near ? offered->nearest.cnt : offered->names.cnt;
	char text[1024] = "";

	for (size_t i = 0; i < cnt && i < (any_near ? NEAREST_SHOWN : LISTED_MAX); i++) {
		size_t len = strlen(text);

		snprintf(text + len, sizeof(text) - len, "%s%.80s", i ? ", " : "",
			 any_near ? offered->nearest.names[i] : offered->names.items[i]);
	}
	proc_make_printable(text);
	if (any_near)
		log_error("%s: did you mean %s?", what, text);
	else if (*text && see)
		log_error("%s: %s %s%s", what, see, text, cnt > LISTED_MAX ? ", …" : "");
	else
		log_error("%s%s", what, geteuid() ? ": run whylate as root to see all processes" : "");
}

/* What to type for each. */
static void say_many(const char *what, const target_processes *roots)
{
	char text[512], all[256] = "";

	log_error("%s: %zu unrelated processes: choose with", what, roots->cnt);
	for (size_t i = 0; i < roots->cnt && i < LISTED_MAX; i++) {
		size_t len = strlen(all);

		describe(roots->items[i].pid, text, sizeof(text));
		log_error("  -p %-8d %s", roots->items[i].pid, text);
		snprintf(all + len, sizeof(all) - len, "%s%d", i ? "," : "", roots->items[i].pid);
	}
	if (roots->cnt > LISTED_MAX)
		log_error("  … and %zu more", roots->cnt - LISTED_MAX);
	else
		log_error("  -p %s   all of them, as one target", all);
}

/* --- by what /proc says ------------------------------------------------------------------------------------------- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The kernel cuts names of processes to 15 bytes. */
static bool is_called(const struct target_process *process, const char *name)
{
	char exe[PATH_MAX];

	if (!strncmp(process->comm, name, sizeof(process->comm) - 1))
		return true;
	proc_exe(process->pid, exe, sizeof(exe));
	return *exe && !strcmp(base_name(exe), name);
}

static bool runs_program(const struct target_process *process, const char *path)
{
	char exe[PATH_MAX], link[PATH_MAX];
	struct stat own, wanted;

	proc_exe(process->pid, exe, sizeof(exe));
	if (*exe && !strcmp(strchr(path, '/') ? exe : base_name(exe), path))
		return true;
	proc_path(link, sizeof(link), "%d/exe", process->pid);
	return strchr(path, '/') && !stat(path, &wanted) && !stat(link, &own) && own.st_ino == wanted.st_ino &&
	       own.st_dev == wanted.st_dev;
}

static int add_roots(const target_processes *roots, struct target_set *set)
{
	int err = 0;

	for (size_t i = 0; i < roots->cnt && !err; i++) {
		err = target_check(roots->items[i].pid);
		if (!err)
			err = resolve_add_pid(set, roots->items[i].pid);
	}
	return err;
}

/* candidates: those of one name; `related`: whatever their ancestors are, they are one target. */
static int choose(const char *what, const target_processes *candidates, bool related, struct target_set *set)
{
	target_processes roots = {0};
	int err = target_roots(candidates, &roots);

	if (!err && roots.cnt > 1 && !related) {
		say_many(what, &roots);
		err = -ENOTUNIQ;
	}
	if (!err)
		err = add_roots(&roots, set);
	vec_free(&roots);
	return err;
}

static int resolve_name(enum target_kind kind, const char *name, const target_processes *all, struct target_set *set)
{
	bool by_comm = kind == TARGET_BY_COMM;
	target_processes candidates = {0};
	char what[512];
	int err = 0;

	for (size_t i = 0; i < all->cnt && !err; i++)
		if (by_comm ? is_called(&all->items[i], name) : runs_program(&all->items[i], name))
			err = vec_push(&candidates, all->items[i]);
	snprintf(what, sizeof(what), by_comm ? "processes called '%.200s'" : "processes that run '%.300s'", name);
	if (!err && candidates.cnt)
		err = choose(what, &candidates, false, set);
	if (!err && !candidates.cnt) {
		struct offered offered = {0};
		char exe[PATH_MAX];

		nearest_init(&offered.nearest, name, NEAREST_SHOWN);
		for (size_t i = 0; i < all->cnt; i++) {
			if (by_comm)
				resolve_offer(&offered, all->items[i].comm);
			proc_exe(all->items[i].pid, exe, sizeof(exe));
			if (*exe)
				resolve_offer(&offered, by_comm || !strchr(name, '/') ? base_name(exe) : exe);
		}
		snprintf(what, sizeof(what), by_comm ? "no process is called '%.200s'" : "no process runs '%.300s'",
			 name);
		proc_make_printable(what);
		resolve_say_none(what, &offered, NULL);
		resolve_offered_free(&offered);
		err = -ESRCH;
	}
	vec_free(&candidates);
	return err;
}

/* --- by port ------------------------------------------------------------------------------------------------------ */

/* systemd holds the sockets of services that it starts on demand. */
static bool is_activator(const struct target_process *process)
{
	return process && !strcmp(process->comm, "systemd");
}

/*
 * Owners of one port in one network namespace serve it together: they hold the same socket, or share the port between
 * several (SO_REUSEPORT).
 */
static bool serve_together(const target_port_owners *owners)
{
	uint32_t netns = owners->cnt ? target_netns(owners->items[0].pid) : 0;
	bool same_netns = true, same_socket = true;

	for (size_t i = 1; i < owners->cnt; i++) {
		same_netns = same_netns && target_netns(owners->items[i].pid) == netns;
		same_socket = same_socket && owners->items[i].ino == owners->items[0].ino;
	}
	if (same_socket)
		return true;
	/* Two programs may listen on one port at different addresses. */
	for (size_t i = 1; i < owners->cnt && same_netns; i++) {
		char one[PATH_MAX], other[PATH_MAX];

		proc_exe(owners->items[0].pid, one, sizeof(one));
		proc_exe(owners->items[i].pid, other, sizeof(other));
		same_netns = !strcmp(one, other) && parent_of(owners->items[0].pid) == parent_of(owners->items[i].pid);
	}
	return same_netns;
}

static void say_no_port(const char *name, const target_processes *all)
{
	struct offered offered = {0};
	target_port_owners owners = {0};
	char what[64];

	/* No port is like another: those that there are, each with its owner. */
	nearest_init(&offered.nearest, "", 0);
	if (!target_port_owners_read(all, 0, &owners)) {
		for (size_t i = 0; i < owners.cnt; i++) {
			const struct target_process *process = resolve_find(all, owners.items[i].pid);
			char text[64];

			/* The first of those that hold the socket. */
			if (owners.items[i].udp || (i && owners.items[i].ino == owners.items[i - 1].ino) || !process)
				continue;
			snprintf(text, sizeof(text), "%u (%s)", owners.items[i].port, process->comm);
			resolve_offer(&offered, text);
		}
	}
	snprintf(what, sizeof(what), "no process that can be inspected listens on port %.8s", name);
	resolve_say_none(what, &offered, "there are");
	vec_free(&owners);
	resolve_offered_free(&offered);
}

static int resolve_port(const char *name, const target_processes *all, struct target_set *set)
{
	target_processes candidates = {0};
	target_port_owners owners = {0};
	uint64_t port;
	bool served = false;
	char what[64];
	size_t kept = 0;
	int err;

	if (units_number(name, UINT16_MAX, &port))
		return -EINVAL;
	err = target_port_owners_read(all, (uint16_t)port, &owners);
	for (size_t i = 0; i < owners.cnt; i++)
		served = served || !is_activator(resolve_find(all, owners.items[i].pid));
	for (size_t i = 0; i < owners.cnt && !err; i++) {
		const struct target_process *process = resolve_find(all, owners.items[i].pid);

		if (served && is_activator(process))
			continue;
		owners.items[kept++] = owners.items[i];
		if (!resolve_find(&candidates, process->pid))
			err = vec_push(&candidates, *process);
	}
	owners.cnt = kept;
	snprintf(what, sizeof(what), "processes that listen on port %.8s", name);
	if (!err && !served && owners.cnt) {
		log_error("systemd listens on port %s for a service that it has not started yet: send it a request "
			  "first",
			  name);
		err = -ESRCH;
	}
	if (!err && candidates.cnt)
		err = choose(what, &candidates, serve_together(&owners), set);
	if (!err && !candidates.cnt) {
		say_no_port(name, all);
		err = -ESRCH;
	}
	vec_free(&candidates);
	vec_free(&owners);
	return err;
}

static int resolve_processes(const struct target_query *query, struct target_set *set)
{
	target_processes all = {0};
	int err = target_processes_read(&all);

	if (err)
		log_error("the processes cannot be listed: %s: is /proc mounted?", strerror(-err));
	for (size_t i = 0; i < query->names.cnt && !err; i++)
		err = query->kind == TARGET_BY_PORT ? resolve_port(query->names.items[i], &all, set)
						    : resolve_name(query->kind, query->names.items[i], &all, set);
	vec_free(&all);
	return err;
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

int target_resolve(const struct target_query *query, struct target_set *set)
{
	const char *first = query->names.cnt ? query->names.items[0] : NULL;
	int err;

	memset(set, 0, sizeof(*set));
	if (!first)
		return -EINVAL;
	switch (query->kind) {
	case TARGET_BY_PID:
		err = resolve_pids(query, set);
		break;
	case TARGET_BY_COMM:
	case TARGET_BY_EXE:
	case TARGET_BY_PORT:
		err = resolve_processes(query, set);
		break;
	case TARGET_BY_CGROUP:
		err = resolve_cgroup_path(first, set);
		break;
	default:
		err = resolve_cgroup_name(query->kind, first, set);
	}
	if (!err && (query->kind != TARGET_BY_PID || query->pidns_of))
		snprintf(set->name, sizeof(set->name), "%s %.100s%s", kind_names[query->kind], first,
			 query->names.cnt > 1 ? " …" : "");
	proc_make_printable(set->name);
	if (!err && !set->pids.cnt)
		err = -ESRCH;
	if (err)
		target_set_free(set);
	return err;
}

void target_set_free(struct target_set *set)
{
	vec_free(&set->pids);
	memset(set, 0, sizeof(*set));
}

void target_set_say(const struct target_set *set)
{
	char text[512];

	for (size_t i = 0; *set->name && i < set->pids.cnt && i < LISTED_MAX; i++) {
		describe(set->pids.items[i], text, sizeof(text));
		log_info("%s%s pid %d, %s", i ? "  and" : set->name, i ? "" : " is", set->pids.items[i], text);
	}
	if (*set->name && set->pids.cnt > LISTED_MAX)
		log_info("  and %zu more", set->pids.cnt - LISTED_MAX);
}

static int add_new(target_processes *processes, const target_processes *more)
{
	int err = 0;

	for (size_t i = 0; i < more->cnt && !err; i++)
		if (!resolve_find(processes, more->items[i].pid))
			err = vec_push(processes, more->items[i]);
	return err;
}

int target_set_processes(const struct target_set *set, bool children, target_processes *processes)
{
	int err = 0;

	for (size_t i = 0; i < set->pids.cnt && !err; i++) {
		target_processes tree = {0};

		err = target_tree(set->pids.items[i], &tree);
		if (!err && (!children || set->cgroup.id))
			tree.cnt = 1;
		/* One that has ended since is left out. */
		err = err == -ESRCH ? 0 : err ? err : add_new(processes, &tree);
		vec_free(&tree);
	}
	if (!err && set->cgroup.id) {
		target_processes members = {0};

		err = target_cgroup_processes(&set->cgroup, &members);
		err = err == -ENOENT ? 0 : err ? err : add_new(processes, &members);
		vec_free(&members);
	}
	return err ? err : processes->cnt ? 0 : -ESRCH;
}
