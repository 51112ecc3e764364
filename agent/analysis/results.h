/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the analysis found: plain data, which agent/view prints as text or as JSON (schema whylate.report/1).
 * Shares are fractions of 1, times integer nanoseconds.  NAN stands for "not measured" or "not defined" and is printed
 * as null.  Strings belong to the dataset or to the arena of the report.
 */
#ifndef WHYLATE_ANALYSIS_RESULTS_H
#define WHYLATE_ANALYSIS_RESULTS_H

#include "analysis/dataset.h"

#include <string.h>

struct ci {
	double lo, hi; /* 95 %, widened by the share of records lost */
};

struct latency_summary {
	double count; /* weighted: of how many intervals the rows speak */
	double mean_ns, variance_ns2, cov;
	double p50_ns, p90_ns, p99_ns, p999_ns, max_ns;
};

/* Of how many requests the recording speaks, and how long they took, with intervals: see levels.h. */
#define LEVELS_OVER          7
#define LEVELS_OVER_FIRST_NS 10000

struct levels {
	struct ci seen_ci, mean_ci, p50_ci, p90_ci, p99_ci, p999_ci;
	struct level_over {
		uint64_t ns;
		double share; /* of the requests that took longer */
		struct ci ci;
	} over[LEVELS_OVER]; /* each ten times the one before */
};

struct breakdown_line {
	enum wl_category category;
	bool measured;
	double mean_ns;
	double variance_share; /* Cov(X, L) / Var(L) */
	struct ci variance_share_ci;
	double tail_share; /* (E[X | late] - E[X | typical]) over the sum of the same */
	struct ci tail_share_ci;
	double typical_ns, late_ns; /* those two expectations */
};

/* The ending of the name of an event whose unit is the nanosecond. */
#define EVENT_LENGTH ".ns"

struct event_line {
	const char *event;
	double gain; /* by how much of itself the tail falls if each interval is shorter by its time on the event */
	struct ci gain_ci;
	double impact; /* VarMRI §5.1, a share of the tail latency; of a count it is the gain, too */
	struct ci impact_ci;
	double impact_adjusted;      /* after rule 1 */
	double threshold;            /* a value above this is "high" */
	double threshold_percentile; /* 0…1: how many of the intervals that recorded it are not above the threshold */
	const char *explained_by;    /* the event whose impact was deducted; or NULL */
	double explained_overlap;    /* Jaccard */
	const char *correlated_with; /* the event with the largest overlap of those to which no rule applies; or NULL */
	double correlation;          /* that overlap */
	const char *dropped_for;     /* rule 2: in proportion to this parent; such lines are not printed by default */
	double mean;
};

/* Where a chain of blockers ends (DESIGN §10). */
enum root_kind {
	ROOT_CODE,
	ROOT_DISK,
	ROOT_PEER,
	ROOT_TIMER,
	ROOT_QUOTA,
	ROOT_FULL_MACHINE,
	ROOT_UNKNOWN, /* a wait, and nothing recorded says for whom */
	ROOT_KIND_CNT,
	ROOT_OUR_OWN = ROOT_KIND_CNT, /* the recorder: never ranked */
};

/* One hand-off of a request: how, and in which call. */
struct cause_handoff {
	const char *kind;
	const char *frames; /* of the call that asked: root;…;leaf; NULL: not known */
};

/* Objects of roots whose wait is the kernel's own means; ROOT_DISK, but the last one, which is a quota. */
#define ROOT_DIRTY_PAGES "dirty-page throttling"
#define ROOT_RECLAIM     "memory reclaim"
#define ROOT_NETWORK     "the network" /* between two threads that are both recorded */
#define ROOT_STOPPED     "stopped by a signal"
#define ROOT_MEMORY_HIGH "memory.high"
#define ROOT_CLIENT      "the client" /* whose request it is: the other end of the connection that it came by */

