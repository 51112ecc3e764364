/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Retention (agent/model/retention.h) where an interval ends: whether it is kept is known by its latency, before its
 * numbers are put together.
 */
#ifndef WHYLATE_BPF_RETAIN_H
#define WHYLATE_BPF_RETAIN_H

#include "words.h"

/* Where half the ring is waiting for the reader, before it has told how many are too many: so much less likely. */
#define CROWDED_SHIFT 4

/*
 * Of an interval that took that long; *chance is what its record says of it, and *flags that it is no late one.  The
 * chance depends on what was before the interval alone, so weights by its inverse are unbiased.
 */
static __always_inline bool is_kept(u64 latency_ns, u32 *chance, u32 *flags)
{
	u64 keep_chance = *(volatile u64 *)&controls.keep_chance, late_ns = *(volatile u64 *)&controls.late_ns, drawn;
	void *ring;

	*chance = 0;
	if (latency_ns >= late_ns)
		return true;
	drawn = bpf_get_prandom_u32();
	if (drawn >= keep_chance)
		return false;
	ring = ring__of_cpu(bpf_get_smp_processor_id());
	if (ring && bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) > 2 * (u64)cfg_knobs.ring_wake_bytes)
		keep_chance >>= CROWDED_SHIFT;
	*chance = keep_chance; /* certainty is 0 */
	/* Before there is a quantile, nobody knows what is late: only what stands for others is of the baseline then.
	 */
	if (late_ns != ~0ULL || *chance)
		*flags |= WL_INTERVAL_BASELINE;
	return drawn < keep_chance;
}

#endif
