/* SPDX-License-Identifier: GPL-2.0-or-later */
/* .gnu_debugdata: a compressed ELF file within a file, of which it has the symbols.  whylate-symbols unpacks it. */
#ifndef WHYLATE_TARGET_DEBUG_DATA_H
#define WHYLATE_TARGET_DEBUG_DATA_H

#include <stddef.h>
#include <stdint.h>

/*
 * What those bytes of the file unpack to, for the caller to free(): 0 or -errno; -EFBIG: it is more than *left bytes,
 * -ENOEXEC: it is damaged.  What has been unpacked is taken from *left in any case: it has taken its time.
 */
int debug_data_unpack(int fd, uint64_t off, uint64_t sz, uint64_t *left, char **unpacked, size_t *unpacked_sz);

#endif
