// SPDX-License-Identifier: GPL-2.0-or-later
#include "session/scratch.h"

#include "base/dirs.h"
#include "shard/inputs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX    "whylate-diagnose-"
#define RANDOM_SZ 6
#define TRY_CNT   8

int scratch_take(int at_fd, const char *path)
{
	int fd = openat(at_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), err = 0;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || flock(fd, LOCK_EX | LOCK_NB) || fstat(fd, &st))
		err = -errno;
	else if (st.st_uid != geteuid() || !st.st_nlink)
		err = -ENOENT; /* somebody's, or removed between the two */
	if (!err)
		return fd;
	close(fd);
	return err;
}

/* The shards in it, nothing else. */
static void empty(int dir_fd)
{
	DIR *dir = dir_open(dir_fd, ".", 0);
	const struct dirent *entry;

	while ((entry = dir_next(dir)))
		if (shard_name_is(entry->d_name))
			unlinkat(dir_fd, entry->d_name, 0);
	dir_close(dir, 0);
}

static void sweep(void)
{
	DIR *place = dir_open(AT_FDCWD, SCRATCH_PLACE, 0);
	const struct dirent *entry;

	while ((entry = dir_next(place))) {
		int fd;

		if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) ||
		    strlen(entry->d_name) != strlen(PREFIX) + RANDOM_SZ)
			continue;
		fd = scratch_take(dirfd(place), entry->d_name);
		if (fd < 0)
			continue;
		empty(fd);
		unlinkat(dirfd(place), entry->d_name, AT_REMOVEDIR);
		close(fd);
	}
	dir_close(place, 0);
}

int scratch__make(struct scratch *scratch)
{
	int err = -EEXIST;

	sweep();
	/* Another one's sweep may come between making it and locking it. */
	for (int i = 0; i < TRY_CNT; i++) {
		strcpy(scratch->path, SCRATCH_PLACE "/" PREFIX "XXXXXX");
		if (!mkdtemp(scratch->path))
			return -errno;
		scratch->fd = scratch_take(AT_FDCWD, scratch->path);
		if (scratch->fd >= 0)
			return 0;
		err = scratch->fd;
	}
	return err;
}

void scratch__remove(struct scratch *scratch)
{
	if (scratch->fd < 0)
		return;
	empty(scratch->fd);
	rmdir(scratch->path);
	close(scratch->fd);
	scratch->fd = -1;
}
