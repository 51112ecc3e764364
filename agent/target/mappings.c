// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/order.h"
#include "target/proc_file.h"
#include "target/target.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static const char deleted_mark[] = " (deleted)";

static int mapping_parse(const char *line, struct target_mapping *mapping)
{
	unsigned dev_major, dev_minor;
	uint64_t ino;
	char perms[5];
	int path_off = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &mapping->start, &mapping->end,
		   perms, &mapping->file_off, &dev_major, &dev_minor, &ino, &path_off) != 7 ||
	    !path_off || mapping->start >= mapping->end || strlen(perms) != 4)
		return -EINVAL;
	mapping->exec = perms[2] == 'x';
	mapping->dev = makedev(dev_major, dev_minor);
	mapping->ino = ino;
	mapping->path = strdup(line + path_off);
	return mapping->path ? 0 : -ENOMEM;
}

int target_mappings_read(pid_t pid, target_mappings *mappings)
{
	FILE *maps = proc_open(pid, "maps");
	size_t before = mappings->cnt, room = 0;
	char *line = NULL;
	ssize_t len;
	int err = 0;

	if (!maps)
		return -errno;
	errno = 0;
	while (!err && (len = getline(&line, &room, maps)) > 0) {
		struct target_mapping mapping = {0};

		if (line[len - 1] == '\n')
			line[len - 1] = '\0';
		err = mapping_parse(line, &mapping);
		if (!err)
			err = vec_push(mappings, mapping);
		if (err)
			free((char *)mapping.path);
	}
	if (!err && ferror(maps))
		err = errno ? -errno : -EIO;
	/* A process on its way out, or whose main thread is gone, has none. */
	if (!err && mappings->cnt == before)
		err = -ESRCH;
	free(line);
	fclose(maps);
	if (err)
		target_mappings_free(mappings);
	return err;
}

int target_lib_kb(pid_t pid, uint64_t *kb)
{
	char text[32];
	int err = proc_status(pid, "VmLib", text, sizeof(text));

	return err ?: sscanf(text, "%" SCNu64, kb) == 1 ? 0 : -ESRCH;
}

void target_mappings_free(target_mappings *mappings)
{
	for (size_t i = 0; i < mappings->cnt; i++)
		free((char *)mappings->items[i].path);
	vec_free(mappings);
}

int target_mappings_add(target_mappings *mappings, const struct target_mapping *mapping)
{
	struct target_mapping *copy;

	if (vec_reserve(mappings, 1))
		return -ENOMEM;
	copy = &mappings->items[mappings->cnt];
	*copy = *mapping;
	copy->path = strdup(mapping->path);
	if (!copy->path)
		return -ENOMEM;
	mappings->cnt++;
	return 0;
}

int target_mappings_copy(const target_mappings *mappings, target_mappings *copy)
{
	int err = 0;

	*copy = (target_mappings){0};
	for (size_t i = 0; i < mappings->cnt && !err; i++)
		err = target_mappings_add(copy, &mappings->items[i]);
	if (err)
		target_mappings_free(copy);
	return err;
}

static size_t code_cnt(const target_mappings *mappings)
{
	size_t cnt = 0;

	for (size_t i = 0; i < mappings->cnt; i++)
		cnt += mappings->items[i].exec;
	return cnt;
}

static bool has_like(const target_mappings *mappings, const struct target_mapping *wanted)
{
	for (size_t i = 0; i < mappings->cnt; i++) {
		const struct target_mapping *mapping = &mappings->items[i];

		if (mapping->exec && mapping->ino == wanted->ino && mapping->dev == wanted->dev &&
		    mapping->file_off == wanted->file_off &&
		    mapping->end - mapping->start == wanted->end - wanted->start &&
		    !strcmp(mapping->path, wanted->path))
			return true;
	}
	return false;
}

bool target_mappings_are_like(const target_mappings *a, const target_mappings *b)
{
	if (code_cnt(a) != code_cnt(b))
		return false;
	for (size_t i = 0; i < b->cnt; i++) {
		const struct target_mapping *mapping = &b->items[i];

		if (mapping->exec && ((!mapping->ino && mapping->path[0] != '[') || !has_like(a, mapping)))
			return false;
	}
	return true;
}

bool target_mappings_fit(const target_mappings *a, const target_mappings *b)
{
	size_t i = 0, j = 0;

	for (;; i++, j++) {
		while (i < a->cnt && !a->items[i].exec)
			i++;
		while (j < b->cnt && !b->items[j].exec)
			j++;
		if (i == a->cnt || j == b->cnt)
			return i == a->cnt && j == b->cnt;
		if (a->items[i].start != b->items[j].start || a->items[i].end != b->items[j].end ||
		    a->items[i].file_off != b->items[j].file_off || a->items[i].ino != b->items[j].ino ||
		    a->items[i].dev != b->items[j].dev)
			return false;
	}
}

