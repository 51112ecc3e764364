// SPDX-License-Identifier: GPL-2.0-or-later
#include "view/export.h"

#include "analysis/story.h"
#include "base/names.h"
#include "base/protobuf.h"
#include "view/handed_on.h"

/* Field numbers: docs/perfetto.proto. */
enum {
	FIELD_TRACE_PACKET = 1,

	FIELD_PACKET_TIMESTAMP = 8,
	FIELD_PACKET_SEQUENCE_ID = 10,
	FIELD_PACKET_TRACK_EVENT = 11,
	FIELD_PACKET_INTERNED = 12,
	FIELD_PACKET_SEQUENCE_FLAGS = 13,
	FIELD_PACKET_TRACK_DESCRIPTOR = 60,
	FIELD_PACKET_PERF_SAMPLE = 66,

	FIELD_INTERNED_FUNCTION_NAMES = 5,
	FIELD_INTERNED_FRAMES = 6,
	FIELD_INTERNED_CALLSTACKS = 7,
	FIELD_INTERNED_BUILD_IDS = 16,
	FIELD_INTERNED_MAPPING_PATHS = 17,
	FIELD_INTERNED_MAPPINGS = 19,
	FIELD_IID = 1,
	FIELD_STRING = 2,
	FIELD_FRAME_FUNCTION = 2,
	FIELD_FRAME_MAPPING = 3,
	FIELD_FRAME_REL_PC = 4,
	FIELD_CALLSTACK_FRAMES = 2,
	FIELD_MAPPING_BUILD_ID = 2,
	FIELD_MAPPING_PATH = 7,

	FIELD_SAMPLE_PID = 2,
	FIELD_SAMPLE_TID = 3,
	FIELD_SAMPLE_CALLSTACK = 4,
	FIELD_SAMPLE_CPU_MODE = 5,

	FIELD_TRACK_UUID = 1,
	FIELD_TRACK_NAME = 2,
	FIELD_TRACK_PROCESS = 3,
	FIELD_TRACK_THREAD = 4,
	FIELD_TRACK_PARENT_UUID = 5,

	FIELD_PROCESS_PID = 1,
	FIELD_PROCESS_NAME = 6,
	FIELD_THREAD_PID = 1,
	FIELD_THREAD_TID = 2,
	FIELD_THREAD_NAME = 5,

	FIELD_EVENT_DEBUG = 4,
	FIELD_EVENT_TYPE = 9,
	FIELD_EVENT_TRACK_UUID = 11,
	FIELD_EVENT_CATEGORIES = 22,
	FIELD_EVENT_NAME = 23,
	FIELD_EVENT_FLOW_IDS = 47,
	FIELD_EVENT_TERMINATING_FLOW_IDS = 48,

	FIELD_DEBUG_UINT = 3,
	FIELD_DEBUG_STRING = 6,
	FIELD_DEBUG_NAME = 10,
};

enum event_type { SLICE_BEGIN = 1, SLICE_END = 2, INSTANT = 3 };

/* The one writer of the trace, and that nothing before its first packet is needed. */
#define SEQUENCE_ID   1
#define STATE_CLEARED 1
#define STATE_NEEDED  2
/* Samples refer to the functions of their own sequence. */
#define SAMPLES_SEQUENCE_ID 2
#define NAME_SZ             160
#define CONTEXT_SZ          1024
#define INTERVAL_UUID       (1ULL << 40) /* far above the uuids of threads and processes */

struct perfetto {
	FILE *out;
	const struct traces *traces;
	const struct samples *samples;
	struct proto packet, body, part;
	struct idmap track_ids; /* (session, kind | id) → uuid - 2; by the graph's numbers, under the graph's session */
	uint64_t flow_id;
	int64_t shift_ns; /* of the session that is under way */
	bool many_hosts;
	bool begun;
	int err;
};

enum track_kind { TRACK_OF_PROCESS = 1, TRACK_OF_THREAD = 2 };

static void write_packet(struct perfetto *perfetto)
{
	struct proto whole = perfetto->part;

	proto__reset(&whole);
	proto__message(&whole, FIELD_TRACE_PACKET, &perfetto->packet);
	if (whole.err)
		perfetto->err = whole.err;
	else if (fwrite(whole.items, 1, whole.cnt, perfetto->out) != whole.cnt)
		perfetto->err = -EIO;
	perfetto->part = whole;
	proto__reset(&perfetto->packet);
	proto__reset(&perfetto->body);
}

