// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/story.h"

#include <stdio.h>
#include <string.h>

static const char *known(const struct traces *traces, uint32_t string)
{
	return string ? traces_string(traces, string) : NULL;
}

uint32_t story_object(const struct traces *traces, const struct trace_session *session, const struct path_step *step,
		      bool *by_address)
{
	const struct trace_interval *other;

	*by_address = false;
	switch (step->category) {
	case WL_CATEGORY_QUEUE:
		other = traces_step_interval(traces, session, step);
		return other ? other->base.type : 0;
	case WL_CATEGORY_ONCPU:
		return 0;
	case WL_CATEGORY_LOCK:
	case WL_CATEGORY_RUNQ:
		*by_address = !step->object_name && step->object;
		return step->object_name;
	case WL_CATEGORY_FAULT_MINOR:
	case WL_CATEGORY_FAULT_MAJOR:
		return step->object_name;
	default:
		return step->syscall;
	}
}

uint32_t story_culprit_name(const struct traces *traces, const struct trace_session *session,
			    const struct path_step *step)
{
	if (step->culprit_name)
		return step->culprit_name;
	return step->culprit_tid ? traces_thread_name(traces, session, step->culprit_pid, step->culprit_tid) : 0;
}

static int name_step(struct story_step *out, const struct traces *traces, const struct trace_session *session,
		     const struct path_step *step, struct arena *arena)
{
	const struct trace_interval *other = traces_step_interval(traces, session, step);
	bool by_address;
	uint32_t object = story_object(traces, session, step, &by_address);

	*out = (struct story_step){
		.begin_ts = step->begin_ts,
		.end_ts = step->end_ts,
		.category = step->category,
		.state = step->state,
		.wait = step->wait,
		.comm = known(traces, traces_thread_name(traces, session, step->pid, step->tid)),
		.host = traces_other_host(traces, session, step->tid),
		.culprit_host = traces_other_host(traces, session, step->culprit_tid),
		.pid = traces_real_id(step->pid),
		.tid = traces_real_id(step->tid),
		.object = known(traces, object),
		.syscall = known(traces, step->syscall),
		.culprit_comm = known(traces, story_culprit_name(traces, session, step)),
		.culprit_pid = traces_real_id(step->culprit_pid),
		.culprit_tid = traces_real_id(step->culprit_tid),
		.other_type = other ? known(traces, other->base.type) : NULL,
		.via = step->via,
		.kind = step->kind,
		.transit = step->transit,
		.certainty = step->certainty,
		.depth = step->depth,
	};
	if (step->culprit_tid && !step->culprit_pid)
		out->culprit_pid = traces_real_id(traces_thread_pid(traces, session, step->culprit_tid));
	if (by_address) {
		out->object = arena__printf(arena, "0x%llx", (unsigned long long)step->object);
		return out->object ? 0 : -ENOMEM;
	}
	return 0;
}

/* --- what it was at ------------------------------------------------------------------------------------------------
 */

#define PATHS_MAX  32 /* different ones in a step */
#define FRAMES_MAX 4  /* innermost ones that are told */

/* The functions of a call path; those in the kernel only where there are no others. */
static const char *path_text(const struct samples *samples, uint32_t node, struct arena *arena)
{
	const struct sample_node *nodes = samples->nodes.items;
	uint32_t frames[FRAMES_MAX], user = node;
	size_t cnt = 0, len = 0;
	char text[512];

	while (user != SAMPLE_ROOT && nodes[user].kernel)
		user = nodes[user].parent;
	if (user != SAMPLE_ROOT && strcmp(samples_name(samples, user), "[kernel]"))
		node = user;
	for (; node != SAMPLE_ROOT && cnt < FRAMES_MAX && !samples_is_start(samples_name(samples, node));
	     node = nodes[node].parent)
		frames[cnt++] = node;
	if (!cnt)
		return NULL;
	if (node != SAMPLE_ROOT && !samples_is_start(samples_name(samples, node)))
		len = (size_t)snprintf(text, sizeof(text), "… > ");
	for (size_t i = cnt; i-- > 0 && len < sizeof(text);)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%.100s%s", samples_name(samples, frames[i]),
					i ? " > " : "");
	return arena__strdup(arena, text);
}

