/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Questions to the database that a projection fills, as statements that ClickHouse 18.16 and today's read alike.  Each
 * answers with rows of cells; what they mean is the caller's.  0 or as clickhouse__ask().
 *
 * What the two understand differently is avoided: ANY INNER JOIN (today's takes one row of each side; here it is ALL,
 * and the right side has one row a session), subqueries in a join without an alias, an alias that is a column's name.
 */
#ifndef WHYLATE_NET_PROJECT_QUESTIONS_H
#define WHYLATE_NET_PROJECT_QUESTIONS_H

#include "net/project/days.h"

/* Which requests; NULL or 0: all. */
struct question_filter {
	const char *type, *host; /* host: with * and ? */
	uint64_t since_ns, until_ns;
	/*
	 * Days that are rolled up and lie in the time as a whole are answered from their sums, the others from their
	 * rows; both count alike.  NULL: from the rows alone.
	 */
	const struct project_days *days;
};

/*
 * How late requests were, by group: group, sum of weights, of their squares, half of the interval as a share, buckets
 * of the median, of the quantile `tail`, and of the ends of the latter's 95 % interval (order statistics, by the
 * effective number of requests). fact NULL: groups are hosts; else the values of that fact.
 */
#define QUESTION_GROUPS_COLUMNS 8
int question_groups(struct clickhouse *server, const struct question_filter *filter, const char *fact, double tail,
		    struct clickhouse_rows *rows);
/* bucket, sum of weights, when the first and the last of them began: of all together. */
#define QUESTION_HISTOGRAM_COLUMNS 4
int question_histogram(struct clickhouse *server, const struct question_filter *filter, struct clickhouse_rows *rows);
/*
 * Means of the categories of requests of that bucket and above, of these groups: group, sum of weights, then each
 * category.
 */
int question_late(struct clickhouse *server, const struct question_filter *filter, const char *fact,
		  const char *const *groups, size_t group_cnt, uint32_t from_bucket, struct clickhouse_rows *rows);
/*
 * What late requests were late by, by root: category, kind, role, function, object, culprit, hosts, late requests,
 * seconds recorded on those hosts, one of the texts, of the session with most: session, sid, host, recording.
 */
#define QUESTION_ROOTS_COLUMNS 14
int question_roots(struct clickhouse *server, const struct question_filter *filter, uint32_t limit,
		   struct clickhouse_rows *rows);
/* The largest cause of each recording of these hosts: host, what, share, session, sid, recording; the latest first. */
#define QUESTION_FIRST_COLUMNS 6
int question_first_causes(struct clickhouse *server, const struct question_filter *filter, const char *const *hosts,
			  size_t host_cnt, struct clickhouse_rows *rows);
/* Facts: key, value, how many of the late hosts have it, how many of the others. */
int question_facts(struct clickhouse *server, const struct question_filter *filter, const char *const *late,
		   size_t late_cnt, struct clickhouse_rows *rows);
/* Which host has which value of that fact: host, value. */
int question_fact_hosts(struct clickhouse *server, const struct question_filter *filter, const char *fact,
			struct clickhouse_rows *rows);
/* Steps of so many nanoseconds can be made of sums, which are by the minute. */
#define QUESTION_STEP_NS UINT64_C(60000000000)
/* Time in steps: begin, sum of weights, of their squares, of the weights of requests of that bucket and above. */
int question_steps(struct clickhouse *server, const struct question_filter *filter, uint64_t step_ns,
		   uint32_t from_bucket, struct clickhouse_rows *rows);
/*
 * Of these hosts by steps: host, begin, sum of weights, of the weights of requests of that bucket and above.  Steps of
 * whole days are those of the table's days, and come from their sums.
 */
#define QUESTION_DAY_NS       UINT64_C(86400000000000)
#define QUESTION_HEAT_COLUMNS 4
int question_heat(struct clickhouse *server, const struct question_filter *filter, const char *const *hosts,
		  size_t host_cnt, uint64_t step_ns, uint32_t from_bucket, struct clickhouse_rows *rows);
/* Which keys "build:…" the recordings have, the file that they were of first: key. */
int question_builds(struct clickhouse *server, struct clickhouse_rows *rows);

#endif
