// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/names.h"
#include "model/interval_row.h"
#include "model/retention.h"
#include "model/thread_names.h"
#include "unit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t xorshift(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* --- retention ------------------------------------------------------------------------------------------------------
 */

static void retention_without_a_tail_keeps_everything(void)
{
	struct retention *retention = retention__new(0, 1);

	for (uint64_t i = 0; i < 5000; i++) {
		retention__saw(retention, i % 7, 1, i * 1000000);
		CU_ASSERT_EQUAL_FATAL(retention__late_ns(retention), 0);
	}
	retention__free(retention);
}

/*
 * 20,000 intervals a second for 20 s, latencies uniform in [0, 1 ms): the weights of what is kept must add up to what
 * was there, in number, in mean and above any threshold, and everything late must be kept with weight 1.
 */
static void retention_is_unbiased(void)
{
	struct retention *retention = retention__new(0.99, 500);
	double kept_weight = 0, kept_sum = 0, sum = 0, kept_half = 0;
	uint64_t rng = 7, total = 400000, rows = 0, late = 0, late_kept = 0, half = 0;

	for (uint64_t i = 0; i < total; i++) {
		uint64_t latency_ns = xorshift(&rng) % 1000000, chance = retention__chance(retention);
		bool is_late = latency_ns >= retention__late_ns(retention), certain = is_late || chance >> 32;
		double weight = certain ? 1 : 0x1p32 / chance;

		retention__saw(retention, latency_ns, 1, i * 50000 + 1);
		sum += latency_ns;
		half += latency_ns >= 500000;
		if (latency_ns >= 999000) {
			late++;
			late_kept += certain;
		}
		if (!certain && (uint32_t)xorshift(&rng) >= chance)
			continue;
		rows++;
		kept_weight += weight;
		kept_sum += weight * latency_ns;
		kept_half += latency_ns >= 500000 ? weight : 0;
	}
	CU_ASSERT_EQUAL(late_kept, late);
	/* About 500 a second and 1 % of 20,000 a second, after the first 2,000, which are kept. */
	CU_ASSERT(rows > 2000 + 19 * 500 && rows < 2000 + 20 * 1000);
	/* A weight of 40 on ~9,500 rows: a relative standard error of about 1 %; five of them. */
	CU_ASSERT_DOUBLE_EQUAL(kept_weight / total, 1, 0.05);
	CU_ASSERT_DOUBLE_EQUAL(kept_sum / sum, 1, 0.05);
	CU_ASSERT_DOUBLE_EQUAL(kept_half / half, 1, 0.07);
	retention__free(retention);
}

static void retention_follows_the_load(void)
{
	struct retention *retention = retention__new(0.9, 100);
	uint64_t rng = 11, ts = 1;

	for (int i = 0; i < 200000; i++)
		retention__saw(retention, 1000 + xorshift(&rng) % 1000, 1, ts += 50000);
	/* Within the 3 % of a bucket below the true 90th percentile, 1,900. */
	CU_ASSERT(retention__late_ns(retention) >= 1830 && retention__late_ns(retention) <= 1900);
	for (int i = 0; i < 12000000; i++)
		retention__saw(retention, 100000 + xorshift(&rng) % 1000, 1, ts += 50000);
	CU_ASSERT(retention__late_ns(retention) >= 97000 && retention__late_ns(retention) <= 101000);
	retention__free(retention);
}

static void retention_takes_any_latency_and_time(void)
{
	static const uint64_t latencies[] = {0, 1, 31, 32, 33, 63, 64, UINT32_MAX, UINT64_MAX - 1, UINT64_MAX};
	struct retention *retention = retention__new(0.5, 1);

	for (uint64_t i = 0; i < 20000; i++) {
		uint64_t end_ts = i % 3 ? i * 1000000 : 1000000000; /* goes back at times */

		retention__saw(retention, latencies[i % 10], 1, end_ts);
		CU_ASSERT_FATAL(retention__chance(retention) <= 1ULL << 32);
	}
	retention__free(retention);
}

/* --- thread names ---------------------------------------------------------------------------------------------------
 */

