// SPDX-License-Identifier: GPL-2.0-or-later
/* The attaching process: see attacher.h. */
#include "base/capabilities.h"
#include "base/child.h"
#include "base/packet.h"
#include "base/sandbox.h"
#include "base/vec.h"
#include "capture/attacher.h"
#include "capture/attacher_wire.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SOCKET_FD CHILD_FIRST_FD
#define AGENT_FD  (CHILD_FIRST_FD + 1) /* the agent's pidfd */
/* The only files that it opens by name. */
#define UPROBE_DIR "/sys/bus/event_source/devices/uprobe"

struct held {
	uint32_t group, part;
	pid_t pid;
	int fd;
};

/* Links that a thread closes. */
struct closing {
	uint32_t ticket;
	pthread_t thread;
	bool has_thread;
	size_t cnt;
	int fds[];
};

static VEC(struct held) held;
static VEC(struct closing *) closings;
static pthread_mutex_t answering = PTHREAD_MUTEX_INITIALIZER;

/* An agent that is gone wants no answer. */
static void answer(const struct attach_answer *text)
{
	pthread_mutex_lock(&answering);
	if (send(SOCKET_FD, text, sizeof(*text), MSG_NOSIGNAL) < 0)
		shutdown(SOCKET_FD, SHUT_RDWR);
	pthread_mutex_unlock(&answering);
}

/* --- attaching ---------------------------------------------------------------------------------------------------- */

struct request {
	struct attach_question question;
	const struct attach_site *sites;
	char path[64]; /* of the file */
	int program_fd;
};

/* The link's descriptor, or -errno. */
static int link_multi(const struct request *request, size_t first, size_t cnt)
{
	unsigned long *offsets = calloc(cnt, 3 * sizeof(*offsets)), *semaphores;
	LIBBPF_OPTS(bpf_link_create_opts, opts, .uprobe_multi.path = request->path,
		    .uprobe_multi.flags = request->question.is_return ? BPF_F_UPROBE_MULTI_RETURN : 0,
		    .uprobe_multi.offsets = offsets, .uprobe_multi.cnt = (__u32)cnt,
		    .uprobe_multi.pid = (__u32)request->question.pid);
	__u64 *cookies;
	int fd;

	_Static_assert(sizeof(unsigned long) == sizeof(__u64), "64-bit machines only");
	if (!offsets)
		return -ENOMEM;
	semaphores = offsets + cnt;
	opts.uprobe_multi.cookies = cookies = (__u64 *)(offsets + 2 * cnt);
	for (size_t i = 0; i < cnt; i++) {
		offsets[i] = request->sites[first + i].file_off;
		semaphores[i] = request->sites[first + i].semaphore_off;
		cookies[i] = request->sites[first + i].cookie;
		if (semaphores[i])
			opts.uprobe_multi.ref_ctr_offsets = semaphores;
	}
	fd = bpf_link_create(request->program_fd, 0, BPF_TRACE_UPROBE_MULTI, &opts);
	fd = fd < 0 ? -errno : fd;
	free(offsets);
	return fd;
}

/* A number from a line of sysfs, behind the prefix; -1: there is none. */
static int read_number(const char *path, const char *prefix)
{
	FILE *file = fopen(path, "re");
	char line[64];
	int number = -1;

	if (file && fgets(line, sizeof(line), file) && !strncmp(line, prefix, strlen(prefix)) &&
	    sscanf(line + strlen(prefix), "%d", &number) != 1)
		number = -1;
	if (file)
		fclose(file);
	return number;
}

/* A perf event of its own; the link keeps it. */
static int link_single(const struct request *request, size_t idx)
{
	const struct attach_site *site = &request->sites[idx];
	int type = read_number(UPROBE_DIR "/type", ""), event_fd, fd, err;
	int return_bit = read_number(UPROBE_DIR "/format/retprobe", "config:");
	LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = site->cookie);
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = (uint32_t)type,
		.uprobe_path = (uint64_t)(uintptr_t)request->path,
		.probe_offset = site->file_off,
		/* The upper half, by definition of the uprobe events. */
		.config = site->semaphore_off << 32,
	};

	if (type < 0 || return_bit < 0)
		return -ENOTSUP;
	if (request->question.is_return)
		attr.config |= 1ULL << return_bit;
	event_fd = (int)syscall(SYS_perf_event_open, &attr, request->question.pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (event_fd < 0)
		return -errno;
	fd = bpf_link_create(request->program_fd, event_fd, BPF_PERF_EVENT, &opts);
	err = fd < 0 ? -errno : 0;
	if (!err && ioctl(event_fd, PERF_EVENT_IOC_ENABLE, 0)) {
		err = -errno;
		close(fd);
	}
	close(event_fd);
	return err ? err : fd;
}

