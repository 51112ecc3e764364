/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "switcher.h"

#include <stdbool.h>
#include <stdlib.h>
#include <ucontext.h>

enum { STACK_SZ = 256 * 1024 };

struct turn {
	ucontext_t context, caller;
	switcher_work *work;
	uint64_t x, result;
	bool done;
	char *stack;
};

static void give_way(void *turn)
{
	struct turn *self = turn;

	swapcontext(&self->context, &self->caller);
}

static void body(unsigned int high, unsigned int low)
{
	struct turn *self = (struct turn *)(uintptr_t)((uint64_t)high << 32 | low);

	self->result = self->work(give_way, self, self->x);
	self->done = true;
	give_way(self);
}

static bool prepare(struct turn *turn, switcher_work *work, uint64_t x)
{
	uint64_t self = (uintptr_t)turn;

	turn->stack = malloc(STACK_SZ);
	if (!turn->stack)
		return false;
	turn->work = work;
	turn->x = x;
	getcontext(&turn->context);
	turn->context.uc_stack.ss_sp = turn->stack;
	turn->context.uc_stack.ss_size = STACK_SZ;
	makecontext(&turn->context, (void (*)(void))body, 2, (unsigned int)(self >> 32), (unsigned int)self);
	return true;
}

uint64_t switcher_run(switcher_work *work, uint64_t x, unsigned int cnt)
{
	struct turn *turns = calloc(cnt, sizeof(*turns));
	uint64_t sum = 0;
	bool some = true;

	if (!turns)
		abort();
	for (unsigned int i = 0; i < cnt; i++)
		if (!prepare(&turns[i], work, x + i))
			abort();
	while (some) {
		some = false;
		for (unsigned int i = 0; i < cnt; i++) {
			if (turns[i].done)
				continue;
			swapcontext(&turns[i].caller, &turns[i].context);
			some = true;
		}
	}
	for (unsigned int i = 0; i < cnt; i++) {
		sum += turns[i].result;
		free(turns[i].stack);
	}
	free(turns);
	return sum;
}
