/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Many hosts compared, from histograms and facts that a database has summed up: quantiles with intervals, who stands
 * out, what those have in common, since when.  Pure functions over plain data; the caller asks the database.
 *
 * Latencies come in the classes of base/loghist.h, so that a quantile is known to 1/32 of itself.
 */
#ifndef WHYLATE_ANALYSIS_FLEET_H
#define WHYLATE_ANALYSIS_FLEET_H

#include "analysis/results.h"
#include "base/vec.h"

/* One group of requests: a host, or all hosts with one value of a fact. */
struct fleet_bin {
	uint32_t class_no;
	double weight, weight2; /* sums of weights and of their squares */
};

#define FLEET_RECORDINGS_MAX 3

/* A recording that shows it, and its slowest request. */
struct fleet_recording {
	uint64_t session_id, sid; /* sid 0: none is known */
	const char *path, *host;
};

struct fleet_group {
	const char *name;
	VEC(struct fleet_bin) bins; /* by class */
	bool summed;                /* by the database: no bins, but the figures down to tail_ci */
	/* By fleet_compare() */
	double requests, effective; /* Σw; (Σw)²/Σw² */
	double median_ns, tail_ns;
	struct ci tail_ci;
	double peers_tail_ns; /* the median of the others' */
	bool stands_out;
	uint32_t host_cnt; /* by fact: that have it; 0: groups are hosts */
	double rank_p;     /* by fact: chance that its hosts' tails are so much longer than the others'; NAN */
	/* The caller's */
	double late_ns[WL_CATEGORY_CNT], late_requests; /* beyond the fleet's tail: their mean; NAN: not asked for */
	const char *cause;                              /* what its recordings' analysis says first; NULL: nothing */
	double cause_share;
	struct fleet_recording recordings[FLEET_RECORDINGS_MAX];
	size_t recording_cnt;
};

/*
 * Fills in the groups' figures and sorts them, the longest tail first.  A group stands out as a host does in a report:
 * its tail is at least a fifth above the median of the others' and the lower end of its interval is above that, too;
 * one group alone never does.
 */
int fleet_compare(struct fleet_group *groups, size_t cnt, double tail);

/* A host's tail, and the group that it is of (UINT32_MAX: none). */
struct fleet_host_tail {
	double tail_ns;
	uint32_t group;
};

/*
 * Groups of hosts: a single bad host must not make its kernel stand out.  After fleet_compare(), which took requests
 * for independent: a group stands out only if the tails of its hosts rank above those of all other hosts beyond chance
 * (Wilcoxon, one-sided, normal approximation with ties, p < 0.05).
 */
int fleet_compare_hosts(struct fleet_group *groups, size_t cnt, const struct fleet_host_tail *hosts, size_t host_cnt);

/* The smallest value that the share q of the weight does not exceed; NAN where there is none. */
double fleet_quantile(const struct fleet_bin *bins, size_t cnt, double q);

/* A fact, and how many hosts have it. */
struct fleet_fact {
	const char *key, *value;
	uint32_t late, other; /* hosts that have it */
	double p,
		p_adjusted; /* chance (Fisher, one-sided); with multiplicity (Holm, over all facts that were tested) */
};

/*
 * Ranks facts, the least likely by chance first, of late_cnt late hosts and other_cnt others.  Facts that all hosts or
 * no late one has are not tested and come last (p 1).
 */
void fleet_rank_facts(struct fleet_fact *facts, size_t cnt, uint32_t late_cnt, uint32_t other_cnt);

/* P(X ≥ late) where `late + other` of all hosts have something at random. */
double fleet_fisher(uint32_t late, uint32_t late_cnt, uint32_t other, uint32_t other_cnt);

struct fleet_step {
	uint64_t begin_ns;            /* CLOCK_REALTIME */
	double weight, weight2, late; /* sums; late: of the weights of late requests */
};

struct fleet_change {
	bool found;
	uint64_t since_ns; /* the beginning of the first step after it */
	double before_share, after_share;
	double p; /* with multiplicity: over all places where it could be */
};

/* Where the share of late requests changed most, by the likelihood of two shares against one; steps by time. */
struct fleet_change fleet_find_change(const struct fleet_step *steps, size_t cnt);

/* A root over all recordings. */
struct fleet_root {
	const char *category, *kind, *role, *function, *object, *culprit, *what;
	uint64_t host_cnt;
	double late_requests, late_per_day; /* that it made late; of a host */
	struct fleet_recording recording;
};

/* A host at a time: a cell of the heatmap. */
struct fleet_heat {
	uint32_t group; /* index into the answer's groups */
	uint64_t begin_ns;
	double weight, late; /* sums of weights, as in fleet_step */
};

enum fleet_question { FLEET_HOSTS, FLEET_BY, FLEET_ROOTS, FLEET_COMMON, FLEET_SINCE };

/* The answer to one question: what does not belong to it is empty.  Strings are the arena's. */
struct fleet_answer {
	enum fleet_question question;
	const char *database, *type, *host, *fact; /* as asked for; NULL: all; fact: by which groups are made */
	double tail;
	double requests, tail_ns; /* of all together; NAN: no request */
	uint64_t begin_ns, end_ns;
	struct fleet_group *groups;
	size_t group_cnt;
	struct fleet_root *roots;
	size_t root_cnt;
	struct fleet_fact *facts;
	size_t fact_cnt;
	size_t late_host_cnt, other_host_cnt;
	struct fleet_change change;
	uint64_t step_ns;
	/* Of the first heat_group_cnt groups, where it is asked for; by step, within begin and end. */
	struct fleet_heat *heat;
	size_t heat_cnt, heat_group_cnt;
	uint64_t heat_step_ns, heat_begin_ns, heat_end_ns;
};

#endif
