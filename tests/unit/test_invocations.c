// SPDX-License-Identifier: GPL-2.0-or-later
#include "unit.h"

#include "base/random.h"
#include "model/invocations.h"

#include <errno.h>
#include <string.h>

#define ROWS_MAX 4096

struct written {
	size_t cnt;
	struct {
		uint64_t sid, seq, parent_seq, tid, begin_ts, end_ts, flags, sum_ns, running_ns, blocked_ns;
		bool no_parent, no_object, no_call_addr;
	} rows[ROWS_MAX];
	struct shard_row last;
};

static int take_row(void *owner, enum shard_table_id table, const struct shard_row *row)
{
	struct written *written = owner;

	CU_ASSERT_EQUAL(table, SHARD_TABLE_INVOCATION);
	if (written->cnt == ROWS_MAX)
		return -ENOSPC;
	written->rows[written->cnt].sid = row->values[INVOCATION_SID].u64;
	written->rows[written->cnt].seq = row->values[INVOCATION_SEQ].u64;
	written->rows[written->cnt].parent_seq = row->values[INVOCATION_PARENT_SEQ].u64;
	written->rows[written->cnt].tid = row->values[INVOCATION_TID].u64;
	written->rows[written->cnt].begin_ts = row->values[INVOCATION_BEGIN_TS].u64;
	written->rows[written->cnt].end_ts = row->values[INVOCATION_END_TS].u64;
	written->rows[written->cnt].flags = row->values[INVOCATION_FLAGS].u64;
	written->rows[written->cnt].running_ns = row->values[INVOCATION_RUNNING_NS].u64;
	written->rows[written->cnt].blocked_ns = row->values[INVOCATION_BLOCKED_NS].u64;
	written->rows[written->cnt].sum_ns =
		row->values[INVOCATION_RUNNING_NS].u64 + row->values[INVOCATION_RUNNABLE_NS].u64 +
		row->values[INVOCATION_BLOCKED_NS].u64 + row->values[INVOCATION_INTERRUPTED_NS].u64;
	written->rows[written->cnt].no_parent =
		shard_row__is_null(row, INVOCATION_PARENT_FUNC) && shard_row__is_null(row, INVOCATION_PARENT_SEQ);
	written->rows[written->cnt].no_object = shard_row__is_null(row, INVOCATION_OBJECT);
	written->rows[written->cnt].no_call_addr = shard_row__is_null(row, INVOCATION_CALL_ADDR);
	written->cnt++;
	written->last = *row;
	return 0;
}

static struct written written;

static struct invocations *start(uint64_t memory)
{
	struct invocations_opts opts = {.memory = memory, .append = take_row, .owner = &written};
	struct invocations *invocations = invocations__new(&opts);

	memset(&written, 0, sizeof(written));
	CU_ASSERT_PTR_NOT_NULL_FATAL(invocations);
	return invocations;
}

/* All of it blocked. */
static struct wl_invocation_record call_of(uint64_t sid, uint64_t seq, uint64_t begin_ts, uint64_t end_ts)
{
	return (struct wl_invocation_record){
		.sid = sid,
		.seq = seq,
		.parent_seq = WL_SEQ_NONE,
		.begin_ts = begin_ts,
		.end_ts = end_ts,
		.length_ns[WL_SPLIT_BLOCKED] = end_ts - begin_ts,
		.pid = 10,
		.tid = 11,
		.func = 3,
		.parent_func = WL_FUNC_NONE,
	};
}

static void take(struct invocations *invocations, struct wl_invocation_record call)
{
	CU_ASSERT_EQUAL(invocations__take(invocations, &call), 0);
}

static bool ends(struct invocations *invocations, uint64_t sid, uint64_t end_ts, bool keep)
{
	bool complete = false;

	CU_ASSERT_EQUAL(invocations__interval(invocations, sid, end_ts, keep, &complete), 0);
	return complete;
}

static void check_balance(const struct invocations *invocations)
{
	struct invocations_counts counts;

	invocations__counts(invocations, &counts);
	CU_ASSERT_EQUAL(counts.received, counts.written + counts.forgotten + counts.waiting);
	CU_ASSERT_EQUAL(counts.written, written.cnt);
}

