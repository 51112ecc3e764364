/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of a resolution: resolve.c finds, resolve_why.c says why not, resolve_plan.c plans what was found. */
#ifndef WHYLATE_PROBE_RESOLVE_INTERNAL_H
#define WHYLATE_PROBE_RESOLVE_INTERNAL_H

#include "base/log.h"
#include "probe/cxx_index.h"
#include "probe/resolve.h"
#include "target/elf_file.h"
#include "target/function_code.h"

#define TARGETS_MAX 100000 /* of all lines together */

/* What is known of a module beyond what the program knows; each read when first asked for. */
struct resolver_module {
	struct cxx_index cxx;
	usdt_sites markers;
	uint32_t marker_func; /* number of the first marker */
	struct elf_file *elf; /* NULL: cannot be read */
	bool cxx_read, markers_read, elf_read;
};

struct resolver {
	struct program *program;
	const probe_lines *lines;
	struct probe_targets *out;
	struct resolver_module *modules;
	uint32_t module_cnt;
	uint32_t marker_cnt;
	size_t glob_cnt;
	size_t explained; /* lines for which similar names were looked for */
	char why[1024];   /* of the line at hand */
};

/* Sets resolver->why and returns err. */
int resolver_refuse(struct resolver *resolver, int err, const char *fmt, ...) WL_PRINTF(3, 4);
/* Appends to text as far as there is room. */
void resolver_append(char *text, size_t sz, const char *fmt, ...) WL_PRINTF(3, 4);

/* NULL when it cannot be read. */
const struct cxx_index *resolver_cxx(struct resolver *resolver, uint32_t module);
/* None when it cannot be read. */
const usdt_sites *resolver_markers(struct resolver *resolver, uint32_t module);

/* resolve_place.c: the instruction at an address, as a marker with the argument registers for its arguments. */
int resolver_place_add(struct resolver *resolver, uint32_t line_idx, uint32_t module, uint64_t addr);
/* resolve_why.c: why there is no such symbol in the one module, or (PROGRAM_NONE) in any. */
int resolver_explain(struct resolver *resolver, const struct probe_line *line, uint32_t only);
int resolver_explain_module(struct resolver *resolver, const struct probe_line *line);
/* resolve_plan.c: overlaps and plans; completes the verdicts. */
int resolver_plan(struct resolver *resolver);

#endif
