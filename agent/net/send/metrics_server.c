// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/send/metrics_server.h"

#include "base/capabilities.h"
#include "base/clock.h"
#include "base/confine.h"
#include "base/log.h"
#include "net/wire/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <microhttpd.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define ALIVE_FD      3 /* the child's: its other end is the recording's, and closes with it */
#define LISTEN_FD     4
#define SERVER_NICE   10
#define CONNECTIONS   16u
#define POOL_BYTES    (12u << 10)
#define TIMEOUT_S     10u
#define SNAPSHOT_NS   2000000000ULL
#define SNAPSHOT_STEP 5000000L

struct shared {
	atomic_uint asked, answered; /* equal: nobody waits */
	atomic_uint version;         /* odd: being written */
	struct live_metrics metrics;
};

struct metrics_server {
	struct shared *shared;
	int alive_fd;
	pid_t child;
};

/* --- the server's process ----------------------------------------------------------------------------------------- */

static struct shared *child_shared;

/* One that is whole; false: there is none so far. */
static bool copy_snapshot(struct live_metrics *metrics)
{
	unsigned before, after;

	do {
		before = atomic_load(&child_shared->version);
		memcpy(metrics, &child_shared->metrics, sizeof(*metrics));
		atomic_thread_fence(memory_order_acquire);
		after = atomic_load(&child_shared->version);
	} while (before != after || before & 1);
	return before > 0;
}

/* While windows are open the recording does not come round: after a while the last snapshot serves. */
static struct live_metrics *take_snapshot(void)
{
	unsigned wanted = atomic_fetch_add(&child_shared->asked, 1) + 1;
	uint64_t until_ts = monotonic_ns() + SNAPSHOT_NS;
	struct live_metrics *metrics;

	while ((int)(atomic_load(&child_shared->answered) - wanted) < 0 && monotonic_ns() < until_ts)
		sleep_ns(SNAPSHOT_STEP);
	metrics = malloc(sizeof(*metrics));
	if (metrics && copy_snapshot(metrics))
		return metrics;
	free(metrics);
	return NULL;
}

static enum MHD_Result respond(struct MHD_Connection *mhd, unsigned status, const char *type, char *text, size_t sz,
			       enum MHD_ResponseMemoryMode mode)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(sz, text, mode);
	enum MHD_Result ret;

	if (!response) {
		if (mode == MHD_RESPMEM_MUST_FREE)
			free(text);
		return MHD_NO;
	}
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	ret = MHD_queue_response(mhd, status, response);
	MHD_destroy_response(response);
	return ret;
}

static enum MHD_Result refuse(struct MHD_Connection *mhd, unsigned status, const char *why)
{
	return respond(mhd, status, "text/plain", (char *)why, strlen(why), MHD_RESPMEM_PERSISTENT);
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *mhd, const char *url, const char *method,
				  const char *version, const char *data, size_t *data_sz, void **context)
{
	enum live_format format =
		live_format_of(MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT));
	struct live_metrics *metrics;
	char *text;
	size_t sz;

	(void)cls;
	(void)version;
	(void)data;
	if (!*context) {
		*context = child_shared;
		return MHD_YES;
	}
	if (*data_sz) {
		*data_sz = 0;
		return MHD_YES;
	}
	if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
		return refuse(mhd, MHD_HTTP_METHOD_NOT_ALLOWED, "GET or HEAD\n");
	if (strcmp(url, "/metrics"))
		return refuse(mhd, MHD_HTTP_NOT_FOUND, "there is /metrics\n");
	metrics = take_snapshot();
	if (!metrics)
		return refuse(mhd, MHD_HTTP_SERVICE_UNAVAILABLE, "the recording has not begun\n");
	text = live_metrics__print(metrics, format, &sz);
	free(metrics);
	return text ? respond(mhd, MHD_HTTP_OK, live_content_type(format), text, sz, MHD_RESPMEM_MUST_FREE) : MHD_NO;
}

static int give_up_privilege(const struct passwd *user)
{
	if (!geteuid() && (setgroups(0, NULL) || setresgid(user->pw_gid, user->pw_gid, user->pw_gid) ||
			   setresuid(user->pw_uid, user->pw_uid, user->pw_uid)))
		return -errno;
	return capabilities_keep(NULL, 0);
}

static _Noreturn void serve(void)
{
	struct pollfd alive = {.fd = ALIVE_FD, .events = POLLIN};
	struct MHD_Daemon *daemon = MHD_start_daemon(
		MHD_USE_AUTO_INTERNAL_THREAD, 0, NULL, NULL, on_request, NULL, MHD_OPTION_LISTEN_SOCKET, LISTEN_FD,
		MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)POOL_BYTES,
		MHD_OPTION_CONNECTION_TIMEOUT, TIMEOUT_S, MHD_OPTION_END);

	if (!daemon) {
		log_error("--metrics: the HTTP server does not start");
		_exit(1);
	}
	while (poll(&alive, 1, -1) < 0 && errno == EINTR)
		;
	_exit(0);
}

