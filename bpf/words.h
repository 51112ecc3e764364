/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes short records into the CPU's ring of words (whylate/words.h).  A record takes the ring first: an interrupt on
 * top of one that is being written, or on PREEMPT_RT another task, finds it busy and sends its own as a whole record,
 * to the other ring.  So does one that finds no room: the other ring is as large as it was asked to be, this one is
 * not. What is written here is counted here, all else with the other ring.
 */
#ifndef WHYLATE_BPF_WORDS_H
#define WHYLATE_BPF_WORDS_H

#include "ring.h"

#include <whylate/words.h>

/* One per CPU; the agent sets how long they are before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct wl_word_ring) + 4096);
} word_rings SEC(".maps") __weak;

/* A record that is being written. */
struct word_writer {
	struct wl_word_ring *ring;
	u64 at;
	u64 mask;
};

static __always_inline void words__give(struct word_writer *writer)
{
	*(volatile u64 *)&writer->ring->busy = 0;
}

/* False: the words are being written to, or there is no room for another record. */
static __always_inline bool words__take(struct word_writer *writer)
{
	u32 id = bpf_get_smp_processor_id();

	if (!cfg_knobs.words_mask)
		return false;
	writer->ring = bpf_map_lookup_elem(&word_rings, &id);
	if (!writer->ring || __sync_val_compare_and_swap(&writer->ring->busy, 0, 1))
		return false;
	writer->at = writer->ring->head;
	writer->mask = cfg_knobs.words_mask;
	if (writer->at + WL_WORDS_MAX - *(volatile u64 *)&writer->ring->tail <= writer->mask + 1)
		return true;
	words__give(writer);
	return false;
}

static __always_inline void words__put(struct word_writer *writer, u64 word)
{
	u64 pos = writer->at++ & writer->mask;

	barrier_var(pos);
	/* Once more for the verifier, which has not seen what the mask is where it was spilled. */
	pos &= cfg_knobs.words_mask;
	writer->ring->words[pos] = word;
}

/* What the next record says of the time, the thread and its interval, where that is new. */
static __always_inline void words__at(struct word_writer *writer, u64 ts)
{
	if (writer->ring->ts == ts)
		return;
	writer->ring->ts = ts;
	words__put(writer, WL_TIME_WORD(ts));
}

static __always_inline void words__of(struct word_writer *writer, struct thread *thread)
{
	u64 word = WL_THREAD_WORD(thread->pid, thread->tid, thread->outside);

	if (writer->ring->thread == word)
		return;
	writer->ring->thread = word;
	words__put(writer, word);
}

static __always_inline void words__for(struct word_writer *writer, u64 sid, u32 type)
{
	if (writer->ring->sid != sid) {
		writer->ring->sid = sid;
		words__put(writer, WL_SID_WORD(sid));
	}
	if (sid && writer->ring->type != type) {
		writer->ring->type = type;
		words__put(writer, WL_TYPE_WORD(type));
	}
}

/* Wakes the reader where more than half of the words are waiting for it. */
static __always_inline void words__wake(struct word_writer *writer)
{
	void *ring = ring__of_cpu(bpf_get_smp_processor_id()), *nothing;
	u64 now = bpf_ktime_get_ns();

	if (!ring || now - writer->ring->reader_woken_ts <= WAKE_EVERY_NS)
		return;
	writer->ring->reader_woken_ts = now;
	nothing = bpf_ringbuf_reserve(ring, sizeof(struct wl_record_header), 0);
	if (nothing)
		bpf_ringbuf_discard(nothing, BPF_RB_FORCE_WAKEUP);
}

/* The record is complete, of that class: the agent may read it. */
static __always_inline void words__end(struct word_writer *writer, u32 class)
{
	struct wl_word_ring *ring = writer->ring;

	ring->emitted[class]++;
	/* A whole barrier: the words come before the head. */
	__sync_fetch_and_add(&ring->head, writer->at - ring->head);
	if (writer->at - *(volatile u64 *)&ring->tail > writer->mask / 2)
		words__wake(writer);
	words__give(writer);
}

#endif
