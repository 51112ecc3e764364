// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/contexts.h"

#include "analysis/stats.h"
#include "base/names.h"
#include "base/order.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NONE      UINT32_MAX
#define STAGE_LEN 512

/* What the lines and crossings of all ranked intervals are measured against. */
struct tail_sums {
	double late, typical;       /* weights */
	double late_ns, typical_ns; /* of latencies */
};

struct contexts_walk {
	struct contexts *contexts;
	const struct paths *paths;
	const struct dataset *dataset;
	uint32_t *type_of; /* by index into the dataset's strings: index into types */
	struct tail_sums sums;
	/* The row under way. */
	uint32_t row, type;
	uint32_t chain; /* in which it ended */
	double weight;
	bool is_late, is_typical;
	const struct trace_session *session;
	struct path path;
};

/* --- types -------------------------------------------------------------------------------------------------------- */

static double cpu_ns_of(const struct dataset *dataset, size_t row)
{
	const uint64_t *own = dataset->category_ns[WL_CATEGORY_ONCPU],
		       *faults = dataset->category_ns[WL_CATEGORY_FAULT_MINOR];

	return (double)(own ? own[row] : 0) + (double)(faults ? faults[row] : 0);
}

static int add_type(struct contexts_walk *walk, uint32_t name, const struct type_line *line)
{
	struct contexts *contexts = walk->contexts;
	uint32_t idx = (uint32_t)contexts->types.cnt, id;
	struct context_type type = {
		.name = name, .count = line->count, .mean_ns = line->mean_ns, .p99_ns = line->p99_ns, .node = NONE};
	struct context_line root = {.parent = idx, .type = idx, .last_row = NONE};

	walk->type_of[name] = idx;
	if (vec_push(&contexts->types, type) || idmap__id(&contexts->line_ids, (uint64_t)idx << 32, 0, &id))
		return -ENOMEM;
	return vec_push(&contexts->lines, root);
}

/* Whose latencies are late, and whose typical; the numbers of each type. */
static int make_types(struct contexts_walk *walk)
{
	const struct dataset *dataset = walk->dataset;
	struct contexts *contexts = walk->contexts;
	struct type_line *lines = calloc(dataset->string_cnt + 1, sizeof(*lines));
	struct stats_order order = {0};
	int err = lines ? stats_order__init(&order, dataset->latency_ns, dataset->weight, dataset->row_cnt) : -ENOMEM;

	if (!err) {
		double median_ns = stats_quantile(&order, 0.5, NULL, NULL, order.total_weight);

		contexts->tail_threshold_ns = stats_quantile(&order, contexts->tail, NULL, NULL, order.total_weight);
		contexts->typical_ns = fmin(median_ns, contexts->tail_threshold_ns);
		err = stats_by_type(lines, dataset->type, dataset->string_cnt, &order);
	}
	for (uint32_t i = 0; i < dataset->string_cnt && !err; i++)
		if (lines[i].count > 0)
			err = add_type(walk, i, &lines[i]);
	stats_order__free(&order);
	free(lines);
	return err;
}

static void share_types(struct contexts_walk *walk)
{
	const struct dataset *dataset = walk->dataset;
	struct contexts *contexts = walk->contexts;
	double typical_ns = 0, typical = 0, beyond_ns = 0;

	for (size_t row = 0; row < dataset->row_cnt; row++)
		if ((double)dataset->latency_ns[row] <= contexts->typical_ns) {
			typical += dataset->weight[row];
			typical_ns += dataset->weight[row] * (double)dataset->latency_ns[row];
		}
	typical_ns = typical > 0 ? typical_ns / typical : 0;
	for (size_t row = 0; row < dataset->row_cnt; row++) {
		struct context_type *type = &contexts->types.items[walk->type_of[dataset->type[row]]];
		double weight = dataset->weight[row], latency_ns = (double)dataset->latency_ns[row];
		double cpu_ns = cpu_ns_of(dataset, row);

		type->cpu_ns += weight * cpu_ns;
		type->wait_ns += weight * (latency_ns - cpu_ns);
		if (latency_ns < contexts->tail_threshold_ns)
			continue;
		type->late_share += weight * (latency_ns - typical_ns);
		beyond_ns += weight * (latency_ns - typical_ns);
	}
	for (size_t i = 0; i < contexts->types.cnt; i++) {
		struct context_type *type = &contexts->types.items[i];

		type->late_share = beyond_ns > 0 ? type->late_share / beyond_ns : NAN;
		type->cpu_share = dataset->target_cpu_ns > 0 ? type->cpu_ns / dataset->target_cpu_ns : NAN;
	}
}

