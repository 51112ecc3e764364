// SPDX-License-Identifier: GPL-2.0-or-later
#include "rounds/queues.h"

#include "base/clock.h"
#include "base/log.h"
#include "capture/probes.h"
#include "rounds/queues_internal.h"
#include "target/proc_file.h"
#include "target/target.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define PLACES_MAX 3000
/* The kernel gives sets back late: those of two rounds before may still be there. */
#define PROBES_MAX     (CAPTURE_PROBES_MAX / 4)
#define SLOW_NS        3000000000ULL /* where reading took so much CPU time, attaching does, too */
#define SLOW_MAX       400
#define READ_LIMIT_NS  5000000000ULL /* of CPU time, for machine code */
#define LOOK_NS        200000000ULL  /* for how often places are passed */
#define LOOK_POLL_MS   10
#define POLL_MS        50
#define RING_SZ        (4 << 20)
#define VALUES_MAX     2000000
#define OFTEN_PER_S    10000.0 /* a place that is passed more often is watched for a moment only */
#define COST_SHARE     0.01    /* of all CPUs, for all places together */
#define PER_PLACE_MAX  20000   /* values that are compared */
#define SECOND_NS      1e9
#define DETACH_WAIT_NS 1000000000ULL
#define TURNS_MAX      6
#define REFRESH_NS     100000000ULL
#define POLLED_PART    3 /* a function that finds nothing in every third call polls */

struct watch {
	const struct suggest_options *options;
	struct program *program;
	struct queue_study *study;
	queue_lists lists;
	VEC(struct probe) probes;
	VEC(size_t) lists_of; /* of each probe: which list it is from */
	VEC(uint64_t) seen;   /* of each line */
	queue_values values;
	struct suggest_capture live;
	uint64_t spent_ns, refreshed_ts;
	uint8_t hazards; /* that the probes were planned for */
	bool is_over;    /* return probes are not safe any more */
	uint32_t round;
};

static int take_value(void *owner, const struct wl_record_header *header)
{
	const struct wl_queue_record *record = (const void *)header;
	struct watch *watch = owner;
	struct queue_value value;

	if (header->kind != WL_RECORD_QUEUE || record->sid >= watch->seen.cnt || watch->values.cnt >= VALUES_MAX ||
	    ++watch->seen.items[record->sid] > PER_PLACE_MAX)
		return 0;
	value = (struct queue_value){
		.ts = record->from_ts,
		.value = record->task,
		.lock = watch->study->lines.items[record->sid].has_lock ? record->queue : 0,
		.pid = record->to_pid,
		.tid = record->to_tid,
		.place = (uint32_t)record->sid,
		.round = watch->round,
	};
	return vec_push(&watch->values, value);
}

/* All lines that can be probed cheaply. */
static int probes_make(struct watch *watch)
{
	int err = 0;

	for (size_t i = 0; i < watch->lists.cnt && !err; i++) {
		struct queue_list *list = &watch->lists.items[i];

		for (size_t j = 0; j < list->targets.targets.cnt && !err; j++) {
			const struct probe_target *target = &list->targets.targets.items[j];
			struct probe probe;

			probe_of_target(target, &list->lines.items[target->line_idx], watch->program, &probe);
			if (!probe.file || (probe.plan ? probe.plan->entry.cost : probe.usdt_cost) != PLAN_EMULATED)
				continue;
			if (watch->probes.cnt == PROBES_MAX) {
				watch->study->dropped++;
				continue;
			}
			probe.watched = true;
			probe.func = list->ids.items[target->line_idx];
			err = vec_push(&watch->probes, probe);
			if (!err)
				err = vec_push(&watch->lists_of, i);
			watch->study->lines.items[probe.func].watched = true;
		}
	}
	return err;
}

static uint64_t budget_ns(const struct watch *watch)
{
	return (uint64_t)(COST_SHARE * watch->options->duration_ns * sysconf(_SC_NPROCESSORS_ONLN));
}

