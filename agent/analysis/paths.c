// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/paths.h"

#include "analysis/roots.h"
#include "analysis/story.h"
#include "base/names.h"
#include "base/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

/* What is needed while the intervals are walked. */
struct paths_walk {
	struct paths *paths;
	const struct traces *traces;
	struct dataset *dataset;
	struct roots *roots;
	bool many_hosts;
	struct intern strings;  /* those of the dataset, and what is added to them */
	uint32_t *string_ids;   /* by index into the traces' strings, NONE: not needed so far */
	struct idmap addresses; /* → index into address_ids */
	VEC(uint32_t) address_ids;
	VEC(uint32_t) last_rows;   /* by key: the row that used it last … */
	VEC(uint32_t) row_entries; /* … and its entry there */
	struct path path;
};

static int string_id(struct paths_walk *walk, uint32_t traces_string_id, uint32_t *id)
{
	uint32_t *known = &walk->string_ids[traces_string_id];

	if (*known == NONE && intern__id(&walk->strings, traces_string(walk->traces, traces_string_id), known))
		return -ENOMEM;
	*id = *known;
	return 0;
}

static int address_id(struct paths_walk *walk, uint64_t address, uint32_t *id)
{
	char hex[24];
	uint32_t at;

	if (idmap__id(&walk->addresses, address, 0, &at))
		return -ENOMEM;
	if (at == walk->address_ids.cnt) {
		snprintf(hex, sizeof(hex), "0x%llx", (unsigned long long)address);
		if (intern__id(&walk->strings, hex, id) || vec_push(&walk->address_ids, *id))
			return -ENOMEM;
	}
	*id = walk->address_ids.items[at];
	return 0;
}

/* Where there are several hosts: the name of the thread's, otherwise 0. */
static int host_id(struct paths_walk *walk, const struct trace_session *session, uint32_t tid, uint32_t *id)
{
	*id = 0;
	if (!tid || !walk->many_hosts)
		return 0;
	return string_id(walk, traces_owner(walk->traces, session, tid)->host, id);
}

/* The key of a step, without those it is told apart by nobody. */
static int describe_step(struct paths_walk *walk, const struct trace_session *session, const struct path_step *step,
			 struct path_key *key)
{
	bool by_address;
	uint32_t object;
	int err;

	*key = (struct path_key){.category = step->category, .wait = step->wait, .own = !step->depth};
	if (step->certainty == WL_CERTAINTY_AMBIGUOUS) {
		key->category = step->sure;
		key->own = true;
		return 0;
	}
	object = story_object(walk->traces, session, step, &by_address);
	err = by_address ? address_id(walk, step->object, &key->object) : string_id(walk, object, &key->object);
	if (!err && step->depth)
		err = string_id(walk, traces_thread_name(walk->traces, session, step->pid, step->tid), &key->role);
	if (!err)
		err = string_id(walk, story_culprit_name(walk->traces, session, step), &key->who);
	if (!err)
		err = host_id(walk, session,
			      step->culprit_tid ? step->culprit_tid
			      : step->depth     ? step->tid
						: 0,
			      &key->host);
	return err;
}

static int key_of(struct paths_walk *walk, const struct path_key *key, uint32_t *id)
{
	uint64_t kind =
		(uint64_t)key->by_recorder << 24 | (uint64_t)key->category << 16 | (uint64_t)key->wait << 8 | key->own;

	uint32_t who;

	/* Names are the same on many hosts. */
	if (idmap__id(&walk->paths->who_ids, key->who, key->host, &who) ||
	    idmap__id(&walk->paths->key_ids, kind << 32 | key->role, (uint64_t)key->object << 32 | who, id))
		return -ENOMEM;
	if (*id < walk->paths->keys.cnt)
		return 0;
	if (vec_push(&walk->last_rows, NONE) || vec_push(&walk->row_entries, 0))
		return -ENOMEM;
	return vec_push(&walk->paths->keys, *key);
}

static int add_step(struct paths_walk *walk, const struct trace_session *session, uint32_t row,
		    const struct path_step *step)
{
	struct path_entry entry = {.row = row, .ns = step->end_ts - step->begin_ts};
	double weighted_ns = walk->dataset->weight[row] * (double)entry.ns;
	struct path_key described, *key;
	uint32_t id;

	if (describe_step(walk, session, step, &described))
		return -ENOMEM;
	if (step->certainty == WL_CERTAINTY_AMBIGUOUS) {
		walk->paths->ambiguous_ns += weighted_ns;
	} else if (step->culprit_tid) {
		uint32_t pid = step->culprit_pid ? step->culprit_pid
						 : traces_thread_pid(walk->traces, session, step->culprit_tid);

		entry.tid = traces_real_id(step->culprit_tid);
		entry.pid = traces_real_id(pid);
		described.by_recorder = step->category == WL_CATEGORY_RUNQ &&
					dataset_is_own(walk->dataset, walk->dataset->session[row], entry.pid);
	}
	if (key_of(walk, &described, &id))
		return -ENOMEM;
	key = &walk->paths->keys.items[id];
	key->doing_ns[state_category(step->state)] += weighted_ns;
	blame_ids__note(&key->pids, entry.pid);
	blame_ids__note(&key->tids, entry.tid);
	entry.key = id;
	if (walk->last_rows.items[id] != row) {
		walk->last_rows.items[id] = row;
		walk->row_entries.items[id] = (uint32_t)walk->paths->entries.cnt;
		return vec_push(&walk->paths->entries, entry);
	}
	walk->paths->entries.items[walk->row_entries.items[id]].ns += entry.ns;
	return 0;
}

