// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/clock.h"
#include "net/project/project_internal.h"
#include "net/project/sql.h"

#include <stdio.h>
#include <unistd.h>

#define POLL_US 100000

static int forget_in(struct clickhouse *server, const struct schema_server *about, const char *table, const char *host)
{
	char target[SCHEMA_TARGET_SZ];
	struct sql sql;
	char *statement;
	int err;

	if (sql__begin(&sql))
		return -ENOMEM;
	schema_target(target, server, about, table);
	sql__put(&sql, "ALTER TABLE %s DELETE WHERE host = ", target);
	sql__put_text(&sql, host);
	statement = sql__end(&sql);
	err = statement ? schema_alter(server, about, statement) : -ENOMEM;
	free(statement);
	return err;
}

/* Mutations are carried out in the background. */
static int wait_for_mutations(struct clickhouse *server, const struct schema_server *about, uint64_t patience_ns)
{
	uint64_t give_up_ts = monotonic_ns() + patience_ns, left = 1;
	char *statement;
	int err = 0;

	if (asprintf(&statement, "SELECT count() FROM %s.%s WHERE database = '%s' AND is_done = 0",
		     about->cluster[0] ? clickhouse__database(server) : "system",
		     about->cluster[0] ? "server_mutations" : "mutations", clickhouse__database(server)) < 0)
		return -ENOMEM;
	while (!err && left) {
		struct clickhouse_rows rows;

		err = clickhouse__ask(server, statement, 1, &rows);
		if (!err && (rows.row_cnt != 1 || !clickhouse_u64(rows.cells[0], &left)))
			err = -EBADMSG;
		clickhouse_rows__free(&rows);
		if (!err && left && monotonic_ns() > give_up_ts)
			err = -ETIMEDOUT;
		if (!err && left)
			usleep(POLL_US);
	}
	free(statement);
	return err;
}

/* The server remembers tokens of rows that are gone: with others the same blocks may come again. */
static int note_forgotten(struct clickhouse *server, const char *host)
{
	struct sql sql;
	char *statement;
	int err;

	if (sql__begin(&sql))
		return -ENOMEM;
	sql__put(&sql, "INSERT INTO %s.forgotten SELECT ", clickhouse__database(server));
	sql__put_text(&sql, host);
	sql__put(&sql, ", now()");
	statement = sql__end(&sql);
	err = statement ? clickhouse__do(server, statement) : -ENOMEM;
	free(statement);
	return err == -EPROTO && clickhouse__code(server) == CLICKHOUSE_NO_SUCH_TABLE ? 0 : err;
}

int project_forget(struct clickhouse *server, const char *host, uint64_t patience_ns)
{
	static const char *const tables[] = {"rollup_late", "histograms", "intervals", "blocks", "clocks",
					     "sessions",    "facts",      "loss",      "causes"};
	struct schema_server about;
	char target[SCHEMA_TARGET_SZ], *statement = NULL;
	int err = schema_ask(server, &about);

	if (err)
		return err;
	/* First, so that what is inserted from now on has other tokens than what goes. */
	err = note_forgotten(server, host);
	if (err)
		return err;
	/* Then no sum of before holds; the next projection makes them anew. */
	schema_target(target, server, &about, "summed_days");
	if (asprintf(&statement, "ALTER TABLE %s DELETE WHERE generation > 0", target) < 0)
		return -ENOMEM;
	err = schema_alter(server, &about, statement);
	free(statement);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		/* An older whylate's database has not all of them. */
		if (err == -EPROTO && clickhouse__code(server) == CLICKHOUSE_NO_SUCH_TABLE)
			err = 0;
		if (err)
			return err;
		err = forget_in(server, &about, tables[i], host);
	}
	return err ?: wait_for_mutations(server, &about, patience_ns);
}
