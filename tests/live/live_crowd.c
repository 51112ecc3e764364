// SPDX-License-Identifier: GPL-2.0-or-later
/* The collector among slow, idle, greedy and all too many clients: none of them keeps the others from being served. */
#include "collector.h"
#include "session.h"
#include "stream_kit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* As 127.0.0.LAST; -1 if nobody answers. */
static int connect_as(unsigned int last, int port)
{
	struct sockaddr_in own = {.sin_family = AF_INET},
			   address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	own.sin_addr.s_addr = htonl((INADDR_LOOPBACK & ~0xffu) | last);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd >= 0 && (bind(fd, (struct sockaddr *)&own, sizeof(own)) ||
			connect(fd, (struct sockaddr *)&address, sizeof(address)))) {
		close(fd);
		return -1;
	}
	return fd;
}

static int connect_to(int port)
{
	return connect_as(1, port);
}

/* Sends it one byte after the other, five a second: how long until nobody listens any more; UINT64_MAX: they always do.
 */
static uint64_t drip(int fd, const char *text, size_t sz)
{
	uint64_t begin_ns = now_ns();
	char byte;

	for (size_t i = 0; i < sz && now_ns() - begin_ns < 20 * NS_PER_SEC; i++) {
		if (send(fd, text + i, 1, MSG_NOSIGNAL) < 0 || recv(fd, &byte, 1, MSG_DONTWAIT) == 0)
			return now_ns() - begin_ns;
		sleep_ms(200);
	}
	return UINT64_MAX;
}

static void test_slow_clients(void)
{
	static const char header[] = "POST /v1/hosts/h/sessions/" SESSION_TEXT
				     "/blocks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n";
	struct collector collector;
	struct stream stream;
	char answer[ANSWER_SZ];
	struct path body;
	uint64_t took_ns;
	int fd;

	if (!stream_make(&stream, 2) || !collector_start(&collector, "slow", "--timeout 1s"))
		return;
	body = stream_body(&stream, 0, 2, "body");
	fd = connect_to(collector.port);
	took_ns = drip(fd, header, sizeof(header) - 1);
	CHECKF(took_ns < 5 * NS_PER_SEC, "a slow header was listened to for %llu ns", (unsigned long long)took_ns);
	close(fd);
	fd = connect_to(collector.port);
	CHECK(send(fd, header, sizeof(header) - 1, MSG_NOSIGNAL) == sizeof(header) - 1);
	took_ns = drip(fd, header, sizeof(header) - 1);
	CHECKF(took_ns < 5 * NS_PER_SEC, "a slow body was listened to for %llu ns", (unsigned long long)took_ns);
	close(fd);
	CHECK(strstr(process_err(&collector.process), "408, it did not arrive in time") != NULL);
	CHECK(collector_metric(&collector, "refusals_total{reason=\"slow\",status=\"408\"}") == 2);
	CHECK(collector_post(&collector, answer, "host-a", body.s, " ") == 200);
	collector_end(&collector);
	stream_free(&stream);
}

/* It never was larger than what 1,000 clients may make of it. */
static void check_memory(const struct collector *collector)
{
	unsigned long peak_kib = process_peak_kib(&collector->process);

	/* A sanitizer's shadow is not the collector's. */
	if (getenv("WHYLATE_SANITIZED"))
		return;
	CHECKF(peak_kib > 0 && peak_kib < 100 << 10, "%lu KiB resident at most", peak_kib);
}

#define IDLE_CNT 1000

static void test_idle_connections(void)
{
	struct collector collector;
	struct stream stream;
	char answer[ANSWER_SZ], byte;
	struct path body;
	struct certs certs;
	int fds[IDLE_CNT], open_cnt = 0, shut_cnt = 0;

	if (!stream_make(&stream, 4) || !certs_make(&certs, "127.0.0.1") ||
	    !collector_start(&collector, "idle", "--max-connections 1100 %s", certs.server))
		return;
	for (int i = 0; i < IDLE_CNT; i++)
		open_cnt += (fds[i] = connect_to(collector.port)) >= 0;
	CHECKF(open_cnt == IDLE_CNT, "%d connections", open_cnt);
	body = stream_body(&stream, 0, 2, "body");
	CHECK(collector_post(&collector, answer, STREAM_HOST, body.s, "-k --cert %s/client.crt --key %s/client.key",
			     certs.dir.s, certs.dir.s) == 200);
	CHECK(collector_metric(&collector, "connections") >= IDLE_CNT);
	check_memory(&collector);
	for (int i = 0; i < IDLE_CNT; i++)
		close(fds[i]);
	collector_end(&collector);
	/* More of them than it takes: they go, whoever has something to say is served. */
	if (!collector_start(&collector, "idle-many", "--max-connections 50"))
		return;
	for (int i = 0; i < 200; i++)
		fds[i] = connect_to(collector.port);
	CHECKF(collector_post(&collector, answer, "host-a", body.s, " ") == 200, "%s", answer);
	sleep_ms(200);
	for (int i = 0; i < 200; i++) {
		shut_cnt += recv(fds[i], &byte, 1, MSG_DONTWAIT) == 0;
		close(fds[i]);
	}
	CHECKF(shut_cnt >= 150, "%d of 200 idle connections were closed", shut_cnt);
	collector_end(&collector);
	stream_free(&stream);
}

