// SPDX-License-Identifier: GPL-2.0-or-later
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "fleet/serve.h"
#include "net/project/schema.h"

#include <stdio.h>
#include <unistd.h>

static const char help[] =
	"Usage: whylate collect --listen ADDR --store DIR [--tls-cert FILE --tls-key FILE] [--client-ca FILE]\n"
	"Keeps what `whylate record --stream` sends.  Needs no privilege.\n"
	"      --listen ADDR      127.0.0.1:7700, [::]:7700, :7700\n"
	"      --store DIR        where the shards go, by host and day; `whylate report DIR` reads them\n"
	"      --tls-cert FILE, --tls-key FILE   PEM; without them only on loopback\n"
	"      --client-ca FILE   PEM; a client's certificate must be of this authority and name the host it writes "
	"for\n"
	"      --crl FILE         PEM: certificates of that authority that were revoked\n"
	"      --tokens FILE      lines HOST TOKEN: another way for a client to show who it is\n"
	"      --user NAME        become that user; without it the collector does not run as root\n"
	"      --insecure         without TLS, or without knowing who clients are, on any address\n"
	"      --allow-values     take values of variables, too (record --values)\n"
	"      --keep TIME        delete shards that got nothing for so long (30d; default: never)\n"
	"      --max-bytes BYTES  on disk; beyond it the oldest shards of the host that has most go (100G; default: no "
	"limit)\n"
	"      --max-host-bytes BYTES, --max-host-files N   of one host; beyond it its own oldest go (default: no "
	"limit, "
	"65536)\n"
	"      --max-host-sessions N    of one host with an open file at once (default 64)\n"
	"      --max-connections N      at once (default 2048)\n"
	"      --max-memory BYTES       for what is being received (default 40M)\n"
	"      --max-rate BYTES         of each client in a second (default 64M)\n"
	"      --max-rows N             … of the table interval (default: no limit)\n"
	"      --max-requests N         of each client in a second (default 100)\n"
	"      --timeout TIME     for a request to arrive, and for an idle connection (default 30s)\n"
	"      --project URL      brings the store into a database as well: clickhouse://HOST:PORT/DATABASE "
	"(whylate-project(1))\n"
	"      --credentials FILE, --db-ca FILE, --redact, --redact-salt FILE   of that projection\n"
	"      --cluster NAME     makes the tables of --project on that cluster\n"
	"      --db-keep TIME     days that are older leave that database (90d; default: none)\n"
	"      --db-keep-causes TIME  likewise what was found to be the causes (365d; default: none)\n"
	"      --forget HOST      deletes what the store, and the database of --project, have of a host, and ends\n"
	"  -v, --verbose          what libmicrohttpd says\n"
	"SIGHUP reads certificates, key, revocations and tokens again.\n";

#define O struct collect_options
static const struct option_row rows[] = {
	OPTION_TEXT("listen", 0, O, listen),
	OPTION_TEXT("store", 0, O, store),
	OPTION_TEXT("tls-cert", 0, O, cert),
	OPTION_TEXT("tls-key", 0, O, key),
	OPTION_TEXT("client-ca", 0, O, ca),
	OPTION_TEXT("crl", 0, O, crl),
	OPTION_TEXT("tokens", 0, O, tokens),
	OPTION_TEXT("user", 0, O, user),
	OPTION_FLAG("insecure", 0, O, insecure),
	OPTION_FLAG("allow-values", 0, O, collector.allow_values),
	OPTION_DURATION("keep", 0, O, collector.store.keep_ns, .example = "30d"),
	OPTION_BYTES("max-bytes", 0, O, collector.store.max_bytes, .example = "100G"),
	OPTION_BYTES("max-host-bytes", 0, O, collector.store.host_max_bytes, .example = "10G"),
	OPTION_NUMBER("max-host-files", 0, O, collector.store.host_max_files, .example = "65536", .max = 10000000),
	OPTION_NUMBER("max-host-sessions", 0, O, collector.store.host_session_max, .example = "64", .max = 4096),
	OPTION_NUMBER("max-connections", 0, O, collector.max_connections, .example = "2048", .max = 100000),
	OPTION_BYTES("max-memory", 0, O, collector.max_memory, .example = "40M"),
	OPTION_BYTES("max-rate", 0, O, collector.max_rate, .example = "64M"),
	OPTION_NUMBER("max-rows", 0, O, collector.max_rows, .example = "100000", .max = 100000000),
	OPTION_NUMBER("max-requests", 0, O, collector.max_requests, .example = "100", .max = 1000000),
	OPTION_DURATION("timeout", 0, O, collector.timeout_ns, .example = "30s", .min = 100000000),
	OPTION_TEXT("project", 0, O, projection.database.url),
	OPTION_TEXT("credentials", 0, O, projection.database.credentials_path),
	OPTION_TEXT("db-ca", 0, O, projection.database.ca_path),
	OPTION_FLAG("redact", 0, O, projection.project.redact),
	OPTION_TEXT("redact-salt", 0, O, projection.salt_path),
	OPTION_TEXT("cluster", 0, O, projection.project.cluster),
	OPTION_DURATION("db-keep", 0, O, projection.project.keep_ns, .example = "90d"),
	OPTION_DURATION("db-keep-causes", 0, O, projection.project.keep_causes_ns, .example = "365d"),
	OPTION_TEXT("forget", 0, O, forget),
	OPTION_VERBOSE,
};
#undef O

