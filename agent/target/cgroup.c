// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/cgroup.h"
#include "target/proc_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DEPTH_MAX 32

/* A mounted hierarchy. */
struct hierarchy {
	uint32_t id; /* 0: version 2 */
	bool named;  /* version 1, without a controller: systemd's own */
	char dir[PATH_MAX];
};

typedef VEC(struct hierarchy) hierarchies;

/* --- what is mounted ---------------------------------------------------------------------------------------------- */

/* Is one of the words, with commas between them, among the options? */
static bool any_is_in(char *words, const char *options)
{
	char *word;

	while ((word = strsep(&words, ","))) {
		size_t len = strlen(word);

		for (const char *at = len ? strstr(options, word) : NULL; at; at = strstr(at + 1, word))
			if ((at == options || at[-1] == ',') && (!at[len] || at[len] == ','))
				return true;
	}
	return false;
}

/* The hierarchy of version 1 that is mounted with these options: of its controllers, or of its name.  0, -ENOENT. */
static int hierarchy_find(const char *options, struct hierarchy *hierarchy)
{
	char line[1024], list[512], path[PATH_MAX];
	int err = -ENOENT;
	uint32_t id;
	FILE *file;

	proc_path(path, sizeof(path), "self/cgroup");
	file = fopen(path, "re");
	while (file && err && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%u:%511[^:]", &id, list) != 2 || !id)
			continue;
		hierarchy->named = !strncmp(list, "name=", 5);
		hierarchy->id = id;
		err = any_is_in(list, options) ? 0 : -ENOENT;
	}
	if (file)
		fclose(file);
	return err;
}

/*
 * systemd and container runtimes keep theirs in version 2 if they can.  Hierarchies without controllers come last.
 * 0 or -ENOMEM.
 */
static int hierarchies_add(hierarchies *all, const struct hierarchy *hierarchy)
{
	int err = vec_push(all, *hierarchy);

	for (size_t i = all->cnt - 1; !err && i > 0; i--) {
		struct hierarchy before = all->items[i - 1];

		if (hierarchy->named >= before.named && (hierarchy->id || !before.id))
			break;
		all->items[i] = before;
		all->items[i - 1] = *hierarchy;
	}
	return err;
}

