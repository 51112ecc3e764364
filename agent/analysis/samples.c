// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/samples.h"

#include "base/arena.h"
#include "base/folded.h"
#include "base/idmap.h"
#include "base/names.h"
#include "base/order.h"
#include "base/progress.h"
#include "base/vec.h"
#include "shard/columns.h"

#include <math.h>
#include <string.h>

/* Longer call paths keep their outermost frames. */
#define FRAMES_MAX 256
/* A recording without ends of waits took the stack of a wait at most this long before the wait's segment begins. */
#define EARLY_NS 100000ULL

static uint32_t group_of(const struct traces *traces, const struct trace_session *session)
{
	uint32_t number = (uint32_t)(session - traces->sessions.items);

	return session->joined ? traces->stitch.places[number].group : number;
}

/* The node under the sample's for each of the frames "root;…;leaf"; a frame that is a guess is left out. */
static int add_frames(struct samples *samples, const char *frames, bool kernel, struct sample *sample)
{
	char name[1024];
	uint32_t string, id;

	for (size_t i = 0; i < FRAMES_MAX && *frames; i++) {
		size_t len = strcspn(frames, ";"), kept = len < sizeof(name) ? len : sizeof(name) - 1;

		memcpy(name, frames, kept);
		name[kept] = '\0';
		frames += len + (frames[len] == ';');
		if (*name == '?')
			continue;
		if (!strcmp(name, FRAME_SPIN)) {
			sample->spins = true;
			continue;
		}
		if (intern__id(&samples->names, name, &string) ||
		    idmap__id(&samples->node_ids, sample->node, string, &id))
			return -ENOMEM;
		/* The root has no name and no place in the map. */
		if (id + 1 == samples->nodes.cnt &&
		    vec_push(&samples->nodes,
			     ((struct sample_node){.parent = sample->node, .name = string, .kernel = kernel})))
			return -ENOMEM;
		sample->node = id + 1;
	}
	return 0;
}

/*
 * A tick is an interrupt itself: its thread's segment at that time is the interrupt's.  What it interrupted is what it
 * tells of, so its time becomes the last one of the segment before.
 */
static void to_interrupted(struct sample *sample, const struct graph *graph)
{
	size_t before;
	const struct graph_segment *segment = graph__segment_before(graph, sample->tid, sample->ts + 1, &before);

	if (sample->end_ts || !segment || segment->end_ts < sample->ts)
		return;
	while (before && state_is_interrupt(segment->state) && segment[-1].end_ts == segment->begin_ts) {
		segment--;
		before--;
	}
	if (state_is_on_cpu(segment->state) && segment->end_ts <= sample->ts)
		sample->ts = segment->end_ts - 1;
}

static uint64_t ts_of(const struct samples *samples, const struct trace_session *session, uint64_t ts)
{
	return session ? traces_graph_ts(samples->traces, session, ts) : ts;
}

static uint32_t id_of(const struct trace_session *session, uint64_t id)
{
	return session ? traces_graph_id(session, (uint32_t)id) : (uint32_t)id;
}

/* session NULL: without traces. */
static int take_block(struct samples *samples, const struct trace_session *session, uint32_t group,
		      const struct shard_block *block)
{
	const struct stack_columns col = block_columns(block, STACK, stack);

	for (uint32_t row = 0; row < block->row_cnt; row++) {
		uint64_t pid_value = column_u64(col.pid, row), tid_value = column_u64(col.tid, row);
		int state_value = state_by_name(column_text(col.state, row));
		struct sample sample = {
			.group = group,
			.ts = ts_of(samples, session, column_u64(col.ts, row)),
			.sid = column_is_null(col.sid, row) ? 0 : column_u64(col.sid, row),
			.taken_ts = column_u64(col.ts, row),
			.session_id = block->session_id,
			.amount = 1,
			.node = SAMPLE_ROOT,
		};

		if (!tid_value || tid_value > TRACE_ID_MASK || pid_value > TRACE_ID_MASK || state_value < 0) {
			samples->bad_rows++;
			continue;
		}
		sample.tid = id_of(session, tid_value);
		sample.pid = id_of(session, pid_value);
		sample.state = (uint8_t)state_value;
		if (!column_is_null(col.end_ts, row) && column_u64(col.end_ts, row))
			sample.end_ts = ts_of(samples, session, column_u64(col.end_ts, row));
		if (!column_is_null(col.period_ns, row) && isfinite(col.period_ns->values[row].f64) &&
		    col.period_ns->values[row].f64 > 0)
			sample.amount = col.period_ns->values[row].f64;
		if (!column_is_null(col.weight, row) && isfinite(col.weight->values[row].f64) &&
		    col.weight->values[row].f64 > 0)
			sample.weight = col.weight->values[row].f64;
		if (session && session->graph)
			to_interrupted(&sample, session->graph);
		if (add_frames(samples, column_text(col.frames, row), false, &sample) ||
		    (!column_is_null(col.kernel_frames, row) &&
		     add_frames(samples, column_text(col.kernel_frames, row), true, &sample)) ||
		    vec_push(&samples->rows, sample))
			return -ENOMEM;
	}
	return 0;
}

