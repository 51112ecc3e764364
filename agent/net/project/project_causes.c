// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What made requests late, of each hour of each session.  A session may last for weeks: an hour that is over is
 * analysed once, and a question about a time is answered from its hours.  Rows with the same key replace each other, so
 * that a second INSERT does no harm; of an hour those of the latest version hold, and rank 0 says that it was analysed.
 */
#include "base/clock.h"
#include "base/log.h"
#include "net/project/project_internal.h"
#include "net/project/sql.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define HOURS_MAX       10000 /* of a session */
#define BLOCK_HOURS_MAX 24    /* of a block: the last ones */
/* An hour that still grows is analysed as often. */
#define AGAIN_NS (600 * UINT64_C(1000000000))

#define CAUSES                                                                                                   \
	"segment_causes (session,hour,rank,host,day,begin_ns,end_ns,category,share,share_lo,share_hi,what,kind," \
	"role,type,function,call_path,object,culprit,culprit_host,late_ns,typical_ns,tail_weight,late_sid,version)"
#define LATE "late_roots (day,session,hour,sid,host,rank,ns,latency_ns,weight,version)"

static struct project_hour *hour_of(struct project_session *session, uint32_t no)
{
	for (size_t i = session->hours.cnt; i; i--)
		if (session->hours.items[i - 1].no == no)
			return &session->hours.items[i - 1];
	return NULL;
}

int project_session__touch_hours(struct project_session *session, const struct shard_block_header *header)
{
	uint64_t first = header->min_ts / PROJECT_HOUR_NS, last = header->max_ts / PROJECT_HOUR_NS;
	bool has_requests = !strcmp(header->table, "interval");

	if (header->min_ts > header->max_ts)
		return 0;
	if (last - first >= BLOCK_HOURS_MAX)
		first = last - BLOCK_HOURS_MAX + 1;
	for (uint64_t no = first; no <= last; no++) {
		struct project_hour *hour = hour_of(session, (uint32_t)no);
		struct project_hour added = {(uint32_t)no, session->version, 0, monotonic_ns()};

		if (hour) {
			hour->version = session->version;
			continue;
		}
		if (!has_requests || session->hours.cnt > HOURS_MAX)
			continue;
		if (session->hours.cnt == HOURS_MAX)
			log_warn("session %016" PRIx64 " of %s: requests in more than %d hours, the rest has no causes",
				 session->id, project_session__host(session), HOURS_MAX);
		if (vec_push(&session->hours, added))
			return -ENOMEM;
	}
	return 0;
}

struct cause_rows {
	struct projector *projector;
	const struct project_session *session;
	const struct project_hour *hour;
	struct rowbinary causes, late;
	uint64_t begin_ns, end_ns;
	uint16_t day;
};

static double finite_or_0(double value)
{
	return isfinite(value) ? value : 0;
}

static int put_cause(void *owner, const struct project_cause *cause)
{
	struct cause_rows *to = owner;
	struct rowbinary *rows = &to->causes;
	char buf[PROJECT_REDACTED_SZ];

	rowbinary__u64(rows, to->session->id);
	rowbinary__u32(rows, to->hour->no);
	rowbinary__u32(rows, cause->rank);
	rowbinary__str(rows, project_session__host(to->session));
	rowbinary__u16(rows, to->day);
	rowbinary__u64(rows, to->begin_ns);
	rowbinary__u64(rows, to->end_ns);
	rowbinary__str(rows, cause->category);
	rowbinary__f64(rows, finite_or_0(cause->share));
	rowbinary__f64(rows, finite_or_0(cause->share_lo));
	rowbinary__f64(rows, finite_or_0(cause->share_hi));
	rowbinary__str(rows, cause->what);
	rowbinary__str(rows, cause->kind);
	rowbinary__str(rows, cause->role);
	rowbinary__str(rows, projector__redacted(to->projector, cause->type ?: "", buf));
	rowbinary__str(rows, cause->function);
	rowbinary__str(rows, cause->call_path);
	rowbinary__str(rows, cause->object);
	rowbinary__str(rows, cause->culprit);
	rowbinary__str(rows, cause->culprit_host);
	rowbinary__f64(rows, finite_or_0(cause->late_ns));
	rowbinary__f64(rows, finite_or_0(cause->typical_ns));
	rowbinary__f64(rows, finite_or_0(cause->tail_weight));
	rowbinary__u64(rows, cause->late_sid);
	rowbinary__u64(rows, to->hour->version);
	rowbinary__end_row(rows);
	to->projector->stats.causes += cause->rank > 0;
	return rows->err;
}

static int put_late(void *owner, const struct project_late *late)
{
	struct cause_rows *to = owner;
	struct rowbinary *rows = &to->late;

	rowbinary__u16(rows, to->day);
	rowbinary__u64(rows, to->session->id);
	rowbinary__u32(rows, to->hour->no);
	rowbinary__u64(rows, late->sid);
	rowbinary__str(rows, project_session__host(to->session));
	rowbinary__u32(rows, late->rank);
	rowbinary__u64(rows, late->ns);
	rowbinary__u64(rows, late->latency_ns);
	rowbinary__f64(rows, finite_or_0(late->weight));
	rowbinary__u64(rows, to->hour->version);
	rowbinary__end_row(rows);
	return rows->err;
}

