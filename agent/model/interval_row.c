// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/interval_row.h"

#include "base/names.h"
#include "base/syscalls.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* What was taken with a chance of p stands for 1/p of its like (Horvitz and Thompson 1952); 0 of 2^32: for certain. */
static double stands_for(uint32_t chance)
{
	return chance ? 4294967296.0 / chance : 1;
}

double interval_weight(uint32_t rate)
{
	return stands_for(rate);
}

static const char *source_name(uint32_t type, const target_listeners *listeners, const probe_lines *lines, char *buf,
			       size_t sz)
{
	uint32_t number = type & 0xffff;

	switch (WL_TYPE_SOURCE(type)) {
	case WL_SOURCE_TCP:
		snprintf(buf, sz, "tcp:%u", number);
		return buf;
	case WL_SOURCE_UDP:
		snprintf(buf, sz, "udp:%u", number);
		return buf;
	case WL_SOURCE_UNIX:
		return listeners && number < listeners->cnt ? listeners->items[number].name : "unix";
	case WL_SOURCE_FUNCTION:
		return lines && number < lines->cnt ? lines->items[number].name : "function";
	}
	return "unknown";
}

const char *interval_type_name(uint32_t type, const target_listeners *listeners, const probe_lines *lines,
			       const struct request_types *types, char *buf, size_t sz)
{
	const char *text = request_types__text(types, type), *source;
	char source_buf[INTERVAL_TYPE_LEN];

	if (!text)
		return source_name(type, listeners, lines, buf, sz);
	source = source_name(type, listeners, lines, source_buf, sizeof(source_buf));
	snprintf(buf, sz, "%.*s %s", INTERVAL_TYPE_LEN - REQUEST_TEXT_MAX - 1, source, text);
	return buf;
}

static void set_u64(struct shard_row *row, uint32_t column, uint64_t value)
{
	row->values[column].u64 = value;
}

/* A string column that is null without a string. */
static void set_str(struct shard_row *row, uint32_t column, const char *value)
{
	if (value)
		row->values[column].str = value;
	else
		shard_row__set_null(row, column);
}

static void set_nulls(struct shard_row *row, uint32_t first, uint32_t last)
{
	for (uint32_t column = first; column <= last; column++)
		shard_row__set_null(row, column);
}

static void fill_culprit(struct shard_row *row, const struct wl_culprit *culprit, char *comm)
{
	if (!culprit->length_ns) {
		set_nulls(row, INTERVAL_CULPRIT_PID, INTERVAL_CULPRIT_NS);
		return;
	}
	if (!culprit->tid) {
		set_nulls(row, INTERVAL_CULPRIT_PID, INTERVAL_CULPRIT_NS);
		set_str(row, INTERVAL_CULPRIT_COMM, NAME_IDLE_CPU);
		return;
	}
	memcpy(comm, culprit->comm, WL_COMM_LEN);
	comm[WL_COMM_LEN] = '\0';
	set_u64(row, INTERVAL_CULPRIT_PID, culprit->pid);
	set_u64(row, INTERVAL_CULPRIT_TID, culprit->tid);
	set_str(row, INTERVAL_CULPRIT_COMM, comm);
	set_u64(row, INTERVAL_CULPRIT_NS, culprit->length_ns);
}

static void fill_lock(struct shard_row *row, const struct wl_interval_record *record,
		      const struct interval_names *names, char *buf, size_t sz)
{
	const struct wl_wait *lock = &record->lock;
	const char *owner;

	if (!lock->length_ns) {
		set_nulls(row, INTERVAL_LOCK_NS, INTERVAL_LOCK_OWNER_COMM);
		return;
	}
	/* What lies where a mutex keeps its owner is believed only if it is a thread that was seen. */
	owner = thread_names__get(names->threads, lock->owner_tid, record->end_ts);
	set_u64(row, INTERVAL_LOCK_NS, lock->length_ns);
	set_u64(row, INTERVAL_LOCK_ADDR, lock->object);
	set_str(row, INTERVAL_LOCK_NAME,
		names->data_name ? names->data_name(names->owner, lock->object & WL_FILE_LOCK ? record->pid : 0,
						    lock->object, buf, sz)
				 : NULL);
	if (!owner) {
		set_nulls(row, INTERVAL_LOCK_OWNER_TID, INTERVAL_LOCK_OWNER_COMM);
		return;
	}
	set_u64(row, INTERVAL_LOCK_OWNER_TID, lock->owner_tid);
	set_str(row, INTERVAL_LOCK_OWNER_COMM, owner);
}

static void fill_blocked(struct shard_row *row, const struct wl_wait *blocked, char *buf, size_t sz)
{
	const char *call;

	if (!blocked->length_ns) {
		set_nulls(row, INTERVAL_BLOCKED_NS, INTERVAL_BLOCKED_OBJECT);
		return;
	}
	call = go_wait_text(blocked->object);
	if (!call)
		call = syscall_name(blocked->sysno);
	if (!call && blocked->sysno != UINT32_MAX) {
		snprintf(buf, sz, "syscall %u", blocked->sysno);
		call = buf;
	}
	set_u64(row, INTERVAL_BLOCKED_NS, blocked->length_ns);
	set_str(row, INTERVAL_BLOCKED_STATE, state_name(blocked->state));
	set_str(row, INTERVAL_BLOCKED_SYSCALL, call);
	set_u64(row, INTERVAL_BLOCKED_OBJECT, blocked->object);
	if (go_wait_text(blocked->object))
		shard_row__set_null(row, INTERVAL_BLOCKED_OBJECT);
}

