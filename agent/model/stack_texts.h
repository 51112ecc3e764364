/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stacks as text, each kept once while there is a sample of it: equal stacks are equal pointers.  One thread only.
 */
#ifndef WHYLATE_MODEL_STACK_TEXTS_H
#define WHYLATE_MODEL_STACK_TEXTS_H

#include "probe/hot_paths.h"

#include <stdbool.h>
#include <stdint.h>

/* The frame of code in no file that could be read, and the text of a stack that was not copied. */
#define STACK_UNKNOWN "[unknown]"

struct stack_text {
	struct stack_text *next; /* of the same bucket */
	uint64_t hash;
	uint32_t refs;
	uint32_t guessed; /* frames that are guesses */
	bool complete;    /* up to the beginning of the thread */
	size_t hot_cnt;
	struct hot_frame *hot; /* the same frames, innermost first; NULL: nobody wants them */
	char frames[];         /* root;…;leaf */
};

struct stack_texts;

struct stack_texts *stack_texts__new(void); /* NULL: out of memory */
/* All texts must have been dropped. */
void stack_texts__free(struct stack_texts *texts); /* NULL-safe */

/* The text with those frames, of which the caller has one reference more; hot_cnt frames are copied.  NULL: out of
 * memory. */
struct stack_text *stack_texts__get(struct stack_texts *texts, const char *frames, bool complete, uint32_t guessed,
				    const struct hot_frame *hot, size_t hot_cnt);
struct stack_text *stack_text__hold(struct stack_text *text);               /* NULL-safe */
void stack_texts__drop(struct stack_texts *texts, struct stack_text *text); /* NULL-safe */

#endif
