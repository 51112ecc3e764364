// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Simulated agents: each sends the blocks of a shard over TLS, again and again under new numbers, on one connection, as
 * fast as it is answered (or so many requests a second).
 *
 *   collect_load HOST:PORT CA SHARD AGENTS SECONDS BLOCKS_PER_REQUEST [post|put] [REQUESTS_PER_S]
 *
 * `post` speaks the protocol, as host agent-N with the token token-of-agent-N-0123456789; `put` sends the same bodies
 * as files, which any WebDAV server takes.  Prints what was acknowledged.
 */
#include "base/clock.h"
#include "net/wire/protocol.h"
#include "shard/crc32c.h"
#include "shard/file.h"

#include <gnutls/gnutls.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BLOCKS_MAX 4096

static struct {
	const char *host, *port;
	unsigned agent_cnt, per_request;
	double per_second;
	uint64_t end_ts;
	bool put;
	uint64_t session_id;
	struct shard_buf blocks[BLOCKS_MAX];
	uint32_t crcs[BLOCKS_MAX];
	size_t block_cnt;
	gnutls_certificate_credentials_t credentials;
} load;

struct agent {
	unsigned number;
	pthread_t thread;
	gnutls_session_t tls;
	int fd;
	uint64_t seq, bytes, requests, refused, broken, waited_ns, longest_ns;
	struct shard_buf body;
};

static int read_blocks(const char *path)
{
	struct shard_damages damages = {0};
	struct shard_file file = {.path = path, .damages = &damages, .fd = -1};
	struct shard_block_header header;
	int err = shard_file__open(&file);

	while (!err && load.block_cnt < BLOCKS_MAX && shard_file__next(&file, &header) == 1) {
		struct shard_buf *block = &load.blocks[load.block_cnt];
		size_t sz = header.header_sz + header.stored_sz;

		if (header.kind != SHARD_BLOCK_ROWS || vec_reserve(block, sz) ||
		    pread(file.fd, block->items, sz, file.block_off) != (ssize_t)sz)
			continue;
		block->cnt = sz;
		load.crcs[load.block_cnt++] = crc32c(0, block->items, sz);
		load.session_id = header.session_id;
	}
	shard_file__close(&file);
	shard_damages__clear(&damages);
	return load.block_cnt ? 0 : -1;
}

static int agent__connect(struct agent *agent)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *info;
	int ret, on = 1;

	if (getaddrinfo(load.host, load.port, &hints, &info))
		return -1;
	agent->fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	/* As libcurl does: a header and a body are two writes. */
	setsockopt(agent->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	ret = connect(agent->fd, info->ai_addr, info->ai_addrlen);
	freeaddrinfo(info);
	if (ret)
		return -1;
	gnutls_init(&agent->tls, GNUTLS_CLIENT);
	gnutls_set_default_priority(agent->tls);
	gnutls_credentials_set(agent->tls, GNUTLS_CRD_CERTIFICATE, load.credentials);
	gnutls_session_set_verify_cert(agent->tls, load.host, 0);
	gnutls_transport_set_int(agent->tls, agent->fd);
	do {
		ret = gnutls_handshake(agent->tls);
	} while (ret < 0 && !gnutls_error_is_fatal(ret));
	return ret;
}

static void agent__disconnect(struct agent *agent)
{
	if (agent->tls)
		gnutls_deinit(agent->tls);
	if (agent->fd >= 0)
		close(agent->fd);
	agent->tls = NULL;
	agent->fd = -1;
}

static void agent__fill(struct agent *agent)
{
	agent->body.cnt = 0;
	for (unsigned i = 0; i < load.per_request; i++) {
		size_t at = (agent->seq + i) % load.block_cnt;
		struct protocol_frame frame = {
			.kind = PROTOCOL_BLOCK, .seq = agent->seq + i, .sz = load.blocks[at].cnt, .crc = load.crcs[at]};

		if (vec_reserve(&agent->body, PROTOCOL_FRAME_HEADER_SZ + frame.sz))
			abort();
		protocol_frame__put(agent->body.items + agent->body.cnt, &frame);
		memcpy(agent->body.items + agent->body.cnt + PROTOCOL_FRAME_HEADER_SZ, load.blocks[at].items, frame.sz);
		agent->body.cnt += PROTOCOL_FRAME_HEADER_SZ + frame.sz;
	}
}

static int send_all(struct agent *agent, const void *bytes, size_t sz)
{
	const uint8_t *pos = bytes;

	while (sz) {
		ssize_t n = gnutls_record_send(agent->tls, pos, sz);

		if (n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED)
			continue;
		if (n <= 0)
			return -1;
		pos += n;
		sz -= n;
	}
	return 0;
}

/* The status of a whole answer; 0: the connection broke. */
static int agent__answer(struct agent *agent)
{
	char text[4096] = "";
	size_t have = 0;

	for (;;) {
		const char *end, *length;
		ssize_t n = gnutls_record_recv(agent->tls, text + have, sizeof(text) - 1 - have);

		if (n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED)
			continue;
		if (n <= 0)
			return 0;
		have += n;
		text[have] = 0;
		end = strstr(text, "\r\n\r\n");
		length = strcasestr(text, "\r\nContent-Length:");
		if (end &&
		    (!length || length > end || have >= (size_t)(end + 4 - text) + strtoul(length + 17, NULL, 10)))
			return atoi(text + strlen("HTTP/1.1 "));
	}
}