static void thread_names_remember_everybody(void)
{
	struct thread_names *names = thread_names__new();
	char comm[32];

	for (uint32_t tid = 1; tid <= 10000; tid++) {
		snprintf(comm, sizeof(comm), "thread-%u", tid);
		CU_ASSERT_EQUAL_FATAL(thread_names__set(names, tid, 1, comm), 0);
	}
	CU_ASSERT_EQUAL(thread_names__set(names, 77, 1000000000, "a name that is too long"), 0);
	for (uint32_t tid = 1; tid <= 10000; tid++) {
		snprintf(comm, sizeof(comm), "thread-%u", tid);
		CU_ASSERT_STRING_EQUAL(thread_names__get(names, tid, 1000000000), tid == 77 ? "a name that is " : comm);
	}
	CU_ASSERT_PTR_NULL(thread_names__get(names, 0, 1));
	CU_ASSERT_PTR_NULL(thread_names__get(names, 20000, 1));
	thread_names__free(names);
}

/* Rows are made of what was, after the names have changed; and records of different CPUs come in no order. */
static void thread_names_are_those_of_the_time(void)
{
	struct thread_names *names = thread_names__new();
	const uint64_t ms = 1000000;

	CU_ASSERT_EQUAL(thread_names__set(names, 7, 10 * ms, "first"), 0);
	CU_ASSERT_EQUAL(thread_names__set(names, 7, 30 * ms, "third"), 0);
	CU_ASSERT_EQUAL(thread_names__set(names, 8, 5 * ms, "somebody else"), 0);
	CU_ASSERT_EQUAL(thread_names__set(names, 7, 20 * ms, "second"), 0);
	CU_ASSERT_EQUAL(thread_names__set(names, 7, 40 * ms, "third"), 0); /* told again */
	CU_ASSERT_STRING_EQUAL(thread_names__get(names, 7, 1), "first");
	CU_ASSERT_STRING_EQUAL(thread_names__get(names, 7, 10 * ms), "first");
	CU_ASSERT_STRING_EQUAL(thread_names__get(names, 7, 19 * ms), "first");
	CU_ASSERT_STRING_EQUAL(thread_names__get(names, 7, 20 * ms - THREAD_NAMES_LAG_NS), "second");
	CU_ASSERT_STRING_EQUAL(thread_names__get(names, 7, 29 * ms), "second");
	CU_ASSERT_STRING_EQUAL(thread_names__get(names, 7, 30 * ms), "third");
	CU_ASSERT_STRING_EQUAL(thread_names__get(names, 7, 90 * ms), "third");
	CU_ASSERT_STRING_EQUAL(thread_names__get(names, 8, 1), "somebody else");
	/* Many others are renamed: what is left of the first one's names is told. */
	for (uint32_t i = 0; i < THREAD_NAMES_EARLIER; i++)
		CU_ASSERT_EQUAL(thread_names__set(names, 9, (50 + i) * ms, i % 2 ? "odd" : "even"), 0);
	CU_ASSERT_STRING_EQUAL(thread_names__get(names, 7, 19 * ms), "second");
	CU_ASSERT_STRING_EQUAL(thread_names__get(names, 9, 51 * ms), "odd");
	CU_ASSERT_EQUAL(thread_names__set(names, 9, 5000 * ms, "even"), 0);
	CU_ASSERT_EQUAL(thread_names__set(names, 9, 5001 * ms, "odd"), 0);
	CU_ASSERT_STRING_EQUAL(thread_names__get(names, 7, 19 * ms), "third");
	thread_names__free(names);
}

static uint32_t known_cnt(const struct thread_names *names, uint32_t from, uint32_t to)
{
	uint32_t cnt = 0;

	for (uint32_t tid = from; tid < to; tid++) {
		char comm[32];

		snprintf(comm, sizeof(comm), "child-%u", tid);
		cnt += thread_names__get(names, tid, 1) && !strcmp(thread_names__get(names, tid, 1), comm);
	}
	return cnt;
}

