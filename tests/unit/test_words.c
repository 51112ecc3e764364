// SPDX-License-Identifier: GPL-2.0-or-later
/* Words of trace mode become the records that they stand for, and nothing that is not one becomes any. */
#include "unit.h"

#include "model/words.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define WORDS 64
#define MASK  (WORDS - 1)

union any_record {
	struct wl_record_header header;
	struct wl_segment_record segment;
	struct wl_wakeup_record wakeup;
	struct wl_brief_record brief;
	uint64_t room[(sizeof(struct wl_brief_record) + WL_FIRST_MAX) / sizeof(uint64_t)];
};

struct seen {
	union any_record records[32];
	size_t cnt;
	int answer; /* of the handler */
};

struct written {
	uint64_t words[WORDS];
	uint64_t head;
};

static void put(struct written *written, uint64_t word)
{
	written->words[written->head++ & MASK] = word;
}

static int see(void *owner, const struct wl_record_header *header)
{
	struct seen *seen = owner;

	if (seen->cnt == 32 || header->sz > sizeof(seen->records[0]))
		return -ENOSPC;
	memcpy(&seen->records[seen->cnt++], header, header->sz);
	return seen->answer;
}

static int read_words(const struct written *written, struct words_reader *reader, uint64_t from, struct seen *seen)
{
	uint64_t handled = 0;
	int err = words_reader__read(reader, written->words, MASK, from, written->head, see, seen, &handled);

	if (!err)
		CU_ASSERT_EQUAL(handled, seen->cnt);
	return err;
}

/* Around a request: its thread runs, waits for a descriptor, is woken, waits for a CPU, faults. */
static void write_request(struct written *written)
{
	put(written, WL_TIME_WORD(1000));
	put(written, WL_THREAD_WORD(7, 4194303, false));
	put(written, WL_SID_WORD((1ULL << 47) + 5));
	put(written, WL_TYPE_WORD(0xffff0001U));
	put(written, WL_SEGMENT_WORD(WL_STATE_RUNNING, 0, 0, 40));
	put(written, WL_SEGMENT_WORD(WL_STATE_BLOCKED_POLL, WL_SEGMENT_SUSPECT, 2, 60));
	put(written, 0xdeadbeefcafeULL);
	put(written, 232ULL << 32 | 99);
	put(written, WL_WAKEUP_WORD(WL_CONTEXT_TASK, WL_FILE_PIPE, WL_STATE_BLOCKED_POLL, true, true, 1 + 1));
	put(written, 11ULL << 32 | 12);
	put(written, 1234);
	put(written, 5678);
	put(written, WL_SEGMENT_WORD(WL_STATE_RUNQ_WAKEUP, 0, 2, 30));
	put(written, 25);
	put(written, 21ULL << 32 | 22);
	put(written, WL_SID_WORD(0));
	put(written, WL_SEGMENT_WORD(WL_STATE_FAULT_PENDING, WL_SEGMENT_OFF_CPU, 1, 5));
	put(written, ~0ULL);
	put(written, WL_THREAD_WORD(8, 9, true));
	put(written, WL_TIME_WORD((1ULL << 59) + 1));
	put(written, WL_WAKEUP_WORD(WL_CONTEXT_SOFTIRQ, WL_FILE_NONE, WL_STATE_BLOCKED_FUTEX, false, false, 0));
	put(written, 0);
}

