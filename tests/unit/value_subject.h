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