/* A child for every request, for days: as many names as have ended last, and those that live. */
static void thread_names_forget_those_long_gone(void)
{
	struct thread_names *names = thread_names__new();
	uint32_t first = 1000, end = first + 5 * THREAD_NAMES_GONE;
	char comm[32];

	CU_ASSERT_EQUAL(thread_names__set(names, 7, 1, "lives on"), 0);
	CU_ASSERT_EQUAL(thread_names__set(names, 8, 1, "used again"), 0);
	thread_names__gone(names, 8);
	CU_ASSERT_EQUAL(thread_names__set(names, 8, 1, "used again"), 0);
	thread_names__gone(names, 9); /* never seen */
	for (uint32_t tid = first; tid < end; tid++) {
		snprintf(comm, sizeof(comm), "child-%u", tid);
		CU_ASSERT_EQUAL_FATAL(thread_names__set(names, tid, 1, comm), 0);
		thread_names__gone(names, tid);
		if (tid == first + 10) /* ends twice: as of the second time */
			thread_names__gone(names, first);
		if (tid == first + 5 + THREAD_NAMES_GONE)
			CU_ASSERT_STRING_EQUAL(thread_names__get(names, first, 1), "child-1000");
	}
	CU_ASSERT_EQUAL(known_cnt(names, end - THREAD_NAMES_GONE, end), THREAD_NAMES_GONE);
	CU_ASSERT_EQUAL(known_cnt(names, first, end - THREAD_NAMES_GONE), 0);
	CU_ASSERT_STRING_EQUAL(thread_names__get(names, 7, 1), "lives on");
	CU_ASSERT_STRING_EQUAL(thread_names__get(names, 8, 1), "used again");
	CU_ASSERT_PTR_NULL(thread_names__get(names, 9, 1));
	thread_names__free(names);
}

/* Somebody has the CPU every now and then, among very many who have it once. */
static void thread_names_keep_those_in_use(void)
{
	struct thread_names *names = thread_names__new();
	uint32_t first = 1000, end = first + 5 * THREAD_NAMES_GONE;
	char comm[32];

	CU_ASSERT_EQUAL(thread_names__set(names, 7, 1, "in use"), 0);
	thread_names__gone(names, 7);
	for (uint32_t tid = first; tid < end; tid++) {
		snprintf(comm, sizeof(comm), "child-%u", tid);
		CU_ASSERT_EQUAL_FATAL(thread_names__set(names, tid, 1, comm), 0);
		thread_names__gone(names, tid);
		if (tid % 10000 == 0)
			CU_ASSERT_STRING_EQUAL(thread_names__get(names, 7, 1), "in use");
	}
	CU_ASSERT_EQUAL(known_cnt(names, end - THREAD_NAMES_GONE + 10, end), THREAD_NAMES_GONE - 10);
	CU_ASSERT_EQUAL(known_cnt(names, first, end - THREAD_NAMES_GONE), 0);
	/* All of them are in use now, so that each is passed over once. */
	for (uint32_t tid = end; tid < end + 2 * THREAD_NAMES_GONE; tid++) {
		CU_ASSERT_EQUAL_FATAL(thread_names__set(names, tid, 1, "later"), 0);
		thread_names__gone(names, tid);
	}
	CU_ASSERT_EQUAL(known_cnt(names, first, end), 0);
	CU_ASSERT_PTR_NULL(thread_names__get(names, 7, 1));
	thread_names__free(names);
}

/* --- rows -----------------------------------------------------------------------------------------------------------
 */

static struct wl_interval_record example_record(void)
{
	struct wl_interval_record record = {
		.sid = 99,
		.begin_ts = 1000,
		.pickup_ts = 1400,
		.end_ts = 3000,
		.pid = 7,
		.tid = 8,
		.end_tid = 8,
		.type = WL_SOURCE_TCP << 16 | 6379,
		.rate = 1u << 31,
	};

	record.length_ns[WL_STATE_RUNNING] = 1500;
	record.length_ns[WL_STATE_RUNQ_WAKEUP] = 400;
	record.length_ns[WL_STATE_SOFTIRQ_NET_RX] = 100;
	record.count[WL_STATE_RUNQ_WAKEUP] = 1;
	record.count[WL_STATE_SOFTIRQ_NET_RX] = 2;
	record.tally[WL_TALLY_MIGRATION] = 3;
	return record;
}

