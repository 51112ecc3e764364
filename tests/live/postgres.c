// SPDX-License-Identifier: GPL-2.0-or-later
#include "postgres.h"

#include "net.h"
#include "servers.h"

#include <glob.h>
#include <math.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool postgres_find(struct postgres *postgres, const char *test)
{
	glob_t found;
	bool good =
		!glob("/usr/lib/postgresql/*/bin/initdb", 0, NULL, &found) && found.gl_pathc && getpwnam("postgres");

	if (good) {
		snprintf(postgres->bin.s, sizeof(postgres->bin.s), "%s", found.gl_pathv[found.gl_pathc - 1]);
		*strrchr(postgres->bin.s, '/') = '\0';
	} else {
		skip(test, "PostgreSQL is not installed (scripts/setup.sh test installs it)");
	}
	globfree(&found);
	return good;
}

bool as_postgres(const struct postgres *postgres, struct process *process, unsigned int timeout_s, const char *line)
{
	struct launch launch = {.user = "postgres", .cpu = ANY_CPU, .cwd = postgres->home.s};
	bool good = !process_launch(process, &launch, "%s/%s", postgres->bin.s, line) &&
		    CHECKF(process_wait(process, timeout_s) == 0, "%s: %s", line, process_err(process));

	return good;
}

/* It listens a moment before it lets anybody in. */
static bool postgres_ready(struct postgres *postgres)
{
	struct process process;
	bool ready = false;

	for (int tries = 0; tries < 100 && !ready; tries++) {
		ready = !process_start(&process, "%s/pg_isready -q -h 127.0.0.1 -p %d", postgres->bin.s,
				       postgres->port) &&
			process_wait(&process, 10) == 0;
		process_end(&process);
		if (!ready)
			sleep_ms(100);
	}
	return CHECKF(ready, "PostgreSQL is not ready after 10 s: %.300s", process_err(&postgres->process));
}

/* initdb takes seconds: of each further cluster a copy of the first one. */
static bool make_data(struct postgres *postgres)
{
	static struct path first;
	char line[1200], data[600];
	bool good;

	snprintf(data, sizeof(data), "%s/data", postgres->home.s);
	if (first.s[0])
		return tree_copy(first.s, data);
	snprintf(line, sizeof(line), "initdb -D %s -A trust -N -E UTF8 --locale=C --no-instructions", data);
	good = as_postgres(postgres, &postgres->process, 60, line);
	process_end(&postgres->process);
	if (good)
		first = temp_path("postgres-first-%d", (int)getpid());
	return good && tree_copy(data, first.s);
}

bool postgres_start(struct postgres *postgres, const char *name, const char *more_args)
{
	struct launch launch = {.user = "postgres", .cpu = ANY_CPU};
	const struct passwd *user = getpwnam("postgres");
	struct path socket;

	postgres->home = temp_path("%s", name);
	postgres->port = port_free();
	socket = temp_path("%s/.s.PGSQL.%d", name, postgres->port);
	if (!CHECK(!mkdir(postgres->home.s, 0755) && !chown(postgres->home.s, user->pw_uid, user->pw_gid)))
		return false;
	launch.cwd = postgres->home.s;
	return make_data(postgres) &&
	       !process_launch(
		       &postgres->process, &launch,
		       "%s/postgres -D %s/data -p %d -c listen_addresses=127.0.0.1 -c unix_socket_directories=%s "
		       "-c autovacuum=off -c max_parallel_workers=0 -c logging_collector=off %s",
		       postgres->bin.s, postgres->home.s, postgres->port, postgres->home.s, more_args) &&
	       unix_wait(&postgres->process, socket.s, 20) && port_wait(&postgres->process, postgres->port, 20) &&
	       postgres_ready(postgres);
}

void postgres_end(struct postgres *postgres)
{
	process_signal(&postgres->process, SIGINT);
	if (postgres->process.pid)
		process_wait(&postgres->process, 20);
	process_end(&postgres->process);
}

double pgbench_number(struct process *load, const char *what)
{
	const char *line = strstr(process_out(load), what);

	return line ? strtod(line + strlen(what), NULL) : NAN;
}
