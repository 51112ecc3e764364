/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rows of `invocation`, `symbol`, `probe` and `interval` of a recording, as the tests want them. */
#ifndef WHYLATE_TESTS_CALLS_H
#define WHYLATE_TESTS_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct call_row {
	uint64_t sid, pid, tid, seq, parent_seq, depth, begin_ts, end_ts, flags, sum_ns, blocked_ns, object;
	uint64_t waits_ns, sleep_ns; /* parts of blocked_ns: of every kind that is named, and one of them */
	uint32_t func, parent_func;  /* UINT32_MAX: none */
	bool has_call_addr;
};

struct sid_row {
	uint64_t sid, begin_ts, end_ts, flags;
};

#define CALL_FUNCS 64

struct calls_read {
	struct call_row *calls;
	size_t call_cnt;
	struct sid_row *intervals;
	size_t interval_cnt;
	char names[CALL_FUNCS][64];   /* of functions, by number */
	uint64_t heights[CALL_FUNCS]; /* of them in the call graph, UINT64_MAX: not known */
	uint64_t entries[CALL_FUNCS], exits[CALL_FUNCS];
};

/* False after a failed check.  Of functions numbered from 0 up: those of a short list have others, which are mapped. */
bool calls_read_dir(struct calls_read *read, const char *dir);
void calls_free(struct calls_read *read);
/* -1: no such function. */
int calls_func(const struct calls_read *read, const char *name);
/* Calls of that function in the interval; flags: at least these. */
uint64_t calls_in(const struct calls_read *read, uint64_t sid, int func, uint64_t flags);

#endif
