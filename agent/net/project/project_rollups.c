// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sums of a day's rows, so that questions need not read each: `rollup_late` by class of latency, type and session, with
 * the categories; `histograms`, a row for each octave, by session and type, and (every = 1) by session over all types;
 * `rollup_times` by minute, type and class.  A day is rolled up anew under another generation; the row of `summed_days`
 * that says so comes last and has the number of rows, and the day's rollups hold as long as `intervals` has as many.  A
 * projector that is killed leaves sums of a generation that nothing names.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/loghist.h"
#include "base/random.h"
#include "net/project/days.h"
#include "net/project/project_internal.h"
#include "net/project/sql.h"

#include <whylate/record.h>

#include <inttypes.h>
#include <stdio.h>

#define SPILL_BYTES 2000000000ULL
#define OLD_MS      600000  /* a question that began with the sums of before has ended */
#define DEAD_MS     3600000 /* a projector that made sums and did not name them is gone */
#define PAUSE_NS    600000000000ULL

static int sum_up(struct clickhouse *server, const struct project_day *day, uint64_t generation, bool times)
{
	const char *database = clickhouse__database(server);
	const char *keys =
		times ? "type, toUInt32(intDiv(begin_ns, 60000000000)), bucket" : "type, host, session, bucket";
	char column[SCHEMA_CATEGORY_SZ];
	struct sql sql = {0};

	sql__put(&sql,
		 "INSERT INTO %s.%s SELECT toDate('%s'), toUInt64(%" PRIu64
		 "), %s, count(), sum(weight), sum(weight * weight), minIf(begin_ns, weight > 0), "
		 "maxIf(begin_ns, weight > 0)",
		 database, times ? "rollup_times" : "rollup_late", day->text, generation, keys);
	for (int c = 0; !times && c < WL_CATEGORY_CNT; c++) {
		schema_category_column(column, c);
		sql__put(&sql, ", sum(weight * %s)", column);
	}
	sql__put(&sql,
		 " FROM %s.intervals WHERE day = toDate('%s') GROUP BY %s SETTINGS max_bytes_before_external_group_by "
		 "= %llu",
		 database, day->text, keys, SPILL_BYTES);
	return sql__do(&sql, server);
}

/*
 * From `rollup_late`, whose rows are fewer.  An octave's weights are at the places of their classes, so that octaves
 * add up place by place (sumForEach), which is faster than sorting what they have.
 */
static int put_histograms(struct clickhouse *server, const struct project_day *day, uint64_t generation, bool every)
{
	const char *database = clickhouse__database(server);

	return sql_do(
		server,
		"INSERT INTO %s.histograms SELECT toDate('%s'), toUInt64(%" PRIu64
		"), toUInt8(%d), kind, host, session, octave, sum(n), sum(s), sum(s2), minIf(low, s > 0), maxIf(high, "
		"s > 0), sumForEach(arrayConcat(arrayResize(emptyArrayFloat64(), place), [s])) FROM (SELECT %s AS "
		"kind, host, session, toUInt16(intDiv(bucket, %u) * %u) AS octave, bucket %% %u AS place, "
		"sum(row_cnt) AS n, sum(w) AS s, sum(w2) AS s2, minIf(begin_min, w > 0) AS low, maxIf(begin_max, w > "
		"0) AS high FROM %s.rollup_late WHERE day = toDate('%s') AND generation = %" PRIu64
		" GROUP BY kind, host, session, octave, place) GROUP BY kind, host, session, octave",
		database, day->text, generation, every, every ? "''" : "type", LOGHIST_SUB_CNT, LOGHIST_SUB_CNT,
		LOGHIST_SUB_CNT, database, day->text, generation);
}

struct rolled {
	uint64_t row_cnt, begin_min, begin_max;
};

/* What the sums of a generation say of the rows that they are of. */
static int look(struct clickhouse *server, const char *table, const char *which, const struct project_day *day,
		uint64_t generation, struct rolled *rolled)
{
	struct clickhouse_rows rows;
	int err = sql_ask(server, 3, &rows,
			  "SELECT sum(row_cnt), minIf(begin_min, w > 0), maxIf(begin_max, w > 0) FROM %s.%s WHERE day "
			  "= toDate('%s') AND generation = %" PRIu64 "%s",
			  clickhouse__database(server), table, day->text, generation, which);

	if (!err &&
	    (rows.row_cnt != 1 || !clickhouse_u64(rows.cells[0], &rolled->row_cnt) ||
	     !clickhouse_u64(rows.cells[1], &rolled->begin_min) || !clickhouse_u64(rows.cells[2], &rolled->begin_max)))
		err = -EBADMSG;
	clickhouse_rows__free(&rows);
	return err;
}