/* What most of the samples of the thread say, between times of the graph. */
static uint32_t most_sampled(const struct samples *samples, const struct trace_session *session, uint32_t tid,
			     bool on_cpu, uint64_t from_ts, uint64_t to_ts)
{
	size_t cnt, path_cnt = 0, most = 0;
	const struct sample *of = samples_of(samples, session, tid, from_ts, to_ts, &cnt);
	uint32_t nodes[PATHS_MAX];
	double amounts[PATHS_MAX];

	for (size_t i = 0; i < cnt; i++) {
		double amount = sample_amount(&of[i], on_cpu, from_ts, to_ts);
		size_t at = 0;

		while (at < path_cnt && nodes[at] != of[i].node)
			at++;
		if (!(amount > 0) || at == PATHS_MAX)
			continue;
		if (at == path_cnt) {
			nodes[path_cnt] = of[i].node;
			amounts[path_cnt++] = 0;
		}
		amounts[at] += amount;
	}
	for (size_t i = 1; i < path_cnt; i++)
		most = amounts[i] > amounts[most] ? i : most;
	return path_cnt ? nodes[most] : SAMPLE_ROOT;
}

/* Of the thread that the step is on, or that had its CPU; times of the step are the session's own. */
static int tell_call_path(struct story_step *out, const struct samples *samples, const struct trace_session *session,
			  const struct path_step *step, struct arena *arena)
{
	uint64_t from_ts = traces_graph_ts(samples->traces, session, step->begin_ts);
	uint64_t to_ts = traces_graph_ts(samples->traces, session, step->end_ts);
	bool runnable = step->state == WL_STATE_RUNQ_WAKEUP || step->state == WL_STATE_RUNQ_PREEMPT;
	bool by_other = step->culprit_tid && step->culprit_tid != step->tid &&
			(runnable || (!step->depth && step->state == WL_STATE_BLOCKED_FUTEX));
	uint32_t node = SAMPLE_ROOT;

	if (runnable && !by_other)
		return 0;
	if (by_other)
		node = most_sampled(samples, session, step->culprit_tid, true, from_ts, to_ts);
	if (node == SAMPLE_ROOT && !runnable)
		node = most_sampled(samples, session, step->tid, state_is_on_cpu(step->state), from_ts, to_ts);
	if (node == SAMPLE_ROOT || state_is_interrupt(step->state))
		return 0;
	out->call_path = path_text(samples, node, arena);
	return 0;
}

int story_make(struct story *story, const struct traces *traces, const struct samples *samples,
	       const struct trace_interval *interval, struct path *path, struct arena *arena)
{
	const struct trace_session *session = &traces->sessions.items[interval->session];
	int err = traces_walk(path, traces, interval);

	if (err)
		return err;
	*story = (struct story){
		.sid = interval->base.sid,
		.session_id = session->id,
		.host = traces_string(traces, session->host),
		.host_is_told = session->joined && session->host,
		.begin_ts = interval->base.begin_ts,
		.pickup_ts = interval->base.pickup_ts,
		.end_ts = interval->base.end_ts,
		.type = traces_string(traces, interval->base.type),
		.pid = interval->base.pid,
		.tid = interval->base.tid,
		.end_tid = interval->base.end_tid,
		.path_flags = path->flags,
		.weight = interval->weight,
		.trace_id = traces_string(traces, interval->trace_id),
		.span_id = traces_string(traces, interval->span_id),
		.step_cnt = path->steps.cnt,
	};
	story->steps = arena__alloc(arena, path->steps.cnt, sizeof(*story->steps));
	if (!story->steps)
		return -ENOMEM;
	for (size_t i = 0; i < path->steps.cnt && !err; i++) {
		const struct path_step *step = &path->steps.items[i];
		uint64_t sid = traces_real_sid(traces, session, step->tid, step->sid);

		err = name_step(&story->steps[i], traces, session, step, arena);
		if (!err && samples && samples->rows.cnt)
			err = tell_call_path(&story->steps[i], samples, session, step, arena);
		if (sid != interval->base.sid || traces_owner(traces, session, step->tid) != session)
			story->steps[i].other_sid = sid;
	}
	return err;
}
