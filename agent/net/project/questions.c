// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/project/questions.h"

#include "net/project/project_internal.h"
#include "net/project/sql.h"

#include <whylate/record.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DAY_NS UINT64_C(86400000000000)

/* A glob as a pattern of LIKE, in quotes. */
static void put_glob(struct sql *sql, const char *glob)
{
	char pattern[512];
	size_t sz = 0;

	for (const char *c = glob; *c && sz + 3 < sizeof(pattern); c++) {
		if (*c == '%' || *c == '_' || *c == '\\')
			pattern[sz++] = '\\';
		pattern[sz++] = *c == '*' ? '%' : *c == '?' ? '_' : *c;
	}
	pattern[sz] = '\0';
	sql__put_text(sql, pattern);
}

/* Which type and host. */
static void put_who(struct sql *sql, const struct question_filter *filter, bool has_host)
{
	if (filter->type) {
		sql__put(sql, " AND type = ");
		sql__put_text(sql, filter->type);
	}
	if (filter->host && has_host) {
		sql__put(sql, " AND host LIKE ");
		put_glob(sql, filter->host);
	}
}

enum day_kind { DAY_NONE, DAY_SUMS, DAY_ROWS };

/* A block's requests may begin on the next day: the sums tell from when to when theirs did. */
static enum day_kind kind_of(const struct project_day *day, const struct question_filter *filter)
{
	uint64_t until_ns = filter->until_ns ? filter->until_ns : UINT64_MAX;

	if (!day->is_whole)
		return (uint64_t)day->number * DAY_NS < until_ns &&
				       (uint64_t)(day->number + 2) * DAY_NS > filter->since_ns
			       ? DAY_ROWS
			       : DAY_NONE;
	if (day->begin_max < filter->since_ns || day->begin_min >= until_ns)
		return DAY_NONE;
	return day->begin_min >= filter->since_ns && day->begin_max < until_ns ? DAY_SUMS : DAY_ROWS;
}

static void put_rows(struct sql *sql, const char *database, const struct question_filter *filter, const char *columns)
{
	size_t cnt = 0;

	sql__put(sql, "SELECT %s FROM %s.intervals WHERE weight > 0", columns, database);
	if (filter->days) {
		sql__put(sql, " AND day IN (");
		for (size_t i = 0; i < filter->days->cnt; i++)
			if (kind_of(&filter->days->items[i], filter) == DAY_ROWS)
				sql__put(sql, "%s'%s'", cnt++ ? "," : "", filter->days->items[i].text);
		/* Nothing is of that day. */
		sql__put(sql, "%s)", cnt ? "" : "'1970-01-01'");
	} else {
		if (filter->since_ns)
			sql__put(sql, " AND day >= toDate(%" PRIu64 ")",
				 filter->since_ns / DAY_NS ? filter->since_ns / DAY_NS - 1 : 0);
		if (filter->until_ns)
			sql__put(sql, " AND day <= toDate(%" PRIu64 ")", filter->until_ns / DAY_NS);
	}
	if (filter->since_ns)
		sql__put(sql, " AND begin_ns >= %" PRIu64, filter->since_ns);
	if (filter->until_ns)
		sql__put(sql, " AND begin_ns < %" PRIu64, filter->until_ns);
	put_who(sql, filter, true);
}

/* The days that are answered so: how many. */
static size_t count_days(const struct question_filter *filter, enum day_kind kind)
{
	size_t cnt = 0;

	for (size_t i = 0; filter->days && i < filter->days->cnt; i++)
		cnt += kind_of(&filter->days->items[i], filter) == kind;
	return cnt;
}

static void put_generations(struct sql *sql, const struct question_filter *filter)
{
	size_t cnt = 0;

	sql__put(sql, "generation IN (");
	for (size_t i = 0; i < filter->days->cnt; i++)
		if (kind_of(&filter->days->items[i], filter) == DAY_SUMS)
			sql__put(sql, "%s%" PRIu64, cnt++ ? "," : "", filter->days->items[i].generation);
	sql__put(sql, ")");
}