/* --- chains of stages --------------------------------------------------------------------------------------------- */

/* "worker-12" → "worker-*" */
static void put_role(char *buf, size_t sz, const char *name)
{
	size_t len = strlen(name), stem = len;

	while (stem && isdigit((unsigned char)name[stem - 1]))
		stem--;
	if (!len)
		snprintf(buf, sz, "?");
	else if (stem && stem < len)
		snprintf(buf, sz, "%.*s*", (int)stem, name);
	else
		snprintf(buf, sz, "%s", name);
}

/* The line behind `parent`; where that stage is in the chain already, its line: the chain has come back to it. */
static int line_behind(struct contexts *contexts, uint32_t parent, uint32_t stage, uint32_t *line)
{
	uint32_t at = parent, id;
	int length = 0;

	for (; contexts->lines.items[at].stage; at = contexts->lines.items[at].parent, length++)
		if (contexts->lines.items[at].stage == stage) {
			*line = at;
			return 0;
		}
	*line = parent;
	if (length == CONTEXT_CHAIN_MAX)
		return 0;
	if (contexts->lines.cnt >= CONTEXTS_MAX + contexts->types.cnt &&
	    !idmap__find(&contexts->line_ids, (uint64_t)parent << 32 | stage, 1, &id)) {
		contexts->folded_lines++;
		return 0;
	}
	if (idmap__id(&contexts->line_ids, (uint64_t)parent << 32 | stage, 1, &id))
		return -ENOMEM;
	*line = id;
	if (id < contexts->lines.cnt)
		return 0;
	return vec_push(&contexts->lines, ((struct context_line){.parent = parent,
								 .stage = stage,
								 .type = contexts->lines.items[parent].type,
								 .last_row = NONE}));
}

static int stage_id(struct contexts_walk *walk, const char *kind, uint32_t pid, uint32_t tid, const char *type,
		    uint32_t *id)
{
	const struct traces *traces = walk->paths->traces;
	char role[64], stage[STAGE_LEN];

	put_role(role, sizeof(role), traces_string(traces, traces_thread_name(traces, walk->session, pid, tid)));
	snprintf(stage, sizeof(stage), "%s%s%s%s%s", kind, *kind ? " " : "", role, *type ? " " : "", type);
	return intern__id(&walk->contexts->strings, stage, id);
}

/* Has the request been handed to the step's thread, which is not merely in the way? */
static bool is_handed_on(const struct path_step *step)
{
	return step->depth && step->certainty != WL_CERTAINTY_AMBIGUOUS && step->wait != WL_CATEGORY_LOCK &&
	       step->wait != WL_CATEGORY_RUNQ && step->wait != WL_CATEGORY_IO_DISK && step->via != PATH_VIA_OWNER;
}

static int line_of(struct contexts_walk *walk, const struct path_step *step, uint32_t *line)
{
	const struct traces *traces = walk->paths->traces;
	const struct trace_interval *other = traces_step_interval(traces, walk->session, step);
	const char *kind = step->via == PATH_VIA_WAKEUP ? "wakeup" : handoff_name(step->kind), *type = "";
	uint32_t stage;

	*line = walk->type;
	if (!is_handed_on(step))
		return 0;
	for (int i = 0; i < PATH_HOPS_MAX && step->hop_tids[i]; i++)
		if (step->hop_tids[i] != step->tid && (stage_id(walk, "", 0, step->hop_tids[i], "", &stage) ||
						       line_behind(walk->contexts, *line, stage, line)))
			return -ENOMEM;
	if (other && step->sid != walk->path.sid)
		type = traces_string(traces, other->base.type);
	if (stage_id(walk, kind ? kind : "", step->pid, step->tid, type, &stage))
		return -ENOMEM;
	return line_behind(walk->contexts, *line, stage, line);
}

