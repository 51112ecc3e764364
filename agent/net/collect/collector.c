// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/collect/collector_internal.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PRIORITIES     "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"
#define POOL_BYTES     (12u << 10) /* of one connection, for its headers and what it reads */
#define EXCESS         64u         /* connections beyond the limit that are told so */
#define THREADS_MAX    4
#define STOP_NS        (5 * 1000000000ull)
#define OPTION_CNT_MAX 16

/* Names are what they are, without any escape. */
static size_t keep_escapes(void *cls, struct MHD_Connection *mhd, char *text)
{
	(void)cls;
	(void)mhd;
	return strlen(text);
}

static void log_mhd(void *cls, const char *fmt, va_list args)
{
	(void)cls;
	log_debug_text(fmt, args);
}

/* libmicrohttpd refuses bad material without saying which and why. */
static int check_material(const struct collector_material *material, gnutls_x509_trust_list_t *trust)
{
	gnutls_datum_t cert = {(unsigned char *)material->cert_pem, strlen(material->cert_pem)};
	gnutls_datum_t key = {(unsigned char *)material->key_pem, strlen(material->key_pem)};
	gnutls_certificate_credentials_t credentials;
	int err = gnutls_certificate_allocate_credentials(&credentials);
	const char *why;

	if (err)
		return -ENOMEM;
	err = gnutls_certificate_set_x509_key_mem(credentials, &cert, &key, GNUTLS_X509_FMT_PEM);
	gnutls_certificate_free_credentials(credentials);
	if (err < 0) {
		log_error("the certificate (--tls-cert) and key (--tls-key) cannot be used: %s", gnutls_strerror(err));
		return -EINVAL;
	}
	if (!material->client_ca_pem)
		return 0;
	*trust = identity_trust_new(material->client_ca_pem, material->crl_pem, &why);
	if (!*trust)
		log_error("--client-ca%s cannot be used: %s", material->crl_pem ? " or --crl" : "", why);
	return *trust ? 0 : -EINVAL;
}

static unsigned thread_cnt(void)
{
	long cpu_cnt = sysconf(_SC_NPROCESSORS_ONLN);

	return cpu_cnt < 2 ? 2 : cpu_cnt > THREADS_MAX ? THREADS_MAX : (unsigned)cpu_cnt;
}

static void add_option(struct MHD_OptionItem *item, enum MHD_OPTION name, intptr_t number, void *pointer)
{
	item->option = name;
	item->value = number;
	item->ptr_value = pointer;
}

/* Starts it on the socket, which is its own from then on: 0 or -errno after a line that says why. */
static int start_mhd(struct collector *collector, int listen_fd)
{
	const struct collector_opts *opts = &collector->opts;
	const struct collector_material *material = &opts->material;
	unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
	unsigned threads = thread_cnt(), cnt = 0;
	struct MHD_OptionItem options[OPTION_CNT_MAX];

#define OPTION(name, number, pointer) add_option(&options[cnt++], name, (intptr_t)(number), pointer)
	OPTION(MHD_OPTION_LISTEN_SOCKET, listen_fd, NULL);
	OPTION(MHD_OPTION_THREAD_POOL_SIZE, threads, NULL);
	/* A thread must be able to take them all: nobody spreads them evenly. */
	OPTION(MHD_OPTION_CONNECTION_LIMIT, (opts->max_connections + EXCESS) * threads, NULL);
	OPTION(MHD_OPTION_CONNECTION_MEMORY_LIMIT, POOL_BYTES, NULL);
	OPTION(MHD_OPTION_CONNECTION_TIMEOUT, 0, NULL);
#if MHD_VERSION < 0x00097701
	OPTION(MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL);
#else
	OPTION(MHD_OPTION_CLIENT_DISCIPLINE_LVL, 2, NULL);
#endif
	OPTION(MHD_OPTION_NOTIFY_COMPLETED, collector_on_completed, collector);
	OPTION(MHD_OPTION_NOTIFY_CONNECTION, collector_on_connection, collector);
	OPTION(MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL);
	if (material->cert_pem) {
		flags |= MHD_USE_TLS;
		OPTION(MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)material->cert_pem);
		OPTION(MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)material->key_pem);
		OPTION(MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)PRIORITIES);
		if (material->client_ca_pem)
			OPTION(MHD_OPTION_HTTPS_MEM_TRUST, 0, (void *)material->client_ca_pem);
	}
	OPTION(MHD_OPTION_END, 0, NULL);
#undef OPTION
	collector->mhd =
		MHD_start_daemon(flags, 0, NULL, NULL, collector_on_request, collector, MHD_OPTION_EXTERNAL_LOGGER,
				 log_mhd, NULL, MHD_OPTION_ARRAY, options, MHD_OPTION_END);
	if (collector->mhd)
		return 0;
	log_error("the HTTP server does not start: %s", errno ? strerror(errno) : "libmicrohttpd does not say why");
	return errno ? -errno : -EIO;
}