/*
 * " FROM (…)" of the sums of one table and of the rows of the days that have none: `sums` and `rows` are the same
 * columns of each, `more` a condition that both understand.
 */
static void put_counted(struct sql *sql, const char *database, const struct question_filter *filter, const char *table,
			const char *sums, const char *rows, const char *more)
{
	size_t sum_cnt = count_days(filter, DAY_SUMS), row_cnt = count_days(filter, DAY_ROWS);

	sql__put(sql, " FROM (");
	if (sum_cnt) {
		sql__put(sql, "SELECT %s FROM %s.%s WHERE ", sums, database, table);
		put_generations(sql, filter);
		sql__put(sql, " AND w > 0");
		if (!strcmp(table, "histograms"))
			sql__put(sql, " AND every = %d", !filter->type);
		put_who(sql, filter, strcmp(table, "rollup_times"));
		sql__put(sql, "%s", more);
		if (row_cnt)
			sql__put(sql, " UNION ALL ");
	}
	if (!sum_cnt || row_cnt)
		put_rows(sql, database, filter, rows);
	if (!sum_cnt || row_cnt)
		sql__put(sql, "%s", more);
	sql__put(sql, ") AS counted");
}

/* ", 'one','two'" without the first comma. */
static void put_names(struct sql *sql, const char *const *names, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		sql__put(sql, i ? "," : "");
		sql__put_text(sql, names[i]);
	}
}

/* "(…) AS said": what sessions say of a fact, where it is one of these (cnt 0: anything). */
static void put_fact(struct sql *sql, const char *database, const char *fact, const char *const *values, size_t cnt)
{
	sql__put(sql, "(SELECT session, argMax(value, version) AS fact FROM %s.facts WHERE key = ", database);
	sql__put_text(sql, fact);
	sql__put(sql, " GROUP BY session");
	if (cnt) {
		sql__put(sql, " HAVING fact IN (");
		put_names(sql, values, cnt);
		sql__put(sql, ")");
	}
	sql__put(sql, ") AS said");
}

/* What histograms are summed by: " AS counted ALL INNER JOIN …", where it is a fact. */
static void put_called(struct sql *sql, const char *database, const char *fact)
{
	if (!fact)
		return;
	sql__put(sql, " AS counted ALL INNER JOIN ");
	put_fact(sql, database, fact, NULL, 0);
	sql__put(sql, " USING session");
}

/*
 * "(…)": called, w, w2, buckets, weights: histograms by host or fact, of the sums of days and of rows.  No lambda may
 * use a column but as its argument: 18.16 does not find it then.
 */
static void put_histograms(struct sql *sql, const char *database, const struct question_filter *filter,
			   const char *fact)
{
	size_t sum_cnt = count_days(filter, DAY_SUMS), row_cnt = count_days(filter, DAY_ROWS);
	const char *called = fact ? "fact" : "host", *key = fact ? "session" : "host";
	char columns[96];

	sql__put(sql, "(");
	if (sum_cnt) {
		sql__put(sql,
			 "SELECT called, w, w2, arrayFilter((b, x) -> x > 0, arrayMap((i, o) -> toUInt16(i + o), "
			 "range(length(dense)), arrayResize(emptyArrayUInt16(), length(dense), octave)), dense) AS "
			 "buckets, arrayFilter(x -> x > 0, dense) AS weights FROM (SELECT %s AS called, first AS "
			 "octave, sum(s) AS w, sum(s2) AS w2, sumForEach(places) AS dense FROM (SELECT %s, first, w AS "
			 "s, w2 AS s2, weights AS places FROM %s.histograms WHERE ",
			 called, key, database);
		put_generations(sql, filter);
		sql__put(sql, " AND every = %d AND w > 0", !filter->type);
		put_who(sql, filter, true);
		sql__put(sql, ")");
		put_called(sql, database, fact);
		sql__put(sql, " GROUP BY called, octave)");
	}
	if (sum_cnt && row_cnt)
		sql__put(sql, " UNION ALL ");
	if (!sum_cnt || row_cnt) {
		sql__put(sql,
			 "SELECT called, sum(s) AS w, sum(s2) AS w2, groupArray(class) AS buckets, groupArray(s) AS "
			 "weights FROM (SELECT %s AS called, bucket AS class, sum(of_class) AS s, sum(of_class2) AS s2 "
			 "FROM (",
			 called);
		snprintf(columns, sizeof(columns),
			 "%s, bucket, sum(weight) AS of_class, sum(weight * weight) AS of_class2", key);
		put_rows(sql, database, filter, columns);
		sql__put(sql, " GROUP BY %s, bucket)", key);
		put_called(sql, database, fact);
		sql__put(sql, " GROUP BY called, class) GROUP BY called");
	}
	sql__put(sql, ")");
}

