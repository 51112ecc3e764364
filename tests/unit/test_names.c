// SPDX-License-Identifier: GPL-2.0-or-later
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

static void only_waits_of_goroutines_have_their_names(void)
{
	CU_ASSERT_STRING_EQUAL(go_wait_text(WL_GO_WAIT | WL_GO_WAIT_CHAN_RECEIVE), "chan receive");
	CU_ASSERT_STRING_EQUAL(go_wait_text(WL_GO_WAIT | WL_GO_WAIT_STOPPED), "stop-the-world");
	for (uint64_t i = 0; i < WL_GO_WAIT_CNT; i++)
		CU_ASSERT_PTR_NOT_NULL(go_wait_text(WL_GO_WAIT | i));
	CU_ASSERT_PTR_NULL(go_wait_text(WL_GO_WAIT | WL_GO_WAIT_CNT));
	CU_ASSERT_PTR_NULL(go_wait_text(WL_GO_WAIT_CHAN_RECEIVE));
	CU_ASSERT_PTR_NULL(go_wait_text(WL_FILE_LOCK | WL_GO_WAIT | 1));
	CU_ASSERT_PTR_NULL(go_wait_text(WL_MMAP_LOCK));
}

static void every_word_of_an_edge_leads_back(void)
{
	for (int i = 0; i < WL_STATE_CNT; i++)
		CU_ASSERT_EQUAL(state_by_name(state_name(i)), i);
	for (int i = 0; i < WL_CONTEXT_CNT; i++)
		CU_ASSERT_EQUAL(context_by_name(context_name(i)), i);
	for (int i = 0; i < WL_CERTAINTY_CNT; i++)
		CU_ASSERT_EQUAL(certainty_by_name(certainty_name(i)), i);
	for (int i = 0; i < WL_HANDOFF_CNT; i++) {
		CU_ASSERT_EQUAL(handoff_by_name(handoff_name(i)), i);
		CU_ASSERT(strlen(handoff_what(i)) > 0);
	}
	CU_ASSERT(context_has_waker(WL_CONTEXT_TASK) && !context_has_waker(WL_CONTEXT_SOFTIRQ));
	CU_ASSERT(state_by_name("") == -1 && context_by_name("") == -1);
	CU_ASSERT(certainty_by_name("") == -1 && handoff_by_name("") == -1);
	CU_ASSERT_PTR_NULL(context_name(WL_CONTEXT_CNT));
	CU_ASSERT_PTR_NULL(handoff_what(WL_HANDOFF_CNT));
	CU_ASSERT(!context_has_waker(WL_CONTEXT_CNT));
}

int suite_names(void)
{
	static const struct unit_test tests[] = {
		{"every category has a name that leads back", every_category_has_a_name_that_leads_back},
		{"every state belongs to a category", every_state_belongs_to_a_category},
		{"only waits of goroutines have their names", only_waits_of_goroutines_have_their_names},
		{"every word of an edge leads back", every_word_of_an_edge_leads_back},
	};

	return unit_suite("names", tests, sizeof(tests) / sizeof(tests[0]));
}
