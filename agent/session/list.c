// SPDX-License-Identifier: GPL-2.0-or-later
#include "session/list.h"

#include "model/session.h"
#include "session/recording.h"

#include <errno.h>

struct list_probe {
	bool may_go, gone;
	size_t place;             /* in its set */
	struct probe_hits before; /* in sets that are no more */
};

struct gap {
	uint64_t begin_ts, end_ts;
};

struct recorded_list {
	size_t cnt;
	struct recorded_probe *probes;
	struct list_probe *states;
	struct recorded_set *staying, *going; /* NULL: none of that kind is attached */
	VEC(struct gap) gaps;
};

/* A function that is probed for something else as well is timed by the same probes. */
static bool only_timed(const struct recorded_list *list, size_t idx)
{
	const struct probe *probe = &list->probes[idx].probe;

	if (probe->role != PROBE_FUNCTION || !probe->plan)
		return false;
	for (size_t i = 0; i < list->cnt; i++)
		if (list->probes[i].probe.func == probe->func && list->probes[i].probe.role != PROBE_FUNCTION)
			return false;
	return true;
}

/* Those that are there and of that kind. */
static int attach(struct recording *recording, bool may_go, struct recorded_set **set)
{
	struct recorded_list *list = recording->list;
	struct recorded_probe *some = calloc(list->cnt, sizeof(*some));
	size_t cnt = 0;
	int err = some ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < list->cnt; i++) {
		if (list->states[i].may_go != may_go || list->states[i].gone)
			continue;
		list->states[i].place = cnt;
		some[cnt++] = list->probes[i];
	}
	if (cnt)
		err = session__attach(recording, some, cnt, 0, set);
	free(some);
	return err;
}

int recording_list_open(struct recording *recording)
{
	size_t cnt = recording->symbols.targets.targets.cnt;
	struct recorded_list *list;

	if (!recording->probes || !cnt)
		return 0;
	list = recording->list = calloc(1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	list->cnt = cnt;
	list->probes = calloc(cnt, sizeof(*list->probes));
	list->states = calloc(cnt, sizeof(*list->states));
	if (!list->probes || !list->states)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++)
		recording_probes_of_target(recording, &recording->symbols.targets.targets.items[i], &list->probes[i]);
	for (size_t i = 0; i < cnt; i++)
		list->states[i].may_go = only_timed(list, i);
	return 0;
}

int recording_list_begin(struct recording *recording)
{
	int err;

	if (!recording->list)
		return 0;
	err = attach(recording, true, &recording->list->going);
	return err ? err : attach(recording, false, &recording->list->staying);
}

void recording_list_free(struct recording *recording)
{
	struct recorded_list *list = recording->list;

	if (!list)
		return;
	free(list->probes);
	free(list->states);
	vec_free(&list->gaps);
	free(list);
	recording->list = NULL;
}

static struct probe_hits sum(struct probe_hits a, struct probe_hits b)
{
	return (struct probe_hits){
		.entries = a.entries + b.entries, .exits = a.exits + b.exits, .cost_ns = a.cost_ns + b.cost_ns};
}

bool recording_list_hits(struct recording *recording, struct probe_hits *hits)
{
	struct recorded_list *list = recording->list;
	struct probe_hits *now = list ? calloc(2 * list->cnt, sizeof(*now)) : NULL;

	if (!now)
		return false;
	if (list->staying)
		session__hits(recording, list->staying, now);
	if (list->going)
		session__hits(recording, list->going, now + list->cnt);
	for (size_t i = 0; i < list->cnt; i++) {
		const struct list_probe *state = &list->states[i];
		const struct probe_hits none = {0};

		hits[i] = sum(state->before, state->gone ? none : now[(state->may_go ? list->cnt : 0) + state->place]);
	}
	free(now);
	return true;
}

bool recording_list_may_go(const struct recording *recording, size_t idx)
{
	return recording->list->states[idx].may_go && !recording->list->states[idx].gone;
}

bool recording_list_is_gone(const struct recording *recording, size_t idx)
{
	return recording->list->states[idx].gone;
}

const char *recording_list_name(const struct recording *recording, size_t idx)
{
	return recording->list->probes[idx].name;
}

const struct plan *recording_list_plan(const struct recording *recording, size_t idx)
{
	return recording->list->probes[idx].probe.plan;
}

int recording_list_forgo(struct recording *recording, const bool *drop)
{
	struct recorded_list *list = recording->list;
	int err = 0;

	for (size_t i = 0; !err && i < list->cnt; i++) {
		if (!drop[i])
			continue;
		list->states[i].gone = true;
		err = recording_probes_forgo(recording, &list->probes[i], PROBE_OVER_BUDGET);
	}
	return err;
}