static void test_limits(void)
{
	struct collector collector;
	struct stream stream;
	char answer[ANSWER_SZ];
	struct path body, headers = temp_path("headers");
	char *text;
	int status = 200;

	if (!stream_make(&stream, 2) || !collector_start(&collector, "rate", "--max-requests 1"))
		return;
	body = stream_body(&stream, 0, 2, "body");
	for (int i = 0; i < 20 && status == 200; i++)
		status = collector_post(&collector, answer, "host-a", body.s, "-D %s", headers.s);
	collector_expect(&collector, status, 429, answer, "too many requests");
	text = file_read(headers.s, NULL);
	CHECKF(text && strcasestr(text, "Retry-After: 1\r\n"), "%s", text);
	free(text);
	collector_end(&collector);
	if (!collector_start(&collector, "memory", "--max-memory 1000"))
		return;
	collector_expect(&collector, collector_post(&collector, answer, "host-a", body.s, " "), 503, answer,
			 "too much memory");
	collector_end(&collector);
	stream_free(&stream);
}

static int post_padded(struct collector *collector, const char *body_path, int pad_sz)
{
	struct path pad = temp_path("pad");
	char answer[ANSWER_SZ], text[32000];
	int sz = snprintf(text, sizeof(text), "X-Pad: %0*d\n", pad_sz, 0);

	CHECK(!file_write(pad.s, text, (size_t)sz));
	return collector_post(collector, answer, "host-a", body_path, "-H @%s", pad.s);
}

/* A header has room, but not any. */
static void test_large_headers(void)
{
	struct collector collector;
	struct stream stream;
	char answer[ANSWER_SZ];
	struct path body;
	int status;

	if (!stream_make(&stream, 2) || !collector_start(&collector, "headers", " "))
		return;
	body = stream_body(&stream, 0, 2, "body");
	status = post_padded(&collector, body.s, 6000);
	CHECKF(status == 200, "a header of 6 kB: %d", status);
	status = post_padded(&collector, body.s, 30000);
	CHECKF(status == 431, "a header of 30 kB: %d", status);
	CHECK(collector_post(&collector, answer, "host-a", body.s, " ") == 200);
	collector_end(&collector);
	stream_free(&stream);
}

#define HEADER_OF(sz) \
	"POST /v1/hosts/h/sessions/" SESSION_TEXT "/blocks HTTP/1.1\r\nHost: h\r\nContent-Length: " sz "\r\n\r\n"

/* All connections belong to requests of one address that come to no end: whoever has fewer gets one. */
static void test_slow_crowd(void)
{
	static const char header[] = HEADER_OF("1000") "x";
	struct collector collector;
	struct stream stream;
	char answer[ANSWER_SZ], byte;
	struct path body;
	int fds[60], shut_cnt = 0;

	if (!stream_make(&stream, 2) || !collector_start(&collector, "crowd", "--max-connections 20"))
		return;
	body = stream_body(&stream, 0, 2, "body");
	for (int i = 0; i < 60; i++) {
		fds[i] = connect_as(2, collector.port);
		/* Those that are too many may be gone before they have said anything. */
		CHECK(fds[i] >= 0);
		send(fds[i], header, sizeof(header) - 1, MSG_NOSIGNAL);
		/* The second half comes when whoever came before is at work already. */
		if (i >= 30)
			sleep_ms(10);
	}
	for (int i = 0; i < 10; i++)
		CHECKF(collector_post(&collector, answer, "host-a", body.s, " ") == 200, "%s", answer);
	CHECK(collector_metric(&collector, "connections") <= 21);
	for (int i = 0; i < 60; i++) {
		shut_cnt += recv(fds[i], &byte, 1, MSG_DONTWAIT) == 0;
		close(fds[i]);
	}
	CHECKF(shut_cnt >= 39 && shut_cnt < 60, "%d of 60 were closed", shut_cnt);
	CHECKF(strstr(process_err(&collector.process), "of 127.0.0.2: 503, too many connections") != NULL, "%s",
	       process_err(&collector.process));
	collector_end(&collector);
	stream_free(&stream);
}

