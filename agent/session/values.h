/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From sampled stacks to values of variables: rows of the tables `value`, `variable`, `place` and `value_plan`.  The
 * schemas of what the target has loaded are made at the start; those of what its processes load later, and of its other
 * programs, when a sample meets them, by a thread.  Processes without privileges read the files (whylate-symbols), also
 * for source lines: the row of a place comes when its line is known, perhaps behind those of its values.  Frames of
 * other code have no values.
 */
#ifndef WHYLATE_SESSION_VALUES_H
#define WHYLATE_SESSION_VALUES_H

#include "model/stack_samples.h"
#include "shard/table.h"
#include "target/program.h"
#include "target/unwind.h"
#include "values/plan.h"
#include "values/reader.h"

#define VALUES_DEPTH_DEFAULT 3 /* callers whose variables are read, too (vProf §4) */
#define VALUES_DEPTH_MAX     16

struct sampled_values_opts {
	struct program *program; /* the target's */
	const char *glob;        /* files or functions; NULL: all */
	const char *debuginfo_dir;
	uint32_t depth;
	int (*append)(void *owner, enum shard_table_id table, const struct shard_row *row);
	/* Where the modules of the plan are in a process, before its values can be read; may be NULL. */
	void (*place)(void *owner, pid_t pid, const struct value_image *image);
	/* These slices of the plan's arrays are what is to be read; may be NULL.  0 or -errno. */
	int (*load)(void *owner, const struct value_plan *plan, const struct value_part *slices);
	/* The next tick that meets the frame gets to its caller, and reads that one's members; may be NULL.  0 or
	 * -errno. */
	int (*meet)(void *owner, const struct value_step_key *key, const struct value_step *step);
	/* Is the process one of the target's? NULL: all are. */
	bool (*is_target)(void *owner, pid_t pid);
	struct value_limits limits; /* of what is read at a time; 0: as much as the kernel holds */
	void *owner;
};

struct sampled_values_counts {
	uint64_t variables; /* of all schemas */
	uint64_t functions;
	struct value_read_counts reads;
	uint64_t no_schema; /* frames of code without one */
	uint64_t faulted;   /* reads in the kernel of memory that was not there */
	uint64_t modules, modules_left_out;
	uint64_t parts;             /* of the plan */
	uint64_t globals, left_out; /* in it; reads that found no room in it */
	uint64_t no_frame;          /* pointers that are in frames whose place is not known throughout */
	uint64_t callers;           /* places in callers with members that are read there */
	uint64_t callers_in_turn;   /* of them, those with more than are read at a tick */
	uint64_t callers_left_out;  /* members beyond what takes turns */
	uint64_t crowded;           /* values of a stack that has too many */
	uint64_t written;           /* values */
};

struct sampled_values;

/* 0, also where nothing has debugging information so far; -errno. */
int sampled_values__new(const struct sampled_values_opts *opts, struct sampled_values **values);
void sampled_values__free(struct sampled_values *values); /* NULL-safe */
const struct value_plan *sampled_values__plan(const struct sampled_values *values);
/* Every now and then: takes what the thread has made, and lets the next parts of the plan have their turn.  0, -errno.
 */
int sampled_values__advance(struct sampled_values *values);
/* What rows still wait for is waited for, for a few seconds.  0 or the writer's error. */
int sampled_values__finish(struct sampled_values *values);
/*
 * The process, seen for the first time or not, runs this program (false: no module of it has a schema, as in a process
 * that has nothing to do with the target); it has another one, or is gone.
 */
bool sampled_values__met(struct sampled_values *values, pid_t pid, struct program *program);
void sampled_values__changed(struct sampled_values *values, pid_t pid);
/* A record of WL_RECORD_VALUES, which waits for its stack. */
void sampled_values__take_words(struct sampled_values *values, const struct wl_values_record *record);
uint32_t sampled_values__depth(const struct sampled_values *values);

struct value_stack {
	pid_t pid;
	struct program *program;           /* of the process */
	struct unwinder *unwinder;         /* of it; NULL: nothing is read of its callers */
	const struct unwind_frame *frames; /* innermost first */
	const struct unwind_regs *regs;    /* of the first depth + 1 of them */
	size_t frame_cnt;
	struct unwind_memory memory;
	uint64_t ts; /* of the tick */
	uint32_t tid;
	const char *(*name)(void *owner, uint64_t addr); /* of a function, as in the table `stack` */
	void *owner;
};

/* The values at the innermost frames; NULL: out of memory. */
struct stack_values *sampled_values__take(struct sampled_values *values, const struct value_stack *stack);
/* The rows of a sample that is kept. 0 or the writer's error. */
int sampled_values__write(struct sampled_values *values, const struct stack_sample *sample);
void sampled_values__counts(const struct sampled_values *values, struct sampled_values_counts *counts);

#endif
