// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/trace_rows.h"

#include "base/names.h"
#include "base/syscalls.h"

#include <stdio.h>
#include <string.h>

static void begin_row(struct shard_row *row)
{
	memset(row->nulls, 0, sizeof(row->nulls));
}

static void set_u64(struct shard_row *row, uint32_t column, uint64_t value)
{
	row->values[column].u64 = value;
}

/* A value that is null where it is 0. */
static void set_known(struct shard_row *row, uint32_t column, uint64_t value)
{
	if (value)
		row->values[column].u64 = value;
	else
		shard_row__set_null(row, column);
}

static void set_str(struct shard_row *row, uint32_t column, const char *value)
{
	if (value && value[0])
		row->values[column].str = value;
	else
		shard_row__set_null(row, column);
}

static void set_cpu(struct shard_row *row, uint32_t column, uint16_t cpu)
{
	if (cpu == GRAPH_NO_CPU)
		shard_row__set_null(row, column);
	else
		row->values[column].u64 = cpu;
}

static bool is_fault(uint32_t state)
{
	return state == WL_STATE_FAULT_MINOR || state == WL_STATE_FAULT_MAJOR;
}

static const char *call_name(uint32_t syscall, char *buf, size_t sz)
{
	const char *name;

	if (!syscall)
		return NULL;
	name = syscall_name(syscall - 1);
	if (name)
		return name;
	snprintf(buf, sz, "syscall %u", syscall - 1);
	return buf;
}

void trace_row_segment(struct shard_row *row, struct trace_texts *texts, uint32_t tid,
		       const struct graph_segment *segment, const struct trace_names *names)
{
	bool lock = segment->state == WL_STATE_BLOCKED_FUTEX, fault = is_fault(segment->state);
	bool outside = segment->mark & TRACE_OUTSIDE;
	bool runnable = segment->state == WL_STATE_RUNQ_WAKEUP || segment->state == WL_STATE_RUNQ_PREEMPT;
	uint32_t type = request_types__of(names->types, segment->sid, segment->type);
	const char *name = NULL;

	begin_row(row);
	if (state_is_blocked(segment->state) && go_wait_text(segment->object))
		name = go_wait_text(segment->object);
	else if (lock && names->data_name && segment->object)
		name = names->data_name(names->owner, outside || segment->object & WL_FILE_LOCK ? segment->pid : 0,
					segment->object, texts->name, sizeof(texts->name));
	else if (fault && names->mappings && segment->object && !outside)
		name = target_mapping_name(names->mappings, segment->object, false, texts->name, sizeof(texts->name));
	set_known(row, SEGMENT_SID, segment->sid);
	set_u64(row, SEGMENT_PID, segment->pid);
	set_u64(row, SEGMENT_TID, tid);
	set_u64(row, SEGMENT_BEGIN_TS, segment->begin_ts);
	set_u64(row, SEGMENT_END_TS, segment->end_ts);
	row->values[SEGMENT_STATE].str = state_name(segment->state);
	set_str(row, SEGMENT_TYPE,
		segment->sid && type ? interval_type_name(type, names->listeners, names->lines, names->types,
							  texts->type, sizeof(texts->type))
				     : NULL);
	set_cpu(row, SEGMENT_CPU, segment->cpu);
	if (state_is_blocked(segment->state) && segment->syscall) /* descriptor 0 is one, too */
		set_u64(row, SEGMENT_OBJECT, segment->object);
	else
		set_known(row, SEGMENT_OBJECT, segment->object);
	set_str(row, SEGMENT_OBJECT_NAME, name);
	set_known(row, SEGMENT_OWNER_TID, runnable ? 0 : segment->owner_tid);
	set_str(row, SEGMENT_SYSCALL, call_name(segment->syscall, texts->syscall, sizeof(texts->syscall)));
	set_known(row, SEGMENT_BY_PID, segment->by_pid);
	set_known(row, SEGMENT_BY_TID, runnable ? segment->by_tid : 0);
	set_str(row, SEGMENT_BY_COMM,
		segment->mark & TRACE_IDLE ? NAME_IDLE_CPU
		: runnable                 ? thread_names__get(names->threads, segment->by_tid, segment->end_ts)
					   : NULL);
	set_u64(row, SEGMENT_SUSPECT, (segment->mark & TRACE_SUSPECT) != 0);
}

