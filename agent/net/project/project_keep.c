// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Days that are old enough leave `intervals`, a partition each.  The table `horizon` says which: blocks of days before
 * its latest one are nobody's to insert, and --verify does not miss them.  Sums of those days go with the sums that no
 * longer hold.  Servers that have a TTL get one, too, some days longer: for the time in which no projector runs.
 */
#include "base/clock.h"
#include "base/log.h"
#include "net/project/days.h"
#include "net/project/project_internal.h"
#include "net/project/sql.h"

#include <inttypes.h>
#include <time.h>

#define DAY_NS   86400000000000ULL
#define PAUSE_NS 600000000000ULL
#define TTL_MORE 2u /* days: of the server's time zone, which need not be UTC, and of the day itself */

static uint32_t today(void)
{
	return (uint32_t)((uint64_t)time(NULL) * 1000000000 / DAY_NS);
}

int projector__ask_horizon(struct projector *projector)
{
	uint32_t ttl_days = projector->about.ttl_days;
	uint64_t day = 0;
	int err = sql_ask_number(projector->server, &day, "SELECT toUInt64(toUInt16(max(day))) FROM %s.horizon",
				 clickhouse__database(projector->server));

	if (!err && day > UINT16_MAX)
		err = -EBADMSG;
	if (!err)
		projector->horizon = (uint16_t)day;
	if (!err && ttl_days && today() > ttl_days && today() - ttl_days + TTL_MORE > projector->horizon)
		projector->horizon = (uint16_t)(today() - ttl_days + TTL_MORE);
	/* A database of an older whylate. */
	return err == -EPROTO && clickhouse__code(projector->server) == CLICKHOUSE_NO_SUCH_TABLE ? 0 : err;
}

bool projector__is_expired(const struct projector *projector, const struct project_block *block)
{
	uint16_t day;

	return projector->horizon && projector__day(projector, block, &day) && day < projector->horizon;
}

static int move_horizon(struct projector *projector, uint16_t day)
{
	int err;

	if (day <= projector->horizon)
		return 0;
	err = sql_do(projector->server, "INSERT INTO %s.horizon SELECT toDate(%u), now()",
		     clickhouse__database(projector->server), day);
	if (!err)
		projector->horizon = day;
	return err;
}

/* A shorter one of another projector stays. */
static int set_ttl(struct projector *projector)
{
	uint32_t ttl_days = (uint32_t)((projector->opts.keep_ns + DAY_NS - 1) / DAY_NS) + TTL_MORE;
	int err;

	/* Whatever has tokens has TTLs that drop whole parts. */
	if (!projector->about.tokens || (projector->about.ttl_days && projector->about.ttl_days <= ttl_days))
		return 0;
	err = schema_alter(projector->server, &projector->about, "intervals", "MODIFY SETTING ttl_only_drop_parts = 1")
		      ?: schema_alter(projector->server, &projector->about, "intervals",
				      "MODIFY " SCHEMA_TTL "%" PRIu32 ") SETTINGS materialize_ttl_after_modify = 0",
				      ttl_days);
	if (!err)
		projector->about.ttl_days = ttl_days;
	return err;
}

static int drop_day(struct projector *projector, const char *table, uint32_t date)
{
	return schema_alter(projector->server, &projector->about, table, "DROP PARTITION ID '%" PRIu32 "'", date);
}

static int drop_days(struct projector *projector)
{
	struct project_days days;
	int err = project_days__load(&days, projector->server);

	if (err)
		return err;
	for (size_t i = 0; !err && i < days.cnt; i++)
		if (days.items[i].number < projector->horizon)
			err = drop_day(projector, "late_roots", days.items[i].date)
				      ?: drop_day(projector, "intervals", days.items[i].date);
	project_days__free(&days);
	return err ?: set_ttl(projector);
}

/* What the user may not do stays undone, and is told once. */
static int may_drop(struct projector *projector, int err)
{
	if (err != -EPROTO || !clickhouse__was_denied(projector->server))
		return err;
	if (!projector->keep_denial_said)
		log_warn("days that are older than --keep stay in '%s': its user may not drop partitions (ALTER), or "
			 "set a TTL",
			 clickhouse__database(projector->server));
	projector->keep_denial_said = true;
	return 0;
}

/* Names of partitions are dates, which are ordered as texts. */
static int drop_causes(struct projector *projector)
{
	static const char *const tables[] = {"late_roots", "segment_causes"};
	const char *database = clickhouse__database(projector->server);
	struct clickhouse_rows rows = {0};
	int err = 0;

	for (size_t t = 0; !err && t < sizeof(tables) / sizeof(tables[0]); t++) {
		err = sql_ask(projector->server, 1, &rows,
			      "SELECT DISTINCT partition_id FROM %s.server_parts WHERE database = '%s' AND table IN "
			      "('%s', '%s_local') AND active AND partition_id < toString(toYYYYMMDD(toDate(%u)))",
			      database, database, tables[t], tables[t], projector->causes_horizon);
		for (size_t i = 0; !err && i < rows.row_cnt; i++) {
			uint64_t date;

			err = clickhouse_u64(rows.cells[i], &date) && date <= UINT32_MAX
				      ? drop_day(projector, tables[t], (uint32_t)date)
				      : -EBADMSG;
		}
		clickhouse_rows__free(&rows);
	}
	return err;
}

/* A day since 1970: what is older by then is not to be there. */
static uint16_t horizon_of(uint64_t keep_ns)
{
	uint64_t now_ns = realtime_ns();

	return keep_ns && now_ns > keep_ns ? (uint16_t)((now_ns - keep_ns) / DAY_NS) : 0;
}

int projector__keep(struct projector *projector)
{
	bool is_time = !projector->kept_ts || monotonic_ns() - projector->kept_ts >= PAUSE_NS;
	int err = projector__ask_horizon(projector);

	if (is_time && (projector->opts.keep_ns || projector->opts.keep_causes_ns)) {
		projector->kept_ts = monotonic_ns();
		projector->causes_horizon = horizon_of(projector->opts.keep_causes_ns);
		if (!err && projector->opts.keep_ns)
			err = move_horizon(projector, horizon_of(projector->opts.keep_ns))
				      ?: may_drop(projector, drop_days(projector));
		if (!err && projector->opts.keep_causes_ns)
			err = may_drop(projector, drop_causes(projector));
	}
	for (size_t b = projector->pending_from; !err && b < projector->blocks.cnt; b++) {
		struct project_block *block = &projector->blocks.items[b];

		if (!block->done && projector__is_expired(projector, block))
			block->done = block->listed = true;
	}
	return err;
}
