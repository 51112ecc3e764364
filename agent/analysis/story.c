// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/story.h"

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

int story_make(struct story *story, const struct traces *traces, const struct trace_interval *interval,
	       struct path *path, struct arena *arena)
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
		.interval_flags = interval->base.flags,
		.path_flags = path->flags,
		.weight = interval->weight,
		.step_cnt = path->steps.cnt,
	};
	story->steps = arena__alloc(arena, path->steps.cnt, sizeof(*story->steps));
	if (!story->steps)
		return -ENOMEM;
	for (size_t i = 0; i < path->steps.cnt && !err; i++) {
		const struct path_step *step = &path->steps.items[i];
		uint64_t sid = traces_real_sid(traces, session, step->tid, step->sid);

		err = name_step(&story->steps[i], traces, session, step, arena);
		if (sid != interval->base.sid || traces_owner(traces, session, step->tid) != session)
			story->steps[i].other_sid = sid;
	}
	return err;
}
