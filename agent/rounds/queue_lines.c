// SPDX-License-Identifier: GPL-2.0-or-later
#include "rounds/queues_internal.h"

#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Of what the instruction sees, a named function must see so much to stand for it. */
#define BY_NAME_MIN  0.95
#define LIST_CNT_MAX 32

/* --- the text of a line ------------------------------------------------------------------------------------------- */

static void put_module(struct program *program, uint32_t module, char *text, size_t sz)
{
	snprintf(text, sz, "%.200s%s", module ? program__module(program, module)->name : "", module ? ":" : "");
}

static void put_register(const struct section_place *place, char *text, size_t sz)
{
	const char *name = code_reg_name(place->reg);

	if (place->in_memory)
		snprintf(text, sz, "*(%%%s%+d)%s", name, place->disp, place->sz == 4 ? ":4" : "");
	else if (place->sz == 8)
		snprintf(text, sz, "%%%s", name);
	else if (name[1] >= '0' && name[1] <= '9')
		snprintf(text, sz, "%%%sd", name);
	else
		snprintf(text, sz, "%%e%s", name + 1);
}

static bool has_name(const struct program_function *function)
{
	return function->source != FUNCTION_EH_FRAME && !function->ambiguous;
}

/* A function by its name or, where it has none, by its address. */
static void put_function(struct program *program, const struct program_function *function, char *text, size_t sz)
{
	char module[256];

	put_module(program, function->module, module, sizeof(module));
	if (has_name(function))
		snprintf(text, sz, "%s%.800s", module, function->shown);
	else
		snprintf(text, sz, "%s+0x%" PRIx64, module, function->addr);
}

static int line_add(struct queue_study *study, const struct queue_place *place, char *text, bool by_name, bool has_lock)
{
	struct queue_line line = {
		.text = text,
		.place = place->group,
		.function = place->function,
		.out = place->use.out,
		.by_name = by_name,
		.has_lock = has_lock,
		.lockless = place->use.lockless,
		.end = {.out = place->use.out, .known = place->waits || place->wakes},
	};

	if (text && !vec_push(&study->lines, line))
		return 0;
	free(text);
	return -ENOMEM;
}

static int instruction_add(struct program *program, const struct queue_place *place, struct queue_study *study)
{
	char module[256], reg[64], lock[32] = "", *text;

	if (!place->use.addr)
		return 0;
	put_module(program, place->module, module, sizeof(module));
	put_register(&place->use.place, reg, sizeof(reg));
	/* Of the call that locks. */
	if (place->use.lock_arg >= 0)
		snprintf(lock, sizeof(lock), " queue=arg%d", place->use.lock_arg);
	if (asprintf(&text, "%s %s+0x%" PRIx64 " task=%s%s", place->use.out ? "dequeue" : "enqueue", module,
		     place->use.addr, reg, lock) < 0)
		text = NULL;
	return line_add(study, place, text, false, place->use.lock_arg >= 0);
}

static bool line_is_there(const struct queue_study *study, const struct queue_place *place, const char *text)
{
	for (size_t i = 0; i < study->lines.cnt; i++)
		if (study->lines.items[i].function == place->function && !strcmp(study->lines.items[i].text, text))
			return true;
	return false;
}

/* As an argument or the result of the function: where that is the whole of eight bytes. */
static int function_add(struct program *program, const struct queue_place *place, struct queue_study *study)
{
	const struct program_function *function = program__function(program, place->function);
	const struct section_use *use = &place->use;
	char name[1100], *text;
	int len;

	if (use->place.sz != 8 || (!use->out && use->arg < 0) || (use->out && use->arg < 0 && !use->returned))
		return 0;
	put_function(program, function, name, sizeof(name));
	if (!use->out)
		len = asprintf(&text, "enqueue %s task=arg%d", name, use->arg);
	else if (use->arg >= 0)
		len = asprintf(&text, "dequeue %s task=*(arg%d+%d)", name, use->arg, use->off);
	else
		len = asprintf(&text, "dequeue %s task=retval", name);
	if (len >= 0 && line_is_there(study, place, text)) {
		free(text);
		return 0;
	}
	return line_add(study, place, len < 0 ? NULL : text, has_name(function), false);
}

