/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef WHYLATE_TARGET_GO_DWARF_H
#define WHYLATE_TARGET_GO_DWARF_H

#include "bpf/go_layout.h"

#include <stdint.h>

/* Offsets in struct runtime.g and what there is beside, by the DWARF of a file.  0, -ENOENT: none; -EBADMSG. */
int go_layout_by_dwarf(int fd, struct go_layout *layout, uint32_t *stopping_off);

#endif
