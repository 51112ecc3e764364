/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From records of stacks to what is learnt of them: rows of the table `stack`, and hot paths.  Any process of the host
 * may be met; each is unwound by its own mappings, which are read when it is met first, so that it may end before its
 * stack is named.  Processes with the same code (forks) share one unwinder and one numbering of functions.
 */
#ifndef WHYLATE_SESSION_STACKS_H
#define WHYLATE_SESSION_STACKS_H

#include "model/stack_beat.h"
#include "model/stack_samples.h"
#include "probe/hot_paths.h"
#include "session/values.h"
#include "shard/table.h"
#include "target/program.h"
#include "target/python.h"
#include "target/runtime.h"

struct stacks_opts {
	pid_t pid; /* the target itself */
	struct program
		*program; /* its functions, whose numbers the hot paths speak of; NULL: one is opened for names */
	const char *debuginfo_dir;
	/* Where the rows go; NULL: none are made. 0 or -errno. */
	int (*append)(void *owner, enum shard_table_id table, const struct shard_row *row);
	/* A wait's key is known no longer, or has several stacks: as capture__stack_doubt(); may be NULL. */
	void (*doubt)(void *owner, uint64_t key, bool is_ambiguous);
	/* As images_opts.python; may be NULL. */
	void (*python)(void *owner, pid_t pid, const struct python_layout *layout);
	/* A thread of the target's code was in a loop that waits for a spin lock; may be NULL. */
	void (*spun)(void *owner, pid_t pid, uint64_t ts);
	void *owner;
	struct hot_paths *hot;         /* NULL: not wanted */
	uint64_t kernel_tick_ns;       /* between ticks of the kernel's clock; 0: it is not sampled */
	struct sampled_values *values; /* NULL: none are read */
};

/* Frames in code that processes made themselves. */
struct stacks_made {
	uint64_t named, unnamed;
	pid_t pid; /* of the last one without a name, likewise runtime */
	enum runtime runtime;
	bool has_map; /* it has, or had, a perf map or a jitdump */
};

struct stacks;

/* 0 or -errno. */
int stacks__new(const struct stacks_opts *opts, struct stacks **stacks);
void stacks__free(struct stacks *stacks); /* NULL-safe */

/* A record of one of the three kinds.  0 or -errno; a process that is gone is no error. */
int stacks__take(struct stacks *stacks, const struct wl_record_header *record);
/* The call path at a hand-off. */
struct stacks_path {
	const char *frames; /* root;…;leaf, until the next call; NULL: not known */
	uint64_t hash;      /* of it, the same in every process and on every host that runs these files */
};

/* 0 or -ENOMEM. */
int stacks__path(struct stacks *stacks, const struct wl_stack_record *record, struct stacks_path *path);

/* As stack_samples__interval(), stack_samples__advance() and stack_samples__finish(). */
int stacks__interval(struct stacks *stacks, uint64_t sid, uint64_t begin_ts, uint64_t end_ts, double weight);
int stacks__advance(struct stacks *stacks, uint64_t polled_ts);
int stacks__finish(struct stacks *stacks);
/* The process has another program than before, or is gone. */
void stacks__changed(struct stacks *stacks, pid_t pid);
/* No more is to be learnt: what was read of processes goes, later records are passed over, the counts stay. */
void stacks__end(struct stacks *stacks);
/* Does the kernel's tick beat with the work, as far as is known by now? */
enum stack_beat_kind stacks__beat(const struct stacks *stacks);
/* Records of Python frames that were taken. */
uint64_t stacks__python_cnt(const struct stacks *stacks);
/* Stacks of Python interpreters that came without. */
uint64_t stacks__python_missed_cnt(const struct stacks *stacks);
void stacks__made(const struct stacks *stacks, struct stacks_made *made);
void stacks__counts(const struct stacks *stacks, struct stack_sample_counts *counts);

#endif
