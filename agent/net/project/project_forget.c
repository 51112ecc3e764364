// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/clock.h"
#include "net/project/project_internal.h"
#include "net/project/sql.h"

#include <unistd.h>

#define POLL_US 100000

static int forget_in(struct clickhouse *server, const struct schema_server *about, const char *table, const char *host)
{
	struct sql quoted = {0};
	char *text;
	int err;

	sql__put_text(&quoted, host);
	text = sql__end(&quoted);
	err = text ? schema_alter(server, about, table, "DELETE WHERE host = %s", text) : -ENOMEM;
	free(text);
	return err;
}

/* Mutations are carried out in the background. */
static int wait_for_mutations(struct clickhouse *server, const struct schema_server *about, uint64_t patience_ns)
{
	uint64_t give_up_ts = monotonic_ns() + patience_ns, left = 1;
	const char *database = clickhouse__database(server);
	int err = 0;

	while (!err && left) {
		err = sql_ask_number(server, &left, "SELECT count() FROM %s.%s WHERE database = '%s' AND is_done = 0",
				     about->cluster[0] ? database : "system",
				     about->cluster[0] ? "server_mutations" : "mutations", database);
		if (!err && left && monotonic_ns() > give_up_ts)
			err = -ETIMEDOUT;
		if (!err && left)
			usleep(POLL_US);
	}
	return err;
}

/* The server remembers tokens of rows that are gone: with others the same blocks may come again. */
static int note_forgotten(struct clickhouse *server, const char *host)
{
	struct sql sql = {0};
	int err;

	sql__put(&sql, "INSERT INTO %s.forgotten SELECT ", clickhouse__database(server));
	sql__put_text(&sql, host);
	sql__put(&sql, ", now()");
	err = sql__do(&sql, server);
	return err == -EPROTO && clickhouse__code(server) == CLICKHOUSE_NO_SUCH_TABLE ? 0 : err;
}

int project_forget(struct clickhouse *server, const char *host, uint64_t patience_ns)
{
	static const char *const tables[] = {"rollup_late", "histograms", "intervals", "blocks",
					     "clocks",      "sessions",   "causes",    "segment_causes",
					     "late_roots",  "facts",      "loss"};
	struct schema_server about;
	int err = schema_ask(server, &about);

	if (err)
		return err;
	/* First, so that what is inserted from now on has other tokens than what goes. */
	err = note_forgotten(server, host);
	if (err)
		return err;
	/* Then no sum of before holds; the next projection makes them anew. */
	err = schema_alter(server, &about, "summed_days", "DELETE WHERE generation > 0");
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