static int hold(const struct request *request, int fd)
{
	struct held link = {request->question.group, request->question.part, request->question.pid, fd};

	if (fd < 0)
		return fd;
	if (!vec_push(&held, link))
		return 0;
	close(fd);
	return -ENOMEM;
}

/* Which of them it is that the kernel does not take; cnt: none by itself. */
static uint32_t find_refused(const struct request *request, int *err)
{
	uint32_t cnt = (uint32_t)request->question.cnt;

	for (uint32_t i = 0; i < cnt; i++) {
		int fd = link_multi(request, i, 1);

		if (fd < 0) {
			*err = fd;
			return i;
		}
		close(fd);
	}
	return cnt;
}

static struct attach_answer attach(const struct request *request)
{
	struct attach_answer reply = {.ask = ATTACH_ASK_ATTACH, .refused = (uint32_t)request->question.cnt};
	size_t held_before = held.cnt;

	if (request->question.multi) {
		reply.err = hold(request, link_multi(request, 0, request->question.cnt));
		/* A process that is gone is to blame for all of them. */
		if (reply.err && reply.err != -ESRCH)
			reply.refused = find_refused(request, &reply.err);
		return reply;
	}
	for (size_t i = 0; !reply.err && i < request->question.cnt; i++) {
		reply.err = hold(request, link_single(request, i));
		if (reply.err)
			reply.refused = (uint32_t)i;
	}
	while (reply.err && held.cnt > held_before)
		close(held.items[--held.cnt].fd);
	return reply;
}

/* The descriptors came with the question. */
static int take_attach(const struct attach_question *question, int program_fd, int file_fd)
{
	struct request request = {.question = *question, .program_fd = program_fd};
	struct attach_site *sites;
	struct attach_answer reply;
	int err;

	if (program_fd < 0 || file_fd < 0 || !question->cnt || question->cnt > ATTACH_SITES_MAX)
		return -EBADMSG;
	/* Without uprobe_multi, no process would mean this one. */
	if (question->pid <= 0 && !(question->part == ATTACH_WIDE && !question->pid && question->multi))
		return -EBADMSG;
	sites = calloc(question->cnt, sizeof(*sites));
	if (!sites)
		return -ENOMEM;
	err = attach_receive(SOCKET_FD, sites, question->cnt * sizeof(*sites));
	if (!err) {
		request.sites = sites;
		snprintf(request.path, sizeof(request.path), "/proc/self/fd/%d", file_fd);
		reply = attach(&request);
		answer(&reply);
	}
	free(sites);
	return err;
}

/* --- closing ------------------------------------------------------------------------------------------------------ */

static void *close_links(void *ctx)
{
	const struct closing *closing = ctx;
	const struct attach_answer reply = {.ask = ATTACH_ASK_CLOSE, .ticket = closing->ticket};

	for (size_t i = 0; i < closing->cnt; i++)
		close(closing->fds[i]);
	answer(&reply);
	return NULL;
}

static bool is_asked_for(const struct held *link, const struct held *which)
{
	return link->group == which->group && (!which->part || link->part == which->part) &&
	       (!which->pid || link->pid == which->pid);
}

/* Takes those of a group, part and process (0: any) out of what is held, the latest first. */
static struct closing *take_out(const struct held *which)
{
	struct closing *closing = calloc(1, sizeof(*closing) + held.cnt * sizeof(closing->fds[0]));
	size_t left = 0;

	if (!closing)
		return NULL;
	for (size_t i = held.cnt; i-- > 0;)
		if (is_asked_for(&held.items[i], which))
			closing->fds[closing->cnt++] = held.items[i].fd;
	for (size_t i = 0; i < held.cnt; i++)
		if (!is_asked_for(&held.items[i], which))
			held.items[left++] = held.items[i];
	held.cnt = left;
	return closing;
}

/* Without a thread for it this one waits; without memory the links are closed at the end. */
static int close_group(const struct held *which, uint32_t ticket)
{
	struct closing *closing = vec_reserve(&closings, 1) ? NULL : take_out(which);

	if (!closing)
		return -ENOMEM;
	closing->ticket = ticket;
	closing->has_thread = !pthread_create(&closing->thread, NULL, close_links, closing);
	if (!closing->has_thread)
		close_links(closing);
	closings.items[closings.cnt++] = closing;
	return 0;
}

