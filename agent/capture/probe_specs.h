/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The places of the kernel side's tables of probes (bpf/probe_spec.h): who has which, and what was counted there. */
#ifndef WHYLATE_CAPTURE_PROBE_SPECS_H
#define WHYLATE_CAPTURE_PROBE_SPECS_H

#include "base/vec.h"
#include "bpf/probe_spec.h"
#include "capture/attacher.h"

struct retired_spec {
	uint32_t spec, ticket;
};

struct probe_specs {
	int specs_fd, hits_fd;
	uint32_t cpu_cnt;
	struct attacher *attacher;
	VEC(uint32_t) unused;
	VEC(struct retired_spec) retired; /* probes may still run for them */
	uint32_t next;
};

void probe_specs__free(struct probe_specs *specs);
/* A place whose hits are none: 0, -ENOSPC (the table is full) or -errno. */
int probe_specs__take(struct probe_specs *specs, uint32_t *idx);
/* Its probes are closed under that ticket: the place is somebody else's once they are. */
void probe_specs__retire(struct probe_specs *specs, uint32_t idx, uint32_t ticket);
/* 0 or -errno. */
int probe_specs__set(const struct probe_specs *specs, uint32_t idx, const struct probe_spec *spec);
/* From now on nothing is done for its probes any more. */
void probe_specs__switch_off(const struct probe_specs *specs, uint32_t idx);
/* Which of its links count from now on.  0 or -errno. */
int probe_specs__set_wide(const struct probe_specs *specs, uint32_t idx, bool wide);
/* Of all CPUs. */
struct probe_hit_count probe_specs__hits(const struct probe_specs *specs, uint32_t idx);

#endif
