/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A schema as whylate-symbols sends it, and as the cache keeps it.  It does not leave the machine.  Nothing of it is
 * trusted: a process that parses hostile files has written it.
 */
#ifndef WHYLATE_VALUES_SCHEMA_BYTES_H
#define WHYLATE_VALUES_SCHEMA_BYTES_H

#include "values/schema.h"

#define SCHEMA_SZ_MAX (512ULL << 20)

typedef VEC(uint8_t) schema_bytes;

/* 0, -ENOMEM or -EFBIG; vec_free() in any case. */
int schema_bytes_make(const struct value_schema *schema, schema_bytes *bytes);
/*
 * Fills a schema that has begun: 0, -EBADMSG or -ENOMEM; then it is as it was.  Its texts are copies; all numbers in it
 * are such as value_schema_make() promises.
 */
int schema_bytes_take(struct value_schema *schema, const void *bytes, size_t sz);
/* Sets the checksum of bytes that were changed: for tests. */
void schema_bytes_seal(void *bytes, size_t sz);

#endif
