/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * FNV-1a, 64 bits (Fowler, Noll and Vo).  It spreads the keys of tables and finds damaged bytes.  Whoever chooses the
 * bytes can choose two with the same hash.
 */
#ifndef WHYLATE_BASE_HASH_H
#define WHYLATE_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define FNV1A_BEGIN 0xcbf29ce484222325ULL

static inline uint64_t fnv1a(uint64_t hash, const void *bytes, size_t sz)
{
	for (size_t i = 0; i < sz; i++)
		hash = (hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3ULL;
	return hash;
}

/* Without its NUL. */
static inline uint64_t fnv1a_text(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = fnv1a(hash, text, 1);
	return hash;
}

#endif
