// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/kernel_symbols.h"
#include "unit.h"

#include <string.h>

static struct kernel_symbols *symbols_of(const char *text)
{
	FILE *file = fmemopen((char *)text, strlen(text), "r");

	CU_ASSERT_FATAL(file != NULL);
	return kernel_symbols__read(file);
}

static void an_address_has_the_function_before_it(void)
{
	struct kernel_symbols *symbols = symbols_of("ffffffff81000200 T second\n"
						    "ffffffff81000100 t first\t[module]\n"
						    "ffffffff81000180 d data\n"
						    "ffffffff81000200 T alias\n"
						    "ffffffff81000300 W weak\n"
						    "nonsense\n"
						    "0000000000000000 T nowhere\n");

	CU_ASSERT_PTR_NULL(kernel_symbols__name(symbols, 0));
	CU_ASSERT_PTR_NULL(kernel_symbols__name(symbols, 0xffffffff810000ff));
	CU_ASSERT_STRING_EQUAL(kernel_symbols__name(symbols, 0xffffffff81000100), "first");
	CU_ASSERT_STRING_EQUAL(kernel_symbols__name(symbols, 0xffffffff810001ff), "first");
	CU_ASSERT_STRING_EQUAL(kernel_symbols__name(symbols, 0xffffffff81000210), "second");
	CU_ASSERT_STRING_EQUAL(kernel_symbols__name(symbols, 0xffffffff81000301), "weak");
	/* No function is that long. */
	CU_ASSERT_PTR_NULL(kernel_symbols__name(symbols, 0xffffffff82000301));
	kernel_symbols__free(symbols);
}

static void without_the_privilege_nothing_has_a_name(void)
{
	struct kernel_symbols *symbols = symbols_of("0000000000000000 T first\n0000000000000000 T second\n");

	CU_ASSERT_PTR_NULL(kernel_symbols__name(symbols, 0xffffffff81000100));
	kernel_symbols__free(symbols);
	symbols = kernel_symbols__read(NULL);
	CU_ASSERT_PTR_NULL(kernel_symbols__name(symbols, 1));
	kernel_symbols__free(symbols);
	kernel_symbols__free(NULL);
}

int suite_kernel_symbols(void)
{
	static const struct unit_test tests[] = {
		{"an address has the function before it", an_address_has_the_function_before_it},
		{"without the privilege nothing has a name", without_the_privilege_nothing_has_a_name},
	};

	return unit_suite("kernel_symbols", tests, sizeof(tests) / sizeof(tests[0]));
}