static int agent__request(struct agent *agent)
{
	char head[1024], path[PROTOCOL_PATH_SZ], name[32];
	int len;

	snprintf(name, sizeof(name), "agent-%u", agent->number);
	protocol_path__put(path, name, load.session_id);
	if (load.put)
		len = snprintf(head, sizeof(head), "PUT /%s/%llu HTTP/1.1\r\n", name, (unsigned long long)agent->seq);
	else
		len = snprintf(head, sizeof(head),
			       "POST %s HTTP/1.1\r\nAuthorization: Bearer token-of-%s-0123456789\r\n", path, name);
	len += snprintf(head + len, sizeof(head) - len, "Host: %s\r\nContent-Length: %zu\r\n\r\n", load.host,
			agent->body.cnt);
	if (send_all(agent, head, len) || send_all(agent, agent->body.items, agent->body.cnt))
		return 0;
	return agent__answer(agent);
}

static void pause_until(uint64_t ts)
{
	struct timespec until = {.tv_sec = ts / 1000000000, .tv_nsec = ts % 1000000000};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

static void *agent_run(void *ctx)
{
	struct agent *agent = ctx;
	uint64_t next_ts = monotonic_ns();

	agent->fd = -1;
	while (monotonic_ns() < load.end_ts) {
		uint64_t begin_ts;
		int status;

		if (agent->fd < 0 && agent__connect(agent)) {
			agent->broken++;
			agent__disconnect(agent);
			pause_until(monotonic_ns() + 100000000);
			continue;
		}
		agent__fill(agent);
		begin_ts = monotonic_ns();
		status = agent__request(agent);
		if (status == 200 || status == 201 || status == 204) {
			uint64_t took_ns = monotonic_ns() - begin_ts;

			agent->requests++;
			agent->seq += load.per_request;
			agent->bytes += agent->body.cnt;
			agent->waited_ns += took_ns;
			agent->longest_ns = took_ns > agent->longest_ns ? took_ns : agent->longest_ns;
		} else {
			agent->refused += status != 0;
			agent->broken += !status;
			/* As the uploader does: the connection stays, and it comes again when it was told to. */
			if (!status)
				agent__disconnect(agent);
			pause_until(monotonic_ns() + (status ? 1000000000 : 100000000));
		}
		if (load.per_second > 0) {
			next_ts += 1e9 / load.per_second;
			pause_until(next_ts);
		}
	}
	agent__disconnect(agent);
	vec_free(&agent->body);
	return NULL;
}

static void print_sums(const struct agent *agents, double seconds)
{
	uint64_t bytes = 0, requests = 0, refused = 0, broken = 0, waited_ns = 0, longest_ns = 0;

	for (unsigned i = 0; i < load.agent_cnt; i++) {
		bytes += agents[i].bytes;
		requests += agents[i].requests;
		refused += agents[i].refused;
		broken += agents[i].broken;
		waited_ns += agents[i].waited_ns;
		longest_ns = agents[i].longest_ns > longest_ns ? agents[i].longest_ns : longest_ns;
	}
	printf("%.1f MB/s, %.0f blocks/s; %llu blocks acknowledged, %llu requests of %.0f KB, %.1f ms each, longest "
	       "%.0f ms; "
	       "%llu refused, %llu broken\n",
	       bytes / seconds / 1e6, requests * load.per_request / seconds,
	       (unsigned long long)(requests * load.per_request), (unsigned long long)requests,
	       requests ? bytes / 1e3 / requests : 0, requests ? waited_ns / 1e6 / requests : 0, longest_ns / 1e6,
	       (unsigned long long)refused, (unsigned long long)broken);
}

int main(int argc, char **argv)
{
	struct agent *agents;
	pthread_attr_t attr;
	uint64_t begin_ts;
	char *colon;

	if (argc < 7 || !(colon = strrchr(argv[1], ':'))) {
		fprintf(stderr,
			"usage: %s HOST:PORT CA SHARD AGENTS SECONDS BLOCKS_PER_REQUEST [post|put] [REQUESTS_PER_S]\n",
			argv[0]);
		return 2;
	}
	*colon = 0;
	load.host = argv[1];
	load.port = colon + 1;
	load.agent_cnt = strtoul(argv[4], NULL, 10);
	load.per_request = strtoul(argv[6], NULL, 10);
	load.put = argc > 7 && !strcmp(argv[7], "put");
	load.per_second = argc > 8 ? strtod(argv[8], NULL) : 0;
	agents = calloc(load.agent_cnt, sizeof(*agents));
	gnutls_certificate_allocate_credentials(&load.credentials);
	if (!agents || gnutls_certificate_set_x509_trust_file(load.credentials, argv[2], GNUTLS_X509_FMT_PEM) <= 0 ||
	    read_blocks(argv[3])) {
		fprintf(stderr, "cannot read %s or %s\n", argv[2], argv[3]);
		return 1;
	}
	signal(SIGPIPE, SIG_IGN);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 << 10);
	begin_ts = monotonic_ns();
	load.end_ts = begin_ts + strtod(argv[5], NULL) * 1e9;
	for (unsigned i = 0; i < load.agent_cnt; i++) {
		agents[i].number = i;
		if (pthread_create(&agents[i].thread, &attr, agent_run, &agents[i]))
			return 1;
	}
	for (unsigned i = 0; i < load.agent_cnt; i++)
		pthread_join(agents[i].thread, NULL);
	print_sums(agents, (monotonic_ns() - begin_ts) / 1e9);
	return 0;
}