/* One round of watching. */
struct round {
	const bool *often;                 /* by probe */
	bool with_often;                   /* those as well */
	size_t turn, turns;                /* ends of calls: of those that share a function, one at a time */
	uint64_t duration_ns, cost_max_ns; /* it ends when either is spent */
	int poll_ms;
};

static bool is_in_round(const struct watch *watch, const struct round *round, size_t idx)
{
	if (round->often[idx] && !round->with_often)
		return false;
	return !probe_wants_exit(&watch->probes.items[idx]) || watch->lists_of.items[idx] % round->turns == round->turn;
}

/* Of the ends of one call, which several probes wait for, the first gets it. */
static bool is_told_apart(const struct watch *watch, const struct round *round, size_t idx)
{
	return !probe_wants_exit(&watch->probes.items[idx]) || watch->lists_of.items[idx] < round->turns;
}

/*
 * The target has ended, or what it has loaded meanwhile may make return probes unsafe: then they go, and what was seen
 * must do.
 */
static bool is_over(struct watch *watch)
{
	uint64_t now = monotonic_ns();
	int changes;

	if (watch->is_over || now - watch->refreshed_ts < REFRESH_NS)
		return watch->is_over;
	watch->refreshed_ts = now;
	changes = program__refresh(watch->program);
	/* One that has ended has no code any more, whether its parent has noticed or not. */
	if (changes < 0 || program__module(watch->program, 0)->gone) {
		log_warn("process %d has ended: what was seen until then must do",
			 watch->options->target->pids.items[0]);
		watch->is_over = true;
	} else if (changes && program__hazards(watch->program) & ~watch->hazards) {
		log_warn("the target has loaded code with which return probes are not safe: the search ends here");
		watch->is_over = true;
	}
	return watch->is_over;
}

static int watch_until(struct watch *watch, const struct round *round, const struct probe *probes, size_t cnt,
		       struct probe_hits *before, struct probe_hits *hits)
{
	struct probe_set *set = NULL;
	uint64_t begin_ts, now, cost_ns = 0;
	int err = capture__attach_probes(watch->live.capture, probes, cnt, &set);

	if (err)
		return err;
	capture__probe_hits(watch->live.capture, set, before);
	for (begin_ts = now = monotonic_ns();
	     !err && !is_over(watch) && now - begin_ts < round->duration_ns && cost_ns < round->cost_max_ns;
	     now = monotonic_ns()) {
		log_progress("watching %zu places: %.1f s", cnt, (now - begin_ts) / SECOND_NS);
		err = capture__poll(watch->live.capture, round->poll_ms, take_value, watch);
		if (err == -EINTR || err > 0)
			err = 0;
		capture__probe_hits(watch->live.capture, set, hits);
		cost_ns = 0;
		for (size_t i = 0; i < cnt; i++)
			cost_ns += hits[i].cost_ns - before[i].cost_ns;
	}
	log_progress_end();
	for (size_t i = 0; i < cnt && !err; i++)
		watch->study->lines.items[probes[i].func].hits += hits[i].entries - before[i].entries;
	watch->spent_ns += cost_ns;
	watch->study->seconds += (now - begin_ts) / SECOND_NS;
	capture__detach_probes(watch->live.capture, set);
	return err;
}

static int watch_round(struct watch *watch, const struct round *round)
{
	size_t cnt = watch->probes.cnt, attached = 0;
	struct probe *probes = calloc(cnt + 1, sizeof(*probes));
	struct probe_hits *before = calloc(cnt + 1, sizeof(*before)), *hits = calloc(cnt + 1, sizeof(*hits));
	int err = probes && hits && before ? 0 : -ENOMEM;

	for (size_t i = 0; i < cnt && !err; i++)
		if (is_in_round(watch, round, i))
			probes[attached++] = watch->probes.items[i];
	for (size_t i = 0; i < cnt && !err; i++)
		if (is_in_round(watch, round, i) && is_told_apart(watch, round, i))
			watch->study->lines.items[watch->probes.items[i].func].end.rounds |= 1U << watch->round;
	if (!err && attached && !is_over(watch))
		err = watch_until(watch, round, probes, attached, before, hits);
	watch->round++;
	free(probes);
	free(before);
	free(hits);
	return err;
}