/* Of `sessions` s: those that touch the time. */
static void put_sessions(struct sql *sql, const char *database, const struct question_filter *filter)
{
	sql__put(sql,
		 "(SELECT session, argMax(recording, version) AS in_directory, argMax(host, version) AS on_host, "
		 "max(end_ns) AS end_max, min(begin_ns) AS begin_min FROM %s.sessions GROUP BY session HAVING 1",
		 database);
	if (filter->since_ns)
		sql__put(sql, " AND end_max >= %" PRIu64, filter->since_ns);
	if (filter->until_ns)
		sql__put(sql, " AND begin_min < %" PRIu64, filter->until_ns);
	if (filter->host) {
		sql__put(sql, " AND on_host LIKE ");
		put_glob(sql, filter->host);
	}
	sql__put(sql, ")");
}

/* The class at which the sum of weights reaches that share of all. */
static void put_quantile(struct sql *sql, const char *share)
{
	sql__put(sql, ", sorted[least(length(sorted), 1 + arrayCount(x -> x < total * (%s), reached))]", share);
}

int question_groups(struct clickhouse *server, const struct question_filter *filter, const char *fact, double tail,
		    struct clickhouse_rows *rows)
{
	const char *database = clickhouse__database(server);
	char share[64];
	struct sql sql = {0};

	sql__put(&sql, "SELECT called, total, total2, error");
	put_quantile(&sql, "0.5");
	snprintf(share, sizeof(share), "%.17g", tail);
	put_quantile(&sql, share);
	snprintf(share, sizeof(share), "%.17g - error", tail);
	put_quantile(&sql, share);
	snprintf(share, sizeof(share), "%.17g + error", tail);
	put_quantile(&sql, share);
	sql__put(&sql,
		 " FROM (SELECT called, total, total2, 1.959964 * sqrt(%.17g * total2) / total AS error, arraySort(b) "
		 "AS "
		 "sorted, arrayCumSum(arraySort((x, y) -> y, v, b)) AS reached FROM (",
		 tail * (1 - tail));
	sql__put(&sql, "SELECT called, sum(w) AS total, sum(w2) AS total2, groupArrayArray(buckets) AS b, "
		       "groupArrayArray(weights) AS v FROM ");
	put_histograms(&sql, database, filter, fact);
	sql__put(&sql, " GROUP BY called");
	sql__put(&sql, ")) ORDER BY called");
	return sql__ask(&sql, server, QUESTION_GROUPS_COLUMNS, rows);
}

int question_histogram(struct clickhouse *server, const struct question_filter *filter, struct clickhouse_rows *rows)
{
	const char *database = clickhouse__database(server);
	struct sql sql = {0};

	sql__put(&sql, "SELECT at, sum(w), min(low), max(high)");
	put_counted(&sql, database, filter, filter->host ? "rollup_late" : "rollup_times",
		    "bucket AS at, w, begin_min AS low, begin_max AS high",
		    "bucket AS at, weight AS w, begin_ns AS low, begin_ns AS high", "");
	sql__put(&sql, " GROUP BY at ORDER BY at");
	return sql__ask(&sql, server, QUESTION_HISTOGRAM_COLUMNS, rows);
}

