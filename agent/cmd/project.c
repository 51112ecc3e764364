// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/confine.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "fleet/causes.h"
#include "fleet/projection.h"
#include "net/project/schema.h"

#include <unistd.h>

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
	"      --redact-salt FILE a line that keys those hashes; others may not read it\n"
	"      --cluster NAME     makes the tables on that cluster of the server's configuration: replicated, and "
	"spread over its shards\n"
	"      --keep TIME        days that are older leave the database (90d; default: none)\n"
	"      --keep-causes TIME  likewise what was found to be the causes (365d; default: none)\n"
	"      --credentials FILE USER:PASSWORD (default $CREDENTIALS_DIRECTORY/clickhouse, where it is there)\n"
	"      --db-ca FILE       PEM: the authority of a clickhouses:// server (default: the system's)\n"
	"      --insecure         clickhouse://, without TLS, to another machine\n"
	"      --patience 60s     how long to try again without an answer\n"
	"  -v, --verbose\n";

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
	OPTION_TEXT("redact-salt", 0, O, salt_path),
	OPTION_TEXT("cluster", 0, O, project.cluster),
	OPTION_DURATION("keep", 0, O, project.keep_ns, .example = "90d"),
	OPTION_DURATION("keep-causes", 0, O, project.keep_causes_ns, .example = "365d"),
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
	if (options.salt_path && !options.project.redact)
		return usage_error("project", "--redact-salt goes with --redact");
	if (options.project.cluster && !schema_cluster_is_valid(options.project.cluster))
		return usage_error("project", "--cluster '%s' is no name of a cluster", options.project.cluster);
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