struct cause_root {
	enum root_kind kind;
	const char **call_path; /* outermost first */
	size_t call_path_cnt;
	const char *role;   /* thread name, or what several have in common: "worker-*"; NULL: not known */
	const char *type;   /* of the request that it worked for; NULL: none */
	bool for_requests;  /* it worked for requests that waited for it, and nothing says of which type */
	const char *object; /* a device, a peer's address; NULL: none known */
	/* The hand-offs behind that request, in most of the time, outermost first; none: it is as it came in. */
	uint64_t context_id; /* 0: none */
	struct cause_handoff *handoffs;
	size_t handoff_cnt;
};

static inline bool cause_root_is(const struct cause_root *root, const char *object)
{
	return root->object && !strcmp(root->object, object);
}

#define CAUSE_HOPS_MAX 3

/* How a root reached the interval. */
struct cause_way {
	enum wl_category category;
	enum wl_category wait; /* by which the interval's own thread was held up */
	bool own;              /* as the interval's own work */
	bool other;            /* the root is another thread, or works for another request */
	bool spins;            /* as the owner of a lock that others spun for */
	double share;          /* of the tail */
	const char *hops[CAUSE_HOPS_MAX];
	size_t hop_cnt;
};

/* The latency if the root's time were gone, over all its ways. */
struct cause_gain {
	double mean_ns, p99_ns, p999_ns;
	struct ci mean_ci, p99_ci, p999_ci; /* NAN with fewer than five requests beyond the quantile */
	bool lower_bound; /* the root's backlogs meet each other, or leave hardly a request alone: it may be less */
};

#define GAIN_UNKNOWN ((struct cause_gain){NAN, NAN, NAN, {NAN, NAN}, {NAN, NAN}, {NAN, NAN}, false})

struct cause {
	uint32_t rank;
	enum wl_category category;
	double share; /* of the tail */
	struct ci share_ci;
	double variance_share;
	const char *what;                 /* one line for a person: without share and rank */
	const char *function;             /* where most of it is spent; NULL: not known */
	const char *object;               /* NULL: none known */
	const char *culprit_comm;         /* NULL: none known */
	int64_t culprit_pid, culprit_tid; /* -1: not known, or several */
	const char **evidence;            /* lines under it */
	size_t evidence_cnt;
	const char *culprit_function; /* what the culprit was in meanwhile; NULL: not known */
	const char *culprit_host;     /* where there are several; NULL: not known */

	/* Where the chains of who waited for whom were recorded. */
	bool has_root;
	struct cause_root root;
	struct cause_way *ways; /* the largest first */
	size_t way_cnt;
	struct cause_gain gain;
	double late_ns, typical_ns;

	/* With report_opts.keep_rows: its part of each interval, by row of the dataset. */
	const uint64_t *row_ns;
	const struct value_line *value; /* that differs in its code; NULL: none */
};

/* All roots together: the parts sum to the tail. */
struct root_account {
	double tail_ns; /* the mean late interval minus the mean typical one */
	double roots_ns, not_attributed_ns;
	double our_own_ns;  /* what the recording took itself; NAN: not measured */
	double left_out_ns; /* of roots_ns: in roots too small for a line */
	double p99_ns;      /* of the intervals that are ranked by root */
	size_t rows;        /* of them */
	size_t samples;     /* that call paths rest on */
};

/* Replies over TCP, and how long the last bytes of some stayed in the socket after send(); times are of all of them. */
struct report_delivery {
	bool known;
	uint64_t replies, held; /* held: for longer than 65 µs */
	uint64_t by_window;     /* of those: the client's window was closed */
	uint64_t resent;        /* of those: a segment was lost and sent again */
	bool resent_known;
	double mean_ns, p99_ns;
	double late_ns;      /* mean of as many of the longest as there are late intervals */
	double held_mean_ns; /* of those that were held, NAN: none was */
};

/* What the recorder itself cost requests: they waited for a CPU while one of its processes ran. */
struct own_line {
	bool known; /* the recording names the recorder's processes */
	double share;
	struct ci share_ci;
	double variance_share, mean_ns, typical_ns, late_ns;
};

