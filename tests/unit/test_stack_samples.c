// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/stack_samples.h"
#include "unit.h"

#include <errno.h>
#include <string.h>

#define SEEN_MAX 8

struct seen {
	struct stack_sample samples[SEEN_MAX];
	uint64_t innermost[SEEN_MAX];
	size_t cnt;
	int err;
};

static int see(void *owner, const struct stack_sample *sample)
{
	struct seen *seen = owner;

	CU_ASSERT_FATAL(seen->cnt < SEEN_MAX);
	seen->samples[seen->cnt] = *sample;
	seen->innermost[seen->cnt++] = sample->frames[0].pc;
	return seen->err;
}

static const struct unwind_frame some_frames[3] = {
	{.pc = 0x10, .exact = true}, {.pc = 0x20, .how = UNWIND_BY_CFI}, {.pc = 0x30, .how = UNWIND_BY_SCAN}};

static struct wl_stack_record running(uint64_t ts, uint32_t rate)
{
	return (struct wl_stack_record){.ts = ts,
					.sid = 7,
					.running_ns = 5000,
					.pid = 1,
					.tid = 2,
					.rate = rate,
					.stands_for = 1,
					.state = WL_STATE_RUNNING};
}

static struct wl_stack_record waiting(uint64_t ts, uint32_t tid)
{
	return (struct wl_stack_record){.ts = ts,
					.pid = 1,
					.tid = tid,
					.stands_for = 3,
					.state = WL_STATE_BLOCKED_FUTEX,
					.object = 99,
					.flags = WL_STACK_WAITS};
}

static struct wl_stack_wait_record wait_of(uint64_t ts, uint32_t tid, uint64_t blocked_ns, uint64_t runq_ns)
{
	return (struct wl_stack_wait_record){
		.ts = ts, .pid = 1, .tid = tid, .blocked_ns = blocked_ns, .runq_ns = runq_ns};
}

