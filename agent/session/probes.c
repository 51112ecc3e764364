// SPDX-License-Identifier: GPL-2.0-or-later
#include "session/probes.h"

#include "base/log.h"
#include "model/session.h"
#include "session/recording.h"
#include "session/sinks.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

/* One function of a set. */
struct recorded_func {
	uint32_t func;
	uint32_t parent_func;
};

struct recorded_set {
	struct probe_set *set;
	uint32_t round;
	VEC(struct recorded_func) funcs; /* one per probe */
};

struct recorded_probes {
	struct invocations *invocations;
	VEC(struct recorded_set *) sets;
	VEC(uint32_t) symbols; /* functions that have their row */
	uint32_t highest;      /* of the call graph, as far as it was met */
	uint64_t attach_ns;
};

bool recording_probes_wanted(const struct recording *recording)
{
	return recording->options->symbols || recording_client_probes(recording) || recording->symbols.marked;
}

void recording_probes_learn(struct recording *recording)
{
	for (size_t i = 0; i < recording->symbols.targets.targets.cnt; i++)
		if (!recording->symbols.targets.targets.items[i].usdt)
			program__height(recording->program, recording->symbols.targets.targets.items[i].func);
	program__forget_callees(recording->program);
	program__forget_tables(recording->program);
	malloc_trim(0);
}

int recording_probes_open(struct recording *recording)
{
	/* In trace mode most of the memory is the graph's. */
	struct invocations_opts opts = {
		.memory = recording->options->trace ? recording->options->memory / 4 : recording->options->memory,
		.append = recording_append,
		.owner = recording,
	};

	if (!recording_probes_wanted(recording))
		return 0;
	recording->probes = calloc(1, sizeof(*recording->probes));
	if (recording->probes)
		recording->probes->invocations = invocations__new(&opts);
	if (recording->probes && recording->probes->invocations)
		return 0;
	log_error("out of memory");
	return -ENOMEM;
}

static void set__free(struct recorded_set *set)
{
	vec_free(&set->funcs);
	free(set);
}

void recording_probes_free(struct recording *recording)
{
	struct recorded_probes *probes = recording->probes;

	if (!probes)
		return;
	invocations__free(probes->invocations);
	for (size_t i = 0; i < probes->sets.cnt; i++)
		set__free(probes->sets.items[i]);
	vec_free(&probes->sets);
	vec_free(&probes->symbols);
	free(probes);
	recording->probes = NULL;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static struct shard_row *new_row(struct recording *recording)
{
	memset(recording->journal.row.nulls, 0, sizeof(recording->journal.row.nulls));
	return &recording->journal.row;
}

static void set_u64(struct shard_row *row, uint32_t column, uint64_t value, bool known)
{
	row->values[column].u64 = value;
	if (!known)
		shard_row__set_null(row, column);
}

/* "acquire,function": what the function is probed for in this set. */
static void roles_of(const struct recorded_probe *probes, size_t cnt, uint32_t func, char *text, size_t sz)
{
	bool has[PROBE_ROLE_CNT] = {false};

	*text = '\0';
	for (size_t i = 0; i < cnt; i++)
		if (probes[i].probe.func == func)
			has[probes[i].probe.role] = true;
	for (int role = 0; role < PROBE_ROLE_CNT; role++) {
		size_t len = strlen(text);

		if (has[role])
			snprintf(text + len, sz - len, "%s%s", len ? "," : "", probe_role_name(role));
	}
}

static enum plan_cost dearest(const struct probe *probe)
{
	enum plan_cost cost;

	if (!probe->plan)
		return probe->usdt_cost;
	cost = probe->plan->entry.cost;
	for (size_t i = 0; probe->plan->exit == PLAN_EXIT_SITES && i < probe->plan->exits.cnt; i++)
		if (probe->plan->exits.items[i].cost > cost)
			cost = probe->plan->exits.items[i].cost;
	return cost;
}

static int write_symbol(struct recording *recording, const struct recorded_probe *probes, size_t cnt, size_t idx)
{
	const struct recorded_probe *probe = &probes[idx];
	struct shard_row *row = new_row(recording);
	char roles[128];

	for (size_t i = 0; i < recording->probes->symbols.cnt; i++)
		if (recording->probes->symbols.items[i] == probe->probe.func)
			return 0;
	if (vec_push(&recording->probes->symbols, probe->probe.func))
		return -ENOMEM;
	roles_of(probes, cnt, probe->probe.func, roles, sizeof(roles));
	row->values[SYMBOL_ID].u64 = probe->probe.func;
	row->values[SYMBOL_MODULE].str = probe->module;
	row->values[SYMBOL_NAME].str = probe->name;
	row->values[SYMBOL_ADDR].u64 = probe->addr;
	set_u64(row, SYMBOL_SIZE, probe->size, probe->size != 0);
	set_u64(row, SYMBOL_HEIGHT, probe->height, probe->height != RECORDED_UNKNOWN);
	row->values[SYMBOL_KIND].str = probe->probe.plan ? "function" : "usdt";
	row->values[SYMBOL_ROLE].str = roles;
	row->values[SYMBOL_COST].str = dearest(&probe->probe) == PLAN_STEPPED ? "stepped" : "emulated";
	return journal__append(&recording->journal, SHARD_TABLE_SYMBOL, row);
}

/* hits: NULL where the event is not the end of it. */
static int write_event(struct recording *recording, const struct recorded_func *func, uint32_t round, const char *event,
		       const char *why, const struct probe_hits *hits, uint64_t ts)
{
	struct shard_row *row = new_row(recording);

	row->values[PROBE_TS].u64 = ts;
	row->values[PROBE_FUNC].u64 = func->func;
	row->values[PROBE_ROUND].u64 = round;
	row->values[PROBE_EVENT].str = event;
	row->values[PROBE_WHY].str = why;
	if (!why)
		shard_row__set_null(row, PROBE_WHY);
	set_u64(row, PROBE_PARENT_FUNC, func->parent_func, func->parent_func != RECORDED_UNKNOWN);
	set_u64(row, PROBE_ENTRIES, hits ? hits->entries : 0, hits);
	set_u64(row, PROBE_EXITS, hits ? hits->exits : 0, hits);
	set_u64(row, PROBE_COST_NS, hits ? hits->cost_ns : 0, hits);
	return journal__append(&recording->journal, SHARD_TABLE_PROBE, row);
}

/* --- sets --------------------------------------------------------------------------------------------------------- */

static struct recorded_set *make_set(struct recording *recording, const struct recorded_probe *probes, size_t cnt)
{
	struct recorded_set *set = calloc(1, sizeof(*set));
	int err = set ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < cnt; i++) {
		struct recorded_func func = {probes[i].probe.func, probes[i].parent_func};

		err = vec_push(&set->funcs, func);
	}
	if (!err)
		err = vec_push(&recording->probes->sets, set);
	if (!err)
		return set;
	if (set)
		set__free(set);
	return NULL;
}