int queue_lines_make(struct program *program, const struct queue_places *places, struct queue_study *study)
{
	int err = 0;

	for (size_t i = 0; i < places->items.cnt && !err; i++) {
		err = instruction_add(program, &places->items.items[i], study);
		if (!err)
			err = function_add(program, &places->items.items[i], study);
	}
	return err;
}

/* --- what can be probed of them ----------------------------------------------------------------------------------- */

/* Role and symbol: of two lines that have them in common one is refused. */
static size_t symbol_len(const char *text)
{
	const char *task = strstr(text, " task=");

	return task ? (size_t)(task - text) : strlen(text);
}

static size_t list_of(const struct queue_study *study, size_t idx)
{
	const struct queue_line *line = &study->lines.items[idx];
	size_t len = symbol_len(line->text), list = 0;

	for (size_t i = 0; i < idx; i++) {
		const struct queue_line *before = &study->lines.items[i];

		list += before->function == line->function && before->out == line->out &&
			symbol_len(before->text) == len && !strncmp(before->text, line->text, len);
	}
	return list;
}

int queue_lines_resolve(struct program *program, const struct queue_study *study, queue_lists *lists)
{
	int err = 0;

	for (uint32_t i = 0; i < study->lines.cnt && !err; i++) {
		size_t list = list_of(study, i);

		if (list >= LIST_CNT_MAX)
			continue;
		while (lists->cnt <= list && !err)
			err = vec_push(lists, (struct queue_list){0});
		if (!err)
			err = symbol_list_add("a place that was found", study->lines.items[i].text,
					      &lists->items[list].lines);
		/* A name that a list cannot have. */
		if (err == -EINVAL)
			err = 0;
		else if (!err)
			err = vec_push(&lists->items[list].ids, i);
	}
	for (size_t i = 0; i < lists->cnt && !err; i++)
		err = probe_targets_find(&lists->items[i].lines, program, &lists->items[i].targets);
	return err;
}

void queue_lists_free(queue_lists *lists)
{
	for (size_t i = 0; i < lists->cnt; i++) {
		probe_targets_free(&lists->items[i].targets);
		symbol_list_free(&lists->items[i].lines);
		vec_free(&lists->items[i].ids);
	}
	vec_free(lists);
}

/* --- which pair stands for a queue -------------------------------------------------------------------------------- */

static bool is_same_queue(const struct queue_study *study, const struct queue_pair *a, const struct queue_pair *b)
{
	return queue_line_of(study, a->in)->function == queue_line_of(study, b->in)->function &&
	       queue_line_of(study, a->out)->function == queue_line_of(study, b->out)->function;
}

static int names_of(const struct queue_study *study, const struct queue_pair *pair)
{
	return queue_line_of(study, pair->in)->by_name + queue_line_of(study, pair->out)->by_name;
}

/* Names last longer than addresses, and of two that say the same the first argument is the one. */
static bool is_better(const struct queue_study *study, const struct queue_pair *pair, const struct queue_pair *than)
{
	int names = names_of(study, pair), its = names_of(study, than);

	if (names != its)
		return names > its ? pair->crossed >= BY_NAME_MIN * than->crossed
				   : pair->crossed * BY_NAME_MIN > than->crossed;
	return pair->crossed * BY_NAME_MIN > than->crossed ||
	       (pair->crossed >= BY_NAME_MIN * than->crossed && pair->in <= than->in && pair->out <= than->out);
}

static bool is_lockless(const struct queue_study *study, const struct queue_pair *pair)
{
	return queue_line_of(study, pair->in)->lockless || queue_line_of(study, pair->out)->lockless;
}

static bool is_known(const struct queue_study *study, const struct queue_pair *pair)
{
	return queue_line_of(study, pair->in)->end.known || queue_line_of(study, pair->out)->end.known;
}