static int add_to_line(struct contexts_walk *walk, const struct path_step *step)
{
	double ns = walk->weight * (double)(step->end_ts - step->begin_ts);
	struct context_line *line;
	uint32_t id;

	if (line_of(walk, step, &id))
		return -ENOMEM;
	line = &walk->contexts->lines.items[id];
	if (line->last_row != walk->row)
		line->count += walk->weight;
	line->last_row = walk->row;
	if (state_is_on_cpu(step->state) && step->category != WL_CATEGORY_QUEUE &&
	    (is_handed_on(step) || step->category == WL_CATEGORY_ONCPU || step->category == WL_CATEGORY_FAULT_MINOR))
		line->cpu_ns += ns;
	else
		line->wait_ns += ns;
	line->late_ns += walk->is_late ? ns : 0;
	line->typical_ns += walk->is_typical ? ns : 0;
	return 0;
}

/* --- crosstalk ---------------------------------------------------------------------------------------------------- */

/* What a followed thread worked for during most of that time while it had a CPU; NULL: nothing. */
static const struct graph_segment *worked_for(const struct trace_session *session, uint32_t tid, uint64_t from_ts,
					      uint64_t to_ts)
{
	const struct graph_segment *most = NULL, *segments;
	uint64_t most_ns = 0;
	size_t cnt;

	segments = graph__segments(session->graph, tid, from_ts, to_ts, &cnt);
	for (size_t i = 0; i < cnt; i++) {
		uint64_t begin_ts = segments[i].begin_ts > from_ts ? segments[i].begin_ts : from_ts;
		uint64_t end_ts = segments[i].end_ts < to_ts ? segments[i].end_ts : to_ts;

		if (!segments[i].sid || !state_is_on_cpu(segments[i].state) || end_ts - begin_ts <= most_ns)
			continue;
		most_ns = end_ts - begin_ts;
		most = &segments[i];
	}
	return most;
}

/* The request in the way of the step. False: none is, or none is known. */
static bool in_the_way(const struct contexts_walk *walk, const struct path_step *step, struct path_step *other,
		       uint8_t *category)
{
	const struct graph_segment *segment;

	*other = *step;
	if (step->certainty == WL_CERTAINTY_AMBIGUOUS)
		return false;
	if (step->depth && step->wait == WL_CATEGORY_LOCK) {
		*category = WL_CATEGORY_LOCK;
	} else if (step->state == WL_STATE_RUNQ_WAKEUP || step->state == WL_STATE_RUNQ_PREEMPT) {
		*category = WL_CATEGORY_RUNQ;
		if (!step->culprit_tid)
			return false;
		segment = worked_for(walk->session, step->culprit_tid, step->begin_ts, step->end_ts);
		other->tid = step->culprit_tid;
		other->sid = segment ? segment->sid : 0;
		other->type = segment ? segment->type : 0;
	} else if (step->category == WL_CATEGORY_QUEUE) {
		*category = WL_CATEGORY_QUEUE;
	} else {
		return false;
	}
	return other->sid != walk->path.sid;
}

/* Adds the step's time to the crossing of those two. */
static int add_wait(struct context_crosstalk *crosstalk, const struct contexts_walk *walk, const struct path_step *step,
		    const struct context_crossing *between)
{
	/* Chains are fewer than CONTEXT_ROWS_MAX, and CONTEXT_CHAIN_UNKNOWN + 1 is 0. */
	uint64_t sides = (uint64_t)between->type << 32 | between->by_type;
	uint64_t chains = (uint64_t)between->chain << 40 | (uint64_t)(between->by_chain + 1) << 8 | between->category;
	uint64_t step_ns = step->end_ts - step->begin_ts;
	double ns = walk->weight * (double)step_ns;
	struct context_crossing *crossing;
	uint32_t id;

	if (idmap__id(&crosstalk->ids, sides, chains, &id))
		return -ENOMEM;
	if (id == crosstalk->items.cnt) {
		if (vec_push(&crosstalk->items, *between))
			return -ENOMEM;
		crosstalk->items.items[id].last_row = NONE;
		crosstalk->items.items[id].id = id;
	}
	crossing = &crosstalk->items.items[id];
	if (crossing->last_row != walk->row) {
		crossing->count += walk->weight;
		crossing->last_wait = (uint32_t)crosstalk->waits.cnt;
		if (vec_push(&crosstalk->waits, ((struct context_wait){.crossing = id, .row = walk->row})))
			return -ENOMEM;
	}
	crossing->last_row = walk->row;
	crosstalk->waits.items[crossing->last_wait].ns += step_ns;
	crossing->wait_ns += ns;
	crossing->late_ns += walk->is_late ? ns : 0;
	crossing->typical_ns += walk->is_typical ? ns : 0;
	return 0;
}

