// SPDX-License-Identifier: GPL-2.0-or-later
/* Two hosts' clocks, told from what went to and fro between them; what it must be found to be is known. */
#include "unit.h"

#include "analysis/clock_link.h"
#include "base/random.h"

#include <math.h>
#include <stdlib.h>

#define S  1000000000ULL
#define US 1000ULL

#define MESSAGES_MAX 2000

/* Messages between two hosts: b's clock is ahead by offset_ns at 0 and drifts. */
struct exchange {
	struct clock_message forth[MESSAGES_MAX], back[MESSAGES_MAX];
	size_t forth_cnt, back_cnt;
	int64_t offset_ns;
	double drift_ppm;
	uint64_t forth_ns, back_ns; /* smallest delays */
	uint64_t seed;
};

static uint64_t by_b(const struct exchange *exchange, uint64_t ts)
{
	return ts + (uint64_t)(exchange->offset_ns + (int64_t)(exchange->drift_ppm * 1e-6 * (double)ts));
}

/* At least the smallest delay, now and then 50 times of it: what was retransmitted, or waited for a CPU. */
static uint64_t delay(struct exchange *exchange, uint64_t least_ns)
{
	uint64_t roll = random_next(&exchange->seed) % 10;

	return roll == 0 ? least_ns * 50 : least_ns + least_ns * roll / 2;
}

static void send_forth(struct exchange *exchange, uint64_t ts)
{
	exchange->forth[exchange->forth_cnt++] =
		(struct clock_message){ts, by_b(exchange, ts + delay(exchange, exchange->forth_ns))};
}

static void send_back(struct exchange *exchange, uint64_t ts)
{
	exchange->back[exchange->back_cnt++] =
		(struct clock_message){by_b(exchange, ts), ts + delay(exchange, exchange->back_ns)};
}

/* A request each 100 ms, its reply 5 ms later. */
static void talk(struct exchange *exchange, uint64_t from_ts, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		send_forth(exchange, from_ts + i * S / 10);
		send_back(exchange, from_ts + i * S / 10 + 5000 * US);
	}
}

static int estimate(struct clock_link *link, struct exchange *exchange)
{
	return clock_link__estimate(link, exchange->forth, exchange->forth_cnt, exchange->back, exchange->back_cnt);
}

/* How far off it is at that time. */
static double error_at(const struct clock_link *link, const struct exchange *exchange, uint64_t ts)
{
	return (double)clock_link__to_b(link, ts) - (double)by_b(exchange, ts);
}

static void the_offset_lies_within_its_uncertainty(void)
{
	static const int64_t offsets[] = {0, 3600 * (int64_t)S, -3600 * (int64_t)S, 1, -1, 12345678};

	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		struct exchange exchange = {
			.offset_ns = offsets[i], .forth_ns = 40 * US, .back_ns = 40 * US, .seed = i + 1};
		struct clock_link link;

		talk(&exchange, 10000 * S, 500);
		CU_ASSERT_EQUAL_FATAL(estimate(&link, &exchange), 0);
		CU_ASSERT(llabs(link.offset_ns - offsets[i]) <= (int64_t)link.uncertainty_ns);
		CU_ASSERT(link.uncertainty_ns >= 40 * US && link.uncertainty_ns < 100 * US);
		CU_ASSERT_EQUAL(link.contradicting_cnt, 0);
		clock_link__free(&link);
	}
}

/* Nobody can tell an asymmetric network from an offset: the uncertainty must hold it. */
static void an_asymmetric_delay_is_within_the_uncertainty(void)
{
	struct exchange exchange = {
		.offset_ns = -77 * (int64_t)S, .forth_ns = 10 * US, .back_ns = 2000 * US, .seed = 7};
	struct clock_link link;

	talk(&exchange, 100 * S, 500);
	CU_ASSERT_EQUAL_FATAL(estimate(&link, &exchange), 0);
	CU_ASSERT(llabs(link.offset_ns - exchange.offset_ns) > 900 * (int64_t)US);
	CU_ASSERT(llabs(link.offset_ns - exchange.offset_ns) <= (int64_t)link.uncertainty_ns);
	CU_ASSERT(link.uncertainty_ns < 2600 * US);
	clock_link__free(&link);
}

static void drift_is_followed(void)
{
	struct exchange exchange = {
		.offset_ns = 5 * (int64_t)S, .drift_ppm = 40, .forth_ns = 30 * US, .back_ns = 30 * US, .seed = 3};
	struct clock_link link;

	talk(&exchange, 1000 * S, 1200);
	CU_ASSERT_EQUAL_FATAL(estimate(&link, &exchange), 0);
	CU_ASSERT(link.points.cnt >= 10);
	CU_ASSERT_DOUBLE_EQUAL(link.drift_ppm, 40, 3);
	/* In two minutes it drifts by 4.8 ms, and one offset for all of it would be off by up to half of that. */
	for (uint64_t ts = 1000 * S; ts < 1120 * S; ts += S / 4)
		CU_ASSERT(fabs(error_at(&link, &exchange, ts)) <= (double)link.uncertainty_ns);
	CU_ASSERT(link.uncertainty_ns < 100 * US);
	clock_link__free(&link);
}

