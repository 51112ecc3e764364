/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Durations in classes of equal relative width, 32 an octave: a class is at most 1/32 of its lower end wide, those
 * below 32 ns hold one value each.  The number of a class orders them.
 */
#ifndef WHYLATE_BASE_LOGHIST_H
#define WHYLATE_BASE_LOGHIST_H

#include <stdint.h>

#define LOGHIST_SUB_BITS  5
#define LOGHIST_SUB_CNT   (1u << LOGHIST_SUB_BITS)
#define LOGHIST_CLASS_CNT ((64u - LOGHIST_SUB_BITS + 1) * LOGHIST_SUB_CNT)

static inline uint32_t loghist_class(uint64_t ns)
{
	unsigned shift;

	if (ns < 2 * LOGHIST_SUB_CNT)
		return (uint32_t)ns;
	shift = 63u - (unsigned)__builtin_clzll(ns) - LOGHIST_SUB_BITS;
	return LOGHIST_SUB_CNT * shift + (uint32_t)(ns >> shift);
}

/* The smallest value of a class. */
static inline uint64_t loghist_floor(uint32_t class_no)
{
	unsigned shift;

	if (class_no < 2 * LOGHIST_SUB_CNT)
		return class_no;
	shift = class_no / LOGHIST_SUB_CNT - 1;
	return (uint64_t)(class_no - LOGHIST_SUB_CNT * shift) << shift;
}

/* The middle of a class. */
static inline double loghist_middle(uint32_t class_no)
{
	unsigned shift = class_no < 2 * LOGHIST_SUB_CNT ? 0 : class_no / LOGHIST_SUB_CNT - 1;

	return (double)loghist_floor(class_no) + (double)((1ULL << shift) - 1) / 2;
}

#endif
