/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef WHYLATE_WORKLOADS_PLUGIN_H
#define WHYLATE_WORKLOADS_PLUGIN_H

#include <stdint.h>

#define PLUGIN_KEYS 64

struct plugin_table {
	int items;
	uint32_t keys[PLUGIN_KEYS];
};

uint64_t plugin_scan(const struct plugin_table *table);
typedef uint64_t (*plugin_scan_fn)(const struct plugin_table *table);

#endif