static _Noreturn void run_child(int alive_fd, int listen_fd, const struct passwd *user)
{
	struct sandbox sandbox = {.network = true, .accepts_only = true, .threads = true, .writable_fds = {-1, -1, -1}};
	int err;

	/* What ends the recording ends us by its word, not by the terminal's. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_NAME, "whylate-metrics");
	setpriority(PRIO_PROCESS, 0, SERVER_NICE);
	/* Nothing of the recording's is ours: the two that are get numbers of their own first. */
	alive_fd = fcntl(alive_fd, F_DUPFD_CLOEXEC, 64);
	listen_fd = fcntl(listen_fd, F_DUPFD_CLOEXEC, 64);
	if (alive_fd < 0 || listen_fd < 0 || dup2(alive_fd, ALIVE_FD) < 0 || dup2(listen_fd, LISTEN_FD) < 0)
		_exit(1);
	close_range(LISTEN_FD + 1, ~0U, 0);
	err = give_up_privilege(user);
	if (!err)
		err = confine_enter(&sandbox, NULL, 0);
	if (err) {
		log_error("--metrics: the server cannot give up its privilege: %s", strerror(-err));
		_exit(1);
	}
	serve();
}

/* --- the recording's side ----------------------------------------------------------------------------------------- */

static int open_listener(const char *address, bool insecure, struct listener *listener)
{
	int err = listener__open(listener, address);

	if (err)
		log_error("--metrics: cannot listen on '%s': %s", address,
			  err == -EINVAL   ? "it wants ADDRESS:PORT"
			  : err == -ENOENT ? "there is no such host"
					   : strerror(-err));
	if (!err && !insecure && !listener->loopback) {
		close(listener->fd);
		log_error(
			"--metrics: anybody could read what is asked of this host at %s: say --metrics-insecure, or an "
			"address of loopback",
			listener->address);
		err = -EPERM;
	}
	return err;
}

static int start_child(struct metrics_server *server, int listen_fd)
{
	const struct passwd *user = getpwnam("whylate") ?: getpwnam("nobody");
	int ends[2];

	if (!user || pipe2(ends, O_CLOEXEC))
		return user ? -errno : -ENOENT;
	fflush(NULL);
	server->child = fork();
	if (!server->child) {
		child_shared = server->shared;
		run_child(ends[0], listen_fd, user);
	}
	close(ends[0]);
	server->alive_fd = ends[1];
	return server->child < 0 ? -errno : 0;
}

struct metrics_server *metrics_server__new(const char *address, bool insecure)
{
	struct metrics_server *server = calloc(1, sizeof(*server));
	void *shared = mmap(NULL, sizeof(*server->shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct listener listener = {.fd = -1};
	int err = server && shared != MAP_FAILED ? 0 : -ENOMEM;

	if (server) {
		server->shared = shared != MAP_FAILED ? shared : NULL;
		server->alive_fd = -1;
	}
	if (!err)
		err = open_listener(address, insecure, &listener);
	if (!err) {
		err = start_child(server, listener.fd);
		close(listener.fd);
		if (err)
			log_error("--metrics: cannot start the server: %s", strerror(-err));
		else
			log_info("metrics at http://%s/metrics", listener.address);
	}
	if (!err)
		return server;
	metrics_server__free(server);
	errno = -err;
	return NULL;
}

bool metrics_server__wants(const struct metrics_server *server)
{
	return atomic_load(&server->shared->asked) != atomic_load(&server->shared->answered);
}

void metrics_server__put(struct metrics_server *server, const struct live_metrics *metrics)
{
	unsigned asked = atomic_load(&server->shared->asked);

	atomic_fetch_add(&server->shared->version, 1);
	atomic_thread_fence(memory_order_seq_cst);
	memcpy(&server->shared->metrics, metrics, sizeof(*metrics));
	atomic_fetch_add(&server->shared->version, 1);
	atomic_store(&server->shared->answered, asked);
}

pid_t metrics_server__pid(const struct metrics_server *server)
{
	return server->child;
}

void metrics_server__free(struct metrics_server *server)
{
	if (!server)
		return;
	if (server->alive_fd >= 0)
		close(server->alive_fd);
	if (server->child > 0)
		waitpid(server->child, NULL, 0);
	if (server->shared)
		munmap(server->shared, sizeof(*server->shared));
	free(server);
}
