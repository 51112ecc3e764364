// SPDX-License-Identifier: GPL-2.0-or-later
/* `whylate collect`: options and files to a collector, and its life until a signal ends it. */
#include "base/capabilities.h"
#include "base/log.h"
#include "base/sandbox.h"
#include "base/units.h"
#include "base/user_file.h"
#include "cmd/cmd.h"
#include "cmd/collect_project.h"
#include "cmd/project_causes.h"
#include "net/collect/collector.h"
#include "net/collect/identity.h"
#include "net/collect/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
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

enum {
	OPT_LISTEN = 1000,
	OPT_STORE,
	OPT_TLS_CERT,
	OPT_TLS_KEY,
	OPT_CLIENT_CA,
	OPT_CRL,
	OPT_TOKENS,
	OPT_USER,
	OPT_INSECURE,
	OPT_ALLOW_VALUES,
	OPT_KEEP,
	OPT_MAX_BYTES,
	OPT_MAX_HOST_BYTES,
	OPT_MAX_HOST_FILES,
	OPT_MAX_HOST_SESSIONS,
	OPT_MAX_CONNECTIONS,
	OPT_MAX_MEMORY,
	OPT_MAX_RATE,
	OPT_MAX_REQUESTS,
	OPT_TIMEOUT,
	OPT_PROJECT,
	OPT_CREDENTIALS,
	OPT_DB_CA,
	OPT_REDACT,
	OPT_FORGET,
};