/* What bodies that come to no end take is bounded for each client: another one's has room. */
static void test_greedy_client(void)
{
	static const char header[] = HEADER_OF("8000000");
	static const size_t part_sz = 6000000, rest_sz = 8000000 - part_sz;
	struct collector collector;
	struct stream stream;
	char answer[ANSWER_SZ], *bytes = calloc(1, part_sz);
	struct path body;
	int fds[6], refused_cnt = 0;
	ssize_t got;

	if (!CHECK(bytes) || !stream_make(&stream, 2) || !collector_start(&collector, "greedy", "--max-memory 32M"))
		return;
	body = stream_body(&stream, 0, 2, "body");
	for (int i = 0; i < 6; i++) {
		fds[i] = connect_as(2, collector.port);
		CHECK(send(fds[i], header, sizeof(header) - 1, MSG_NOSIGNAL) == sizeof(header) - 1);
		for (size_t sent = 0; sent < part_sz;) {
			ssize_t cnt = send(fds[i], bytes + sent, part_sz - sent, MSG_NOSIGNAL);

			if (!CHECK(cnt > 0))
				break;
			sent += (size_t)cnt;
		}
	}
	CHECK(collector_post(&collector, answer, "host-a", body.s, " ") == 200);
	CHECK(collector_metric(&collector, "body_bytes") <= 8 << 20);
	/* Those that were refused hear it when they are through; one may have had room, whichever that is. */
	for (int i = 0; i < 6; i++)
		CHECK(send(fds[i], bytes, rest_sz, MSG_NOSIGNAL) == (ssize_t)rest_sz);
	for (int i = 0; i < 6; i++) {
		got = recv(fds[i], answer, sizeof(answer) - 1, 0);
		answer[got > 0 ? got : 0] = 0;
		refused_cnt += strstr(answer, " 503 ") && strcasestr(answer, "Retry-After");
		CHECKF(strstr(answer, " 503 ") || strstr(answer, " 400 "), "%s", answer);
	}
	CHECKF(refused_cnt > 0, "%d of 6 were refused", refused_cnt);
	CHECKF(strstr(process_err(&collector.process), "too much memory is in use") != NULL, "%s",
	       process_err(&collector.process));
	for (int i = 0; i < 6; i++)
		close(fds[i]);
	collector_end(&collector);
	stream_free(&stream);
	free(bytes);
}

/*
 * A thousand bodies of three addresses, each a piece from its end: the collector holds what those three may have, reads
 * the others' without keeping them, and has room for a fourth.
 */
static void test_many_bodies(void)
{
	static const char header[] = HEADER_OF("200000");
	static const struct timeval patience = {.tv_sec = 10};
	static const size_t part_sz = 150000;
	char answer[ANSWER_SZ], *bytes = calloc(1, part_sz);
	int fds[1000], cnt = sizeof(fds) / sizeof(fds[0]), sent_cnt = 0;
	struct collector collector;
	struct stream stream;
	struct path body;
	double held = 0;

	if (!CHECK(bytes) || !stream_make(&stream, 2) || !collector_start(&collector, "bodies", "--max-requests 10000"))
		return;
	body = stream_body(&stream, 0, 2, "body");
	for (int i = 0; i < cnt; i++) {
		fds[i] = connect_as(2 + i % 3, collector.port);
		setsockopt(fds[i], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
		sent_cnt += send(fds[i], header, sizeof(header) - 1, MSG_NOSIGNAL) == sizeof(header) - 1 &&
			    send(fds[i], bytes, part_sz, MSG_NOSIGNAL) == (ssize_t)part_sz;
	}
	CHECKF(sent_cnt == cnt, "%d of %d bodies were taken", sent_cnt, cnt);
	CHECKF(collector_post(&collector, answer, "host-a", body.s, " ") == 200, "%s", answer);
	/* It may be a while until it has read what was sent. */
	for (int i = 0; i < 100 && (held = collector_metric(&collector, "body_bytes")) <= 29 << 20; i++)
		sleep_ms(100);
	CHECKF(held > 29 << 20 && held <= 30 << 20, "%.0f bytes of bodies", held);
	check_memory(&collector);
	for (int i = 0; i < cnt; i++)
		close(fds[i]);
	collector_end(&collector);
	stream_free(&stream);
	free(bytes);
}

static const struct live_test tests[] = {
	{"slow_clients", test_slow_clients, SHORT},
	{"idle_connections", test_idle_connections, SHORT},
	{"slow_crowd", test_slow_crowd, SHORT},
	{"greedy_client", test_greedy_client, SHORT},
	{"many_bodies", test_many_bodies, SHORT},
	{"large_headers", test_large_headers, SHORT},
	{"limits", test_limits, SHORT},
};

int suite_crowd(void)
{
	return live_suite("crowd", tests, sizeof(tests) / sizeof(tests[0]));
}