int question_late(struct clickhouse *server, const struct question_filter *filter, const char *fact,
		  const char *const *groups, size_t group_cnt, uint32_t from_bucket, struct clickhouse_rows *rows)
{
	const char *group = fact ? "fact" : "host", *by = fact ? "session" : "host";
	const char *database = clickhouse__database(server);
	char sums[WL_CATEGORY_CNT * 64], weighed[WL_CATEGORY_CNT * 64], column[SCHEMA_CATEGORY_SZ];
	size_t sums_len = (size_t)snprintf(sums, sizeof(sums), "%s, w", by);
	size_t weighed_len = (size_t)snprintf(weighed, sizeof(weighed), "%s, weight AS w", by);
	struct sql sql = {0}, which = {0};
	char *condition;

	sql__put(&which, " AND bucket >= %u", from_bucket);
	if (!fact) {
		sql__put(&which, " AND host IN (");
		put_names(&which, groups, group_cnt);
		sql__put(&which, ")");
	}
	condition = sql__end(&which);
	if (!condition)
		return -ENOMEM;
	sql__put(&sql, "SELECT %s, sum(w) AS late", group);
	for (int c = 0; c < WL_CATEGORY_CNT; c++) {
		schema_category_column(column, c);
		sql__put(&sql, ", sum(c%d) / late", c);
		sums_len += (size_t)snprintf(sums + sums_len, sizeof(sums) - sums_len, ", %s AS c%d", column, c);
		weighed_len += (size_t)snprintf(weighed + weighed_len, sizeof(weighed) - weighed_len,
						", weight * %s AS c%d", column, c);
	}
	put_counted(&sql, database, filter, "rollup_late", sums, weighed, condition);
	free(condition);
	if (fact) {
		sql__put(&sql, " ALL INNER JOIN ");
		put_fact(&sql, database, fact, groups, group_cnt);
		sql__put(&sql, " USING session");
	}
	sql__put(&sql, " GROUP BY %s", group);
	return sql__ask(&sql, server, 2 + WL_CATEGORY_CNT, rows);
}

/* The rows of `segment_causes` that hold, of hours in the time: of each hour those of its latest analysis. */
static void put_hours(struct sql *sql, const char *database, const struct question_filter *filter)
{
	sql__put(sql,
		 " FROM %s.segment_causes WHERE (session, hour, version) GLOBAL IN "
		 "(SELECT session, hour, max(version) FROM %s.segment_causes GROUP BY session, hour)",
		 database, database);
	if (filter->since_ns)
		sql__put(sql, " AND end_ns > %" PRIu64, filter->since_ns);
	if (filter->until_ns)
		sql__put(sql, " AND begin_ns < %" PRIu64, filter->until_ns);
}

#define ROOT_KEY "category, kind, role, function, object, culprit"

/*
 * Roots by session: the columns of ROOT_KEY, `late` requests by it, of `tail` in all, its words `said`, the late
 * request `sid` that it held up most, and `seconds` that were analysed, of all causes.
 */
static void put_session_roots(struct sql *sql, const char *database, const struct question_filter *filter)
{
	/* A root's type is that of the request it worked for, which need not be the late one's. */
	sql__put(sql, " FROM (SELECT session, " ROOT_KEY ", late, said, sid, tail, seconds FROM "
		      "(SELECT session, " ROOT_KEY ", sum(share * tail_weight) AS late, "
		      "argMax(what, share * tail_weight) AS said, argMax(late_sid, share * tail_weight) AS sid");
	put_hours(sql, database, filter);
	sql__put(sql, " AND rank > 0 GROUP BY session, " ROOT_KEY ") AS held ALL INNER JOIN "
		      "(SELECT session, sum(tail_weight) AS tail, sum((end_ns - begin_ns) / 1000000000) AS seconds");
	put_hours(sql, database, filter);
	sql__put(sql, " AND rank = 0 GROUP BY session) AS analysed USING session) AS found ALL INNER JOIN ");
	put_sessions(sql, database, filter);
	sql__put(sql, " AS recorded USING session");
}