static uint64_t sum_of_states(const struct shard_row *row)
{
	uint64_t sum = 0;

	for (uint32_t state = 0; state < WL_STATE_CNT; state++)
		sum += row->values[interval_column_length(state)].u64;
	return sum;
}

static struct interval_names no_names(struct thread_names *threads)
{
	struct interval_names names = {.threads = threads};

	for (int slot = 0; slot < WL_HW_SLOTS; slot++)
		names.hw_counter[slot] = -1;
	return names;
}

/* The ids of a header, "TRACE/SPAN"; "": none. */
static const char *ids_of_header(const char *header)
{
	static char text[TRACE_ID_TEXT_SZ + SPAN_ID_TEXT_SZ];
	struct wl_trace_context context = {.kind = WL_TRACE_HEADER};
	char trace_id[TRACE_ID_TEXT_SZ], span_id[SPAN_ID_TEXT_SZ];
	size_t len = strlen(header);

	memset(context.bytes, '\n', sizeof(context.bytes));
	memcpy(context.bytes, header, len < WL_TRACE_HEADER_LEN ? len : WL_TRACE_HEADER_LEN);
	if (!trace_context_texts(&context, trace_id, span_id))
		return "";
	snprintf(text, sizeof(text), "%s/%s", trace_id, span_id);
	return text;
}

