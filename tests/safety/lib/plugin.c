/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plugin.h"

#define KEPT __attribute__((noipa))

KEPT static uint64_t plugin_inner(uint64_t x)
{
	return x * 2654435761ULL + 12345;
}

KEPT static uint64_t plugin_middle(uint64_t x)
{
	uint64_t sum = plugin_inner(x);

	return sum ^ plugin_inner(x + 1);
}

uint64_t plugin_compute(uint64_t x)
{
	return plugin_middle(x) + 1;
}

uint64_t plugin_fold(uint64_t x, unsigned int times)
{
	while (times--)
		x = plugin_middle(x);
	return x;
}
