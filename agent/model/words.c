// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/words.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* Where the reading is. */
struct cursor {
	const uint64_t *words;
	uint64_t mask, at, to;
};

static bool next(struct cursor *cursor, uint64_t *word)
{
	if (cursor->at == cursor->to)
		return false;
	*word = cursor->words[cursor->at++ & cursor->mask];
	return true;
}

static struct wl_record_header header_of(const struct words_reader *reader, enum wl_record_kind kind, size_t sz)
{
	return (struct wl_record_header){.kind = kind, .sz = (uint16_t)sz, .cpu = reader->cpu};
}

static int read_segment(struct words_reader *reader, uint64_t word, struct cursor *cursor, words_handler handle,
			void *owner)
{
	uint64_t length_ns = WL_WORD_FIELD(word, 16, WL_WORD_LENGTH_BITS), more = WL_WORD_FIELD(word, 11, 2);
	struct wl_segment_record record = {
		.header = header_of(reader, WL_RECORD_SEGMENT, sizeof(record)),
		.begin_ts = reader->ts,
		.end_ts = reader->ts + length_ns,
		.sid = reader->sid,
		.pid = reader->pid,
		.tid = reader->tid,
		.state = (uint32_t)WL_WORD_FIELD(word, 4, 5),
		.flags = (uint32_t)WL_WORD_FIELD(word, 9, 2) | (reader->outside ? WL_SEGMENT_OUTSIDE : 0),
		.sysno = UINT32_MAX,
		.type = reader->sid ? reader->type : 0,
	};
	bool runnable = record.state == WL_STATE_RUNQ_WAKEUP || record.state == WL_STATE_RUNQ_PREEMPT;
	uint64_t first = 0, second = 0;

	if (record.state > WL_STATE_FAULT_PENDING || more > 2 || (more > 0 && !next(cursor, &first)) ||
	    (more > 1 && !next(cursor, &second)))
		return -EBADMSG;
	if (more == 2 && runnable) {
		record.other_ns = first;
		record.other_pid = (uint32_t)(second >> 32);
	} else {
		record.object = first;
	}
	if (more == 2 && !runnable)
		record.sysno = (uint32_t)(second >> 32);
	record.other_tid = (uint32_t)second;
	reader->ts = record.end_ts;
	return handle(owner, &record.header);
}

static int read_wakeup(const struct words_reader *reader, uint64_t word, struct cursor *cursor, words_handler handle,
		       void *owner)
{
	struct wl_wakeup_record record = {
		.header = header_of(reader, WL_RECORD_WAKEUP, sizeof(record)),
		.ts = reader->ts,
		.pid = reader->pid,
		.tid = reader->tid,
		.context = (uint32_t)WL_WORD_FIELD(word, 4, 4),
		.waker_file = (uint32_t)WL_WORD_FIELD(word, 8, 4),
		.state = (uint32_t)WL_WORD_FIELD(word, 12, 5),
		.waker_sysno = (uint32_t)WL_WORD_FIELD(word, 24, 16) - 1,
	};
	uint64_t waker, arrived_sid = 0, io_ts = 0;

	if (!next(cursor, &waker) || (WL_WORD_FIELD(word, 17, 1) && !next(cursor, &arrived_sid)) ||
	    (WL_WORD_FIELD(word, 18, 1) && !next(cursor, &io_ts)))
		return -EBADMSG;
	record.waker_pid = (uint32_t)(waker >> 32);
	record.waker_tid = (uint32_t)waker;
	record.arrived_sid = arrived_sid;
	record.io_ts = io_ts;
	return handle(owner, &record.header);
}

/* The bytes wait for the brief record that they belong to. */
static int read_first(struct words_reader *reader, uint64_t word, struct cursor *cursor)
{
	uint32_t len = (uint32_t)WL_WORD_FIELD(word, 4, WL_FIRST_LEN_BITS);

	if (len > WL_FIRST_MAX || !next(cursor, &reader->conn))
		return -EBADMSG;
	for (uint32_t i = 0; i < WL_FIRST_WORDS(len); i++)
		if (!next(cursor, &reader->first[i]))
			return -EBADMSG;
	reader->first_len = len;
	reader->first_total = (uint32_t)WL_WORD_FIELD(word, 16, WL_FIRST_TOTAL_BITS);
	return 0;
}