/* The context in which an interval of the traces ended. */
static uint32_t chain_of(const struct contexts_walk *walk, const struct trace_interval *interval)
{
	const struct trace_session *session = &walk->paths->traces->sessions.items[interval->session];

	return context_chains__find(&walk->contexts->chains, session->id, interval->context);
}

/* The same by the requests at the front. */
static int add_at_front(struct contexts_walk *walk, const struct path_step *step, const struct trace_interval *with,
			uint8_t category)
{
	uint32_t other = (uint32_t)(with - walk->paths->traces->intervals.items);

	return fronts__add_wait(&walk->contexts->fronts, walk->paths->interval_of[walk->row], other, category,
				walk->weight, step->end_ts - step->begin_ts);
}

static int add_crossing(struct contexts_walk *walk, const struct path_step *step)
{
	const struct traces *traces = walk->paths->traces;
	struct context_crossing between = {.type = walk->type};
	struct contexts *contexts = walk->contexts;
	const struct trace_interval *with = NULL;
	uint32_t name = 0;
	struct path_step other;

	if (!in_the_way(walk, step, &other, &between.category))
		return 0;
	if (other.sid) {
		with = traces_step_interval(traces, walk->session, &other);
		name = with ? with->base.type : other.type;
	}
	if ((name && intern__id(&contexts->strings, traces_string(traces, name), &between.by_type)) ||
	    add_wait(&contexts->by_type, walk, step, &between) ||
	    (with && add_at_front(walk, step, with, between.category)))
		return -ENOMEM;
	between.chain = walk->chain;
	between.by_chain = with ? chain_of(walk, with) : CONTEXT_CHAIN_UNKNOWN;
	return add_wait(&contexts->by_context, walk, step, &between);
}

/* --- all intervals ------------------------------------------------------------------------------------------------ */

static int walk_row(struct contexts_walk *walk, uint32_t row)
{
	const struct traces *traces = walk->paths->traces;
	const struct trace_interval *interval = &traces->intervals.items[walk->paths->interval_of[row]];
	double latency_ns = (double)walk->dataset->latency_ns[row];
	int err = traces_walk(&walk->path, traces, interval);

	if (err)
		return err == -EINVAL ? 0 : err;
	walk->row = row;
	walk->type = walk->type_of[walk->dataset->type[row]];
	walk->weight = walk->dataset->weight[row];
	walk->session = &traces->sessions.items[interval->session];
	walk->chain = chain_of(walk, interval);
	walk->is_late = latency_ns >= walk->contexts->tail_threshold_ns;
	walk->is_typical = latency_ns <= walk->contexts->typical_ns;
	walk->sums.late += walk->is_late ? walk->weight : 0;
	walk->sums.late_ns += walk->is_late ? walk->weight * latency_ns : 0;
	walk->sums.typical += walk->is_typical ? walk->weight : 0;
	walk->sums.typical_ns += walk->is_typical ? walk->weight * latency_ns : 0;
	walk->contexts->walked++;
	for (size_t i = 0; i < walk->path.steps.cnt && !err; i++) {
		err = add_to_line(walk, &walk->path.steps.items[i]);
		if (!err)
			err = add_crossing(walk, &walk->path.steps.items[i]);
	}
	return err;
}

static double tail_share(const struct tail_sums *sums, double late_ns, double typical_ns)
{
	double all_ns;

	if (!(sums->late > 0) || !(sums->typical > 0))
		return NAN;
	all_ns = sums->late_ns / sums->late - sums->typical_ns / sums->typical;
	return all_ns > 0 ? (late_ns / sums->late - typical_ns / sums->typical) / all_ns : NAN;
}