/* Steps of critical paths that have the same role, category, object and culprit. */
struct path_line {
	const char *role; /* name of the thread that the path is on; NULL: the interval's own */
	enum wl_category category;
	enum wl_category wait; /* by which the path left the interval's own thread; otherwise the category */
	const char *object;    /* NULL: none known */
	const char *culprit_comm;
	const char *culprit_host;         /* where there are several; NULL: not known */
	int64_t culprit_pid, culprit_tid; /* -1: not known, or several */
	enum wl_category doing;           /* what the thread itself did most of that time … */
	double doing_share;               /* … and how much of it */
	double mean_ns, typical_ns, late_ns, late_met;
	double variance_share, tail_share;
	struct ci variance_share_ci, tail_share_ci;
};

/* Intervals of a type that waited for locks held by a thread that worked for an interval of another (Whodunit §6). */
struct crosstalk_line {
	const char *type;
	const char *by_type; /* NULL: the holder worked for none, or for one that was not kept */
	double count;        /* intervals of `type` that waited */
	double mean_ns;      /* their wait, on average */
	double share;        /* of the latency of all intervals of `type` */
};

struct story;

/* Two recordings whose clocks were compared by what went to and fro between them (stitch.h). */
struct join_line {
	const char *a, *b;          /* hosts */
	int64_t offset_ns;          /* b's clock is ahead by that much … */
	uint64_t uncertainty_ns;    /* … give or take that */
	double drift_ppm;           /* NAN: not known */
	size_t forth_cnt, back_cnt; /* messages that tell the clocks */
	size_t contradicting_cnt;   /* of them, left out because they would have come before they were sent */
	size_t joined;              /* messages with both sides */
	bool in_use;                /* the recordings are joined, by this link or by surer ones */
};

/* What other hosts sent: how much of it met its other side. */
struct join_report {
	size_t sessions; /* with detail */
	size_t received, joined, ambiguous, unknown_peer, not_kept, contradicting, clockless;
	struct join_line *lines;
	size_t line_cnt;
};

struct path_report {
	size_t walked;                                                 /* intervals with a path */
	size_t lossy;                                                  /* of them, not ranked: records were lost */
	size_t with_gap, without_edge, with_loop, too_long, ambiguous; /* enum path_flag */
	double ambiguous_share;                                        /* of the time */
	struct path_line *lines;                                       /* by tail_share, largest first */
	size_t line_cnt;
	struct path_line rest; /* of the lines that are too small to be told; category OTHER means nothing */
	struct story *slowest; /* slowest first */
	size_t slowest_cnt;
	struct crosstalk_line *crosstalk; /* longest first */
	size_t crosstalk_cnt;
	struct join_report join;
};

/* One call path of a factor. */
struct factor_site {
	const char *caller;  /* NULL: the interval itself */
	uint64_t call_addr;  /* where it returns to; 0: not known, or not comparable */
	double contribution; /* the sites' sum to the factor's */
};

#define FACTOR_SITES_MAX 16

/* What threads did during calls: enum tree_doing, blocked in one. */
enum factor_doing { FACTOR_RUNNING, FACTOR_RUNNABLE, FACTOR_BLOCKED, FACTOR_INTERRUPTED, FACTOR_DOING_CNT };

/* The variance of one function, or the covariance of two (VProfiler §3.2.2, analysis/factors.h). */
struct factor_line {
	const char *functions[2], *modules[2]; /* [1] NULL: a variance; modules "" where it is not known */
	bool body[2];                          /* what a function does itself, the probed ones that it calls apart */
	uint32_t symbols[2];                   /* ids in the table `symbol` */
	uint32_t rank;                         /* among those that are selected; 0: it is not */
	double contribution;                   /* Var(X)/Var(L), or 2·Cov(X, Y)/Var(L), over all call sites */
	struct ci contribution_ci;
	uint32_t height;
	double score;
	uint32_t call_sites;
	struct factor_site *sites; /* the largest contributions, largest first */
	size_t site_cnt;
	bool opened;        /* functions that it calls were probed and called */
	const char *caller; /* at the call site that contributes most; NULL: the interval itself */