static const struct option long_options[] = {
	{"listen", required_argument, NULL, OPT_LISTEN},
	{"store", required_argument, NULL, OPT_STORE},
	{"tls-cert", required_argument, NULL, OPT_TLS_CERT},
	{"tls-key", required_argument, NULL, OPT_TLS_KEY},
	{"client-ca", required_argument, NULL, OPT_CLIENT_CA},
	{"crl", required_argument, NULL, OPT_CRL},
	{"tokens", required_argument, NULL, OPT_TOKENS},
	{"user", required_argument, NULL, OPT_USER},
	{"insecure", no_argument, NULL, OPT_INSECURE},
	{"allow-values", no_argument, NULL, OPT_ALLOW_VALUES},
	{"keep", required_argument, NULL, OPT_KEEP},
	{"max-bytes", required_argument, NULL, OPT_MAX_BYTES},
	{"max-host-bytes", required_argument, NULL, OPT_MAX_HOST_BYTES},
	{"max-host-files", required_argument, NULL, OPT_MAX_HOST_FILES},
	{"max-host-sessions", required_argument, NULL, OPT_MAX_HOST_SESSIONS},
	{"max-connections", required_argument, NULL, OPT_MAX_CONNECTIONS},
	{"max-memory", required_argument, NULL, OPT_MAX_MEMORY},
	{"max-rate", required_argument, NULL, OPT_MAX_RATE},
	{"max-requests", required_argument, NULL, OPT_MAX_REQUESTS},
	{"timeout", required_argument, NULL, OPT_TIMEOUT},
	{"project", required_argument, NULL, OPT_PROJECT},
	{"credentials", required_argument, NULL, OPT_CREDENTIALS},
	{"db-ca", required_argument, NULL, OPT_DB_CA},
	{"redact", no_argument, NULL, OPT_REDACT},
	{"forget", required_argument, NULL, OPT_FORGET},
	{"verbose", no_argument, NULL, 'v'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static int not_understood(const char *option, const char *arg, const char *wanted)
{
	return usage_error("collect", "%s '%s' is not understood: it wants something like %s", option, arg, wanted);
}

static int take_host_limit(struct store_opts *opts, int option, const char *arg)
{
	uint64_t number;

	switch (option) {
	case OPT_MAX_HOST_BYTES:
		return units_bytes(arg, &opts->host_max_bytes) ? not_understood("--max-host-bytes", arg, "10G") : 0;
	case OPT_MAX_HOST_FILES:
		if (units_number(arg, 10000000, &number))
			return not_understood("--max-host-files", arg, "65536");
		opts->host_max_files = number;
		return 0;
	default:
		if (units_number(arg, 4096, &number))
			return not_understood("--max-host-sessions", arg, "64");
		opts->host_session_max = number;
		return 0;
	}
}

static int take_limit(struct collector_opts *opts, int option, const char *arg)
{
	uint64_t number;

	switch (option) {
	case OPT_MAX_HOST_BYTES:
	case OPT_MAX_HOST_FILES:
	case OPT_MAX_HOST_SESSIONS:
		return take_host_limit(&opts->store, option, arg);
	case OPT_KEEP:
		return usage_duration("collect", "--keep", arg, "30d", &opts->store.keep_ns) ? EXIT_USAGE : 0;
	case OPT_MAX_BYTES:
		return units_bytes(arg, &opts->store.max_bytes) ? not_understood("--max-bytes", arg, "100G") : 0;
	case OPT_MAX_CONNECTIONS:
		if (units_number(arg, 100000, &number))
			return not_understood("--max-connections", arg, "2048");
		opts->max_connections = number;
		return 0;
	case OPT_MAX_MEMORY:
		return units_bytes(arg, &opts->max_memory) ? not_understood("--max-memory", arg, "40M") : 0;
	case OPT_MAX_RATE:
		if (units_bytes(arg, &number))
			return not_understood("--max-rate", arg, "64M");
		opts->max_rate = (double)number;
		return 0;
	case OPT_MAX_REQUESTS:
		if (units_number(arg, 1000000, &number))
			return not_understood("--max-requests", arg, "100");
		opts->max_requests = (double)number;
		return 0;
	default:
		if (usage_duration("collect", "--timeout", arg, "30s", &opts->timeout_ns))
			return EXIT_USAGE;
		return opts->timeout_ns < 100000000 ? not_understood("--timeout", arg, "30s") : 0;
	}
}

static int take_projection(struct project_options *options, int option, const char *arg)
{
	const char **texts[] = {&options->database.url, &options->database.credentials_path,
				&options->database.ca_path};

	if (option == OPT_REDACT)
		options->project.redact = true;
	else
		*texts[option - OPT_PROJECT] = arg;
	return 0;
}

static int take(struct collect_options *options, int option, const char *arg)
{
	switch (option) {
	case OPT_PROJECT:
	case OPT_CREDENTIALS:
	case OPT_DB_CA:
	case OPT_REDACT:
		return take_projection(&options->projection, option, arg);
	case OPT_LISTEN:
		options->listen = arg;
		return 0;
	case OPT_STORE:
		options->store = arg;
		return 0;
	case OPT_TLS_CERT:
		options->cert = arg;
		return 0;
	case OPT_TLS_KEY:
		options->key = arg;
		return 0;
	case OPT_CLIENT_CA:
		options->ca = arg;
		return 0;
	case OPT_CRL:
		options->crl = arg;
		return 0;
	case OPT_FORGET:
		options->forget = arg;
		return 0;
	case OPT_TOKENS:
		options->tokens = arg;
		return 0;
	case OPT_USER:
		options->user = arg;
		return 0;
	case OPT_INSECURE:
		options->insecure = true;
		return 0;
	case OPT_ALLOW_VALUES:
		options->collector.allow_values = true;
		return 0;
	case 'v':
		log_set_verbose(1);
		return 0;
	default:
		return take_limit(&options->collector, option, arg);
	}
}

static int check_complete(const struct collect_options *options, int argc, char **argv)
{
	if (optind < argc)
		return usage_error("collect", "'%s' is one argument too many", argv[optind]);
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
	struct sandbox sandbox = {.network = true, .threads = true, .writable_fds = {-1, -1}};
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
	int option, code;

	while ((option = getopt_long(argc, argv, ":vh", long_options, NULL)) != -1) {
		if (option == 'h') {
			fputs(help, stdout);
			return EXIT_DONE;
		}
		if (option == '?' || option == ':')
			return option_error("collect", option, argv);
		if (take(&options, option, optarg))
			return EXIT_USAGE;
	}
	code = check_complete(&options, argc, argv);
	return code ?: options.forget ? forget(&options) : collect(&options);
}
