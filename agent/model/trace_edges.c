// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/trace_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* Between the end of a goroutine's wait and its read: it was ready, and ran. */
#define GO_LOOKS_MAX 8

int trace__received(struct trace *trace, enum shard_table_id table, int err)
{
	if (err == -EINVAL) {
		trace->counts.impossible++;
		return 0;
	}
	if (!err)
		trace->counts.received[table]++;
	return err;
}

static int add_handoff(struct trace *trace, struct graph_handoff *handoff, const struct trace_detail *detail)
{
	uint32_t place;

	if (++trace->last_row == 0)
		trace->last_row = 1;
	handoff->row = trace->last_row;
	place = handoff->row % TRACE_DETAILS;
	memset(&trace->details[place], 0, sizeof(trace->details[place]));
	trace->details[place].row = handoff->row;
	if (detail)
		trace->details[place].detail = *detail;
	return trace__received(trace, SHARD_TABLE_HANDOFF, graph__add_handoff(trace->graph, handoff));
}

void trace_detail_make(struct trace_detail *detail, const struct wl_socket_record *record, bool sent)
{
	*detail = (struct trace_detail){
		.begin_byte = record->pos,
		.end_byte = record->pos + record->len,
		.seq = record->pos,
		.has_seq = record->family != AF_UNIX,
		.bytes = record->len,
	};
	trace_socket_address(record, !sent, detail->from_addr, sizeof(detail->from_addr));
	trace_socket_address(record, sent, detail->to_addr, sizeof(detail->to_addr));
}

/*
 * When the bytes that a goroutine has just read ended its wait for them: the kernel wakes whichever thread polls, so
 * that no wake-up of its own says so.  0: it did not wait.
 */
static uint64_t goroutine_waited_until(struct trace *trace, const struct wl_socket_record *received)
{
	size_t before;
	struct graph_segment *segment = graph__segment_before(trace->graph, received->tid, received->ts, &before);

	for (int looks = 0; segment && looks < GO_LOOKS_MAX; looks++, segment--) {
		if (segment->state == WL_STATE_BLOCKED_NET)
			return segment->end_ts;
		if (state_is_blocked(segment->state) || !before--)
			return 0;
	}
	return 0;
}

static int on_received(void *owner, const struct wl_socket_record *sent, const struct wl_socket_record *received,
		       bool mixed)
{
	bool is_unix = received->family == AF_UNIX;
	struct trace *trace = owner;
	struct trace_detail detail;
	struct graph_handoff handoff = {
		.to_ts = received->ts,
		/* What a thread sends for an interval is received by one that need not know of it. */
		.sid = received->sid || !sent ? received->sid : sent->sid,
		.object = received->conn,
		.from_sid = sent ? sent->sid : 0,
		.to_pid = received->pid,
		.to_tid = received->tid,
		.kind = is_unix ? WL_HANDOFF_UNIX : WL_HANDOFF_SOCKET,
		.certainty = sent ? WL_CERTAINTY_OBSERVED : WL_CERTAINTY_INFERRED,
		.mark = !sent && trace_far_is(received) ? TRACE_FAR : 0,
		.mixed = mixed,
	};

	trace_detail_make(&detail, received, false);
	if (sent) {
		struct graph_wakeup *wakeup;
		uint64_t woken_ts = 0;

		if (received->direction == WL_RECEIVED_UNSURE)
			handoff.certainty = WL_CERTAINTY_AMBIGUOUS;

		trace_far__met(trace->far, sent);
		handoff.from_pid = sent->pid;
		handoff.from_tid = sent->tid;
		/* The sender's call returns late: what it sent was there when its receiver was woken. */
		handoff.from_ts = sent->ts < received->ts ? sent->ts : received->ts;
		wakeup = graph__wakeup_in(
			trace->graph, received->tid,
			received->ts > TRACE_WOKEN_BEFORE_NS ? received->ts - TRACE_WOKEN_BEFORE_NS : 0, received->ts);
		if (received->tid >= WL_GOROUTINE_TID)
			woken_ts = goroutine_waited_until(trace, received);
		else if (wakeup)
			woken_ts = wakeup->ts;
		if (woken_ts && woken_ts < handoff.from_ts && handoff.from_ts - woken_ts < TRACE_WINDOW_NS)
			handoff.from_ts = woken_ts;
	}
	return add_handoff(trace, &handoff, &detail);
}

int trace__take_socket(struct trace *trace, const struct wl_socket_record *record)
{
	bool sent = record->direction == WL_SENT || record->direction == WL_REPLIED;

	if (sent && trace_far_is(record))
		trace_far__sent(trace->far, record);
	/* The other ends of these are not followed, so that none of them is waited for. */
	if (record->direction == WL_REPLIED)
		return 0;
	if (record->direction == WL_REQUESTED)
		return on_received(trace, NULL, record, false);
	return trace_sockets__take(trace->sockets, record, on_received, trace);
}

int trace__settle_sockets(struct trace *trace, uint64_t before_ts)
{
	return trace_sockets__settle(trace->sockets, before_ts, on_received, trace);
}

/* to_tid 0: nobody waited for it, and others may have waited for the disk because of it. */
static int add_block(struct trace *trace, const struct wl_block_record *record, uint32_t to_pid, uint32_t to_tid)
{
	struct trace_detail detail = {.bytes = record->bytes};
	struct graph_handoff handoff = {
		.from_ts = record->issue_ts ? record->issue_ts : record->queue_ts,
		.to_ts = record->complete_ts,
		.object = record->sector,
		.from_pid = record->pid,
		.from_tid = record->tid,
		.to_pid = to_pid,
		.to_tid = to_tid,
		.device = TRACE_DEVICE(record->dev),
		.kind = WL_HANDOFF_BLOCK,
		.certainty = WL_CERTAINTY_OBSERVED,
	};

	if (!handoff.from_tid && !handoff.to_tid)
		return 0;
	if (record->queue_ts && record->issue_ts > record->queue_ts)
		handoff.queue_ns = record->issue_ts - record->queue_ts;
	if (handoff.from_ts && record->complete_ts > handoff.from_ts)
		handoff.service_ns = record->complete_ts - handoff.from_ts;
	return add_handoff(trace, &handoff, &detail);
}

