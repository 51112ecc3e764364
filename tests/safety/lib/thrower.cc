// SPDX-License-Identifier: GPL-2.0-or-later
/* What the plugin computes, thrown through a function of the C library's that was there before anybody caught. */
#include <cstdint>
#include <cstdlib>

extern "C" {
#include "plugin.h"
}

static int refuse(const void *left, const void *, void *)
{
	throw *static_cast<const uint64_t *>(left);
}

uint64_t plugin_fold(uint64_t x, unsigned int times)
{
	while (times--)
		x = (x * 2654435761ULL + 12345) ^ ((x + 1) * 2654435761ULL + 12345);
	return x;
}

uint64_t plugin_compute(uint64_t x)
{
	uint64_t pair[] = {x, x};

	try {
		qsort_r(pair, 2, sizeof(pair[0]), refuse, nullptr);
	} catch (uint64_t thrown) {
		return plugin_fold(thrown, 1) + 1;
	}
	return 0;
}