static void words_become_the_records_they_stand_for(void)
{
	struct written written = {.head = WORDS - 3};
	struct words_reader reader = {.cpu = 3};
	struct seen seen = {0};
	const struct wl_segment_record *segment;
	const struct wl_wakeup_record *wakeup;

	write_request(&written);
	CU_ASSERT_EQUAL(read_words(&written, &reader, WORDS - 3, &seen), 0);
	CU_ASSERT_EQUAL_FATAL(seen.cnt, 6);

	segment = &seen.records[0].segment;
	CU_ASSERT_EQUAL(segment->header.kind, WL_RECORD_SEGMENT);
	CU_ASSERT_EQUAL(segment->header.sz, sizeof(*segment));
	CU_ASSERT_EQUAL(segment->header.cpu, 3);
	CU_ASSERT_EQUAL(segment->begin_ts, 1000);
	CU_ASSERT_EQUAL(segment->end_ts, 1040);
	CU_ASSERT_EQUAL(segment->sid, (1ULL << 47) + 5);
	CU_ASSERT_EQUAL(segment->type, 0xffff0001U);
	CU_ASSERT_EQUAL(segment->pid, 7);
	CU_ASSERT_EQUAL(segment->tid, 4194303);
	CU_ASSERT_EQUAL(segment->state, WL_STATE_RUNNING);
	CU_ASSERT_EQUAL(segment->sysno, UINT32_MAX);
	CU_ASSERT(!segment->flags && !segment->object && !segment->other_tid && !segment->other_ns);

	segment = &seen.records[1].segment;
	CU_ASSERT_EQUAL(segment->begin_ts, 1040);
	CU_ASSERT_EQUAL(segment->end_ts, 1100);
	CU_ASSERT_EQUAL(segment->flags, WL_SEGMENT_SUSPECT);
	CU_ASSERT_EQUAL(segment->object, 0xdeadbeefcafeULL);
	CU_ASSERT_EQUAL(segment->sysno, 232);
	CU_ASSERT_EQUAL(segment->other_tid, 99);
	CU_ASSERT_EQUAL(segment->other_pid, 0);

	wakeup = &seen.records[2].wakeup;
	CU_ASSERT_EQUAL(wakeup->header.kind, WL_RECORD_WAKEUP);
	CU_ASSERT_EQUAL(wakeup->header.sz, sizeof(*wakeup));
	CU_ASSERT_EQUAL(wakeup->ts, 1100);
	CU_ASSERT_EQUAL(wakeup->tid, 4194303);
	CU_ASSERT_EQUAL(wakeup->waker_pid, 11);
	CU_ASSERT_EQUAL(wakeup->waker_tid, 12);
	CU_ASSERT_EQUAL(wakeup->arrived_sid, 1234);
	CU_ASSERT_EQUAL(wakeup->io_ts, 5678);
	CU_ASSERT_EQUAL(wakeup->context, WL_CONTEXT_TASK);
	CU_ASSERT_EQUAL(wakeup->waker_sysno, 1);
	CU_ASSERT_EQUAL(wakeup->waker_file, WL_FILE_PIPE);
	CU_ASSERT_EQUAL(wakeup->state, WL_STATE_BLOCKED_POLL);

	segment = &seen.records[3].segment;
	CU_ASSERT_EQUAL(segment->begin_ts, 1100);
	CU_ASSERT_EQUAL(segment->other_ns, 25);
	CU_ASSERT_EQUAL(segment->other_pid, 21);
	CU_ASSERT_EQUAL(segment->other_tid, 22);
	CU_ASSERT_EQUAL(segment->sysno, UINT32_MAX);
	CU_ASSERT_EQUAL(segment->object, 0);

	segment = &seen.records[4].segment;
	CU_ASSERT_EQUAL(segment->state, WL_STATE_FAULT_PENDING);
	CU_ASSERT_EQUAL(segment->flags, WL_SEGMENT_OFF_CPU);
	CU_ASSERT_EQUAL(segment->object, ~0ULL);
	CU_ASSERT_EQUAL(segment->end_ts, 1135);
	CU_ASSERT(!segment->sid && !segment->type);

	wakeup = &seen.records[5].wakeup;
	CU_ASSERT_EQUAL(wakeup->ts, (1ULL << 59) + 1);
	CU_ASSERT_EQUAL(wakeup->pid, 8);
	CU_ASSERT_EQUAL(wakeup->tid, 9);
	CU_ASSERT_EQUAL(wakeup->waker_sysno, UINT32_MAX);
	CU_ASSERT(!wakeup->waker_pid && !wakeup->arrived_sid && !wakeup->io_ts);
}

