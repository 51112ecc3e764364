// SPDX-License-Identifier: GPL-2.0-or-later
#include "unit.h"

#include <CUnit/Basic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

bool unit_go_subject(const char *name, char *path, size_t sz)
{
	ssize_t len = readlink("/proc/self/exe", path, sz - 1);
	char *slash;

	path[len > 0 ? len : 0] = '\0';
	slash = strrchr(path, '/');
	if (slash)
		snprintf(slash + 1, sz - (size_t)(slash + 1 - path), "%s", name);
	if (!access(path, X_OK))
		return true;
	printf("\n    skipped: %s is not there: no go in PATH when the tests were built ", name);
	return false;
}

/* Is the suite's line of suites.def named, or none? The suites that are not do not count as failures. */
static bool is_wanted(char **names, const char *name)
{
	if (!*names)
		return true;
	while (*names && strcmp(*names, name))
		names++;
	return *names;
}

/* With arguments only the suites of these names run. */
int main(int argc, char **argv)
{
	unsigned failures;

	(void)argc;
	if (CU_initialize_registry())
		return 1;
#define SUITE(name)                                                                      \
	if (is_wanted(argv + 1, #name) && suite_##name()) {                              \
		fprintf(stderr, "cannot add suite " #name ": %s\n", CU_get_error_msg()); \
		return 1;                                                                \
	}
#include "suites.def"
#undef SUITE
	CU_basic_set_mode(CU_BRM_NORMAL);
	CU_basic_run_tests();
	failures = CU_get_number_of_failures() + CU_get_number_of_suites_failed();
	CU_cleanup_registry();
	return failures ? 1 : 0;
}
