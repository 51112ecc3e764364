// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

struct arena {
	VEC(void *) owned;
	char *small; /* the rest of the newest chunk for small allocations */
	size_t small_left;
};

#define CHUNK_SZ 65536
#define SMALL_SZ 4096

struct arena *arena__new(void)
{
	return calloc(1, sizeof(struct arena));
}

void arena__free(struct arena *arena)
{
	if (!arena)
		return;
	for (size_t i = 0; i < arena->owned.cnt; i++)
		free(arena->owned.items[i]);
	vec_free(&arena->owned);
	free(arena);
}

int arena__adopt(struct arena *arena, void *memory)
{
	int err = memory ? vec_push(&arena->owned, memory) : 0;

	if (err)
		free(memory);
	return err;
}

void *arena__alloc(struct arena *arena, size_t cnt, size_t sz)
{
	size_t bytes;
	void *memory;

	if (__builtin_mul_overflow(cnt, sz, &bytes) || bytes > SIZE_MAX - 16)
		return NULL;
	bytes = bytes ? (bytes + 15) & ~(size_t)15 : 16;
	if (bytes <= SMALL_SZ) {
		if (bytes > arena->small_left) {
			arena->small = calloc(1, CHUNK_SZ);
			arena->small_left = 0;
			if (!arena->small || arena__adopt(arena, arena->small))
				return NULL;
			arena->small_left = CHUNK_SZ;
		}
		memory = arena->small;
		arena->small += bytes;
		arena->small_left -= bytes;
		return memory;
	}
	memory = calloc(1, bytes);
	if (!memory || arena__adopt(arena, memory))
		return NULL;
	return memory;
}

char *arena__strdup(struct arena *arena, const char *text)
{
	size_t sz = strlen(text) + 1;
	char *copy = arena__alloc(arena, sz, 1);

	return copy ? memcpy(copy, text, sz) : NULL;
}

char *arena__printf(struct arena *arena, const char *fmt, ...)
{
	va_list args;
	char *text;
	int len;

	va_start(args, fmt);
	len = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	text = len < 0 ? NULL : arena__alloc(arena, (size_t)len + 1, 1);
	if (!text)
		return NULL;
	va_start(args, fmt);
	vsnprintf(text, (size_t)len + 1, fmt, args);
	va_end(args);
	return text;
}