static int take_close(const struct attach_question *question)
{
	const struct held which = {.group = question->group, .part = question->part, .pid = question->pid};

	return close_group(&which, question->ticket);
}

static void forget_done(bool wait)
{
	size_t left = 0;

	for (size_t i = 0; i < closings.cnt; i++) {
		struct closing *closing = closings.items[i];

		if (closing->has_thread &&
		    (wait ? pthread_join(closing->thread, NULL) : pthread_tryjoin_np(closing->thread, NULL)))
			closings.items[left++] = closing;
		else
			free(closing);
	}
	closings.cnt = left;
}

static void close_everything(void)
{
	while (held.cnt) {
		const struct held group = {.group = held.items[held.cnt - 1].group};

		if (close_group(&group, 0))
			break;
	}
	forget_done(true);
}

/* --- life --------------------------------------------------------------------------------------------------------- */

int attach_receive(int fd, void *data, size_t sz)
{
	for (size_t done = 0; done < sz;) {
		ssize_t got = recv(fd, (char *)data + done, sz - done, 0);

		if (!got)
			return -EPIPE;
		if (got < 0 && errno != EINTR)
			return -errno;
		done += got > 0 ? (size_t)got : 0;
	}
	return 0;
}

/* A question and the descriptors that come with its first byte. */
static int receive_question(struct attach_question *question, int fds[2])
{
	ssize_t got = packet_receive(SOCKET_FD, question, sizeof(*question), fds, 2, 0);

	if (got <= 0)
		return got ? (int)got : -EPIPE;
	return attach_receive(SOCKET_FD, (char *)question + got, sizeof(*question) - (size_t)got);
}

static int take_question(void)
{
	struct attach_question question = {0};
	int fds[2] = {-1, -1}, err = receive_question(&question, fds);

	if (!err && question.ask == ATTACH_ASK_ATTACH)
		err = take_attach(&question, fds[0], fds[1]);
	else if (!err && question.ask == ATTACH_ASK_CLOSE)
		err = take_close(&question);
	else if (!err)
		err = -EBADMSG;
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return err;
}

/* With more than it needs it works as well: what the kernel refuses here it refuses the agent too, which says so. */
static void confine(bool admin)
{
	static const cap_value_t needed[] = {CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN};
	int uprobe_fd = open(UPROBE_DIR, O_PATH | O_CLOEXEC), null_fd = open("/dev/null", O_PATH | O_CLOEXEC);
	const int readable_fds[] = {null_fd, uprobe_fd};
	const struct sandbox sandbox = {
		.threads = true,
		.links = true,
		.read_only = true,
		.writable_fds = {-1, -1, -1},
		.readable_fds = readable_fds,
		.readable_cnt = 2,
	};

	(void)capabilities_keep(needed, admin ? 3 : 2);
	(void)sandbox_enter(&sandbox);
	close(null_fd);
	close(uprobe_fd);
}

static void keep_to_itself(bool multi)
{
	static const int ignored[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGTSTP, SIGTTIN,
				      SIGTTOU, SIGPIPE, SIGUSR1, SIGUSR2, SIGALRM, SIGXFSZ};
	cap_t caps = cap_get_proc();
	/* It stands for the first two where somebody has given only that, and the kernel wants it for a perf uprobe. */
	bool admin = !multi || !capability_had(caps, CAP_BPF) || !capability_had(caps, CAP_PERFMON);
	struct rlimit limit;

	if (caps)
		cap_free(caps);
	setsid();
	prctl(PR_SET_NAME, "whylate-attach");
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	/* A link each for every process, file and kind of site. */
	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	confine(admin);
}

_Noreturn void attacher_process(int fd, pid_t agent_pid, bool multi)
{
	int agent_fd = (int)syscall(SYS_pidfd_open, agent_pid, 0);
	const int fds[] = {fd, agent_fd};
	struct pollfd watched[2] = {{.fd = SOCKET_FD, .events = POLLIN}, {.fd = AGENT_FD, .events = POLLIN}};

	/* Neither its terminal nor a file that somebody waits to be closed. */
	child_keep_fds(fds, 2);
	keep_to_itself(multi);
	/* Somebody else may have the agent's end of the socket; so the agent's end is waited for as well. */
	while (agent_fd >= 0) {
		int ready = poll(watched, 2, -1);

		if (ready < 0 && errno == EINTR)
			continue;
		if (ready < 0 || watched[1].revents || (watched[0].revents && take_question()))
			break;
		forget_done(false);
	}
	close_everything();
	_exit(0);
}
