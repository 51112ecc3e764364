/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How much debugging information a file claims to have, before any of it is unpacked. */
#ifndef WHYLATE_TARGET_DEBUG_SZ_H
#define WHYLATE_TARGET_DEBUG_SZ_H

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

/* Of all sections .debug_*, unpacked; *has_info: .debug_info is one of them.  False: the file is not in order. */
bool debug_sz(Elf *elf, uint64_t *sz, bool *has_info);

#endif
