/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which code lay at an address at a time: ranges that a JIT compiler has told of, one after the other.  A later range
 * takes the place of what it overlaps, from the time on at which it was learnt of.
 *
 * Memory is bounded: CODE_MAP_PIECES_MAX ranges that do not overlap, and the last CODE_MAP_PAST_MAX that others have
 * replaced.  One thread only, no I/O.
 */
#ifndef WHYLATE_TARGET_CODE_MAP_H
#define WHYLATE_TARGET_CODE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CODE_MAP_PIECES_MAX (512 * 1024)
#define CODE_MAP_PAST_MAX   8192

#define CODE_MAP_NONE UINT64_MAX

struct code_range {
	uint64_t start, end; /* start < end */
	uint64_t tag;        /* the caller's, not CODE_MAP_NONE */
};

struct code_map;

struct code_map *code_map__new(void);      /* NULL: out of memory */
void code_map__free(struct code_map *map); /* NULL-safe */
void code_map__clear(struct code_map *map);
/*
 * Ranges in the order in which the compiler told of them, all learnt of at `ts`, which never decreases.  Sorts them.  0
 * or -ENOMEM, and then none is there; -ENOSPC: there are too many, and none of these is there.
 */
int code_map__add(struct code_map *map, struct code_range *ranges, size_t cnt, uint64_t ts);
/*
 * The tag of what lay at the address at that time: the newest range that was known by then, or else the newest of
 * the first call of code_map__add() that told of one.  CODE_MAP_NONE: there is none.
 */
uint64_t code_map__find(const struct code_map *map, uint64_t addr, uint64_t ts);
/* How many ranges that do not overlap. */
size_t code_map__cnt(const struct code_map *map);

#endif