static void put_packet(struct perfetto *perfetto, uint32_t field)
{
	proto__uint(&perfetto->packet, FIELD_PACKET_SEQUENCE_ID, SEQUENCE_ID);
	if (!perfetto->begun)
		proto__uint(&perfetto->packet, FIELD_PACKET_SEQUENCE_FLAGS, STATE_CLEARED);
	perfetto->begun = true;
	proto__message(&perfetto->packet, field, &perfetto->body);
	write_packet(perfetto);
}

/* Sessions that share a graph share its tracks. */
static uint32_t track_owner(const struct perfetto *perfetto, uint32_t session)
{
	const struct trace_session *sessions = perfetto->traces->sessions.items;

	return sessions[session].joined ? perfetto->traces->stitch.places[session].group : session;
}

/* A new uuid; false: it is described already. */
static bool new_track(struct perfetto *perfetto, uint32_t session, enum track_kind kind, uint32_t id, uint64_t *uuid)
{
	uint32_t known = perfetto->track_ids.cnt, at = 0;

	if (idmap__id(&perfetto->track_ids, track_owner(perfetto, session), (uint64_t)kind << 32 | id, &at))
		perfetto->err = -ENOMEM;
	*uuid = (uint64_t)at + 2;
	return at == known;
}

static void describe_track(struct perfetto *perfetto, uint64_t uuid, const char *name, uint64_t parent_uuid)
{
	proto__uint(&perfetto->body, FIELD_TRACK_UUID, uuid);
	if (name)
		proto__string(&perfetto->body, FIELD_TRACK_NAME, name);
	if (parent_uuid)
		proto__uint(&perfetto->body, FIELD_TRACK_PARENT_UUID, parent_uuid);
	put_packet(perfetto, FIELD_PACKET_TRACK_DESCRIPTOR);
}

static const char *text_or_null(const struct perfetto *perfetto, uint32_t string)
{
	return string ? traces_string(perfetto->traces, string) : NULL;
}

static const struct trace_session *session_of(const struct perfetto *perfetto, uint32_t session)
{
	return &perfetto->traces->sessions.items[session];
}

static const char *thread_name(const struct perfetto *perfetto, uint32_t session, uint32_t pid, uint32_t tid)
{
	return traces_string(perfetto->traces,
			     traces_thread_name(perfetto->traces, session_of(perfetto, session), pid, tid));
}

/* Where pids and tids of several hosts meet, a track goes by its name alone: two hosts' threads are not one. */
static void describe_by_name(struct perfetto *perfetto, uint32_t session, uint64_t uuid, uint32_t pid, uint32_t tid,
			     uint64_t parent_uuid)
{
	const struct trace_session *of = traces_owner(perfetto->traces, session_of(perfetto, session), tid);
	char name[NAME_SZ];

	snprintf(name, sizeof(name), "%.60s: %.60s %u", traces_string(perfetto->traces, of->host),
		 thread_name(perfetto, session, pid, tid), traces_real_id(tid));
	describe_track(perfetto, uuid, name, parent_uuid);
}

static uint64_t process_track(struct perfetto *perfetto, uint32_t session, uint32_t pid)
{
	struct proto process = {0};
	uint64_t uuid;

	if (!new_track(perfetto, session, TRACK_OF_PROCESS, pid, &uuid))
		return uuid;
	if (perfetto->many_hosts) {
		describe_by_name(perfetto, session, uuid, pid, pid, 0);
		return uuid;
	}
	proto__uint(&process, FIELD_PROCESS_PID, pid);
	proto__string(&process, FIELD_PROCESS_NAME, thread_name(perfetto, session, pid, pid));
	proto__message(&perfetto->body, FIELD_TRACK_PROCESS, &process);
	proto__free(&process);
	describe_track(perfetto, uuid, NULL, 0);
	return uuid;
}

