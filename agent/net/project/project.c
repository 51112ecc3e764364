// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/project/project.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "net/project/project_internal.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <unistd.h>

#define TURN_NS      8000000000ULL /* then others may have theirs */
#define GROUP_ROWS   65536u        /* of an insert through a gate */
#define LIST_BLOCKS  256u          /* inserted until they are listed */
#define PAUSE_MIN_NS 50000000ULL
#define PAUSE_MAX_NS 2000000000ULL

/* The same when it is started again at the same place. */
static uint64_t own_name(const struct project_opts *opts)
{
	char path[PATH_MAX];
	struct utsname uts;
	uint64_t name = 0x70726f6a656374ULL;
	const char *texts[2] = {opts->name ?: "", ""};

	if (!opts->name) {
		uname(&uts);
		texts[0] = uts.nodename;
		texts[1] = opts->path_cnt && realpath(opts->paths[0], path) ? path : "";
	}
	for (int i = 0; i < 2; i++)
		for (const unsigned char *c = (const unsigned char *)texts[i]; *c; c++)
			name = random_mix(name ^ *c) + (uint64_t)i;
	return name;
}

struct projector *projector__new(const struct project_opts *opts, struct clickhouse *server)
{
	struct projector *projector = calloc(1, sizeof(*projector));

	if (!projector)
		return NULL;
	projector->opts = *opts;
	projector->server = server;
	projector->name = own_name(opts);
	if (getrandom(&projector->rng, sizeof(projector->rng), 0) != sizeof(projector->rng))
		projector->rng = monotonic_ns() ^ (uint64_t)getpid() << 40;
	projector->columns = schema_interval_columns();
	if (!shard_growing__init(&projector->shards) && projector->columns)
		return projector;
	projector__free(projector);
	errno = ENOMEM;
	return NULL;
}

void projector__free(struct projector *projector)
{
	if (!projector)
		return;
	for (size_t i = 0; i < projector->sessions.cnt; i++)
		project_session__clear(&projector->sessions.items[i]);
	vec_free(&projector->sessions);
	vec_free(&projector->blocks);
	vec_free(&projector->parts);
	idmap__free(&projector->session_ids);
	idmap__free(&projector->block_ids);
	shard_growing__free(&projector->shards);
	shard_unpacker__clear(&projector->unpacker);
	vec_free(&projector->body);
	rowbinary__free(&projector->rows);
	free(projector->columns);
	free(projector);
}

void projector__stats(const struct projector *projector, struct project_stats *stats)
{
	uint16_t day;

	*stats = projector->stats;
	stats->sessions = projector->sessions.cnt;
	stats->waiting_blocks = stats->waiting_rows = 0;
	for (size_t b = projector->pending_from; b < projector->blocks.cnt; b++) {
		const struct project_block *block = &projector->blocks.items[b];

		if (!block->done && !block->bad && !projector__day(projector, block, &day)) {
			stats->waiting_blocks++;
			stats->waiting_rows += block->row_cnt;
		}
	}
}

bool projector__is_stopped(const struct projector *projector)
{
	return projector->opts.should_stop && projector->opts.should_stop(projector->opts.owner);
}

/* A block that can be inserted now, and on which day. */
static bool is_ready(const struct projector *projector, size_t b, uint16_t *day)
{
	const struct project_block *block = &projector->blocks.items[b];

	return !block->done && !block->bad && projector__day(projector, block, day);
}

static bool anything_ready(const struct projector *projector)
{
	uint16_t day;

	for (size_t b = projector->pending_from; b < projector->blocks.cnt; b++)
		if (is_ready(projector, b, &day))
			return true;
	return false;
}

/*
 * The rows of neighbouring blocks of one day that are ready, from *from on: 1, and *to is behind the last of them; 0:
 * no more; -errno.  With tokens a block is an INSERT, so that a token always stands for the same rows.
 */
static int gather(struct projector *projector, size_t *from, size_t *to)
{
	uint16_t day, first_day = 0;
	size_t b = *from, row_cnt = 0;
	struct project_sums sums;

	rowbinary__reset(&projector->rows);
	for (; b < projector->blocks.cnt; b++) {
		struct project_block *block = &projector->blocks.items[b];
		int err;

		if (!is_ready(projector, b, &day)) {
			if (row_cnt)
				break;
			continue;
		}
		if (row_cnt &&
		    (day != first_day || row_cnt + block->row_cnt > GROUP_ROWS || projector->about.ignores_again))
			break;
		err = projector__put_rows(projector, block, &sums);
		if (err == -EBADMSG || err == -ENOENT) {
			/* Nothing was put; the group ends here, so that it has no gap. */
			block->bad = true;
			projector->stats.bad_blocks++;
			projector->stats.bad_rows += block->row_cnt;
			if (row_cnt)
				break;
			continue;
		}
		if (err)
			return err;
		if (!row_cnt)
			*from = b;
		first_day = day;
		row_cnt += block->row_cnt;
	}
	*to = b;
	return row_cnt ? 1 : 0;
}

