/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What probes that are attached together consist of: the sites, in the order in which they are attached. */
#ifndef WHYLATE_CAPTURE_PROBE_SET_H
#define WHYLATE_CAPTURE_PROBE_SET_H

#include "capture/attacher.h"
#include "capture/probe_specs.h"
#include "probe/probe.h"

/* In the order in which they are attached: no entry goes without its exit. */
enum site_kind { SITE_RETURN, SITE_EXIT, SITE_ENTRY, SITE_KINDS };

struct site {
	enum site_kind kind;
	uint32_t file; /* index into the set's files */
	uint32_t member;
	struct attach_site place;
};

/* Sites of one kind and one file. */
struct site_run {
	enum site_kind kind;
	uint32_t file;
	bool of_program; /* the file is what the target runs */
	size_t first, cnt;
};

/* One probe of a set. */
struct member {
	uint32_t spec; /* the one that it is counted by, which may be another member's */
	bool owns_spec;
	uint32_t func;
	enum probe_role role;
	enum plan_cost entry_cost, exit_cost;
	bool exit_is_return;
	struct probe_hit_count hits; /* once it is detached */
};

struct probe_set {
	uint32_t group; /* the attacher's name for it */
	VEC(struct site) sites;
	VEC(struct attach_site) places; /* theirs */
	VEC(struct site_run) runs;
	VEC(struct member) members;
	VEC(char *) files;
	VEC(int) file_fds; /* held open: the process that they were found by may go */
	uint64_t attach_ns, detach_ts;
	uint32_t ticket; /* of its detaching */
	bool attached;
	bool wide;        /* the links of the target's program name no process */
	uint64_t wide_ts; /* since when, 0: from the beginning */
};

/*
 * Takes places in the table for the probes and finds out their sites. 0, or -errno after one line that says which probe
 * cannot be had and why: probe_set__free() in either case.
 */
int probe_set__fill(struct probe_set *set, struct probe_specs *specs, const struct probe *probes, size_t cnt);
/* Its places are retired (probe_specs.h); NULL-safe. */
void probe_set__free(struct probe_set *set, struct probe_specs *specs);

#endif
