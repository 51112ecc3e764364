// SPDX-License-Identifier: GPL-2.0-or-later
/* Records come out of a ring as they were written into it, whatever its end cuts, and no lie of it is followed. */
#include "unit.h"

#include "model/ring.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <string.h>

#define RING_SZ   128
#define BEYOND_SZ 64

struct shared {
	union {
		char bytes[RING_SZ + BEYOND_SZ];
		uint64_t aligned;
	};
	unsigned long consumer, producer;
	struct ring ring;
};

struct seen {
	size_t sizes[32];
	char firsts[32];
	size_t cnt;
	int answer; /* of the handler */
};

static void begin(struct shared *shared)
{
	memset(shared, 0, sizeof(*shared));
	shared->ring = (struct ring){.consumer = &shared->consumer,
				     .producer = &shared->producer,
				     .bytes = shared->bytes,
				     .sz = RING_SZ,
				     .beyond = BEYOND_SZ};
}

/* A byte of the ring is the same wherever it is mapped. */
static void set(struct shared *shared, unsigned long at, char byte)
{
	size_t off = at % RING_SZ;

	shared->bytes[off] = byte;
	if (off < BEYOND_SZ)
		shared->bytes[RING_SZ + off] = byte;
}

static void set_len(struct shared *shared, unsigned long at, uint32_t len)
{
	char bytes[sizeof(len)];

	memcpy(bytes, &len, sizeof(len));
	for (size_t i = 0; i < sizeof(len); i++)
		set(shared, at + i, bytes[i]);
}

/* A record of sz equal bytes, as the kernel reserves it; where its header is. */
static unsigned long put(struct shared *shared, char byte, uint32_t sz, uint32_t flags)
{
	unsigned long at = shared->producer;

	set_len(shared, at, sz | flags);
	for (uint32_t i = 0; i < sz; i++)
		set(shared, at + BPF_RINGBUF_HDR_SZ + i, byte);
	shared->producer += (BPF_RINGBUF_HDR_SZ + sz + 7) / 8 * 8;
	return at;
}

static int see(void *owner, const void *record, size_t sz)
{
	struct seen *seen = owner;
	const char *bytes = record;

	CU_ASSERT_FATAL(seen->cnt < 32);
	for (size_t i = 1; i < sz; i++)
		CU_ASSERT_EQUAL(bytes[i], bytes[0]);
	seen->firsts[seen->cnt] = sz ? bytes[0] : '-';
	seen->sizes[seen->cnt++] = sz;
	return seen->answer;
}

static void records_come_in_order_and_make_room(void)
{
	struct shared shared;
	struct seen seen = {0};

	begin(&shared);
	CU_ASSERT_EQUAL(ring__read(&shared.ring, see, &seen), 0);
	put(&shared, 'a', 16, 0);
	put(&shared, 'b', 3, 0);
	put(&shared, '-', 0, 0);
	CU_ASSERT_EQUAL(ring__read(&shared.ring, see, &seen), 0);
	CU_ASSERT_STRING_EQUAL(seen.firsts, "ab-");
	CU_ASSERT_EQUAL(seen.sizes[0], 16);
	CU_ASSERT_EQUAL(seen.sizes[1], 3);
	CU_ASSERT_EQUAL(shared.consumer, shared.producer);
	CU_ASSERT_EQUAL(ring__read(&shared.ring, see, &seen), 0);
	CU_ASSERT_EQUAL(seen.cnt, 3);
}

static void a_record_across_the_end_is_in_one_piece(void)
{
	/* Every place where a record can begin, several times round, and positions that overflow. */
	for (unsigned long first = 0; first < 2; first++) {
		struct shared shared;

		begin(&shared);
		shared.consumer = shared.producer = first ? 0UL - 2 * RING_SZ : 0;
		for (uint32_t i = 0; i < 200; i++) {
			struct seen seen = {0};

			put(&shared, 'a' + i % 26, 1 + i % 56, 0);
			CU_ASSERT_EQUAL(ring__read(&shared.ring, see, &seen), 0);
			CU_ASSERT_EQUAL_FATAL(seen.cnt, 1);
			CU_ASSERT_EQUAL(seen.firsts[0], 'a' + (char)(i % 26));
			CU_ASSERT_EQUAL(seen.sizes[0], 1 + i % 56);
		}
		CU_ASSERT_EQUAL(shared.consumer, shared.producer);
	}
}

static void what_is_being_written_is_waited_for(void)
{
	struct shared shared;
	struct seen seen = {0};
	unsigned long at;

	begin(&shared);
	put(&shared, 'a', 8, 0);
	at = put(&shared, 'b', 8, BPF_RINGBUF_BUSY_BIT);
	put(&shared, 'c', 8, 0);
	CU_ASSERT_EQUAL(ring__read(&shared.ring, see, &seen), 0);
	CU_ASSERT_STRING_EQUAL(seen.firsts, "a");
	CU_ASSERT_EQUAL(shared.consumer, at);
	set_len(&shared, at, 8);
	CU_ASSERT_EQUAL(ring__read(&shared.ring, see, &seen), 0);
	CU_ASSERT_STRING_EQUAL(seen.firsts, "abc");
}

