// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/fronts.h"

#include "base/order.h"
#include "model/asked.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* A chain that is longer begins there: a program that asks itself again and again. */
#define CHAIN_MAX 32

static const struct trace_session *session_of(const struct fronts *fronts, const struct trace_interval *interval)
{
	return &fronts->traces->sessions.items[interval->session];
}

/* The hand-off with which it came, in the graph. */
static const struct graph_handoff *asked_by(const struct fronts *fronts, const struct trace_interval *interval)
{
	const struct trace_session *session = session_of(fronts, interval);
	struct graph_interval there = interval->base;

	there.pickup_ts = traces_graph_ts(fronts->traces, session, there.pickup_ts);
	there.tid = traces_graph_id(session, there.tid);
	there.sid = traces_real_sid(fronts->traces, session, there.tid, there.sid);
	return graph_asked_by(session->graph, &there);
}

static bool same_connection(const struct fronts *fronts, const struct graph_handoff *a, const struct graph_handoff *b)
{
	const struct trace_socket *sockets = fronts->traces->sockets.items;

	return a->kind == b->kind && a->object == b->object && sockets[a->row].from_addr == sockets[b->row].from_addr &&
	       sockets[a->row].to_addr == sockets[b->row].to_addr;
}

/* What was read of the connection before the reply, on top of the bytes with which it came, was sent for others. */
static bool has_others(const struct fronts *fronts, const struct trace_interval *interval,
		       const struct graph_handoff *asked)
{
	const struct trace_session *session = session_of(fronts, interval);
	uint64_t end_ts = traces_graph_ts(fronts->traces, session, interval->base.end_ts);
	const struct graph_handoff *handoffs;
	size_t cnt;

	handoffs = graph__handoffs_to(session->graph, asked->to_tid, asked->to_ts, end_ts, &cnt);
	for (size_t i = 0; i < cnt; i++)
		if (&handoffs[i] != asked && same_connection(fronts, asked, &handoffs[i]) &&
		    (handoffs[i].mixed || handoffs[i].from_sid != asked->from_sid))
			return true;
	return asked->mixed;
}

static void link_interval(struct fronts *fronts, uint32_t idx)
{
	const struct trace_interval *interval = &fronts->traces->intervals.items[idx], *asking;
	const struct trace_session *session = session_of(fronts, interval), *from;
	const struct graph_handoff *handoff = asked_by(fronts, interval);
	struct front_of *of = &fronts->of[idx];

	*of = (struct front_of){.asked_by = FRONT_NONE, .front = idx, .link = FRONT_OUTSIDE};
	if (!handoff || !handoff->from_tid)
		return;
	of->certainty = handoff->certainty;
	if (has_others(fronts, interval, handoff) || handoff->certainty == WL_CERTAINTY_AMBIGUOUS) {
		of->link = FRONT_AMBIGUOUS;
		return;
	}
	of->link = FRONT_UNKNOWN;
	if (!handoff->from_sid)
		return;
	from = traces_owner(fronts->traces, session, handoff->from_tid);
	asking = traces_interval(fronts->traces, from,
				 traces_real_sid(fronts->traces, session, handoff->from_tid, handoff->from_sid));
	if (!asking || asking == interval)
		return;
	of->link = FRONT_ASKED;
	of->asked_by = (uint32_t)(asking - fronts->traces->intervals.items);
}

static uint32_t front_of(const struct fronts *fronts, uint32_t idx)
{
	for (int i = 0; i < CHAIN_MAX && fronts->of[idx].asked_by != FRONT_NONE; i++)
		idx = fronts->of[idx].asked_by;
	return idx;
}

/* A program is called as its process is, with its host where there are several. */
static int name_program(struct fronts *fronts, uint32_t idx)
{
	const struct trace_interval *interval = &fronts->traces->intervals.items[idx];
	const struct trace_session *session = session_of(fronts, interval);
	uint32_t pid = traces_graph_id(session, interval->base.pid);
	uint32_t name = traces_thread_name(fronts->traces, session, pid, pid), id, fresh;
	char text[160];

	if (!name)
		name = traces_thread_name(fronts->traces, session, pid, traces_graph_id(session, interval->base.tid));
	if (idmap__id(&fronts->program_ids, name, session->host, &id))
		return -ENOMEM;
	if (id < fronts->program_names.cnt) {
		fronts->programs[idx] = fronts->program_names.items[id];
		return 0;
	}
	snprintf(text, sizeof(text), "%s%s%s", name ? traces_string(fronts->traces, name) : "?",
		 traces_many_hosts(fronts->traces) ? " on " : "",
		 traces_many_hosts(fronts->traces) ? traces_string(fronts->traces, session->host) : "");
	if (intern__id(&fronts->strings, text, &fresh))
		return -ENOMEM;
	fronts->programs[idx] = fresh;
	return vec_push(&fronts->program_names, fresh);
}

