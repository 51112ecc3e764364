/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions whose variables the schema must find: included by a file for each level of optimization (SUBJECT names
 * them). */
#include <stddef.h>

struct subject_list {
	long capacity;
	int len;
	unsigned char kind;
	const int *items;
};

struct subject_part {
	long first;
	int limit, other;
};

struct subject_outer {
	struct subject_list list;
	struct subject_part part;
	struct {
		int depth, tail;
	};
	union {
		int as_int;
		unsigned int as_unsigned;
	};
};

#define SUBJECT_NAME_(level, name) subject_##level##_##name
#define SUBJECT_NAME(level, name)  SUBJECT_NAME_(level, name)

unsigned long SUBJECT_NAME(SUBJECT, global);
struct subject_list SUBJECT_NAME(SUBJECT, whole);
struct subject_outer SUBJECT_NAME(SUBJECT, outer);

int SUBJECT_NAME(SUBJECT, leaf)(int number);
int SUBJECT_NAME(SUBJECT, scan)(const struct subject_list *list, int key);
double SUBJECT_NAME(SUBJECT, mix)(long rounds, double factor, const char *text);
int SUBJECT_NAME(SUBJECT, nested)(const struct subject_outer *outer, int key);
int SUBJECT_NAME(SUBJECT, news)(const struct subject_list *list, int key);
unsigned int SUBJECT_NAME(SUBJECT, stretch)(const char *text, unsigned int rounds);

__attribute__((noinline)) int SUBJECT_NAME(SUBJECT, leaf)(int number)
{
	__asm__ volatile("");
	return number * 3;
}

__attribute__((noinline)) int SUBJECT_NAME(SUBJECT, scan)(const struct subject_list *list, int key)
{
	int found = 0;

	for (int i = 0; i < list->len; i++)
		if (list->items[i] == key)
			found += SUBJECT_NAME(SUBJECT, leaf)(i);
	return found;
}

__attribute__((noinline)) double SUBJECT_NAME(SUBJECT, mix)(long rounds, double factor, const char *text)
{
	double sum = 0;
	long left = rounds;

	while (left > 0) {
		if (text && left > 2)
			SUBJECT_NAME(SUBJECT, global) += (unsigned long)SUBJECT_NAME(SUBJECT, leaf)((int)left);
		sum += factor * (double)left;
		left--;
	}
	return sum;
}

/* With optimization none of the conditions in the loop is a jump: `cmp; adc`, `test; cmov`. */
__attribute__((noinline)) int SUBJECT_NAME(SUBJECT, news)(const struct subject_list *list, int key)
{
	int found = 0;

	for (int i = 0; i < key; i++) {
		int changed = list->items[i];

		found += SUBJECT_NAME(SUBJECT, leaf)(i);
		if (changed > 0)
			found += changed;
		found += !list->kind;
	}
	return found;
}

/* With -O3 the end of the loop tests a register that a constant was added to since it was `round`. */
__attribute__((noinline)) unsigned int SUBJECT_NAME(SUBJECT, stretch)(const char *text, unsigned int rounds)
{
	unsigned int state[8] = {1, 2, 3, 4, 5, 6, 7, 8};

	for (unsigned int round = 0; round < rounds; round++) {
		state[round & 7] ^= (unsigned char)text[round % 13];
		for (int i = 0; i < 8; i++) {
			state[i] += state[(i + 1) & 7] ^ 0x9e3779b9u;
			state[i] = state[i] << 7 | state[i] >> 25;
		}
	}
	return state[0];
}

/* With optimization `part` is nowhere: it is `outer` and an offset. */
__attribute__((noinline)) int SUBJECT_NAME(SUBJECT, nested)(const struct subject_outer *outer, int key)
{
	const struct subject_part *part = &outer->part;
	int found = 0;

	for (int i = 0; i < part->limit; i++)
		found += SUBJECT_NAME(SUBJECT, leaf)(i + key);
	if (outer->depth > key)
		found += SUBJECT_NAME(SUBJECT, leaf)(outer->list.len);
	if (outer->as_int > key)
		found += SUBJECT_NAME(SUBJECT, leaf)(key);
	return found;
}
