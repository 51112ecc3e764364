/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From the lines of a symbol list to functions and markers of a program, each with its plan.  Every line gets a
 * verdict; nothing is left out without one.  Nothing is attached here, no privilege is needed beyond reading the files.
 */
#ifndef WHYLATE_PROBE_RESOLVE_H
#define WHYLATE_PROBE_RESOLVE_H

#include "probe/probe.h"

#define PROBE_GLOB_MAX    10000      /* functions that one line may mean */
#define PROBE_MARKER_FUNC (1u << 30) /* markers are numbered from here, functions as the program does */

/* One function or one place of a marker, in one role. */
struct probe_target {
	uint32_t line_idx;
	uint32_t func;                /* number in the recording; all places of a marker share one */
	uint32_t module;              /* of the program */
	uint64_t file_off;            /* of the function's first instruction, or of the marker */
	const char *name;             /* as people know it; lives as long as the program and these targets */
	const struct plan *plan;      /* of all roles of the function together; NULL: a marker */
	const struct usdt_site *usdt; /* NULL: a function */
	enum plan_cost usdt_cost;
	bool by_glob;
};

/* What became of one line. */
struct probe_verdict {
	int err;      /* 0, or why there is nothing to probe: -ENOENT, -EINVAL, -ENOTSUP, … */
	char *why;    /* NULL: nothing to say; with err 0 what is not as one might expect */
	size_t found; /* functions and places that it names */
	size_t cnt;   /* of them, those that are among the targets */
};

struct probe_targets {
	VEC(struct probe_target) targets;   /* by line */
	VEC(struct probe_verdict) verdicts; /* one per line of the list */
	/* What the targets point into: */
	VEC(struct plan *) plans;
	VEC(struct usdt_site *) markers;
	VEC(char *) names;
};

struct program;

/*
 * Looks all lines up and plans the probes.  0, or -ENOMEM, -EIO, … when that itself fails; a line that cannot be probed
 * is no failure: its verdict tells.  Lines must outlive the targets' use of line_idx only.
 */
int probe_targets_find(const probe_lines *lines, struct program *program, struct probe_targets *targets);
/*
 * The same for those who want all of it: an unfound line is an error after one line that names it, or, of a preset, a
 * warning for each such line as long as what is left makes sense (see symbol_list.h: counterparts).  What can only be
 * probed in part is a warning.
 */
int symbol_list_resolve(const probe_lines *lines, const char *list, struct program *program,
			struct probe_targets *targets);
void probe_targets_free(struct probe_targets *targets);

/* What is to be attached for a target; it points to what the target, the program and the line own. */
void probe_of_target(const struct probe_target *target, const struct probe_line *line, struct program *program,
		     struct probe *probe);
/*
 * Plans all functions anew that have a return probe, in place: what the program loads later may make that unsafe.  None
 * of them is attached.  0 or -ENOMEM.
 */
int probe_targets_replan(struct program *program, const probe_lines *lines, struct probe_targets *targets);

#endif
