// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/stack_texts.h"

#include "base/random.h"

#include <stdlib.h>
#include <string.h>

#define BUCKETS 8192 /* a power of two */

struct stack_texts {
	struct stack_text *buckets[BUCKETS];
};

struct stack_texts *stack_texts__new(void)
{
	return calloc(1, sizeof(struct stack_texts));
}

void stack_texts__free(struct stack_texts *texts)
{
	free(texts);
}

static uint64_t hash_of(const char *frames, bool complete, uint32_t guessed)
{
	uint64_t hash = (uint64_t)complete << 32 | guessed;

	while (*frames) {
		uint64_t word = 0;
		size_t i;

		for (i = 0; i < sizeof(word) && frames[i]; i++)
			word = word << 8 | (unsigned char)frames[i];
		hash = random_mix(hash ^ word) + i;
		frames += i;
	}
	return hash;
}

struct stack_text *stack_texts__get(struct stack_texts *texts, const char *frames, bool complete, uint32_t guessed,
				    const struct hot_frame *hot, size_t hot_cnt)
{
	uint64_t hash = hash_of(frames, complete, guessed);
	struct stack_text **bucket = &texts->buckets[hash & (BUCKETS - 1)], *text;
	size_t sz = strlen(frames) + 1;

	for (text = *bucket; text; text = text->next)
		if (text->hash == hash && text->complete == complete && text->guessed == guessed &&
		    !strcmp(text->frames, frames))
			return stack_text__hold(text);
	text = calloc(1, sizeof(*text) + sz);
	if (!text)
		return NULL;
	if (hot_cnt) {
		text->hot = malloc(hot_cnt * sizeof(*hot));
		if (!text->hot) {
			free(text);
			return NULL;
		}
		memcpy(text->hot, hot, hot_cnt * sizeof(*hot));
		text->hot_cnt = hot_cnt;
	}
	memcpy(text->frames, frames, sz);
	text->hash = hash;
	text->complete = complete;
	text->guessed = guessed;
	text->refs = 1;
	text->next = *bucket;
	*bucket = text;
	return text;
}

struct stack_text *stack_text__hold(struct stack_text *text)
{
	if (text)
		text->refs++;
	return text;
}

void stack_texts__drop(struct stack_texts *texts, struct stack_text *text)
{
	struct stack_text **link;

	if (!text || --text->refs)
		return;
	link = &texts->buckets[text->hash & (BUCKETS - 1)];
	while (*link != text)
		link = &(*link)->next;
	*link = text->next;
	free(text->hot);
	free(text);
}