/* mountinfo escapes blanks, tabs, newlines and backslashes in octal. */
static void unescape(char *text)
{
	char *to = text;

	for (char *from = text; *from; to++) {
		unsigned int code;

		if (*from == '\\' && sscanf(from + 1, "%3o", &code) == 1) {
			*to = (char)code;
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

static int hierarchies_read(hierarchies *all)
{
	char path[PATH_MAX], *line = NULL;
	size_t room = 0;
	FILE *file;
	int err = 0;

	proc_path(path, sizeof(path), "self/mountinfo");
	file = fopen(path, "re");
	if (!file)
		return -errno;
	while (!err && getline(&line, &room, file) > 0) {
		struct hierarchy hierarchy = {0};
		char *dash = strstr(line, " - "), type[32], options[512];

		if (!dash || sscanf(dash, " - %31s %*s %511s", type, options) != 2 || strncmp(type, "cgroup", 6) ||
		    sscanf(line, "%*s %*s %*s %*s %4095s", hierarchy.dir) != 1)
			continue;
		unescape(hierarchy.dir);
		if (!strcmp(type, "cgroup2") || !hierarchy_find(options, &hierarchy))
			err = hierarchies_add(all, &hierarchy);
	}
	free(line);
	fclose(file);
	return err;
}

static bool is_below(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	return !strncmp(path, dir, len) && (!path[len] || path[len] == '/');
}

static int cgroup_make(uint32_t hierarchy, const char *path, struct target_cgroup *cgroup)
{
	struct stat stat_buf;

	if (stat(path, &stat_buf))
		return -errno;
	if (!S_ISDIR(stat_buf.st_mode))
		return -ENOTDIR;
	memset(cgroup, 0, sizeof(*cgroup));
	if ((size_t)snprintf(cgroup->path, sizeof(cgroup->path), "%s", path) >= sizeof(cgroup->path))
		return -ENAMETOOLONG;
	cgroup->id = stat_buf.st_ino;
	cgroup->hierarchy = hierarchy;
	return 0;
}

int target_cgroup_open(const char *path, struct target_cgroup *cgroup)
{
	char real[PATH_MAX], joined[2 * PATH_MAX];
	hierarchies all = {0};
	int err = hierarchies_read(&all);

	if (err)
		return err;
	err = -ENOENT;
	for (size_t i = 0; err == -ENOENT && realpath(path, real) && i < all.cnt; i++)
		if (is_below(real, all.items[i].dir))
			err = cgroup_make(all.items[i].id, real, cgroup);
	for (size_t i = 0; err == -ENOENT && i < all.cnt; i++) {
		snprintf(joined, sizeof(joined), "%s/%s", all.items[i].dir, path + strspn(path, "/"));
		if (realpath(joined, real) && is_below(real, all.items[i].dir))
			err = cgroup_make(all.items[i].id, real, cgroup);
	}
	vec_free(&all);
	return err;
}

/* --- names -------------------------------------------------------------------------------------------------------- */

/* A container's id in the name of its cgroup; NULL: it is none of a container. */
static const char *container_id(const char *dir_name, char *id, size_t sz)
{
	const char *dash = strrchr(dir_name, '-'), *dot = strrchr(dir_name, '.');
	bool is_scope = dot && !strcmp(dot, ".scope");
	const char *begin = is_scope && dash ? dash + 1 : dir_name;
	size_t len = is_scope ? (size_t)(dot - begin) : strlen(begin);

	/* A container's monitor has a cgroup of its own. */
	if (strstr(dir_name, "-conmon-") || (dot && !is_scope) || !len || len >= sz)
		return NULL;
	memcpy(id, begin, len);
	id[len] = '\0';
	return id;
}

/* A pod's UID likewise, with '-'. */
static const char *pod_uid(const char *dir_name, char *uid, size_t sz)
{
	const char *pod = strstr(dir_name, "-pod"), *begin;
	size_t len;

	if (!pod && strncmp(dir_name, "pod", 3))
		return NULL;
	begin = pod ? pod + 4 : dir_name + 3;
	len = strcspn(begin, ".");
	if (!len || len >= sz)
		return NULL;
	for (size_t i = 0; i < len; i++)
		uid[i] = begin[i] == '_' ? '-' : begin[i];
	uid[len] = '\0';
	return uid;
}

static const char *unit_name(const char *dir_name, char *name, size_t sz)
{
	static const char *const kinds[] = {".service", ".scope", ".slice", ".socket", ".mount", ".swap"};
	const char *dot = strrchr(dir_name, '.');

	for (size_t i = 0; dot && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(dot, kinds[i]) && strlen(dir_name) < sz)
			return strcpy(name, dir_name);
	return NULL;
}

static const char *name_of(enum cgroup_kind kind, const char *dir_name, char *name, size_t sz)
{
	if (kind == CGROUP_CONTAINER)
		return container_id(dir_name, name, sz);
	return kind == CGROUP_POD ? pod_uid(dir_name, name, sz) : unit_name(dir_name, name, sz);
}

bool target_cgroup_matches(enum cgroup_kind kind, const char *dir_name, const char *wanted)
{
	char name[NAME_MAX + 1];
	size_t len = strlen(wanted);

	if (!len || !name_of(kind, dir_name, name, sizeof(name)))
		return false;
	if (kind == CGROUP_CONTAINER)
		return !strncmp(name, wanted, len);
	if (kind == CGROUP_UNIT && !strncmp(name, wanted, len) && !strcmp(name + len, ".service"))
		return true;
	return !strcmp(name, wanted);
}

/* --- search ------------------------------------------------------------------------------------------------------- */

struct search {
	uint32_t hierarchy; /* as in struct target_cgroup */
	/* 0: look below, too; 1: do not; -errno */
	int (*take)(struct search *search, const char *path, const char *dir_name);
	enum cgroup_kind kind;
	const char *wanted;
	target_cgroups *found;
	void (*take_name)(void *owner, const char *name);
	void *owner;
};

static int walk(struct search *search, char *path, size_t len, int depth)
{
	DIR *dir = depth < DEPTH_MAX ? dir_open(AT_FDCWD, path, 0) : NULL;
	const struct dirent *entry;
	int err = 0;

	while (err >= 0 && (entry = dir_next(dir))) {
		size_t name_len = strlen(entry->d_name);

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.' || len + name_len + 2 > PATH_MAX)
			continue;
		path[len] = '/';
		memcpy(path + len + 1, entry->d_name, name_len + 1);
		err = search->take(search, path, entry->d_name);
		if (!err)
			err = walk(search, path, len + 1 + name_len, depth + 1);
		path[len] = '\0';
	}
	dir_close(dir, 0);
	return err < 0 ? err : 0;
}

/* In one hierarchy after the other, until there is something found. */
static int search_all(struct search *search)
{
	char path[PATH_MAX];
	hierarchies all = {0};
	int err = hierarchies_read(&all);

	for (size_t i = 0; !err && i < all.cnt && !(search->found && search->found->cnt); i++) {
		search->hierarchy = all.items[i].id;
		snprintf(path, sizeof(path), "%s", all.items[i].dir);
		err = walk(search, path, strlen(path), 0);
	}
	vec_free(&all);
	return err;
}

static int take_match(struct search *search, const char *path, const char *dir_name)
{
	struct target_cgroup cgroup;
	int err;

	if (!target_cgroup_matches(search->kind, dir_name, search->wanted) ||
	    cgroup_make(search->hierarchy, path, &cgroup))
		return 0;
	err = vec_push(search->found, cgroup);
	return err ? err : 1;
}

int target_cgroups_find(enum cgroup_kind kind, const char *wanted, target_cgroups *found)
{
	struct search search = {.take = take_match, .kind = kind, .wanted = wanted, .found = found};

	return search_all(&search);
}

static int take_name(struct search *search, const char *path, const char *dir_name)
{
	char name[NAME_MAX + 1];

	(void)path;
	if (name_of(search->kind, dir_name, name, sizeof(name)))
		search->take_name(search->owner, name);
	return 0;
}

void target_cgroups_names(enum cgroup_kind kind, void (*take)(void *owner, const char *name), void *owner)
{
	struct search search = {.take = take_name, .kind = kind, .take_name = take, .owner = owner};

	(void)search_all(&search);
}

/* --- members ------------------------------------------------------------------------------------------------------ */

static int add_members(const char *dir, target_processes *processes)
{
	char path[PATH_MAX + 16];
	int err = 0, pid;
	FILE *file;

	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	while (!err && fscanf(file, "%d", &pid) == 1) {
		struct target_process process = {.pid = pid};
		struct proc_stat stat;

		/* 0: in no PID namespace that we see. */
		if (pid <= 0 || proc_stat_read(pid, &stat) || stat.state == 'Z' || stat.state == 'X')
			continue;
		process.ppid = stat.ppid;
		memcpy(process.comm, stat.comm, sizeof(process.comm));
		err = vec_push(processes, process);
	}
	fclose(file);
	return err;
}

static int take_members(struct search *search, const char *path, const char *dir_name)
{
	int err = add_members(path, search->owner);

	(void)dir_name;
	return err == -ENOMEM ? err : 0;
}

int target_cgroup_processes(const struct target_cgroup *cgroup, target_processes *processes)
{
	struct search search = {.take = take_members, .owner = processes};
	char path[PATH_MAX];
	int err = add_members(cgroup->path, processes);

	if (err == -ENOENT || err == -ENODEV || err == -ENOMEM)
		return err == -ENOMEM ? err : -ENOENT;
	snprintf(path, sizeof(path), "%s", cgroup->path);
	return walk(&search, path, strlen(path), 0);
}

bool target_cgroup_exists(const struct target_cgroup *cgroup)
{
	struct stat stat_buf;

	return !stat(cgroup->path, &stat_buf) && stat_buf.st_ino == cgroup->id;
}

void target_cgroup_of(pid_t pid, char *buf, size_t sz)
{
	FILE *file = proc_open(pid, "cgroup");
	char *line = NULL, *path;
	size_t room = 0;

	*buf = '\0';
	while (file && getline(&line, &room, file) > 0) {
		line[strcspn(line, "\n")] = '\0';
		path = strchr(line, ':');
		path = path ? strchr(path + 1, ':') : NULL;
		/* Version 2 is the last line. */
		if (path && (path[1] && strcmp(path + 1, "/")))
			snprintf(buf, sz, "%s", path + 1);
	}
	free(line);
	if (file)
		fclose(file);
	proc_make_printable(buf);
}
