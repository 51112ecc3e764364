/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A whylate-symbols process that reads the variables of one binary: it has the binary's files, no privilege, and ends
 * with the answer.  It may end at any moment, and what it answers is not trusted.
 */
#ifndef WHYLATE_VALUES_SCHEMA_CHILD_H
#define WHYLATE_VALUES_SCHEMA_CHILD_H

#include "target/symbols_child.h"
#include "values/schema_build.h"
#include "values/schema_bytes.h"

/* Of CPU time, and of memory beyond the files. */
#define SCHEMA_CPU_S  120
#define SCHEMA_MEMORY (1ULL << 30)

/*
 * Begins with these files, which stay the caller's, as of schema_binary__open(); the options stay as they are until it
 * has ended.  0, or -errno: that of the head, which has been checked, or of value_schema_make().
 */
int schema_child__begin(struct symbols_child *child, const struct value_schema_opts *opts, int fd, int debug_fd,
			bool is_checked, struct schema_head *head);
/* The schema of a binary that it has opened: 0 or -errno; vec_free() in any case. */
int schema_child__finish(struct symbols_child *child, const struct value_schema_opts *opts, schema_bytes *bytes);
/* -EBADMSG: it is none of a process that keeps to what was agreed. */
int schema_head_check(const struct schema_head *head);

#endif
