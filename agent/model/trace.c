// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/trace_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The tables of order, sockets and details come out of the same purse as the graph. */
#define GRAPH_SHARE(memory) ((memory) - (memory) / 4)
/* An interval is looked at when the calls that belong to it have returned; a sender may lose its CPU in one. */
#define SETTLE_NS 20000000ULL
/* A fault's stretches that are looked back at. */
#define FAULT_LOOKS_MAX 64

struct trace *trace__new(const struct trace_opts *opts)
{
	struct trace *trace = calloc(1, sizeof(*trace));

	if (!trace)
		return NULL;
	trace->opts = *opts;
	trace->order = trace_order__new();
	trace->sockets = trace_sockets__new();
	trace->far = calloc(1, sizeof(*trace->far));
	trace->graph = graph__new();
	trace->details = calloc(TRACE_DETAILS, sizeof(*trace->details));
	trace->arrivals = calloc(TRACE_ARRIVALS, sizeof(*trace->arrivals));
	if (trace->order && trace->sockets && trace->far && trace->graph && trace->details && trace->arrivals)
		return trace;
	trace__free(trace);
	return NULL;
}

void trace__free(struct trace *trace)
{
	if (!trace)
		return;
	trace_order__free(trace->order);
	trace_sockets__free(trace->sockets);
	free(trace->far);
	graph__free(trace->graph);
	path__clear(&trace->path);
	free(trace->details);
	free(trace->arrivals);
	vec_free(&trace->pending);
	free(trace);
}

static int take(struct trace *trace, const struct wl_record_header *header, uint64_t ts, const void *data, uint32_t sz)
{
	const struct trace_item item = {
		.ts = ts,
		.kind = header->kind,
		.cpu = header->cpu < GRAPH_NO_CPU ? header->cpu : GRAPH_NO_CPU,
		.sz = sz,
		.data = data,
	};

	return trace_order__add(trace->order, &item);
}

int trace__take(struct trace *trace, const struct wl_record_header *record)
{
	uint64_t ts;

	if (record->kind < WL_RECORD_KIND_CNT)
		trace->counts.taken[record->kind]++;
	switch (record->kind) {
	case WL_RECORD_SEGMENT:
		ts = ((const struct wl_segment_record *)record)->end_ts;
		break;
	case WL_RECORD_WAKEUP:
		ts = ((const struct wl_wakeup_record *)record)->ts;
		break;
	case WL_RECORD_SOCKET:
		ts = ((const struct wl_socket_record *)record)->ts;
		break;
	case WL_RECORD_BLOCK:
		ts = ((const struct wl_block_record *)record)->complete_ts;
		break;
	case WL_RECORD_TIMER:
		ts = ((const struct wl_timer_record *)record)->ts;
		break;
	case WL_RECORD_TASK:
		ts = ((const struct wl_task_record *)record)->ts;
		break;
	case WL_RECORD_QUEUE:
		ts = ((const struct wl_queue_record *)record)->to_ts;
		break;
	default:
		return -EBADMSG;
	}
	return take(trace, record, ts, record, record->sz);
}

static int take_ended(struct trace *trace, const struct wl_brief_record *record, bool keep)
{
	const struct ended_interval ended = {
		.interval =
			{
				.sid = record->sid,
				.begin_ts = record->begin_ts,
				.pickup_ts = record->pickup_ts,
				.end_ts = record->end_ts,
				.pid = record->pid,
				.tid = record->tid,
				.end_tid = record->end_tid,
				.flags = record->flags,
				.type = record->type,
			},
		.keep = keep,
	};
	struct wl_record_header header = record->header;

	header.kind = WL_RECORD_INTERVAL;
	return take(trace, &header, record->end_ts, &ended, sizeof(ended));
}

int trace__take_interval(struct trace *trace, const struct wl_interval_record *record)
{
	return take_ended(trace, (const struct wl_brief_record *)record, true);
}

int trace__take_brief(struct trace *trace, const struct wl_brief_record *record)
{
	return take_ended(trace, record, false);
}

void trace__spun(struct trace *trace, uint32_t pid, uint64_t ts)
{
	trace->spins[trace->spin_cnt++ % TRACE_SPINS] = (struct trace_spin){.ts = ts, .pid = pid};
}