/* What was to stay is not there either: nothing has said so yet. */
static int say_ended(struct recording *recording, bool may_go, int why, uint64_t ts)
{
	const struct recorded_list *list = recording->list;
	int err = 0;

	for (size_t i = 0; !err && i < list->cnt; i++)
		if (list->states[i].may_go == may_go && !list->states[i].gone)
			err = recording_probes_ended(recording, &list->probes[i],
						     why == -EOWNERDEAD ? RECORDED_ATTACHER_KILLED
									: "it could not be attached again",
						     &list->states[i].before, ts);
	return err;
}

/* Those of one kind; drop: which of them are over the budget for good, NULL: none. */
static int detach(struct recording *recording, bool may_go, const bool *drop)
{
	struct recorded_list *list = recording->list;
	struct recorded_set **place = may_go ? &list->going : &list->staying, *set = *place;
	struct probe_hits *hits = calloc(list->cnt, sizeof(*hits));
	const char **whys = calloc(list->cnt, sizeof(*whys));
	int err = hits && whys ? 0 : -ENOMEM;

	if (!err && set) {
		session__hits(recording, set, hits);
		for (size_t i = 0; i < list->cnt; i++) {
			struct list_probe *state = &list->states[i];

			if (state->may_go != may_go || state->gone)
				continue;
			state->before = sum(state->before, hits[state->place]);
			state->gone = drop && drop[i];
			whys[state->place] = state->gone ? PROBE_OVER_BUDGET : NULL;
		}
		*place = NULL;
		err = session__detach(recording, set, whys);
	}
	free(hits);
	free(whys);
	return err;
}

/* begin_ts: of the gap, which ends now. */
static int attach_again(struct recording *recording, bool may_go, uint64_t begin_ts)
{
	struct recorded_list *list = recording->list;
	int err = attach(recording, may_go, may_go ? &list->going : &list->staying);

	/* The error is what counts: whether the rows could be written is not. */
	if (err)
		say_ended(recording, may_go, err, begin_ts);
	return err ? err : vec_push(&list->gaps, ((struct gap){begin_ts, monotonic_ns()}));
}

int recording_list_drop(struct recording *recording, const bool *drop)
{
	uint64_t begin_ts = monotonic_ns();
	int err = detach(recording, true, drop);

	return err ? err : attach_again(recording, true, begin_ts);
}

static bool has_return(const struct recorded_list *list, size_t idx)
{
	const struct plan *plan = list->probes[idx].probe.plan;

	return plan && plan->exit == PLAN_EXIT_URETPROBE && !list->states[idx].gone;
}

bool recording_list_has_returns(const struct recording *recording)
{
	const struct recorded_list *list = recording->list;

	for (size_t i = 0; list && i < list->cnt; i++)
		if (has_return(list, i))
			return true;
	return false;
}

/* As it is planned now, after it had a return probe. */
static int judge(struct recording *recording, size_t idx, struct list_replanned *replanned)
{
	const struct probe_line *line =
		&recording->symbols.lines.items[recording->symbols.targets.targets.items[idx].line_idx];
	struct recorded_list *list = recording->list;
	const struct plan *plan = list->probes[idx].probe.plan;

	if (plan->possible && (plan->exit != PLAN_EXIT_NONE || !probe_line_needs_exit(line)))
		return 0;
	if (!replanned->gone_cnt++)
		replanned->gone = list->probes[idx].name;
	replanned->is_broken |= !list->states[idx].may_go;
	list->states[idx].gone = true;
	return recording_probes_ended(recording, &list->probes[idx],
				      list->states[idx].may_go ? PROBE_UNSAFE : "the recording ended",
				      &list->states[idx].before, monotonic_ns());
}

int recording_list_replan(struct recording *recording, struct list_replanned *replanned)
{
	struct recorded_list *list = recording->list;
	uint64_t begin_ts = monotonic_ns();
	bool *had_return;
	int err;

	if (!recording_list_has_returns(recording))
		return 0;
	had_return = calloc(list->cnt, sizeof(*had_return));
	for (size_t i = 0; had_return && i < list->cnt; i++)
		had_return[i] = has_return(list, i);
	err = had_return ? detach(recording, true, NULL) : -ENOMEM;
	if (!err)
		err = detach(recording, false, NULL);
	if (!err)
		err = probe_targets_replan(recording->program, &recording->symbols.lines, &recording->symbols.targets);
	for (size_t i = 0; !err && i < list->cnt; i++)
		if (had_return[i])
			err = judge(recording, i, replanned);
	if (!err)
		err = attach_again(recording, true, begin_ts);
	if (!err)
		err = attach_again(recording, false, begin_ts);
	free(had_return);
	return err;
}

bool recording_list_has_gap(const struct recording *recording, uint64_t begin_ts, uint64_t end_ts)
{
	const struct recorded_list *list = recording->list;

	for (size_t i = 0; list && i < list->gaps.cnt; i++)
		if (begin_ts < list->gaps.items[i].end_ts && end_ts > list->gaps.items[i].begin_ts)
			return true;
	return false;
}