int fronts__make(struct fronts *fronts, const struct traces *traces)
{
	size_t cnt = traces->intervals.cnt;
	uint32_t empty;

	*fronts = (struct fronts){.traces = traces, .strings.arena = arena__new()};
	fronts->of = calloc(cnt + 1, sizeof(*fronts->of));
	fronts->programs = calloc(cnt + 1, sizeof(*fronts->programs));
	if (!fronts->strings.arena || !fronts->of || !fronts->programs || intern__id(&fronts->strings, "", &empty))
		return -ENOMEM;
	for (uint32_t i = 0; i < cnt; i++) {
		link_interval(fronts, i);
		fronts->links[fronts->of[i].link]++;
		if (name_program(fronts, i))
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < cnt; i++)
		fronts->of[i].front = front_of(fronts, i);
	return 0;
}

void fronts__free(struct fronts *fronts)
{
	free(fronts->of);
	free(fronts->programs);
	vec_free(&fronts->lines);
	vec_free(&fronts->crossings);
	idmap__free(&fronts->line_ids);
	idmap__free(&fronts->crossing_ids);
	idmap__free(&fronts->program_ids);
	vec_free(&fronts->program_names);
	intern__free(&fronts->strings);
	arena__free(fronts->strings.arena);
	*fronts = (struct fronts){0};
}

static int front_type(struct fronts *fronts, uint32_t interval, uint32_t *type)
{
	const struct trace_interval *front = &fronts->traces->intervals.items[fronts->of[interval].front];

	return intern__id(&fronts->strings, traces_string(fronts->traces, front->base.type), type);
}

static int line_of(struct fronts *fronts, uint32_t interval, struct front_line **line)
{
	struct front_line fresh = {.program = fronts->programs[interval]};
	uint32_t id;

	if (front_type(fronts, interval, &fresh.type) || idmap__id(&fronts->line_ids, fresh.type, fresh.program, &id) ||
	    (id == fronts->lines.cnt && vec_push(&fronts->lines, fresh)))
		return -ENOMEM;
	*line = &fronts->lines.items[id];
	return 0;
}

int fronts__add(struct fronts *fronts, uint32_t interval, double weight, double cpu_ns, double wait_ns)
{
	struct front_line *line;

	if (line_of(fronts, interval, &line))
		return -ENOMEM;
	line->own += fronts->of[interval].front == interval ? weight : 0;
	line->count += weight;
	line->cpu_ns += weight * cpu_ns;
	line->wait_ns += weight * wait_ns;
	return 0;
}

int fronts__add_wait(struct fronts *fronts, uint32_t interval, uint32_t other, uint8_t category, double weight,
		     uint64_t ns)
{
	struct front_crossing fresh = {
		.program = fronts->programs[interval], .category = category, .last_row = FRONT_NONE};
	struct front_crossing *crossing;
	struct front_line *line;
	uint32_t id;

	if (fronts->of[interval].front == fronts->of[other].front)
		return 0;
	if (line_of(fronts, interval, &line) || front_type(fronts, other, &fresh.by_type))
		return -ENOMEM;
	fresh.type = line->type;
	if (idmap__id(&fronts->crossing_ids, (uint64_t)fresh.type << 32 | fresh.by_type,
		      (uint64_t)fresh.program << 8 | category, &id) ||
	    (id == fronts->crossings.cnt && vec_push(&fronts->crossings, fresh)))
		return -ENOMEM;
	crossing = &fronts->crossings.items[id];
	crossing->count += crossing->last_row != interval ? weight : 0;
	crossing->last_row = interval;
	crossing->wait_ns += weight * (double)ns;
	line->lock_ns += category == WL_CATEGORY_LOCK ? weight * (double)ns : 0;
	return 0;
}

ORDER(compare_crossings, struct front_crossing, BY(b->wait_ns, a->wait_ns), BY(a->program, b->program),
      BY(a->type, b->type), BY(a->by_type, b->by_type));
/* Of one program together. */
ORDER(compare_lines, struct front_line, BY(b->program_cpu_ns, a->program_cpu_ns), BY(a->program, b->program),
      BY(b->cpu_ns, a->cpu_ns), BY(a->type, b->type));

int fronts__settle(struct fronts *fronts)
{
	/* By string: CPU time of all lines of a program, and requests at the front of a type. */
	double *cpu_ns = calloc(fronts->strings.cnt + 1, sizeof(*cpu_ns));
	double *of_type = calloc(fronts->strings.cnt + 1, sizeof(*of_type));
	int err = cpu_ns && of_type ? 0 : -ENOMEM;

	for (size_t i = 0; i < fronts->lines.cnt && !err; i++) {
		cpu_ns[fronts->lines.items[i].program] += fronts->lines.items[i].cpu_ns;
		of_type[fronts->lines.items[i].type] += fronts->lines.items[i].own;
	}
	for (size_t i = 0; i < fronts->lines.cnt && !err; i++) {
		struct front_line *line = &fronts->lines.items[i];

		line->program_cpu_ns = cpu_ns[line->program];
		line->fronts = of_type[line->type];
	}
	free(cpu_ns);
	free(of_type);
	vec_sort(&fronts->lines, compare_lines);
	vec_sort(&fronts->crossings, compare_crossings);
	return err;
}