/* In front of it, whatever is said of time and thread in between; the next one has none. */
static void a_brief_interval_has_first_bytes(void)
{
	struct words_reader reader = {0};
	struct written written = {0};
	struct seen seen = {0};
	const struct wl_brief_record *brief;
	uint64_t bytes;

	memcpy(&bytes, "GET /abc", sizeof(bytes));
	put(&written, WL_FIRST_WORD(11, 4000));
	put(&written, 77);
	put(&written, bytes);
	put(&written, 0x636261); /* "abc", the lowest byte first */
	put(&written, WL_THREAD_WORD(7, 8, false));
	for (int i = 0; i < 2; i++) {
		put(&written, WL_BRIEF_WORD(0, 500));
		for (int j = 0; j < 4; j++)
			put(&written, 1);
	}
	CU_ASSERT_EQUAL(read_words(&written, &reader, 0, &seen), 0);
	CU_ASSERT_EQUAL_FATAL(seen.cnt, 2);
	brief = &seen.records[0].brief;
	CU_ASSERT_EQUAL(brief->header.sz, sizeof(*brief) + 11);
	CU_ASSERT_EQUAL(brief->conn, 77);
	CU_ASSERT_EQUAL(brief->first_len, 11);
	CU_ASSERT_EQUAL(brief->first_total, 4000);
	CU_ASSERT(!memcmp(brief->first, "GET /abcabc", 11));
	brief = &seen.records[1].brief;
	CU_ASSERT(!brief->first_len && !brief->first_total && !brief->conn);
	for (written.head = 1; written.head < 4; written.head++) {
		memset(&reader, 0, sizeof(reader));
		CU_ASSERT_EQUAL(read_words(&written, &reader, 0, &seen), -EBADMSG);
	}
	written.words[0] = WL_FIRST_WORD(WL_FIRST_MAX + 1, 4000);
	written.head = WORDS;
	CU_ASSERT_EQUAL(read_words(&written, &reader, 0, &seen), -EBADMSG);
}

/* Its number is above those of threads, of which one has the same lower bits. */
static void a_goroutine_is_told_from_a_thread(void)
{
	const uint32_t tids[] = {5, WL_GOROUTINE_TID | 5, WL_GOROUTINE_TID | (WL_GOROUTINE_TID - 1), 6};
	struct written written = {0};
	struct words_reader reader = {0};
	struct seen seen = {0};

	for (int i = 0; i < 4; i++) {
		put(&written, WL_THREAD_WORD(4194303, tids[i], false));
		put(&written, WL_SEGMENT_WORD(WL_STATE_RUNNING, 0, 0, 40));
	}
	CU_ASSERT_EQUAL(read_words(&written, &reader, 0, &seen), 0);
	CU_ASSERT_EQUAL_FATAL(seen.cnt, 4);
	for (int i = 0; i < 4; i++) {
		CU_ASSERT_EQUAL(seen.records[i].segment.tid, tids[i]);
		CU_ASSERT_EQUAL(seen.records[i].segment.pid, 4194303);
		CU_ASSERT_EQUAL(seen.records[i].segment.flags, 0);
	}
}

static void an_interval_may_be_brief(void)
{
	struct words_reader reader = {0};
	struct written written = {0};
	struct seen seen = {0};
	const struct wl_brief_record *brief;

	put(&written, WL_TIME_WORD(10000));
	put(&written, WL_THREAD_WORD(7, 8, false));
	put(&written, WL_BRIEF_WORD(WL_INTERVAL_MOVED | WL_INTERVAL_NO_ARRIVAL, 500));
	put(&written, ~0ULL);
	put(&written, 0x20001ULL << 32 | 77);
	put(&written, 300ULL << 32 | 2000);
	put(&written, 7ULL << 32 | 9);
	put(&written, WL_SEGMENT_WORD(WL_STATE_RUNNING, 0, 0, 1));
	CU_ASSERT_EQUAL(read_words(&written, &reader, 0, &seen), 0);
	CU_ASSERT_EQUAL_FATAL(seen.cnt, 2);
	brief = &seen.records[0].brief;
	CU_ASSERT_EQUAL(brief->header.kind, WL_RECORD_BRIEF);
	CU_ASSERT_EQUAL(brief->header.sz, sizeof(*brief));
	CU_ASSERT_EQUAL(brief->sid, ~0ULL);
	CU_ASSERT_EQUAL(brief->end_ts, 10500);
	CU_ASSERT_EQUAL(brief->pickup_ts, 8500);
	CU_ASSERT_EQUAL(brief->begin_ts, 8200);
	CU_ASSERT_EQUAL(brief->pid, 7);
	CU_ASSERT_EQUAL(brief->tid, 9);
	CU_ASSERT_EQUAL(brief->end_tid, 8);
	CU_ASSERT_EQUAL(brief->type, 0x20001);
	CU_ASSERT_EQUAL(brief->rate, 77);
	CU_ASSERT_EQUAL(brief->flags, WL_INTERVAL_MOVED | WL_INTERVAL_NO_ARRIVAL);
	/* It has not moved the time on. */
	CU_ASSERT_EQUAL(seen.records[1].segment.begin_ts, 10000);
	for (written.head = 3; written.head < 7; written.head++) {
		memset(&reader, 0, sizeof(reader));
		CU_ASSERT_EQUAL(read_words(&written, &reader, 0, &seen), -EBADMSG);
	}
}

