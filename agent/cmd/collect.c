// SPDX-License-Identifier: GPL-2.0-or-later
/* `whylate collect`: options and files to a collector, and its life until a signal ends it. */
#include "base/capabilities.h"
#include "base/log.h"
#include "base/sandbox.h"
#include "base/user_file.h"
#include "cmd/cmd.h"
#include "cmd/collect_project.h"
#include "cmd/options.h"
#include "fleet/causes.h"
#include "net/collect/collector.h"
#include "net/collect/identity.h"
#include "net/collect/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <malloc.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define PEM_MAX        (1u << 20)
#define BODY_MAPPED_SZ (32 << 10)

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
	"      --max-requests N         of each client in a second (default 100)\n"
	"      --timeout TIME     for a request to arrive, and for an idle connection (default 30s)\n"
	"      --project URL      brings the store into a database as well: clickhouse://HOST:PORT/DATABASE "
	"(whylate-project(1))\n"
	"      --credentials FILE, --db-ca FILE, --redact   of that projection\n"
	"      --forget HOST      deletes what the store, and the database of --project, have of a host, and ends\n"
	"  -v, --verbose          what libmicrohttpd says\n"
	"SIGHUP reads certificates, key, revocations and tokens again.\n";

struct collect_options {
	const char *listen, *store, *cert, *key, *ca, *crl, *tokens, *user, *forget;
	bool insecure;
	struct collector_opts collector;
	struct project_options projection; /* database.url NULL: none */
};

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
	OPTION_NUMBER("max-requests", 0, O, collector.max_requests, .example = "100", .max = 1000000),
	OPTION_DURATION("timeout", 0, O, collector.timeout_ns, .example = "30s", .min = 100000000),
	OPTION_TEXT("project", 0, O, projection.database.url),
	OPTION_TEXT("credentials", 0, O, projection.database.credentials_path),
	OPTION_TEXT("db-ca", 0, O, projection.database.ca_path),
	OPTION_FLAG("redact", 0, O, projection.project.redact),
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
		   options->projection.project.redact) {
		return usage_error("collect", "--credentials, --db-ca and --redact go with --project");
	}
	if (options->crl && !options->ca)
		return usage_error("collect", "--crl goes with --client-ca, whose certificates it revokes");
	return 0;
}

/* The file as text, to be freed; NULL after a line that says why. */
static char *read_pem(const char *path, bool is_secret)
{
	int fd = is_secret ? user_file_open_secret(path) : user_file_open(path);
	FILE *in = fd < 0 ? NULL : fdopen(fd, "re");
	char *text = in ? calloc(1, PEM_MAX + 1) : NULL;
	size_t sz = text ? fread(text, 1, PEM_MAX + 1, in) : 0;
	bool bad = !text || ferror(in);

	if (bad)
		log_error("cannot read '%s': %s", path, user_file_why(fd < 0 ? fd : -errno));
	else if (sz > PEM_MAX)
		log_error("'%s' is too large for a certificate or key", path);
	if (in)
		fclose(in);
	if (!bad && sz <= PEM_MAX)
		return text;
	free(text);
	return NULL;
}

/* What the files hold, as it was read at the start or at the last SIGHUP. */
struct material {
	char *cert, *key, *ca, *crl;
	struct identity_tokens tokens;
};

static void free_pem(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
}

static void material__clear(struct material *material)
{
	free_pem(material->cert);
	free_pem(material->key);
	free_pem(material->ca);
	free_pem(material->crl);
	identity_tokens__clear(&material->tokens);
	*material = (struct material){0};
}

static struct collector_material material__of(const struct material *material)
{
	return (struct collector_material){
		.cert_pem = material->cert,
		.key_pem = material->key,
		.client_ca_pem = material->ca,
		.crl_pem = material->crl,
		.tokens = &material->tokens,
	};
}