static void test_kept_and_not(void)
{
	struct invocations *invocations = start(1 << 20);
	struct invocations_counts counts;

	take(invocations, call_of(1, 1, 100, 200));
	take(invocations, call_of(2, 2, 210, 260));
	take(invocations, call_of(1, 3, 300, 350));
	CU_ASSERT(ends(invocations, 1, 400, true));
	CU_ASSERT(ends(invocations, 2, 420, false));
	CU_ASSERT_EQUAL(written.cnt, 0);
	CU_ASSERT_EQUAL(invocations__advance(invocations, UINT64_MAX), 0);
	CU_ASSERT_EQUAL(written.cnt, 2);
	CU_ASSERT_EQUAL(written.rows[0].seq, 1);
	CU_ASSERT_EQUAL(written.rows[1].seq, 3);
	CU_ASSERT_EQUAL(written.rows[0].sum_ns, 100);
	CU_ASSERT(written.rows[0].no_parent && written.rows[0].no_object && written.rows[0].no_call_addr);
	take(invocations, call_of(3, 4, 500, 600)); /* its interval never ends */
	CU_ASSERT_EQUAL(invocations__finish(invocations), 0);
	invocations__counts(invocations, &counts);
	CU_ASSERT_EQUAL(counts.forgotten, 2);
	CU_ASSERT_EQUAL(counts.waiting, 0);
	CU_ASSERT_EQUAL(counts.missing, 0);
	check_balance(invocations);
	invocations__free(invocations);
}

/* By thread, children before parents, whatever ring they came out of. */
static void test_order(void)
{
	struct invocations *invocations = start(1 << 20);
	struct wl_invocation_record other = call_of(1, 1, 50, 70);

	take(invocations, call_of(1, 1, 100, 400)); /* parent */
	take(invocations, call_of(1, 4, 350, 400)); /* ends with it */
	take(invocations, call_of(1, 2, 110, 190));
	other.tid = 5;
	take(invocations, other);
	ends(invocations, 1, 400, true);
	CU_ASSERT_EQUAL(invocations__advance(invocations, 399), 0); /* more may be in the ring of another CPU */
	CU_ASSERT_EQUAL(written.cnt, 0);
	take(invocations, call_of(1, 3, 200, 300)); /* after the interval's own record */
	CU_ASSERT_EQUAL(invocations__advance(invocations, 400), 0);
	CU_ASSERT_EQUAL_FATAL(written.cnt, 5);
	CU_ASSERT_EQUAL(written.rows[0].tid, 5);
	CU_ASSERT_EQUAL(written.rows[1].seq, 2);
	CU_ASSERT_EQUAL(written.rows[2].seq, 3);
	CU_ASSERT_EQUAL(written.rows[3].seq, 4);
	CU_ASSERT_EQUAL(written.rows[4].seq, 1);
	check_balance(invocations);
	invocations__free(invocations);
}

/* On another thread it goes on, and begins, after the interval has ended. */
static void test_late(void)
{
	struct invocations *invocations = start(1 << 20);
	struct invocations_counts counts;

	ends(invocations, 1, 400, true);
	ends(invocations, 2, 400, false);
	CU_ASSERT_EQUAL(invocations__advance(invocations, UINT64_MAX), 0);
	take(invocations, call_of(1, 1, 300, 900));
	take(invocations, call_of(1, 2, 400, 500));
	take(invocations, call_of(2, 3, 300, 500));
	CU_ASSERT_EQUAL(invocations__advance(invocations, UINT64_MAX), 0);
	CU_ASSERT_EQUAL_FATAL(written.cnt, 1);
	CU_ASSERT_EQUAL(written.rows[0].seq, 1);
	CU_ASSERT_EQUAL(written.rows[0].end_ts, 900);
	CU_ASSERT(written.rows[0].flags & WL_INVOCATION_OUTLIVED);
	invocations__counts(invocations, &counts);
	CU_ASSERT_EQUAL(counts.forgotten, 2);
	CU_ASSERT_EQUAL(counts.impossible, 1);
	check_balance(invocations);
	invocations__free(invocations);
}

/* What does not add up is made to, and says so. */
static void test_torn(void)
{
	struct invocations *invocations = start(1 << 20);
	struct wl_invocation_record call = call_of(1, 1, 100, 200);

	call.length_ns[WL_SPLIT_BLOCKED] = 60;
	take(invocations, call);
	call.seq = 2;
	call.length_ns[WL_SPLIT_BLOCKED] = 5000;
	take(invocations, call);
	call = call_of(1, 3, 300, 250);
	take(invocations, call);
	ends(invocations, 1, 1000, true);
	CU_ASSERT_EQUAL(invocations__finish(invocations), 0);
	CU_ASSERT_EQUAL_FATAL(written.cnt, 2);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(written.rows[i].sum_ns, 100);
		CU_ASSERT(written.rows[i].flags & WL_INVOCATION_TORN);
	}
	CU_ASSERT_EQUAL(written.rows[0].blocked_ns, 100);
	CU_ASSERT_EQUAL(written.rows[1].running_ns, 40);
	check_balance(invocations);
	invocations__free(invocations);
}

