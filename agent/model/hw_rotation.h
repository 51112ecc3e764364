/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which hardware counters are recorded together (VarMRI §4.3): a covering design.  Every pair that a rule of §5.2
 * compares (counters of two groups, a child and its parent) is in some rotation; there is an epoch per rotation, and
 * the rotations of each cycle are in a random order, so that nothing periodic meets the same one each time.  Pure; one
 * thread.
 */
#ifndef WHYLATE_MODEL_HW_ROTATION_H
#define WHYLATE_MODEL_HW_ROTATION_H

#include <whylate/record.h>

#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hw_rotation {
	uint32_t cnt;
	uint32_t counters[WL_HW_SLOTS]; /* enum shard_hwcounter */
};

#define HW_ROTATIONS_MAX 256

typedef VEC(struct hw_rotation) hw_rotations;

/* Covers all pairs of `counters` with `slots` (2 to WL_HW_SLOTS) in each rotation.  Appends: 0 or -ENOMEM. */
int hw_rotations_cover(hw_rotations *rotations, const uint32_t *counters, size_t cnt, uint32_t slots);

/* Whose turn it is in the n-th epoch, of `cnt` (1 to HW_ROTATIONS_MAX): within each `cnt` epochs each has one. */
uint32_t hw_rotation_turn(uint32_t n, uint32_t cnt);

#endif