static int check_complete(const struct collect_options *options, int argc, char **argv)
{
	if (usage_no_words("collect", argc, argv))
		return EXIT_USAGE;
	if (options->forget && !protocol_host_is_valid(options->forget))
		return usage_error("collect", "--forget '%s' is no host's name: the store's directories have them",
				   options->forget);
	if (options->forget && options->listen)
		return usage_error("collect", "--forget goes without --listen: it deletes and ends");
	if (!options->listen && !options->forget)
		return usage_error("collect", "where do agents connect? Say --listen ADDR:PORT");
	if (!options->store || !*options->store)
		return usage_error("collect", "where do the shards go? Say --store DIR");
	if (!options->cert != !options->key)
		return usage_error("collect", "--tls-cert and --tls-key belong together: %s is missing",
				   options->cert ? "--tls-key" : "--tls-cert");
	if (options->ca && !options->cert)
		return usage_error("collect", "--client-ca wants TLS: say --tls-cert and --tls-key");
	if (!options->user && !geteuid())
		return usage_error("collect", "the collector does not run as root: say --user NAME");
	if (options->projection.database.url) {
		const char *wrong = clickhouse_url_check(options->projection.database.url, options->insecure);

		if (wrong)
			return usage_error("collect", "--project '%s': %s", options->projection.database.url, wrong);
	} else if (options->projection.database.credentials_path || options->projection.database.ca_path ||
		   options->projection.project.redact || options->projection.project.keep_ns ||
		   options->projection.project.keep_causes_ns || options->projection.project.cluster) {
		return usage_error(
			"collect",
			"--credentials, --cluster, --db-ca, --db-keep, --db-keep-causes and --redact go with "
			"--project");
	}
	if (options->projection.project.cluster && !schema_cluster_is_valid(options->projection.project.cluster))
		return usage_error("collect", "--cluster '%s' is no name of a cluster",
				   options->projection.project.cluster);
	if (options->projection.salt_path && !options->projection.project.redact)
		return usage_error("collect", "--redact-salt goes with --redact");
	if (options->crl && !options->ca)
		return usage_error("collect", "--crl goes with --client-ca, whose certificates it revokes");
	return 0;
}

int cmd_collect(int argc, char **argv)
{
	struct collect_options options = {
		.collector =
			{
				.max_connections = 2048,
				.max_memory = 40u << 20,
				.max_rate = 64u << 20,
				.max_requests = 100,
				.timeout_ns = 30000000000ull,
			},
	};
	const struct option_group groups[] = {OPTION_GROUP(rows, &options, help)};
	int code = OPTIONS_TAKE("collect", groups, argc, argv);

	if (code != OPTIONS_GO_ON)
		return code;
	code = check_complete(&options, argc, argv);
	return code ?: options.forget ? collect_forget(&options) : collect_serve(&options);
}