struct feeder {
	struct shared *shared;
	size_t cnt;
};

static int feed(void *owner, const void *record, size_t sz)
{
	struct feeder *feeder = owner;

	(void)record;
	CU_ASSERT_FATAL(feeder->cnt < 32);
	feeder->cnt++;
	put(feeder->shared, 'm', (uint32_t)sz, 0);
	return 0;
}

static void records_written_meanwhile_are_left_to_the_next_call(void)
{
	struct shared shared;
	struct feeder feeder = {.shared = &shared};

	begin(&shared);
	put(&shared, 'a', 8, 0);
	put(&shared, 'b', 8, 0);
	CU_ASSERT_EQUAL(ring__read(&shared.ring, feed, &feeder), 0);
	CU_ASSERT_EQUAL(feeder.cnt, 2);
	CU_ASSERT_EQUAL(ring__read(&shared.ring, feed, &feeder), 0);
	CU_ASSERT_EQUAL(feeder.cnt, 4);
}

static void what_was_given_up_is_passed_over(void)
{
	struct shared shared;
	struct seen seen = {0};

	begin(&shared);
	put(&shared, 'a', 8, BPF_RINGBUF_DISCARD_BIT);
	put(&shared, 'b', 8, 0);
	put(&shared, 'c', 24, BPF_RINGBUF_DISCARD_BIT);
	CU_ASSERT_EQUAL(ring__read(&shared.ring, see, &seen), 0);
	CU_ASSERT_STRING_EQUAL(seen.firsts, "b");
	CU_ASSERT_EQUAL(shared.consumer, shared.producer);
}

static void an_error_ends_it_behind_its_record(void)
{
	struct shared shared;
	struct seen seen = {.answer = -ENOMEM};

	begin(&shared);
	put(&shared, 'a', 8, 0);
	put(&shared, 'b', 8, 0);
	CU_ASSERT_EQUAL(ring__read(&shared.ring, see, &seen), -ENOMEM);
	CU_ASSERT_STRING_EQUAL(seen.firsts, "a");
	seen.answer = 0;
	CU_ASSERT_EQUAL(ring__read(&shared.ring, see, &seen), 0);
	CU_ASSERT_STRING_EQUAL(seen.firsts, "ab");
}

static void lies_are_not_followed(void)
{
	struct shared shared;
	struct seen seen = {0};

	/* Longer than what was written. */
	begin(&shared);
	set_len(&shared, put(&shared, 'a', 8, 0), 9);
	CU_ASSERT_EQUAL(ring__read(&shared.ring, see, &seen), -EBADMSG);
	begin(&shared);
	set_len(&shared, put(&shared, 'a', 8, 0), ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT));
	CU_ASSERT_EQUAL(ring__read(&shared.ring, see, &seen), -EBADMSG);
	/* More than there is room for. */
	begin(&shared);
	put(&shared, 'a', 8, 0);
	shared.producer = RING_SZ + 8;
	CU_ASSERT_EQUAL(ring__read(&shared.ring, see, &seen), -EBADMSG);
	/* Behind what was read. */
	begin(&shared);
	put(&shared, 'a', 8, 0);
	shared.consumer = 2 * RING_SZ;
	CU_ASSERT_EQUAL(ring__read(&shared.ring, see, &seen), -EBADMSG);
	/* A record that goes on behind what lies in one piece. */
	begin(&shared);
	shared.consumer = shared.producer = RING_SZ - 8;
	set_len(&shared, RING_SZ - 8, BEYOND_SZ + 1);
	shared.producer += RING_SZ;
	CU_ASSERT_EQUAL(ring__read(&shared.ring, see, &seen), -EBADMSG);
	CU_ASSERT_EQUAL(seen.cnt, 0);
}

static const struct unit_test tests[] = {
	{"records come in order and make room", records_come_in_order_and_make_room},
	{"a record across the end is in one piece", a_record_across_the_end_is_in_one_piece},
	{"what is being written is waited for", what_is_being_written_is_waited_for},
	{"records written meanwhile are left to the next call", records_written_meanwhile_are_left_to_the_next_call},
	{"what was given up is passed over", what_was_given_up_is_passed_over},
	{"an error ends it behind its record", an_error_ends_it_behind_its_record},
	{"lies are not followed", lies_are_not_followed},
};

int suite_ring(void)
{
	return unit_suite("ring", tests, sizeof(tests) / sizeof(tests[0]));
}