int question_roots(struct clickhouse *server, const struct question_filter *filter, uint32_t limit,
		   struct clickhouse_rows *rows)
{
	struct sql sql = {0};

	sql__put(&sql, "SELECT " ROOT_KEY ", uniqExact(on_host), sum(late) AS all_late, sum(seconds), "
		       "argMax(said, late), argMax(session, late), argMax(sid, late), argMax(on_host, late), "
		       "argMax(in_directory, late)");
	put_session_roots(&sql, clickhouse__database(server), filter);
	sql__put(&sql, " GROUP BY " ROOT_KEY " HAVING all_late > 0 ORDER BY all_late DESC LIMIT %u", limit);
	return sql__ask(&sql, server, QUESTION_ROOTS_COLUMNS, rows);
}

int question_first_causes(struct clickhouse *server, const struct question_filter *filter, const char *const *hosts,
			  size_t host_cnt, struct clickhouse_rows *rows)
{
	struct sql sql = {0};

	sql__put(&sql, "SELECT on_host, argMax(said, late), max(late) / max(tail), session, argMax(sid, late), "
		       "any(in_directory)");
	put_session_roots(&sql, clickhouse__database(server), filter);
	sql__put(&sql, " WHERE on_host IN (");
	put_names(&sql, hosts, host_cnt);
	sql__put(&sql, ") GROUP BY on_host, session ORDER BY on_host, max(end_max) DESC");
	return sql__ask(&sql, server, QUESTION_FIRST_COLUMNS, rows);
}

/*
 * Rows of `facts` as they hold: key, fact, of_host.  Two collectors may have parts of a session and other versions of
 * it, so that each key has a version of its own; but nearly all sessions have one version alone, since merges leave the
 * last, and no row of these needs a group.
 */
static void put_facts_that_hold(struct sql *sql, const char *database)
{
	for (int several = 0; several < 2; several++)
		sql__put(sql,
			 "%sSELECT session, key, %s AS fact, %s AS of_host FROM %s.facts WHERE session GLOBAL %sIN "
			 "(SELECT session FROM %s.facts GROUP BY session HAVING min(version) < max(version))%s",
			 several ? " UNION ALL " : "", several ? "argMax(value, version)" : "value",
			 several ? "any(host)" : "host", database, several ? "" : "NOT ", database,
			 several ? " GROUP BY session, key" : "");
}

int question_facts(struct clickhouse *server, const struct question_filter *filter, const char *const *late,
		   size_t late_cnt, struct clickhouse_rows *rows)
{
	bool is_some = filter->since_ns || filter->until_ns || filter->host;
	const char *database = clickhouse__database(server);
	struct sql sql = {0};

	sql__put(&sql, "SELECT key, fact, uniqExactIf(on_host, is_late = 1), uniqExactIf(on_host, is_late = 0) FROM "
		       "(SELECT key, fact, on_host, on_host IN (");
	put_names(&sql, late, late_cnt);
	sql__put(&sql, ") AS is_late FROM (SELECT session, key, fact%s FROM (", is_some ? "" : ", of_host AS on_host");
	put_facts_that_hold(&sql, database);
	sql__put(&sql, ")) AS said");
	if (is_some) {
		sql__put(&sql, " ALL INNER JOIN ");
		put_sessions(&sql, database, filter);
		sql__put(&sql, " AS recorded USING session");
	}
	sql__put(&sql, ") GROUP BY key, fact");
	return sql__ask(&sql, server, 4, rows);
}

int question_fact_hosts(struct clickhouse *server, const struct question_filter *filter, const char *fact,
			struct clickhouse_rows *rows)
{
	const char *database = clickhouse__database(server);
	struct sql sql = {0};

