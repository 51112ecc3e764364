// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/debug_server.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/packet.h"
#include "target/elf_reader.h"
#include "target/symbols_child.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECOND_NS 1000000000ULL
/* Of memory, beyond what it begins with: TLS and the threads that resolve names. */
#define FETCH_MEMORY (512UL << 20)
#define FETCH_CPU_S  60
/* An answer that has not come by then does not come; DEBUGINFOD_MAXTIME is less. */
#define PATIENCE_NS (90 * SECOND_NS)
/* An answer is kept for so long at least for the thread that may not wait for it. */
#define KEPT_NS (2 * SECOND_NS)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
	pid_t owner; /* a process that was forked leaves its parent's child alone */
	struct symbols_child child;
	char build_id[ELF_ROWS_BUILD_ID_HEX]; /* "": nothing is asked for */
	bool is_answered;
	int fd;      /* the answer: -1: none */
	uint64_t ts; /* of the question, then of the answer */
} fetch = {.child = SYMBOLS_CHILD_NONE, .fd = -1};

/* --- servers ------------------------------------------------------------------------------------------------------ */

/* "ima:enforcing" and the like: not a server, but how its answers are checked. */
static bool is_web_url(const char *url)
{
	return !strncasecmp(url, "http://", 7) || !strncasecmp(url, "https://", 8) || !strncmp(url, "ima:", 4);
}

/*
 * Leaves only http and https in DEBUGINFOD_URLS: libcurl would copy a file:// URL from this machine.  False: no server
 * is left.
 */
static bool servers_named(void)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	char *all = urls ? strdup(urls) : NULL, *kept = urls ? calloc(1, strlen(urls) + 2) : NULL, *rest = NULL;
	bool named = false, dropped = false;

	for (char *url = all && kept ? strtok_r(all, " ", &rest) : NULL; url; url = strtok_r(NULL, " ", &rest)) {
		if (is_web_url(url)) {
			named |= strncmp(url, "ima:", 4) != 0;
			strcat(strcat(kept, url), " ");
			continue;
		}
		log_warn("DEBUGINFOD_URLS: '%s' is neither http:// nor https://: this server is not asked", url);
		dropped = true;
	}
	if (dropped && setenv("DEBUGINFOD_URLS", kept, 1))
		named = false;
	free(kept);
	free(all);
	return named;
}

/*
 * A server that answers slowly delays the names of one file by this: seconds without 100 kB, seconds in all.  The
 * user's own settings hold.  (With DEBUGINFOD_MAXSIZE the library of elfutils 0.188 loses 8 KiB a request.)
 */
static void bound_servers(void)
{
	setenv("DEBUGINFOD_TIMEOUT", "5", 0);
	setenv("DEBUGINFOD_MAXTIME", "10", 0);
}

/* --- whylate-fetch ------------------------------------------------------------------------------------------------ */

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st;
	(void)kind;
	(void)ftw;
	return remove(path);
}

static int ask_once(void *library, const char *build_id)
{
	void *(*begin)(void);
	int (*find)(void *, const unsigned char *, int, char **);
	void *client;

	*(void **)&begin = dlsym(library, "debuginfod_begin");
	*(void **)&find = dlsym(library, "debuginfod_find_debuginfo");
	client = begin && find ? begin() : NULL;
	/* A length of 0 says that the build id is hexadecimal text. */
	return client ? find(client, (const unsigned char *)build_id, 0, NULL) : -ENOSYS;
}

/* Root without capabilities may not write to the cache of the user whose environment it has. */
static int ask_without_cache(void *library, const char *build_id)
{
	char dir[] = "/tmp/whylate-fetch-XXXXXX";
	int fd;

	if (!mkdtemp(dir) || setenv("DEBUGINFOD_CACHE_PATH", dir, 1))
		return -errno;
	fd = ask_once(library, build_id);
	nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	return fd;
}

