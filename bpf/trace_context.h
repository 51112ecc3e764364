/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The trace context of an interval, by which the application's own tracing knows it: the `traceparent` header (W3C
 * Trace Context) of an HTTP/1 request, and the thread-local record that OpenTelemetry's thread context (OTEP 4947)
 * publishes.
 */
#ifndef WHYLATE_BPF_TRACE_CONTEXT_H
#define WHYLATE_BPF_TRACE_CONTEXT_H

#include "context.h"

/* A header beyond so many bytes of a request is not found. */
#define TRACE_SCAN_BYTES 2048
#define TRACE_SCAN_WORDS (TRACE_SCAN_BYTES / 8)

struct trace_scan {
	u64 words[TRACE_SCAN_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct trace_scan);
} trace_scans SEC(".maps") __weak;

/* By process: where `otel_thread_ctx_v1` lies, from the thread pointer. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, s64);
} trace_slots SEC(".maps") __weak;

/* OTEP 4947. */
struct thread_context {
	u8 trace_id[WL_TRACE_ID_LEN];
	u8 span_id[WL_SPAN_ID_LEN];
	u8 valid;
	u8 reserved;
	u16 attrs_sz;
};

struct trace_search {
	struct open_interval *open;
	struct trace_scan *scan;
	u64 base;
	u64 len;
};

#define FOUR(a, b, c, d) ((u32)(a) | (u32)(b) << 8 | (u32)(c) << 16 | (u32)(d) << 24)
#define LOWER_FOUR       0x20202020U

/*
 * The eight aligned bytes of that index.  The name has eleven letters, so that four of them lie in the lower half of
 * one such word: which four tells where the name begins.  The buffer of the scan may be another task's by then, so the
 * name is compared in the target's own memory.
 */
static long trace_scan_step(u32 idx, struct trace_search *search)
{
	u64 at = (u64)idx * 8, name[2] = {};
	u32 word;

	if (idx >= TRACE_SCAN_WORDS || at >= search->len)
		return 1;
	word = (u32)search->scan->words[idx & (TRACE_SCAN_WORDS - 1)] | LOWER_FOUR;
	if (word == FOUR('t', 'r', 'a', 'c'))
		at -= 0;
	else if (word == FOUR('r', 'a', 'c', 'e'))
		at -= 1;
	else if (word == FOUR('a', 'c', 'e', 'p'))
		at -= 2;
	else if (word == FOUR('c', 'e', 'p', 'a'))
		at -= 3;
	else if (word == FOUR('e', 'p', 'a', 'r'))
		at -= 4;
	else if (word == FOUR('p', 'a', 'r', 'e'))
		at -= 5;
	else if (word == FOUR('a', 'r', 'e', 'n'))
		at -= 6;
	else if (word == FOUR('r', 'e', 'n', 't'))
		at -= 7;
	else
		return 0;
	if (at >= search->len || at + WL_TRACE_HEADER_LEN > search->len ||
	    bpf_probe_read_user(name, 12, (void *)(search->base + at)))
		return 0;
	if ((name[0] | 0x2020202020202020ULL) != ((u64)FOUR('e', 'p', 'a', 'r') << 32 | FOUR('t', 'r', 'a', 'c')) ||
	    ((u32)name[1] | 0x202020U) != FOUR('e', 'n', 't', ':'))
		return 0;
	if (!bpf_probe_read_user(search->open->trace.bytes, WL_TRACE_HEADER_LEN, (void *)(search->base + at)))
		search->open->trace.kind = WL_TRACE_HEADER;
	return 1;
}

static __always_inline bool is_upper_letter(u8 byte)
{
	return byte >= 'A' && byte <= 'Z';
}

/* `len` bytes at `base` are the beginning of the request, of which open->first has the first ones. */
VERIFIED_ONCE int open__find_trace(struct open_interval *open, u64 base, u64 len)
{
	struct trace_search search = {.open = open, .base = base};
	u32 key = 0, sz = len > TRACE_SCAN_BYTES ? TRACE_SCAN_BYTES : len;

	if (!open || !is_upper_letter(open->first[0]) || !is_upper_letter(open->first[1]) || sz < WL_TRACE_HEADER_LEN)
		return 0;
	search.scan = bpf_map_lookup_elem(&trace_scans, &key);
	if (!search.scan || bpf_probe_read_user(search.scan->words, sz, (void *)base))
		return 0;
	search.len = sz;
	bpf_loop(TRACE_SCAN_WORDS, trace_scan_step, &search, 0);
	return 0;
}

/* The interval ends on the current task: what its thread context says now. */
VERIFIED_ONCE int open__read_thread_context(struct open_interval *open, u32 pid)
{
	s64 *slot = bpf_map_lookup_elem(&trace_slots, &pid);
	struct thread_context context = {};
	u64 record = 0, tp;

	if (!open || !slot)
		return 0;
	tp = thread_pointer(bpf_get_current_task_btf());
	if (!tp || bpf_probe_read_user(&record, sizeof(record), (void *)(tp + *slot)) || !record ||
	    bpf_probe_read_user(&context, sizeof(context), (void *)record) || context.valid != 1)
		return 0;
	__builtin_memcpy(open->trace.bytes, context.trace_id, WL_TRACE_ID_LEN);
	__builtin_memcpy(open->trace.bytes + WL_TRACE_ID_LEN, context.span_id, WL_SPAN_ID_LEN);
	open->trace.kind = WL_TRACE_THREAD;
	return 0;
}

#endif
