// SPDX-License-Identifier: GPL-2.0-or-later
#include "unit.h"

#include <CUnit/Basic.h>
#include <stdio.h>
#include <string.h>

int unit_suite(const char *name, const struct unit_test *tests, unsigned test_cnt)
{
	CU_pSuite suite = CU_add_suite(name, NULL, NULL);

	if (!suite)
		return CU_get_error();
	for (unsigned i = 0; i < test_cnt; i++)
		if (!CU_add_test(suite, tests[i].name, tests[i].run))
			return CU_get_error();
	return 0;
}

/* Only these suites; the others are not failures. */
static void choose(char **names)
{
	for (CU_pSuite suite = CU_get_registry()->pSuite; suite; suite = suite->pNext) {
		suite->fActive = CU_FALSE;
		for (char **name = names; *name; name++)
			if (!strcmp(*name, suite->pName))
				suite->fActive = CU_TRUE;
	}
	CU_set_fail_on_inactive(CU_FALSE);
}

/* With arguments only the suites of these names run. */
int main(int argc, char **argv)
{
	unsigned failures;

	if (CU_initialize_registry())
		return 1;
#define SUITE(name)                                                                      \
	if (suite_##name()) {                                                            \
		fprintf(stderr, "cannot add suite " #name ": %s\n", CU_get_error_msg()); \
		return 1;                                                                \
	}
#include "suites.def"
#undef SUITE
	if (argc > 1)
		choose(argv + 1);
	CU_basic_set_mode(CU_BRM_NORMAL);
	CU_basic_run_tests();
	failures = CU_get_number_of_failures() + CU_get_number_of_suites_failed();
	CU_cleanup_registry();
	return failures ? 1 : 0;
}
