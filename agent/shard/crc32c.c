// SPDX-License-Identifier: GPL-2.0-or-later
#include "shard/crc32c.h"

#include <string.h>

/* The checksum is linear, so that of a byte is the sum of those of its bits: eight constants give the table of 256. */
#define BIT(i, n, value) ((i) >> (n) & 1 ? (value) : 0)
#define ONE(i)                                                                                               \
	(BIT(i, 0, 0xf26b8303u) ^ BIT(i, 1, 0xe13b70f7u) ^ BIT(i, 2, 0xc79a971fu) ^ BIT(i, 3, 0x8ad958cfu) ^ \
	 BIT(i, 4, 0x105ec76fu) ^ BIT(i, 5, 0x20bd8edeu) ^ BIT(i, 6, 0x417b1dbcu) ^ BIT(i, 7, 0x82f63b78u))
#define FOUR(i)    ONE(i), ONE(i + 1), ONE(i + 2), ONE(i + 3)
#define SIXTEEN(i) FOUR(i), FOUR(i + 4), FOUR(i + 8), FOUR(i + 12)
#define ROW(i)     SIXTEEN(i), SIXTEEN(i + 16), SIXTEEN(i + 32), SIXTEEN(i + 48)

static const uint32_t table[256] = {ROW(0), ROW(64), ROW(128), ROW(192)};

uint32_t crc32c_portable(uint32_t crc, const void *bytes, size_t sz)
{
	const uint8_t *pos = bytes, *end = pos + sz;

	crc = ~crc;
	while (pos < end)
		crc = table[(crc ^ *pos++) & 0xff] ^ crc >> 8;
	return ~crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t crc32c_sse42(uint32_t crc, const void *bytes, size_t sz)
{
	const uint8_t *pos = bytes;
	uint64_t sum = ~crc, word;

	for (; sz >= sizeof(word); sz -= sizeof(word), pos += sizeof(word)) {
		memcpy(&word, pos, sizeof(word));
		sum = __builtin_ia32_crc32di(sum, word);
	}
	while (sz--)
		sum = __builtin_ia32_crc32qi(sum, *pos++);
	return ~(uint32_t)sum;
}

uint32_t crc32c(uint32_t crc, const void *bytes, size_t sz)
{
	if (__builtin_cpu_supports("sse4.2"))
		return crc32c_sse42(crc, bytes, sz);
	return crc32c_portable(crc, bytes, sz);
}
#else
uint32_t crc32c(uint32_t crc, const void *bytes, size_t sz)
{
	return crc32c_portable(crc, bytes, sz);
}
#endif
