/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The symbol list (DESIGN §7): one probe a line, `#` comments,
 *   ROLE [MODULE:]SYMBOL [name=TEXT] [key=EXPR] [object=EXPR] [task=EXPR] [queue=EXPR]
 * and the resolution of its lines against a live process.
 */
#ifndef WHYLATE_PROBE_SYMBOL_LIST_H
#define WHYLATE_PROBE_SYMBOL_LIST_H

#include "base/vec.h"
#include "target/target.h"

enum probe_role {
	PROBE_INTERVAL,
	PROBE_BEGIN,
	PROBE_END,
	PROBE_WORK,
	PROBE_ACQUIRE,
	PROBE_RELEASE,
	PROBE_ENQUEUE,
	PROBE_DEQUEUE,
	PROBE_FUNCTION,
	PROBE_ROLE_CNT
};

struct probe_line {
	uint32_t line_no;
	enum probe_role role;
	char *module; /* NULL: the executable first, then the one mapped library that has it */
	char *symbol;
	char *name; /* what reports call it; the symbol unless name= says otherwise */
};

typedef VEC(struct probe_line) probe_lines;

/*
 * 0, or -errno after one line that names file, line and what is wrong (unknown role, malformed line or expression, a
 * role that this version does not record yet, a line longer than 4096 bytes, no probe in the whole file, unreadable
 * file).
 */
int symbol_list_read(const char *path, probe_lines *lines);
void symbol_list_free(probe_lines *lines);

/* Where one line lives in the target: a function in a file. */
struct probe_site {
	uint32_t line_idx; /* into the list */
	char *file;        /* opened through /proc/PID/map_files or /proc/PID/root: usable from the agent's namespace */
	char *module;      /* base name, for people */
	uint64_t file_off; /* of the function's entry */
};

typedef VEC(struct probe_site) probe_sites;

/*
 * 0, or -errno after one line that names the symbol, what is wrong and what to do: unknown (with the nearest names and
 * the module they are in), in a Go binary, a data symbol, a module that is not mapped (with those that are), a name of
 * two libraries (with both), two lines for one function.  One name for several functions of a file is a warning.
 */
int symbol_list_resolve(const probe_lines *lines, const char *list_path, pid_t pid, probe_sites *sites);
void probe_sites_free(probe_sites *sites);

#endif
