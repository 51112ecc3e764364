/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel's ring of records (BPF_MAP_TYPE_RINGBUF), in memory that is shared with it, from the reader's side.  No
 * position and no length in it is trusted.
 */
#ifndef WHYLATE_MODEL_RING_H
#define WHYLATE_MODEL_RING_H

#include <stddef.h>

struct ring {
	unsigned long *consumer;       /* up to where it was read */
	const unsigned long *producer; /* up to where there are records, finished or not */
	const char *bytes;             /* sz of them, and the first `beyond` once more behind the last */
	size_t sz, beyond;             /* sz is a power of two; beyond at least what the largest record takes */
};

/* A record; a negative value ends the call. */
typedef int (*ring_handler)(void *owner, const void *record, size_t sz);

/*
 * Hands over what there is when it is called, up to the first record that is still being written, and makes room for
 * what was handed over; records that the kernel writes meanwhile are left to the next call: it may write them faster
 * than they are handled.  0, -EBADMSG, or the negative value that `handle` returned.
 */
int ring__read(struct ring *ring, ring_handler handle, void *owner);

#endif
