/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel's own counts per CPU: /proc/interrupts and /proc/softirqs. */
#ifndef WHYLATE_SELFTEST_PROC_TABLE_H
#define WHYLATE_SELFTEST_PROC_TABLE_H

#include <stdint.h>
#include <stdio.h>

/* What a row counts: `label` without its colon ("LOC", "24", "NET_RX"), `text` what follows the numbers. 0: nothing. */
typedef uint32_t (*proc_row_weight)(const char *label, const char *text);

/* The weighted sum of one CPU's column. 0, -ENOENT (no such column), -EBADMSG (no such table), or -errno of reading. */
int proc_table_sum(FILE *table, uint32_t cpu, proc_row_weight weight, uint64_t *sum);

#endif