/* How many turns the functions that are called take, of whose calls several ends are to be watched. */
static size_t turns_of(const struct watch *watch)
{
	size_t turns = 1;

	for (size_t i = 0; i < watch->probes.cnt; i++)
		if (probe_wants_exit(&watch->probes.items[i]) &&
		    watch->study->lines.items[watch->probes.items[i].func].hits && watch->lists_of.items[i] >= turns)
			turns = watch->lists_of.items[i] + 1;
	return turns < TURNS_MAX ? turns : TURNS_MAX;
}

/* A first look at all of them tells which are passed so often that a moment must do. */
static int watch_all(struct watch *watch)
{
	bool *often = calloc(watch->probes.cnt + 1, sizeof(*often));
	uint64_t budget = budget_ns(watch);
	struct round round = {
		.often = often,
		.with_often = true,
		.turns = 1,
		.duration_ns = LOOK_NS,
		.cost_max_ns = budget / 4,
		.poll_ms = LOOK_POLL_MS,
	};
	size_t often_cnt = 0;
	int err = often ? watch_round(watch, &round) : -ENOMEM;

	for (size_t i = 0; i < watch->probes.cnt && !err; i++) {
		double per_s = watch->study->lines.items[watch->probes.items[i].func].hits / watch->study->seconds;

		often[i] = per_s > OFTEN_PER_S;
		often_cnt += often[i];
	}
	round.turns = turns_of(watch);
	log_debug("%zu of %zu places are passed more than %.0f times a second; %zu turns", often_cnt, watch->probes.cnt,
		  OFTEN_PER_S, round.turns);
	for (; round.turn < 2 * round.turns && !err; round.turn++) {
		struct round one = round;

		one.turn = round.turn % round.turns;
		one.with_often = round.turn >= round.turns;
		if (one.with_often && !often_cnt)
			break;
		one.duration_ns = watch->options->duration_ns / round.turns;
		one.cost_max_ns = (one.with_often ? budget / 4 : budget / 2) / round.turns;
		one.poll_ms = one.with_often ? LOOK_POLL_MS : POLL_MS;
		err = watch_round(watch, &one);
	}
	capture__detaching(watch->live.capture, DETACH_WAIT_NS);
	free(often);
	return err;
}

/* A thread that has ended has no name. */
static void comm_read(uint32_t pid, uint32_t tid, char comm[16])
{
	ssize_t len = proc_read(comm, 16, "/proc/%u/task/%u/comm", pid, tid);

	len = len < 0 ? 0 : len;
	while (len && (comm[len - 1] == '\n' || len == 16))
		len--;
	comm[len] = '\0';
}

static void comms_read(queue_pairs *pairs)
{
	for (size_t i = 0; i < pairs->cnt; i++) {
		comm_read(pairs->items[i].pid, pairs->items[i].in_tid, pairs->items[i].in_comm);
		comm_read(pairs->items[i].pid, pairs->items[i].out_tid, pairs->items[i].out_comm);
	}
}

/* Marks the ends of the functions that poll: so often they take NULL instead of a value. */
static int polled_mark(const struct watch *watch, struct queue_end *ends)
{
	const struct queue_study *study = watch->study;
	uint64_t *empty = calloc(study->lines.cnt + 1, sizeof(*empty));

	if (!empty)
		return -ENOMEM;
	for (size_t i = 0; i < watch->values.cnt; i++)
		empty[watch->values.items[i].place] += !watch->values.items[i].value;
	for (size_t i = 0; i < study->lines.cnt; i++) {
		const struct queue_line *line = &study->lines.items[i];

		if (!line->out || !empty[i] || empty[i] * POLLED_PART < watch->seen.items[i])
			continue;
		for (size_t j = 0; j < study->lines.cnt; j++)
			ends[j].polled |= study->lines.items[j].out && study->lines.items[j].function == line->function;
	}
	free(empty);
	return 0;
}

