/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The names that somebody may have meant by a misspelt one: those within a few edits (case counts half), then those
 * that begin with it, then those that contain it (a C++ name within its mangled form).  Offer candidates in any number;
 * among equals the first offered stays first.
 */
#ifndef WHYLATE_TARGET_NEAREST_H
#define WHYLATE_TARGET_NEAREST_H

#include <stddef.h>
#include <stdint.h>

#define NEAREST_MAX      16
#define NEAREST_NAME_MAX 4096 /* longer names are never near */

struct nearest {
	const char *wanted;
	size_t wanted_len;
	size_t max; /* set both with nearest_init() */
	size_t cnt;
	const char *names[NEAREST_MAX]; /* owned by the caller, best first */
	uint32_t scores[NEAREST_MAX];
};

/* max is cut to NEAREST_MAX. */
void nearest_init(struct nearest *nearest, const char *wanted, size_t max);
void nearest_offer(struct nearest *nearest, const char *name);

#endif
