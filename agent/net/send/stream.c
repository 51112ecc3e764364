// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/send/stream.h"

#include "base/child.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/packet.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND_NS   1000000000ULL
#define RESTART_NS  (3 * SECOND_NS)
#define SAY_AGAIN_S 60
#define WAKE_FD     3 /* the child's only descriptor besides the standard ones, when it begins */

struct stream {
	struct stream_opts opts;
	struct spool *spool;
	struct spool_shared *shared;
	struct upload_process *upload; /* the child's, made before the fork; NULL: `whylate upload` sends */
	int shared_fd;                 /* of what `whylate upload` maps, too; -1 */
	int socket_fd;                 /* to it; -1: it is not there */
	int wake_fd;
	pid_t uploader;
	uint64_t started_ts; /* when it was, or was tried to be */
	uint64_t said_gone_ts;
	bool published;
	bool put;              /* something, since the uploader was woken last */
	bool put_fails;        /* said already */
	uint64_t said_dropped; /* bytes, when dropping was spoken of last */
	uint64_t said_ts;
	struct spool_stats last; /* of our session, kept beyond its end */
};

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* --- the uploader as a child -------------------------------------------------------------------------------------- */

static _Noreturn void run_child(const struct stream *stream, pid_t parent)
{
	int root_fd, err = child_unmap_shared(stream->shared);

	if (err) {
		log_error("the uploader cannot give up the recording's memory: %s", strerror(-err));
		_exit(1);
	}
	/* Nothing of the recording's is ours: the two that are get numbers of their own first. */
	root_fd = fcntl(spool__root_fd(stream->spool), F_DUPFD_CLOEXEC, 64);
	if (root_fd < 0 || dup2(stream->wake_fd, WAKE_FD) < 0 || dup2(root_fd, WAKE_FD + 1) < 0)
		_exit(1);
	close_range(WAKE_FD + 2, ~0U, 0);
	_exit(upload_process__run(stream->upload, parent, WAKE_FD + 1, WAKE_FD, stream->shared));
}

static int start_child(struct stream *stream)
{
	pid_t parent = getpid(), pid;

	fflush(stderr);
	pid = fork();
	if (!pid)
		run_child(stream, parent);
	if (pid < 0)
		return -errno;
	stream->uploader = pid;
	return 0;
}

static bool child_has_ended(struct stream *stream)
{
	int status;

	if (waitpid(stream->uploader, &status, WNOHANG) != stream->uploader)
		return false;
	if (!atomic_load(&stream->shared->stop_ts))
		log_warn("the uploader has ended (%s %d): another one is started",
			 WIFSIGNALED(status) ? "signal" : "status",
			 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	return true;
}

/* --- the uploader beside us --------------------------------------------------------------------------------------- */

/* The directory is the uploader's, who may have laid a link to another socket there. */
static int connect_to_spool(const struct stream *stream)
{
	int path_fd = openat(spool__root_fd(stream->spool), SPOOL_SOCKET, O_PATH | O_NOFOLLOW | O_CLOEXEC), fd, err;
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	if (path_fd < 0)
		return -errno;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d", path_fd);
	/* Whatever it is by now, it is that file. */
	err = fd < 0 || connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) ? -errno : 0;
	close(path_fd);
	if (!err)
		return fd;
	close_fd(fd);
	return err;
}

static int connect_uploader(struct stream *stream)
{
	const struct spool_hello hello = {.magic = SPOOL_HELLO_MAGIC, .shared_sz = sizeof(*stream->shared)};
	const int fds[] = {stream->shared_fd, stream->wake_fd};
	int fd = connect_to_spool(stream), err = 0;
	struct ucred peer = {0};
	socklen_t sz = sizeof(peer);

	if (fd < 0)
		return fd;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &sz))
		err = -errno;
	else if (packet_send(fd, &hello, sizeof(hello), fds, 2, 0) != sizeof(hello))
		err = -EPIPE;
	if (err) {
		close(fd);
		return err;
	}
	stream->socket_fd = fd;
	stream->uploader = peer.pid;
	return 0;
}

static bool peer_has_ended(struct stream *stream)
{
	if (!packet_peer_is_gone(stream->socket_fd))
		return false;
	close(stream->socket_fd);
	stream->socket_fd = -1;
	return true;
}

static void say_missing(struct stream *stream, const char *why)
{
	uint64_t now_ts = monotonic_ns();

	if (stream->said_gone_ts && now_ts - stream->said_gone_ts < SAY_AGAIN_S * SECOND_NS)
		return;
	log_warn("no uploader takes what is in the spool '%s' (%s): it waits for `whylate upload`",
		 stream->opts.spool_dir, why);
	stream->said_gone_ts = now_ts;
}