/* What it was blocked for is told, and all of it together. */
static void test_split(void)
{
	struct invocations *invocations = start(1 << 20);
	struct wl_invocation_record call = call_of(1, 1, 100, 200);
	const struct shard_row *row = &written.last;

	call.length_ns[WL_SPLIT_LOCK] = 10;
	call.length_ns[WL_SPLIT_DISK] = 11;
	call.length_ns[WL_SPLIT_NET] = 12;
	call.length_ns[WL_SPLIT_SLEEP] = 13;
	call.length_ns[WL_SPLIT_FAULT] = 14;
	call.length_ns[WL_SPLIT_OTHER] = 15;
	call.length_ns[WL_SPLIT_INTERRUPTED] = 5;
	call.length_ns[WL_SPLIT_RUNNABLE] = 6;
	call.length_ns[WL_SPLIT_RUNNING] = 14;
	take(invocations, call);
	ends(invocations, 1, 1000, true);
	CU_ASSERT_EQUAL(invocations__finish(invocations), 0);
	CU_ASSERT_EQUAL_FATAL(written.cnt, 1);
	CU_ASSERT_EQUAL(written.rows[0].flags, 0);
	CU_ASSERT_EQUAL(written.rows[0].sum_ns, 100);
	CU_ASSERT_EQUAL(written.rows[0].blocked_ns, 10 + 11 + 12 + 13 + 14 + 15);
	CU_ASSERT(row->values[INVOCATION_LOCK_NS].u64 == 10 && row->values[INVOCATION_DISK_NS].u64 == 11);
	CU_ASSERT(row->values[INVOCATION_NET_NS].u64 == 12 && row->values[INVOCATION_SLEEP_NS].u64 == 13);
	CU_ASSERT(row->values[INVOCATION_FAULT_NS].u64 == 14 && !shard_row__is_null(row, INVOCATION_FAULT_NS));
	invocations__free(invocations);
}

/* Whole intervals go, the oldest first, and theirs say so. */
static void test_memory(void)
{
	const uint64_t memory = 64 << 10;
	struct invocations *invocations = start(memory);
	struct invocations_counts counts;
	uint64_t seq = 0;

	for (uint64_t sid = 1; sid <= 100; sid++) {
		for (int i = 0; i < 10; i++, seq++)
			take(invocations, call_of(sid, seq, 10 * seq, 10 * seq + 5));
		CU_ASSERT(invocations__bytes(invocations) < memory + (1 << 20));
	}
	CU_ASSERT(!ends(invocations, 1, 100000, true));
	CU_ASSERT(ends(invocations, 2, 100000, false));
	CU_ASSERT(ends(invocations, 100, 100000, true));
	take(invocations, call_of(3, 5000, 1, 2)); /* of what is forgotten already */
	CU_ASSERT(!ends(invocations, 3, 100000, true));
	CU_ASSERT_EQUAL(invocations__finish(invocations), 0);
	CU_ASSERT_EQUAL(written.cnt, 10);
	invocations__counts(invocations, &counts);
	CU_ASSERT_EQUAL(counts.received, 1001);
	CU_ASSERT_EQUAL(counts.missing, 21);
	check_balance(invocations);
	invocations__free(invocations);
}

/* In whatever order, and with however little memory: received = written + forgotten, and every row sums. */
static void test_property(void)
{
	uint64_t random_state = 42;

	for (int round = 0; round < 50; round++) {
		struct invocations *invocations = start(round % 2 ? 1 << 20 : 20 << 10);
		size_t rows = 0;

		for (uint64_t seq = 1; seq <= 2000; seq++) {
			uint64_t sid = random_next(&random_state) % 64, begin_ts = random_next(&random_state) % 10000;
			struct wl_invocation_record call =
				call_of(sid, seq, begin_ts, begin_ts + random_next(&random_state) % 1000);

			take(invocations, call);
			if (random_next(&random_state) % 16 == 0)
				ends(invocations, sid, 10500, random_next(&random_state) % 2);
			if (random_next(&random_state) % 64 == 0)
				CU_ASSERT_EQUAL(invocations__advance(invocations, random_next(&random_state) % 21000),
						0);
			check_balance(invocations);
		}
		CU_ASSERT_EQUAL(invocations__finish(invocations), 0);
		check_balance(invocations);
		for (; rows < written.cnt; rows++)
			CU_ASSERT_EQUAL(written.rows[rows].sum_ns,
					written.rows[rows].end_ts - written.rows[rows].begin_ts);
		invocations__free(invocations);
	}
}

int suite_invocations(void)
{
	static const struct unit_test tests[] = {
		{"kept with their interval, or not", test_kept_and_not},
		{"by thread, children before parents", test_order},
		{"those that come late", test_late},
		{"those that do not add up", test_torn},
		{"what a call was blocked for", test_split},
		{"bounded memory", test_memory},
		{"received = written + forgotten", test_property},
	};

	return unit_suite("invocations", tests, sizeof(tests) / sizeof(tests[0]));
}
