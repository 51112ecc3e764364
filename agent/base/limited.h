/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A stream that passes bytes on up to a limit; to a terminal, line by line and without what acts on one. */
#ifndef WHYLATE_BASE_LIMITED_H
#define WHYLATE_BASE_LIMITED_H

#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct limited {
	FILE *to;
	uint64_t left;
	bool exceeded;
	int err; /* why `to` took no more; 0 */
	bool terminal;
	VEC(char) line;
};

/* to, left and terminal are set.  The stream, for fclose(), after which the caller calls limited__free(); NULL. */
FILE *limited__open(struct limited *limited);
void limited__free(struct limited *limited);

#endif