/* The array of a category, made where it is needed first. */
static void *made(struct dataset *dataset, void *array, size_t item_sz)
{
	void *fresh;

	if (array)
		return array;
	fresh = calloc(dataset->row_cnt, item_sz);
	return fresh && !arena__adopt(dataset->arena, fresh) ? fresh : NULL;
}

static int blame_row(struct paths_walk *walk, uint32_t row, const struct path_entry *const worst[WL_CATEGORY_CNT])
{
	struct dataset *dataset = walk->dataset;

	for (int c = 0; c < WL_CATEGORY_CNT; c++) {
		const struct path_key *key = worst[c] ? &walk->paths->keys.items[worst[c]->key] : NULL;
		struct dataset_blame blame = {0};

		if (key && (key->who || key->object || key->by_recorder)) {
			blame = (struct dataset_blame){
				.who = key->who,
				.object = key->object,
				.host = key->host,
				.pid = worst[c]->pid,
				.tid = worst[c]->tid,
				.is_own = key->by_recorder,
			};
			dataset->blame[c] = made(dataset, dataset->blame[c], sizeof(*dataset->blame[c]));
			if (!dataset->blame[c])
				return -ENOMEM;
		}
		if (dataset->blame[c])
			dataset->blame[c][row] = blame;
	}
	return 0;
}

/* The path's categories and culprits instead of the counters'. */
static int replace_row(struct paths_walk *walk, uint32_t row, size_t first_entry)
{
	const struct path_entry *worst[WL_CATEGORY_CNT] = {NULL};
	uint64_t ns[WL_CATEGORY_CNT] = {0};
	struct dataset *dataset = walk->dataset;

	for (size_t i = first_entry; i < walk->paths->entries.cnt; i++) {
		const struct path_entry *entry = &walk->paths->entries.items[i];
		uint8_t category = walk->paths->keys.items[entry->key].category;

		ns[category] += entry->ns;
		if (!worst[category] || entry->ns > worst[category]->ns)
			worst[category] = entry;
	}
	for (int c = 0; c < WL_CATEGORY_CNT; c++) {
		if (ns[c]) {
			dataset->category_ns[c] = made(dataset, dataset->category_ns[c], sizeof(uint64_t));
			if (!dataset->category_ns[c])
				return -ENOMEM;
		}
		if (dataset->category_ns[c])
			dataset->category_ns[c][row] = ns[c];
	}
	return blame_row(walk, row, worst);
}

static int add_crossing(struct paths_walk *walk, uint32_t row, uint32_t by_type, uint64_t ns, bool first)
{
	struct paths *paths = walk->paths;
	uint32_t type = walk->dataset->type[row], id;
	double weight = walk->dataset->weight[row];

	if (idmap__id(&paths->crossing_ids, type, by_type, &id))
		return -ENOMEM;
	if (id == paths->crossings.cnt &&
	    vec_push(&paths->crossings, ((struct path_crossing){.type = type, .by_type = by_type})))
		return -ENOMEM;
	paths->crossings.items[id].count += first ? weight : 0;
	paths->crossings.items[id].wait_ns += weight * (double)ns;
	return 0;
}

/* Behind a lock, whose holder worked for another interval or for none: Whodunit §6. */
static bool is_crossing(const struct path *path, const struct path_step *step)
{
	return step->depth && step->certainty != WL_CERTAINTY_AMBIGUOUS && step->sid != path->sid &&
	       (step->category == WL_CATEGORY_LOCK || step->wait == WL_CATEGORY_LOCK);
}

static int crossing_type(struct paths_walk *walk, const struct trace_session *session, const struct path_step *step,
			 uint32_t *type)
{
	const struct trace_interval *other = traces_step_interval(walk->traces, session, step);

	uint32_t name = other ? other->base.type : step->type;

	*type = 0;
	return step->sid && name ? string_id(walk, name, type) : 0;
}

static int add_crossings(struct paths_walk *walk, const struct trace_session *session, uint32_t row)
{
	const struct path *path = &walk->path;
	uint32_t seen[16], by_type;
	size_t seen_cnt = 0, s;

	for (size_t i = 0; i < path->steps.cnt; i++) {
		const struct path_step *step = &path->steps.items[i];

		if (!is_crossing(path, step))
			continue;
		if (crossing_type(walk, session, step, &by_type))
			return -ENOMEM;
		for (s = 0; s < seen_cnt && seen[s] != by_type; s++)
			;
		if (add_crossing(walk, row, by_type, step->end_ts - step->begin_ts, s == seen_cnt))
			return -ENOMEM;
		if (s == seen_cnt && seen_cnt < sizeof(seen) / sizeof(seen[0]))
			seen[seen_cnt++] = by_type;
	}
	return 0;
}

