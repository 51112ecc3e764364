/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The intervals of a recording as columns in memory, ready for analysis, and what the session says of itself.
 * Rows are in the order of their end, which is the order in which they were written.
 */
#ifndef WHYLATE_ANALYSIS_DATASET_H
#define WHYLATE_ANALYSIS_DATASET_H

#include <whylate/record.h>

#include "shard/reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One kind of event over all intervals, "runq.preempt.ns" or "switch.voluntary.count". */
struct dataset_event {
	const char *name;
	bool is_length;          /* nanoseconds; otherwise a count */
	const uint64_t *values;  /* row_cnt of them; NULL: all of them 0 */
	const uint64_t *missing; /* bitmap over rows, or NULL: none is missing */
};

/* Who or what an interval waited for most, per category that has one; indexes into dataset.strings, 0: not known. */
struct dataset_blame {
	uint32_t who;    /* comm of the culprit (runq: had the CPU; lock: owned it) */
	uint32_t object; /* what it was about: lock name or address, mapped file, system call */
	uint32_t pid;
	uint32_t tid;
	uint32_t host; /* of the culprit, where there are several */
	bool is_own;   /* the culprit is a process of the recorder */
};

/* A process of the recorder in one session. */
struct dataset_own {
	uint32_t session; /* index into session_ids */
	uint32_t pid;
};

/* What the recordings of one host say of it. */
struct dataset_host {
	const char *name;   /* by its shards' names, which a collector vouches for; else what it calls itself; or "" */
	const char *kernel; /* of its last recording; NULL: not known */
	uint32_t session_cnt;
	size_t row_cnt;
	uint64_t intervals_seen, records_lost, spool_lost;
	uint64_t frames_missing; /* that a collector has not got: dropped, or under way */
	/* By its own clock's anchors, CLOCK_REALTIME; 0: not known */
	uint64_t begin_wall_ns, end_wall_ns;
};

/* A file that was mapped executable in the target, on one host. */
struct dataset_module {
	uint32_t host;
	const char *path, *build_id;
};

struct dataset_loss {
	uint64_t emitted, lost;
};

#define DATASET_HELD_MAX 256

struct dataset {
	size_t row_cnt;
	uint64_t *sid;
	uint64_t *begin_ts;
	uint64_t *latency_ns;
	double *weight; /* every row stands for this many intervals */
	/*
	 * An interval during which hardware counters were swapped has no values of them: how many rows as long as this
	 * one there were for each that has.  NULL: 1 throughout.
	 */
	double *hw_factor;
	uint32_t *type;                               /* index into strings */
	uint32_t *trace_id;                           /* of the application's own tracing; index into strings */
	uint64_t *flags;                              /* enum wl_interval_flag */
	uint32_t *host_idx;                           /* index into hosts; NULL: there is but one, or none */
	uint32_t *window;                             /* observation window, or a later one that was open at its end */
	uint32_t *session;                            /* index into session_ids; a sid is unique in its session */
	uint64_t *category_ns[WL_CATEGORY_CNT];       /* NULL: all 0; row by row they sum to latency_ns */
	struct dataset_blame *blame[WL_CATEGORY_CNT]; /* NULL where no row names anybody */
	struct dataset_event *events;
	size_t event_cnt;
	const char **strings; /* interned; strings[0] is "" */
	size_t string_cnt;

	uint64_t *session_ids; /* of the recordings that are taken together */
	size_t session_cnt;
	int64_t *session_clock_ns; /* by session: from its monotonic clock to CLOCK_REALTIME; 0: not known */
	struct dataset_own *own;   /* NULL: no session names the recorder's processes */
	size_t own_cnt;

	/* The session. Unknown: NULL, and -1 for pid; the counts then come from the rows. */
	const char *host, *kernel, *comm;
	int64_t pid;
	double duration_s;
	double target_cpu_ns;    /* CPU time of the target meanwhile; 0: not known, or not of the time asked for */
	double cost_share;       /* of tracing, of the target's CPU time, in the whole recording; NAN: not known */
	uint64_t intervals_seen; /* finished in the target, selected or not; with windows an estimate */
	uint64_t window_cnt;     /* observation windows, 0: hooks were attached all the time */
	double window_selecting_s, window_attached_s; /* in all windows */
	/* Selected, and still open when observation ended: how many, what they stand for, the age of the oldest. */
	uint64_t censored_cnt, censored_longest_ns;
	double censored_weight;
	bool censored_known;
	/*
	 * Replies over TCP; of them those whose last bytes stayed in the socket after send(), or were sent again,
	 * shortest first.
	 */
	uint64_t replies, held_by_window, resent;
	bool resent_known;
	struct dataset_held {
		uint64_t ns, cnt;
	} held[DATASET_HELD_MAX];
	size_t held_cnt;
	uint64_t records_lost;
	const char **hooks_missing;
	size_t hooks_missing_cnt;
	bool category_unmeasured[WL_CATEGORY_CNT]; /* no hook on that kernel: its time is in the enclosing category */
	const char **notes;                        /* anything else the reader ought to know, a line each */
	size_t note_cnt;
	struct dataset_loss loss[WL_LOSS_CNT];
	double received_weight, lost_weight; /* of interval records, as far as the recordings tell of loss */
	double spool_lost_weight;            /* how many intervals the rows stood for that the spool dropped */
	struct dataset_host *hosts;          /* by name */
	size_t host_cnt;
	struct dataset_module *modules; /* each once */
	size_t module_cnt;
	uint64_t intervals_flagged;        /* rows with TORN, LOSSY or HISTORY */
	const struct shard_damage *damage; /* what could not be read, owned by the dataset */
	size_t damage_cnt;
	void *arena; /* owns the above */
};

struct dataset_filter {
	const char *type;                      /* only intervals of types that this fits; NULL: all */
	const char *host;                      /* only hosts that this glob fits; NULL: all */
	uint64_t since_wall_ns, until_wall_ns; /* only intervals that begin in it, CLOCK_REALTIME; 0: open */
	uint64_t since_ts, until_ts;           /* likewise, by their session's clock */
	bool without_events;                   /* event_cnt stays 0 */
};

/*
 * Reads everything that the reader delivers.  0; -ENOENT: neither intervals nor a session, this is no recording;
 * -ESRCH: there are recordings, but none of such a host or time; -ENOMEM, -EIO.  A recording of an idle program, with a
 * session and no interval, succeeds with row_cnt 0. *dataset is to be released with dataset_free() on success only.
 */
int dataset_load(struct dataset *dataset, struct shard_reader *reader, const struct dataset_filter *filter);
void dataset_free(struct dataset *dataset);

/*
 * Is a type what a filter asks for: by its whole name, by where its requests come in ("tcp:80"), by what they are
 * ("GET /"), or by a glob for any of them?
 */
bool dataset_type_fits(const char *type, const char *asked);

/* The types of the rows, each once and whole, by name: "tcp:80, tcp:8080"; "…" for those that have no room. */
void dataset_list_types(const struct dataset *dataset, char *list, size_t sz);
/* Is it a process of the recorder of that session (index into session_ids)? */
bool dataset_is_own(const struct dataset *dataset, uint32_t session, uint32_t pid);

/* NULL for string 0. */
static inline const char *dataset_text(const struct dataset *dataset, uint32_t string)
{
	return string ? dataset->strings[string] : NULL;
}

#endif
