// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/send/stream.h"

#include "base/capabilities.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/confine.h"
#include "base/log.h"
#include "base/user_file.h"
#include "net/send/uploader.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND_NS     1000000000ULL
#define IDLE_MS       1000
#define UPLOADER_NICE 10
#define RESTART_NS    (3 * SECOND_NS)
#define SAY_AGAIN_S   60
#define WAKE_FD       3 /* the child's only descriptor besides the standard ones, when it begins */

struct stream {
	struct stream_opts opts;
	struct spool *spool;
	struct spool_shared *shared;
	struct collectors collectors;
	/* The child's; made before the fork, so that their errors are the user's at once. */
	struct upload_client *clients[COLLECTORS_MAX];
	int wake_fd;
	pid_t child;
	uint64_t forked_ts;
	bool published;
	bool put;              /* something, since the uploader was woken last */
	bool put_fails;        /* said already */
	uint64_t said_dropped; /* bytes, when dropping was spoken of last */
	uint64_t said_ts;
	struct spool_stats last; /* of our session, kept beyond its end */
};

/* --- the uploader's process --------------------------------------------------------------------------------------- */

static struct spool_shared *child_shared;

static bool child_should_stop(void *owner)
{
	uint64_t stop_ts = atomic_load(&child_shared->stop_ts);

	(void)owner;
	return stop_ts && monotonic_ns() >= stop_ts;
}

/* Becomes the owner of the spool's directory, with no privilege and no way back to one. */
static int give_up_privilege(int root_fd)
{
	struct stat st;
	int err = 0;

	if (fstat(root_fd, &st))
		err = -errno;
	else if (!geteuid() && !st.st_uid)
		err = -EKEYREJECTED;
	else if (!geteuid() && (setgroups(0, NULL) || setresgid(st.st_gid, st.st_gid, st.st_gid) ||
				setresuid(st.st_uid, st.st_uid, st.st_uid)))
		err = -errno;
	return err ?: capabilities_keep(NULL, 0);
}

static void note_cpu(void)
{
	atomic_store(&child_shared->cpu_ns, process_cpu_ns());
}

static int wait_ms(uint64_t next_ts)
{
	uint64_t now_ts = monotonic_ns();

	if (next_ts <= now_ts)
		return 0;
	return next_ts - now_ts > IDLE_MS * 1000000ULL ? IDLE_MS : (int)((next_ts - now_ts) / 1000000 + 1);
}

static int upload(const struct stream *stream, int root_fd)
{
	struct uploader *uploader =
		uploader__new(stream->clients[0], stream->collectors.urls[0], root_fd, child_shared);
	struct pollfd wake = {.fd = WAKE_FD, .events = POLLIN};
	uint64_t next_ts = 0, wakes;

	if (!uploader)
		return 1;
	for (size_t i = 1; i < stream->collectors.cnt; i++)
		uploader__add(uploader, stream->clients[i], stream->collectors.urls[i]);
	while (!child_should_stop(NULL)) {
		next_ts = uploader__pass(uploader);
		note_cpu();
		if (poll(&wake, 1, wait_ms(next_ts)) > 0 && read(WAKE_FD, &wakes, sizeof(wakes)) < 0 && errno != EAGAIN)
			break;
	}
	uploader__free(uploader);
	return 0;
}

pid_t stream__pid(const struct stream *stream)
{
	return stream->child;
}

static void run_child(const struct stream *stream, pid_t parent)
{
	struct sandbox sandbox = {.network = true, .threads = true, .writable_fds = {WAKE_FD + 1, -1, -1}};
	int root_fd = spool__root_fd(stream->spool), err;

	/* What ends the recording ends us by its word, not by the terminal's. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_NAME, "whylate-upload");
	/* Blocks can wait, requests of the target cannot. */
	setpriority(PRIO_PROCESS, 0, UPLOADER_NICE);
	child_shared = stream->shared;
	err = child_unmap_shared(stream->shared);
	if (err) {
		log_error("the uploader cannot give up the recording's memory: %s", strerror(-err));
		_exit(1);
	}
	/* Nothing of the recording's is ours: the two that are get numbers of their own first. */
	root_fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 64);
	if (root_fd < 0 || dup2(stream->wake_fd, WAKE_FD) < 0 || dup2(root_fd, WAKE_FD + 1) < 0)
		_exit(1);
	close_range(WAKE_FD + 2, ~0U, 0);
	root_fd = WAKE_FD + 1;
	err = give_up_privilege(root_fd);
	if (err) {
		log_error("the uploader cannot give up its privilege: %s", strerror(-err));
		_exit(1);
	}
	/* Changing the user clears it, so it comes last. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	err = confine_enter(&sandbox, NULL, 0);
	if (err) {
		log_error("the uploader cannot be confined: %s", strerror(-err));
		_exit(1);
	}
	_exit(upload(stream, root_fd));
}

/* --- the recording's side ----------------------------------------------------------------------------------------- */

static int start_child(struct stream *stream)
{
	pid_t parent = getpid(), pid;

	fflush(stderr);
	pid = fork();
	if (!pid)
		run_child(stream, parent);
	if (pid < 0)
		return -errno;
	stream->child = pid;
	stream->forked_ts = monotonic_ns();
	return 0;
}

static void wake_child(const struct stream *stream)
{
	uint64_t one = 1;

	/* It cannot block: the counter does not fill up. */
	if (write(stream->wake_fd, &one, sizeof(one)) < 0)
		return;
}