static int finish_block(struct trace *trace, struct pending_block *block)
{
	int err = 0;

	if (block->record.complete_ts && !block->waited_for)
		err = add_block(trace, &block->record, 0, 0);
	block->record.complete_ts = 0;
	return err;
}

int trace__take_block(struct trace *trace, const struct wl_block_record *record, uint16_t cpu)
{
	struct pending_block *block = &trace->blocks[cpu % TRACE_CPUS];
	int err = finish_block(trace, block);

	block->record = *record;
	block->waited_for = false;
	return err;
}

int trace__block_waiter(struct trace *trace, const struct wl_wakeup_record *record, uint16_t cpu)
{
	struct pending_block *block = &trace->blocks[cpu % TRACE_CPUS];

	if (block->record.complete_ts != record->io_ts)
		return 0;
	block->waited_for = true;
	return add_block(trace, &block->record, record->pid, record->tid);
}

int trace__settle_blocks(struct trace *trace, uint64_t before_ts)
{
	int err = 0;

	for (int i = 0; !err && i < TRACE_CPUS; i++)
		if (trace->blocks[i].record.complete_ts < before_ts)
			err = finish_block(trace, &trace->blocks[i]);
	return err;
}

int trace__add_write(struct trace *trace, const struct wl_wakeup_record *record)
{
	struct graph_handoff handoff = {
		.from_ts = record->ts,
		.to_ts = record->ts,
		.from_pid = record->waker_pid,
		.from_tid = record->waker_tid,
		.to_pid = record->pid,
		.to_tid = record->tid,
		.kind = record->waker_file == WL_FILE_PIPE      ? WL_HANDOFF_PIPE
			: record->waker_file == WL_FILE_EVENTFD ? WL_HANDOFF_EVENTFD
			: record->waker_file == WL_FILE_MESSAGE ? WL_HANDOFF_MESSAGE
								: WL_HANDOFF_SOCKET,
		/* It was woken by the write; that it was for this file is likely, but it may wait for several. */
		.certainty = WL_CERTAINTY_INFERRED,
	};

	return add_handoff(trace, &handoff, NULL);
}

int trace__add_fork(struct trace *trace, const struct wl_task_record *record)
{
	struct graph_handoff handoff = {
		.from_ts = record->ts,
		.to_ts = record->ts,
		.from_pid = record->parent_pid,
		.from_tid = record->creator_tid,
		.to_pid = record->pid,
		.to_tid = record->tid,
		.kind = WL_HANDOFF_FORK,
		.certainty = WL_CERTAINTY_OBSERVED,
	};

	return add_handoff(trace, &handoff, NULL);
}

int trace__add_timer(struct trace *trace, const struct wl_timer_record *record)
{
	struct graph_handoff handoff = {
		.to_ts = record->expire_ts,
		.object = record->timer,
		.to_pid = record->pid,
		.to_tid = record->tid,
		.kind = WL_HANDOFF_TIMER,
		.certainty = WL_CERTAINTY_INFERRED,
	};
	struct graph_segment *wait;
	size_t before;

	if (record->armed_tid && record->armed_ts <= record->expire_ts) {
		handoff.from_ts = record->armed_ts;
		handoff.from_pid = record->armed_pid;
		handoff.from_tid = record->armed_tid;
		handoff.certainty = WL_CERTAINTY_OBSERVED;
	} else if (record->own) {
		/* The timeout of the call that it waited in. */
		wait = graph__segment_before(trace->graph, record->tid, record->ts, &before);
		if (wait && wait->end_ts == record->ts && wait->begin_ts <= record->expire_ts) {
			handoff.from_ts = wait->begin_ts;
			handoff.from_pid = record->pid;
			handoff.from_tid = record->tid;
		}
	}
	return add_handoff(trace, &handoff, NULL);
}

int trace__add_queue(struct trace *trace, const struct trace_passage *passage)
{
	struct graph_handoff handoff = {
		.from_ts = passage->handed_ts,
		.to_ts = passage->taken_ts > passage->handed_ts ? passage->taken_ts : passage->handed_ts,
		.sid = passage->interval->sid,
		.from_pid = passage->interval->pid,
		.from_tid = passage->from_tid,
		.to_pid = passage->interval->pid,
		.to_tid = passage->to_tid,
		.kind = WL_HANDOFF_QUEUE,
		.certainty = passage->certainty,
	};

	return add_handoff(trace, &handoff, NULL);
}

/* The tasks of a queue whose functions are probed are known by their addresses. */
int trace__add_dequeue(struct trace *trace, const struct wl_queue_record *record)
{
	struct graph_handoff handoff = {
		.from_ts = record->from_ts < record->to_ts ? record->from_ts : record->to_ts,
		.to_ts = record->to_ts,
		.sid = record->sid,
		.object = record->queue,
		.from_pid = record->from_pid,
		.from_tid = record->from_tid,
		.to_pid = record->to_pid,
		.to_tid = record->to_tid,
		.kind = WL_HANDOFF_QUEUE,
		.certainty = WL_CERTAINTY_OBSERVED,
	};

	return add_handoff(trace, &handoff, NULL);
}
