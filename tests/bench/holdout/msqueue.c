// SPDX-License-Identifier: GPL-2.0-or-later
/* Michael and Scott's lock-free queue.  Nodes are never given back, so that no address comes twice. */
#include "staged.h"

struct node {
	struct node *next;
	struct job *job;
};

static struct node *head, *tail;

static void put(struct job *job)
{
	struct node *node = calloc(1, sizeof(*node)), *last, *next;

	node->job = job;
	for (;;) {
		last = __atomic_load_n(&tail, __ATOMIC_ACQUIRE);
		next = __atomic_load_n(&last->next, __ATOMIC_ACQUIRE);
		if (next) {
			__atomic_compare_exchange_n(&tail, &last, next, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
			continue;
		}
		if (__atomic_compare_exchange_n(&last->next, &next, node, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			break;
	}
	__atomic_compare_exchange_n(&tail, &last, node, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

static struct job *take(void)
{
	for (;;) {
		struct node *first = __atomic_load_n(&head, __ATOMIC_ACQUIRE);
		struct node *last = __atomic_load_n(&tail, __ATOMIC_ACQUIRE);
		struct node *next = __atomic_load_n(&first->next, __ATOMIC_ACQUIRE);
		struct job *job;

		if (!next)
			return NULL;
		if (first == last) {
			__atomic_compare_exchange_n(&tail, &last, next, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
			continue;
		}
		job = next->job;
		if (__atomic_compare_exchange_n(&head, &first, next, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return job;
	}
}

int main(int argc, char **argv)
{
	(void)argc;
	head = tail = calloc(1, sizeof(*head));
	staged_run(argv);
}
