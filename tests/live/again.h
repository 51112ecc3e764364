/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs failed tests once more, alone. A test that fails in the whole run and passes twice alone is *unstable*: it is
 * printed as such, and a run in CI passes with one of them and no other failure. One that failed while the hypervisor
 * held the machine (disturbed.h) and passes twice alone is printed as *disturbed*, with what was seen, and does not
 * count.
 */
#ifndef WHYLATE_TESTS_AGAIN_H
#define WHYLATE_TESTS_AGAIN_H

#include <stdbool.h>
#include <stddef.h>

#define AGAIN_MAX      6 /* more failures than that are no instability */
#define AGAIN_NAME_LEN 64

struct again {
	char names[AGAIN_MAX][AGAIN_NAME_LEN];
	const char *disturbed_by[AGAIN_MAX]; /* NULL: by nothing */
	size_t cnt;
	bool too_many, suites_failed;
};

/* Notes the failed tests of CUnit's registry. Call before it is cleaned up. */
void again_note(struct again *again);
/* Runs each of them twice in a process of its own and prints the verdicts. True: the run passes all the same. */
bool again_passes(const struct again *again);

#endif