static uint64_t thread_track(struct perfetto *perfetto, uint32_t session, uint32_t pid, uint32_t tid)
{
	struct proto thread = {0};
	uint64_t uuid, parent_uuid;

	if (!pid)
		pid = traces_thread_pid(perfetto->traces, session_of(perfetto, session), tid);
	if (!new_track(perfetto, session, TRACK_OF_THREAD, tid, &uuid))
		return uuid;
	parent_uuid = process_track(perfetto, session, pid);
	if (perfetto->many_hosts) {
		describe_by_name(perfetto, session, uuid, pid, tid, parent_uuid);
		return uuid;
	}
	proto__uint(&thread, FIELD_THREAD_PID, pid);
	proto__uint(&thread, FIELD_THREAD_TID, tid);
	proto__string(&thread, FIELD_THREAD_NAME, thread_name(perfetto, session, pid, tid));
	proto__message(&perfetto->body, FIELD_TRACK_THREAD, &thread);
	proto__free(&thread);
	describe_track(perfetto, uuid, NULL, parent_uuid);
	return uuid;
}

static void annotate(struct perfetto *perfetto, const char *name, const char *text, uint64_t number)
{
	struct proto annotation = {0};

	if (!text && !number)
		return;
	proto__string(&annotation, FIELD_DEBUG_NAME, name);
	if (text)
		proto__string(&annotation, FIELD_DEBUG_STRING, text);
	else
		proto__uint(&annotation, FIELD_DEBUG_UINT, number);
	proto__message(&perfetto->body, FIELD_EVENT_DEBUG, &annotation);
	proto__free(&annotation);
}

/* Whatever else the event says has been put into the body before. */
static void put_event(struct perfetto *perfetto, enum event_type type, uint64_t uuid, uint64_t ts, const char *category,
		      const char *name)
{
	proto__uint(&perfetto->packet, FIELD_PACKET_TIMESTAMP, ts + (uint64_t)perfetto->shift_ns);
	proto__uint(&perfetto->body, FIELD_EVENT_TYPE, type);
	proto__uint(&perfetto->body, FIELD_EVENT_TRACK_UUID, uuid);
	if (category)
		proto__string(&perfetto->body, FIELD_EVENT_CATEGORIES, category);
	if (name)
		proto__string(&perfetto->body, FIELD_EVENT_NAME, name);
	put_packet(perfetto, FIELD_PACKET_TRACK_EVENT);
}

static void put_segments(struct perfetto *perfetto, uint32_t session, uint32_t tid)
{
	const struct graph *graph = perfetto->traces->sessions.items[session].graph;
	struct graph_segment *segments;
	uint64_t uuid, end_ts = 0;
	size_t cnt;

	segments = graph__segments(graph, tid, 0, UINT64_MAX, &cnt);
	for (size_t i = 0; i < cnt && !perfetto->err; i++) {
		const struct graph_segment *segment = &segments[i];
		/* Slices of a track nest or follow each other: an overlap would be drawn as neither. */
		uint64_t begin_ts = segment->begin_ts > end_ts ? segment->begin_ts : end_ts;

		if (segment->end_ts <= begin_ts)
			continue;
		uuid = thread_track(perfetto, session, segment->pid, tid);
		annotate(perfetto, "sid", NULL,
			 traces_real_sid(perfetto->traces, session_of(perfetto, session), tid, segment->sid));
		annotate(perfetto, "object", text_or_null(perfetto, segment->object_name), segment->object);
		annotate(perfetto, "syscall", text_or_null(perfetto, segment->syscall), 0);
		annotate(perfetto, "type", text_or_null(perfetto, segment->type), 0);
		if (segment->state == WL_STATE_BLOCKED_FUTEX)
			annotate(perfetto, "owner_tid", NULL, traces_real_id(segment->owner_tid));
		else
			annotate(perfetto, "cpu_went_to", text_or_null(perfetto, segment->by_name),
				 traces_real_id(segment->by_tid));
		put_event(perfetto, SLICE_BEGIN, uuid, begin_ts, "state", state_name(segment->state));
		put_event(perfetto, SLICE_END, uuid, segment->end_ts, NULL, NULL);
		end_ts = segment->end_ts;
	}
}

/* An arrow from one thread at one time to another thread at another time. */
static void put_flow(struct perfetto *perfetto, const char *category, uint64_t from_uuid, uint64_t from_ts,
		     const char *from_name, uint64_t to_uuid, uint64_t to_ts, const char *to_name,
		     const char *certainty)
{
	uint64_t id = ++perfetto->flow_id;

	annotate(perfetto, "certainty", certainty, 0);
	proto__fixed64(&perfetto->body, FIELD_EVENT_FLOW_IDS, id);
	put_event(perfetto, INSTANT, from_uuid, from_ts, category, from_name);
	annotate(perfetto, "certainty", certainty, 0);
	proto__fixed64(&perfetto->body, FIELD_EVENT_TERMINATING_FLOW_IDS, id);
	put_event(perfetto, INSTANT, to_uuid, to_ts, category, to_name);
}

