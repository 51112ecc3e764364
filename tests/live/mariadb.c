// SPDX-License-Identifier: GPL-2.0-or-later
#include "mariadb.h"

#include "net.h"
#include "servers.h"

#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define SYSBENCH                                                                                             \
	"sysbench oltp_read_write --db-driver=mysql --mysql-host=127.0.0.1 --mysql-port=%d --mysql-user=sb " \
	"--mysql-password=sb --mysql-db=sb --tables=1 --table-size=200 --threads=8 --percentile=99 "

bool mariadb_find(const char *test)
{
	return !program_missing(test, "mariadbd") && !program_missing(test, "sysbench");
}

/* mariadb-install-db takes seconds: of each further server a copy of what it made for the first one. */
static bool make_data(const struct mariadb *mariadb)
{
	static struct path first;
	struct process process = {0};
	char data[600];
	bool good;

	snprintf(data, sizeof(data), "%s/data", mariadb->home.s);
	if (first.s[0])
		return tree_copy(first.s, data);
	good = !process_start(&process,
			      "mariadb-install-db --no-defaults --user=nobody --datadir=%s "
			      "--auth-root-authentication-method=normal --skip-test-db",
			      data) &&
	       CHECKF(process_wait(&process, 60) == 0, "mariadb-install-db: %.300s", process_err(&process));
	process_end(&process);
	if (good)
		first = temp_path("mariadb-first-%d", (int)getpid());
	return good && tree_copy(data, first.s);
}

bool mariadb_start(struct mariadb *mariadb, const char *name)
{
	const struct passwd *user = getpwnam("nobody");
	const char *const grant[] = {"mariadb",
				     "-S",
				     mariadb->socket.s,
				     "-uroot",
				     "-e",
				     "create database sb; create user sb@'127.0.0.1' identified by 'sb'; grant all on "
				     "sb.* to sb@'127.0.0.1'",
				     NULL};
	struct process process = {0};
	bool good;

	mariadb->home = temp_path("mariadb-%s", name);
	mariadb->socket = temp_path("mariadb-%s/s.sock", name);
	mariadb->port = port_free();
	if (!CHECK(user && !mkdir(mariadb->home.s, 0755) && !chown(mariadb->home.s, user->pw_uid, user->pw_gid)))
		return false;
	if (!make_data(mariadb) ||
	    process_start(&mariadb->process,
			  "mariadbd --no-defaults --user=nobody --datadir=%s/data --socket=%s --port=%d "
			  "--bind-address=127.0.0.1 --pid-file=%s/pid --innodb-flush-log-at-trx-commit=1 "
			  "--innodb-buffer-pool-size=32M",
			  mariadb->home.s, mariadb->socket.s, mariadb->port, mariadb->home.s) ||
	    !unix_wait(&mariadb->process, mariadb->socket.s, 30) || !port_wait(&mariadb->process, mariadb->port, 10))
		return false;
	good = !process_launch_argv(&process, NULL, grant) &&
	       CHECKF(process_wait(&process, 20) == 0, "mariadb: %.300s", process_err(&process));
	process_end(&process);
	if (!good)
		return false;
	good = !process_start(&process, SYSBENCH "prepare", mariadb->port) &&
	       CHECKF(process_wait(&process, 30) == 0, "sysbench: %.300s", process_out(&process));
	process_end(&process);
	return good;
}

bool mariadb_load(const struct mariadb *mariadb, struct process *load, const char *args)
{
	return !process_start(load, SYSBENCH "%s run", mariadb->port, args);
}

void mariadb_end(struct mariadb *mariadb)
{
	process_signal(&mariadb->process, SIGTERM);
	if (mariadb->process.pid)
		process_wait(&mariadb->process, 30);
	process_end(&mariadb->process);
}