static void fill_fault(struct shard_row *row, const struct wl_wait *fault, const struct interval_names *names,
		       char *buf, size_t sz)
{
	if (!fault->length_ns) {
		set_nulls(row, INTERVAL_FAULT_NS, INTERVAL_FAULT_NAME);
		return;
	}
	set_u64(row, INTERVAL_FAULT_NS, fault->length_ns);
	set_u64(row, INTERVAL_FAULT_ADDR, fault->object);
	set_str(row, INTERVAL_FAULT_NAME,
		names->mappings ? target_mapping_name(names->mappings, fault->object, false, buf, sz) : NULL);
}

static void fill_trace(struct shard_row *row, const struct wl_trace_context *trace, struct interval_texts *texts)
{
	if (!trace_context_texts(trace, texts->trace_id, texts->span_id)) {
		set_nulls(row, INTERVAL_TRACE_ID, INTERVAL_SPAN_ID);
		return;
	}
	set_str(row, INTERVAL_TRACE_ID, texts->trace_id);
	set_str(row, INTERVAL_SPAN_ID, texts->span_id);
}

/* Hardware counters: only those of the record's epoch have a value. */
static void fill_hw(struct shard_row *row, const struct wl_interval_record *record, const struct interval_names *names)
{
	for (uint32_t counter = 0; counter < SHARD_HW_CNT; counter++)
		shard_row__set_null(row, interval_column_hw(counter));
	if (!(record->flags & WL_INTERVAL_HW))
		return;
	for (int slot = 0; slot < WL_HW_SLOTS; slot++) {
		int counter = names->hw_counter[slot];
		uint32_t column;

		if (counter < 0 || counter >= SHARD_HW_CNT)
			continue;
		column = interval_column_hw(counter);
		row->nulls[column / 64] &= ~(1ULL << (column % 64));
		set_u64(row, column, record->hw[slot]);
	}
}

/* The states' lengths, made to sum to the latency; true if they did by themselves. */
static bool fill_lengths(struct shard_row *row, const struct wl_interval_record *record, uint64_t latency_ns)
{
	uint64_t left_ns = latency_ns;
	bool exact = true;

	for (uint32_t state = 0; state < WL_STATE_CNT; state++) {
		uint64_t length_ns = record->length_ns[state];

		if (length_ns > left_ns) {
			length_ns = left_ns;
			exact = false;
		}
		left_ns -= length_ns;
		set_u64(row, interval_column_length(state), length_ns);
		set_u64(row, interval_column_count(state), record->count[state]);
	}
	if (left_ns) {
		exact = false;
		row->values[interval_column_length(WL_STATE_UNKNOWN)].u64 += left_ns;
	}
	return exact;
}

int interval_row_make(struct shard_row *row, struct interval_texts *texts, const struct wl_interval_record *record,
		      const struct interval_names *names)
{
	uint64_t flags = record->flags;

	if (record->end_ts < record->begin_ts || record->pickup_ts < record->begin_ts ||
	    record->pickup_ts > record->end_ts)
		return -EBADMSG;
	memset(row->nulls, 0, sizeof(row->nulls));
	if (!fill_lengths(row, record, record->end_ts - record->begin_ts))
		flags |= WL_INTERVAL_TORN;
	set_u64(row, INTERVAL_SID, record->sid);
	set_u64(row, INTERVAL_BEGIN_TS, record->begin_ts);
	set_u64(row, INTERVAL_PICKUP_TS, record->pickup_ts);
	set_u64(row, INTERVAL_END_TS, record->end_ts);
	set_u64(row, INTERVAL_PID, record->pid);
	set_u64(row, INTERVAL_TID, record->tid);
	set_u64(row, INTERVAL_END_TID, record->end_tid);
	set_str(row, INTERVAL_TYPE,
		interval_type_name(record->type, names->listeners, names->lines, names->types, texts->type,
				   sizeof(texts->type)));
	row->values[INTERVAL_WEIGHT].f64 = stands_for(record->rate) * stands_for(record->chance);
	set_u64(row, INTERVAL_FLAGS, flags);
	if (record->queue_sid) {
		set_u64(row, INTERVAL_QUEUE_SID, record->queue_sid);
		set_u64(row, INTERVAL_QUEUE_SID_NS, record->queue_sid_ns);
	} else {
		set_nulls(row, INTERVAL_QUEUE_SID, INTERVAL_QUEUE_SID_NS);
	}
	set_u64(row, INTERVAL_CONTEXT, record->context);
	if (record->context == WL_CONTEXT_ID_NONE)
		shard_row__set_null(row, INTERVAL_CONTEXT);
	fill_culprit(row, &record->culprit, texts->culprit);
	fill_lock(row, record, names, texts->lock, sizeof(texts->lock));
	fill_blocked(row, &record->blocked, texts->syscall, sizeof(texts->syscall));
	fill_fault(row, &record->fault, names, texts->fault, sizeof(texts->fault));
	fill_trace(row, &record->trace, texts);
	for (uint32_t tally = 0; tally < WL_TALLY_CNT; tally++)
		set_u64(row, interval_column_tally(tally), record->tally[tally]);
	fill_hw(row, record, names);
	return 0;
}
