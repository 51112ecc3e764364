/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads the Go runtime's own table of functions (.gopclntab) and its version (.go.buildinfo), which stay when a
 * program is stripped, in whylate-symbols.  The file is hostile until proven otherwise.
 */
#ifndef WHYLATE_TARGET_GO_TABLE_H
#define WHYLATE_TARGET_GO_TABLE_H

#include "target/elf_image.h"
#include "target/elf_rows.h"

/*
 * Functions by address, their names and the version into rows that are zero: 0, -ENOMEM; -ENOTSUP: there is none, or it
 * is not as Go 1.18 and later make it.
 */
int go_table_read(const struct elf_image *image, struct elf_rows *rows);

#endif