/* A fault's earlier stretches were of the kind that its last one turned out to be. */
static void resolve_fault(struct trace *trace, const struct wl_segment_record *record)
{
	struct graph_segment *segment;
	size_t before;

	segment = graph__segment_before(trace->graph, record->tid, record->end_ts, &before);
	for (int looks = 0; segment && looks < FAULT_LOOKS_MAX; looks++) {
		if (segment->mark & TRACE_PENDING) {
			segment->mark &= ~TRACE_PENDING;
			segment->state = record->state;
		} else if (segment->state == WL_STATE_RUNNING) {
			return;
		}
		segment = before-- ? segment - 1 : NULL;
	}
}

static int on_segment(struct trace *trace, const struct wl_segment_record *record, uint16_t cpu)
{
	bool runnable = record->state == WL_STATE_RUNQ_WAKEUP || record->state == WL_STATE_RUNQ_PREEMPT;
	bool off_cpu = !runnable && record->flags & WL_SEGMENT_OFF_CPU;
	struct graph_segment segment = {
		.begin_ts = record->begin_ts,
		.end_ts = record->end_ts,
		.sid = record->sid,
		.object = record->object,
		.pid = record->pid,
		.by_pid = runnable ? record->other_pid : 0,
		.type = record->type,
		.syscall = TRACE_SYSCALL(record->sysno),
		.cpu = cpu,
		.state = record->state,
	};
	int err;

	if (runnable)
		segment.by_tid = record->other_tid;
	else
		segment.owner_tid = record->other_tid;
	if (record->state == WL_STATE_FAULT_PENDING) {
		segment.state = off_cpu ? WL_STATE_FAULT_MAJOR : WL_STATE_FAULT_MINOR;
		segment.mark = TRACE_PENDING;
	} else if (record->state == WL_STATE_FAULT_MINOR || record->state == WL_STATE_FAULT_MAJOR) {
		resolve_fault(trace, record);
	}
	if (off_cpu || state_is_blocked(record->state))
		segment.cpu = GRAPH_NO_CPU;
	if (record->flags & WL_SEGMENT_SUSPECT)
		segment.mark |= TRACE_SUSPECT;
	if (runnable && record->flags & WL_SEGMENT_IDLE)
		segment.mark |= TRACE_IDLE;
	if (record->flags & WL_SEGMENT_OUTSIDE)
		segment.mark |= TRACE_OUTSIDE;
	err = graph__add_segment(trace->graph, record->tid, &segment);
	return trace__received(trace, SHARD_TABLE_SEGMENT, err);
}

static int on_wakeup(struct trace *trace, const struct wl_wakeup_record *record, uint16_t cpu)
{
	bool by_task = record->context == WL_CONTEXT_TASK && record->waker_tid != record->tid;
	struct graph_wakeup wakeup = {
		.ts = record->ts,
		.waker_pid = by_task ? record->waker_pid : 0,
		.waker_tid = by_task ? record->waker_tid : 0,
		.cpu = cpu,
		.context = record->context < WL_CONTEXT_CNT ? record->context : WL_CONTEXT_UNKNOWN,
		.certainty = WL_CERTAINTY_OBSERVED,
	};
	int err = graph__add_wakeup(trace->graph, record->tid, &wakeup);

	err = trace__received(trace, SHARD_TABLE_WAKEUP, err);
	if (record->arrived_sid)
		trace__note_arrival(trace, record);
	if (!err && record->io_ts && !by_task)
		err = trace__block_waiter(trace, record, cpu);
	if (!err && by_task &&
	    (record->waker_file == WL_FILE_PIPE || record->waker_file == WL_FILE_EVENTFD ||
	     record->waker_file == WL_FILE_MESSAGE))
		err = trace__add_write(trace, record);
	if (!err && !by_task && record->waker_file == WL_FILE_DATAGRAM && record->waker_tid != record->tid)
		err = trace__add_write(trace, record);
	return err;
}

static int on_task(struct trace *trace, const struct wl_task_record *record)
{
	if (record->event == WL_TASK_EXIT)
		return graph__add_exit(trace->graph, record->tid, record->ts);
	if (record->event == WL_TASK_SEEN && record->creator_tid)
		return trace__add_fork(trace, record);
	return 0;
}