static void name_with(char name[NAME_SZ], const char *verb, const char *comm, uint32_t tid)
{
	snprintf(name, NAME_SZ, "%s %s%s%u", verb, comm, *comm ? " " : "", traces_real_id(tid));
}

static void put_wakeups(struct perfetto *perfetto, uint32_t session, uint32_t tid)
{
	const struct graph *graph = perfetto->traces->sessions.items[session].graph;
	char from_name[NAME_SZ], to_name[NAME_SZ];
	struct graph_wakeup *wakeups;
	size_t cnt;

	wakeups = graph__wakeups(graph, tid, 0, UINT64_MAX, &cnt);
	for (size_t i = 0; i < cnt && !perfetto->err; i++) {
		const struct graph_wakeup *wakeup = &wakeups[i];
		uint64_t from_uuid, to_uuid;

		if (!wakeup->waker_tid)
			continue;
		from_uuid = thread_track(perfetto, session, wakeup->waker_pid, wakeup->waker_tid);
		to_uuid = thread_track(perfetto, session, 0, tid);
		name_with(from_name, "wakes", thread_name(perfetto, session, 0, tid), tid);
		name_with(to_name, "woken by", traces_string(perfetto->traces, wakeup->waker_name), wakeup->waker_tid);
		put_flow(perfetto, "wakeup", from_uuid, wakeup->ts, from_name, to_uuid, wakeup->ts, to_name,
			 certainty_name(wakeup->certainty));
	}
}

static void put_handoffs(struct perfetto *perfetto, uint32_t session, uint32_t tid)
{
	const struct graph *graph = perfetto->traces->sessions.items[session].graph;
	char from_name[NAME_SZ], to_name[NAME_SZ], verb[32];
	struct graph_handoff *handoffs;
	size_t cnt;

	handoffs = graph__handoffs_to(graph, tid, 0, UINT64_MAX, &cnt);
	for (size_t i = 0; i < cnt && !perfetto->err; i++) {
		const struct graph_handoff *handoff = &handoffs[i];
		uint64_t from_uuid, to_uuid;

		if (!handoff->from_tid)
			continue;
		from_uuid = thread_track(perfetto, session, handoff->from_pid, handoff->from_tid);
		to_uuid = thread_track(perfetto, session, handoff->to_pid, tid);
		snprintf(verb, sizeof(verb), "%s to", handoff_name(handoff->kind));
		name_with(from_name, verb, thread_name(perfetto, session, handoff->to_pid, tid), tid);
		snprintf(verb, sizeof(verb), "%s from", handoff_name(handoff->kind));
		name_with(to_name, verb, thread_name(perfetto, session, handoff->from_pid, handoff->from_tid),
			  handoff->from_tid);
		put_flow(perfetto, "handoff", from_uuid, handoff->from_ts, from_name, to_uuid, handoff->to_ts, to_name,
			 certainty_name(handoff->certainty));
	}
}

static void put_step(struct perfetto *perfetto, const struct trace_session *session, uint64_t uuid,
		     const struct story_step *step)
{
	char name[NAME_SZ];

	snprintf(name, sizeof(name), "%s%s%.60s", category_name(step->category),
		 step->culprit_comm || step->depth ? ": " : "",
		 step->culprit_comm ? step->culprit_comm
		 : step->depth      ? (step->comm ? step->comm : "?")
				    : "");
	annotate(perfetto, "thread", step->comm, 0);
	annotate(perfetto, "host", step->host, 0);
	annotate(perfetto, "tid", NULL, step->tid);
	annotate(perfetto, "state", state_name(step->state), 0);
	annotate(perfetto, "object", step->object, 0);
	annotate(perfetto, "syscall", step->syscall, 0);
	annotate(perfetto, "culprit", step->culprit_comm, 0);
	annotate(perfetto, "culprit_tid", NULL, step->culprit_tid);
	annotate(perfetto, "other_sid", NULL, step->other_sid);
	annotate(perfetto, "certainty", certainty_name(step->certainty), 0);
	annotate(perfetto, "call_path", step->call_path, 0);
	put_event(perfetto, SLICE_BEGIN, uuid, traces_graph_ts(perfetto->traces, session, step->begin_ts), "path",
		  name);
	put_event(perfetto, SLICE_END, uuid, traces_graph_ts(perfetto->traces, session, step->end_ts), NULL, NULL);
}

