/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The records of a jitdump file (tools/perf/Documentation/jitdump-specification.txt of the kernel): code that a JIT
 * compiler made or moved.  Of this machine's byte order only.  Nothing that a record says is trusted.
 */
#ifndef WHYLATE_TARGET_JITDUMP_H
#define WHYLATE_TARGET_JITDUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a record from which all but the longest names are read. */
#define JITDUMP_READ_SZ 4096

struct jitdump_record {
	enum { JITDUMP_OTHER, JITDUMP_LOAD, JITDUMP_MOVE } kind;
	uint32_t sz;                        /* to the next record */
	uint64_t addr, code_sz, moved_from; /* moved_from: of JITDUMP_MOVE */
	const char *name;                   /* of JITDUMP_LOAD: name_len bytes */
	size_t name_len;
};

/* Where the first record is.  0: the file is none. */
uint32_t jitdump_begin(const void *bytes, size_t len);
/* `len` bytes from the record's beginning, as many as the file has up to JITDUMP_READ_SZ.  False: it is not whole yet,
 * or malformed. */
bool jitdump_parse(const void *bytes, size_t len, struct jitdump_record *record);

#endif