/* It is not among the sets any more. */
static void drop_set(struct recording *recording, struct recorded_set *set)
{
	vec_take_out(&recording->probes->sets, set);
	capture__detach_probes(recording->capture, set->set);
	set__free(set);
}

/* Heights grow with what is learnt of the program, and are forgotten meanwhile. */
static int write_graph_height(struct recording *recording)
{
	uint32_t highest = recording->program ? program__highest(recording->program) : 0;

	if (highest <= recording->probes->highest)
		return 0;
	recording->probes->highest = highest;
	return journal__say(&recording->journal, SESSION_GRAPH_HEIGHT, "%u", highest);
}

int session__attach(struct recording *recording, const struct recorded_probe *probes, size_t cnt, uint32_t round,
		    struct recorded_set **set)
{
	struct probe *bare = calloc(cnt ? cnt : 1, sizeof(*bare));
	struct recorded_set *made = bare ? make_set(recording, probes, cnt) : NULL;
	int err = made ? 0 : -ENOMEM;
	uint64_t ts;

	for (size_t i = 0; !err && i < cnt; i++) {
		bare[i] = probes[i].probe;
		err = write_symbol(recording, probes, cnt, i);
	}
	if (!err)
		err = write_graph_height(recording);
	if (!err)
		err = capture__attach_probes(recording->capture, bare, cnt, &made->set);
	free(bare);
	if (made)
		made->round = round;
	ts = monotonic_ns();
	if (!err)
		recording->probes->attach_ns += capture__attach_ns(made->set);
	for (size_t i = 0; !err && i < made->funcs.cnt; i++)
		err = write_event(recording, &made->funcs.items[i], round, "attached", NULL, NULL, ts);
	if (err && made)
		drop_set(recording, made);
	if (set)
		*set = err ? NULL : made;
	return err;
}

void session__hits(struct recording *recording, const struct recorded_set *set, struct probe_hits *hits)
{
	capture__probe_hits(recording->capture, set->set, hits);
}

/* why: of all of them; or whys, each its own, NULL: not worth a row. */
static int say_detached(struct recording *recording, struct recorded_set *set, const char *why, const char *const *whys)
{
	struct probe_hits *hits = calloc(set->funcs.cnt + 1, sizeof(*hits));
	/* From then on calls are incomplete. */
	uint64_t detach_ts = capture__detach_ts(set->set), ts = detach_ts ? detach_ts : monotonic_ns();
	int err = hits ? 0 : -ENOMEM;

	if (!err)
		capture__probe_hits(recording->capture, set->set, hits);
	for (size_t i = 0; !err && i < set->funcs.cnt; i++) {
		const char *reason = whys ? whys[i] : why;

		if (reason)
			err = write_event(recording, &set->funcs.items[i], set->round, "detached", reason, &hits[i],
					  ts);
	}
	free(hits);
	return err;
}

int session__detach(struct recording *recording, struct recorded_set *set, const char *const *whys)
{
	int err = say_detached(recording, set, NULL, whys);

	drop_set(recording, set);
	return err;
}