	sql__put(&sql,
		 "SELECT on_host, max(fact) FROM (SELECT session, argMax(value, version) AS fact FROM %s.facts WHERE "
		 "key = ",
		 database);
	sql__put_text(&sql, fact);
	sql__put(&sql, " GROUP BY session) AS said ALL INNER JOIN ");
	put_sessions(&sql, database, filter);
	sql__put(&sql, " AS recorded USING session GROUP BY on_host");
	return sql__ask(&sql, server, 2, rows);
}

int question_steps(struct clickhouse *server, const struct question_filter *filter, uint64_t step_ns,
		   uint32_t from_bucket, struct clickhouse_rows *rows)
{
	struct question_filter of_rows = *filter;
	struct sql sql = {0};

	/* Sums by the minute are of no host. */
	if (filter->host || step_ns % QUESTION_STEP_NS)
		of_rows.days = NULL;
	sql__put(&sql, "SELECT intDiv(begin, %" PRIu64 ") * %" PRIu64 " AS step, sum(w), sum(w2), sumIf(w, at >= %u)",
		 step_ns, step_ns, from_bucket);
	put_counted(&sql, clickhouse__database(server), &of_rows, "rollup_times",
		    "toUInt64(minute) * 60000000000 AS begin, bucket AS at, w, w2",
		    "begin_ns AS begin, bucket AS at, weight AS w, weight * weight AS w2", "");
	sql__put(&sql, " GROUP BY step ORDER BY step");
	return sql__ask(&sql, server, 4, rows);
}

int question_heat(struct clickhouse *server, const struct question_filter *filter, const char *const *hosts,
		  size_t host_cnt, uint64_t step_ns, uint32_t from_bucket, struct clickhouse_rows *rows)
{
	bool by_day = step_ns == QUESTION_DAY_NS;
	struct question_filter of_rows = *filter;
	char *condition, sums[320], of_row[160];
	struct sql sql = {0}, which = {0};

	/* Sums of a host are of whole days. */
	if (!by_day)
		of_rows.days = NULL;
	sql__put(&which, " AND host IN (");
	put_names(&which, hosts, host_cnt);
	sql__put(&which, ")");
	condition = sql__end(&which);
	if (!condition)
		return -ENOMEM;
	/* Of an octave's weights those of the late classes; not of one that is late as a whole. */
	snprintf(sums, sizeof(sums),
		 "host AS called, toUInt64(toUInt16(day)) * 86400000000000 AS begin, w, if(first >= %u, w, "
		 "arraySum(arraySlice(weights, greatest(%u - toInt32(first) + 1, 1)))) AS late",
		 from_bucket, from_bucket);
	snprintf(of_row, sizeof(of_row),
		 "host AS called, %s AS begin, weight AS w, if(bucket >= %u, weight, 0.) AS late",
		 by_day ? "toUInt64(toUInt16(day)) * 86400000000000" : "begin_ns", from_bucket);
	sql__put(&sql, "SELECT called, intDiv(begin, %" PRIu64 ") * %" PRIu64 " AS step, sum(w), sum(late)", step_ns,
		 step_ns);
	put_counted(&sql, clickhouse__database(server), &of_rows, "histograms", sums, of_row, condition);
	free(condition);
	sql__put(&sql, " GROUP BY called, step ORDER BY called, step");
	return sql__ask(&sql, server, QUESTION_HEAT_COLUMNS, rows);
}

int question_builds(struct clickhouse *server, struct clickhouse_rows *rows)
{
	const char *database = clickhouse__database(server);
	struct sql sql = {0};

	/* A file of the process's name is more likely its program than a library. */
	sql__put(&sql,
		 "SELECT key FROM (SELECT session, key FROM %s.facts WHERE key LIKE '" PROJECT_PATH_PREFIX
		 "%%') AS said ALL INNER JOIN (SELECT session, any(comm) AS name FROM %s.sessions GROUP BY session) AS "
		 "recorded USING "
		 "session ",
		 database, database);
	sql__put(&sql,
		 "GROUP BY key ORDER BY countIf(endsWith(key, concat('/', name))) DESC, count() DESC, key LIMIT 1");
	return sql__ask(&sql, server, 1, rows);
}
