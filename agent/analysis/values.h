/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Values of variables in recordings (`--values`): the tables `value`, `variable` and `place` in memory, and what they
 * say of late requests against typical ones, or of slow recordings against normal ones (vProf §5).
 */
#ifndef WHYLATE_ANALYSIS_VALUES_H
#define WHYLATE_ANALYSIS_VALUES_H

#include "analysis/roots.h"
#include "analysis/value_rank.h"
#include "base/vec.h"

struct sampled_variable {
	struct value_variable_facts facts;
	const char *module, *file, *function, *inlined, *name,
		*type; /* function and inlined: NULL where there is none */
	uint32_t line, module_id;
	uint32_t base; /* of `p->len`: index of `p`; VALUE_NONE: it is no member, or p was not sampled */
};

struct sampled_place {
	uint32_t function; /* index into functions */
	uint32_t line;     /* 0: not known */
	const char *file;  /* NULL: not known */
	uint32_t module;   /* as value_input.place_modules; VALUE_NONE: not known */
};

struct sampled_value {
	uint64_t ts, sid, value; /* sid 0: the thread worked for no interval */
	uint32_t session;        /* index into session_ids */
	uint32_t tid, variable, place;
	uint32_t state;      /* index into states */
	uint8_t depth, turn; /* its variable is read there at one of so many ticks; 0 as 1 */
};

/* A row of `value_plan`. */
struct values_turn {
	uint64_t ts;
	uint32_t session, part;
	bool is_read;
};

/* Which parts of a recording's variables are read at a time. */
struct values_state {
	uint32_t session;
	uint32_t part_cnt; /* 0: the recording has no parts, all is read always */
	const bool *is_read;
	bool all_read;
};

/* From then on that is the state. */
struct values_since {
	uint64_t ts;
	uint32_t session, state;
};

typedef VEC(uint32_t) value_indexes;

/* Variables and functions that have the same names in several recordings are the same. */
struct values {
	struct arena *arena;
	struct intern strings;
	struct idmap session_of;            /* (its id, 0) → index into session_ids */
	struct idmap variable_of, place_of; /* (session, id of its file) → index into the two below */
	value_indexes variable_indexes, place_indexes;
	struct idmap variable_keys; /* (string, 0) → index into variables */
	VEC(uint64_t) session_ids;
	VEC(struct sampled_variable) variables;
	VEC(struct sampled_place) places;
	struct idmap function_ids; /* (string, 0) → index into functions */
	VEC(const char *) functions;
	VEC(struct sampled_value) rows; /* by session, tid, ts, depth */
	struct idmap part_ids;          /* (session, index into variables) → index into parts */
	value_indexes parts;            /* of a variable; VALUE_NONE: it is read always */
	VEC(struct values_turn) turns;
	VEC(struct values_state) states;
	VEC(struct values_since) since; /* by session, ts */
	size_t bad_rows;
};

/* 0, also where there are none; -ENOMEM, -EIO.  values_free() in any case.  Reads from the beginning. */
int values_load(struct values *values, struct shard_reader *reader);
void values_free(struct values *values);

/* values_states.c: which variables were read when, of all rows that have been loaded.  0 or -ENOMEM. */
int values_find_states(struct values *values);
/* Is the variable read at ticks of that state, if it is there? `owner` is the values. */
bool values_is_recorded(const void *owner, uint32_t state, uint32_t variable);

/* What was sampled on a thread at a tick, innermost frame first; NULL: nothing. */
const struct sampled_value *values_at(const struct values *values, uint64_t session_id, uint32_t tid, uint64_t ts,
				      size_t *cnt);

/* Fills report->values from late and typical requests; without opts->roots, by the requests' own threads.  0 or
 * -ENOMEM.
 */
int values_report(struct report *report, const struct values *values, const struct report_opts *opts);

/* values_cause.c: the first cause, where it is code, ends with the value that differs in it.  0 or -ENOMEM. */
int values_name_cause(struct report *report);

/*
 * Two groups of recordings: `is_slow` of each session of values.session_ids.  The report is as above; `arena` owns it.
 * 0 or -ENOMEM.
 */
int values_compare(struct value_report **report, const struct values *values, const bool *is_slow, struct arena *arena);
/*
 * The same of the recordings at these paths, from `slow_from` on the slow ones.  1; 0: one of the sides has no values;
 * -errno.
 */
int values_compare_paths(struct value_report **report, const char *const *paths, size_t cnt, size_t slow_from,
			 struct arena *arena);

#endif