	/* Of a variance; of a covariance NAN and 0. */
	double variance_share, tail_share; /* as of a category: shares of what is called side by side add up */
	struct ci variance_share_ci, tail_share_ci;
	double mean_ns, typical_ns, late_ns;
	bool sampled;                                /* estimated from samples; calls and late_met are NAN then */
	double calls, late_met;                      /* per interval; share of the late intervals that have any of it */
	double doing_share[FACTOR_DOING_CNT];        /* of its time */
	double doing_contribution[FACTOR_DOING_CNT]; /* of its variance */
	enum wl_category wait;                       /* what it is late by … */
	double wait_share;                           /* … and how much of it that is; NAN: not known */
	const char *object, *culprit_comm;           /* most of that wait; NULL: none known */
	double object_share, culprit_share;          /* of that wait */
};

/* A round of refinement, as it was recorded. */
struct round_line {
	uint32_t number;                                        /* 0: no function was probed */
	double duration_s, probes, intervals_per_s, cost_share; /* NAN: not known */
};

/* A function that was probed for a part of the recording only, and is in no factor therefore. */
struct unmeasured_line {
	const char *function, *module;
	const char *why; /* it was let go */
	double after_s;  /* from then on its calls were not recorded */
};

/* A function that the user understands: it is in no line. */
struct understood_line {
	const char *function; /* as the user called it */
	double contribution;  /* while it was in; NAN: no such function was met */
	uint32_t call_sites;
};

struct factor_report {
	struct factor_line *lines; /* by score, largest first */
	size_t line_cnt, selected_cnt;
	size_t left_out; /* factors that contribute too little for a line */
	uint32_t graph_height, exponent;
	double body_share, queue_share; /* of the variance: time in no probed function, and before pickup */
	size_t intervals, lossy;        /* that the factors are of; that were left out because records were lost */
	size_t calls, orphans, bad_rows;
	bool sampled;        /* the lines are of samples: no function was probed */
	size_t ticks, waits; /* … of so many */
	uint32_t round;      /* the factors are of; 0: recorded without rounds */
	struct round_line *rounds;
	size_t round_cnt;
	struct unmeasured_line *unmeasured;
	size_t unmeasured_cnt;
	struct understood_line *understood;
	size_t understood_cnt;
	double left_share; /* the variance without them, as a share of the whole; lines are shares of what is left */
};

/* A variable whose values differ between late and typical requests, or slow and normal recordings. */
struct value_line {
	const char *variable, *function, *inlined, *module, *file,
		*type; /* function NULL: a global; inlined may be NULL */
	uint32_t line;
	uint8_t kind, tags;            /* enum value_type, enum value_tag */
	double ratio;                  /* discount; NAN: not defined */
	uint8_t dimension;             /* enum value_dimension */
	double typical_lo, typical_hi; /* 5th and 95th percentile; NAN: typical requests have no sample of it */
	double late_median;            /* NAN: a pointer */
	double beyond_share;           /* of the late samples, outside of what typical ones are */
	size_t typical_cnt, late_cnt;  /* samples */
	const char *where_function, *where_file; /* most of those were taken there; NULL: not known */
	uint32_t where_line;
	double exponent, explained; /* latency grows as value^exponent; NAN: it does not explain the latency */
	struct ci exponent_ci;
};

/* A function by calibrated cost (vProf §5.1). */
struct value_function_line {
	const char *function;
	double cost, pc_cost, variable_cost; /* weighted samples */
	double ratio, calibrated;
	uint8_t by, pattern;      /* enum value_discount_by, enum value_pattern */
	struct value_line *value; /* its most anomalous variable; NULL: none was sampled in it */
};

/* The mean of a variable in one request. */
struct value_mean {
	uint32_t line; /* index into variables */
	uint32_t row;  /* of the dataset */
	double mean;
};

struct value_report {
	struct value_function_line *functions; /* the highest calibrated cost first */
	size_t function_cnt;
	struct value_line *variables; /* that late requests have samples of, the most anomalous first */
	size_t variable_cnt;
	size_t late_cnt, typical_cnt; /* samples */
	double late_from_ns;          /* requests that last for so long count as late; NAN: recordings are compared */
	bool by_recording;            /* slow against normal recordings */
	struct value_mean *means;     /* with report_opts.keep_rows: of the first variables, line after line */
	size_t mean_cnt;
};

