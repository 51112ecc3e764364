// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/send/upload_process.h"

#include "base/capabilities.h"
#include "base/clock.h"
#include "base/confine.h"
#include "base/log.h"
#include "base/packet.h"
#include "base/user_file.h"
#include "net/send/spool.h"
#include "net/send/uploader.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define IDLE_NS       1000000000ULL
#define UPLOADER_NICE 10
#define FEEDS_MAX     64 /* recordings at a time; others wait */

/* One recording. */
struct upload_feed {
	int socket_fd; /* closed with the recording; -1: our parent, whose end is ours */
	int wake_fd;
	struct spool_shared *shared;
	struct uploader *uploader;
	uint64_t next_ts; /* when its spool is looked at if nothing wakes us */
};

struct upload_process {
	struct collectors collectors;
	struct upload_client *clients[COLLECTORS_MAX];
	int root_fd;
	int listen_fd; /* -1: a child */
	struct upload_feed feeds[FEEDS_MAX];
	size_t feed_cnt;
	const struct upload_feed *sending;
};

static volatile sig_atomic_t told_to_end;

/* --- where to ----------------------------------------------------------------------------------------------------- */

static bool feed_is_over(const struct upload_feed *feed)
{
	uint64_t stop_ts = atomic_load(&feed->shared->stop_ts);

	/* A recording that was killed: the next one takes its session over. */
	if (!stop_ts && feed->socket_fd >= 0 && packet_peer_is_gone(feed->socket_fd))
		atomic_store(&feed->shared->stop_ts, stop_ts = 1);
	return stop_ts && monotonic_ns() >= stop_ts;
}

static bool should_stop(void *owner)
{
	const struct upload_process *process = owner;

	return told_to_end || (process->sending && feed_is_over(process->sending));
}

static int open_clients(struct upload_process *process, const struct upload_opts *opts)
{
	struct upload_client_opts client_opts = {
		.cert_path = opts->cert_path,
		.key_path = opts->key_path,
		.ca_path = opts->ca_path,
		.token_path = opts->token_path,
		.should_stop = should_stop,
		.owner = process,
	};
	const char *what;
	int err = collectors__parse(&process->collectors, opts->url, opts->host);

	if (err)
		return err;
	for (size_t i = 0; !err && i < process->collectors.cnt; i++) {
		client_opts.url = process->collectors.urls[i];
		process->clients[i] = upload_client__new(&client_opts, &what);
		err = process->clients[i] ? 0 : -errno;
	}
	if (!err)
		return 0;
	if (opts->token_path && what == opts->token_path && err == -EBADMSG)
		log_error("'%s' holds no token: 16 to 256 printable characters without blanks", what);
	else
		log_error("cannot read '%s': %s", what, user_file_why(err));
	return err;
}

struct upload_process *upload_process__new(const struct upload_opts *opts)
{
	struct upload_process *process = calloc(1, sizeof(*process));
	int err;

	if (!process)
		return NULL;
	process->root_fd = process->listen_fd = -1;
	err = open_clients(process, opts);
	if (!err)
		return process;
	upload_process__free(process);
	errno = -err;
	return NULL;
}

static void end_feed(struct upload_process *process, struct upload_feed *feed)
{
	uploader__free(feed->uploader);
	if (feed->socket_fd >= 0) {
		munmap(feed->shared, sizeof(*feed->shared));
		close(feed->wake_fd);
		close(feed->socket_fd);
	}
	*feed = process->feeds[--process->feed_cnt];
}

void upload_process__free(struct upload_process *process)
{
	if (!process)
		return;
	while (process->feed_cnt)
		end_feed(process, &process->feeds[process->feed_cnt - 1]);
	for (size_t i = 0; i < process->collectors.cnt; i++)
		upload_client__free(process->clients[i]);
	collectors__free(&process->collectors);
	if (process->listen_fd >= 0)
		close(process->listen_fd);
	free(process);
}

/* --- privilege ---------------------------------------------------------------------------------------------------- */