static int hand_brief(struct words_reader *reader, const struct wl_brief_record *brief, words_handler handle,
		      void *owner)
{
	uint64_t room[sizeof(*brief) / sizeof(uint64_t) + WL_FIRST_WORDS(WL_FIRST_MAX)];
	struct wl_brief_record *record = (struct wl_brief_record *)room;

	*record = *brief;
	record->header.sz = (uint16_t)(sizeof(*brief) + reader->first_len);
	record->conn = reader->conn;
	record->first_len = reader->first_len;
	record->first_total = reader->first_total;
	memcpy(record->first, reader->first, reader->first_len);
	reader->conn = 0;
	reader->first_len = 0;
	reader->first_total = 0;
	return handle(owner, &record->header);
}

static int read_brief(struct words_reader *reader, uint64_t word, struct cursor *cursor, words_handler handle,
		      void *owner)
{
	uint64_t sid, type, times, picker;
	struct wl_brief_record record = {
		.header = header_of(reader, WL_RECORD_BRIEF, sizeof(record)),
		.end_ts = reader->ts + WL_WORD_FIELD(word, 24, WL_BRIEF_AFTER_BITS),
		.end_tid = reader->tid,
		.flags = (uint32_t)WL_WORD_FIELD(word, 4, WL_BRIEF_FLAG_BITS),
	};

	if (!next(cursor, &sid) || !next(cursor, &type) || !next(cursor, &times) || !next(cursor, &picker))
		return -EBADMSG;
	record.sid = sid;
	record.type = (uint32_t)(type >> 32);
	record.rate = (uint32_t)type;
	record.pickup_ts = record.end_ts - (uint32_t)times;
	record.begin_ts = record.pickup_ts - (times >> 32);
	record.pid = (uint32_t)(picker >> 32);
	record.tid = (uint32_t)picker;
	return hand_brief(reader, &record, handle, owner);
}

int words_reader__read(struct words_reader *reader, const uint64_t *words, uint64_t mask, uint64_t from, uint64_t to,
		       words_handler handle, void *owner, uint64_t *handled)
{
	struct cursor cursor = {.words = words, .mask = mask, .at = from, .to = to};
	uint64_t word;
	int err = 0;

	if (to - from > mask + 1)
		return -EBADMSG;
	while (!err && next(&cursor, &word)) {
		uint64_t value = word >> WL_WORD_TAG_BITS;

		switch (WL_WORD_TAG(word)) {
		case WL_WORD_TIME:
			reader->ts = value;
			continue;
		case WL_WORD_THREAD:
			reader->pid = (uint32_t)WL_WORD_FIELD(word, WL_WORD_TAG_BITS, WL_WORD_ID_BITS);
			reader->tid =
				(uint32_t)WL_WORD_FIELD(word, WL_WORD_TAG_BITS + WL_WORD_ID_BITS, WL_WORD_ID_BITS);
			if (WL_WORD_FIELD(word, 49, 1))
				reader->tid |= WL_GOROUTINE_TID;
			reader->outside = (uint32_t)WL_WORD_FIELD(word, 48, 1);
			continue;
		case WL_WORD_SID:
			reader->sid = value;
			continue;
		case WL_WORD_TYPE:
			reader->type = (uint32_t)value;
			continue;
		case WL_WORD_FIRST:
			err = read_first(reader, word, &cursor);
			if (err)
				return err;
			continue;
		case WL_WORD_SEGMENT:
			err = read_segment(reader, word, &cursor, handle, owner);
			break;
		case WL_WORD_WAKEUP:
			err = read_wakeup(reader, word, &cursor, handle, owner);
			break;
		case WL_WORD_BRIEF:
			err = read_brief(reader, word, &cursor, handle, owner);
			break;
		default:
			return -EBADMSG;
		}
		++*handled;
	}
	return err;
}