static int insert_ready(struct projector *projector)
{
	size_t from = projector->pending_from, to = from, since_listed = 0;
	uint64_t end_ts = monotonic_ns() + TURN_NS;
	int found = 1, err = 0;

	while (!err && found > 0 && monotonic_ns() < end_ts) {
		uint64_t row_cnt = 0;

		found = gather(projector, &from, &to);
		if (found <= 0)
			break;
		for (size_t b = from; b < to; b++)
			row_cnt += projector->blocks.items[b].row_cnt;
		err = projector__is_stopped(projector) ? -ECANCELED : projector__insert(projector, from, to);
		if (!err) {
			projector->stats.blocks += to - from;
			projector->stats.rows += row_cnt;
			since_listed += to - from;
		}
		from = to;
		if (!err && since_listed >= LIST_BLOCKS) {
			err = projector__list_done(projector);
			since_listed = 0;
		}
	}
	return err ?: found < 0 ? found : projector__list_done(projector);
}

void projector__note_failure(struct projector *projector, int err)
{
	if (!err)
		return;
	projector->code = clickhouse__code(projector->server);
	projector->was_away = clickhouse__was_away(projector->server);
	snprintf(projector->text, sizeof(projector->text), "%s", clickhouse__text(projector->server));
}

/* What can be done now: 0; -EAGAIN: try again soon; … */
static int attempt(struct projector *projector)
{
	int err = 0;

	if (!projector->applied) {
		err = schema_apply(projector->server, projector->opts.cluster, &projector->about);
		projector->applied = !err;
	}
	if (!err)
		err = projector__take_clocks(projector) ?: projector__put_clocks(projector) ?: projector__keep(projector);
	while (!err && anything_ready(projector)) {
		err = projector__take_turn(projector);
		/* Who may not insert may still find that there is nothing to insert. */
		if (err == -EACCES && !projector__ask_known(projector) && !anything_ready(projector)) {
			err = 0;
			break;
		}
		if (err)
			return err;
		err = projector__ask_known(projector) ?: projector__ask_forgotten(projector);
		if (!err)
			err = insert_ready(projector);
		projector__note_failure(projector, err);
		projector__end_turn(projector);
		if (err)
			return err;
	}
	/* Also what was found to be there, and is not listed. */
	if (!err)
		err = projector__list_done(projector);
	if (!err)
		err = projector__put_state(projector);
	if (!err)
		err = projector__put_causes(projector);
	if (!err)
		err = projector__put_rollups(projector);
	projector__note_failure(projector, err);
	return err;
}

/* Whether another try may succeed. */
static bool may_pass(struct projector *projector, int err)
{
	if (err != -EPROTO)
		return err == -EAGAIN || err == -EHOSTDOWN;
	if (projector->was_away)
		return true;
	switch (projector->code) {
	case CLICKHOUSE_NO_SUCH_TABLE:
	case CLICKHOUSE_NO_SUCH_DATABASE:
		for (size_t s = 0; s < projector->sessions.cnt; s++)
			projector->sessions.items[s].clock_shared = false;
		/* Dropped by another one, or a server that was set up anew: look again. */
		projector->applied = false;
		return true;
	case CLICKHOUSE_TABLE_EXISTS: /* a gate of ours: libcurl asked again where a connection broke */
	case CLICKHOUSE_TOO_MANY_PARTS:
		return true;
	default:
		return false;
	}
}

static void say(struct projector *projector, int err)
{
	const char *text = projector->text;

	if (err == -ECANCELED)
		return;
	if (err == -EPROTONOSUPPORT)
		log_error("the tables of '%s' are of a later version of whylate than this one",
			  clickhouse__database(projector->server));
	else if (err == -EEXIST)
		log_error("the tables of '%s' are %s%s%s: --cluster is for a database that is to be made",
			  clickhouse__database(projector->server),
			  projector->about.cluster[0] ? "on the cluster '" : "on one server", projector->about.cluster,
			  projector->about.cluster[0] ? "'" : "");
	else if (err == -EPROTO)
		log_error("the database refuses: %s", text);
	else if (err == -EACCES)
		log_error("'%s': ClickHouse %u.%u has no deduplication tokens, and without them the user needs CREATE "
			  "and "
			  "DROP TABLE in it: %s",
			  clickhouse__database(projector->server), projector->about.major, projector->about.minor,
			  text);
	else if (err == -EAGAIN)
		log_error("another projector holds the database: its turn has not ended");
	else
		log_error("the database: %s%s%s", strerror(-err), *text ? ": " : "", text);
}

int projector__run(struct projector *projector)
{
	uint64_t give_up_ts = monotonic_ns() + projector->opts.patience_ns, pause_ns = PAUSE_MIN_NS, done;
	int err = projector__scan(projector);

	if (err)
		return err;
	for (;;) {
		done = projector->stats.blocks + projector->stats.known_blocks;
		err = attempt(projector);
		shard_file__close(&projector->shards.file);
		if (!err || projector__is_stopped(projector))
			return err;
		if (projector->stats.blocks + projector->stats.known_blocks > done) {
			give_up_ts = monotonic_ns() + projector->opts.patience_ns;
			pause_ns = PAUSE_MIN_NS;
		}
		if (!may_pass(projector, err) || monotonic_ns() > give_up_ts)
			break;
		projector->stats.retries++;
		log_debug("project: %s: %s", strerror(-err), projector->text);
		pause_ns = pause_ns < PAUSE_MAX_NS / 2 ? pause_ns * 2 : PAUSE_MAX_NS;
		/* With jitter: two projectors that met must not meet again. */
		usleep((useconds_t)((pause_ns / 2 + random_next(&projector->rng) % pause_ns) / 1000));
	}
	say(projector, err);
	return err;
}