/* --- either ------------------------------------------------------------------------------------------------------- */

static int start_uploader(struct stream *stream)
{
	int err = stream->upload ? start_child(stream) : connect_uploader(stream);

	stream->started_ts = monotonic_ns();
	if (err && stream->upload)
		log_error("cannot start the uploader: %s", strerror(-err));
	else if (err)
		say_missing(stream, strerror(-err));
	/* Where it is another service, it may come later. */
	return stream->upload ? err : 0;
}

static bool uploader_has_ended(struct stream *stream)
{
	bool ended = stream->upload ? child_has_ended(stream) : peer_has_ended(stream);

	if (ended)
		stream->uploader = 0;
	return ended;
}

static void wake_uploader(const struct stream *stream)
{
	uint64_t one = 1;

	/* It cannot block: the counter does not fill up. */
	if (write(stream->wake_fd, &one, sizeof(one)) < 0)
		return;
}

pid_t stream__pid(const struct stream *stream)
{
	return stream->uploader;
}

/* --- the recording's side ----------------------------------------------------------------------------------------- */

static int open_spool(struct stream *stream)
{
	struct spool_opts opts = {
		.dir = stream->opts.spool_dir,
		.max_bytes = stream->opts.spool_max_bytes,
		.max_age_ns = stream->opts.spool_max_age_ns,
		.owner = upload_user(),
		.shared = stream->shared,
	};
	struct spool_stats stats;

	stream->spool = spool__new(&opts);
	if (!stream->spool) {
		int err = -errno;

		spool_root_say(opts.dir, opts.owner, err);
		return err;
	}
	spool__stats(stream->spool, &stats);
	if (stats.adopted_cnt)
		log_info("%" PRIu64 " earlier recording%s left %" PRIu64 " KiB in %s: to be sent now",
			 stats.adopted_cnt, stats.adopted_cnt == 1 ? "" : "s",
			 atomic_load(&stream->shared->used_bytes) / 1024, opts.dir);
	return 0;
}

