/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Probes on functions and markers of the target: groups of them that are attached and detached while a recording runs.
 * Where each probe sits is the planner's business (probe/plan.h), what its role means the symbol list's
 * (probe/symbol_list.h); the kernel side does all roles with one pair of programs.
 *
 * With uprobe_multi there is one link per process, file and kind of site, which names the process: no other process
 * that maps the file has a probe.  Only where the target has children, and nobody else runs its program, the links of
 * the program's own file name none, so that a child has its probes from its first instruction; they are exchanged for
 * the others as soon as somebody else comes by.  Without uprobe_multi, single uprobes, at most
 * CAPTURE_SINGLE_PROBES_MAX of them: every switch of the target's threads pays for each (DESIGN §3).  A process of its
 * own holds them (attacher.h): all of them go away when the agent ends, however it ends.
 */
#ifndef WHYLATE_CAPTURE_PROBES_H
#define WHYLATE_CAPTURE_PROBES_H

#include "capture/capture.h"
#include "probe/probe.h"

#define CAPTURE_SINGLE_PROBES_MAX 64
/* Probes attached at a time, of all sets. */
#define CAPTURE_PROBES_MAX PROBE_SPECS_MAX

struct probe_set;

/*
 * Attaches to every process that is followed, exits before entries; children get it when they are seen (see
 * capture__adopt_process()).  A process that does not map a file is left out.  Opens with capture_opts.probes only.
 * 0, or -errno with nothing attached after one line that names the probe: -ENOTSUP (the role needs an exit that the
 * plan does not have; too many for single uprobes), -ENOSPC (CAPTURE_PROBES_MAX), -EINVAL (an expression that cannot be
 * had there), or what the kernel said.
 */
int capture__attach_probes(struct capture *capture, const struct probe *probes, size_t cnt, struct probe_set **set);
/*
 * Detaches and frees it; calls that are open then are forgotten, and nothing is counted any more.  The breakpoints are
 * taken out behind its back, a moment later.  NULL-safe.  capture__stop() detaches the sets that are left, whose counts
 * can still be had, and waits for breakpoints for up to a second.
 */
void capture__detach_probes(struct capture *capture, struct probe_set *set);

/* How many sets the kernel has not taken back yet, after waiting for them for at most patience_ns. */
size_t capture__detaching(struct capture *capture, uint64_t patience_ns);

/* Processes that ran without some of the probes at first: children whose links had to be made when they were seen. */
struct capture_unprobed {
	uint64_t cnt;
	uint64_t gone_cnt; /* of them, at least so many had ended by then */
	uint64_t ns;       /* of all of them together, from their beginning until they were probed */
};
struct capture_unprobed capture__unprobed(const struct capture *capture);

/* Has the process that holds the probes been killed?  All sets are detached then, and no other can be attached. */
bool capture__probes_lost(struct capture *capture);

struct probe_hits {
	uint64_t entries, exits; /* that ran, in all processes */
	uint64_t cost_ns;        /* what they cost the target: hits times measured cost per hit of their class */
};

/* Per probe of the set, in the order in which they were attached: hits[cnt] is the caller's. */
void capture__probe_hits(struct capture *capture, const struct probe_set *set, struct probe_hits *hits);
/*
 * Does the target switch stacks (coroutines)?  Then calls whose frames lie far apart are taken to be on two of them,
 * and flagged, even within one mapping.
 */
void capture__set_stack_switching(struct capture *capture, bool switches);
/* Time that attaching the set took. */
uint64_t capture__attach_ns(const struct probe_set *set);
/* When the first of its probes went: calls that were open then are incomplete.  0: it is attached. */
uint64_t capture__detach_ts(const struct probe_set *set);

/*
 * What the hits of a whole call cost the target by themselves, the program's own run time excluded, in ns: entry and
 * exit, the most expensive of those that there are; where it has no exit, the entry's.
 */
uint32_t capture__call_cost_ns(const struct plan *plan);

#endif
