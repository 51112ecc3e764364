/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One ring per CPU.  The reader looks at them by itself every now and then; it is woken only when a backlog builds up.
 * Every attempt is counted, and so is every failure: emitted = written + lost.
 */
#ifndef WHYLATE_BPF_RING_H
#define WHYLATE_BPF_RING_H

#include "context.h"

#define RING_WHOLE (~0ULL)

static __always_inline void *ring__of_cpu(u32 cpu)
{
	return bpf_map_lookup_elem(&rings, &cpu);
}

static __always_inline void *ring__reserve_below(u32 class, u16 kind, u64 sz, u64 backlog_max)
{
	struct wl_record_header *header;
	struct cpu_context *cpu = this_cpu();
	u32 id = bpf_get_smp_processor_id();
	void *ring = ring__of_cpu(id);

	if (!cpu)
		return NULL;
	__sync_fetch_and_add(&cpu->loss[class].emitted, 1);
	header = ring && (backlog_max == RING_WHOLE || bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) <= backlog_max)
			 ? bpf_ringbuf_reserve(ring, sz, 0)
			 : NULL;
	if (!header) {
		count_loss(cpu, class);
		return NULL;
	}
	header->kind = kind;
	header->sz = sz;
	header->cpu = id;
	return header;
}

static __always_inline void *ring__reserve(u32 class, u16 kind, u64 sz)
{
	return ring__reserve_below(class, kind, sz, RING_WHOLE);
}

/* For a record of which there are many: half of the ring is left to those that say more. */
static __always_inline void *ring__reserve_many(u32 class, u16 kind, u64 sz)
{
	return ring__reserve_below(class, kind, sz, 2 * (u64)cfg_knobs.ring_wake_bytes);
}

/*
 * The wake-up takes an interrupt of this CPU, which is itself something to record in trace mode: woken for every record
 * beyond the limit, the reader would never get the CPU.
 */
#define WAKE_EVERY_NS 2000000

static __always_inline u64 ring__wake_flag(struct cpu_context *cpu, u64 backlog)
{
	u64 now;

	if (backlog <= cfg_knobs.ring_wake_bytes)
		return BPF_RB_NO_WAKEUP;
	now = bpf_ktime_get_ns();
	if (now - cpu->reader_woken_ts <= WAKE_EVERY_NS)
		return BPF_RB_NO_WAKEUP;
	cpu->reader_woken_ts = now;
	return BPF_RB_FORCE_WAKEUP;
}

static __always_inline void ring__submit(void *record)
{
	u32 id = ((struct wl_record_header *)record)->cpu;
	struct cpu_context *cpu = this_cpu();
	void *ring = ring__of_cpu(id);
	u64 flags = BPF_RB_NO_WAKEUP;

	if (cpu && ring)
		flags = ring__wake_flag(cpu, bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA));
	bpf_ringbuf_submit(record, flags);
}

/* The reader has something to do about this one at once. */
static __always_inline void ring__submit_now(void *record)
{
	bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
}

#endif