/* The library is opened by name: few have it, and the servers are asked only where the user has named them. */
static void run(int socket_fd, void *ctx)
{
	const char *build_id = ctx;
	void *library;
	int32_t err;
	int fd;

	bound_servers();
	library = dlopen("libdebuginfod.so.1", RTLD_LAZY | RTLD_LOCAL);
	fd = library ? ask_once(library, build_id) : -ELIBACC;
	if (fd == -EACCES || fd == -EPERM)
		fd = ask_without_cache(library, build_id);
	err = fd < 0 ? -fd : 0;
	(void)packet_send(socket_fd, &err, sizeof(err), &fd, fd >= 0, 0);
}

/* --- the agent's side --------------------------------------------------------------------------------------------- */

static void forget(void)
{
	if (fetch.owner == getpid())
		symbols_child__end(&fetch.child);
	else if (fetch.child.socket_fd >= 0)
		close(fetch.child.socket_fd);
	fetch.child.socket_fd = -1;
	if (fetch.fd >= 0)
		close(fetch.fd);
	fetch.fd = -1;
	fetch.build_id[0] = '\0';
	fetch.is_answered = false;
	fetch.owner = getpid();
}

static int start(const char *build_id)
{
	const struct symbols_work work = {
		.run = run, .ctx = fetch.build_id, .fetches = true, .memory = FETCH_MEMORY, .cpu_s = FETCH_CPU_S};

	if (snprintf(fetch.build_id, sizeof(fetch.build_id), "%s", build_id) >= (int)sizeof(fetch.build_id))
		return -EINVAL;
	fetch.ts = monotonic_ns();
	return symbols_child__start_work(&fetch.child, &work);
}

static void take_answer(void)
{
	int32_t err = EPIPE;
	struct stat st;

	(void)packet_receive(fetch.child.socket_fd, &err, sizeof(err), &fetch.fd, 1, MSG_DONTWAIT);
	if (fetch.fd >= 0 && (fstat(fetch.fd, &st) || !S_ISREG(st.st_mode))) {
		close(fetch.fd);
		fetch.fd = -1;
	}
	if (err == ELIBACC)
		log_debug("DEBUGINFOD_URLS is set, but libdebuginfod.so.1 is not installed: no server is asked");
	symbols_child__end(&fetch.child);
	fetch.is_answered = true;
	fetch.ts = monotonic_ns();
}

/* True: the answer is there, or does not come. */
static bool await(bool may_wait)
{
	struct pollfd pollfd = {.fd = fetch.child.socket_fd, .events = POLLIN};

	while (!fetch.is_answered) {
		uint64_t waited_ns = monotonic_ns() - fetch.ts;

		if (waited_ns >= PATIENCE_NS || poll(&pollfd, 1, may_wait ? 1000 : 0) > 0)
			take_answer();
		else if (!may_wait)
			return false;
	}
	return true;
}

static int find(const char *build_id, bool may_wait)
{
	int err = 0, fd;

	/* Another file is fetched, or its answer is kept. */
	if (fetch.build_id[0] && strcmp(fetch.build_id, build_id)) {
		if (!await(may_wait) || (!may_wait && monotonic_ns() - fetch.ts < KEPT_NS))
			return -EAGAIN;
		forget();
	}
	if (may_wait && fetch.is_answered)
		forget();
	if (!fetch.build_id[0])
		err = start(build_id);
	if (!err && !await(may_wait))
		return -EAGAIN;
	fd = err || fetch.fd < 0 ? -1 : fcntl(fetch.fd, F_DUPFD_CLOEXEC, 0);
	/* Who may not wait may come again, for what is to be read of the file. */
	if (may_wait || fd < 0)
		forget();
	return fd < 0 ? -ENOENT : fd;
}

int debug_server_find(const char *build_id)
{
	bool may_wait = elf_reader_may_wait();
	int fd = -ENOENT;

	if (!*build_id || !getenv("DEBUGINFOD_URLS"))
		return -ENOENT;
	if (may_wait ? pthread_mutex_lock(&mutex) : pthread_mutex_trylock(&mutex))
		return -EAGAIN;
	if (fetch.owner != getpid())
		forget();
	if (servers_named())
		fd = find(build_id, may_wait);
	pthread_mutex_unlock(&mutex);
	return fd;
}
