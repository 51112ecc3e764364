// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * libFuzzer: any bytes to a collector's port, as a whole request or as the path, the headers or the body of one.  The
 * collector answers with HTTP or closes the connection, stores nothing that is no frame, and goes on.
 */
#include "net/collect/collector.h"
#include "net/collect/identity.h"
#include "net/wire/listen.h"
#include "net/wire/protocol.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz);

#define SECOND_NS     1000000000ULL
#define PATIENCE_US   20000
#define HEALTH_ROUNDS 64
#define NEED(ok)                 \
	do {                     \
		if (!(ok))       \
			abort(); \
	} while (0)

static char dir[] = "/tmp/whylate-fuzz-http-XXXXXX";
static struct sockaddr_in address;

static void begin(void)
{
	static const struct identity_tokens nobody;
	struct collector_opts opts = {
		.material = {.tokens = &nobody},
		.max_connections = 64,
		.max_memory = 16 << 20,
		.max_rate = 1e12,
		.max_requests = 1e9,
		.timeout_ns = 2 * SECOND_NS,
	};
	struct listener listener;
	socklen_t sz = sizeof(address);
	int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	NEED(mkdtemp(dir) && !listener__open(&listener, "127.0.0.1:0"));
	NEED(!getsockname(listener.fd, (struct sockaddr *)&address, &sz));
	opts.store.dir = dir;
	opts.listen_fd = listener.fd;
	/* A line for each refusal. */
	if (!getenv("FUZZ_VERBOSE"))
		stderr = fdopen(null_fd, "w");
	NEED(collector__start(&opts));
}

static int open_connection(long patience_us)
{
	const struct linger now = {.l_onoff = 1};
	const struct timeval patience = {.tv_sec = patience_us / 1000000, .tv_usec = patience_us % 1000000};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	NEED(fd >= 0 && !connect(fd, (struct sockaddr *)&address, sizeof(address)));
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return fd;
}

static void say(int fd, const void *bytes, size_t sz)
{
	while (sz) {
		ssize_t n = send(fd, bytes, sz, MSG_NOSIGNAL);

		if (n <= 0)
			return;
		bytes = (const char *)bytes + n;
		sz -= (size_t)n;
	}
}

static void say_text(int fd, const char *text)
{
	say(fd, text, strlen(text));
}

/* An answer, or nothing: how many bytes.  What is no whole request has until the collector's timeout. */
static size_t check_answer(int fd)
{
	char head[16] = "", rest[4096];
	size_t got = 0;
	ssize_t n = 0;

	while (got < sizeof(head) - 1 && (n = recv(fd, head + got, sizeof(head) - 1 - got, 0)) > 0)
		got += (size_t)n;
	if (got >= 12)
		NEED(!memcmp(head, "HTTP/1.1 ", 9) && head[9] >= '1' && head[9] <= '5');
	while (n > 0 && recv(fd, rest, sizeof(rest), 0) > 0)
		;
	return got;
}

static void check_health(void)
{
	int fd = open_connection(10000000);

	say_text(fd, "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
	NEED(check_answer(fd));
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz)
{
	static const char *const methods[] = {"POST", "GET", "PUT", "HEAD"};
	char path[PROTOCOL_PATH_SZ], line[64], host[SHARD_HOST_MAX + 1];
	uint64_t session_id;
	static unsigned int rounds;
	uint8_t form;
	char *text;
	int fd;

	if (!address.sin_port)
		begin();
	if (!sz)
		return 0;
	form = *bytes++;
	sz--;
	/* The path alone, without the library. */
	text = strndup((const char *)bytes, sz);
	NEED(text);
	if (!protocol_path__get(text, host, &session_id))
		NEED(protocol_host_is_valid(host));
	(void)protocol_token_is_valid(text);
	free(text);
	if (++rounds % HEALTH_ROUNDS == 0)
		check_health();
	fd = open_connection(PATIENCE_US);
	protocol_path__put(path, "web", 7);
	switch (form >> 2 & 3) {
	case 0:
		say(fd, bytes, sz);
		break;
	case 1: /* the path */
		say_text(fd, methods[form & 3]);
		say_text(fd, " /v1/");
		say(fd, bytes, sz);
		say_text(fd, " HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
		break;
	case 2: /* headers */
		say_text(fd, methods[form & 3]);
		say_text(fd, " ");
		say_text(fd, path);
		say_text(fd, " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n");
		say(fd, bytes, sz);
		say_text(fd, "\r\n\r\n");
		break;
	default: /* the body */
		say_text(fd, "POST ");
		say_text(fd, path);
		snprintf(line, sizeof(line), " HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n", sz);
		say_text(fd, line);
		say_text(fd, "Connection: close\r\n\r\n");
		say(fd, bytes, sz);
	}
	shutdown(fd, SHUT_WR);
	check_answer(fd);
	close(fd);
	return 0;
}