static void time_goes_there_and_back_and_never_backwards(void)
{
	struct exchange exchange = {
		.offset_ns = -123456789, .drift_ppm = -70, .forth_ns = 20 * US, .back_ns = 50 * US, .seed = 5};
	uint64_t last_ts = 0, last_back_ts = 0, worst = 0;
	struct clock_link link;

	talk(&exchange, 500 * S, 600);
	CU_ASSERT_EQUAL_FATAL(estimate(&link, &exchange), 0);
	for (uint64_t ts = 490 * S; ts < 570 * S; ts += 7654321) {
		uint64_t there = clock_link__to_b(&link, ts), back = clock_link__to_a(&link, there);
		uint64_t off = back > ts ? back - ts : ts - back;

		CU_ASSERT(there >= last_ts && back >= last_back_ts);
		worst = off > worst ? off : worst;
		last_ts = there;
		last_back_ts = back;
	}
	CU_ASSERT(worst <= 2);
	/* Beyond either end of time it stops there. */
	CU_ASSERT_EQUAL(clock_link__to_b(&link, 0), 0);
	CU_ASSERT_EQUAL(clock_link__to_a(&link, UINT64_MAX), UINT64_MAX);
	clock_link__free(&link);
}

/* A message that was another one's: its delay is anything, and a negative one would be the smallest. */
static void what_contradicts_the_rest_is_left_out(void)
{
	struct exchange exchange = {.offset_ns = 9 * (int64_t)S, .forth_ns = 40 * US, .back_ns = 40 * US, .seed = 11};
	struct clock_link link;

	talk(&exchange, 50 * S, 300);
	for (size_t i = 0; i < 300; i += 30) {
		exchange.forth[i].received_ts -= (uint64_t)i * S;
		exchange.back[i + 3].sent_ts += (uint64_t)(i + 1) * S;
	}
	CU_ASSERT_EQUAL_FATAL(estimate(&link, &exchange), 0);
	CU_ASSERT(link.contradicting_cnt >= 19 && link.contradicting_cnt <= 20);
	CU_ASSERT(llabs(link.offset_ns - exchange.offset_ns) <= (int64_t)link.uncertainty_ns);
	CU_ASSERT(link.uncertainty_ns < 100 * US);
	clock_link__free(&link);
}

static void one_direction_tells_nothing(void)
{
	struct exchange exchange = {.offset_ns = (int64_t)S, .forth_ns = US, .back_ns = US};
	struct clock_link link;

	CU_ASSERT_EQUAL(estimate(&link, &exchange), -ENODATA);
	for (size_t i = 0; i < 50; i++)
		send_forth(&exchange, S + i * S);
	CU_ASSERT_EQUAL(estimate(&link, &exchange), -ENODATA);
	CU_ASSERT_EQUAL(link.forth_cnt, 50);
	/* In another window than the others: still nothing. */
	send_back(&exchange, 500 * S);
	CU_ASSERT_EQUAL(estimate(&link, &exchange), -ENODATA);
	clock_link__free(&link);
}

static void numbers_that_are_no_times_do_no_harm(void)
{
	struct exchange exchange = {.seed = 99};
	struct clock_link link;

	for (int round = 0; round < 200; round++) {
		int err;

		exchange.forth_cnt = exchange.back_cnt = 20;
		for (size_t i = 0; i < 20; i++) {
			exchange.forth[i] =
				(struct clock_message){random_next(&exchange.seed), random_next(&exchange.seed)};
			exchange.back[i] = (struct clock_message){random_next(&exchange.seed) >> (round % 64),
								  UINT64_MAX - random_next(&exchange.seed) % 3};
		}
		err = estimate(&link, &exchange);
		CU_ASSERT(!err || err == -ENODATA);
		for (int i = 0; !err && i < 20; i++)
			CU_ASSERT(clock_link__to_b(&link, exchange.forth[i].sent_ts) <= UINT64_MAX);
		if (!err)
			clock_link__to_a(&link, UINT64_MAX);
		clock_link__free(&link);
	}
}

static const struct unit_test tests[] = {
	{"the offset lies within its uncertainty", the_offset_lies_within_its_uncertainty},
	{"an asymmetric delay is within the uncertainty", an_asymmetric_delay_is_within_the_uncertainty},
	{"drift is followed", drift_is_followed},
	{"time goes there and back and never backwards", time_goes_there_and_back_and_never_backwards},
	{"what contradicts the rest is left out", what_contradicts_the_rest_is_left_out},
	{"one direction tells nothing", one_direction_tells_nothing},
	{"numbers that are no times do no harm", numbers_that_are_no_times_do_no_harm},
};

int suite_clock_link(void)
{
	return unit_suite("clock_link", tests, sizeof(tests) / sizeof(tests[0]));
}