ORDER(compare_samples, struct sample, BY(a->group, b->group), BY(a->tid, b->tid), BY(a->ts, b->ts));

ORDER(compare_by_sid, struct sample, BY(a->group, b->group), BY(a->sid, b->sid), BY(a->ts, b->ts));

static int take_any_block(struct samples *samples, const struct shard_block *block)
{
	const struct trace_session *session;
	uint32_t group;

	if (samples->traces) {
		session = traces_session(samples->traces, block->session_id);
		return session ? take_block(samples, session, group_of(samples->traces, session), block) : 0;
	}
	if (idmap__id(&samples->session_ids, block->session_id, 0, &group))
		return -ENOMEM;
	return take_block(samples, NULL, group, block);
}

int samples_load(struct samples *samples, const struct traces *traces, struct shard_reader *reader)
{
	static const char *const tables[] = {"stack"};
	const struct shard_block *block;
	int err;

	progress_at("reading stacks");
	*samples = (struct samples){.traces = traces, .arena = arena__new()};
	samples->names.arena = samples->arena;
	err = samples->arena ? vec_push(&samples->nodes, ((struct sample_node){0})) : -ENOMEM;
	if (!err)
		err = shard_reader__select(reader, tables, 1);
	while (!err && (err = shard_reader__next(reader, &block)) > 0)
		err = take_any_block(samples, block);
	if (err) {
		samples_free(samples);
		return err;
	}
	vec_sort(&samples->rows, traces ? compare_samples : compare_by_sid);
	return 0;
}

void samples_free(struct samples *samples)
{
	vec_free(&samples->rows);
	vec_free(&samples->nodes);
	idmap__free(&samples->node_ids);
	idmap__free(&samples->session_ids);
	intern__free(&samples->names);
	arena__free(samples->arena);
	*samples = (struct samples){0};
}

static size_t first_from(const struct samples *samples, const struct sample *least)
{
	return search_first(0, samples->rows.cnt, mid, compare_samples(&samples->rows.items[mid], least) >= 0);
}

const struct sample *samples_of(const struct samples *samples, const struct trace_session *session, uint32_t tid,
				uint64_t from_ts, uint64_t to_ts, size_t *cnt)
{
	struct sample least = {.tid = tid, .ts = from_ts};
	size_t first, end;

	*cnt = 0;
	if (!samples || !samples->rows.cnt)
		return NULL;
	least.group = group_of(samples->traces, session);
	first = first_from(samples, &least);
	/* A wait that has begun before. */
	while (first && samples->rows.items[first - 1].tid == tid &&
	       samples->rows.items[first - 1].group == least.group &&
	       (samples->rows.items[first - 1].end_ts > from_ts ||
		samples->rows.items[first - 1].ts + EARLY_NS > from_ts))
		first--;
	least.ts = to_ts;
	end = first_from(samples, &least);
	*cnt = end > first ? end - first : 0;
	return &samples->rows.items[first];
}

const struct sample *samples_of_sid(const struct samples *samples, uint64_t session_id, uint64_t sid, size_t *cnt)
{
	struct sample least = {.sid = sid};
	size_t first, end;

	*cnt = 0;
	if (!sid || !idmap__find(&samples->session_ids, session_id, 0, &least.group))
		return NULL;
	first = search_first(0, samples->rows.cnt, mid, compare_by_sid(&samples->rows.items[mid], &least) >= 0);
	for (end = first; end < samples->rows.cnt && samples->rows.items[end].group == least.group &&
			  samples->rows.items[end].sid == sid;
	     end++)
		;
	*cnt = end - first;
	return &samples->rows.items[first];
}

bool samples_is_start(const char *name)
{
	static const char *const starts[] = {
		"_start", "__libc_start_main", "__libc_start_call_main", "main", "clone", "__clone", "__clone3",
		"clone3", "start_thread"};

	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		if (!strncmp(name, starts[i], strlen(starts[i])) &&
		    (!name[strlen(starts[i])] || name[strlen(starts[i])] == '@'))
			return true;
	return false;
}

double sample_amount(const struct sample *sample, bool on_cpu, uint64_t from_ts, uint64_t to_ts)
{
	uint64_t begin_ts = sample->ts > from_ts ? sample->ts : from_ts, end_ts;

	if (state_is_on_cpu(sample->state) != on_cpu || sample->state == WL_STATE_RUNQ_WAKEUP ||
	    sample->state == WL_STATE_RUNQ_PREEMPT)
		return 0;
	if (on_cpu)
		return sample->ts >= from_ts && sample->ts < to_ts ? sample->amount : 0;
	if (!sample->end_ts)
		return sample->ts < to_ts ? 1 : 0;
	end_ts = sample->end_ts < to_ts ? sample->end_ts : to_ts;
	return end_ts > begin_ts ? (double)(end_ts - begin_ts) : 0;
}
