/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Builds a dataset block by block: what dataset_load() does with every block that the reader delivers.  Blocks come
 * from files and are not trusted beyond what the reader vouches for (shapes and pointers).
 */
#ifndef WHYLATE_ANALYSIS_DATASET_BUILD_H
#define WHYLATE_ANALYSIS_DATASET_BUILD_H

#include "analysis/dataset.h"
#include "base/arena.h"
#include "base/idmap.h"
#include "base/vec.h"
#include "shard/columns.h"

#define BUILD_EVENT_CNT (2 * WL_STATE_CNT + WL_TALLY_CNT + SHARD_HW_CNT)

/* A column that grows with the rows; memory comes with the first value that is not 0. */
struct build_column {
	uint64_t *values;
	uint64_t *missing; /* bitmap, likewise with the first one that is missing */
};

struct build_key {
	const char *key, *value;
	uint64_t ts;
};

/* Between two moments at which totals of loss were written. */
struct build_period {
	uint64_t end_ts;
	double received, lost; /* interval records */
	double weight;         /* of the rows that end in it */
};

/* One recording of those that the shards hold. */
struct build_session {
	uint64_t id;
	VEC(struct build_key) keys;
	const char *name_host; /* by the names of its files, or "" */
	bool unwanted;         /* of another host or time: nothing of it counts */
	bool clock_known;
	int64_t clock_ns;              /* from its monotonic clock to its wall clock */
	uint64_t frame_cnt, frame_end; /* stored by a collector; the number after the largest */
	size_t row_cnt;
	uint64_t window_max;        /* of the windows that rows have come from so far, the newest one */
	uint32_t window;            /* the newest row is of it, or of an older one; 0: of no window */
	uint64_t first_ts, last_ts; /* of its intervals, whatever their type */
	double weight, baseline_weight;
	double asked_weight, asked_baseline_weight; /* of those that began in the time asked for */
	double baseline_factor;                     /* dataset_build__reweight() */
	VEC(struct build_period) periods;           /* by time */
	size_t period_at;                           /* that was found last */
	uint64_t hw_epoch_ns;                       /* how long the same hardware counters are on, on average */
	bool has_hw, hw_epoch_known;
	double above_epoch_weight; /* of rows that took longer than that, and so have no value of any */
};

struct build_module {
	size_t session;
	const char *path, *build_id;
};

struct build_loss {
	size_t session;
	enum wl_loss class;
	uint64_t ts, emitted, lost;                /* at the end of the time asked for, or soon after */
	uint64_t base_ts, base_emitted, base_lost; /* before it */
};

struct build_loss_row {
	uint32_t loss; /* index into losses */
	uint64_t ts, emitted, lost;
};

struct dataset_build {
	struct dataset *dataset;
	const struct dataset_filter *filter;
	struct arena *arena;
	struct intern strings;
	size_t room; /* rows that the allocated columns have room for, a multiple of 64 */
	struct build_column category[WL_CATEGORY_CNT];
	struct build_column events[BUILD_EVENT_CNT];
	struct idmap session_ids; /* (session_id, string of its files' host) → index into sessions */
	VEC(struct build_session) sessions;
	struct idmap loss_ids; /* (session, class << 56 ^ cpu) → index into losses */
	VEC(struct build_loss) losses;
	VEC(struct build_loss_row) loss_rows;
	VEC(struct build_module) modules;
	uint64_t clockless; /* rows whose time of day is not known, and was asked for */
	bool is_recording;  /* there was a block of intervals or of a session */
	bool settled;       /* the arrays are the arena's */
	uint64_t bad_times, bad_weights, too_long, with_residual, no_columns;
};

/* Indexes into events. */
static inline size_t build_event_length(int state)
{
	return 2 * (size_t)state;
}

static inline size_t build_event_count(int state)
{
	return 2 * (size_t)state + 1;
}

static inline size_t build_event_tally(int tally)
{
	return 2 * WL_STATE_CNT + (size_t)tally;
}

static inline size_t build_event_hw(int hwcounter)
{
	return 2 * WL_STATE_CNT + WL_TALLY_CNT + (size_t)hwcounter;
}

int dataset_build__init(struct dataset_build *build, struct dataset *dataset, const struct dataset_filter *filter);
/* 0 or -ENOMEM; tables that are of no use here are passed over. */
int dataset_build__block(struct dataset_build *build, const struct shard_block *block);
/* Completes the dataset, which owns everything from then on: 0 or -ENOMEM. */
int dataset_build__end(struct dataset_build *build);
/* Whether it succeeded or not; on failure the dataset's memory goes too. */
void dataset_build__free(struct dataset_build *build, bool failed);

/* Rows, in dataset_rows.c. */
int dataset_build__interval_block(struct dataset_build *build, const struct shard_block *block);

/* How many rows one with hardware counters stands for that was worked on for so long; in dataset_weights.c. */
double build_session__hw_factor(struct build_session *session, uint64_t worked_ns, double weight, bool has_hw);
/* Says which share of the requests took longer than an epoch: 0 or -ENOMEM. */
int dataset_build__hw_end(struct dataset_build *build);

/* What the spool dropped, in dataset_weights.c. */
int dataset_build__reweight(struct dataset_build *build);

/* The session's part, in dataset_session.c. */
int dataset_build__session_of(struct dataset_build *build, const struct shard_block *block, size_t *session);
/* What of a session's keys decides whether it is wanted, once they are all known. */
void dataset_build__choose_sessions(struct dataset_build *build);
/* Fills dataset->own from those keys: 0 or -ENOMEM. */
int dataset_build__own(struct dataset_build *build);
int dataset_build__session_block(struct dataset_build *build, const struct shard_block *block);
int dataset_build__session_end(struct dataset_build *build);
/* What finished in the target in the time asked for. */
uint64_t build_session__seen(const struct dataset_build *build, const struct build_session *session);
/* The number of that key: false where it is absent or none. */
bool build_session__number(const struct build_session *session, const char *key, uint64_t *number);
void build_session__text(const struct build_session *session, const char *key, const char **text);

/* Losses, in dataset_losses.c.  _begin: all blocks of them were read, and the sessions are chosen. */
int dataset_build__loss_block(struct dataset_build *build, const struct shard_block *block);
int dataset_build__loss_begin(struct dataset_build *build);
void dataset_build__loss_end(struct dataset_build *build);
/* The period that ts lies in, the last one if it lies beyond; NULL without any. */
struct build_period *build_session__period(struct build_session *session, uint64_t ts);

/* Hosts, in dataset_hosts.c. */
int dataset_build__module_block(struct dataset_build *build, const struct shard_block *block);
int dataset_build__received_block(struct dataset_build *build, const struct shard_block *block);
int dataset_build__hosts_end(struct dataset_build *build);
/* Adds a note to the dataset unless it has the same already. */
int dataset_build__note(struct dataset_build *build, const char *note);

#endif
