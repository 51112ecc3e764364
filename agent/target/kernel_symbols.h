/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of the kernel's functions, from /proc/kallsyms: read at once, while the process may see addresses and before
 * hooks are attached that a tenth of a second would keep waiting.
 */
#ifndef WHYLATE_TARGET_KERNEL_SYMBOLS_H
#define WHYLATE_TARGET_KERNEL_SYMBOLS_H

#include <stdint.h>
#include <stdio.h>

struct kernel_symbols;

/* NULL when out of memory; where the file cannot be read, no address has a name. */
struct kernel_symbols *kernel_symbols__open(void);
/* From any such file, for tests: takes it. */
struct kernel_symbols *kernel_symbols__read(FILE *file);
void kernel_symbols__free(struct kernel_symbols *symbols); /* NULL-safe */

/* The function that has the address; NULL: none is known. */
const char *kernel_symbols__name(const struct kernel_symbols *symbols, uint64_t addr);

#endif
