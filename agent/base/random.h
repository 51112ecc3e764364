/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): equal seeds give equal numbers on every machine. */
#ifndef WHYLATE_BASE_RANDOM_H
#define WHYLATE_BASE_RANDOM_H

#include <stdint.h>

/* Every bit of x moves every bit of the result. */
static inline uint64_t random_mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

static inline uint64_t random_next(uint64_t *state)
{
	return random_mix(*state += 0x9e3779b97f4a7c15ULL);
}

#endif