ORDER(compare_crossings, struct context_crossing, BY(b->wait_ns, a->wait_ns), BY(a->id, b->id));

static void settle_crosstalk(struct context_crosstalk *crosstalk, const struct tail_sums *sums)
{
	for (size_t i = 0; i < crosstalk->items.cnt; i++) {
		struct context_crossing *crossing = &crosstalk->items.items[i];

		crossing->tail_share = tail_share(sums, crossing->late_ns, crossing->typical_ns);
	}
	vec_sort(&crosstalk->items, compare_crossings);
}

/* What each request took, by the one at the front. */
static int make_fronts(struct contexts_walk *walk)
{
	const struct dataset *dataset = walk->dataset;
	int err = fronts__make(&walk->contexts->fronts, walk->paths->traces);

	for (uint32_t row = 0; row < walk->paths->row_cnt && !err; row++) {
		double cpu_ns = cpu_ns_of(dataset, row);

		if (walk->paths->interval_of[row] != NONE)
			err = fronts__add(&walk->contexts->fronts, walk->paths->interval_of[row], dataset->weight[row],
					  cpu_ns, (double)dataset->latency_ns[row] - cpu_ns);
	}
	return err;
}

static int walk_paths(struct contexts_walk *walk)
{
	struct contexts *contexts = walk->contexts;
	int err = make_fronts(walk);

	for (uint32_t row = 0; row < walk->paths->row_cnt && !err; row++)
		if (walk->paths->ranked[row])
			err = walk_row(walk, row);
	path__clear(&walk->path);
	for (size_t i = 0; i < contexts->lines.cnt; i++) {
		struct context_line *line = &contexts->lines.items[i];

		line->tail_share = tail_share(&walk->sums, line->late_ns, line->typical_ns);
	}
	settle_crosstalk(&contexts->by_type, &walk->sums);
	settle_crosstalk(&contexts->by_context, &walk->sums);
	return err ? err : fronts__settle(&contexts->fronts);
}

int contexts_make(struct contexts *contexts, const struct dataset *dataset, const struct paths *paths,
		  struct shard_reader *reader, double tail)
{
	struct contexts_walk walk = {.contexts = contexts, .paths = paths, .dataset = dataset};
	uint32_t empty;
	int err;

	*contexts = (struct contexts){.dataset = dataset, .arena = arena__new(), .tail = tail, .no_request = NONE};
	contexts->strings.arena = contexts->arena;
	walk.type_of = calloc(dataset->string_cnt + 1, sizeof(*walk.type_of));
	err = contexts->arena && walk.type_of ? intern__id(&contexts->strings, "", &empty) : -ENOMEM;
	if (!err)
		err = make_types(&walk);
	if (!err && dataset->row_cnt)
		share_types(&walk);
	if (!err)
		err = context_chains__load(&contexts->chains, reader);
	if (!err && paths)
		err = walk_paths(&walk);
	if (!err)
		err = contexts__add_stacks(contexts, reader);
	free(walk.type_of);
	if (err)
		contexts_free(contexts);
	return err;
}

static void context_crosstalk__free(struct context_crosstalk *crosstalk)
{
	vec_free(&crosstalk->items);
	vec_free(&crosstalk->waits);
	idmap__free(&crosstalk->ids);
}

void contexts_free(struct contexts *contexts)
{
	vec_free(&contexts->types);
	vec_free(&contexts->lines);
	vec_free(&contexts->parts);
	idmap__free(&contexts->part_ids);
	context_chains__free(&contexts->chains);
	vec_free(&contexts->nodes);
	vec_free(&contexts->node_of);
	fronts__free(&contexts->fronts);
	context_crosstalk__free(&contexts->by_type);
	context_crosstalk__free(&contexts->by_context);
	free(contexts->row_chain);
	idmap__free(&contexts->line_ids);
	idmap__free(&contexts->node_ids);
	intern__free(&contexts->strings);
	arena__free(contexts->arena);
	*contexts = (struct contexts){0};
}