struct type_line {
	const char *type;
	double count, mean_ns, p99_ns;
	double late_share; /* of the late intervals, how many are of this type */
};

/* One host of several, compared with the others: its peers. */
struct host_line {
	const struct dataset_host *host;
	struct latency_summary latency;
	double tail_ns; /* the percentile asked for */
	struct ci tail_ci;
	double peers_tail_ns;                                      /* the median of theirs */
	double mean_ns[WL_CATEGORY_CNT], late_ns[WL_CATEGORY_CNT]; /* of all, and of those beyond its own tail_ns */
	/* Its tail is clearly longer than theirs, and most of the difference is in one category. */
	bool stands_out;
	enum wl_category differs;
	double differs_ns, differs_share; /* of the difference between the late ones' means */
};

/* Something that is not the same on all hosts: the kernel, or a file in the target. */
struct host_difference {
	const char *subject; /* "kernel", a path */
	struct host_difference_value {
		const char *value; /* a release, a build id */
		const char **hosts;
		size_t host_cnt;
	} *values;
	size_t value_cnt;
};

/*
 * VarMRI §5.3: how long a recording has to be.  In `needed_s`, at this rate, chance moves the share of late intervals
 * by no more than `stated_error` of itself (95 %), which is VarMRI's hundred late intervals where they are independent.
 */
struct length_line {
	size_t late_rows;
	double error; /* of this recording, likewise; NAN: not known */
	double stated_error, needed_s;
	double recorded_share, recorded_needed_s; /* of intervals, with the hardware counter that has the fewest; NAN */
};

struct report {
	const struct dataset *dataset;
	double tail; /* the percentile asked for, 0.99 */
	double tail_threshold_ns;
	double typical_ns; /* requests up to it are typical: p50, or the tail's threshold if that is lower */
	struct latency_summary latency;
	struct levels levels;
	struct report_delivery delivery;
	struct breakdown_line breakdown[WL_CATEGORY_CNT]; /* sorted by tail_share, largest first; unmeasured last */
	struct event_line *events;                        /* by gain, largest first */
	size_t event_cnt;
	struct cause *causes; /* by share, largest first */
	size_t cause_cnt;
	struct own_line our_own; /* in no cause, but in the breakdown */
	struct host_line *hosts; /* the longest tail first; none where all is of one host */
	size_t host_cnt;
	struct host_difference *differences;
	size_t difference_cnt;
	struct type_line *types;
	size_t type_cnt;
	struct length_line length;
	double records_lost_share;     /* of all interval records emitted */
	struct path_report *path;      /* NULL: no detail was recorded */
	struct root_account *roots;    /* likewise; then causes are ranked by root */
	struct factor_report *factors; /* NULL: no function was probed, and none was sampled */
	const bool *ranked;            /* with report_opts.keep_rows: by row, whether causes are of it; NULL: of all */
	struct value_report *values;   /* NULL: no values were recorded */
	void *arena;
};

struct paths;
struct roots;
struct values;
struct factor_analysis;

struct report_opts {
	double tail;                     /* 0 < tail < 1 */
	uint32_t bootstrap_cnt;          /* 0: 1000 */
	uint64_t seed;                   /* of the bootstrap: equal input and seed give equal output */
	const struct paths *paths;       /* NULL: no detail was recorded */
	const struct roots *roots;       /* likewise */
	size_t slowest;                  /* how many paths in full */
	bool keep_rows;                  /* fill cause.row_ns, report.ranked and value_report.means */
	struct factor_analysis *factors; /* NULL: no function was probed */
	struct factor_analysis *sampled; /* NULL: there are no samples */
	const struct values *values;     /* NULL: none were recorded */
};

/* 0 or -ENOMEM, -EINVAL.  A dataset without rows gives a report whose numbers are NAN and whose lists are empty. */
int report_make(struct report *report, const struct dataset *dataset, const struct report_opts *opts);
void report_free(struct report *report);

/* Of all interval records, by whatever lost them, by the weight that they had or would have had; NAN: not known. */
double report_lost_share(const struct dataset *dataset);

#endif
