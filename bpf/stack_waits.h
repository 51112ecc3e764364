/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stacks of waits: which one is copied, by the key of its call path, and how it leaves. */
#ifndef WHYLATE_BPF_STACK_WAITS_H
#define WHYLATE_BPF_STACK_WAITS_H

#include "ring.h"
#include "stack_copy.h"

/* Stacks of waits that a CPU may copy at once, after a time without any. */
#define COPIES_MAX 64
/* A known stack is checked at its 4th hit, its 8th, and so on, and then every so many. */
#define CHECK_FIRST     4
#define CHECK_EVERY_MAX 1024

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u64);
	__type(value, struct known_stack);
} known_stacks SEC(".maps") __weak;

/* A sample lost is a sample fewer, not an interval that lacks something.  Was it sent? */
static __always_inline bool stack__output(struct wl_record_header *header, u16 kind, u64 sz, bool wake, u32 class)
{
	struct cpu_context *cpu = this_cpu();
	u32 id = bpf_get_smp_processor_id();
	void *ring = ring__of_cpu(id);
	u64 backlog;

	if (!cpu)
		return false;
	__sync_fetch_and_add(&cpu->loss[class].emitted, 1);
	header->kind = kind;
	header->sz = sz;
	header->cpu = id;
	if (ring) {
		backlog = bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA);
		if (backlog <= stack_controls.backlog_sz &&
		    !bpf_ringbuf_output(ring, header, sz, wake ? BPF_RB_FORCE_WAKEUP : ring__wake_flag(cpu, backlog)))
			return true;
	}
	__sync_fetch_and_add(&cpu->loss[class].lost, 1);
	return false;
}

/* One of those that this CPU may copy, of which there is a new one every gap_ns. */
static __always_inline bool take_copy(struct stack_cpu *scratch, u64 now)
{
	u64 gap_ns = stack_controls.gap_ns, more = gap_ns ? (now - scratch->refilled_ts) / gap_ns : 0;

	if (more) {
		scratch->refilled_ts = now;
		scratch->copies = scratch->copies + more < COPIES_MAX ? scratch->copies + more : COPIES_MAX;
	}
	if (!scratch->copies)
		return false;
	scratch->copies--;
	return true;
}

static __always_inline bool is_copied(struct known_stack *known)
{
	u32 hits = ++known->hits;

	if (known->ambiguous)
		return true;
	if (hits < known->check_at)
		return false;
	known->check_at = hits + (hits < CHECK_EVERY_MAX ? hits : CHECK_EVERY_MAX);
	return true;
}

#endif