/* In which it ended, where it was handed on. */
static void annotate_context(struct perfetto *perfetto, const struct trace_session *session,
			     const struct trace_interval *interval)
{
	const struct context_chains *chains = &perfetto->traces->chains;
	uint32_t chain = context_chains__find(chains, session->id, interval->context);
	char text[CONTEXT_SZ];

	if (chain != CONTEXT_CHAIN_NONE)
		annotate(perfetto, "context", view_handed_on(text, sizeof(text), chains, chain), 0);
}

static int put_interval(struct perfetto *perfetto, const struct trace_interval *interval, uint64_t uuid,
			struct path *path)
{
	const struct trace_session *session = session_of(perfetto, interval->session);
	struct arena *arena = arena__new();
	struct story story;
	char name[NAME_SZ];
	int err = arena ? story_make(&story, perfetto->traces, perfetto->samples, interval, path, arena) : -ENOMEM;

	if (err)
		goto cleanup;
	snprintf(name, sizeof(name), "%.60s sid %llu", *story.type ? story.type : "interval",
		 (unsigned long long)story.sid);
	describe_track(perfetto, uuid, name,
		       process_track(perfetto, interval->session, traces_graph_id(session, story.pid)));
	annotate(perfetto, "sid", NULL, story.sid);
	annotate(perfetto, "tid", NULL, story.tid);
	annotate(perfetto, "path_flags", NULL, story.path_flags);
	annotate_context(perfetto, session, interval);
	put_event(perfetto, SLICE_BEGIN, uuid, traces_graph_ts(perfetto->traces, session, story.begin_ts), "interval",
		  *story.type ? story.type : "interval");
	for (size_t i = 0; i < story.step_cnt && !perfetto->err; i++)
		put_step(perfetto, session, uuid, &story.steps[i]);
	put_event(perfetto, SLICE_END, uuid, traces_graph_ts(perfetto->traces, session, story.end_ts), NULL, NULL);
cleanup:
	arena__free(arena);
	return err ? err : perfetto->err;
}

/* --- samples -------------------------------------------------------------------------------------------------------
 */

static void put_string_of(struct perfetto *perfetto, uint32_t field, uint64_t iid, const char *text)
{
	struct proto string = {0};

	proto__uint(&string, FIELD_IID, iid);
	proto__string(&string, FIELD_STRING, text);
	proto__message(&perfetto->body, field, &string);
	proto__free(&string);
}

/* One of everything: functions are told by their names, not by where they lie. */
static void put_mapping(struct perfetto *perfetto)
{
	struct proto mapping = {0};

	put_string_of(perfetto, FIELD_INTERNED_BUILD_IDS, 1, "");
	put_string_of(perfetto, FIELD_INTERNED_MAPPING_PATHS, 1, "whylate");
	proto__uint(&mapping, FIELD_IID, 1);
	proto__uint(&mapping, FIELD_MAPPING_BUILD_ID, 1);
	proto__uint(&mapping, FIELD_MAPPING_PATH, 1);
	proto__message(&perfetto->body, FIELD_INTERNED_MAPPINGS, &mapping);
	proto__free(&mapping);
}

/* Call path i is node i of the samples' tree, function and frame i its name i - 1. */
static void put_functions(struct perfetto *perfetto)
{
	const struct samples *samples = perfetto->samples;
	struct proto frame = {0}, stack = {0};
	uint32_t path[512];

	put_mapping(perfetto);
	for (uint32_t name = 0; name < samples->names.cnt; name++) {
		put_string_of(perfetto, FIELD_INTERNED_FUNCTION_NAMES, name + 1, samples->names.strings[name]);
		proto__reset(&frame);
		proto__uint(&frame, FIELD_IID, name + 1);
		proto__uint(&frame, FIELD_FRAME_FUNCTION, name + 1);
		proto__uint(&frame, FIELD_FRAME_MAPPING, 1);
		proto__uint(&frame, FIELD_FRAME_REL_PC, name + 1);
		proto__message(&perfetto->body, FIELD_INTERNED_FRAMES, &frame);
	}
	for (uint32_t node = 1; node < samples->nodes.cnt; node++) {
		size_t depth = 0;

		for (uint32_t at = node; at != SAMPLE_ROOT && depth < sizeof(path) / sizeof(path[0]);
		     at = samples->nodes.items[at].parent)
			path[depth++] = samples->nodes.items[at].name + 1;
		proto__reset(&stack);
		proto__uint(&stack, FIELD_IID, node);
		while (depth)
			proto__uint(&stack, FIELD_CALLSTACK_FRAMES, path[--depth]);
		proto__message(&perfetto->body, FIELD_INTERNED_CALLSTACKS, &stack);
	}
	proto__free(&frame);
	proto__free(&stack);
	proto__message(&perfetto->packet, FIELD_PACKET_INTERNED, &perfetto->body);
	proto__reset(&perfetto->body);
}