static void running_stands_for_the_period_and_the_rate(void)
{
	struct seen seen = {0};
	struct stack_samples *samples = stack_samples__new(see, &seen);
	struct wl_stack_record record = running(1, 0);
	struct stack_sample_counts counts;

	CU_ASSERT_EQUAL(stack_samples__take(samples, &record, some_frames, 2, UNWIND_START), 0);
	record = running(2, 1U << 30);
	CU_ASSERT_EQUAL(stack_samples__take(samples, &record, some_frames, 3, UNWIND_CUT), 0);
	CU_ASSERT_EQUAL_FATAL(seen.cnt, 2);
	CU_ASSERT_DOUBLE_EQUAL(seen.samples[0].weight_ns, 5000, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(seen.samples[1].weight_ns, 20000, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(seen.samples[1].period_ns, 5000, 1e-9);
	CU_ASSERT_EQUAL(seen.samples[1].end_ts, 0);
	CU_ASSERT(seen.samples[0].complete && !seen.samples[1].complete);
	CU_ASSERT_EQUAL(seen.samples[0].sid, 7);
	CU_ASSERT_EQUAL(seen.samples[0].state, WL_STATE_RUNNING);
	stack_samples__counts(samples, &counts);
	CU_ASSERT(counts.stacks == 2 && counts.complete == 1 && counts.guessed == 1 && !counts.waits);
	/* The sink's error ends the call. */
	seen.err = -EIO;
	CU_ASSERT_EQUAL(stack_samples__take(samples, &record, some_frames, 3, UNWIND_CUT), -EIO);
	stack_samples__free(samples);
}

static void a_wait_is_told_when_it_has_ended(void)
{
	struct seen seen = {0};
	struct stack_samples *samples = stack_samples__new(see, &seen);
	struct wl_stack_record record = waiting(10, 2), another = waiting(20, 2);
	struct wl_stack_wait_record end = wait_of(10, 2, 100, 11), another_end = wait_of(20, 2, 200, 0);
	struct unwind_frame gone[3];
	struct stack_sample_counts counts;

	memcpy(gone, some_frames, sizeof(gone));
	CU_ASSERT_EQUAL(stack_samples__take(samples, &record, gone, 3, UNWIND_START), 0);
	memset(gone, 0xff, sizeof(gone));
	/* The same thread's next wait may come out of its ring before the end of this one comes out of another. */
	CU_ASSERT_EQUAL(stack_samples__take(samples, &another, some_frames, 3, UNWIND_START), 0);
	CU_ASSERT_EQUAL(seen.cnt, 0);
	stack_samples__counts(samples, &counts);
	CU_ASSERT_EQUAL(counts.open, 2);
	CU_ASSERT_EQUAL(stack_samples__take_wait(samples, &end), 0);
	CU_ASSERT_EQUAL(stack_samples__take_wait(samples, &another_end), 0);
	CU_ASSERT_EQUAL_FATAL(seen.cnt, 3);
	CU_ASSERT_EQUAL(seen.samples[0].state, WL_STATE_BLOCKED_FUTEX);
	CU_ASSERT_EQUAL(seen.samples[0].object, 99);
	CU_ASSERT_DOUBLE_EQUAL(seen.samples[0].weight_ns, 300, 1e-9);
	CU_ASSERT_EQUAL(seen.innermost[0], 0x10);
	CU_ASSERT(seen.samples[0].ts == 10 && seen.samples[0].end_ts == 110);
	CU_ASSERT_EQUAL(seen.samples[1].state, WL_STATE_RUNQ_WAKEUP);
	CU_ASSERT(seen.samples[1].ts == 110 && seen.samples[1].end_ts == 121);
	CU_ASSERT_DOUBLE_EQUAL(seen.samples[1].weight_ns, 33, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(seen.samples[2].weight_ns, 600, 1e-9);
	stack_samples__counts(samples, &counts);
	CU_ASSERT(counts.open == 0 && counts.displaced == 0 && counts.waits == 2 && counts.complete == 2);
	stack_samples__free(samples);
}

static void the_end_may_come_first(void)
{
	struct seen seen = {0};
	struct stack_samples *samples = stack_samples__new(see, &seen);
	struct wl_stack_record record = waiting(10, 2);
	struct wl_stack_wait_record end = wait_of(10, 2, 100, 0);
	struct stack_sample_counts counts;

	CU_ASSERT_EQUAL(stack_samples__take_wait(samples, &end), 0);
	CU_ASSERT_EQUAL(stack_samples__take(samples, &record, some_frames, 3, UNWIND_START), 0);
	CU_ASSERT_EQUAL_FATAL(seen.cnt, 1);
	CU_ASSERT_DOUBLE_EQUAL(seen.samples[0].weight_ns, 300, 1e-9);
	stack_samples__counts(samples, &counts);
	CU_ASSERT(counts.open == 0 && counts.displaced == 0);
	stack_samples__free(samples);
}

static void memory_is_bounded_and_what_goes_is_counted(void)
{
	struct seen seen = {0};
	struct stack_samples *samples = stack_samples__new(see, &seen);
	struct stack_sample_counts counts;

	for (uint32_t i = 0; i < 20000; i++) {
		struct wl_stack_record record = waiting(1000 + i, 1 + i % 50);

		CU_ASSERT_EQUAL_FATAL(stack_samples__take(samples, &record, some_frames, 3, UNWIND_START), 0);
	}
	stack_samples__counts(samples, &counts);
	CU_ASSERT_EQUAL(counts.open + counts.displaced, 20000);
	CU_ASSERT(counts.open <= 4096);
	CU_ASSERT_EQUAL(seen.cnt, 0);
	stack_samples__free(samples);
}

static void what_cannot_be_true_is_counted(void)
{
	struct seen seen = {0};
	struct stack_samples *samples = stack_samples__new(see, &seen);
	struct wl_stack_record record = running(1, 0);
	struct wl_stack_wait_record end = wait_of(1, 0, 1, 1);
	struct stack_sample_counts counts;

	record.state = WL_STATE_CNT;
	CU_ASSERT_EQUAL(stack_samples__take(samples, &record, some_frames, 3, UNWIND_START), 0);
	record = running(1, 0);
	record.tid = 0;
	CU_ASSERT_EQUAL(stack_samples__take(samples, &record, some_frames, 3, UNWIND_START), 0);
	CU_ASSERT_EQUAL(stack_samples__take_wait(samples, &end), 0);
	stack_samples__counts(samples, &counts);
	CU_ASSERT_EQUAL(counts.impossible, 3);
	CU_ASSERT_EQUAL(seen.cnt, 0);
	stack_samples__free(samples);
	stack_samples__free(NULL);
}

int suite_stack_samples(void)
{
	static const struct unit_test tests[] = {
		{"running stands for the period and the rate", running_stands_for_the_period_and_the_rate},
		{"a wait is told when it has ended", a_wait_is_told_when_it_has_ended},
		{"the end may come first", the_end_may_come_first},
		{"memory is bounded and what goes is counted", memory_is_bounded_and_what_goes_is_counted},
		{"what cannot be true is counted", what_cannot_be_true_is_counted},
	};

	return unit_suite("stack_samples", tests, sizeof(tests) / sizeof(tests[0]));
}
