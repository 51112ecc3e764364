/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Suites that run in a process of their own, beside others.  What their tests print and check is kept in files, and
 * told to CUnit when their turn comes, so that one run, one order and one summary hold all of them.
 */
#ifndef WHYLATE_TESTS_BESIDE_H
#define WHYLATE_TESTS_BESIDE_H

#include <CUnit/CUnit.h>

/*
 * The suites from `first` on to the end of the registry run beside those from `from` on, which come before them.  Only
 * prepares: their process starts with suite `from`, and suite `first` waits for its end.  What is not active does not
 * count; beside nothing, they run in their turn.
 */
void beside_prepare(CU_pSuite from, CU_pSuite first);

#endif