/* Threads that are started here leave the signals to the caller's. */
static void block_signals(sigset_t *before)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, before);
}

static int open_store(struct collector *collector)
{
	struct store_stats stats;

	collector->store = store__open(&collector->opts.store);
	if (!collector->store) {
		int err = -errno;

		if (err == -EBUSY)
			log_error("another collector has the store '%s'", collector->opts.store.dir);
		else
			log_error("the store '%s' cannot be opened: %s", collector->opts.store.dir, strerror(-err));
		return err;
	}
	store__stats(collector->store, &stats);
	metrics__committed(&collector->metrics, 0, 0, &stats);
	if (stats.repaired_files)
		log_info(
			"%llu shards were open when the store was left: they are closed, %llu unacknowledged bytes cut",
			(unsigned long long)stats.repaired_files, (unsigned long long)stats.repaired_bytes);
	if (stats.aside_files)
		log_warn("%llu torn shards that no collector wrote are moved aside, to NAME.torn",
			 (unsigned long long)stats.aside_files);
	return 0;
}

static void collector__free(struct collector *collector)
{
	store__close(collector->store);
	collector__free_checkers(collector);
	identity_trust_free(collector->trust);
	limiter__clear(&collector->limiter);
	metrics__clear(&collector->metrics);
	pthread_cond_destroy(&collector->queue_cond);
	pthread_mutex_destroy(&collector->queue_lock);
	pthread_mutex_destroy(&collector->connections_lock);
	pthread_mutex_destroy(&collector->checkers_lock);
	free(collector);
}

static void init_locks(struct collector *collector)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&collector->queue_cond, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_init(&collector->queue_lock, NULL);
	pthread_mutex_init(&collector->connections_lock, NULL);
	pthread_mutex_init(&collector->checkers_lock, NULL);
}

struct collector *collector__start(const struct collector_opts *opts)
{
	struct collector *collector = calloc(1, sizeof(*collector));
	sigset_t signals;
	int err;

	if (!collector) {
		close(opts->listen_fd);
		return NULL;
	}
	collector->opts = *opts;
	collector->queue_end = &collector->queue;
	metrics__init(&collector->metrics);
	init_locks(collector);
	err = limiter__init(&collector->limiter, opts->max_requests, opts->max_rate, (double)opts->max_rows);
	if (!err && opts->material.cert_pem)
		err = check_material(&opts->material, &collector->trust);
	if (!err)
		err = open_store(collector);
	if (err) {
		close(opts->listen_fd);
		collector__free(collector);
		errno = -err;
		return NULL;
	}
	block_signals(&signals);
	err = collector__start_committer(collector);
	if (!err)
		err = start_mhd(collector, opts->listen_fd);
	pthread_sigmask(SIG_SETMASK, &signals, NULL);
	if (!err)
		return collector;
	close(opts->listen_fd);
	collector__stop_committer(collector);
	collector__free(collector);
	errno = -err;
	return NULL;
}

void collector__tick(struct collector *collector)
{
	collector__close_slow(collector);
}

/* No new connections, no new bodies; what has a body has a while to get its answer.  The listening socket or -1. */
static int collector__quiesce(struct collector *collector)
{
	uint64_t end_ts = monotonic_ns() + STOP_NS;
	int listen_fd = MHD_quiesce_daemon(collector->mhd);

	atomic_store(&collector->stopping, true);
	while (atomic_load(&collector->request_cnt) && monotonic_ns() < end_ts)
		sleep_ns(10000000);
	/* After this none waits for the store, and none will: libmicrohttpd insists on it. */
	collector__stop_committer(collector);
	MHD_stop_daemon(collector->mhd);
	collector->mhd = NULL;
	return listen_fd;
}

int collector__reload(struct collector *collector, const struct collector_material *material)
{
	gnutls_x509_trust_list_t trust = NULL;
	sigset_t signals;
	int err = material->cert_pem ? check_material(material, &trust) : 0, listen_fd;

	if (err)
		return err;
	listen_fd = collector__quiesce(collector);
	identity_trust_free(collector->trust);
	collector->trust = trust;
	collector->opts.material = *material;
	if (listen_fd < 0)
		return -EBADF;
	block_signals(&signals);
	err = collector__start_committer(collector);
	atomic_store(&collector->stopping, false);
	if (!err)
		err = start_mhd(collector, listen_fd);
	pthread_sigmask(SIG_SETMASK, &signals, NULL);
	if (err)
		close(listen_fd);
	return err;
}

void collector__stop(struct collector *collector)
{
	int listen_fd = -1;

	if (!collector)
		return;
	if (collector->mhd)
		listen_fd = collector__quiesce(collector);
	else
		collector__stop_committer(collector);
	if (listen_fd >= 0)
		close(listen_fd);
	collector__free(collector);
}