/* Where there is a user for it; otherwise the one that owns nothing. */
static const char *spool_owner(void)
{
	return getpwnam("whylate") ? "whylate" : "nobody";
}

static int open_client(struct stream *stream)
{
	const struct stream_opts *opts = &stream->opts;
	struct upload_client_opts client_opts = {
		.cert_path = opts->cert_path,
		.key_path = opts->key_path,
		.ca_path = opts->ca_path,
		.token_path = opts->token_path,
		.should_stop = child_should_stop,
	};
	const char *what;
	int err = collectors__parse(&stream->collectors, opts->url, opts->host);

	if (err)
		return err;
	for (size_t i = 0; !err && i < stream->collectors.cnt; i++) {
		client_opts.url = stream->collectors.urls[i];
		stream->clients[i] = upload_client__new(&client_opts, &what);
		err = stream->clients[i] ? 0 : -errno;
	}
	if (!err)
		return 0;
	if (opts->token_path && what == opts->token_path && err == -EBADMSG)
		log_error("'%s' holds no token: 16 to 256 printable characters without blanks", what);
	else
		log_error("cannot read '%s': %s", what, user_file_why(err));
	return err;
}

static int open_spool(struct stream *stream)
{
	struct spool_opts opts = {
		.dir = stream->opts.spool_dir,
		.max_bytes = stream->opts.spool_max_bytes,
		.max_age_ns = stream->opts.spool_max_age_ns,
		.owner = spool_owner(),
		.shared = stream->shared,
	};
	struct spool_stats stats;

	stream->spool = spool__new(&opts);
	if (!stream->spool) {
		int err = -errno;

		if (err == -EKEYREJECTED)
			log_error("the spool directory '%s' is root's, and the uploader must not run as root: chown -R "
				  "%s '%s'",
				  opts.dir, opts.owner, opts.dir);
		else
			log_error("cannot use the spool directory '%s': %s (--spool names another one)", opts.dir,
				  strerror(-err));
		return err;
	}
	spool__stats(stream->spool, &stats);
	if (stats.adopted_cnt)
		log_info("%" PRIu64 " earlier recording%s left %" PRIu64 " KiB in %s: to be sent now",
			 stats.adopted_cnt, stats.adopted_cnt == 1 ? "" : "s",
			 atomic_load(&stream->shared->used_bytes) / 1024, opts.dir);
	return 0;
}

struct stream *stream__new(const struct stream_opts *opts)
{
	struct stream *stream = calloc(1, sizeof(*stream));
	void *shared = MAP_FAILED;
	int err = -ENOMEM;

	if (!stream)
		return NULL;
	stream->opts = *opts;
	stream->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	shared = mmap(NULL, sizeof(*stream->shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (stream->wake_fd < 0 || shared == MAP_FAILED) {
		log_error("cannot stream: %s", strerror(errno));
	} else {
		stream->shared = shared;
		err = open_client(stream);
		if (!err)
			err = open_spool(stream);
		if (!err) {
			err = start_child(stream);
			if (err)
				log_error("cannot start the uploader: %s", strerror(-err));
		}
	}
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
	wake_child(stream);
}

void stream__abandon(struct stream *stream)
{
	spool__abandon(stream->spool);
}

/* Whoever ends it, the spool is as it was: another one goes on. */
static void look_after_child(struct stream *stream)
{
	int status;

	if (stream->child > 0 && waitpid(stream->child, &status, WNOHANG) == stream->child) {
		stream->child = 0;
		if (!atomic_load(&stream->shared->stop_ts))
			log_warn("the uploader has ended (%s %d): another one is started",
				 WIFSIGNALED(status) ? "signal" : "status",
				 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	}
	if (!stream->child && !atomic_load(&stream->shared->stop_ts) &&
	    monotonic_ns() - stream->forked_ts >= RESTART_NS)
		start_child(stream);
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
		wake_child(stream);
	stream->put = false;
	look_after_child(stream);
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

static void end_child(struct stream *stream, uint64_t until_ts)
{
	atomic_store(&stream->shared->stop_ts, monotonic_ns());
	wake_child(stream);
	while (stream->child > 0 && !waitpid(stream->child, NULL, WNOHANG)) {
		if (monotonic_ns() >= until_ts)
			kill(stream->child, SIGKILL);
		sleep_ns(5000000);
	}
	stream->child = 0;
}

void stream__finish(struct stream *stream, uint64_t linger_ns)
{
	uint64_t until_ts = monotonic_ns() + linger_ns;

	say_dropped(stream);
	spool__finish(stream->spool);
	wake_child(stream);
	while (!spool__is_done(stream->spool) && stream->child > 0 && monotonic_ns() < until_ts) {
		sleep_ns(20000000);
		look_after_child(stream);
		spool__tick(stream->spool, monotonic_ns());
		wake_child(stream);
	}
	end_child(stream, monotonic_ns() + SECOND_NS);
	/* What it refused or sent last. */
	spool__tick(stream->spool, monotonic_ns());
	say_dropped(stream);
}

void stream__free(struct stream *stream)
{
	if (!stream)
		return;
	if (stream->child > 0)
		end_child(stream, monotonic_ns() + SECOND_NS);
	for (size_t i = 0; i < stream->collectors.cnt; i++)
		upload_client__free(stream->clients[i]);
	collectors__free(&stream->collectors);
	spool__free(stream->spool);
	if (stream->shared)
		munmap(stream->shared, sizeof(*stream->shared));
	if (stream->wake_fd >= 0)
		close(stream->wake_fd);
	free(stream);
}