/* 0, or -EINVAL after a line that says why; the material is empty then. */
static int material__read(struct material *material, const struct collect_options *options)
{
	unsigned line;
	int err = 0;

	*material = (struct material){0};
	if ((options->cert && !(material->cert = read_pem(options->cert, false))) ||
	    (options->key && !(material->key = read_pem(options->key, true))) ||
	    (options->ca && !(material->ca = read_pem(options->ca, false))) ||
	    (options->crl && !(material->crl = read_pem(options->crl, false))))
		err = -EINVAL;
	if (!err && options->tokens) {
		err = identity_tokens__load(&material->tokens, options->tokens, &line);
		if (err == -EINVAL)
			log_error("'%s', line %u: it wants HOST TOKEN, a token of %d to %d printable characters",
				  options->tokens, line, PROTOCOL_TOKEN_MIN, PROTOCOL_TOKEN_MAX);
		else if (err)
			log_error("cannot read '%s': %s", options->tokens, user_file_why(err));
		else if (!material->tokens.cnt)
			log_error("there is no token in '%s'", options->tokens);
		if (!err && !material->tokens.cnt)
			err = -EINVAL;
	}
	if (err)
		material__clear(material);
	return err ? -EINVAL : 0;
}

/* Everybody on the network could read what is sent, or write under any name. */
static bool is_safe(const struct collect_options *options, const struct listener *listener)
{
	bool named = options->ca || options->tokens;

	if (options->insecure || listener->loopback || (options->cert && named))
		return true;
	if (options->cert)
		log_error("anybody could write under any name at %s: say --client-ca, --tokens or --insecure",
			  listener->address);
	else
		log_error("without TLS anybody could read and write at %s: say --tls-cert and --tls-key, or --insecure",
			  listener->address);
	return false;
}

/* A session has a file open, a connection a socket. */
static void raise_file_limit(const struct collector_opts *opts)
{
	rlim_t wanted = 2 * (rlim_t)opts->max_connections + 4096;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= wanted)
		return;
	limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur < opts->max_connections + 1200)
		log_warn("only %llu files may be open at once: that is not enough for %u connections",
			 (unsigned long long)limit.rlim_cur, opts->max_connections);
}

/* Two of them: the collector keeps what it points at until it has the other. */
struct materials {
	struct material items[2];
	unsigned current;
};

/* SIGHUP: false where it does not listen any more. */
static bool reload(struct collector *collector, const struct collect_options *options, struct materials *materials)
{
	struct material *next = &materials->items[!materials->current];
	int err = material__read(next, options);
	struct collector_material shown;

	if (!err) {
		shown = material__of(next);
		err = collector__reload(collector, &shown);
		if (err != -EINVAL)
			materials->current = !materials->current;
		material__clear(&materials->items[!materials->current]);
	}
	if (!err)
		log_info("certificates, tokens and revocations are read again");
	else
		log_error("%s", err == -EINVAL ? "the certificates and tokens stay as they were"
					       : "the collector cannot listen again");
	return !err || err == -EINVAL;
}

static int run(struct collector *collector, const struct collect_options *options, const struct listener *listener,
	       struct materials *materials, const sigset_t *signals)
{
	const struct timespec second = {.tv_sec = 1};
	int signal_no;

	log_info("listening on %s://%s, store '%s'", options->cert ? "https" : "http", listener->address,
		 options->store);
	for (;;) {
		signal_no = sigtimedwait(signals, NULL, &second);
		if (signal_no < 0)
			collector__tick(collector);
		else if (signal_no != SIGHUP)
			break;
		else if (!reload(collector, options, materials))
			return EXIT_FAILED;
	}
	log_info("stopping: %s", strsignal(signal_no));
	return EXIT_DONE;
}

static int open_listener(const struct collect_options *options, struct listener *listener)
{
	int err = listener__open(listener, options->listen);

	if (err)
		log_error("cannot listen on '%s': %s", options->listen,
			  err == -EINVAL   ? "it wants ADDRESS:PORT"
			  : err == -ENOENT ? "there is no such host"
					   : strerror(-err));
	if (!err && !is_safe(options, listener)) {
		close(listener->fd);
		err = -EPERM;
	}
	return err;
}

/* The store's directory is made before root becomes that user, who could not: 0 or -errno. */
static int make_store(const char *dir, const struct passwd *user)
{
	if (mkdir(dir, 0750))
		return errno == EEXIST ? 0 : -errno;
	return chown(dir, user->pw_uid, user->pw_gid) ? -errno : 0;
}

