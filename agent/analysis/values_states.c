// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which variables were read when: those that find no room in the kernel take turns, and those of a library are read
 * from when it was loaded.  A variable that was not read is not absent.
 */
#include "analysis/values.h"
#include "base/arena.h"
#include "base/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A file that says more is not believed. */
#define PARTS_MAX 4096

ORDER(compare_turns, struct values_turn, BY(a->session, b->session), BY(a->ts, b->ts), BY(a->part, b->part));

static int add_state(struct values *values, uint32_t session, const bool *is_read, uint32_t part_cnt, uint32_t *index)
{
	struct values_state state = {.session = session, .part_cnt = part_cnt, .all_read = true};
	bool *copy;

	for (size_t s = 0; s < values->states.cnt; s++) {
		const struct values_state *known = &values->states.items[s];

		if (known->session != session || known->part_cnt != part_cnt ||
		    (part_cnt && memcmp(known->is_read, is_read, part_cnt)))
			continue;
		*index = (uint32_t)s;
		return 0;
	}
	copy = arena__alloc(values->arena, part_cnt + 1, sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	for (uint32_t p = 0; p < part_cnt; p++) {
		copy[p] = is_read[p];
		state.all_read &= is_read[p];
	}
	state.is_read = copy;
	*index = (uint32_t)values->states.cnt;
	return vec_push(&values->states, state) ? -ENOMEM : 0;
}

/* The states of one recording, whose turns these are. */
static int find_states_of(struct values *values, uint32_t session, const struct values_turn *turns, size_t cnt)
{
	static const bool none[1];
	struct values_since since = {.session = session};
	uint32_t part_cnt = 0;
	bool *is_read;
	int err;

	for (size_t t = 0; t < cnt; t++)
		part_cnt = turns[t].part >= part_cnt ? turns[t].part + 1 : part_cnt;
	is_read = calloc(part_cnt + 1, sizeof(*is_read));
	if (!is_read)
		return -ENOMEM;
	err = add_state(values, session, part_cnt ? is_read : none, part_cnt, &since.state);
	if (!err)
		err = vec_push(&values->since, since);
	for (size_t t = 0, end; t < cnt && !err; t = end) {
		for (end = t; end < cnt && turns[end].ts == turns[t].ts; end++)
			is_read[turns[end].part] = turns[end].is_read;
		since.ts = turns[t].ts;
		err = add_state(values, session, is_read, part_cnt, &since.state);
		if (!err)
			err = vec_push(&values->since, since);
	}
	free(is_read);
	return err ? -ENOMEM : 0;
}

static size_t since_at(const struct values *values, uint32_t session, uint64_t ts)
{
	const struct values_since *items = values->since.items;

	return search_first(0, values->since.cnt, mid,
			    items[mid].session > session || (items[mid].session == session && items[mid].ts > ts));
}

int values_find_states(struct values *values)
{
	size_t first = 0, kept = 0;
	int err = 0;

	for (size_t t = 0; t < values->turns.cnt; t++) {
		if (values->turns.items[t].part < PARTS_MAX)
			values->turns.items[kept++] = values->turns.items[t];
		else
			values->bad_rows++;
	}
	values->turns.cnt = kept;
	vec_sort(&values->turns, compare_turns);
	for (uint32_t session = 0; session < values->session_ids.cnt && !err; session++) {
		size_t end = first;

		while (end < values->turns.cnt && values->turns.items[end].session == session)
			end++;
		err = find_states_of(values, session, end > first ? values->turns.items + first : NULL, end - first);
		first = end;
	}
	for (size_t r = 0; r < values->rows.cnt && !err; r++) {
		struct sampled_value *row = &values->rows.items[r];

		/* The first of a session holds from 0 on. */
		row->state = values->since.items[since_at(values, row->session, row->ts) - 1].state;
	}
	return err;
}

bool values_is_recorded(const void *owner, uint32_t state, uint32_t variable)
{
	const struct values *values = owner;
	const struct values_state *of = &values->states.items[state];
	uint32_t id, part;

	if (!of->part_cnt)
		return true;
	/* A variable that this recording has no value of: in which part it would be is not known. */
	if (!idmap__find(&values->part_ids, of->session, variable, &id))
		return of->all_read;
	part = values->parts.items[id];
	return part == VALUE_NONE || (part < of->part_cnt && of->is_read[part]);
}
