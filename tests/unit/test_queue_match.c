// SPDX-License-Identifier: GPL-2.0-or-later
/* Values that pass two places: when that is a queue. */
#include "probe/queue_match.h"
#include "unit.h"

#include <string.h>

#define ADDR(n)  (0x7f0000000000ULL + 64 * (uint64_t)(n))
#define CNT      100
#define STEP_NS  1000
#define IN       0
#define OUT      1
#define PRODUCER 11
#define CONSUMER 21

static const struct queue_end two_ends[] = {{.rounds = 1}, {.out = true, .rounds = 1}};

static void pass(queue_values *values, uint64_t ts, uint32_t place, uint32_t tid, uint64_t value)
{
	struct queue_value made = {.ts = ts, .value = value, .lock = 0x1000, .pid = 1, .tid = tid, .place = place};

	CU_ASSERT_EQUAL_FATAL(vec_push(values, made), 0);
}

/* The verdict on the only pair. */
static struct queue_pair match(queue_values *values, const struct queue_end *ends, size_t end_cnt)
{
	struct queue_pair pair = {.verdict = QUEUE_FEW};
	queue_pairs pairs = {0};

	CU_ASSERT_EQUAL_FATAL(queue_pairs_find(ends, end_cnt, values, &pairs), 0);
	CU_ASSERT(pairs.cnt <= 1);
	if (pairs.cnt)
		pair = pairs.items[0];
	vec_free(&pairs);
	values->cnt = 0;
	return pair;
}

static void a_queue(void)
{
	queue_values values = {0};
	struct queue_pair pair;

	/* Three wait at a time; addresses are used again. */
	for (int i = 0; i < CNT; i++) {
		pass(&values, 10 * STEP_NS * i, IN, PRODUCER + i % 2, ADDR(i % 10));
		pass(&values, 10 * STEP_NS * i + 35 * STEP_NS, OUT, CONSUMER + i % 3, ADDR(i % 10));
	}
	pair = match(&values, two_ends, 2);
	CU_ASSERT_EQUAL(pair.verdict, QUEUE_CONFIRMED);
	CU_ASSERT_EQUAL(pair.in, IN);
	CU_ASSERT_EQUAL(pair.out, OUT);
	CU_ASSERT_EQUAL(pair.crossed, CNT);
	CU_ASSERT_EQUAL(pair.median_ns, 35 * STEP_NS);
	CU_ASSERT_EQUAL(pair.in_threads, 2);
	CU_ASSERT_EQUAL(pair.out_threads, 3);
	CU_ASSERT(pair.lock_known);
	vec_free(&values);
}

static void what_is_no_value(void)
{
	static const uint64_t none[] = {0, (uint64_t)-1, (uint64_t)-11, UINT32_MAX};
	queue_values values = {0};

	for (int i = 0; i < CNT; i++) {
		pass(&values, 10 * STEP_NS * i, IN, PRODUCER, none[i % 4]);
		pass(&values, 10 * STEP_NS * i + STEP_NS, OUT, CONSUMER, none[i % 4]);
	}
	CU_ASSERT_EQUAL(match(&values, two_ends, 2).crossed, 0);
	/* Small numbers may be descriptors, where both ends hold one lock. */
	for (int i = 0; i < CNT; i++) {
		pass(&values, 10 * STEP_NS * i, IN, PRODUCER, 5 + i % 3);
		pass(&values, 10 * STEP_NS * i + STEP_NS, OUT, CONSUMER, 5 + i % 3);
	}
	CU_ASSERT_EQUAL(match(&values, two_ends, 2).verdict, QUEUE_CONFIRMED);
	for (int i = 0; i < CNT; i++) {
		pass(&values, 10 * STEP_NS * i, IN, PRODUCER, 5 + i % 3);
		values.items[values.cnt - 1].lock = 0;
		pass(&values, 10 * STEP_NS * i + STEP_NS, OUT, CONSUMER, 5 + i % 3);
	}
	CU_ASSERT_EQUAL(match(&values, two_ends, 2).crossed, 0);
	vec_free(&values);
}

