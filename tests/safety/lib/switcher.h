/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A library that runs what it is handed on stacks of its own, which take turns. */
#ifndef SAFETY_LIB_SWITCHER_H
#define SAFETY_LIB_SWITCHER_H

#include <stdint.h>

/* give_way(turn) comes back when it is that call's turn again. */
typedef uint64_t switcher_work(void (*give_way)(void *turn), void *turn, uint64_t x);

/* The sum of work(x), work(x + 1), … of several that take turns. */
uint64_t switcher_run(switcher_work *work, uint64_t x, unsigned int cnt);

#endif
