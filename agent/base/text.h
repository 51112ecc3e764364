/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef WHYLATE_BASE_TEXT_H
#define WHYLATE_BASE_TEXT_H

#include <stdbool.h>
#include <string.h>

/* True if text ends with `end` and is longer than it. */
static inline bool text_ends(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len > end_len && !strcmp(text + len - end_len, end);
}

#endif
