/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Debugging information is read in a process of its own, whylate-symbols: libelf and libdw parse what a target, and so
 * anybody, can have written.  The process has no privilege: no capability, no file but those whose descriptors it gets,
 * no new process, no socket but the one to the agent, 256 MiB of memory beyond what it begins with, and 6 s of CPU for
 * a question.  Its answers are not trusted either.
 *
 * It begins with the first file, and again when it has ended; a file that ends it three times, or takes all of that
 * CPU time, is given up, which is said once.  A lookup waits for a short time, then goes without an answer, which comes
 * later; lookups that take more than their share of the time are left for later, and answers are remembered.
 *
 * One thread only.
 */
#ifndef WHYLATE_TARGET_SYMBOLS_H
#define WHYLATE_TARGET_SYMBOLS_H

#include "target/inlines.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct symbols;
struct go_layout;

#define SYMBOLS_TIME_SHARE 0.02

/*
 * Waiting for answers about a file may take that much time at once, and SYMBOLS_TIME_SHARE of the time.  NULL: out of
 * memory.
 */
struct symbols *symbols__new(uint64_t at_once_ns);
/* The same for symbols__line_at() in place of symbols__inlined_at(): files may have more DWARF. */
struct symbols *symbols__new_lines(uint64_t at_once_ns);
void symbols__free(struct symbols *symbols); /* NULL-safe */
/* So much more time may be waited for answers about each file. */
void symbols__allow(struct symbols *symbols, uint64_t more_ns);
/* Ends the process and forgets all files; what is told of the process stays. */
void symbols__end(struct symbols *symbols);

/*
 * A file with DWARF, by the name that people know it by; the descriptor becomes its own, also on failure.  What is
 * handed to symbols__inlined_at(), never 0; 0: no regular file, or out of memory.
 */
uint32_t symbols__open(struct symbols *symbols, int fd, const char *name);

/*
 * The functions inlined at a linked address of that file, outermost first: how many.  The names are valid until the
 * next call.
 */
size_t symbols__inlined_at(struct symbols *symbols, uint32_t file, uint64_t addr, const char *names[INLINES_DEPTH_MAX]);

/*
 * The source line of a linked address of that file: 0, also where it is not known (*name NULL); -EAGAIN: there is no
 * answer yet.  The name is valid until the next call.
 */
int symbols__line_at(struct symbols *symbols, uint32_t file, uint64_t addr, const char **name, uint32_t *line);

/*
 * As go_layout_by_dwarf(), of a process for this question alone: what the file does not say of the layout stays as it
 * was.  -EBADMSG: also where the file ends the process.
 */
int symbols_go_layout(int fd, struct go_layout *layout, uint32_t *stopping_off);

/* How often its process has begun. */
uint32_t symbols__starts(const struct symbols *symbols);

#endif
