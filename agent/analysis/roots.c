// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/roots.h"

#include "analysis/roots_internal.h"
#include "analysis/story.h"
#include "base/order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

int roots__text(struct roots *roots, const char *text, uint32_t *id)
{
	return intern__id(&roots->strings, text, id);
}

/* --- roles: threads whose names differ in the number at their end are one ------------------------------------------
 */

/* How long the name is without its number; 0: it has none, or nothing else. */
static size_t stem_len(const char *name)
{
	size_t len = strlen(name), stem = len;

	while (stem && name[stem - 1] >= '0' && name[stem - 1] <= '9')
		stem--;
	return stem < len ? stem : 0;
}

static int stem_id(struct roots *roots, const char *name, size_t len, uint32_t *id)
{
	char stem[256];
	uint32_t text;

	if (len >= sizeof(stem))
		len = sizeof(stem) - 1;
	memcpy(stem, name, len);
	stem[len] = '\0';
	return roots__text(roots, stem, &text) || idmap__id(&roots->stem_ids, text, 0, id) ? -ENOMEM : 0;
}

static int count_stems(struct roots *roots)
{
	const struct traces *traces = roots->traces;
	struct idmap seen = {0};
	uint32_t id, stem;
	int err = 0;

	for (size_t s = 0; s < traces->sessions.cnt && !err; s++)
		for (size_t t = 0; t < traces->sessions.items[s].threads.cnt && !err; t++) {
			uint32_t name = traces->sessions.items[s].threads.items[t].name, known = seen.cnt;
			const char *text = traces_string(traces, name);
			size_t len = stem_len(text);

			err = idmap__id(&seen, name, 0, &id);
			if (err || id != known || !len)
				continue;
			err = stem_id(roots, text, len, &stem);
			if (!err && stem == roots->stem_names.cnt)
				err = vec_push(&roots->stem_names, 0);
			if (!err)
				roots->stem_names.items[stem]++;
		}
	idmap__free(&seen);
	return err;
}

static int make_role(struct roots *roots, const char *name, uint32_t *id)
{
	size_t len = stem_len(name);
	char role[264];
	uint32_t stem;

	if (!len)
		return roots__text(roots, name, id);
	if (stem_id(roots, name, len, &stem))
		return -ENOMEM;
	if (stem >= roots->stem_names.cnt || roots->stem_names.items[stem] < 2)
		return roots__text(roots, name, id);
	snprintf(role, sizeof(role), "%.*s*", (int)(len < 256 ? len : 256), name);
	return roots__text(roots, role, id);
}

int roots__role(struct roots *roots, uint32_t traces_name, uint32_t *id)
{
	uint32_t *known = &roots->role_ids[traces_name];

	if (*known == NONE && make_role(roots, traces_string(roots->traces, traces_name), known))
		return -ENOMEM;
	*id = *known;
	return 0;
}

/* --- entries -------------------------------------------------------------------------------------------------------
 */

int root_trail__hop(struct root_trail *trail, uint32_t pid, uint32_t tid)
{
	uint32_t role;
	size_t i = 0;

	if (!tid)
		return 0;
	if (roots__role(trail->roots, traces_thread_name(trail->roots->traces, trail->session, pid, tid), &role))
		return -ENOMEM;
	while (i < PATH_HOPS_MAX && trail->way.hops[i])
		i++;
	if (role && i < PATH_HOPS_MAX && (!i || trail->way.hops[i - 1] != role))
		trail->way.hops[i] = role;
	return 0;
}

static int key_id(struct roots *roots, const struct root_key *key, uint32_t *id)
{
	uint64_t what = (uint64_t)key->kind << 56 | (uint64_t)(key->host & 0xffffff) << 32 | key->object;

	if (idmap__id(&roots->key_ids, (uint64_t)key->role << 32 | key->type, what, id))
		return -ENOMEM;
	return *id < roots->keys.cnt ? 0 : vec_push(&roots->keys, *key);
}

