/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Selected intervals that are open, by sid.
 *
 * A hash map takes 0.4 µs an interval to make and delete an entry of this size.  Here an entry is made by one
 * compare-and-swap of a sid in a set of eight, which is one cache line.  An interval has two sets: a near one, of which
 * each CPU uses so few that their entries stay in its cache, and a far one for what finds no room there.  Where both
 * are full the oldest of the far one goes, and is counted where it ends: a connection may vanish without a trace.
 */
#ifndef WHYLATE_BPF_OPENS_H
#define WHYLATE_BPF_OPENS_H

#include "context.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, OPEN_SETS);
	__type(key, u32);
	__type(value, struct open_set);
} open_sets SEC(".maps") __weak;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, OPEN_SETS *OPEN_WAYS);
	__type(key, u32);
	__type(value, struct open_interval);
} opens SEC(".maps") __weak;

static __always_inline u32 open_near_set(u64 sid)
{
	return (u32)sid % OPEN_NEAR_CPUS * OPEN_NEAR_OF_CPU + (u32)(sid >> SID_CPU_BITS) % OPEN_NEAR_OF_CPU;
}

static __always_inline u32 open_far_set(u64 sid)
{
	return OPEN_NEAR_SETS + ((u32)(sid >> SID_CPU_BITS) + (u32)sid * 61) % OPEN_FAR_SETS;
}

/* 1 + the place of the sid in that set; 0: it has none there. */
static __always_inline u32 open_set__place(u32 key, u64 sid)
{
	struct open_set *set = bpf_map_lookup_elem(&open_sets, &key);

	if (!set)
		return 0;
	for (u32 way = 0; way < OPEN_WAYS; way++)
		if (*(volatile u64 *)&set->sids[way] == sid)
			return key * OPEN_WAYS + way + 1;
	return 0;
}

VERIFIED_ONCE u32 open_place(u64 sid)
{
	u32 place;

	if (!sid)
		return 0;
	place = open_set__place(open_near_set(sid), sid);
	return place ? place : open_set__place(open_far_set(sid), sid);
}

static __always_inline struct open_interval *open_at(u32 place)
{
	place--;
	return bpf_map_lookup_elem(&opens, &place);
}

/* NULL: it is not open, or not selected. */
static __always_inline struct open_interval *open_find(u64 sid)
{
	u32 place = open_place(sid);

	return place ? open_at(place) : NULL;
}

static __always_inline u32 open_set__take(u32 key, u64 sid)
{
	struct open_set *set = bpf_map_lookup_elem(&open_sets, &key);

	if (!set)
		return 0;
	for (u32 way = 0; way < OPEN_WAYS; way++)
		if (!*(volatile u64 *)&set->sids[way] && !__sync_val_compare_and_swap(&set->sids[way], 0, sid))
			return key * OPEN_WAYS + way + 1;
	return 0;
}

static __always_inline u32 open_set__take_oldest(u32 key, u64 sid)
{
	struct open_set *set = bpf_map_lookup_elem(&open_sets, &key);
	u64 oldest;
	u32 at = 0;

	if (!set)
		return 0;
	oldest = *(volatile u64 *)&set->sids[0];
	for (u32 way = 1; way < OPEN_WAYS; way++) {
		u64 other = *(volatile u64 *)&set->sids[way];

		if (other >> SID_CPU_BITS < oldest >> SID_CPU_BITS) {
			oldest = other;
			at = way;
		}
	}
	if (__sync_val_compare_and_swap(&set->sids[at & (OPEN_WAYS - 1)], oldest, sid) != oldest)
		return 0;
	return key * OPEN_WAYS + (at & (OPEN_WAYS - 1)) + 1;
}

VERIFIED_ONCE u32 open_take_place(u64 sid)
{
	u32 place = open_set__take(open_near_set(sid), sid);

	if (!place)
		place = open_set__take(open_far_set(sid), sid);
	return place ? place : open_set__take_oldest(open_far_set(sid), sid);
}

/*
 * All of it is zero but `base` and `first`, which the caller sets, or whose length is 0.  NULL: there is no room.
 */
static __always_inline struct open_interval *open_make(u64 sid)
{
	u32 place = open_take_place(sid);
	struct open_interval *open = place ? open_at(place) : NULL;

	if (!open)
		return NULL;
	__builtin_memset(open, 0, offsetof(struct open_interval, first));
	__builtin_memset(&open->trace, 0, offsetof(struct open_interval, base) - offsetof(struct open_interval, trace));
	__builtin_memset(&open->sum, 0, sizeof(open->sum));
	return open;
}

/* False: it was not there. */
static __always_inline bool open_drop_at(u32 place, u64 sid)
{
	u32 key = (place - 1) / OPEN_WAYS;
	struct open_set *set = bpf_map_lookup_elem(&open_sets, &key);

	return set && __sync_val_compare_and_swap(&set->sids[(place - 1) & (OPEN_WAYS - 1)], sid, 0) == sid;
}

static __always_inline bool open_drop(u64 sid)
{
	u32 place = open_place(sid);

	return place && open_drop_at(place, sid);
}

#endif
