// SPDX-License-Identifier: GPL-2.0-only
#include "cmd/recording_list.h"

#include "cmd/recording_internal.h"
#include "model/session.h"

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
		err = recording_probes_attach(recording, some, cnt, 0, set);
	free(some);
	return err;
}

int recording_list_open(struct recording *recording)
{
	size_t cnt = recording->targets.targets.cnt;
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
		recording_probes_of_target(recording, &recording->targets.targets.items[i], &list->probes[i]);
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
		recording_probes_hits(recording, list->staying, now);
	if (list->going)
		recording_probes_hits(recording, list->going, now + list->cnt);
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
static int say_ended(struct recording *recording, int why, uint64_t ts)
{
	const struct recorded_list *list = recording->list;
	int err = 0;

	for (size_t i = 0; !err && i < list->cnt; i++)
		if (recording_list_may_go(recording, i))
			err = recording_probes_ended(recording, &list->probes[i],
						     why == -EOWNERDEAD ? RECORDED_ATTACHER_KILLED
									: "it could not be attached again",
						     &list->states[i].before, ts);
	return err;
}

int recording_list_drop(struct recording *recording, const bool *drop)
{
	struct recorded_list *list = recording->list;
	struct probe_hits *hits = calloc(list->cnt, sizeof(*hits));
	const char **whys = calloc(list->cnt, sizeof(*whys));
	struct gap gap = {.begin_ts = monotonic_ns()};
	struct recorded_set *going = list->going;
	int err = hits && whys ? 0 : -ENOMEM;

	if (!err)
		recording_probes_hits(recording, going, hits);
	for (size_t i = 0; !err && i < list->cnt; i++) {
		struct list_probe *state = &list->states[i];

		if (!recording_list_may_go(recording, i))
			continue;
		state->before = sum(state->before, hits[state->place]);
		state->gone = drop[i];
		whys[state->place] = drop[i] ? PROBE_OVER_BUDGET : NULL;
	}
	if (!err) {
		list->going = NULL;
		err = recording_probes_detach_each(recording, going, whys);
	}
	if (!err) {
		err = attach(recording, true, &list->going);
		/* The error is what counts: whether the rows could be written is not. */
		if (err)
			say_ended(recording, err, gap.begin_ts);
	}
	gap.end_ts = monotonic_ns();
	if (!err)
		err = vec_push(&list->gaps, gap);
	free(hits);
	free(whys);
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
