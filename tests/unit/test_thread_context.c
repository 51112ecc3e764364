// SPDX-License-Identifier: GPL-2.0-or-later
/* This program defines the thread context itself: the slot that is found must be where it lies. */
#include "target/thread_context.h"
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

/* Neighbours, so that the slot is neither the first nor the last of the storage. */
static __thread char before[24] = "before";
__thread void *otel_thread_ctx_v1;
static __thread char after[40];

static void *lies_in_slot(void *slot)
{
	const char *lies = (const char *)__builtin_thread_pointer() + *(const int64_t *)slot;

	before[0] = after[0];
	return lies == (const char *)&otel_thread_ctx_v1 ? slot : NULL;
}

static void the_slot_is_the_same_in_all_threads(void)
{
	target_mappings mappings = {0};
	pthread_t thread;
	int64_t slot = 0;
	void *found;

	CU_ASSERT_EQUAL_FATAL(target_mappings_read(getpid(), &mappings), 0);
	CU_ASSERT_EQUAL_FATAL(thread_context_slot(getpid(), &mappings, &slot), 0);
	CU_ASSERT_PTR_NOT_NULL(lies_in_slot(&slot));
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, lies_in_slot, &slot), 0);
	CU_ASSERT_EQUAL(pthread_join(thread, &found), 0);
	CU_ASSERT_PTR_NOT_NULL(found);
	target_mappings_free(&mappings);
}

static void a_process_without_files_has_none(void)
{
	target_mappings mappings = {0};
	int64_t slot;

	CU_ASSERT_EQUAL(thread_context_slot(getpid(), &mappings, &slot), -ENOENT);
}

int suite_thread_context(void)
{
	static const struct unit_test tests[] = {
		{"the slot is the same in all threads", the_slot_is_the_same_in_all_threads},
		{"a process without files has none", a_process_without_files_has_none},
	};

	return unit_suite("thread_context", tests, sizeof(tests) / sizeof(tests[0]));
}