static void count_flags(struct paths *paths, uint32_t flags)
{
	paths->walked++;
	paths->lossy += !!(flags & PATH_LOSSY);
	paths->with_gap += !!(flags & PATH_GAP);
	paths->without_edge += !!(flags & PATH_NO_EDGE);
	paths->with_loop += !!(flags & PATH_LOOP);
	paths->too_long += !!(flags & PATH_TOO_LONG);
	paths->ambiguous += !!(flags & PATH_AMBIGUOUS);
}

static int walk_row(struct paths_walk *walk, uint32_t row)
{
	const struct dataset *dataset = walk->dataset;
	struct trace_session *session = traces_session(walk->traces, dataset->session_ids[dataset->session[row]]);
	const struct trace_interval *interval = traces_interval(walk->traces, session, dataset->sid[row]);
	size_t first_entry = walk->paths->entries.cnt;
	int err;

	/* The same sid twice in a recording: only one of them can be meant. */
	if (!interval || interval->base.begin_ts != dataset->begin_ts[row] ||
	    interval->base.end_ts - interval->base.begin_ts != dataset->latency_ns[row])
		return 0;
	err = traces_walk(&walk->path, walk->traces, interval);
	if (err)
		return err == -EINVAL ? 0 : err;
	walk->paths->interval_of[row] = (uint32_t)(interval - walk->traces->intervals.items);
	count_flags(walk->paths, walk->path.flags);
	if (walk->path.flags & PATH_LOSSY)
		return 0;
	walk->paths->ranked[row] = true;
	for (size_t i = 0; i < walk->path.steps.cnt && !err; i++)
		err = add_step(walk, session, row, &walk->path.steps.items[i]);
	if (!err)
		err = add_crossings(walk, session, row);
	if (!err && walk->roots)
		err = roots__take(walk->roots, row, interval, &walk->path);
	return err ? err : replace_row(walk, row, first_entry);
}

static int walk_init(struct paths_walk *walk)
{
	struct dataset *dataset = walk->dataset;
	size_t string_cnt = walk->traces->strings.cnt;
	uint32_t id;

	walk->paths->interval_of = malloc((dataset->row_cnt + 1) * sizeof(*walk->paths->interval_of));
	walk->paths->ranked = calloc(dataset->row_cnt + 1, sizeof(*walk->paths->ranked));
	walk->string_ids = malloc((string_cnt + 1) * sizeof(*walk->string_ids));
	if (!walk->paths->interval_of || !walk->paths->ranked || !walk->string_ids)
		return -ENOMEM;
	memset(walk->paths->interval_of, 0xff, dataset->row_cnt * sizeof(*walk->paths->interval_of));
	memset(walk->string_ids, 0xff, string_cnt * sizeof(*walk->string_ids));
	walk->strings.arena = dataset->arena;
	for (size_t i = 0; i < dataset->string_cnt; i++)
		if (intern__id(&walk->strings, dataset->strings[i], &id))
			return -ENOMEM;
	return 0;
}

/* The strings that came to those of the dataset are its own from now on. */
static int give_strings(struct paths_walk *walk)
{
	const char **strings = walk->strings.strings;
	size_t cnt = walk->strings.cnt;

	walk->strings.strings = NULL;
	if (arena__adopt(walk->dataset->arena, (void *)strings))
		return -ENOMEM;
	walk->dataset->strings = strings;
	walk->dataset->string_cnt = cnt;
	return 0;
}

int paths_make(struct paths *paths, const struct traces *traces, struct dataset *dataset, struct roots *roots)
{
	struct paths_walk walk = {
		.paths = paths,
		.traces = traces,
		.dataset = dataset,
		.roots = roots,
		.many_hosts = traces_many_hosts(traces),
	};
	int err;

	progress_at("following critical paths");
	*paths = (struct paths){.traces = traces, .row_cnt = dataset->row_cnt};
	err = dataset->row_cnt < NONE ? walk_init(&walk) : -E2BIG;
	for (size_t row = 0; row < dataset->row_cnt && !err; row++)
		err = walk_row(&walk, (uint32_t)row);
	if (!err)
		err = give_strings(&walk);
	if (!err && roots)
		err = roots__settle(roots);
	path__clear(&walk.path);
	intern__free(&walk.strings);
	idmap__free(&walk.addresses);
	vec_free(&walk.address_ids);
	vec_free(&walk.last_rows);
	vec_free(&walk.row_entries);
	free(walk.string_ids);
	if (err)
		paths_free(paths);
	return err;
}

void paths_free(struct paths *paths)
{
	vec_free(&paths->keys);
	vec_free(&paths->entries);
	vec_free(&paths->crossings);
	idmap__free(&paths->key_ids);
	idmap__free(&paths->who_ids);
	idmap__free(&paths->crossing_ids);
	free(paths->interval_of);
	free(paths->ranked);
	*paths = (struct paths){0};
}