static int way_id(struct roots *roots, const struct root_way *way, uint32_t *id)
{
	uint64_t how = (uint64_t)way->category << 16 | (uint64_t)way->wait << 8 | (uint64_t)way->for_it << 3 |
		       (uint64_t)way->spins << 2 | way->other << 1 | way->own;
	uint32_t object, hops;

	if (idmap__id(&roots->object_ids, way->object, way->by_address, &object) ||
	    idmap__id(&roots->hop_ids, (uint64_t)way->hops[0] << 32 | way->hops[1],
		      (uint64_t)way->context << 32 | way->hops[2], &hops) ||
	    idmap__id(&roots->way_ids, (uint64_t)way->key << 32 | object, how << 32 | hops, id))
		return -ENOMEM;
	if (*id < roots->ways.cnt)
		return 0;
	if (vec_push(&roots->row_ways, 0) || vec_push(&roots->row_of_way, NONE))
		return -ENOMEM;
	return vec_push(&roots->ways, *way);
}

static int entry_of(struct roots *roots, uint32_t row, uint32_t way, uint32_t *id)
{
	if (roots->row_of_way.items[way] == row) {
		*id = roots->row_ways.items[way];
		return 0;
	}
	*id = (uint32_t)roots->entries.cnt;
	roots->row_of_way.items[way] = row;
	roots->row_ways.items[way] = *id;
	return vec_push(&roots->entries, ((struct root_entry){.row = row, .way = way}));
}

static int add_ticks(struct roots *roots, const struct trace_session *session, const struct root_leaf *leaf,
		     uint32_t entry)
{
	size_t cnt;
	const struct sample *samples = samples_of(roots->samples, session, leaf->tid, leaf->from_ts, leaf->to_ts, &cnt);

	for (size_t i = 0; i < cnt; i++) {
		double amount = sample_amount(&samples[i], leaf->on_cpu, leaf->from_ts, leaf->to_ts);
		struct root_tick tick = {.entry = entry, .node = samples[i].node, .amount = amount};

		tick.sample = (uint32_t)(&samples[i] - roots->samples->rows.items);
		if (!(amount > 0) || samples[i].node == SAMPLE_ROOT)
			continue;
		if (idmap__id(&roots->unit_ids, entry, leaf->sid, &tick.unit) || vec_push(&roots->ticks, tick))
			return -ENOMEM;
	}
	return 0;
}

int roots__add(struct roots *roots, const struct root_trail *trail, const struct root_leaf *leaf, uint64_t ns)
{
	const struct dataset *dataset = roots->dataset;
	bool is_own = leaf->pid && dataset_is_own(dataset, dataset->session[trail->row], traces_real_id(leaf->pid));
	const struct root_key our_own = {.kind = ROOT_OUR_OWN};
	struct root_way way = trail->way;
	struct root_key *key;
	uint32_t id, entry;

	if (!ns)
		return 0;
	way.context = is_own ? CONTEXT_CHAIN_NONE : leaf->context;
	if (key_id(roots, is_own ? &our_own : &leaf->key, &way.key) || way_id(roots, &way, &id) ||
	    entry_of(roots, trail->row, id, &entry))
		return -ENOMEM;
	roots->entries.items[entry].ns += ns;
	roots->entries.items[entry].ran_ns += leaf->time == ROOT_TIME_RAN ? ns : 0;
	roots->entries.items[entry].taken_ns += leaf->time == ROOT_TIME_TAKEN ? ns : 0;
	if (roots->in_lock_wait && vec_push(&roots->holds, ((struct root_hold){entry, ns})))
		return -ENOMEM;
	key = &roots->keys.items[way.key];
	blame_ids__note(&key->pids, traces_real_id(leaf->pid));
	blame_ids__note(&key->tids, traces_real_id(leaf->tid));
	return leaf->tid && roots->samples && !is_own ? add_ticks(roots, trail->session, leaf, entry) : 0;
}

static int set_object(struct root_trail *trail, const struct path_step *step)
{
	bool by_address;
	uint32_t object = story_object(trail->roots->traces, trail->session, step, &by_address), text = 0;

	/* What is queued for is told by the type of the root. */
	if (step->category == WL_CATEGORY_QUEUE)
		return 0;
	trail->way.by_address = by_address;
	if (!by_address && object && roots__text(trail->roots, traces_string(trail->roots->traces, object), &text))
		return -ENOMEM;
	trail->way.object = by_address ? step->object : text;
	return 0;
}

/* The interval's own wait in an event loop, for something that no edge explains. */
static bool is_idle(const struct path_step *step)
{
	return !step->depth && step->state == WL_STATE_BLOCKED_POLL && step->category == WL_CATEGORY_IO_NET &&
	       !step->transit;
}

