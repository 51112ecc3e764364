/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plugin.h"

static inline __attribute__((always_inline)) uint64_t mix(uint64_t sum, uint32_t key)
{
	for (int round = 0; round < 400; round++) {
		sum = (sum ^ key) * 6364136223846793005ULL;
		__asm__ volatile("" : "+r"(sum));
	}
	return sum;
}

uint64_t plugin_scan(const struct plugin_table *table)
{
	uint64_t sum = 0;

	for (int i = 0; i < table->items; i++)
		sum = mix(sum, table->keys[i % PLUGIN_KEYS]);
	return sum;
}
