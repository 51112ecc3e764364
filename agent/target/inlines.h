/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which functions a compiler has inlined at an address, and its source line, by a file's DWARF.  A compilation unit is
 * read when something in it is looked up first.  The file is not trusted, and libdw reads it: the agent looks up by
 * symbols.h, in a process without privileges.  One thread only.
 */
#ifndef WHYLATE_TARGET_INLINES_H
#define WHYLATE_TARGET_INLINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Inlined into each other at one address. */
#define INLINES_DEPTH_MAX 12
/* Of a name, with its NUL. */
#define INLINES_NAME_SZ 160
/* Bytes of DWARF that all files may have, unpacked: libdw keeps all of it in memory. */
#define INLINES_SZ_MAX (24ULL << 20)
/* The same of files whose source lines are looked up: most of them are mapped, and few pages of that are read. */
#define LINES_SZ_MAX (1ULL << 30)

struct inlines;

/* The descriptor becomes its own, also on failure.  NULL: the file has no DWARF, too much of it, or no memory. */
struct inlines *inlines__open(int fd);
/* The same for inlines__line_at(): a process has files of one of both kinds. */
struct inlines *inlines__open_lines(int fd);
void inlines__free(struct inlines *inlines); /* NULL-safe */
/*
 * The functions inlined at a linked address, outermost first, as their programmers wrote them: how many.  The names are
 * valid until the next call.
 */
size_t inlines__at(struct inlines *inlines, uint64_t addr, const char *names[INLINES_DEPTH_MAX]);
/* The source line of an instruction; false: the file does not tell. */
bool inlines__line_at(struct inlines *inlines, uint64_t addr, const char **file, uint32_t *line);

#endif
