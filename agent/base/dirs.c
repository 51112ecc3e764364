// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int make_dir(const char *path, mode_t mode)
{
	return mkdir(path, mode) && errno != EEXIST ? -errno : 0;
}

int make_dirs(const char *dir, mode_t mode)
{
	char *path, *slash;
	struct stat st;
	int err = 0;

	if (!dir || !*dir)
		return -ENOENT;
	path = strdup(dir);
	if (!path)
		return -ENOMEM;
	for (slash = strchr(path + 1, '/'); !err && slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		err = make_dir(path, 0755);
		*slash = '/';
	}
	if (!err)
		err = make_dir(path, mode);
	if (!err && (stat(path, &st) || !S_ISDIR(st.st_mode)))
		err = -ENOTDIR;
	free(path);
	return err;
}

bool dir_is_own(const char *path)
{
	const mode_t needed = S_IWUSR | S_IXUSR;
	struct stat st;

	return !stat(path, &st) && st.st_uid == geteuid() && (st.st_mode & needed) == needed;
}

DIR *dir_open(int at_fd, const char *path, int flags)
{
	int fd = openat(at_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags), err;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (fd >= 0 && !dir) {
		err = errno;
		close(fd);
		errno = err;
	}
	return dir;
}

const struct dirent *dir_next(DIR *dir)
{
	const struct dirent *entry = NULL;

	if (dir)
		do {
			errno = 0;
			entry = readdir(dir);
		} while (entry && (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")));
	return entry;
}

int dir_close(DIR *dir, int err)
{
	err = err ?: -errno;
	if (dir)
		closedir(dir);
	return err;
}
