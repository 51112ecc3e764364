/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A PostgreSQL cluster of our own in a temporary directory, which trusts everybody on its port and its socket. */
#ifndef WHYLATE_TESTS_POSTGRES_H
#define WHYLATE_TESTS_POSTGRES_H

#include "harness.h"

struct postgres {
	struct process process;
	struct path bin, home;
	int port;
};

/* False: it is not installed, which is said as a skip. */
bool postgres_find(struct postgres *postgres, const char *test);
/* Makes the cluster and starts it with these further arguments ("-c fsync=off"). */
bool postgres_start(struct postgres *postgres, const char *name, const char *more_args);
void postgres_end(struct postgres *postgres);
/* Runs one of its programs to its end, as its user. */
bool as_postgres(const struct postgres *postgres, struct process *process, unsigned int timeout_s, const char *line);
/* The number behind these words in what pgbench said; NAN: there is none. */
double pgbench_number(struct process *load, const char *what);

#endif