static int name_generation(struct clickhouse *server, const struct project_day *day, uint64_t generation,
			   const struct rolled *rolled)
{
	return sql_do(server,
		      "INSERT INTO %s.summed_days SELECT toDate('%s'), toUInt64(%" PRIu64 "), toUInt64(%" PRIu64
		      "), toUInt64(%" PRIu64 "), toUInt64(%" PRIu64 ")",
		      clickhouse__database(server), day->text, generation, rolled->row_cnt, rolled->begin_min,
		      rolled->begin_max);
}

/* Rows that came between the statements, or sums that were made twice, are not named. */
static int roll_up(struct projector *projector, const struct project_day *day)
{
	uint64_t generation = realtime_ns() / 1000000 << 16 | (random_next(&projector->rng) & 0xffff);
	static const char *const tables[][2] = {{"rollup_late", ""},
						{"histograms", " AND every = 0"},
						{"histograms", " AND every = 1"},
						{"rollup_times", ""}};
	struct rolled rolled[4];
	struct project_days days;
	bool same = true, found = false;
	int err = sum_up(projector->server, day, generation, false)
			  ?: sum_up(projector->server, day, generation, true)
			  ?: put_histograms(projector->server, day, generation, false)
			  ?: put_histograms(projector->server, day, generation, true);

	for (size_t t = 0; !err && t < 4; t++) {
		err = look(projector->server, tables[t][0], tables[t][1], day, generation, &rolled[t]);
		same &= !err && rolled[t].row_cnt == rolled[0].row_cnt;
	}
	if (!err)
		err = project_days__load(&days, projector->server);
	if (err)
		return err;
	for (size_t i = 0; i < days.cnt; i++)
		if (days.items[i].number == day->number)
			found = rolled[0].row_cnt == days.items[i].row_cnt;
	project_days__free(&days);
	if (!same || !found)
		return 0;
	projector->stats.days++;
	return name_generation(projector->server, day, generation, &rolled[0]);
}

/* A partition is called DAY-GENERATION. */
static int drop_old(struct projector *projector, const struct project_days *days, const char *table)
{
	const char *database = clickhouse__database(projector->server);
	struct clickhouse_rows rows;
	uint64_t now = realtime_ns() / 1000000;
	int err = sql_ask(projector->server, 1, &rows,
			  "SELECT DISTINCT partition_id FROM %s.server_parts WHERE database = '%s' AND table IN "
			  "('%s', '%s_local') AND active",
			  database, database, table, table);

	for (size_t i = 0; !err && i < rows.row_cnt; i++) {
		const struct project_day *day;
		unsigned long long date, generation;
		int end = 0;

		if (sscanf(rows.cells[i], "%8llu-%20llu%n", &date, &generation, &end) != 2 || rows.cells[i][end])
			continue;
		day = project_days__by_date(days, (uint32_t)date);
		if (day && (generation == day->generation ||
			    (generation < day->generation ? (day->generation >> 16) + OLD_MS > now
							  : (generation >> 16) + DEAD_MS > now)))
			continue;
		if (!day && (generation >> 16) + DEAD_MS > now)
			continue;
		err = schema_alter(projector->server, &projector->about, table, "DROP PARTITION ID '%08llu-%llu'", date,
				   generation);
	}
	clickhouse_rows__free(&rows);
	if (err != -EPROTO || !clickhouse__was_denied(projector->server))
		return err;
	if (!projector->denial_said)
		log_warn("sums that no longer hold stay in '%s': its user may not drop partitions (ALTER)", database);
	projector->denial_said = true;
	return 0;
}

int projector__put_rollups(struct projector *projector)
{
	struct project_days days;
	int err;

	if (projector->rolled_ts && projector->opts.settle_ns && monotonic_ns() - projector->rolled_ts < PAUSE_NS)
		return 0;
	projector->rolled_ts = monotonic_ns();
	err = project_days__load(&days, projector->server);
	if (err)
		return err;
	for (size_t i = 0; !err && i < days.cnt; i++) {
		if (days.items[i].is_whole || !days.items[i].row_cnt)
			continue;
		err = projector->opts.should_stop && projector->opts.should_stop(projector->opts.owner)
			      ? -ECANCELED
			      : roll_up(projector, &days.items[i]);
	}
	project_days__free(&days);
	if (!err)
		err = project_days__load(&days, projector->server);
	if (err)
		return err;
	err = drop_old(projector, &days, "rollup_late")
		      ?: drop_old(projector, &days, "histograms") ?: drop_old(projector, &days, "rollup_times");
	project_days__free(&days);
	return err;
}
