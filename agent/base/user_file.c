// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/user_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/stat.h>
#include <unistd.h>

int user_rights__begin(struct user_rights *rights)
{
	cap_t before, now;
	int err = 0;

	rights->before = NULL;
	if (!getuid())
		return 0;
	before = cap_get_proc();
	now = before ? cap_dup(before) : NULL;
	if (!now || cap_clear_flag(now, CAP_EFFECTIVE))
		err = -errno;
	/* There is nothing to take where nothing is effective, and a confined process may not even try. */
	if (!err && !cap_compare(before, now)) {
		cap_free(now);
		cap_free(before);
		return 0;
	}
	if (!err && cap_set_proc(now))
		err = -errno;
	cap_free(now);
	if (err)
		cap_free(before);
	else
		rights->before = before;
	return err;
}

void user_rights__end(struct user_rights *rights)
{
	int err = errno;

	if (rights->before) {
		/* What was effective is still permitted: this does not fail. */
		cap_set_proc(rights->before);
		cap_free(rights->before);
	}
	rights->before = NULL;
	errno = err;
}

static int open_as_user(const char *path, struct stat *st)
{
	struct user_rights rights;
	int err = user_rights__begin(&rights), fd;

	if (err)
		return err;
	/* A fifo or terminal that the user names may make the user wait: O_NONBLOCK would not read it. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		fd = -errno;
	user_rights__end(&rights);
	if (fd < 0)
		return fd;
	if (fstat(fd, st))
		err = -errno;
	else if (S_ISDIR(st->st_mode))
		err = -EISDIR;
	if (!err)
		return fd;
	close(fd);
	return err;
}

int user_file_open(const char *path)
{
	struct stat st;

	return open_as_user(path, &st);
}

FILE *user_file_stream(const char *path)
{
	int fd = user_file_open(path);
	FILE *file;

	if (fd < 0) {
		errno = -fd;
		return NULL;
	}
	file = fdopen(fd, "re");
	if (!file)
		close(fd);
	return file;
}

FILE *user_file_create(const char *path)
{
	struct user_rights rights;
	int err = user_rights__begin(&rights);
	FILE *file;

	if (err) {
		errno = -err;
		return NULL;
	}
	file = fopen(path, "we");
	user_rights__end(&rights);
	return file;
}

int user_file_open_secret(const char *path)
{
	struct stat st;
	int fd = open_as_user(path, &st);

	if (fd < 0 || !S_ISREG(st.st_mode) || !(st.st_mode & (S_IROTH | S_IWOTH)))
		return fd;
	close(fd);
	return -EKEYREJECTED;
}

const char *user_file_why(int err)
{
	return err == -EKEYREJECTED ? "everybody may read it (chmod o-rwx)" : strerror(-err);
}

static bool any_target(void)
{
	struct stat st;

	return !stat(USER_ANY_TARGET, &st) && S_ISREG(st.st_mode) && !st.st_uid && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

int user_may_trace(pid_t pid)
{
	struct user_rights rights;
	char path[40], target[8];
	bool may;

	if (!getuid() || any_target())
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	if (user_rights__begin(&rights))
		return -EPERM;
	/* ENOENT: it is ending. */
	may = readlink(path, target, sizeof(target)) >= 0 || errno == ENOENT;
	user_rights__end(&rights);
	return may ? 0 : -EPERM;
}
