/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Folded stacks, "root;…;leaf", as flame graphs want them. */
#ifndef WHYLATE_BASE_FOLDED_H
#define WHYLATE_BASE_FOLDED_H

#include <stddef.h>
#include <string.h>

/* The innermost frame of a thread that waits in a loop for a spin lock. */
#define FRAME_SPIN "[spin]"

/* Adds a frame to a line of sz bytes, cut to what fits.  A frame must not hold what separates frames and lines. */
static inline void folded_add(char *line, size_t sz, const char *text)
{
	size_t len = strlen(line), room = sz - 1 - len;

	if (len && room)
		line[len++] = ';';
	for (; *text && len < sz - 1; text++)
		line[len++] = *text == ';' ? ':' : (unsigned char)*text < ' ' || *text == 0x7f ? ' ' : *text;
	line[len] = '\0';
}

#endif
