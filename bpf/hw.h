/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hardware counters, VarMRI §4.3 and §4.4: read when a thread starts and stops to run its own code, so that interrupts
 * on top of it are left out.  Only while an interval is being recorded on the thread.
 *
 * The agent rotates the counters: it makes controls.hw_epoch odd, swaps the events, makes it even again.  Whatever
 * breaks the chain of a thread's readings (a new epoch, a counter that cannot be read or was multiplexed) moves its
 * hw_generation on, and an interval whose generation changed has no values.
 */
#ifndef WHYLATE_BPF_HW_H
#define WHYLATE_BPF_HW_H

#include "context.h"

/* *waited_ns: how long the event had no counter of the PMU, because others were in its place. */
static __always_inline bool hw__read(u32 slot, u64 *value, u64 *waited_ns)
{
	struct bpf_perf_event_value event = {};
	u32 key = bpf_get_smp_processor_id() * WL_HW_SLOTS + slot;

	if (bpf_perf_event_read_value(&hw_events, key, &event, sizeof(event)))
		return false;
	*value = event.counter;
	*waited_ns = event.enabled - event.running;
	return true;
}

/* The thread's own code stops or starts to run. */
static __always_inline void hw__switch(struct thread *thread, bool stops, bool starts)
{
	if (!thread->recording || stops == starts)
		return;
	if (thread->hw_epoch != controls.hw_epoch) {
		thread->hw_epoch = controls.hw_epoch;
		thread->hw_generation++;
		if (stops)
			return;
	}
	for (u32 slot = 0; slot < WL_HW_SLOTS && slot < controls.hw_slots; slot++) {
		u64 value, waited_ns;

		if (!hw__read(slot, &value, &waited_ns) || (stops && waited_ns != thread->hw_waited_ns[slot])) {
			thread->hw_generation++;
			return;
		}
		if (starts) {
			thread->hw_start[slot] = value;
			thread->hw_waited_ns[slot] = waited_ns;
		} else {
			thread->hw[slot] += value - thread->hw_start[slot];
		}
	}
}

/* The counters now, of a thread that runs its own code; `fresh`: nothing was recorded on it until now. */
static __always_inline void hw__snapshot(struct thread *thread, u64 *hw, bool fresh)
{
	bool broken = thread->hw_epoch != controls.hw_epoch;

	if (broken) {
		thread->hw_epoch = controls.hw_epoch;
		thread->hw_generation++;
	}
	for (u32 slot = 0; slot < WL_HW_SLOTS && slot < controls.hw_slots; slot++) {
		u64 value, waited_ns;

		if (!hw__read(slot, &value, &waited_ns)) {
			thread->hw_generation++;
			return;
		}
		if (fresh || broken) {
			thread->hw_start[slot] = value;
			thread->hw_waited_ns[slot] = waited_ns;
		} else if (waited_ns != thread->hw_waited_ns[slot]) {
			thread->hw_generation++;
			return;
		}
		hw[slot] = thread->hw[slot] + value - thread->hw_start[slot];
	}
}

#endif