void trace_row_wakeup(struct shard_row *row, uint32_t pid, uint32_t tid, const struct graph_wakeup *wakeup,
		      const struct trace_names *names)
{
	begin_row(row);
	set_u64(row, WAKEUP_TS, wakeup->ts);
	set_u64(row, WAKEUP_PID, pid);
	set_u64(row, WAKEUP_TID, tid);
	set_known(row, WAKEUP_WAKER_PID, wakeup->waker_pid);
	set_known(row, WAKEUP_WAKER_TID, wakeup->waker_tid);
	set_str(row, WAKEUP_WAKER_COMM, thread_names__get(names->threads, wakeup->waker_tid, wakeup->ts));
	set_cpu(row, WAKEUP_CPU, wakeup->cpu);
	row->values[WAKEUP_CONTEXT].str = context_name(wakeup->context);
	row->values[WAKEUP_CERTAINTY].str = certainty_name(wakeup->certainty);
}

void trace_row_handoff(struct shard_row *row, struct trace_texts *texts, const struct graph_handoff *handoff,
		       const struct trace_detail *detail, const struct trace_names *names)
{
	bool block = handoff->kind == WL_HANDOFF_BLOCK;

	begin_row(row);
	row->values[HANDOFF_KIND].str = handoff_name(handoff->kind);
	row->values[HANDOFF_CERTAINTY].str = certainty_name(handoff->certainty);
	set_known(row, HANDOFF_SID, handoff->sid);
	set_known(row, HANDOFF_FROM_PID, handoff->from_pid);
	set_known(row, HANDOFF_FROM_TID, handoff->from_tid);
	set_str(row, HANDOFF_FROM_COMM,
		thread_names__get(names->threads, handoff->from_tid,
				  handoff->from_ts ? handoff->from_ts : handoff->to_ts));
	set_known(row, HANDOFF_FROM_TS, handoff->from_ts);
	set_known(row, HANDOFF_TO_PID, handoff->to_pid);
	set_known(row, HANDOFF_TO_TID, handoff->to_tid);
	set_known(row, HANDOFF_TO_TS, handoff->to_ts);
	set_known(row, HANDOFF_OBJECT, handoff->object);
	set_str(row, HANDOFF_FROM_ADDR, detail ? detail->from_addr : NULL);
	set_str(row, HANDOFF_TO_ADDR, detail ? detail->to_addr : NULL);
	if (detail && detail->end_byte > detail->begin_byte) {
		set_u64(row, HANDOFF_BEGIN_BYTE, detail->begin_byte);
		set_u64(row, HANDOFF_END_BYTE, detail->end_byte);
	} else {
		shard_row__set_null(row, HANDOFF_BEGIN_BYTE);
		shard_row__set_null(row, HANDOFF_END_BYTE);
	}
	if (detail && detail->has_seq)
		set_u64(row, HANDOFF_SEQ, detail->seq);
	else
		shard_row__set_null(row, HANDOFF_SEQ);
	if (block)
		snprintf(texts->device, sizeof(texts->device), "%u:%u", (handoff->device - 1) >> 20,
			 (handoff->device - 1) & 0xfffff);
	set_str(row, HANDOFF_DEVICE, block ? texts->device : NULL);
	if (block) {
		set_u64(row, HANDOFF_QUEUE_NS, handoff->queue_ns);
		set_u64(row, HANDOFF_SERVICE_NS, handoff->service_ns);
	} else {
		shard_row__set_null(row, HANDOFF_QUEUE_NS);
		shard_row__set_null(row, HANDOFF_SERVICE_NS);
	}
	set_known(row, HANDOFF_BYTES, detail ? detail->bytes : 0);
	set_known(row, HANDOFF_LEFT_TS, detail ? detail->left_ts : 0);
	set_known(row, HANDOFF_FROM_SID, handoff->from_sid);
	set_known(row, HANDOFF_MIXED, handoff->mixed);
}
