// SPDX-License-Identifier: GPL-2.0-only
#include "model/trace_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The tables of order, sockets and details come out of the same purse as the graph. */
#define GRAPH_SHARE(memory) ((memory) - (memory) / 4)
/* An interval is looked at when the calls that belong to its end have returned, which a sender's may do late. */
#define SETTLE_NS 5000000ULL
/* A fault's stretches that are looked back at. */
#define FAULT_LOOKS_MAX 64
/* Path and hand-off of an interval that moved: segments that are looked at. */
#define MOVED_LOOKS_MAX 4096

struct trace *trace__new(const struct trace_opts *opts)
{
	struct trace *trace = calloc(1, sizeof(*trace));

	if (!trace)
		return NULL;
	trace->opts = *opts;
	trace->order = trace_order__new();
	trace->sockets = trace_sockets__new();
	trace->graph = graph__new();
	trace->details = calloc(TRACE_DETAILS, sizeof(*trace->details));
	if (trace->order && trace->sockets && trace->graph && trace->details)
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
	graph__free(trace->graph);
	path__clear(&trace->path);
	free(trace->details);
	vec_free(&trace->pending);
	free(trace);
}

static int take(struct trace *trace, struct trace_item *item, const struct wl_record_header *record, void *place)
{
	item->kind = record->kind;
	item->cpu = record->cpu < GRAPH_NO_CPU ? record->cpu : GRAPH_NO_CPU;
	if (place)
		memcpy(place, record, record->sz);
	return trace_order__add(trace->order, item);
}

int trace__take(struct trace *trace, const struct wl_record_header *record)
{
	struct trace_item item = {0};

	if (record->kind < WL_RECORD_KIND_CNT)
		trace->counts.taken[record->kind]++;
	switch (record->kind) {
	case WL_RECORD_SEGMENT:
		item.ts = ((const struct wl_segment_record *)record)->end_ts;
		return take(trace, &item, record, &item.segment);
	case WL_RECORD_WAKEUP:
		item.ts = ((const struct wl_wakeup_record *)record)->ts;
		return take(trace, &item, record, &item.wakeup);
	case WL_RECORD_SOCKET:
		item.ts = ((const struct wl_socket_record *)record)->ts;
		return take(trace, &item, record, &item.socket);
	case WL_RECORD_BLOCK:
		item.ts = ((const struct wl_block_record *)record)->complete_ts;
		return take(trace, &item, record, &item.block);
	case WL_RECORD_TASK:
		item.ts = ((const struct wl_task_record *)record)->ts;
		return take(trace, &item, record, &item.task);
	}
	return -EBADMSG;
}

int trace__take_interval(struct trace *trace, const struct wl_interval_record *record, bool keep)
{
	struct trace_item item = {.ts = record->end_ts};

	item.interval.keep = keep;
	item.interval.interval = (struct graph_interval){
		.sid = record->sid,
		.begin_ts = record->begin_ts,
		.pickup_ts = record->pickup_ts,
		.end_ts = record->end_ts,
		.pid = record->pid,
		.tid = record->tid,
		.end_tid = record->end_tid,
		.flags = record->flags,
	};
	return take(trace, &item, &record->header, NULL);
}

