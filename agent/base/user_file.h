/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files that the user names on the command line.  They are opened with the rights of the user who started the program,
 * not with the capabilities that its file gave it (make install SETCAP=1).  For root these are the same.
 */
#ifndef WHYLATE_BASE_USER_FILE_H
#define WHYLATE_BASE_USER_FILE_H

#include <stdio.h>
#include <sys/types.h>

/*
 * Takes this thread's capabilities out of the effective set as long as user_rights__end() has not been called.  Nothing
 * happens where the real user is root.
 */
struct user_rights {
	void *before; /* cap_t; NULL: nothing was changed */
};
/* 0 or -errno: the caller must not go on then. */
int user_rights__begin(struct user_rights *rights);
void user_rights__end(struct user_rights *rights);

/* Opens it for reading: a descriptor, close-on-exec, or -errno; -EISDIR. */
int user_file_open(const char *path);
/* The same as a stream: NULL and errno. */
FILE *user_file_stream(const char *path);
/* Creates or empties it, for writing: NULL and errno. */
FILE *user_file_create(const char *path);
/* As user_file_open(), for a key or token: -EKEYREJECTED where everybody may read or write it. */
int user_file_open_secret(const char *path);
/* What to say of -errno of these. */
const char *user_file_why(int err);

/* A file of this name that root owns and only root can write: the administrator lets users record any process. */
#define USER_ANY_TARGET "/etc/whylate/any-target"

/*
 * 0, or -EPERM where the user could not look into that process without this program's capabilities (PTRACE_MODE_READ)
 * and the administrator does not allow it either.
 */
int user_may_trace(pid_t pid);

#endif
