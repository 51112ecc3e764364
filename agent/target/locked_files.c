// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/locked_files.h"

#include "base/clock.h"
#include "target/proc_file.h"

#include <whylate/record.h>

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define FILES_MAX 64
#define NAME_SZ   160
/* A process with a million descriptors shall not keep us. */
#define DESCRIPTORS_MAX 4096
/* A file that no descriptor had is looked for again after so long. */
#define AGAIN_NS 1000000000ULL

struct locked_file {
	uint64_t object; /* 0: a free place */
	uint64_t looked_ts;
	bool found;
	char name[NAME_SZ];
};

struct locked_files {
	struct locked_file items[FILES_MAX];
	uint32_t next;
};

struct locked_files *locked_files__new(void)
{
	return calloc(1, sizeof(struct locked_files));
}

void locked_files__free(struct locked_files *files)
{
	free(files);
}

/* Without asking a network file system's server. */
static bool is_object(int dir_fd, const char *descriptor, uint64_t object)
{
	struct statx st;

	return !statx(dir_fd, descriptor, AT_STATX_DONT_SYNC, STATX_INO, &st) &&
	       wl_file_lock(st.stx_dev_major, st.stx_dev_minor, st.stx_ino) == object;
}

static void keep_path(struct locked_file *file, const char *path)
{
	size_t len = strlen(path);

	if (len < sizeof(file->name))
		memcpy(file->name, path, len + 1);
	else
		snprintf(file->name, sizeof(file->name), "...%s", path + len - (sizeof(file->name) - 4));
	proc_make_printable(file->name);
	file->found = true;
}

static void look_for(struct locked_file *file, pid_t pid)
{
	unsigned int left = DESCRIPTORS_MAX;
	DIR *dir = proc_dir("%d/fd", (int)pid);
	const struct dirent *entry;
	char path[PATH_MAX];

	while (!file->found && left-- && (entry = dir_next(dir))) {
		ssize_t len;

		if (!is_object(dirfd(dir), entry->d_name, file->object))
			continue;
		len = readlinkat(dirfd(dir), entry->d_name, path, sizeof(path) - 1);
		if (len <= 0)
			continue;
		path[len] = '\0';
		keep_path(file, path);
	}
	dir_close(dir, 0);
}

const char *locked_files__name(struct locked_files *files, pid_t pid, uint64_t object, char *buf, size_t sz)
{
	uint32_t dev = (uint32_t)(object >> WL_FILE_LOCK_DEV) & 0xffff;
	struct locked_file *file = NULL;
	uint64_t now = monotonic_ns();

	for (uint32_t i = 0; i < FILES_MAX && !file; i++)
		if (files->items[i].object == object)
			file = &files->items[i];
	if (!file) {
		file = &files->items[files->next++ % FILES_MAX];
		*file = (struct locked_file){.object = object};
	}
	if (!file->found && (!file->looked_ts || now - file->looked_ts >= AGAIN_NS)) {
		file->looked_ts = now;
		look_for(file, pid);
	}
	if (file->found)
		snprintf(buf, sz, "%s", file->name);
	else
		snprintf(buf, sz, "inode %u:%u:%" PRIu64, dev >> 8, dev & 0xff, (uint64_t)(object & WL_FILE_LOCK_INO));
	return buf;
}
