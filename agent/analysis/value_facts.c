// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/value_facts.h"

#include <string.h>

double value_number(const struct value_variable_facts *facts, uint64_t bytes)
{
	unsigned bits = facts->size * 8u;
	double wide;
	float narrow;

	if (facts->kind == VALUE_FLOAT && facts->size == 8) {
		memcpy(&wide, &bytes, sizeof(wide));
		return wide;
	}
	if (facts->kind == VALUE_FLOAT) {
		memcpy(&narrow, &bytes, sizeof(narrow));
		return narrow;
	}
	if (facts->kind != VALUE_SIGNED && facts->kind != VALUE_ENUM)
		return (double)bytes;
	if (bits < 64 && bytes >> (bits - 1) & 1)
		bytes |= ~0ULL << bits;
	return (double)(int64_t)bytes;
}
