/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Little-endian integers of up to eight bytes, as files and the wire have them; the caller knows that they are there.
 */
#ifndef WHYLATE_BASE_BYTES_H
#define WHYLATE_BASE_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline void put_le(uint8_t *bytes, uint64_t value, unsigned sz)
{
	value = htole64(value);
	memcpy(bytes, &value, sz);
}

static inline uint64_t get_le(const uint8_t *bytes, unsigned sz)
{
	uint64_t value = 0;

	memcpy(&value, bytes, sz);
	return le64toh(value);
}

#endif