static void put_sample(struct perfetto *perfetto, const struct sample *sample)
{
	enum { MODE_KERNEL = 1, MODE_USER = 2 };
	bool kernel = perfetto->samples->nodes.items[sample->node].kernel;

	proto__uint(&perfetto->packet, FIELD_PACKET_TIMESTAMP, sample->ts);
	proto__uint(&perfetto->packet, FIELD_PACKET_SEQUENCE_ID, SAMPLES_SEQUENCE_ID);
	proto__uint(&perfetto->packet, FIELD_PACKET_SEQUENCE_FLAGS, STATE_NEEDED);
	proto__uint(&perfetto->body, FIELD_SAMPLE_PID, traces_real_id(sample->pid));
	proto__uint(&perfetto->body, FIELD_SAMPLE_TID, traces_real_id(sample->tid));
	proto__uint(&perfetto->body, FIELD_SAMPLE_CALLSTACK, sample->node);
	proto__uint(&perfetto->body, FIELD_SAMPLE_CPU_MODE, kernel ? MODE_KERNEL : MODE_USER);
	proto__message(&perfetto->packet, FIELD_PACKET_PERF_SAMPLE, &perfetto->body);
	write_packet(perfetto);
}

/* Ticks, on the tracks of their threads.  Tracks of several hosts go by name, which samples have none of. */
static void put_samples(struct perfetto *perfetto)
{
	const struct samples *samples = perfetto->samples;
	bool begun = false;

	for (size_t i = 0; i < samples->rows.cnt && !perfetto->many_hosts && !perfetto->err; i++) {
		const struct sample *sample = &samples->rows.items[i];

		if (sample->end_ts || sample->node == SAMPLE_ROOT)
			continue;
		if (!begun) {
			proto__uint(&perfetto->packet, FIELD_PACKET_SEQUENCE_ID, SAMPLES_SEQUENCE_ID);
			proto__uint(&perfetto->packet, FIELD_PACKET_SEQUENCE_FLAGS, STATE_CLEARED);
			write_packet(perfetto);
			put_functions(perfetto);
		}
		begun = true;
		put_sample(perfetto, sample);
	}
}

int export_perfetto(FILE *out, const struct traces *traces, const struct samples *samples)
{
	struct perfetto perfetto = {
		.out = out,
		.traces = traces,
		.samples = samples,
		.many_hosts = traces_many_hosts(traces),
	};
	struct path path = {0};
	int err = 0;

	for (uint32_t s = 0; s < traces->sessions.cnt; s++) {
		const struct trace_session *session = &traces->sessions.items[s];

		perfetto.shift_ns = traces_shift_ns(traces, &traces->sessions.items[track_owner(&perfetto, s)]);
		for (size_t t = 0; t < session->tids.cnt && !perfetto.err; t++) {
			put_segments(&perfetto, s, session->tids.items[t]);
			put_wakeups(&perfetto, s, session->tids.items[t]);
			put_handoffs(&perfetto, s, session->tids.items[t]);
		}
	}
	if (samples)
		put_samples(&perfetto);
	err = perfetto.err;
	for (size_t i = 0; i < traces->intervals.cnt && !err; i++) {
		const struct trace_interval *interval = &traces->intervals.items[i];

		perfetto.shift_ns =
			traces_shift_ns(traces, &traces->sessions.items[track_owner(&perfetto, interval->session)]);
		err = put_interval(&perfetto, interval, INTERVAL_UUID + i, &path);
	}
	path__clear(&path);
	proto__free(&perfetto.packet);
	proto__free(&perfetto.body);
	proto__free(&perfetto.part);
	idmap__free(&perfetto.track_ids);
	if (err)
		return err;
	return fflush(out) || ferror(out) ? -EIO : 0;
}
