// SPDX-License-Identifier: GPL-2.0-or-later
#include "values/schema_make.h"

#include "base/user_file.h"
#include "target/debug_file.h"
#include "values/schema_cache.h"
#include "values/schema_child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The process may be ended for want of memory elsewhere. */
#define TRIES 2

/* --- the files ---------------------------------------------------------------------------------------------------- */

struct making {
	struct value_schema *schema;
	const struct value_schema_opts *opts;
	int fd, debug_fd; /* -1: it has the DWARF itself */
	struct schema_head head;
	struct symbols_child child;
	int err;
};

/* A regular file; -errno.  To open a device can do anything, and to open a pipe can wait for ever. */
static int open_regular(const char *path)
{
	int path_fd = open(path, O_PATH | O_CLOEXEC), fd = -ENOEXEC;
	char by_fd[32];
	struct stat st;

	if (path_fd < 0)
		return -errno;
	snprintf(by_fd, sizeof(by_fd), "/proc/self/fd/%d", path_fd);
	if (!fstat(path_fd, &st) && S_ISREG(st.st_mode))
		fd = open(by_fd, O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		fd = -errno;
	close(path_fd);
	return fd;
}

static bool is_end_of_process(int err)
{
	return err == -EBADMSG || err == -ETIME || err == -EPERM || err == -EFBIG || err == -ENOMEM ||
	       err == -ECANCELED;
}

/* A process that has these files and their DWARF: 0 or -errno. */
static int begin(struct making *making, int debug_fd, bool is_checked, struct schema_head *head)
{
	symbols_child__end(&making->child);
	return schema_child__begin(&making->child, making->opts, making->fd, debug_fd, is_checked, head);
}

/* For debug_file_search(). */
static void *take_debug_file(void *owner, const char *path)
{
	struct making *making = owner;
	int fd = making->err ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err;
	struct schema_head head;

	if (fd < 0)
		return NULL;
	err = begin(making, fd, false, &head);
	if (err == -ENOKEY && *making->head.link && debug_file_has_checksum(path, making->head.link_crc))
		err = begin(making, fd, true, &head);
	if (!err) {
		making->debug_fd = fd;
		return making;
	}
	if (is_end_of_process(err))
		making->err = err;
	close(fd);
	return NULL;
}

/* The process has the DWARF of the separate debug file: 0 or -errno. */
static int find_debug_file(struct making *making)
{
	const struct value_schema_opts *opts = making->opts;
	const struct debug_wanted wanted = {making->head.build_id, making->head.link, making->head.link_crc};
	bool is_late = false;
	const struct debug_search search = {.file = opts->path,
					    .path = opts->path,
					    .root = "",
					    .debuginfo_dir = opts->debuginfo_dir,
					    .want_debuginfod = true,
					    .is_late = &is_late};

	if (debug_file_search(&wanted, &search, take_debug_file, making))
		return 0;
	return making->err ? making->err : -ENODATA;
}

/* --- the schema --------------------------------------------------------------------------------------------------- */

static int make(struct making *making)
{
	const struct value_schema_opts *opts = making->opts;
	struct value_schema *schema = making->schema;
	schema_bytes bytes = {0};
	int err = begin(making, -1, false, &making->head);

	if (err == -ENODATA)
		err = find_debug_file(making);
	if (!err && !(schema->build_id = arena__strdup(schema->arena, making->head.build_id)))
		err = -ENOMEM;
	if (err || (opts->cached && schema_cache_load(schema, opts)))
		return err;
	err = schema_child__finish(&making->child, opts, &bytes);
	if (!err)
		err = schema_bytes_take(schema, bytes.items, bytes.cnt);
	if (!err && opts->cached)
		schema_cache_store(schema, opts, bytes.items, bytes.cnt);
	vec_free(&bytes);
	return err;
}

/* What the process has left open: the file with the DWARF is the caller's. */
static void end(struct making *making, int err)
{
	int *wanted = err ? NULL : making->opts->dwarf_fd, fd = making->debug_fd >= 0 ? making->debug_fd : making->fd;

	symbols_child__end(&making->child);
	if (wanted)
		*wanted = fd;
	if (making->fd != fd || !wanted)
		close(making->fd);
	if (making->debug_fd >= 0 && !wanted)
		close(making->debug_fd);
}

static int make_by_process(struct value_schema *schema, const struct value_schema_opts *opts)
{
	int err = -EBADMSG;

	for (int i = 0; i < TRIES && err == -EBADMSG; i++) {
		struct making making = {.schema = schema, .opts = opts, .debug_fd = -1, .child = SYMBOLS_CHILD_NONE};

		making.fd = open_regular(opts->path);
		if (making.fd < 0)
			return making.fd;
		err = make(&making);
		end(&making, err);
	}
	return err;
}

int value_schema_make(struct value_schema *schema, const struct value_schema_opts *opts)
{
	struct user_rights rights;
	int err = value_schema_begin(schema);

	if (err)
		return err;
	if (access(opts->path, R_OK))
		return -errno;
	/* The files, and the cache, are the user's. */
	err = user_rights__begin(&rights);
	if (err)
		return err;
	err = make_by_process(schema, opts);
	user_rights__end(&rights);
	return err;
}

const char *value_schema_why(int err)
{
	switch (err) {
	case -EBADMSG:
		return "reading its debugging information ends whylate-symbols";
	case -ETIME:
		return "reading its debugging information takes too much CPU time";
	case -EFBIG:
		return "reading its debugging information takes more memory than there is for it";
	case -EPERM:
		return "whylate-symbols, which would read it, cannot give up its privileges on this kernel or in this "
		       "container";
	default:
		return NULL;
	}
}
