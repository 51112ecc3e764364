/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CRC-32C (Castagnoli, RFC 3720 appendix B.4): the checksum of everything in a shard.  No state, any thread. */
#ifndef WHYLATE_SHARD_CRC32C_H
#define WHYLATE_SHARD_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* crc is 0 to begin with, or the result for the bytes before. */
uint32_t crc32c(uint32_t crc, const void *bytes, size_t sz);

/* The same by table, on any CPU: exported so that the tests can hold one against the other. */
uint32_t crc32c_portable(uint32_t crc, const void *bytes, size_t sz);

#endif
