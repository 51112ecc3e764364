/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A clickhouse-server for the suites that need one: started at the first call, with files under /tmp and ports on
 * loopback, killed at the end.  No privilege. */
#ifndef WHYLATE_TESTS_CLICKHOUSE_FIXTURE_H
#define WHYLATE_TESTS_CLICKHOUSE_FIXTURE_H

#include "net/project/clickhouse.h"

#include <stdbool.h>

/* "clickhouse://127.0.0.1:PORT/", NULL after a line that says why the test is skipped. */
/*
 * Beside the one that may do everything it has the users owner (all, in the database `granted` only), writer (no DDL,
 * likewise) and reader (SELECT, likewise), with this password.
 */
#define CLICKHOUSE_FIXTURE_PASSWORD "secret"
const char *clickhouse_fixture(void);
/* SIGKILL; the next clickhouse_fixture() starts it again with the same files and ports. */
void clickhouse_fixture_kill(void);

/* What the statement answers with, which is one number. */
uint64_t clickhouse_fixture_number(struct clickhouse *server, const char *sql);

#endif
