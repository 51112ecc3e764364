/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One suite per module: tests/unit/test_MODULE.c defines suite_MODULE() and has its line in suites.def: SUITE(module).
 */
#ifndef WHYLATE_TESTS_UNIT_H
#define WHYLATE_TESTS_UNIT_H

#include <CUnit/CUnit.h>

struct unit_test {
	const char *name;
	void (*run)(void);
};

/* Adds a suite; returns 0 or a CUnit error. */
int unit_suite(const char *name, const struct unit_test *tests, unsigned test_cnt);

#define SUITE(name) int suite_##name(void);
#include "suites.def"
#undef SUITE

#endif
