/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The schema of a binary, read by a process of its own that has no privileges, or kept in the cache.  Any thread. */
#ifndef WHYLATE_VALUES_SCHEMA_MAKE_H
#define WHYLATE_VALUES_SCHEMA_MAKE_H

#include "values/schema.h"

/*
 * 0; -ENOEXEC: no ELF file of this machine; -ENODATA: no DWARF in it nor in a separate debug file; -ENOENT, -EACCES;
 * -ENOMEM.  Of the process: -EFBIG: it takes too much memory; -ETIME: too much CPU time; -EBADMSG: the file ends it;
 * -EPERM: it cannot give up its privileges.  value_schema_free() in any case.
 */
int value_schema_make(struct value_schema *schema, const struct value_schema_opts *opts);
/* What to say of -errno of the process; NULL: it is none of these. */
const char *value_schema_why(int err);

#endif