int recording_probes_forgo(struct recording *recording, const struct recorded_probe *probe, const char *why)
{
	const struct recorded_func func = {probe->probe.func, probe->parent_func};
	int err = write_symbol(recording, probe, 1, 0);

	return err ? err : write_event(recording, &func, 0, "refused", why, NULL, monotonic_ns());
}

int recording_probes_ended(struct recording *recording, const struct recorded_probe *probe, const char *why,
			   const struct probe_hits *hits, uint64_t ts)
{
	const struct recorded_func func = {probe->probe.func, probe->parent_func};

	return write_event(recording, &func, 0, "detached", why, hits, ts);
}

void recording_probes_of_target(const struct recording *recording, const struct probe_target *target,
				struct recorded_probe *probe)
{
	const struct probe_line *line = &recording->symbols.lines.items[target->line_idx];
	const struct program_function *function =
		target->usdt ? NULL : program__function(recording->program, target->func);

	*probe = (struct recorded_probe){
		.module = program__module(recording->program, target->module)->name,
		.name = line->named && !target->by_glob ? line->name : target->name,
		.addr = target->file_off,
		.size = function ? function->size : 0,
		.height = function ? program__height(recording->program, target->func) : RECORDED_UNKNOWN,
		.parent_func = RECORDED_UNKNOWN,
	};
	probe_of_target(target, line, recording->program, &probe->probe);
}

void recording_probes_begin(struct recording *recording)
{
	if (recording->probes && recording->program)
		capture__set_stack_switching(recording->capture, program__switches_stacks(recording->program));
}

/* --- records ------------------------------------------------------------------------------------------------------ */

static int interval_ended(struct recording *recording, struct taken *taken)
{
	const struct wl_brief_record *ended = taken->ended;
	bool complete;
	int err;

	taken->flags = ended->flags;
	if (!recording->probes)
		return 0;
	err = invocations__interval(recording->probes->invocations, ended->sid, ended->end_ts, taken->kept, &complete);
	if (!complete)
		taken->flags |= WL_INTERVAL_LOSSY;
	return err;
}

int recording_invocations_take(struct recording *recording, struct taken *taken)
{
	if (taken->ended)
		return interval_ended(recording, taken);
	return recording->probes ? invocations__take(recording->probes->invocations,
						     (const struct wl_invocation_record *)taken->header)
				 : -EBADMSG;
}

bool recording_probes_lost(struct recording *recording)
{
	if (!recording->probes || recording->probes_lost || !capture__probes_lost(recording->capture))
		return recording->probes_lost;
	recording->probes_lost = true;
	log_warn("whylate-attach was killed, and all probes on functions are gone with it");
	return true;
}

int recording_probes_advance(struct recording *recording)
{
	return recording->probes
		       ? invocations__advance(recording->probes->invocations, capture__polled_ts(recording->capture))
		       : 0;
}

int recording_probes_finish(struct recording *recording)
{
	const char *why = recording->probes_lost ? RECORDED_ATTACHER_KILLED : "the recording ended";
	int err = 0;

	if (!recording->probes)
		return 0;
	for (size_t i = 0; !err && i < recording->probes->sets.cnt; i++)
		err = say_detached(recording, recording->probes->sets.items[i], why, NULL);
	return err ? err : invocations__finish(recording->probes->invocations);
}

void recording_probes_write_loss(struct recording *recording, uint64_t ts)
{
	struct invocations_counts counts;

	if (!recording->probes)
		return;
	invocations__counts(recording->probes->invocations, &counts);
	if (counts.missing)
		journal__loss(&recording->journal, ts, WL_LOSS_FORGOTTEN, 0, counts.written + counts.missing,
			      counts.missing);
}

int recording_probes_write_counts(struct recording *recording)
{
	struct invocations_counts counts;

	if (!recording->probes)
		return 0;
	invocations__counts(recording->probes->invocations, &counts);
	journal__say(&recording->journal, "invocation_records", "%" PRIu64, counts.received);
	journal__say(&recording->journal, "invocations_written", "%" PRIu64, counts.written);
	journal__say(&recording->journal, "invocations_forgotten", "%" PRIu64, counts.forgotten);
	journal__say(&recording->journal, "invocations_impossible", "%" PRIu64, counts.impossible);
	return journal__say(&recording->journal, "probe_unreadable", "%" PRIu64, recording->counts.unreadable);
}

void recording_probes_say(const struct recording *recording)
{
	struct invocations_counts counts;

	if (!recording->probes)
		return;
	invocations__counts(recording->probes->invocations, &counts);
	log_info("probes: attached in %.1f ms; %" PRIu64 " calls in selected intervals received, %" PRIu64
		 " written, the rest forgotten with their intervals",
		 recording->probes->attach_ns / 1e6, counts.received, counts.written);
	if (counts.missing)
		log_info("probes: %" PRIu64 " calls of kept intervals no longer fitted into memory (--memory)",
			 counts.missing);
	if (recording->counts.unreadable)
		log_info("probes: %" PRIu64 " times an expression could not be read", recording->counts.unreadable);
}