static void what_is_no_queue(void)
{
	queue_values values = {0};

	/* Threads that do both. */
	for (int i = 0; i < CNT; i++) {
		pass(&values, 10 * STEP_NS * i, IN, PRODUCER + i % 2, ADDR(i));
		pass(&values, 10 * STEP_NS * i + STEP_NS, OUT, PRODUCER + (i + 1) % 2, ADDR(i));
	}
	CU_ASSERT_EQUAL(match(&values, two_ends, 2).verdict, QUEUE_BOTH);
	/* Set once, read again and again. */
	for (int i = 0; i < CNT; i++) {
		pass(&values, 100 * STEP_NS * i, IN, PRODUCER, ADDR(i));
		for (int j = 1; j < 6; j++)
			pass(&values, (100 * i + 10 * j) * STEP_NS, OUT, CONSUMER, ADDR(i));
	}
	CU_ASSERT_EQUAL(match(&values, two_ends, 2).verdict, QUEUE_UNMATCHED);
	/* One in four comes out here. */
	for (int i = 0; i < CNT; i++) {
		pass(&values, 10 * STEP_NS * i, IN, PRODUCER, ADDR(i));
		if (i % 4 == 0)
			pass(&values, 10 * STEP_NS * i + STEP_NS, OUT, CONSUMER, ADDR(i));
	}
	CU_ASSERT_EQUAL(match(&values, two_ends, 2).verdict, QUEUE_UNMATCHED);
	/* Out before in, under other locks, in other processes: nothing crosses. */
	for (int i = 0; i < CNT; i++) {
		pass(&values, 10 * STEP_NS * i, OUT, CONSUMER, ADDR(i));
		pass(&values, 10 * STEP_NS * i + STEP_NS, IN, PRODUCER, ADDR(i));
	}
	CU_ASSERT_EQUAL(match(&values, two_ends, 2).crossed, 0);
	for (int i = 0; i < CNT; i++) {
		pass(&values, 10 * STEP_NS * i, IN, PRODUCER, ADDR(i));
		pass(&values, 10 * STEP_NS * i + STEP_NS, OUT, CONSUMER, ADDR(i));
		values.items[values.cnt - 1].lock = 0x2000;
	}
	CU_ASSERT_EQUAL(match(&values, two_ends, 2).crossed, 0);
	for (int i = 0; i < CNT; i++) {
		pass(&values, 10 * STEP_NS * i, IN, PRODUCER, ADDR(i));
		pass(&values, 10 * STEP_NS * i + STEP_NS, OUT, CONSUMER, ADDR(i));
		values.items[values.cnt - 1].pid = 2;
	}
	CU_ASSERT_EQUAL(match(&values, two_ends, 2).crossed, 0);
	/* Too few. */
	for (int i = 0; i < 3; i++) {
		pass(&values, 10 * STEP_NS * i, IN, PRODUCER, ADDR(i));
		pass(&values, 10 * STEP_NS * i + STEP_NS, OUT, CONSUMER, ADDR(i));
	}
	CU_ASSERT_EQUAL(match(&values, two_ends, 2).verdict, QUEUE_FEW);
	vec_free(&values);
}

/* Three go in, and come out backwards, or by a priority that mixes them. */
static void order_tells_a_free_list(void)
{
	static const int backwards[] = {2, 1, 0}, mixed[][3] = {{0, 1, 2}, {2, 0, 1}, {1, 2, 0}};
	queue_values values = {0};

	for (int way = 0; way < 2; way++) {
		for (int i = 0; i < CNT; i++)
			for (int j = 0; j < 3; j++) {
				const int *order = way ? mixed[i % 3] : backwards;

				pass(&values, (100 * i + j) * STEP_NS, IN, PRODUCER, ADDR(3 * i + j));
				pass(&values, (100 * i + 10 + j) * STEP_NS, OUT, CONSUMER, ADDR(3 * i + order[j]));
			}
		CU_ASSERT_EQUAL(match(&values, two_ends, 2).verdict, way ? QUEUE_CONFIRMED : QUEUE_NEWEST);
	}
	vec_free(&values);
}

/* The same backwards, where a thread waits for it or polls: a list of work, unless its values come again. */
static void work_that_comes_out_backwards(void)
{
	static const struct queue_end awaited[][2] = {
		{{.rounds = 1}, {.out = true, .rounds = 1, .known = true}},
		{{.rounds = 1}, {.out = true, .rounds = 1, .polled = true}},
	};
	queue_values values = {0};

	for (int way = 0; way < 2; way++)
		for (int again = 0; again < 2; again++) {
			for (int i = 0; i < 100; i++)
				for (int j = 0; j < 3; j++) {
					int first = again ? 0 : 3 * i;

					pass(&values, (100 * i + j) * STEP_NS, IN, PRODUCER, ADDR(first + j));
					pass(&values, (100 * i + 10 + j) * STEP_NS, OUT, CONSUMER, ADDR(first + 2 - j));
				}
			CU_ASSERT_EQUAL(match(&values, awaited[way], 2).verdict,
					again ? QUEUE_NEWEST : QUEUE_CONFIRMED);
		}
	vec_free(&values);
}