/* Does `pair` lead from threads of `other` to threads of `other`, in that direction or back? */
static bool is_beside(const struct queue_pair *pair, const struct queue_pair *other, bool back)
{
	uint64_t in = back ? other->out_set : other->in_set, out = back ? other->in_set : other->out_set;

	return !(pair->in_set & ~in) && !(pair->out_set & ~out);
}

/* Values that come out once more, in per cent: as where a place comes before the exchange that takes them. */
static uint64_t again_of(const struct queue_pair *pair)
{
	return 100 * pair->again / pair->crossed;
}

static bool is_shorter(const struct queue_pair *pair, const struct queue_pair *than)
{
	if (again_of(pair) != again_of(than))
		return again_of(pair) < again_of(than);
	return pair->median_ns < than->median_ns || (pair->median_ns == than->median_ns && pair < than);
}

/*
 * What goes by one queue is seen in many places: without a lock to tell them apart, of those between the same threads
 * the one stands for all by which most pass, and which they pass in the shortest time.
 */
static bool is_shadow(const struct queue_study *study, const struct queue_pair *pair, const queue_pairs *found)
{
	uint64_t most = pair->crossed;

	if (!is_lockless(study, pair))
		return false;
	for (size_t i = 0; i < found->cnt; i++) {
		const struct queue_pair *other = &found->items[i];

		if (other->verdict != QUEUE_CONFIRMED)
			continue;
		if (!is_lockless(study, other) &&
		    (is_beside(pair, other, false) || (!is_known(study, pair) && is_beside(pair, other, true))))
			return true;
		/* Memory that the takers give back, for instance: it stays until the others need some. */
		if (!is_known(study, pair) && is_beside(pair, other, true) && other->median_ns < pair->median_ns)
			return true;
		if (is_beside(pair, other, false) && other->crossed > most)
			most = other->crossed;
	}
	if (pair->crossed < BY_NAME_MIN * most)
		return true;
	for (size_t i = 0; i < found->cnt; i++) {
		const struct queue_pair *other = &found->items[i];

		if (other->verdict == QUEUE_CONFIRMED && is_beside(pair, other, false) &&
		    other->crossed >= BY_NAME_MIN * most && is_shorter(other, pair))
			return true;
	}
	return false;
}

static int pair_keep(struct queue_study *study, queue_pairs *kept, const struct queue_pair *pair)
{
	for (size_t i = 0; i < kept->cnt; i++)
		if (is_same_queue(study, &kept->items[i], pair)) {
			if (is_better(study, pair, &kept->items[i]))
				kept->items[i] = *pair;
			return 0;
		}
	return vec_push(kept, *pair);
}

/* What a queue hands on passes other places on its way. */
static bool is_of_queue(const struct queue_study *study, const struct queue_pair *pair)
{
	for (size_t i = 0; i < study->pairs.cnt; i++)
		if (queue_line_of(study, study->pairs.items[i].in)->function ==
			    queue_line_of(study, pair->in)->function ||
		    queue_line_of(study, study->pairs.items[i].out)->function ==
			    queue_line_of(study, pair->out)->function)
			return true;
	return false;
}

int queue_pairs_choose(struct queue_study *study, const queue_pairs *found)
{
	int err = 0;

	for (size_t i = 0; i < found->cnt && !err; i++)
		if (found->items[i].verdict == QUEUE_CONFIRMED && !is_shadow(study, &found->items[i], found))
			err = pair_keep(study, &study->pairs, &found->items[i]);
	for (size_t i = 0; i < found->cnt && !err; i++)
		if (found->items[i].verdict == QUEUE_FEW)
			study->few += found->items[i].crossed > 0 && !is_of_queue(study, &found->items[i]);
		else if (found->items[i].verdict != QUEUE_CONFIRMED && !is_of_queue(study, &found->items[i]))
			err = pair_keep(study, &study->rejected, &found->items[i]);
	return err;
}
