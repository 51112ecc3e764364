// SPDX-License-Identifier: GPL-2.0-or-later
#include "fleet/serve.h"

#include "base/capabilities.h"
#include "base/confine.h"
#include "base/exit_code.h"
#include "base/log.h"
#include "fleet/causes.h"
#include "fleet/collect_project.h"
#include "fleet/material.h"
#include "net/wire/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <malloc.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BODY_MAPPED_SZ (32 << 10)

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

#define NAMED_CNT 6

/* Directories of the files that are read again later, by their names and by what links lead to: to be freed. */
static void named_dirs(const struct collect_options *options, char *dirs[2 * NAMED_CNT])
{
	const char *const files[NAMED_CNT] = {options->cert, options->key,    options->ca,
					      options->crl,  options->tokens, options->projection.database.ca_path};

	for (size_t i = 0; i < NAMED_CNT; i++) {
		bool is_named = files[i] && *files[i];

		dirs[2 * i] = is_named ? strdup(files[i]) : NULL;
		dirs[2 * i + 1] = is_named ? realpath(files[i], NULL) : NULL;
	}
	for (size_t i = 0; i < 2 * NAMED_CNT; i++) {
		const char *dir = dirs[i] ? dirname(dirs[i]) : NULL;

		if (dir)
			memmove(dirs[i], dir, strlen(dir) + 1);
	}
}

/*
 * The directory that the store is in: the store itself may be unmounted and mounted again.  What a process that parses
 * what the network sends may still do: threads, sockets, and files below that and beside its certificates.
 */
static int confine(const struct collect_options *options, struct sandbox *sandbox)
{
	char *dirs[2 * NAMED_CNT], *dir = strdup(options->store);
	int err = dir ? 0 : -ENOMEM;

	named_dirs(options, dirs);
	sandbox->writable_fds[0] = err ? -1 : open(dirname(dir), O_PATH | O_DIRECTORY | O_CLOEXEC);
	sandbox->writable_fds[1] = sandbox->writable_fds[2] = -1;
	if (!err)
		err = confine_enter(sandbox, (const char *const *)dirs, 2 * NAMED_CNT);
	if (err)
		log_error("the collector cannot be confined: %s", strerror(-err));
	if (sandbox->writable_fds[0] >= 0)
		close(sandbox->writable_fds[0]);
	for (size_t i = 0; i < 2 * NAMED_CNT; i++)
		free(dirs[i]);
	free(dir);
	return err;
}

static int confine_collector(const struct collect_options *options)
{
	struct sandbox sandbox = {.network = true, .accepts_only = true, .threads = true};

	return confine(options, &sandbox);
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

/* It has the database's answers before it: no key, no token and no socket of the collector's. */
static int start_projection(const struct collect_options *options, struct clickhouse *database,
			    struct material *material)
{
	int collector_fd = -1, err = 0;
	pid_t pid = 0;

	if (!database)
		return 0;
	/* The projection looks for it at once. */
	if (mkdir(options->store, 0750) && errno != EEXIST)
		err = -errno;
	if (!err)
		pid = collect_project_fork(&collector_fd);
	if (!err && !pid) {
		material__clear(material);
		collect_project_run(&options->projection, database, collector_fd);
	}
	if (!err && pid < 0)
		err = pid;
	if (err)
		log_error("the projection cannot be started: %s", strerror(-err));
	return err;
}

int collect_serve(struct collect_options *options)
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
		if (!become(options) && !start_projection(options, database, &materials.items[0]) &&
		    !confine_collector(options))
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

int collect_forget(struct collect_options *options)
{
	struct sandbox sandbox = {0};
	struct clickhouse *database;
	int code = EXIT_FAILED;

	if (open_projection(options, &database))
		return EXIT_FAILED;
	options->collector.store.dir = options->store;
	sandbox.network = database;
	sandbox.threads = database;
	/* A store that does not exist is not to be made here. */
	if (access(options->store, F_OK))
		log_error("there is no store '%s'", options->store);
	else if (!become(options) && !confine(options, &sandbox))
		code = collect_forget_host(&options->collector.store, options->forget, database);
	clickhouse__free(database);
	return code;
}