/* The idle waits of an event loop until it goes on with the interval, and what ended them. */
struct idle_waits {
	size_t last; /* step */
	bool ended_by_timer, timer_met;
};

/*
 * An event loop that waits for an interval's timer is woken for others meanwhile: of its waits, the last one before it
 * went on with the interval tells what the interval waited for.  The timer may have ended one before that, or come
 * while the loop was busy.
 */
static struct idle_waits idle_waits_from(const struct root_trail *trail, const struct path *path, size_t i)
{
	const struct traces *traces = trail->roots->traces;
	struct idle_waits waits = {.last = i};

	for (; i < path->steps.cnt; i++) {
		const struct path_step *step = &path->steps.items[i];

		if (is_idle(step)) {
			waits.last = i;
			waits.ended_by_timer = root_trail__timer_in(
				trail, step->tid, traces_graph_ts(traces, trail->session, step->begin_ts),
				traces_graph_ts(traces, trail->session, step->end_ts));
			waits.timer_met |= waits.ended_by_timer;
		} else if (!step->depth && state_is_on_cpu(step->state) && step->sid == trail->interval->base.sid) {
			break;
		}
	}
	return waits;
}

/* The wait for a CPU that begins when a wait for a lock ends is charged to those that held the lock up, too. */
static void note_wait(struct roots *roots, const struct path_step *step)
{
	uint64_t ns = step->end_ts - step->begin_ts, held_ns = 0;

	roots->in_lock_wait = step->wait == WL_CATEGORY_LOCK && step->certainty != WL_CERTAINTY_AMBIGUOUS;
	if (roots->in_lock_wait)
		return;
	for (size_t i = 0; i < roots->holds.cnt; i++)
		held_ns += roots->holds.items[i].ns;
	if (!step->depth && step->state == WL_STATE_RUNQ_WAKEUP)
		for (size_t i = 0; i < roots->holds.cnt; i++)
			roots->entries.items[roots->holds.items[i].entry].after_ns +=
				(uint64_t)((double)ns * (double)roots->holds.items[i].ns / (double)held_ns);
	roots->holds.cnt = 0;
}

int roots__take(struct roots *roots, uint32_t row, const struct trace_interval *interval, const struct path *path)
{
	const struct trace_session *session = &roots->traces->sessions.items[interval->session];
	struct idle_waits waits = {0};
	int err = 0;

	roots->holds.cnt = 0;
	for (size_t i = 0; i < path->steps.cnt && !err; i++) {
		const struct path_step *step = &path->steps.items[i];
		struct root_trail trail = {.roots = roots, .session = session, .interval = interval, .row = row};
		bool ambiguous = step->certainty == WL_CERTAINTY_AMBIGUOUS;

		note_wait(roots, step);
		trail.way.category = ambiguous ? step->sure : step->category;
		trail.way.wait = step->wait;
		trail.idle = is_idle(step);
		if (trail.idle && (i > waits.last || !i))
			waits = idle_waits_from(&trail, path, i);
		trail.ended_by_timer = waits.ended_by_timer;
		trail.timer_met = trail.idle && waits.timer_met;
		if (!ambiguous) {
			err = set_object(&trail, step);
			for (size_t h = 0; h < PATH_HOPS_MAX && step->hop_tids[h] && !err; h++)
				err = root_trail__hop(&trail, 0, step->hop_tids[h]);
		}
		if (!err)
			err = root_trail__follow(&trail, step, traces_graph_ts(roots->traces, session, step->begin_ts),
						 traces_graph_ts(roots->traces, session, step->end_ts),
						 step->end_ts - step->begin_ts);
	}
	return err;
}

/* --- a full machine ------------------------------------------------------------------------------------------------
 */

#define CROWD_MIN 4 /* programs that had the CPU for equally long */

/* A wait for a CPU that a thread had for no request. */
static bool is_of_crowd(const struct roots *roots, const struct root_way *way)
{
	const struct root_key *key = &roots->keys.items[way->key];

	return way->wait == WL_CATEGORY_RUNQ && way->other && key->kind == ROOT_CODE && key->role && !key->type;
}

/*
 * How many programs had the CPU that intervals waited for, each counted by its share of that time: the inverse of
 * Simpson's index, n for n equal ones.
 */
