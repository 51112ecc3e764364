/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One suite per module: tests/unit/test_MODULE.c defines suite_MODULE() and has its line in suites.def: SUITE(module).
 */
#ifndef WHYLATE_TESTS_UNIT_H
#define WHYLATE_TESTS_UNIT_H

#include <CUnit/CUnit.h>
#include <stdbool.h>
#include <stddef.h>

struct unit_test {
	const char *name;
	void (*run)(void);
};

/* Adds a suite; returns 0 or a CUnit error. */
int unit_suite(const char *name, const struct unit_test *tests, unsigned test_cnt);
/* The path of a Go program beside this one; false, and printed: there was no Go when it was built. */
bool unit_go_subject(const char *name, char *path, size_t sz);

#define SUITE(name) int suite_##name(void);
#include "suites.def"
#undef SUITE

#endif
