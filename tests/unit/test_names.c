// SPDX-License-Identifier: GPL-2.0-only
#include "base/names.h"
#include "unit.h"

#include <string.h>

static void every_category_has_a_name_that_leads_back(void)
{
	for (int i = 0; i < WL_CATEGORY_CNT; i++) {
		CU_ASSERT_EQUAL(category_by_name(category_name(i)), i);
		CU_ASSERT(strlen(category_label(i)) > 0);
	}
	CU_ASSERT_EQUAL(category_by_name("no such category"), -1);
	CU_ASSERT_PTR_NULL(category_name(WL_CATEGORY_CNT));
}

static void every_state_belongs_to_a_category(void)
{
	for (int i = 0; i < WL_STATE_CNT; i++)
		CU_ASSERT(state_category(i) < WL_CATEGORY_CNT);
	CU_ASSERT_EQUAL(state_category(WL_STATE_BLOCKED_FUTEX), WL_CATEGORY_LOCK);
	CU_ASSERT_EQUAL(state_category(WL_STATE_SOFTIRQ_RCU), WL_CATEGORY_IRQ_SOFT);
	CU_ASSERT_STRING_EQUAL(state_name(WL_STATE_SOFTIRQ_NET_RX), "softirq.net_rx");
}

int suite_names(void)
{
	static const struct unit_test tests[] = {
		{"every category has a name that leads back", every_category_has_a_name_that_leads_back},
		{"every state belongs to a category", every_state_belongs_to_a_category},
	};

	return unit_suite("names", tests, sizeof(tests) / sizeof(tests[0]));
}
