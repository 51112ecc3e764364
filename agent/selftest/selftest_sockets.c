// SPDX-License-Identifier: GPL-2.0-or-later
/* The part of the self-test whose intervals are socket requests: this process is the client, the witness serves. */
#include "base/clock.h"
#include "selftest/selftest_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct client_request {
	uint64_t send_call_ts, send_return_ts;
};

static uint32_t request_type(const struct stage *stage, enum witness_socket which)
{
	uint32_t source = which == WITNESS_UDP ? WL_SOURCE_UDP : which == WITNESS_UNIX ? WL_SOURCE_UNIX : WL_SOURCE_TCP;
	uint32_t number = stage->witness.ports[which];

	for (size_t i = 0; which == WITNESS_UNIX && i < stage->listeners.cnt; i++)
		if (stage->listeners.items[i].family == TARGET_UNIX)
			number = i;
	return source << 16 | number;
}

static int connect_to(const struct stage *stage, enum witness_socket which)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = htons(stage->witness.ports[which]),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	bool is_unix = which == WITNESS_UNIX;
	struct timeval limit = {.tv_sec = 10};
	int fd = socket(is_unix ? AF_UNIX : AF_INET, (which == WITNESS_UDP ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC,
			0);
	int err;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (connect(fd, is_unix ? (const struct sockaddr *)&stage->witness.unix_addr : (struct sockaddr *)&addr,
		    is_unix ? stage->witness.unix_addr_sz : sizeof(addr))) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

/* Sends the requests one by one, each after the reply to the one before. */
static int make_requests(const struct stage *stage, enum witness_socket which, struct client_request *requests)
{
	int fd = connect_to(stage, which), err = 0;
	char buf[64];

	if (fd < 0)
		return fd;
	for (int i = 0; i < WITNESS_REQUESTS && !err; i++) {
		requests[i].send_call_ts = monotonic_ns();
		if (send(fd, "request", 7, MSG_NOSIGNAL) != 7)
			err = -errno;
		requests[i].send_return_ts = monotonic_ns();
		if (!err && recv(fd, buf, sizeof(buf), 0) <= 0)
			err = errno ? -errno : -EPIPE;
	}
	close(fd);
	return err;
}

/* --- what was seen of them ---------------------------------------------------------------------------------------- */

static bool seen_all(const struct stage *stage, const void *want)
{
	uint32_t type = *(const uint32_t *)want, cnt = 0;

	for (size_t i = 0; i < stage->intervals.cnt; i++)
		cnt += stage->intervals.items[i].type == type;
	return cnt >= WITNESS_REQUESTS;
}

/* By when it was picked up: within the call that read it. */
static const struct wl_interval_record *find_request(const struct stage *stage, uint32_t type,
						     const struct witness_request *served)
{
	for (size_t i = 0; i < stage->intervals.cnt; i++) {
		const struct wl_interval_record *record = &stage->intervals.items[i];

		if (record->type == type && record->pickup_ts + CHECK_CLOCK_NS >= served->recv_call_ts &&
		    record->pickup_ts <= served->recv_return_ts + CHECK_CLOCK_NS)
			return record;
	}
	return NULL;
}

/* The server looked at it late: what lay between is how long the request waited to be picked up. */
static void judge_request(const struct wl_interval_record *record, const struct client_request *sent,
			  const struct witness_request *served, uint32_t pid, struct check_round *round)
{
	memset(round, 0, sizeof(*round));
	round->wrong = record_wrong(record, sent->send_call_ts, served->send_return_ts);
	round->seen = record->pickup_ts - record->begin_ts;
	round->witness = served->recv_return_ts - sent->send_call_ts;
	round->high = served->recv_return_ts - sent->send_call_ts + CHECK_CLOCK_NS;
	/* A busy machine delivers a little after the call that sent it returned. */
	if (served->recv_call_ts > sent->send_return_ts + CHECK_CLOCK_NS)
		round->low = (served->recv_call_ts - sent->send_return_ts - CHECK_CLOCK_NS) / 5 * 4;
	if (round->wrong)
		return;
	if (record->pid != pid)
		round->wrong = "another process than the one that served it is said to have done so";
	else if (record->flags & WL_INTERVAL_NO_ARRIVAL)
		round->wrong = "its arrival was not seen";
	else if (record->begin_ts > served->recv_return_ts + CHECK_CLOCK_NS)
		round->wrong = "it begins after it was read";
	else if (record->end_ts + CHECK_CLOCK_NS < served->send_call_ts)
		round->wrong = "it ends before the reply is sent";
}

/* Adds a round per request; false after a failed check. */
static bool judge_requests(struct stage *stage, struct check *check, uint32_t type, const struct client_request *sent,
			   const struct witness_answer *answer, struct check_rounds *rounds)
{
	uint32_t cnt = 0;

	stage_await(stage, seen_all, &type);
	for (int i = 0; i < WITNESS_REQUESTS; i++) {
		const struct wl_interval_record *record = find_request(stage, type, &answer->requests[i]);
		struct check_round round;

		if (!record) {
			rounds->tried++;
			rounds->unseen++;
			continue;
		}
		judge_request(record, &sent[i], &answer->requests[i], answer->report.tid, &round);
		check_rounds_add(rounds, &round, record_flagged(record));
	}
	for (size_t i = 0; i < stage->intervals.cnt; i++)
		cnt += stage->intervals.items[i].type == type;
	if (cnt > WITNESS_REQUESTS)
		check_fail(check, "%u intervals were seen, and there were %u requests", cnt, WITNESS_REQUESTS);
	return cnt <= WITNESS_REQUESTS;
}

/* One connection; false after a failed check. */
static bool serve_requests(struct stage *stage, struct check *check, enum witness_task task, enum witness_socket which,
			   struct client_request *sent, struct witness_answer *answer)
{
	int err, client_err;

	stage_forget(stage);
	err = witness_order(&stage->witness, task, which);
	client_err = err ? 0 : make_requests(stage, which, sent);
	if (!err)
		err = witness_answer(&stage->witness, answer);
	if (!err && !client_err && !answer->report.why[0])
		return true;
	check_fail(check, "the requests could not be made: %s",
		   client_err ? strerror(-client_err)
		   : err      ? strerror(-err)
			      : answer->report.why);
	return false;
}

static bool make_rounds(struct stage *stage, struct check *check, enum witness_task task, enum witness_socket which,
			struct check_rounds *rounds)
{
	struct client_request sent[WITNESS_REQUESTS] = {};
	struct witness_answer answer;

	return serve_requests(stage, check, task, which, sent, &answer) &&
	       judge_requests(stage, check, request_type(stage, which), sent, &answer, rounds);
}

/* NULL without a network, too: it is skipped then. */
static struct check *net_check(struct stage *stage, const char *name, enum hook_feature feature, const char *unit)
{
	struct check *check = stage_check(stage, name, feature, unit);

	if (!check || !stage->witness.why_no_net[0])
		return check;
	check_skip(check, "%s", stage->witness.why_no_net);
	return NULL;
}

static void check_requests(struct stage *stage, const char *name, enum hook_feature feature, enum witness_task task,
			   enum witness_socket which)
{
	struct check *check =
		which == WITNESS_UNIX ? stage_check(stage, name, feature, "ns") : net_check(stage, name, feature, "ns");
	struct check_rounds rounds = {};

	if (!check)
		return;
	do {
		if (!make_rounds(stage, check, task, which, &rounds))
			return;
	} while (!check_rounds_enough(&rounds));
	check_conclude(check, &rounds);
}

/* A listener that is younger than the recording. */
static void check_late_listener(struct stage *stage)
{
	struct witness_answer answer;

	if (stage->witness.why_no_net[0] || witness_order(&stage->witness, WITNESS_LISTEN, 0) ||
	    witness_answer(&stage->witness, &answer))
		return;
	stage->witness.ports[WITNESS_TCP_LATE] = answer.report.object;
	check_requests(stage, "socket.tcp.late", HOOK_FEATURE_TCP_STATE, WITNESS_SERVE, WITNESS_TCP_LATE);
}

static bool abandoned_one(const struct stage *stage, const void *want)
{
	struct capture_counts counts;

	capture__counts(stage->capture, &counts);
	return counts.abandoned > *(const uint64_t *)want;
}

/* The server closes the connection instead of replying. */
static void check_abandoned(struct stage *stage)
{
	struct check *check = net_check(stage, "socket.abandoned", HOOK_FEATURE_TCP_STATE, "requests");
	struct capture_counts before, after;
	struct witness_answer answer;
	int fd, err;
	char c;

	if (!check)
		return;
	capture__counts(stage->capture, &before);
	err = witness_order(&stage->witness, WITNESS_DESERT, 0);
	fd = err ? err : connect_to(stage, WITNESS_TCP);
	if (fd >= 0) {
		if (send(fd, "request", 7, MSG_NOSIGNAL) != 7 || recv(fd, &c, 1, 0) > 0)
			err = -EPROTO;
		close(fd);
	}
	if (fd < 0 || err || witness_answer(&stage->witness, &answer) || answer.report.why[0]) {
		check_fail(check, "the request could not be made");
		return;
	}
	stage_await(stage, abandoned_one, &before.abandoned);
	capture__counts(stage->capture, &after);
	check_exact(check, 1, after.abandoned - before.abandoned);
}

void selftest_sockets(struct stage *stage)
{
	check_requests(stage, "socket.tcp", HOOK_FEATURE_SOCKET, WITNESS_SERVE, WITNESS_TCP);
	check_requests(stage, "socket.unix", HOOK_FEATURE_SOCKET, WITNESS_SERVE, WITNESS_UNIX);
	check_requests(stage, "socket.udp", HOOK_FEATURE_SOCKET, WITNESS_SERVE, WITNESS_UDP);
	check_requests(stage, "socket.child", HOOK_FEATURE_SOCKET, WITNESS_SERVE_IN_CHILD, WITNESS_TCP);
	check_requests(stage, "socket.tcp.file", HOOK_FEATURE_SOCKET, WITNESS_SERVE_FILE, WITNESS_TCP);
	check_requests(stage, "socket.unix.file", HOOK_FEATURE_SOCKET, WITNESS_SERVE_FILE, WITNESS_UNIX);
	check_late_listener(stage);
	check_abandoned(stage);
}

/* --- with hooks that are not always attached ---------------------------------------------------------------------- */

#define WINDOW_NS 60000000000ULL

/* Between windows nothing is seen, nothing is sent. */
static void check_rest(struct stage *stage)
{
	struct check *check = net_check(stage, "window.none", HOOK_FEATURE_SOCKET, "requests");
	struct client_request sent[WITNESS_REQUESTS] = {};
	struct capture_counts before, after;
	struct witness_answer answer;

	if (!check)
		return;
	capture__counts(stage->capture, &before);
	if (!serve_requests(stage, check, WITNESS_SERVE, WITNESS_TCP, sent, &answer))
		return;
	capture__counts(stage->capture, &after);
	check_exact(check, 0,
		    after.seen - before.seen + after.loss[WL_LOSS_INTERVAL].emitted -
			    before.loss[WL_LOSS_INTERVAL].emitted);
}

void selftest_windows(struct stage *stage)
{
	struct check *check;
	int err;

	capture__window_select(stage->capture, CAPTURE_RATE_ALL, CAPTURE_RATE_ALL, 0, 0);
	check_requests(stage, "window.first", HOOK_FEATURE_SOCKET, WITNESS_SERVE, WITNESS_TCP);
	capture__window_drain(stage->capture);
	capture__window_close(stage->capture);
	check_rest(stage);
	err = capture__window_open(stage->capture, false);
	if (err) {
		check = stage_check(stage, "window.next", HOOK_FEATURE_SOCKET, "ns");
		if (check)
			check_fail(check, "the hooks could not be attached again: %s", strerror(-err));
		return;
	}
	capture__window_select(stage->capture, CAPTURE_RATE_ALL, CAPTURE_RATE_ALL, 0, monotonic_ns() + WINDOW_NS);
	check_requests(stage, "window.next", HOOK_FEATURE_SOCKET, WITNESS_SERVE, WITNESS_TCP);
}
