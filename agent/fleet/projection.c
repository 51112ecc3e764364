// SPDX-License-Identifier: GPL-2.0-or-later
#include "fleet/projection.h"

#include "base/clock.h"
#include "base/exit_code.h"
#include "base/log.h"
#include "base/user_file.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FOLLOW_PERIOD_NS 2000000000ULL
#define SETTLE_NS        30000000000ULL
#define DIFFERENCES_SAID 20

static volatile sig_atomic_t stop_signal;

static void on_signal(int signal_no)
{
	stop_signal = signal_no;
}

static bool should_stop(void *owner)
{
	(void)owner;
	return stop_signal;
}

static void failed(const char *what, int err)
{
	log_error("cannot use '%s': %s", what,
		  err == -EBADMSG ? "it wants one line, USER:PASSWORD" : user_file_why(err));
}

static void say_stats(const struct projector *projector, const struct project_opts *opts)
{
	struct project_stats stats;

	projector__stats(projector, &stats);
	log_info("%" PRIu64 " sessions; %" PRIu64 " rows of %" PRIu64 " blocks inserted, %" PRIu64 " rows of %" PRIu64
		 " blocks were there; %" PRIu64 " causes, %" PRIu64 " days summed",
		 stats.sessions, stats.rows, stats.blocks, stats.known_rows, stats.known_blocks, stats.causes,
		 stats.days);
	if (stats.waiting_blocks)
		log_warn("%" PRIu64 " rows of %" PRIu64 " blocks wait: nothing says what time it was in their session",
			 stats.waiting_rows, stats.waiting_blocks);
	if (stats.bad_blocks)
		log_warn("%" PRIu64 " rows of %" PRIu64 " blocks are damaged or gone in '%s'", stats.bad_rows,
			 stats.bad_blocks, opts->paths[0]);
}

static void say_difference(void *owner, const struct project_difference *difference)
{
	unsigned *said = owner;

	if ((*said)++ < DIFFERENCES_SAID)
		printf("session %016" PRIx64 " of %s, block %016" PRIx64 ": %" PRIu64 " rows in the shards, %" PRIu64
		       " in the database; latency %" PRIu64 " ns, %" PRIu64 " ns; weight %.17g, %.17g\n",
		       difference->session, difference->host, difference->block, difference->shard_rows,
		       difference->database_rows, difference->shard_latency_ns, difference->database_latency_ns,
		       difference->shard_weight, difference->database_weight);
}

static int verify(struct projector *projector)
{
	struct project_verdict verdict;
	unsigned said = 0;
	bool same;

	if (projector__verify(projector, &verdict, say_difference, &said))
		return EXIT_FAILED;
	same = !verdict.missing_blocks && !verdict.wrong_blocks;
	printf("%s: %" PRIu64 " sessions, %" PRIu64 " blocks, %" PRIu64 " rows, latency %" PRIu64
	       " ns, weight %.10g; missing %" PRIu64 " blocks, different %" PRIu64 "\n",
	       same ? "equal" : "NOT equal", verdict.sessions, verdict.blocks, verdict.rows, verdict.latency_ns,
	       verdict.weight, verdict.missing_blocks, verdict.wrong_blocks);
	if (verdict.extra_blocks)
		printf("in the database only: %" PRIu64 " rows of %" PRIu64
		       " blocks (another collector's, or of shards that were deleted)\n",
		       verdict.extra_rows, verdict.extra_blocks);
	if (verdict.expired_blocks)
		printf("not in the database: %" PRIu64 " blocks of days that are older than --keep\n",
		       verdict.expired_blocks);
	if (verdict.waiting_blocks)
		printf("not in the database: %" PRIu64 " blocks of sessions without clock anchors\n",
		       verdict.waiting_blocks);
	if (verdict.bad_blocks)
		printf("damaged: %" PRIu64 " blocks\n", verdict.bad_blocks);
	return same ? EXIT_DONE : EXIT_FAILED;
}

/* A database that is away for long is no reason to end: what is not projected stays in the store. */
static int follow(struct projector *projector)
{
	int err = 0;

	while (!stop_signal) {
		err = projector__run(projector);
		if (err == -ENOMEM)
			return EXIT_FAILED;
		sleep_ns(FOLLOW_PERIOD_NS);
	}
	return EXIT_DONE;
}

/* The first line of the file: 0 or -errno. */
static int read_salt(struct project_options *options)
{
	int fd = user_file_open_secret(options->salt_path);
	ssize_t sz = fd < 0 ? 0 : read(fd, options->salt, PROJECT_SALT_MAX);
	int err = fd < 0 ? fd : sz < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	if (err)
		return err;
	options->salt[sz] = '\0';
	options->project.salt = options->salt;
	options->project.salt_sz = strcspn(options->salt, "\r\n");
	return options->project.salt_sz < PROJECT_SALT_MIN ? -ENODATA : 0;
}

struct clickhouse *project_open(struct project_options *options)
{
	struct clickhouse_opts database = options->database;
	int err = options->salt_path ? read_salt(options) : 0;
	struct clickhouse *server;
	const char *what;

	if (err == -ENODATA)
		log_error("'%s' holds no salt: a line of %d characters or more", options->salt_path, PROJECT_SALT_MIN);
	else if (err)
		failed(options->salt_path, err);
	if (err)
		return NULL;
	database.should_stop = should_stop;
	server = clickhouse__new(&database, &what);
	if (!server)
		failed(what, -errno);
	return server;
}

int project_run(const struct project_options *options, struct clickhouse *server)
{
	struct project_opts opts = options->project;
	struct projector *projector;
	int code = EXIT_FAILED;

	opts.should_stop = should_stop;
	opts.settle_ns = options->follow ? SETTLE_NS : 0;
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	signal(SIGPIPE, SIG_IGN);
	projector = projector__new(&opts, server);
	if (!projector) {
		log_error("out of memory");
	} else if (options->verify) {
		code = verify(projector);
	} else if (options->follow) {
		code = follow(projector);
	} else {
		code = projector__run(projector) ? EXIT_FAILED : EXIT_DONE;
		say_stats(projector, &opts);
	}
	projector__free(projector);
	return code;
}
