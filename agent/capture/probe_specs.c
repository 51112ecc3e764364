// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/probe_specs.h"

#include "base/log.h"

#include <bpf/bpf.h>
#include <string.h>

void probe_specs__free(struct probe_specs *specs)
{
	vec_free(&specs->unused);
	vec_free(&specs->retired);
}

/* Those whose probes are gone by now are unused.  Without room to remember it a place is not used again. */
static void take_back(struct probe_specs *specs)
{
	size_t left = 0;

	if (!specs->retired.cnt || vec_reserve(&specs->unused, specs->retired.cnt))
		return;
	for (size_t i = 0; i < specs->retired.cnt; i++) {
		struct retired_spec retired = specs->retired.items[i];

		if (attacher__is_closing(specs->attacher, retired.ticket))
			specs->retired.items[left++] = retired;
		else
			specs->unused.items[specs->unused.cnt++] = retired.spec;
	}
	specs->retired.cnt = left;
}

static int zero_hits(const struct probe_specs *specs, uint32_t idx)
{
	struct probe_hit_count *cpus = calloc(specs->cpu_cnt, sizeof(*cpus));
	int err = cpus ? 0 : -ENOMEM;

	if (!err && bpf_map_update_elem(specs->hits_fd, &idx, cpus, BPF_ANY))
		err = -errno;
	free(cpus);
	return err;
}

int probe_specs__take(struct probe_specs *specs, uint32_t *idx)
{
	if (!specs->unused.cnt)
		take_back(specs);
	if (specs->unused.cnt)
		*idx = specs->unused.items[--specs->unused.cnt];
	else if (specs->next < PROBE_SPECS_MAX)
		*idx = specs->next++;
	else
		return -ENOSPC;
	return zero_hits(specs, *idx);
}

void probe_specs__retire(struct probe_specs *specs, uint32_t idx, uint32_t ticket)
{
	struct retired_spec retired = {idx, ticket};

	if (vec_push(&specs->retired, retired))
		log_debug("no memory to use place %u of the table of probes again", idx);
}

int probe_specs__set(const struct probe_specs *specs, uint32_t idx, const struct probe_spec *spec)
{
	return bpf_map_update_elem(specs->specs_fd, &idx, spec, BPF_ANY) ? -errno : 0;
}

/* Nothing else changes: a hit may be under way, past the question whether the flag is there. */
static int change_flag(const struct probe_specs *specs, uint32_t idx, uint32_t flag, bool on)
{
	struct probe_spec spec;

	if (bpf_map_lookup_elem(specs->specs_fd, &idx, &spec))
		return -errno;
	spec.flags = on ? spec.flags | flag : spec.flags & ~flag;
	return probe_specs__set(specs, idx, &spec);
}

void probe_specs__switch_off(const struct probe_specs *specs, uint32_t idx)
{
	int err = change_flag(specs, idx, SPEC_OFF, true);

	if (err)
		log_debug("cannot switch off place %u of the table of probes: %s", idx, strerror(-err));
}

int probe_specs__set_wide(const struct probe_specs *specs, uint32_t idx, bool wide)
{
	return change_flag(specs, idx, SPEC_WIDE, wide);
}

struct probe_hit_count probe_specs__hits(const struct probe_specs *specs, uint32_t idx)
{
	struct probe_hit_count *cpus = calloc(specs->cpu_cnt, sizeof(*cpus)), sum = {0};

	if (cpus && !bpf_map_lookup_elem(specs->hits_fd, &idx, cpus)) {
		for (uint32_t cpu = 0; cpu < specs->cpu_cnt; cpu++) {
			sum.entries += cpus[cpu].entries;
			sum.exits += cpus[cpu].exits;
		}
	}
	free(cpus);
	return sum;
}
