/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the variables of a binary in the process that calls: whylate-symbols, or a test. */
#ifndef WHYLATE_VALUES_SCHEMA_BUILD_H
#define WHYLATE_VALUES_SCHEMA_BUILD_H

#include "values/schema.h"

#define SCHEMA_BUILD_ID_SZ 136 /* hex, with its NUL */
#define SCHEMA_LINK_SZ     256

/* What a binary says of itself. */
struct schema_head {
	uint32_t err; /* ENODATA: it has no DWARF; ESTALE: the debug file is another one's; ENOKEY: nothing tells */
	uint32_t link_crc;
	char build_id[SCHEMA_BUILD_ID_SZ]; /* hex, "": none */
	char link[SCHEMA_LINK_SZ];         /* .gnu_debuglink, "": none */
};

struct schema_binary;

/*
 * The file, and its separate debug file (-1: none), which a checksum has told to be the right one, or build ids have
 * to.  Both descriptors become its own.  0 or -errno, which the head has, too; schema_binary__close() in any case.
 */
int schema_binary__open(struct schema_binary **binary, int fd, int debug_fd, bool is_checked, struct schema_head *head);
void schema_binary__close(struct schema_binary *binary); /* NULL-safe */

/* Fills a schema that has begun.  0 or -errno. */
int value_schema_build(struct value_schema *schema, struct schema_binary *binary, const struct value_schema_opts *opts);
/* All of it, of a file that has its own DWARF; the descriptor becomes its own. */
int value_schema_read(struct value_schema *schema, int fd, const struct value_schema_opts *opts);

#endif