/* The program's own queue was probed, and the interval seen to come out of it. */
static bool was_dequeued(const struct trace *trace, const struct graph_interval *interval)
{
	struct graph_handoff *handoffs;
	size_t cnt;

	handoffs = graph__handoffs_to(trace->graph, interval->end_tid, interval->begin_ts, interval->end_ts, &cnt);
	for (size_t i = 0; i < cnt; i++)
		if (handoffs[i].kind == WL_HANDOFF_QUEUE && handoffs[i].sid == interval->sid &&
		    handoffs[i].certainty == WL_CERTAINTY_OBSERVED)
			return true;
	return false;
}

static int on_interval(struct trace *trace, const struct ended_interval *ended)
{
	const struct graph_interval *interval = &ended->interval;
	int err;

	if (interval->begin_ts > interval->pickup_ts || interval->pickup_ts > interval->end_ts) {
		trace->counts.impossible++;
		return 0;
	}
	err = trace__queue_before(trace, interval);
	if (!err && interval->flags & WL_INTERVAL_MOVED && interval->tid != interval->end_tid &&
	    !was_dequeued(trace, interval))
		err = trace__queue_within(trace, interval);
	if (err || !ended->keep)
		return err;
	return vec_push(&trace->pending, *interval);
}

static int on_item(void *owner, const struct trace_item *item)
{
	struct trace *trace = owner;

	switch (item->kind) {
	case WL_RECORD_SEGMENT:
		return on_segment(trace, item->data, item->cpu);
	case WL_RECORD_WAKEUP:
		return on_wakeup(trace, item->data, item->cpu);
	case WL_RECORD_SOCKET:
		return trace__take_socket(trace, item->data);
	case WL_RECORD_BLOCK:
		return trace__take_block(trace, item->data, item->cpu);
	case WL_RECORD_TIMER:
		return trace__add_timer(trace, item->data);
	case WL_RECORD_TASK:
		return on_task(trace, item->data);
	case WL_RECORD_QUEUE:
		return trace__add_dequeue(trace, item->data);
	default:
		return on_interval(trace, item->data);
	}
}

static int advance(struct trace *trace, uint64_t until_ts)
{
	uint64_t settled_ts = until_ts == UINT64_MAX ? UINT64_MAX : until_ts - SETTLE_NS;
	size_t done = 0;
	int err;

	err = trace_order__release(trace->order, until_ts, on_item, trace);
	if (!err)
		err = trace__settle_sockets(trace, settled_ts);
	if (!err)
		err = trace__settle_blocks(trace, settled_ts);
	while (!err && done < trace->pending.cnt && trace->pending.items[done].end_ts <= settled_ts)
		err = trace__keep_interval(trace, &trace->pending.items[done++]);
	if (done)
		memmove(trace->pending.items, trace->pending.items + done,
			(trace->pending.cnt - done) * sizeof(*trace->pending.items));
	trace->pending.cnt -= done;
	if (graph__bytes(trace->graph) > GRAPH_SHARE(trace->opts.memory))
		trace->has_forgotten |= graph__shrink(trace->graph, GRAPH_SHARE(trace->opts.memory) / 8 * 7) > 0;
	return err;
}

int trace__advance(struct trace *trace, uint64_t now_ts, const target_mappings *mappings)
{
	uint64_t window_ns = trace->opts.window_ns ? trace->opts.window_ns : TRACE_WINDOW_NS;

	trace->mappings = mappings;
	return advance(trace, now_ts > window_ns ? now_ts - window_ns : 0);
}

int trace__finish(struct trace *trace, const target_mappings *mappings)
{
	trace->mappings = mappings;
	return advance(trace, UINT64_MAX);
}

void trace__counts(const struct trace *trace, struct trace_counts *counts)
{
	const enum shard_table_id tables[] = {SHARD_TABLE_SEGMENT, SHARD_TABLE_WAKEUP, SHARD_TABLE_HANDOFF};

	*counts = trace->counts;
	counts->late = trace_order__late_cnt(trace->order);
	counts->forgotten = 0;
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		counts->forgotten += counts->received[tables[i]] - counts->written[tables[i]];
}

size_t trace__bytes(const struct trace *trace)
{
	return graph__bytes(trace->graph) + trace_order__bytes(trace->order) + TRACE_DETAILS * sizeof(*trace->details) +
	       TRACE_ARRIVALS * sizeof(*trace->arrivals) + sizeof(*trace->far);
}