/* One function puts into the queues of all stages, another one takes out: each thread takes from the one before. */
static void queues_of_stages(void)
{
	static const struct queue_end awaited[] = {{.rounds = 1, .known = true},
						   {.out = true, .rounds = 1, .known = true}};
	enum { ONE_WAY, ROUND, NOT_AWAITED, WAYS };
	queue_values values = {0};

	for (int way = 0; way < WAYS; way++) {
		for (int i = 0; i < CNT; i++)
			for (uint32_t stage = 0; stage < 3; stage++) {
				uint64_t ts = (100 * i + 20 * stage) * STEP_NS;
				uint32_t to = way == ROUND && stage == 2 ? PRODUCER + 1 : PRODUCER + stage + 1;

				pass(&values, ts, IN, PRODUCER + stage, ADDR(i));
				pass(&values, ts + 10 * STEP_NS, OUT, to, ADDR(i));
			}
		CU_ASSERT_EQUAL(match(&values, way == NOT_AWAITED ? two_ends : awaited, 2).verdict,
				way == ONE_WAY ? QUEUE_CONFIRMED : QUEUE_BOTH);
	}
	vec_free(&values);
}

/* Jobs go to the workers by a queue that they wait at, and come back by a list that nobody waits at. */
static void what_comes_back(void)
{
	static const struct queue_end ends[] = {
		{.rounds = 1, .known = true},
		{.out = true, .rounds = 1, .known = true},
		{.rounds = 1},
		{.out = true, .rounds = 1},
	};
	queue_values values = {0};
	queue_pairs pairs = {0};

	for (int i = 0; i < CNT; i++) {
		pass(&values, 100 * i * STEP_NS, 3, PRODUCER, ADDR(i % 4));
		pass(&values, (100 * i + 10) * STEP_NS, 0, PRODUCER, ADDR(i % 4));
		pass(&values, (100 * i + 20) * STEP_NS, 1, CONSUMER, ADDR(i % 4));
		pass(&values, (100 * i + 30) * STEP_NS, 2, CONSUMER, ADDR(i % 4));
	}
	CU_ASSERT_EQUAL_FATAL(queue_pairs_find(ends, 4, &values, &pairs), 0);
	for (size_t i = 0; i < pairs.cnt; i++) {
		if (pairs.items[i].in == 0 && pairs.items[i].out == 1)
			CU_ASSERT_EQUAL(pairs.items[i].verdict, QUEUE_CONFIRMED);
		if (pairs.items[i].in == 2 && pairs.items[i].out == 3)
			CU_ASSERT_EQUAL(pairs.items[i].verdict, QUEUE_RETURN);
	}
	CU_ASSERT(pairs.cnt >= 2);
	CU_ASSERT_EQUAL(pairs.items[0].verdict, QUEUE_CONFIRMED);
	vec_free(&pairs);
	vec_free(&values);
}

/* Where the two ends were watched in turns, only what both could see counts. */
static void only_common_rounds_count(void)
{
	static const struct queue_end ends[] = {{.rounds = 3}, {.out = true, .rounds = 2}};
	queue_values values = {0};
	struct queue_pair pair;

	for (int i = 0; i < CNT; i++) {
		pass(&values, 10 * STEP_NS * i, IN, PRODUCER, ADDR(i));
		values.items[values.cnt - 1].round = i >= CNT / 4;
		if (i < CNT / 4)
			continue;
		pass(&values, 10 * STEP_NS * i + STEP_NS, OUT, CONSUMER, ADDR(i));
		values.items[values.cnt - 1].round = 1;
	}
	pair = match(&values, ends, 2);
	CU_ASSERT_EQUAL(pair.verdict, QUEUE_CONFIRMED);
	CU_ASSERT_EQUAL(pair.in_cnt, CNT - CNT / 4);
	CU_ASSERT_EQUAL(pair.crossed, pair.in_cnt);
	/* A place that is none, and a round that is none. */
	pass(&values, 1, 7, PRODUCER, ADDR(1));
	pass(&values, 2, IN, PRODUCER, ADDR(1));
	values.items[1].round = 77;
	pass(&values, 3, OUT, CONSUMER, ADDR(1));
	CU_ASSERT_EQUAL(match(&values, ends, 2).crossed, 0);
	vec_free(&values);
}

static const struct unit_test tests[] = {
	{"a_queue", a_queue},
	{"what_is_no_value", what_is_no_value},
	{"what_is_no_queue", what_is_no_queue},
	{"order_tells_a_free_list", order_tells_a_free_list},
	{"work_that_comes_out_backwards", work_that_comes_out_backwards},
	{"queues_of_stages", queues_of_stages},
	{"what_comes_back", what_comes_back},
	{"only_common_rounds_count", only_common_rounds_count},
};

int suite_queue_match(void)
{
	return unit_suite("queue_match", tests, sizeof(tests) / sizeof(tests[0]));
}
