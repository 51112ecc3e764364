// SPDX-License-Identifier: GPL-2.0-or-later
/* Counts and sums of the database, block by block, against those of the shards. */
#include "base/clock.h"
#include "base/log.h"
#include "net/project/project_internal.h"
#include "net/project/sql.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#define SESSIONS_ASKED   500
#define RETRY_US         200000
#define ROWS_ASKED       20000000
#define WEIGHT_TOLERANCE 1e-9 /* of the sum: the order of adding differs */

struct counted {
	struct project_sums shard;
	uint64_t rows, latency_ns; /* of the database */
	double weight;
};

static int count_shards(struct projector *projector, struct counted *counted, struct project_verdict *verdict)
{
	uint16_t day;

	for (size_t b = 0; b < projector->blocks.cnt; b++) {
		struct project_block *block = &projector->blocks.items[b];
		int err;

		rowbinary__reset(&projector->rows);
		err = projector__put_rows(projector, block, &counted[b].shard);
		if (err == -EBADMSG || err == -ENOENT) {
			block->bad = true;
			verdict->bad_blocks++;
			continue;
		}
		if (err)
			return err;
		if (!projector__day(projector, block, &day)) {
			verdict->waiting_blocks++;
			continue;
		}
		if (projector__is_expired(projector, block)) {
			verdict->expired_blocks++;
			continue;
		}
		verdict->blocks++;
		verdict->rows += counted[b].shard.rows;
		verdict->latency_ns += counted[b].shard.latency_ns;
		verdict->weight += counted[b].shard.weight;
	}
	verdict->sessions = projector->sessions.cnt;
	return 0;
}

static int take_counts(struct projector *projector, const char *const *cells, struct counted *counted,
		       struct project_verdict *verdict)
{
	uint64_t session, block, row_cnt, latency_ns;
	double weight;
	uint32_t no;

	if (!clickhouse_u64(cells[0], &session) || !clickhouse_u64(cells[1], &block) ||
	    !clickhouse_u64(cells[2], &row_cnt) || !clickhouse_u64(cells[3], &latency_ns) ||
	    !clickhouse_f64(cells[4], &weight))
		return -EBADMSG;
	if (!idmap__find(&projector->block_ids, session, block, &no)) {
		verdict->extra_blocks++;
		verdict->extra_rows += row_cnt;
		return 0;
	}
	counted[no].rows = row_cnt;
	counted[no].latency_ns = latency_ns;
	counted[no].weight = weight;
	return 0;
}

static int count_sessions(struct projector *projector, const uint64_t *ids, size_t cnt, struct counted *counted,
			  struct project_verdict *verdict)
{
	struct clickhouse_rows rows = {0};
	struct sql sql = {0};
	int err;

	sql__put(&sql,
		 "SELECT session, block, count(), sum(latency_ns), sum(weight) FROM %s.intervals WHERE session IN (",
		 clickhouse__database(projector->server));
	sql__put_list(&sql, ids, cnt);
	sql__put(&sql, ") GROUP BY session, block");
	err = sql__ask(&sql, projector->server, 5, &rows);
	for (size_t i = 0; !err && i < rows.row_cnt; i++)
		err = take_counts(projector, rows.cells + 5 * i, counted, verdict);
	clickhouse_rows__free(&rows);
	return err;
}

/* So many sessions in one statement that its answer keeps within its limit. */
static int count_database(struct projector *projector, struct counted *counted, struct project_verdict *verdict)
{
	VEC(uint64_t) ids = {0};
	uint64_t row_cnt = 0;
	int err = 0;

	for (size_t s = 0; !err && s < projector->sessions.cnt; s++) {
		const struct project_session *session = &projector->sessions.items[s];

		err = vec_push(&ids, session->id);
		row_cnt += session->interval_rows;
		if (!err && (s + 1 == projector->sessions.cnt || ids.cnt >= SESSIONS_ASKED || row_cnt > ROWS_ASKED)) {
			err = count_sessions(projector, ids.items, ids.cnt, counted, verdict);
			ids.cnt = row_cnt = 0;
		}
	}
	vec_free(&ids);
	return err;
}

static bool is_equal(const struct counted *counted)
{
	return counted->rows == counted->shard.rows && counted->latency_ns == counted->shard.latency_ns &&
	       fabs(counted->weight - counted->shard.weight) <= WEIGHT_TOLERANCE * fabs(counted->shard.weight);
}

static int compare(struct projector *projector, struct counted *counted, struct project_verdict *verdict)
{
	int err = schema_ask(projector->server, &projector->about);

	*verdict = (struct project_verdict){0};
	memset(counted, 0, sizeof(*counted) * (projector->blocks.cnt + 1));
	clickhouse__no_lag(projector->server);
	err = err
		      ?: projector__sync(projector)
		      ?: projector__take_clocks(projector) ?: projector__ask_horizon(projector);
	/* No database is one without rows; counting them says so. */
	if (!err || (err == -EPROTO && clickhouse__code(projector->server) == CLICKHOUSE_NO_SUCH_DATABASE))
		err = count_shards(projector, counted, verdict);
	return err ?: count_database(projector, counted, verdict);
}

int projector__verify(struct projector *projector, struct project_verdict *verdict,
		      void (*on_difference)(void *owner, const struct project_difference *difference), void *owner)
{
	uint64_t give_up_ts = monotonic_ns() + projector->opts.patience_ns;
	struct counted *counted = NULL;
	int err = projector__scan(projector);
	uint16_t day;

	*verdict = (struct project_verdict){0};
	if (err)
		return err;
	counted = calloc(projector->blocks.cnt + 1, sizeof(*counted));
	if (!counted)
		return -ENOMEM;
	/* A server of a cluster that has just come back has not got everything. */
	while ((err = compare(projector, counted, verdict)) == -EPROTO && clickhouse__was_away(projector->server) &&
	       monotonic_ns() < give_up_ts && !projector__is_stopped(projector))
		usleep(RETRY_US);
	for (size_t b = 0; !err && b < projector->blocks.cnt; b++) {
		const struct project_block *block = &projector->blocks.items[b];
		const struct project_session *session = &projector->sessions.items[block->session];
		const struct project_difference difference = {
			.session = session->id,
			.block = block->id,
			.host = session->host,
			.shard_rows = counted[b].shard.rows,
			.database_rows = counted[b].rows,
			.shard_latency_ns = counted[b].shard.latency_ns,
			.database_latency_ns = counted[b].latency_ns,
			.shard_weight = counted[b].shard.weight,
			.database_weight = counted[b].weight,
		};

		if (block->bad || !projector__day(projector, block, &day) || projector__is_expired(projector, block) ||
		    is_equal(&counted[b]))
			continue;
		verdict->missing_blocks += !counted[b].rows;
		verdict->wrong_blocks += counted[b].rows > 0;
		on_difference(owner, &difference);
	}
	shard_file__close(&projector->shards.file);
	if (err && err != -ECANCELED)
		log_error("the database cannot be compared: %s%s%s", strerror(-err),
			  *clickhouse__text(projector->server) ? ": " : "", clickhouse__text(projector->server));
	free(counted);
	return err;
}
