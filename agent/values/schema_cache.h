/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Schemas of binaries by build id, in a directory of the user's own: DWARF of 100 MB takes seconds to read.  A file
 * there is believed only as far as its owner and its contents allow; one that is not is made anew.
 */
#ifndef WHYLATE_VALUES_SCHEMA_CACHE_H
#define WHYLATE_VALUES_SCHEMA_CACHE_H

#include "values/schema.h"

#define SCHEMA_CACHE_FILES 64 /* beyond, those that were used longest ago go */

/* Fills the schema, of which build_id and arena are set.  False: there is none, and nothing has changed. */
bool schema_cache_load(struct value_schema *schema, const struct value_schema_opts *opts);
/* The schema's bytes (schema_bytes.h).  Where it cannot be kept, it is not. */
void schema_cache_store(const struct value_schema *schema, const struct value_schema_opts *opts, const void *bytes,
			size_t sz);

#endif