/* What holds for the next word goes on from one reading to the next. */
static void reading_goes_on_where_it_stopped(void)
{
	struct words_reader reader = {0};
	struct written written = {0};
	struct seen seen = {0};

	write_request(&written);
	CU_ASSERT_EQUAL(read_words(&written, &reader, 0, &seen), 0);
	seen.cnt = 0;
	put(&written, WL_SEGMENT_WORD(WL_STATE_RUNNING, 0, 0, 9));
	CU_ASSERT_EQUAL(read_words(&written, &reader, written.head - 1, &seen), 0);
	CU_ASSERT_EQUAL_FATAL(seen.cnt, 1);
	CU_ASSERT_EQUAL(seen.records[0].segment.begin_ts, (1ULL << 59) + 1);
	CU_ASSERT_EQUAL(seen.records[0].segment.tid, 9);
	CU_ASSERT_EQUAL(seen.records[0].segment.flags, WL_SEGMENT_OUTSIDE);
}

/* Cut off anywhere, only whole records come out, and what is cut is said. */
static void a_record_cut_short_is_refused(void)
{
	static const struct {
		uint64_t end;
		int err;
	} cuts[] = {
		{0, 0},        {4, 0},         {5, 0},         {6, -EBADMSG}, {7, -EBADMSG},  {8, 0},
		{9, -EBADMSG}, {10, -EBADMSG}, {11, -EBADMSG}, {12, 0},       {13, -EBADMSG}, {14, -EBADMSG},
		{15, 0},       {16, 0},        {17, -EBADMSG}, {18, 0},
	};

	for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
		struct words_reader reader = {0};
		struct written written = {0};
		struct seen seen = {0};

		write_request(&written);
		written.head = cuts[i].end;
		CU_ASSERT_EQUAL(read_words(&written, &reader, 0, &seen), cuts[i].err);
	}
}

static void what_is_no_word_is_refused(void)
{
	static const uint64_t bad[] = {
		0,
		9,
		15,
		WL_SEGMENT_WORD(WL_STATE_FAULT_PENDING + 1, 0, 0, 1),
		WL_SEGMENT_WORD(WL_STATE_RUNNING, 0, 3, 1),
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct words_reader reader = {0};
		struct written written = {0};
		struct seen seen = {0};

		put(&written, bad[i]);
		for (int more = 0; more < 3; more++)
			put(&written, WL_TIME_WORD(1));
		CU_ASSERT_EQUAL(read_words(&written, &reader, 0, &seen), -EBADMSG);
		CU_ASSERT_EQUAL(seen.cnt, 0);
	}
}

static void a_head_beyond_the_ring_is_refused(void)
{
	struct words_reader reader = {0};
	struct written written = {.head = WORDS + 1};
	struct seen seen = {0};

	CU_ASSERT_EQUAL(read_words(&written, &reader, 0, &seen), -EBADMSG);
	written.head = 5;
	CU_ASSERT_EQUAL(read_words(&written, &reader, 6, &seen), -EBADMSG);
}

static void the_handlers_answer_ends_the_reading(void)
{
	struct words_reader reader = {0};
	struct written written = {0};
	struct seen seen = {.answer = -EIO};

	write_request(&written);
	CU_ASSERT_EQUAL(read_words(&written, &reader, 0, &seen), -EIO);
	CU_ASSERT_EQUAL(seen.cnt, 1);
}

static const struct unit_test tests[] = {
	{"words become the records they stand for", words_become_the_records_they_stand_for},
	{"a goroutine is told from a thread", a_goroutine_is_told_from_a_thread},
	{"an interval may be brief", an_interval_may_be_brief},
	{"a brief interval has first bytes", a_brief_interval_has_first_bytes},
	{"reading goes on where it stopped", reading_goes_on_where_it_stopped},
	{"a record cut short is refused", a_record_cut_short_is_refused},
	{"what is no word is refused", what_is_no_word_is_refused},
	{"a head beyond the ring is refused", a_head_beyond_the_ring_is_refused},
	{"the handler's answer ends the reading", the_handlers_answer_ends_the_reading},
};

int suite_words(void)
{
	return unit_suite("words", tests, sizeof(tests) / sizeof(tests[0]));
}