static int analyse(struct cause_rows *to)
{
	const struct project_session *session = to->session;
	const struct project_sink sink = {.cause = put_cause, .late = put_late, .owner = to};
	const struct project_opts *opts = &to->projector->opts;
	const char **paths = calloc(session->files.cnt, sizeof(*paths));
	uint64_t from_ts = to->hour->no * PROJECT_HOUR_NS;
	const struct project_segment segment = {from_ts, from_ts + PROJECT_HOUR_NS, paths, session->files.cnt};
	int err;

	if (!paths)
		return -ENOMEM;
	for (size_t i = 0; i < session->files.cnt; i++)
		paths[i] = to->projector->shards.files.items[session->files.items[i]].path;
	/* As far as there are requests. */
	to->begin_ns = project_session__wall_ns(session, session->min_ts > from_ts ? session->min_ts : from_ts);
	to->end_ns = project_session__wall_ns(session,
					      session->max_ts < segment.until_ts ? session->max_ts : segment.until_ts);
	err = opts->causes(opts->owner, &segment, &sink);
	free(paths);
	return err;
}

static int put_hour(struct projector *projector, const struct project_session *session, struct project_hour *hour)
{
	const struct project_block begin = {.session = (uint32_t)(session - projector->sessions.items),
					    .min_ts = hour->no * PROJECT_HOUR_NS};
	struct cause_rows rows = {.projector = projector, .session = session, .hour = hour};
	/* No table has a day for times that are out of reach. */
	int err = projector__day(projector, &begin, &rows.day) ? analyse(&rows) : -ERANGE;

	hour->analysed_ts = monotonic_ns();
	/* What they refer to last: rank 0 holds for both tables. */
	if (!err && rows.late.bytes.cnt)
		err = projector__send(projector, &rows.late, LATE);
	if (!err) {
		err = projector__send(projector, &rows.causes, CAUSES);
	} else if (err != -ENOMEM && err != -ECANCELED) {
		log_warn("session %016" PRIx64 " of %s: no causes, its analysis failed: %s", session->id,
			 project_session__host(session), strerror(-err));
		err = 0;
	}
	rowbinary__free(&rows.causes);
	rowbinary__free(&rows.late);
	if (!err)
		hour->sent_version = hour->version;
	return err;
}

/* Of which versions the database has causes. */
static int ask_versions(struct projector *projector)
{
	struct clickhouse_rows rows;
	int err = sql_ask(projector->server, 3, &rows,
			  "SELECT session, hour, max(version) FROM %s.segment_causes GROUP BY session, hour",
			  clickhouse__database(projector->server));

	for (size_t i = 0; !err && i < rows.row_cnt; i++) {
		const char *const *cells = rows.cells + 3 * i;
		uint64_t id, no, version;
		struct project_hour *hour;
		uint32_t session;

		if (!clickhouse_u64(cells[0], &id) || !clickhouse_u64(cells[1], &no) || no > UINT32_MAX ||
		    !clickhouse_u64(cells[2], &version))
			err = -EBADMSG;
		else if (idmap__find(&projector->session_ids, id, 0, &session) &&
			 (hour = hour_of(&projector->sessions.items[session], (uint32_t)no)))
			hour->sent_version = version;
	}
	clickhouse_rows__free(&rows);
	return err;
}

/* An analysis reads all of the hour: not each time that it has grown by a block. */
static bool is_due(const struct projector *projector, const struct project_session *session,
		   const struct project_hour *hour)
{
	uint64_t now_ts = monotonic_ns();
	struct project_block begin = {.session = (uint32_t)(session - projector->sessions.items),
				      .min_ts = hour->no * PROJECT_HOUR_NS};
	uint16_t day;

	if (projector->causes_horizon && projector__day(projector, &begin, &day) && day < projector->causes_horizon)
		return false;
	return session->clock_known && hour->sent_version < hour->version &&
	       (now_ts - session->grown_ts >= projector->opts.settle_ns || now_ts - hour->analysed_ts >= AGAIN_NS);
}

static bool is_any_due(const struct projector *projector)
{
	for (size_t s = 0; s < projector->sessions.cnt; s++)
		for (size_t h = 0; h < projector->sessions.items[s].hours.cnt; h++)
			if (is_due(projector, &projector->sessions.items[s],
				   &projector->sessions.items[s].hours.items[h]))
				return true;
	return false;
}

int projector__put_causes(struct projector *projector)
{
	int err;

	if (!projector->opts.causes || !is_any_due(projector))
		return 0;
	err = ask_versions(projector);
	for (size_t s = 0; !err && s < projector->sessions.cnt; s++) {
		struct project_session *session = &projector->sessions.items[s];

		for (size_t h = 0; !err && h < session->hours.cnt; h++) {
			if (!is_due(projector, session, &session->hours.items[h]))
				continue;
			err = projector__is_stopped(projector) ? -ECANCELED
							       : put_hour(projector, session, &session->hours.items[h]);
		}
	}
	return err;
}