static void a_trace_context_has_two_ids(void)
{
	static const char ids[] = "4bf92f3577b34da6a3ce929d0e0e4736/00f067aa0ba902b7";
	struct wl_trace_context context = {.kind = WL_TRACE_THREAD};
	char trace_id[TRACE_ID_TEXT_SZ], span_id[SPAN_ID_TEXT_SZ];

	CU_ASSERT_STRING_EQUAL(ids_of_header("traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
			       ids);
	CU_ASSERT_STRING_EQUAL(ids_of_header("Traceparent:00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r"),
			       ids);
	CU_ASSERT_STRING_EQUAL(ids_of_header("traceparent: cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x"),
			       ids);
	CU_ASSERT_STRING_EQUAL(ids_of_header("traceparent: ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
			       "");
	CU_ASSERT_STRING_EQUAL(ids_of_header("traceparent: 00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01"),
			       "");
	CU_ASSERT_STRING_EQUAL(ids_of_header("traceparent: 00-00000000000000000000000000000000-00f067aa0ba902b7-01"),
			       "");
	CU_ASSERT_STRING_EQUAL(ids_of_header("traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01"),
			       "");
	CU_ASSERT_STRING_EQUAL(ids_of_header("traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01"),
			       "");
	CU_ASSERT_STRING_EQUAL(ids_of_header("traceparent:"), "");
	CU_ASSERT(!trace_context_texts(&context, trace_id, span_id));
	context.bytes[0] = 0x4b;
	CU_ASSERT(!trace_context_texts(&context, trace_id, span_id));
	context.bytes[WL_TRACE_ID_LEN + WL_SPAN_ID_LEN - 1] = 0xb7;
	CU_ASSERT(trace_context_texts(&context, trace_id, span_id));
	CU_ASSERT_STRING_EQUAL(trace_id, "4b000000000000000000000000000000");
	CU_ASSERT_STRING_EQUAL(span_id, "00000000000000b7");
	context.kind = WL_TRACE_NONE;
	CU_ASSERT(!trace_context_texts(&context, trace_id, span_id));
}

static void a_record_becomes_a_row(void)
{
	struct thread_names *threads = thread_names__new();
	struct wl_interval_record record = example_record();
	struct interval_names names = no_names(threads);
	struct interval_texts texts;
	struct shard_row row;

	record.culprit = (struct wl_culprit){.length_ns = 390, .pid = 812, .tid = 813, .comm = "backup"};
	record.lock =
		(struct wl_wait){.length_ns = 5, .object = 0x4060, .state = WL_STATE_BLOCKED_FUTEX, .owner_tid = 9};
	record.blocked = (struct wl_wait){.length_ns = 6, .object = 4, .state = WL_STATE_BLOCKED_DISK, .sysno = 100000};
	record.chance = (1ULL << 32) / 10;
	record.flags = WL_INTERVAL_BASELINE;
	CU_ASSERT_EQUAL(interval_row_make(&row, &texts, &record, &names), 0);
	CU_ASSERT_EQUAL(sum_of_states(&row), 2000);
	CU_ASSERT_STRING_EQUAL(row.values[INTERVAL_TYPE].str, "tcp:6379");
	CU_ASSERT_DOUBLE_EQUAL(row.values[INTERVAL_WEIGHT].f64, 20, 1e-6); /* half selected, a tenth of them kept */
	CU_ASSERT_EQUAL(row.values[INTERVAL_FLAGS].u64, WL_INTERVAL_BASELINE);
	CU_ASSERT_EQUAL(row.values[interval_column_tally(WL_TALLY_MIGRATION)].u64, 3);
	CU_ASSERT_EQUAL(row.values[interval_column_count(WL_STATE_SOFTIRQ_NET_RX)].u64, 2);
	CU_ASSERT_STRING_EQUAL(row.values[INTERVAL_CULPRIT_COMM].str, "backup");
	CU_ASSERT_EQUAL(row.values[INTERVAL_CULPRIT_TID].u64, 813);
	CU_ASSERT_STRING_EQUAL(row.values[INTERVAL_BLOCKED_STATE].str, "blocked.disk");
	CU_ASSERT_STRING_EQUAL(row.values[INTERVAL_BLOCKED_SYSCALL].str, "syscall 100000");
	/* An owner that nobody has seen is no owner. */
	CU_ASSERT(!shard_row__is_null(&row, INTERVAL_LOCK_ADDR));
	CU_ASSERT(shard_row__is_null(&row, INTERVAL_LOCK_OWNER_TID));
	CU_ASSERT(shard_row__is_null(&row, INTERVAL_FAULT_NS));
	CU_ASSERT(shard_row__is_null(&row, INTERVAL_QUEUE_SID));
	CU_ASSERT(shard_row__is_null(&row, INTERVAL_TRACE_ID));
	CU_ASSERT(shard_row__is_null(&row, INTERVAL_SPAN_ID));
	record.chance = 0;
	CU_ASSERT_EQUAL(thread_names__set(threads, 9, 1, "holder"), 0);
	CU_ASSERT_EQUAL(interval_row_make(&row, &texts, &record, &names), 0);
	CU_ASSERT_STRING_EQUAL(row.values[INTERVAL_LOCK_OWNER_COMM].str, "holder");
	CU_ASSERT_EQUAL(row.values[INTERVAL_LOCK_OWNER_TID].u64, 9);
	record.culprit = (struct wl_culprit){.length_ns = 390};
	CU_ASSERT_EQUAL(interval_row_make(&row, &texts, &record, &names), 0);
	CU_ASSERT_STRING_EQUAL(row.values[INTERVAL_CULPRIT_COMM].str, NAME_IDLE_CPU);
	CU_ASSERT(shard_row__is_null(&row, INTERVAL_CULPRIT_PID) && shard_row__is_null(&row, INTERVAL_CULPRIT_TID));
	thread_names__free(threads);
}

/* Whatever the kernel side says, the states of a row sum to its latency. */
static void states_always_sum_to_the_latency(void)
{
	struct thread_names *threads = thread_names__new();
	struct interval_names names = no_names(threads);
	struct interval_texts texts;
	struct shard_row row;
	uint64_t rng = 5;

	for (int round = 0; round < 2000; round++) {
		struct wl_interval_record record = example_record();
		bool exact = false;
		uint64_t sum = 0;

		record.end_ts = record.pickup_ts + xorshift(&rng) % 100000;
		for (int state = 0; state < WL_STATE_CNT; state++)
			record.length_ns[state] = round % 5 ? xorshift(&rng) % 8000 : xorshift(&rng);
		for (int state = 0; state < WL_STATE_CNT; state++)
			sum += record.length_ns[state];
		if (round % 3 == 0 && round % 5) {
			record.end_ts = record.begin_ts + sum;
			record.pickup_ts = record.begin_ts;
			exact = true;
		}
		CU_ASSERT_EQUAL_FATAL(interval_row_make(&row, &texts, &record, &names), 0);
		CU_ASSERT_EQUAL_FATAL(sum_of_states(&row), record.end_ts - record.begin_ts);
		CU_ASSERT_EQUAL_FATAL(!(row.values[INTERVAL_FLAGS].u64 & WL_INTERVAL_TORN), exact);
	}
	thread_names__free(threads);
}

static void impossible_times_are_refused(void)
{
	struct thread_names *threads = thread_names__new();
	struct interval_names names = no_names(threads);
	struct wl_interval_record record = example_record();
	struct interval_texts texts;
	struct shard_row row;

	record.end_ts = record.begin_ts - 1;
	CU_ASSERT_EQUAL(interval_row_make(&row, &texts, &record, &names), -EBADMSG);
	record = example_record();
	record.pickup_ts = record.end_ts + 1;
	CU_ASSERT_EQUAL(interval_row_make(&row, &texts, &record, &names), -EBADMSG);
	record = example_record();
	record.pickup_ts = record.begin_ts - 1;
	CU_ASSERT_EQUAL(interval_row_make(&row, &texts, &record, &names), -EBADMSG);
	thread_names__free(threads);
}

static void hardware_counters_are_null_outside_their_epoch(void)
{
	struct thread_names *threads = thread_names__new();
	struct interval_names names = no_names(threads);
	struct wl_interval_record record = example_record();
	struct interval_texts texts;
	struct shard_row row;

	names.hw_counter[0] = SHARD_HW_CYCLES;
	names.hw_counter[1] = SHARD_HW_BRANCHES;
	record.hw[0] = 1234;
	record.hw[1] = 56;
	CU_ASSERT_EQUAL(interval_row_make(&row, &texts, &record, &names), 0);
	for (uint32_t counter = 0; counter < SHARD_HW_CNT; counter++)
		CU_ASSERT(shard_row__is_null(&row, interval_column_hw(counter)));
	record.flags = WL_INTERVAL_HW;
	CU_ASSERT_EQUAL(interval_row_make(&row, &texts, &record, &names), 0);
	for (uint32_t counter = 0; counter < SHARD_HW_CNT; counter++)
		CU_ASSERT_EQUAL(shard_row__is_null(&row, interval_column_hw(counter)),
				counter != SHARD_HW_CYCLES && counter != SHARD_HW_BRANCHES);
	CU_ASSERT_EQUAL(row.values[interval_column_hw(SHARD_HW_CYCLES)].u64, 1234);
	CU_ASSERT_EQUAL(row.values[interval_column_hw(SHARD_HW_BRANCHES)].u64, 56);
	thread_names__free(threads);
}

int suite_model(void)
{
	static const struct unit_test tests[] = {
		{"retention without a tail keeps everything", retention_without_a_tail_keeps_everything},
		{"retention is unbiased", retention_is_unbiased},
		{"retention follows the load", retention_follows_the_load},
		{"retention takes any latency and time", retention_takes_any_latency_and_time},
		{"thread names remember everybody", thread_names_remember_everybody},
		{"thread names are those of the time", thread_names_are_those_of_the_time},
		{"thread names forget those long gone", thread_names_forget_those_long_gone},
		{"thread names keep those in use", thread_names_keep_those_in_use},
		{"a record becomes a row", a_record_becomes_a_row},
		{"a trace context has two ids", a_trace_context_has_two_ids},
		{"states always sum to the latency", states_always_sum_to_the_latency},
		{"impossible times are refused", impossible_times_are_refused},
		{"hardware counters are null outside their epoch", hardware_counters_are_null_outside_their_epoch},
	};

	return unit_suite("model", tests, sizeof(tests) / sizeof(tests[0]));
}