/* For good: 0, or -errno after a line that says why. */
static int become(const struct collect_options *options)
{
	const struct passwd *user = options->user ? getpwnam(options->user) : NULL;
	int err;

	if (options->user && (!user || !user->pw_uid)) {
		log_error(user ? "--user '%s' is root" : "there is no user '%s' (--user)", options->user);
		return -EINVAL;
	}
	if (user && !geteuid()) {
		err = make_store(options->store, user);
		if (err)
			log_error("the store '%s' cannot be made: %s", options->store, strerror(-err));
		if (!err && (setgroups(0, NULL) || setresgid(user->pw_gid, user->pw_gid, user->pw_gid) ||
			     setresuid(user->pw_uid, user->pw_uid, user->pw_uid))) {
			err = -errno;
			log_error("cannot become '%s': %s", options->user, strerror(-err));
		}
		if (err)
			return err;
	}
	err = capabilities_keep(NULL, 0);
	if (err)
		log_error("cannot give up capabilities: %s", strerror(-err));
	return err;
}

/*
 * The directory that the store is in: the store itself may be unmounted and mounted again.  What a process that parses
 * what the network sends may still do: threads, sockets, and files below that.
 */
static int confine(const struct collect_options *options)
{
	struct sandbox sandbox = {.network = true, .accepts_only = true, .threads = true, .writable_fds = {-1, -1, -1}};
	char *dir = strdup(options->store);
	int err = dir ? 0 : -ENOMEM;

	if (!err)
		sandbox.writable_fds[0] = open(dirname(dir), O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (!err)
		err = sandbox_enter(&sandbox);
	if (err)
		log_error("the collector cannot be confined: %s", strerror(-err));
	if (sandbox.writable_fds[0] >= 0)
		close(sandbox.writable_fds[0]);
	free(dir);
	return err;
}

/* Reads what it needs before the user changes: 0, or -errno after a line that says why. */
static int open_projection(struct collect_options *options, struct clickhouse **database)
{
	struct project_options *projection = &options->projection;

	*database = NULL;
	if (!projection->database.url)
		return 0;
	projection->database.insecure = options->insecure;
	projection->follow = true;
	projection->project.paths = &options->store;
	projection->project.path_cnt = 1;
	projection->project.patience_ns = PROJECT_PATIENCE_NS;
	projection->project.causes = project_causes;
	*database = project_open(projection);
	return *database ? 0 : -EINVAL;
}

static int start_projection(const struct collect_options *options, struct clickhouse *database)
{
	int err = 0;

	/* The projection looks for it at once. */
	if (database && mkdir(options->store, 0750) && errno != EEXIST)
		err = -errno;
	if (!err && database)
		err = collect_project_start(&options->projection, database);
	if (err)
		log_error("the projection cannot be started: %s", strerror(-err));
	return err;
}

static int collect(struct collect_options *options)
{
	struct collector_opts *opts = &options->collector;
	struct listener listener = {.fd = -1};
	struct collector *collector = NULL;
	struct materials materials = {0};
	struct clickhouse *database;
	int code = EXIT_FAILED;
	sigset_t signals;

	/* Before there are threads: they leave these to us. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	/* What one thread has freed serves the others: an arena for each would keep the peaks of all. */
	mallopt(M_ARENA_MAX, 2);
	/* Bodies are mappings of their own, which go back when they are freed, whatever lives on between them. */
	mallopt(M_MMAP_THRESHOLD, BODY_MAPPED_SZ);
	opts->store.dir = options->store;
	raise_file_limit(opts);
	if (open_projection(options, &database) || material__read(&materials.items[0], options)) {
		clickhouse__free(database);
		return EXIT_FAILED;
	}
	if (!open_listener(options, &listener)) {
		opts->listen_fd = listener.fd;
		opts->material = material__of(&materials.items[0]);
		if (!become(options) && !start_projection(options, database) && !confine(options))
			collector = collector__start(opts);
		else
			close(listener.fd);
	}
	if (collector)
		code = run(collector, options, &listener, &materials, &signals);
	collector__stop(collector);
	material__clear(&materials.items[0]);
	material__clear(&materials.items[1]);
	clickhouse__free(database);
	return code;
}

static int forget(struct collect_options *options)
{
	struct clickhouse *database;
	int code = EXIT_FAILED;

	if (open_projection(options, &database))
		return EXIT_FAILED;
	options->collector.store.dir = options->store;
	/* A store that does not exist is not to be made here. */
	if (access(options->store, F_OK))
		log_error("there is no store '%s'", options->store);
	else if (!become(options))
		code = collect_forget(&options->collector.store, options->forget, database);
	clickhouse__free(database);
	return code;
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
	return code ?: options.forget ? forget(&options) : collect(&options);
}