void target_mapping_basename(const struct target_mapping *mapping, char *buf, size_t sz)
{
	const char *path = mapping->path, *slash = path[0] == '/' ? strrchr(path, '/') : NULL;
	size_t mark_len = sizeof(deleted_mark) - 1, len;

	if (!sz)
		return;
	snprintf(buf, sz, "%s", slash ? slash + 1 : path);
	len = strlen(buf);
	if (slash && len > mark_len && !strcmp(buf + len - mark_len, deleted_mark))
		buf[len - mark_len] = '\0';
	proc_make_printable(buf);
}

const struct target_mapping *target_mapping_find(const target_mappings *mappings, uint64_t addr)
{
	size_t found = search_first(0, mappings->cnt, at, mappings->items[at].end > addr);

	return found < mappings->cnt && mappings->items[found].start <= addr ? &mappings->items[found] : NULL;
}

uint64_t target_mapping_base(const target_mappings *mappings, const struct target_mapping *mapping)
{
	const struct target_mapping *candidate = mapping;

	while (candidate->file_off && candidate > mappings->items) {
		candidate--;
		if (!candidate->file_off && candidate->ino == mapping->ino && candidate->dev == mapping->dev)
			return candidate->start;
	}
	return mapping->start - mapping->file_off;
}

const char *target_mapping_name(const target_mappings *mappings, uint64_t addr, bool with_offset, char *buf, size_t sz)
{
	const struct target_mapping *mapping = target_mapping_find(mappings, addr);
	size_t len;

	if (!mapping || !sz)
		return NULL;
	if (!mapping->path[0]) {
		snprintf(buf, sz, "[anon]");
		return buf;
	}
	target_mapping_basename(mapping, buf, sz);
	len = strlen(buf);
	if (with_offset && mapping->path[0] == '/')
		snprintf(buf + len, sz - len, "+0x%" PRIx64, addr - target_mapping_base(mappings, mapping));
	return buf;
}

/* The path as the kernel knows it: it escapes newlines only, and marks a file that has lost its name. */
static void path_unescape(char *path)
{
	char *to = path;

	for (const char *from = path; *from; to++) {
		if (!strncmp(from, "\\012", 4)) {
			*to = '\n';
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

static bool same_file(const char *path, const struct target_mapping *mapping, const struct stat *mapped)
{
	struct stat named;

	if (stat(path, &named) || !S_ISREG(named.st_mode))
		return false;
	/* overlayfs and btrfs show one device in maps and another in stat: the mapped file's own stat is the judge. */
	if (mapped)
		return named.st_ino == mapped->st_ino && named.st_dev == mapped->st_dev;
	return named.st_ino == mapping->ino;
}

int target_mapping_file(pid_t pid, const struct target_mapping *mapping, char *path, size_t sz)
{
	char map_file[96], unescaped[PATH_MAX], root[32];
	const char *named[] = {mapping->path, unescaped};
	struct stat mapped_stat;
	const struct stat *mapped;

	if (mapping->path[0] != '/' || !mapping->ino)
		return -ENOENT;
	snprintf(map_file, sizeof(map_file), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, mapping->start,
		 mapping->end);
	mapped = stat(map_file, &mapped_stat) ? NULL : &mapped_stat;
	snprintf(unescaped, sizeof(unescaped), "%s", mapping->path);
	path_unescape(unescaped);
	snprintf(root, sizeof(root), "/proc/%d/root", pid);
	/* The very file by a path of ours: it leads there also when the process has ended. */
	for (size_t i = 0; mapped && i < sizeof(named) / sizeof(named[0]); i++)
		if ((size_t)snprintf(path, sz, "%s", named[i]) < sz && same_file(path, mapping, mapped))
			return 0;
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
		if ((size_t)snprintf(path, sz, "%s%s", root, named[i]) < sz && same_file(path, mapping, mapped))
			return 0;
		/* In a chroot the paths in maps begin at our root, not at the target's. */
		if ((size_t)snprintf(path, sz, "%s", named[i]) < sz && same_file(path, mapping, mapped))
			return 0;
	}
	if (!mapped)
		return -ENOENT;
	return (size_t)snprintf(path, sz, "%s", map_file) < sz ? 0 : -ENAMETOOLONG;
}
