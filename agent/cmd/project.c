// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/confine.h"
#include "base/log.h"
#include "base/user_file.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/project_options.h"
#include "fleet/causes.h"

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

static const char help[] =
	"Usage: whylate project STORE|DIR|SHARD… clickhouse://HOST:PORT/DATABASE [--verify] [--follow]\n"
	"Brings what a collector keeps into a ClickHouse database: every kept request once, and every session.\n"
	"Needs no privilege.  The database can be dropped and made again from the store.\n"
	"      --verify           compares counts and sums with the shards and changes nothing: exit code 1 where they "
	"differ\n"
	"      --follow           goes on with what comes into the store, until it is stopped\n"
	"      --no-causes        without the analysis of each session\n"
	"      --redact           types and command lines as hashes beyond their first word: they may be personal "
	"data\n"
	"      --credentials FILE USER:PASSWORD (default $CREDENTIALS_DIRECTORY/clickhouse, where it is there)\n"
	"      --db-ca FILE       PEM: the authority of a clickhouses:// server (default: the system's)\n"
	"      --insecure         clickhouse://, without TLS, to another machine\n"
	"      --patience 60s     how long to try again without an answer\n"
	"  -v, --verbose\n";

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
	if (verdict.waiting_blocks)
		printf("not in the database: %" PRIu64 " blocks of sessions without clock anchors\n",
		       verdict.waiting_blocks);
	if (verdict.bad_blocks)
		printf("damaged: %" PRIu64 " blocks\n", verdict.bad_blocks);
	return same ? EXIT_DONE : EXIT_FAILED;
}

static void rest(uint64_t ns)
{
	const struct timespec time = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};

	nanosleep(&time, NULL);
}

/* A database that is away for long is no reason to end: what is not projected stays in the store. */
static int follow(struct projector *projector)
{
	int err = 0;

	while (!stop_signal) {
		err = projector__run(projector);
		if (err == -ENOMEM)
			return EXIT_FAILED;
		rest(FOLLOW_PERIOD_NS);
	}
	return EXIT_DONE;
}

struct clickhouse *project_open(const struct project_options *options)
{
	struct clickhouse_opts database = options->database;
	struct clickhouse *server;
	const char *what;

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

static int take_no_causes(void *options, const char *command, const char *arg)
{
	(void)command, (void)arg;
	((struct project_options *)options)->project.causes = NULL;
	return 0;
}

#define O struct project_options
static const struct option_row rows[] = {
	OPTION_FLAG("verify", 0, O, verify),
	OPTION_FLAG("follow", 0, O, follow),
	OPTION_CALL("no-causes", take_no_causes),
	OPTION_FLAG("redact", 0, O, project.redact),
	OPTION_TEXT("credentials", 0, O, database.credentials_path),
	OPTION_TEXT("db-ca", 0, O, database.ca_path),
	OPTION_FLAG("insecure", 0, O, database.insecure),
	OPTION_DURATION("patience", 0, O, project.patience_ns, .example = "60s"),
	OPTION_VERBOSE,
};
#undef O

int cmd_project(int argc, char **argv)
{
	struct project_options options = {.project = {.patience_ns = PROJECT_PATIENCE_NS, .causes = project_causes}};
	struct confine_reader needs;
	struct clickhouse *server;
	const char *wrong;
	const struct option_group groups[] = {OPTION_GROUP(rows, &options, help)};
	int code = OPTIONS_TAKE("project", groups, argc, argv);

	if (code != OPTIONS_GO_ON)
		return code;
	if (argc - optind < 2)
		return usage_error("project",
				   "what into which database? Name a store and clickhouse://HOST:PORT/DATABASE");
	if (options.verify && options.follow)
		return usage_error("project", "--verify compares once: it does not go with --follow");
	options.database.url = argv[argc - 1];
	wrong = clickhouse_url_check(options.database.url, options.database.insecure);
	if (wrong)
		return usage_error("project", "'%s': %s", options.database.url, wrong);
	options.project.paths = (const char *const *)argv + optind;
	options.project.path_cnt = (size_t)(argc - optind - 1);
	server = project_open(&options);
	if (!server)
		return EXIT_FAILED;
	needs = (struct confine_reader){
		.paths = options.project.paths,
		.path_cnt = options.project.path_cnt,
		.files = {options.database.ca_path, options.database.credentials_path},
		.network = true,
	};
	confine_reader(&needs);
	code = project_run(&options, server);
	clickhouse__free(server);
	return code;
}
