/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A MariaDB server of our own in a temporary directory, on a port of its own, and sysbench's table of 200 rows in it.
 */
#ifndef WHYLATE_TESTS_MARIADB_H
#define WHYLATE_TESTS_MARIADB_H

#include "harness.h"

struct mariadb {
	struct process process;
	struct path home, socket;
	int port;
};

/* False: it, or sysbench, is not installed, which is said as a skip. */
bool mariadb_find(const char *test);
/* Makes it below a directory of that name and fills it.  False: a failed check. */
bool mariadb_start(struct mariadb *mariadb, const char *name);
void mariadb_end(struct mariadb *mariadb);
/* Starts transactions that read and write, 8 at a time, as long as sysbench's `args` say. */
bool mariadb_load(const struct mariadb *mariadb, struct process *load, const char *args);

#endif
