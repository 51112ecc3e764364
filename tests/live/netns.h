/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two hosts for a test: network namespaces of this process, joined by a cable. */
#ifndef WHYLATE_TESTS_NETNS_H
#define WHYLATE_TESTS_NETNS_H

#include <stdbool.h>

struct netns_pair {
	char left[32], right[32]; /* their names */
};

/*
 * Makes them, wl0 with left_ip on the left, wl1 with right_ip on the right, /24 and up; false after a skip (of `test`)
 * or a failed check.  Removes before what a run has left that was killed.
 */
bool netns_pair_make(struct netns_pair *pair, const char *test, const char *left_ip, const char *right_ip);
/* Pulls the cable out of the right one, or puts it in again. */
void netns_pair_set_cable(const struct netns_pair *pair, bool up);
/* Also after a make that failed. */
void netns_pair_remove(const struct netns_pair *pair);

#endif