static double crowd_size(const struct roots *roots, const double *ns_of)
{
	double sum = 0, squares = 0;

	for (size_t k = 0; k < roots->keys.cnt; k++) {
		sum += ns_of[k];
		squares += ns_of[k] * ns_of[k];
	}
	return squares > 0 ? sum * sum / squares : 0;
}

static void join_crowd(struct roots *roots, struct root_way *way, uint32_t full)
{
	size_t i = 0;

	while (i < PATH_HOPS_MAX && way->hops[i])
		i++;
	if (i < PATH_HOPS_MAX)
		way->hops[i] = roots->keys.items[way->key].role;
	way->key = full;
}

/* Where none of those that have the CPUs stands out, they are one root: the full machine. */
static int merge_crowd(struct roots *roots)
{
	const struct root_key full_key = {.kind = ROOT_FULL_MACHINE};
	double *ns_of = calloc(roots->keys.cnt + 1, sizeof(*ns_of));
	uint32_t full;
	int err = 0;

	if (!ns_of)
		return -ENOMEM;
	for (size_t e = 0; e < roots->entries.cnt; e++) {
		const struct root_entry *entry = &roots->entries.items[e];
		const struct root_way *way = &roots->ways.items[entry->way];

		if (is_of_crowd(roots, way))
			ns_of[way->key] += (double)entry->ns;
	}
	if (crowd_size(roots, ns_of) >= CROWD_MIN && !(err = key_id(roots, &full_key, &full))) {
		for (size_t e = 0; e < roots->entries.cnt; e++)
			if (is_of_crowd(roots, &roots->ways.items[roots->entries.items[e].way]))
				roots->entries.items[e].tick_cnt = 0;
		for (size_t w = 0; w < roots->ways.cnt; w++)
			if (is_of_crowd(roots, &roots->ways.items[w]))
				join_crowd(roots, &roots->ways.items[w], full);
	}
	free(ns_of);
	return err;
}

ORDER(compare_ticks, struct root_tick, BY(a->entry, b->entry), BY(a->unit, b->unit), BY(a->node, b->node));

int roots__settle(struct roots *roots)
{
	vec_sort(&roots->ticks, compare_ticks);
	for (size_t i = 0; i < roots->ticks.cnt; i++) {
		struct root_entry *entry = &roots->entries.items[roots->ticks.items[i].entry];

		entry->tick = entry->tick_cnt ? entry->tick : (uint32_t)i;
		entry->tick_cnt++;
	}
	return merge_crowd(roots);
}

int roots_init(struct roots *roots, const struct traces *traces, const struct samples *samples,
	       const struct dataset *dataset)
{
	uint32_t empty;

	*roots = (struct roots){
		.traces = traces,
		.dataset = dataset,
		.samples = samples && samples->rows.cnt ? samples : NULL,
		.arena = arena__new(),
		.many_hosts = traces_many_hosts(traces),
	};
	roots->strings.arena = roots->arena;
	roots->role_ids = malloc((traces->strings.cnt + 1) * sizeof(*roots->role_ids));
	if (!roots->arena || !roots->role_ids)
		return -ENOMEM;
	memset(roots->role_ids, 0xff, (traces->strings.cnt + 1) * sizeof(*roots->role_ids));
	if (intern__id(&roots->strings, "", &empty) || count_stems(roots))
		return -ENOMEM;
	return spins_find(&roots->spins, traces, roots->samples);
}

void roots_free(struct roots *roots)
{
	vec_free(&roots->keys);
	vec_free(&roots->ways);
	vec_free(&roots->entries);
	vec_free(&roots->ticks);
	vec_free(&roots->holds);
	vec_free(&roots->stem_names);
	vec_free(&roots->row_ways);
	vec_free(&roots->row_of_way);
	idmap__free(&roots->key_ids);
	idmap__free(&roots->way_ids);
	idmap__free(&roots->object_ids);
	idmap__free(&roots->hop_ids);
	idmap__free(&roots->unit_ids);
	idmap__free(&roots->stem_ids);
	spins_free(&roots->spins);
	intern__free(&roots->strings);
	free(roots->role_ids);
	for (int i = 0; i < ROOT_NEST_MAX; i++)
		path__clear(&roots->nested[i]);
	arena__free(roots->arena);
	*roots = (struct roots){0};
}
