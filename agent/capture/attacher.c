// SPDX-License-Identifier: GPL-2.0-or-later
/* The agent's side of the attaching process. */
#include "capture/attacher.h"

#include "base/clock.h"
#include "base/packet.h"
#include "base/vec.h"
#include "capture/attacher_wire.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct attacher {
	int fd; /* -1: the process is gone */
	pid_t pid;
	uint32_t last_ticket;
	VEC(uint32_t) closing; /* tickets */
};

struct attacher *attacher__new(bool multi)
{
	struct attacher *attacher = calloc(1, sizeof(*attacher));
	pid_t agent_pid = getpid();
	int fds[2], err;

	if (!attacher)
		return NULL;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds)) {
		free(attacher);
		return NULL;
	}
	attacher->fd = fds[0];
	attacher->pid = fork();
	if (!attacher->pid)
		attacher_process(fds[1], agent_pid, multi);
	err = errno;
	close(fds[1]);
	if (attacher->pid > 0)
		return attacher;
	close(fds[0]);
	free(attacher);
	errno = err;
	return NULL;
}

/* What it held is closed by its end, whatever it was asked before. */
static int lost(struct attacher *attacher)
{
	if (attacher->fd >= 0)
		close(attacher->fd);
	attacher->fd = -1;
	attacher->closing.cnt = 0;
	return -EOWNERDEAD;
}

static void take_closed(struct attacher *attacher, uint32_t ticket)
{
	vec_take_out(&attacher->closing, ticket);
}

/* Takes answers as long as there are any, for at most timeout_ms until the first: how many, or -EOWNERDEAD. */
static int take_answers(struct attacher *attacher, int timeout_ms)
{
	int cnt = 0;

	while (attacher->fd >= 0) {
		struct pollfd pollfd = {.fd = attacher->fd, .events = POLLIN};
		struct attach_answer answer = {0};
		int ready = poll(&pollfd, 1, cnt ? 0 : timeout_ms);

		if (ready <= 0)
			return cnt;
		if (attach_receive(attacher->fd, &answer, sizeof(answer)))
			return lost(attacher);
		take_closed(attacher, answer.ticket);
		cnt++;
	}
	return -EOWNERDEAD;
}

static int send_all(struct attacher *attacher, const void *data, size_t sz)
{
	for (size_t done = 0; done < sz;) {
		ssize_t sent = send(attacher->fd, (const char *)data + done, sz - done, MSG_NOSIGNAL);

		if (sent < 0 && errno != EINTR)
			return lost(attacher);
		done += sent > 0 ? (size_t)sent : 0;
	}
	return 0;
}

static int ask_to_attach(struct attacher *attacher, const struct attach_sites *sites)
{
	struct attach_question question = {
		.ask = ATTACH_ASK_ATTACH,
		.group = sites->group,
		.part = sites->part,
		.pid = sites->pid,
		.is_return = sites->is_return,
		.multi = sites->multi,
		.cnt = sites->cnt,
	};
	const int fds[2] = {sites->program_fd, sites->file_fd};
	ssize_t sent = packet_send(attacher->fd, &question, sizeof(question), fds, 2, 0);
	int err;

	if (sent < 0)
		return lost(attacher);
	err = send_all(attacher, (char *)&question + sent, sizeof(question) - (size_t)sent);
	return err ? err : send_all(attacher, sites->sites, sites->cnt * sizeof(*sites->sites));
}

int attacher__attach(struct attacher *attacher, const struct attach_sites *sites, size_t *refused)
{
	struct attach_answer answer = {0};
	int err;

	*refused = sites->cnt;
	if (take_answers(attacher, 0) < 0)
		return -EOWNERDEAD;
	if (!sites->cnt || sites->cnt > ATTACH_SITES_MAX)
		return -EINVAL;
	err = ask_to_attach(attacher, sites);
	while (!err) {
		if (attach_receive(attacher->fd, &answer, sizeof(answer)))
			return lost(attacher);
		if (answer.ask == ATTACH_ASK_ATTACH)
			break;
		take_closed(attacher, answer.ticket);
	}
	if (err)
		return err;
	*refused = answer.refused < sites->cnt ? answer.refused : sites->cnt;
	return answer.err > 0 ? -EBADMSG : answer.err;
}

uint32_t attacher__close(struct attacher *attacher, uint32_t group, enum attach_part part, pid_t pid)
{
	struct attach_question question = {.ask = ATTACH_ASK_CLOSE, .group = group, .part = part, .pid = pid};

	/* Without room to remember the ticket, what is asked for is done, and taken for done. */
	if (take_answers(attacher, 0) < 0)
		return 0;
	attacher->last_ticket += attacher->last_ticket == UINT32_MAX ? 2 : 1;
	question.ticket = attacher->last_ticket;
	if (send_all(attacher, &question, sizeof(question)) || vec_push(&attacher->closing, question.ticket))
		return 0;
	return question.ticket;
}

bool attacher__is_closing(struct attacher *attacher, uint32_t ticket)
{
	take_answers(attacher, 0);
	for (size_t i = 0; i < attacher->closing.cnt; i++)
		if (attacher->closing.items[i] <= ticket)
			return true;
	return false;
}

size_t attacher__closing(struct attacher *attacher, uint64_t patience_ns)
{
	uint64_t deadline_ts = monotonic_ns() + patience_ns;

	take_answers(attacher, 0);
	while (attacher->closing.cnt) {
		uint64_t now = monotonic_ns();

		if (now >= deadline_ts || take_answers(attacher, (int)((deadline_ts - now) / 1000000) + 1) < 0)
			break;
	}
	return attacher->closing.cnt;
}

pid_t attacher__pid(const struct attacher *attacher)
{
	return attacher->pid;
}

bool attacher__is_gone(struct attacher *attacher)
{
	return take_answers(attacher, 0) < 0;
}

/* It ends once everything is closed, and is left alone where that takes longer. */
static void let_end(const struct attacher *attacher, uint64_t patience_ns)
{
	uint64_t deadline_ts = monotonic_ns() + patience_ns;

	while (!waitpid(attacher->pid, NULL, WNOHANG) && monotonic_ns() < deadline_ts)
		sleep_ns(1000000);
}

void attacher__free(struct attacher *attacher, uint64_t patience_ns)
{
	if (!attacher)
		return;
	lost(attacher);
	let_end(attacher, patience_ns);
	vec_free(&attacher->closing);
	free(attacher);
}
