// SPDX-License-Identifier: GPL-2.0-or-later
#include "values/schema_child.h"

#include "base/clock.h"
#include "base/log.h"
#include "target/symbols_wire.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PACKET_SZ 65536U
/* An answer that has not come by then does not come: the machine may have other things to do. */
#define PATIENCE_NS (600 * 1000000000ULL)
#define LOOK_MS     50
#define ERRNO_MAX   4095

/* Before the bytes. */
struct result {
	uint64_t sz;
	uint32_t err, pad;
};

/* --- the process -------------------------------------------------------------------------------------------------- */

struct order {
	const struct value_schema_opts *opts;
	bool has_debug, is_checked;
};

static bool send_all(int socket_fd, const schema_bytes *bytes)
{
	for (size_t at = 0, part_sz; at < bytes->cnt; at += part_sz) {
		part_sz = bytes->cnt - at < PACKET_SZ ? bytes->cnt - at : PACKET_SZ;
		if (send(socket_fd, bytes->items + at, part_sz, MSG_NOSIGNAL) != (ssize_t)part_sz)
			return false;
	}
	return true;
}

static void build(int socket_fd, struct schema_binary *binary, const struct value_schema_opts *opts)
{
	struct value_schema schema;
	schema_bytes bytes = {0};
	struct result result;
	int err = value_schema_begin(&schema);

	if (!err)
		err = value_schema_build(&schema, binary, opts);
	if (!err)
		err = schema_bytes_make(&schema, &bytes);
	result = (struct result){.sz = err ? 0 : bytes.cnt, .err = (uint32_t)-err};
	if (send(socket_fd, &result, sizeof(result), MSG_NOSIGNAL) == sizeof(result) && !err)
		(void)send_all(socket_fd, &bytes);
}

/* The head, and when that is answered, the schema.  What it leaves behind ends with the process. */
static void run(int socket_fd, void *ctx)
{
	const struct order *order = ctx;
	struct value_schema_opts opts = *order->opts;
	struct schema_binary *binary;
	struct schema_head head;
	char go;
	int err = schema_binary__open(&binary, SYMBOLS_FIRST_FD, order->has_debug ? SYMBOLS_FIRST_FD + 1 : -1,
				      order->is_checked, &head);

	/* The agent ends this process instead. */
	opts.stop = NULL;
	if (send(socket_fd, &head, sizeof(head), MSG_NOSIGNAL) == sizeof(head) && !err &&
	    read(socket_fd, &go, sizeof(go)) == sizeof(go))
		build(socket_fd, binary, &opts);
}

/* --- the agent's side --------------------------------------------------------------------------------------------- */

int schema_head_check(const struct schema_head *head)
{
	if (head->err > ERRNO_MAX || memchr(head->build_id, '\0', sizeof(head->build_id)) == NULL ||
	    memchr(head->link, '\0', sizeof(head->link)) == NULL || strchr(head->link, '/'))
		return -EBADMSG;
	for (const char *digit = head->build_id; *digit; digit++)
		if (!isxdigit((unsigned char)*digit))
			return -EBADMSG;
	return 0;
}

/* The process's memory is not the agent's. */
static int error_of(uint32_t err)
{
	return err == ENOMEM ? -EFBIG : -(int)err;
}

/* It does not answer, or not as agreed: why. */
static int lost(struct symbols_child *child, int err)
{
	int status = symbols_child__end(child);

	if (err == -ECANCELED || err == -ENOMEM)
		return err;
	if (WIFEXITED(status) && WEXITSTATUS(status) == SYMBOLS_EXIT_UNCONFINED)
		return -EPERM;
	log_debug("whylate-symbols has ended (status 0x%x) while it read variables", status);
	return err == -ETIME || (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU) ? -ETIME : -EBADMSG;
}

/* One packet of exactly that size: 0 or -errno. */
static int receive(const struct symbols_child *child, const struct value_schema_opts *opts, void *buf, size_t sz)
{
	uint64_t begin_ts = monotonic_ns();
	struct pollfd pollfd = {.fd = child->socket_fd, .events = POLLIN};

	for (;;) {
		ssize_t got = recv(child->socket_fd, buf, sz, MSG_DONTWAIT | MSG_TRUNC);

		if (got >= 0)
			return got == (ssize_t)sz ? 0 : -EBADMSG;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		if (opts->stop && atomic_load(opts->stop))
			return -ECANCELED;
		if (monotonic_ns() - begin_ts > PATIENCE_NS)
			return -ETIME;
		poll(&pollfd, 1, LOOK_MS);
	}
}

static uint64_t file_sz(int fd)
{
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

int schema_child__begin(struct symbols_child *child, const struct value_schema_opts *opts, int fd, int debug_fd,
			bool is_checked, struct schema_head *head)
{
	struct order order = {.opts = opts, .has_debug = debug_fd >= 0, .is_checked = is_checked};
	/* libdw maps the files, a debug file twice. */
	const struct symbols_work work = {
		.run = run,
		.ctx = &order,
		.fds = {fd, debug_fd},
		.fd_cnt = debug_fd < 0 ? 1 : 2,
		.memory = SCHEMA_MEMORY + file_sz(fd) + 2 * file_sz(debug_fd),
		.cpu_s = SCHEMA_CPU_S,
	};
	int err = symbols_child__start_work(child, &work);

	if (err)
		return err;
	err = receive(child, opts, head, sizeof(*head));
	if (!err)
		err = schema_head_check(head);
	return err ? lost(child, err) : error_of(head->err);
}

int schema_child__finish(struct symbols_child *child, const struct value_schema_opts *opts, schema_bytes *bytes)
{
	struct result result = {0};
	int err = send(child->socket_fd, "g", 1, MSG_NOSIGNAL) == 1 ? 0 : -EPIPE;

	if (!err)
		err = receive(child, opts, &result, sizeof(result));
	if (!err && (result.sz > SCHEMA_SZ_MAX || result.err > ERRNO_MAX))
		err = -EBADMSG;
	if (!err && result.err) {
		symbols_child__end(child);
		return error_of(result.err);
	}
	if (!err)
		err = vec_reserve(bytes, result.sz);
	while (!err && bytes->cnt < result.sz) {
		uint64_t left = result.sz - bytes->cnt;
		size_t part_sz = left < PACKET_SZ ? left : PACKET_SZ;

		err = receive(child, opts, bytes->items + bytes->cnt, part_sz);
		bytes->cnt += err ? 0 : part_sz;
	}
	if (err)
		return lost(child, err);
	symbols_child__end(child);
	return 0;
}