int trace__lost(struct trace *trace, uint64_t from_ts, uint64_t to_ts)
{
	return graph__add_loss(trace->graph, from_ts, to_ts);
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
	bool off_cpu = record->flags & WL_SEGMENT_OFF_CPU;
	struct graph_segment segment = {
		.begin_ts = record->begin_ts,
		.end_ts = record->end_ts,
		.sid = record->sid,
		.object = record->object,
		.pid = record->pid,
		.owner_tid = runnable ? 0 : record->other_tid,
		.by_pid = runnable ? record->other_pid : 0,
		.by_tid = runnable ? record->other_tid : 0,
		.syscall = TRACE_SYSCALL(record->sysno),
		.cpu = cpu,
		.state = record->state,
	};
	int err;

	if (record->state == WL_STATE_FAULT_PENDING) {
		segment.state = off_cpu ? WL_STATE_FAULT_MAJOR : WL_STATE_FAULT_MINOR;
		segment.mark = TRACE_PENDING;
	} else if (record->state == WL_STATE_FAULT_MINOR || record->state == WL_STATE_FAULT_MAJOR) {
		resolve_fault(trace, record);
	}
	if (off_cpu || (record->state >= WL_STATE_BLOCKED_FUTEX && record->state <= WL_STATE_BLOCKED_OTHER))
		segment.cpu = GRAPH_NO_CPU;
	if (record->flags & WL_SEGMENT_SUSPECT)
		segment.mark |= TRACE_SUSPECT;
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
	if (!err && record->io_ts && !by_task)
		err = trace__block_waiter(trace, record, cpu);
	if (!err && by_task && (record->waker_file == WL_FILE_PIPE || record->waker_file == WL_FILE_EVENTFD))
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

/*
 * The interval ended on another thread than the one that read it: a queue of the program lies between.  Where the
 * reader woke that thread, it handed the interval over then; otherwise when it turned to something else.
 */
static uint64_t handed_over_ts(struct trace *trace, const struct graph_interval *interval)
{
	struct graph_wakeup *wakeup =
		graph__wakeup_in(trace->graph, interval->end_tid, interval->pickup_ts, interval->end_ts);
	struct graph_segment *segments;
	size_t cnt;

	if (wakeup && wakeup->waker_tid == interval->tid)
		return wakeup->ts;
	segments = graph__segments(trace->graph, interval->tid, interval->pickup_ts, interval->end_ts, &cnt);
	for (size_t i = 0; i < cnt && i < MOVED_LOOKS_MAX; i++)
		if (segments[i].begin_ts > interval->pickup_ts &&
		    (segments[i].sid != interval->sid ||
		     (segments[i].state >= WL_STATE_BLOCKED_FUTEX && segments[i].state <= WL_STATE_BLOCKED_OTHER)))
			return segments[i].begin_ts;
	return interval->pickup_ts;
}

static bool waits_for_work(const struct graph_segment *segment)
{
	return segment->state == WL_STATE_BLOCKED_FUTEX || segment->state == WL_STATE_BLOCKED_POLL ||
	       segment->state == WL_STATE_BLOCKED_PIPE;
}

/*
 * Of an interval that was not selected and was read elsewhere only the last stretch, its reply, has its sid.  What the
 * thread did before that, since its last interval and since it last waited for work, was for the same one.
 */
static void label_back(struct graph_segment *segments, size_t reply)
{
	for (size_t i = reply; i-- > 0 && !segments[i].sid && !waits_for_work(&segments[i]);)
		segments[i].sid = segments[reply].sid;
}

/* When the thread that answered began to work on it: after its last other interval, and after it was woken for it. */
static uint64_t taken_over_ts(struct graph_segment *segments, size_t cnt, const struct graph_interval *interval,
			      uint64_t handed_ts)
{
	uint64_t taken_ts = handed_ts;
	size_t first = 0;

	for (size_t i = 0; i < cnt; i++) {
		if (!segments[i].sid || segments[i].sid == interval->sid)
			continue;
		label_back(segments, i);
		first = i + 1;
		if (segments[i].end_ts > taken_ts)
			taken_ts = segments[i].end_ts;
	}
	for (size_t i = first; i < cnt; i++) {
		if (segments[i].begin_ts > taken_ts || segments[i].end_ts <= taken_ts)
			continue;
		if (waits_for_work(&segments[i]))
			return segments[i].end_ts;
	}
	return taken_ts;
}

static int on_moved(struct trace *trace, const struct graph_interval *interval)
{
	uint64_t handed_ts = handed_over_ts(trace, interval), taken_ts;
	struct graph_segment *segments;
	size_t cnt;

	/* What the reader did later is labelled with its last interval, for want of another. */
	segments = graph__segments(trace->graph, interval->tid, handed_ts, interval->end_ts, &cnt);
	for (size_t i = 0; i < cnt && i < MOVED_LOOKS_MAX; i++)
		if (segments[i].sid == interval->sid && segments[i].begin_ts >= handed_ts)
			segments[i].sid = 0;
	segments = graph__segments(trace->graph, interval->end_tid, interval->begin_ts, interval->end_ts, &cnt);
	if (cnt > MOVED_LOOKS_MAX) {
		segments += cnt - MOVED_LOOKS_MAX;
		cnt = MOVED_LOOKS_MAX;
	}
	taken_ts = taken_over_ts(segments, cnt, interval, handed_ts);
	for (size_t i = 0; i < cnt; i++)
		if (!segments[i].sid && segments[i].begin_ts >= taken_ts)
			segments[i].sid = interval->sid;
	return trace__add_queue(trace, interval, handed_ts, taken_ts);
}

static int on_interval(struct trace *trace, const struct ended_interval *ended)
{
	int err = graph__add_interval(trace->graph, &ended->interval);

	if (err == -EINVAL) {
		trace->counts.impossible++;
		return 0;
	}
	if (!err && ended->interval.flags & WL_INTERVAL_MOVED && ended->interval.tid != ended->interval.end_tid)
		err = on_moved(trace, &ended->interval);
	if (err || !ended->keep)
		return err;
	return vec_push(&trace->pending, ended->interval);
}

static int on_item(void *owner, const struct trace_item *item)
{
	struct trace *trace = owner;

	switch (item->kind) {
	case WL_RECORD_SEGMENT:
		return on_segment(trace, &item->segment, item->cpu);
	case WL_RECORD_WAKEUP:
		return on_wakeup(trace, &item->wakeup, item->cpu);
	case WL_RECORD_SOCKET:
		return trace_sockets__take(trace->sockets, &item->socket, trace__on_received, trace);
	case WL_RECORD_BLOCK:
		return trace__take_block(trace, &item->block, item->cpu);
	case WL_RECORD_TASK:
		return on_task(trace, &item->task);
	default:
		return on_interval(trace, &item->interval);
	}
}

static int advance(struct trace *trace, uint64_t until_ts)
{
	uint64_t settled_ts = until_ts == UINT64_MAX ? UINT64_MAX : until_ts - SETTLE_NS;
	size_t done = 0;
	int err;

	err = trace_order__release(trace->order, until_ts, on_item, trace);
	if (!err)
		err = trace_sockets__settle(trace->sockets, settled_ts, trace__on_received, trace);
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
	trace->mappings = mappings;
	return advance(trace, now_ts > TRACE_WINDOW_NS ? now_ts - TRACE_WINDOW_NS : 0);
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
	return graph__bytes(trace->graph) + trace_order__bytes(trace->order) + TRACE_DETAILS * sizeof(*trace->details);
}
