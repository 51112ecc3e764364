/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Spin locks in machine code: a short loop with the processor's hint that it only waits (`pause` on x86-64, `yield` or
 * `isb` on arm64).
 */
#ifndef WHYLATE_TARGET_SPIN_H
#define WHYLATE_TARGET_SPIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPIN_LOOP_MAX 64 /* bytes */

/* Is bytes[at], the next instruction of a thread, in such a loop?  Looks at SPIN_LOOP_MAX bytes on either side. */
bool code_spins(const uint8_t *bytes, size_t sz, size_t at);

#endif
