/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Value-assisted cost profiling (vProf §5): which function is costly because a variable of it differs between normal
 * and slow profiles.  A profile is a recording, or a part of the requests of one.  Pure functions over arrays.
 */
#ifndef WHYLATE_ANALYSIS_VALUE_FACTS_H
#define WHYLATE_ANALYSIS_VALUE_FACTS_H

#include <whylate/value.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VALUE_NONE UINT32_MAX

enum value_dimension {
	VALUE_DIM_VALUE, /* the values */
	VALUE_DIM_DELTA, /* differences of adjacent samples */
	VALUE_DIM_COST,  /* for how many samples on end a value stays */
	VALUE_DIM_CNT
};

enum value_pattern {
	VALUE_PATTERN_NONE,
	VALUE_PATTERN_MISSING_CONSTRAINT,
	VALUE_PATTERN_SCALABILITY,
	VALUE_PATTERN_WRONG_CONSTRAINT,
	VALUE_PATTERN_SCALABILITY_BY_DEFAULT, /* no value of a basic type tells more */
	VALUE_PATTERN_CNT
};

struct value_variable_facts {
	uint8_t kind, tags, size; /* enum value_type, enum value_tag; bytes */
};

/* The number that the bytes stand for; of a pointer, its address. */
double value_number(const struct value_variable_facts *facts, uint64_t bytes);

/* One value of a variable at one frame of a sampled stack. */
struct value_row {
	uint64_t ts;
	uint64_t value;    /* the bytes, zero-extended */
	double weight;     /* so many requests its own stands for */
	uint32_t variable; /* VALUE_NONE: the frame has none, its place counts for costs */
	uint32_t place;
	uint32_t unit; /* samples are adjacent within one: a thread, or its work for one request */
	uint32_t thread;
	uint32_t tick;  /* the same for all rows of a sampled stack */
	uint32_t state; /* which variables were read at that tick; below input.state_cnt */
	uint16_t profile;
	uint8_t depth; /* 0: the innermost frame */
	uint8_t turn;  /* the variable is read there at one of so many ticks; 0 as 1 */
};

struct value_input {
	const struct value_variable_facts *variables;
	size_t variable_cnt;
	const uint32_t *bases; /* of each variable the pointer that it is a member by, or VALUE_NONE; NULL: of none */
	const uint32_t *functions; /* of each place */
	/* Numbers of the modules that each variable and each place is of; both NULL: there is one. */
	const uint32_t *variable_modules, *place_modules;
	size_t function_cnt;
	struct value_row *rows; /* any order; sorted on the way */
	size_t row_cnt;
	const bool *is_slow; /* of each profile */
	size_t profile_cnt;
	bool by_unit; /* a set is worth no more samples than it has units */
	/* Is the variable read at ticks of that state, if it is there? NULL: all are. */
	bool (*is_recorded)(const void *owner, uint32_t state, uint32_t variable);
	const void *owner;
	size_t state_cnt;
};

struct value_verdict {
	double ratios[VALUE_DIM_CNT]; /* NAN: not defined */
	double ratio;                 /* the lowest; NAN: the slow profiles have no sample */
	double distance;              /* Hellinger's, of that dimension; NAN where it does not count */
	double cost_distance;         /* that of VALUE_DIM_COST */
	enum value_dimension dimension;
	bool is_anomalous; /* the distributions differ */
	bool is_suspect;   /* all slow values are beyond the normal ones, of which there are too few for a test */
	bool varies;       /* it had several values */
	bool is_flag;      /* a truth value, an enumeration, or a number that is never but -1, 0 or 1 */
	size_t normal_cnt, slow_cnt;
	size_t normal_distinct, slow_distinct; /* values, of a pointer addresses */
	double normal_stay, slow_stay;         /* means of VALUE_DIM_COST; NAN: none */
	double normal_lo, normal_hi;           /* 5th and 95th percentile of the normal values; NAN: none */
	double slow_median;
	double beyond_share;  /* of the slow samples, outside of the range of all normal ones */
	double values_beyond; /* likewise by their values, whatever the dimension; NAN: of a pointer, or without any */
	uint32_t places[4];   /* where most of those were taken, the most first; VALUE_NONE: no more */
};

enum value_discount_by {
	VALUE_BY_NOTHING, /* neither a variable nor a profile to compare with */
	VALUE_BY_VARIABLE,
	VALUE_BY_RANKS, /* the hist-discounter */
};

struct value_function {
	uint32_t function;
	double pc_cost, variable_cost; /* weighted ticks of the slow profiles */
	double cost;                   /* the larger one */
	double ratio, calibrated;
	uint8_t by;        /* enum value_discount_by */
	uint32_t variable; /* the most anomalous one; VALUE_NONE */
	uint32_t tested;   /* … that a loop or a condition tests */
	double step;       /* of its variables, as value_step() */
	uint8_t signs[2];  /* of its pattern: by all that are as anomalous as `variable`, and as `tested` */
	enum value_pattern pattern;
	double depth;     /* mean, of its frames at the ticks of variable_cost */
	uint8_t evidence; /* of its anomalous variables; 0: none */
	bool has_basic;   /* a variable of a basic type that can tell something was sampled in it */
	bool is_given;    /* a flag that it tests has a state that normal profiles do not have */
	bool is_for_many; /* a variable of it is another one at almost each sample, in slow profiles */
};

struct value_ranking {
	struct value_verdict *verdicts;   /* by variable */
	struct value_function *functions; /* by calibrated cost, the highest first */
	size_t function_cnt;
};

#endif
