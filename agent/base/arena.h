/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory that lives as long as one dataset or one report: many small allocations, one release.  Not thread-safe.
 */
#ifndef WHYLATE_BASE_ARENA_H
#define WHYLATE_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

struct arena;

struct arena *arena__new(void);
/* Releases everything that came from or was given to the arena.  NULL-safe. */
void arena__free(struct arena *arena);

/* Zeroed, aligned for any type; NULL without memory, also when cnt * sz overflows. */
void *arena__alloc(struct arena *arena, size_t cnt, size_t sz);
char *arena__strdup(struct arena *arena, const char *text);
char *arena__printf(struct arena *arena, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* From now on the arena frees `memory`, which came from malloc(); 0 or -ENOMEM (then it is freed at once). */
int arena__adopt(struct arena *arena, void *memory);

#endif