const char *upload_user(void)
{
	return getpwnam("whylate") ? "whylate" : "nobody";
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

static int confine(int root_fd)
{
	struct sandbox sandbox = {.network = true, .threads = true, .writable_fds = {root_fd, -1, -1}};
	int err = confine_enter(&sandbox, NULL, 0);

	if (err)
		log_error("the uploader cannot be confined: %s", strerror(-err));
	return err;
}

static int become_uploader(int root_fd)
{
	int err;

	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_NAME, "whylate-upload");
	/* Blocks can wait, requests of the target cannot. */
	setpriority(PRIO_PROCESS, 0, UPLOADER_NICE);
	err = give_up_privilege(root_fd);
	if (err)
		log_error("the uploader cannot give up its privilege: %s", strerror(-err));
	return err;
}

/* --- sending ------------------------------------------------------------------------------------------------------ */

static int add_feed(struct upload_process *process, const struct upload_feed *given)
{
	struct upload_feed *feed = &process->feeds[process->feed_cnt];
	const struct collectors *collectors = &process->collectors;

	*feed = *given;
	feed->uploader = uploader__new(process->clients[0], collectors->urls[0], process->root_fd, feed->shared);
	if (!feed->uploader)
		return -ENOMEM;
	for (size_t i = 1; i < collectors->cnt; i++)
		uploader__add(feed->uploader, process->clients[i], collectors->urls[i]);
	process->feed_cnt++;
	return 0;
}

static void pass_feed(struct upload_process *process, struct upload_feed *feed)
{
	uint64_t before_ns = process_cpu_ns(), next_ts, idle_ts;

	process->sending = feed;
	next_ts = uploader__pass(feed->uploader);
	process->sending = NULL;
	idle_ts = monotonic_ns() + IDLE_NS;
	feed->next_ts = next_ts < idle_ts ? next_ts : idle_ts;
	atomic_fetch_add(&feed->shared->cpu_ns, process_cpu_ns() - before_ns);
}

static void pass_all(struct upload_process *process)
{
	for (size_t i = process->feed_cnt; i-- > 0 && !told_to_end;) {
		struct upload_feed *feed = &process->feeds[i];

		if (feed_is_over(feed))
			end_feed(process, feed);
		else if (monotonic_ns() >= feed->next_ts)
			pass_feed(process, feed);
	}
}

static int map_shared(int fd, struct spool_shared **shared)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);
	void *mapped;

	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st) || st.st_size < (off_t)sizeof(**shared))
		return -EBADMSG;
	mapped = mmap(NULL, sizeof(**shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mapped == MAP_FAILED)
		return -errno;
	*shared = mapped;
	return 0;
}