/* For another service it is a file, which neither side can shorten under the other one. */
static int open_shared(struct stream *stream)
{
	const size_t sz = sizeof(*stream->shared);
	int fd = -1, flags = MAP_SHARED | MAP_ANONYMOUS;
	void *shared;

	if (!stream->opts.upload.url) {
		flags = MAP_SHARED;
		fd = stream->shared_fd = memfd_create("whylate-spool", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		if (fd < 0 || ftruncate(fd, (off_t)sz) ||
		    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
			return -errno;
	}
	shared = mmap(NULL, sz, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (shared == MAP_FAILED)
		return -errno;
	stream->shared = shared;
	stream->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	return stream->wake_fd < 0 ? -errno : 0;
}

struct stream *stream__new(const struct stream_opts *opts)
{
	struct stream *stream = calloc(1, sizeof(*stream));
	int err;

	if (!stream)
		return NULL;
	stream->opts = *opts;
	stream->shared_fd = stream->socket_fd = stream->wake_fd = -1;
	err = open_shared(stream);
	if (err)
		log_error("cannot stream: %s", strerror(-err));
	if (!err && opts->upload.url) {
		stream->upload = upload_process__new(&opts->upload);
		err = stream->upload ? 0 : -errno;
	}
	if (!err)
		err = open_spool(stream);
	if (!err)
		err = start_uploader(stream);
	if (!err)
		return stream;
	stream__free(stream);
	errno = -err;
	return NULL;
}

int stream__begin(struct stream *stream, const char *host, uint64_t session_id)
{
	int err = spool__begin(stream->spool, host, session_id);

	if (err)
		log_error("cannot begin a session in the spool directory '%s': %s", stream->opts.spool_dir,
			  strerror(-err));
	return err;
}

static char class_of(const struct stream *stream, const struct shard_block_header *header, bool baseline)
{
	if (!strcmp(header->table, "interval"))
		return baseline ? SPOOL_BASELINE : SPOOL_TAIL;
	/* What comes of these after the first ones are running totals. */
	if (stream->published && (!strcmp(header->table, "session") || !strcmp(header->table, "loss")))
		return SPOOL_TOTALS;
	return SPOOL_FACTS;
}

void stream__put(void *owner, const struct shard_block_header *header, bool baseline, const void *bytes, size_t sz)
{
	struct stream *stream = owner;
	char class = class_of(stream, header, baseline);
	uint32_t row_cnt = class == SPOOL_BASELINE || class == SPOOL_TAIL ? header->row_cnt : 0;
	int err = spool__put(stream->spool, class, row_cnt, bytes, sz);

	if (err && !stream->put_fails)
		log_warn("cannot write to the spool '%s': %s; the recording goes on without what does not fit, and "
			 "counts it",
			 stream->opts.spool_dir, strerror(-err));
	else if (!err && stream->put_fails)
		log_info("the spool '%s' can be written to again", stream->opts.spool_dir);
	stream->put_fails = err != 0;
	stream->put = true;
}

void stream__publish(struct stream *stream)
{
	spool__publish(stream->spool);
	stream->published = true;
	wake_uploader(stream);
}

void stream__abandon(struct stream *stream)
{
	spool__abandon(stream->spool);
}

/* Whoever ends it, the spool is as it was: another one goes on. */
static void look_after_uploader(struct stream *stream)
{
	if (stream->uploader > 0 && uploader_has_ended(stream) && !stream->upload &&
	    !atomic_load(&stream->shared->stop_ts))
		say_missing(stream, "it has ended");
	if (!stream->uploader && !atomic_load(&stream->shared->stop_ts) &&
	    monotonic_ns() - stream->started_ts >= RESTART_NS)
		start_uploader(stream);
}

static void say_dropped(struct stream *stream)
{
	uint64_t now_ts = monotonic_ns();
	struct spool_stats stats;

	spool__stats(stream->spool, &stats);
	if (stats.emitted)
		stream->last = stats;
	if (stats.dropped_bytes == stream->said_dropped ||
	    (stream->said_ts && now_ts - stream->said_ts < SAY_AGAIN_S * SECOND_NS))
		return;
	log_warn("the spool '%s' is full: %" PRIu64 " KiB were dropped, the baseline first, with %" PRIu64
		 " intervals of this recording so far",
		 stream->opts.spool_dir, stats.dropped_bytes / 1024, stats.lost);
	stream->said_dropped = stats.dropped_bytes;
	stream->said_ts = now_ts;
}

void stream__tick(struct stream *stream)
{
	/* Once for all that was put in one go: it leaves in one request. */
	if (stream->put)
		wake_uploader(stream);
	stream->put = false;
	look_after_uploader(stream);
	spool__tick(stream->spool, monotonic_ns());
	say_dropped(stream);
}

void stream__set_limits(struct stream *stream, uint64_t max_bytes, uint64_t max_age_ns)
{
	spool__set_limits(stream->spool, max_bytes, max_age_ns);
}

void stream__stats(const struct stream *stream, struct stream_stats *stats)
{
	const struct spool_shared *shared = stream->shared;

	*stats = (struct stream_stats){
		.sent_blocks = atomic_load(&shared->sent_blocks),
		.sent_bytes = atomic_load(&shared->sent_bytes),
		.duplicate_blocks = atomic_load(&shared->duplicate_blocks),
		.refused_blocks = atomic_load(&shared->refused_blocks),
		.emitted_rows = stream->last.emitted,
		.lost_rows = stream->last.lost,
		.waiting_bytes = atomic_load(&shared->used_bytes),
		.cpu_ns = atomic_load(&shared->cpu_ns),
	};
}

static void end_uploader(struct stream *stream, uint64_t until_ts)
{
	atomic_store(&stream->shared->stop_ts, monotonic_ns());
	wake_uploader(stream);
	while (stream->uploader > 0 && !uploader_has_ended(stream)) {
		if (monotonic_ns() >= until_ts) {
			if (!stream->upload)
				break;
			kill(stream->uploader, SIGKILL);
		}
		sleep_ns(5000000);
	}
	stream->uploader = 0;
}

void stream__finish(struct stream *stream, uint64_t linger_ns)
{
	uint64_t until_ts = monotonic_ns() + linger_ns;

	say_dropped(stream);
	spool__finish(stream->spool);
	wake_uploader(stream);
	while (!spool__is_done(stream->spool) && stream->uploader > 0 && monotonic_ns() < until_ts) {
		sleep_ns(20000000);
		look_after_uploader(stream);
		spool__tick(stream->spool, monotonic_ns());
		wake_uploader(stream);
	}
	end_uploader(stream, monotonic_ns() + SECOND_NS);
	/* What it refused or sent last. */
	spool__tick(stream->spool, monotonic_ns());
	say_dropped(stream);
}

void stream__free(struct stream *stream)
{
	if (!stream)
		return;
	if (stream->uploader > 0)
		end_uploader(stream, monotonic_ns() + SECOND_NS);
	upload_process__free(stream->upload);
	spool__free(stream->spool);
	if (stream->shared)
		munmap(stream->shared, sizeof(*stream->shared));
	close_fd(stream->shared_fd);
	close_fd(stream->socket_fd);
	close_fd(stream->wake_fd);
	free(stream);
}