static int match_all(struct watch *watch)
{
	struct queue_study *study = watch->study;
	struct queue_end *ends = calloc(study->lines.cnt + 1, sizeof(*ends));
	queue_pairs found = {0};
	int err = ends ? 0 : -ENOMEM;

	for (size_t i = 0; i < study->lines.cnt && !err; i++)
		ends[i] = study->lines.items[i].end;
	if (!err)
		err = polled_mark(watch, ends);
	study->values = watch->values.cnt;
	for (uint32_t i = 0; i < study->lines.cnt && !err; i++) {
		const struct queue_value *last = NULL;

		for (size_t j = 0; j < watch->values.cnt; j++)
			if (watch->values.items[j].place == i)
				last = &watch->values.items[j];
		if (last)
			log_debug("%s: %lu hits, %lu values, the last one 0x%lx by thread %u, lock 0x%lx",
				  study->lines.items[i].text, study->lines.items[i].hits, watch->seen.items[i],
				  last->value, last->tid, last->lock);
	}
	if (!err)
		err = queue_pairs_find(ends, study->lines.cnt, &watch->values, &found);
	for (size_t i = 0; i < found.cnt && !err; i++)
		log_debug("%s | %s: %s: %lu in, %lu out, %lu crossed, %lu on one thread, %lu again, %lu unseen",
			  study->lines.items[found.items[i].in].text, study->lines.items[found.items[i].out].text,
			  queue_verdict_text(found.items[i].verdict), found.items[i].in_cnt, found.items[i].out_cnt,
			  found.items[i].crossed, found.items[i].same_thread, found.items[i].again,
			  found.items[i].unseen);
	if (!err)
		err = queue_pairs_choose(study, &found);
	comms_read(&study->pairs);
	comms_read(&study->rejected);
	vec_free(&found);
	free(ends);
	return err;
}

static int watch_and_match(struct watch *watch)
{
	struct capture_counts counts;
	int err = probes_make(watch);

	if (!err && !watch->probes.cnt)
		return 0;
	for (size_t i = 0; i < watch->study->lines.cnt && !err; i++)
		err = vec_push(&watch->seen, 0);
	if (!err)
		err = suggest_capture__open(&watch->live, watch->options, false, RING_SZ);
	if (!err)
		err = watch_all(watch);
	if (err)
		return err;
	capture__counts(watch->live.capture, &counts);
	watch->study->lost = counts.loss[WL_LOSS_EDGE].lost;
	watch->study->cost = watch->study->seconds > 0 ? watch->spent_ns / SECOND_NS / watch->study->seconds : 0;
	return match_all(watch);
}

int queues_find(struct queue_study *study, const struct suggest_options *options, struct program *program)
{
	struct watch watch = {
		.options = options,
		.program = program,
		.study = study,
		.hazards = program__hazards(program),
	};
	struct queue_places places;
	uint64_t begin_ts = monotonic_ns();
	int err = queue_places_find(program, PLACES_MAX, READ_LIMIT_NS, &places);

	if (places.sections_ns > SLOW_NS)
		queue_places_limit(&places, SLOW_MAX);
	study->lock_functions = places.lock_functions;
	study->own_lock_functions = places.own_lock_functions;
	study->places = places.items.cnt;
	study->dropped = places.dropped;
	study->left_out = places.left_out;
	if (!err)
		err = queue_lines_make(program, &places, study);
	if (!err)
		err = queue_lines_resolve(program, study, &watch.lists);
	log_debug("%zu lines for %zu places, %.1f s after the beginning", study->lines.cnt, study->places,
		  (monotonic_ns() - begin_ts) / SECOND_NS);
	if (!err)
		err = watch_and_match(&watch);
	if (err == -ENOMEM)
		log_error("out of memory");
	suggest_capture__close(&watch.live);
	queue_lists_free(&watch.lists);
	queue_places_free(&places);
	vec_free(&watch.probes);
	vec_free(&watch.lists_of);
	vec_free(&watch.seen);
	vec_free(&watch.values);
	return err;
}

void queue_study_free(struct queue_study *study)
{
	for (size_t i = 0; i < study->lines.cnt; i++)
		free(study->lines.items[i].text);
	vec_free(&study->lines);
	vec_free(&study->pairs);
	vec_free(&study->rejected);
}
