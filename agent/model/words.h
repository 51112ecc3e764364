/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Words (whylate/words.h) → records.  One reader per CPU's ring, because what a word says holds for the words after it.
 * No word is trusted: what cannot be one ends the call with -EBADMSG.
 */
#ifndef WHYLATE_MODEL_WORDS_H
#define WHYLATE_MODEL_WORDS_H

#include <whylate/words.h>

#include <stddef.h>
#include <stdint.h>

struct words_reader {
	uint32_t cpu;
	uint64_t ts, sid;
	uint32_t type, pid, tid;
	uint32_t outside;
	/* Of the next brief record. */
	uint64_t conn;
	uint32_t first_len, first_total;
	uint64_t first[WL_FIRST_WORDS(WL_FIRST_MAX)];
};

/* A whole record, a brief one with its first bytes behind it; what it returns other than 0 ends the call. */
typedef int (*words_handler)(void *owner, const struct wl_record_header *record);

/*
 * Reads a ring's words from `from` up to `to`, which count from the ring's beginning; its length is mask + 1, a power
 * of two.  Only whole records are written, so `to` is the end of one.  0, -EBADMSG, or what `handle` returned; *handled
 * counts on.
 */
int words_reader__read(struct words_reader *reader, const uint64_t *words, uint64_t mask, uint64_t from, uint64_t to,
		       words_handler handle, void *owner, uint64_t *handled);

#endif