/* Only the spool's owner and root can connect: it says at once what it has. */
static void take_recording(struct upload_process *process)
{
	const struct timeval patience = {.tv_sec = 1};
	struct upload_feed feed = {.socket_fd = accept4(process->listen_fd, NULL, NULL, SOCK_CLOEXEC)};
	struct spool_hello hello = {0};
	int fds[2] = {-1, -1}, err = -EBADMSG;
	ssize_t got;

	if (feed.socket_fd < 0)
		return;
	setsockopt(feed.socket_fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	got = packet_receive(feed.socket_fd, &hello, sizeof(hello), fds, 2, 0);
	if (got == sizeof(hello) && !memcmp(hello.magic, SPOOL_HELLO_MAGIC, sizeof(hello.magic)) &&
	    hello.shared_sz == sizeof(*feed.shared) && fds[0] >= 0 && fds[1] >= 0)
		err = map_shared(fds[0], &feed.shared);
	feed.wake_fd = fds[1];
	if (!err)
		err = add_feed(process, &feed);
	if (fds[0] >= 0)
		close(fds[0]);
	if (!err)
		return;
	if (got)
		log_warn("a recording cannot be sent: %s",
			 err == -EBADMSG ? "it is of another version of whylate" : strerror(-err));
	if (feed.shared)
		munmap(feed.shared, sizeof(*feed.shared));
	if (feed.wake_fd >= 0)
		close(feed.wake_fd);
	close(feed.socket_fd);
}

static int wait_ms(uint64_t next_ts)
{
	uint64_t now_ts = monotonic_ns();

	return next_ts <= now_ts ? 0 : (int)((next_ts - now_ts) / 1000000 + 1);
}

static void wait_for_work(struct upload_process *process)
{
	struct pollfd fds[1 + 2 * FEEDS_MAX] = {
		{.fd = process->feed_cnt < FEEDS_MAX ? process->listen_fd : -1, .events = POLLIN}};
	uint64_t next_ts = monotonic_ns() + IDLE_NS, wakes;

	for (size_t i = 0; i < process->feed_cnt; i++) {
		const struct upload_feed *feed = &process->feeds[i];

		fds[1 + 2 * i] = (struct pollfd){.fd = feed->wake_fd, .events = POLLIN};
		fds[2 + 2 * i] = (struct pollfd){.fd = feed->socket_fd, .events = POLLIN};
		next_ts = feed->next_ts < next_ts ? feed->next_ts : next_ts;
	}
	if (poll(fds, 1 + 2 * process->feed_cnt, wait_ms(next_ts)) <= 0)
		return;
	for (size_t i = 0; i < process->feed_cnt; i++) {
		struct upload_feed *feed = &process->feeds[i];

		if (fds[1 + 2 * i].revents)
			feed->next_ts = 0;
		/* A recording says nothing after its first packet: it is gone. */
		if (fds[2 + 2 * i].revents ||
		    (fds[1 + 2 * i].revents && read(feed->wake_fd, &wakes, sizeof(wakes)) < 0 && errno != EAGAIN))
			atomic_store(&feed->shared->stop_ts, 1);
	}
	if (fds[0].revents)
		take_recording(process);
}

static void send_all(struct upload_process *process)
{
	while (!told_to_end && (process->feed_cnt || process->listen_fd >= 0)) {
		pass_all(process);
		if (process->feed_cnt || process->listen_fd >= 0)
			wait_for_work(process);
	}
}

int upload_process__run(struct upload_process *process, pid_t parent, int root_fd, int wake_fd,
			struct spool_shared *shared)
{
	const struct upload_feed feed = {.socket_fd = -1, .wake_fd = wake_fd, .shared = shared};

	/* What ends the recording ends us by its word, not by the terminal's. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	process->root_fd = root_fd;
	if (become_uploader(root_fd))
		return 1;
	/* Changing the user clears it, so it comes after that. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || confine(root_fd) || add_feed(process, &feed))
		return 1;
	send_all(process);
	return 0;
}

/* --- whylate upload ----------------------------------------------------------------------------------------------- */

static void on_end(int signal_no)
{
	(void)signal_no;
	told_to_end = 1;
}

/* From within the directory, whose path may be too long for an address.  The socket of one that was killed goes. */
static int listen_in(int root_fd)
{
	const struct sockaddr_un addr = {.sun_family = AF_UNIX, .sun_path = SPOOL_SOCKET};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err;

	if (fd < 0)
		return -errno;
	umask(0177);
	unlinkat(root_fd, SPOOL_SOCKET, 0);
	if (!fchdir(root_fd) && !bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) && !listen(fd, FEEDS_MAX))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

int upload_process__serve(struct upload_process *process, const char *dir)
{
	const struct sigaction action = {.sa_handler = on_end};
	struct stat st;
	int err;

	process->root_fd = spool_root_open(dir, upload_user(), &st);
	if (process->root_fd < 0) {
		spool_root_say(dir, upload_user(), process->root_fd);
		return process->root_fd;
	}
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	err = become_uploader(process->root_fd);
	if (!err && flock(process->root_fd, LOCK_EX | LOCK_NB)) {
		err = -errno;
		log_error("another uploader sends from '%s'", dir);
	}
	if (!err) {
		process->listen_fd = listen_in(process->root_fd);
		err = process->listen_fd < 0 ? process->listen_fd : 0;
		if (err)
			log_error("cannot listen in '%s': %s", dir, strerror(-err));
	}
	if (!err)
		err = confine(process->root_fd);
	if (!err) {
		log_info("sending what recordings put into '%s'", dir);
		send_all(process);
		unlinkat(process->root_fd, SPOOL_SOCKET, 0);
	}
	close(process->root_fd);
	return err;
}
