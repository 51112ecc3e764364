/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The functions of one module by their C++ names (see cxx_name.h), with and without arguments. */
#ifndef WHYLATE_PROBE_CXX_INDEX_H
#define WHYLATE_PROBE_CXX_INDEX_H

#include "probe/cxx_name.h"
#include "target/program.h"

struct cxx_entry {
	struct cxx_name name;
	uint32_t func;
};

struct cxx_index {
	struct cxx_entry *entries; /* by key, then by full name, then by number */
	size_t cnt, room;
};

/* Of all functions whose name is a mangled one.  0 or -errno (see program__module_functions()). */
int cxx_index_make(struct cxx_index *index, struct program *program, uint32_t module);
void cxx_index_free(struct cxx_index *index);
/* The entries whose key (or, if it has arguments, full name) is that of `wanted`: the first one, *cnt of them. */
const struct cxx_entry *cxx_index_find(const struct cxx_index *index, const struct cxx_name *wanted, size_t *cnt);

#endif
