// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/clock.h"
#include "net/send/backoff.h"
#include "net/send/spool.h"
#include "net/send/uploader.h"
#include "said.h"
#include "test_shard_util.h"
#include "unit.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SECOND_NS 1000000000ULL
#define ROW_CNT   10

/* --- backoff ------------------------------------------------------------------------------------------------------ */

static void waits_grow_are_capped_and_differ(void)
{
	uint64_t nominal_ns = BACKOFF_FIRST_NS, sum_ns = 0, first_ns = 0;
	struct backoff backoff;
	bool differs = false;

	backoff__init(&backoff, 0);
	for (int i = 0; i < 100; i++) {
		uint64_t wait_ns;

		backoff__fail(&backoff, 1000, 0);
		wait_ns = backoff.until_ts - 1000;
		CU_ASSERT(wait_ns >= nominal_ns / 2 && wait_ns <= nominal_ns);
		nominal_ns = nominal_ns * 2 < BACKOFF_CAP_NS ? nominal_ns * 2 : BACKOFF_CAP_NS;
		if (i >= 10)
			sum_ns += wait_ns;
		first_ns = i == 10 ? wait_ns : first_ns;
		differs |= i > 10 && wait_ns != first_ns;
	}
	/* Spread over the upper half. */
	CU_ASSERT(differs && sum_ns / 90 > 0.65 * BACKOFF_CAP_NS && sum_ns / 90 < 0.85 * BACKOFF_CAP_NS);
	backoff.failure_cnt = UINT32_MAX;
	backoff__fail(&backoff, 0, 0);
	CU_ASSERT(backoff.until_ts <= BACKOFF_CAP_NS && backoff.failure_cnt == UINT32_MAX);
	backoff__succeed(&backoff);
	CU_ASSERT(!backoff.until_ts && !backoff.failure_cnt);
}

static void what_was_asked_for_is_waited(void)
{
	struct backoff backoff;

	backoff__init(&backoff, 7);
	for (int i = 0; i < 50; i++) {
		backoff__fail(&backoff, 0, 30 * SECOND_NS);
		CU_ASSERT(backoff.until_ts >= 30 * SECOND_NS && backoff.until_ts < 35 * SECOND_NS);
	}
	backoff__fail(&backoff, 0, UINT64_MAX);
	CU_ASSERT(backoff.until_ts < BACKOFF_ASKED_CAP_NS + BACKOFF_CAP_NS);
}

/* --- a collector of a few lines ----------------------------------------------------------------------------------- */

#define SCRIPT_MAX   32
#define REQUESTS_MAX 64

struct answer {
	int status;
	const char *header, *body;
};

struct request {
	char path[PROTOCOL_PATH_SZ];
	uint64_t seqs[16];
	uint32_t frame_cnt;
	bool token;
};

/* Answers by the script, 200 after its end. */
struct server {
	pthread_t thread;
	int fd, port;
	const struct answer *script;
	size_t script_cnt;
	struct request requests[REQUESTS_MAX];
	uint32_t request_cnt;
};

static size_t read_request(int fd, char *bytes, size_t room, size_t *body_off)
{
	size_t have = 0, want = SIZE_MAX;

	while (have < want && have < room - 1) {
		ssize_t n = read(fd, bytes + have, room - 1 - have);
		const char *end, *length;

		if (n <= 0)
			break;
		have += (size_t)n;
		bytes[have] = '\0';
		end = strstr(bytes, "\r\n\r\n");
		length = strcasestr(bytes, "content-length: ");
		if (want == SIZE_MAX && end && length) {
			*body_off = (size_t)(end + 4 - bytes);
			want = *body_off + strtoul(length + 16, NULL, 10);
		}
	}
	return have;
}

static void note_request(struct server *server, const char *bytes, size_t sz, size_t body_off)
{
	struct request *request = &server->requests[server->request_cnt++];
	struct protocol_frame frame;
	const uint8_t *payload;
	size_t off = 0;

	sscanf(bytes, "POST %119s", request->path);
	request->token = strstr(bytes, "Authorization: Bearer 0123456789abcdef\r\n");
	while (protocol_body__next((const uint8_t *)bytes + body_off, sz - body_off, &off, &frame, &payload) == 1)
		if (request->frame_cnt < 16)
			request->seqs[request->frame_cnt++] = frame.seq;
	CU_ASSERT_EQUAL(off, sz - body_off);
}

static void *serve(void *owner)
{
	static const struct answer good = {200, "", "{\"stored\": 1, \"duplicates\": 0}"};
	static char bytes[1 << 20];
	struct server *server = owner;
	int fd;

	while ((fd = accept(server->fd, NULL, NULL)) >= 0) {
		const struct answer *answer =
			server->request_cnt < server->script_cnt ? &server->script[server->request_cnt] : &good;
		size_t body_off = 0, sz = read_request(fd, bytes, sizeof(bytes), &body_off);

		if (sz && body_off && server->request_cnt < REQUESTS_MAX)
			note_request(server, bytes, sz, body_off);
		if (answer->status)
			dprintf(fd, "HTTP/1.1 %d X\r\nConnection: close\r\n%sContent-Length: %zu\r\n\r\n%s",
				answer->status, answer->header, strlen(answer->body), answer->body);
		close(fd);
	}
	return NULL;
}

static void server_start(struct server *server, const struct answer *script, size_t script_cnt)
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(addr);

	memset(server, 0, sizeof(*server));
	server->script = script;
	server->script_cnt = script_cnt;
	server->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CU_ASSERT_FATAL(!bind(server->fd, (struct sockaddr *)&addr, len) && !listen(server->fd, 16) &&
			!getsockname(server->fd, (struct sockaddr *)&addr, &len));
	server->port = ntohs(addr.sin_port);
	CU_ASSERT_FATAL(!pthread_create(&server->thread, NULL, serve, server));
}

static void server_stop(struct server *server)
{
	shutdown(server->fd, SHUT_RDWR);
	pthread_join(server->thread, NULL);
	close(server->fd);
}

/* --- a spool, an uploader and that collector ---------------------------------------------------------------------- */

struct fixture {
	struct server server;
	struct test_dir dir;
	struct spool_shared shared;
	struct spool *spool;
	struct upload_client *client;
	struct uploader *uploader;
	char url[64];
};

static void begin(struct fixture *fixture, const struct answer *script, size_t script_cnt, uint32_t block_cnt)
{
	struct spool_opts opts = {.max_bytes = 16 << 20, .max_age_ns = UINT64_MAX / 2, .shared = &fixture->shared};
	struct upload_client_opts client_opts = {.url = fixture->url};
	uint8_t block[500] = {0};
	char token[128];
	const char *what;

	memset(&fixture->shared, 0, sizeof(fixture->shared));
	server_start(&fixture->server, script, script_cnt);
	test_dir__make(&fixture->dir);
	snprintf(fixture->url, sizeof(fixture->url), "http://127.0.0.1:%d/", fixture->server.port);
	snprintf(token, sizeof(token), "%s/token", fixture->dir.path);
	test_file__write(token, (const uint8_t *)"0123456789abcdef\n", 17);
	client_opts.token_path = token;
	opts.dir = fixture->dir.path;
	fixture->spool = spool__new(&opts);
	CU_ASSERT_PTR_NOT_NULL_FATAL(fixture->spool);
	CU_ASSERT_EQUAL_FATAL(spool__begin(fixture->spool, "web-1", TEST_SESSION), 0);
	spool__publish(fixture->spool);
	for (uint32_t i = 0; i < block_cnt; i++) {
		block[0] = (uint8_t)i;
		CU_ASSERT_EQUAL(spool__put(fixture->spool, SPOOL_TAIL, ROW_CNT, block, sizeof(block)), 0);
	}
	fixture->client = upload_client__new(&client_opts, &what);
	CU_ASSERT_PTR_NOT_NULL_FATAL(fixture->client);
	fixture->uploader =
		uploader__new(fixture->client, fixture->url, spool__root_fd(fixture->spool), &fixture->shared);
	CU_ASSERT_PTR_NOT_NULL_FATAL(fixture->uploader);
	said_begin();
}

static const char *end(struct fixture *fixture)
{
	const char *said = said_end();
	char token[128];

	server_stop(&fixture->server);
	uploader__free(fixture->uploader);
	upload_client__free(fixture->client);
	spool__free(fixture->spool);
	snprintf(token, sizeof(token), "%s/token", fixture->dir.path);
	unlink(token);
	test_dir__remove(&fixture->dir);
	return said;
}

static unsigned int count_lines(const char *text, const char *part)
{
	unsigned int cnt = 0;

	while ((text = strstr(text, part))) {
		text += strlen(part);
		cnt++;
	}
	return cnt;
}

static void all_go_at_once_and_are_forgotten(void)
{
	struct fixture fixture;
	const struct request *request = &fixture.server.requests[0];

	begin(&fixture, NULL, 0, 12);
	uploader__pass(fixture.uploader);
	CU_ASSERT_EQUAL(fixture.server.request_cnt, 1);
	CU_ASSERT_STRING_EQUAL(request->path, "/v1/hosts/web-1/sessions/0123456789abcdef/blocks");
	CU_ASSERT(request->token && request->frame_cnt == 12 && request->seqs[11] == 11);
	CU_ASSERT(!fixture.shared.used_bytes && fixture.shared.sent_blocks == 12);
	CU_ASSERT_EQUAL(uploader__pass(fixture.uploader), UINT64_MAX);
	CU_ASSERT_EQUAL(fixture.server.request_cnt, 1);
	CU_ASSERT_STRING_EQUAL(end(&fixture), "");
}

/* A token that is for this machine must not go to the proxy of the others. */
static void plain_http_passes_no_proxy(void)
{
	static const char *const names[] = {"http_proxy", "ALL_PROXY"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct fixture fixture;

		begin(&fixture, NULL, 0, 1);
		setenv(names[i], "http://127.0.0.1:1", 1);
		uploader__pass(fixture.uploader);
		unsetenv(names[i]);
		CU_ASSERT_EQUAL(fixture.shared.sent_blocks, 1);
		CU_ASSERT_STRING_EQUAL(end(&fixture), "");
	}
}

/* An answer without end would be received for two minutes, and then again. */
static void an_answer_is_bounded(void)
{
	static char huge[4 << 20];
	const struct answer script[] = {{200, "", huge}};
	struct fixture fixture;

	signal(SIGPIPE, SIG_IGN); /* of the server */
	memset(huge, ' ', sizeof(huge) - 1);
	begin(&fixture, script, 1, 1);
	uploader__pass(fixture.uploader);
	CU_ASSERT_EQUAL(fixture.server.request_cnt, 1);
	CU_ASSERT(!fixture.shared.sent_blocks && fixture.shared.used_bytes);
	CU_ASSERT_EQUAL(fixture.shared.failure_cnt, 1);
	CU_ASSERT_EQUAL(count_lines(end(&fixture), "warning: "), 1);
	signal(SIGPIPE, SIG_DFL);
}

/* Refusals for a while, then success: all arrive, the waiting was as asked, and it is said once and taken back once. */
static void what_fails_for_now_is_sent_again(void)
{
	static const struct answer script[] = {
		{503, "Retry-After: 1\r\n", "{\"error\": \"too busy\"}"},
		{0, "", ""},
		{404, "", "nothing here"},
	};
	struct fixture fixture;
	uint64_t begin_ts = monotonic_ns(), next_ts;
	const char *said;

	begin(&fixture, script, 3, 3);
	next_ts = uploader__pass(fixture.uploader);
	CU_ASSERT(next_ts >= begin_ts + SECOND_NS && next_ts < monotonic_ns() + 2 * SECOND_NS);
	/* Not before its time, whatever is new. */
	CU_ASSERT_EQUAL(uploader__pass(fixture.uploader), next_ts);
	CU_ASSERT_EQUAL(fixture.server.request_cnt, 1);
	while (fixture.shared.used_bytes && monotonic_ns() < begin_ts + 20 * SECOND_NS) {
		uploader__pass(fixture.uploader);
		usleep(10000);
	}
	CU_ASSERT_EQUAL(fixture.server.request_cnt, 4);
	CU_ASSERT(fixture.server.requests[3].frame_cnt == 3 && fixture.shared.sent_blocks == 3);
	CU_ASSERT_EQUAL(fixture.shared.failure_cnt, 3);
	said = end(&fixture);
	CU_ASSERT_EQUAL(count_lines(said, "warning: "), 3); /* three different reasons */
	CU_ASSERT_EQUAL(count_lines(said, "takes blocks again"), 1);
	CU_ASSERT(strstr(said, "503 (too busy)") != NULL);
}

static void the_same_trouble_is_said_once(void)
{
	static const struct answer script[] = {{403, "", "{\"error\": \"not your name\"}"},
					       {403, "", "{\"error\": \"not your name\"}"},
					       {403, "", "{\"error\": \"not your name\"}"}};
	uint64_t begin_ts = monotonic_ns();
	struct fixture fixture;

	begin(&fixture, script, 3, 3);
	while (fixture.server.request_cnt < 3 && monotonic_ns() < begin_ts + 20 * SECOND_NS) {
		uploader__pass(fixture.uploader);
		usleep(10000);
	}
	CU_ASSERT(said_one_line(end(&fixture), "403 (not your name)"));
}

/* Blocks that will never be taken are named, dropped and counted; the others arrive. */
static void a_block_that_is_refused_is_counted(void)
{
	static const struct answer script[] = {
		{400, "", "{\"error\": \"checksum\", \"frame\": 2, \"seq\": 2}"},
		{409, "", "{\"error\": \"other bytes\", \"frame\": 0, \"seq\": 0}"},
	};
	const struct request *requests;
	struct fixture fixture;
	struct spool_stats stats;

	begin(&fixture, script, 2, 5);
	requests = fixture.server.requests;
	for (int i = 0; i < 5; i++)
		uploader__pass(fixture.uploader);
	CU_ASSERT_EQUAL(fixture.server.request_cnt, 3);
	CU_ASSERT(requests[1].frame_cnt == 4 && requests[1].seqs[2] == 3);
	CU_ASSERT(requests[2].frame_cnt == 3 && requests[2].seqs[0] == 1 && requests[2].seqs[2] == 4);
	CU_ASSERT(fixture.shared.sent_blocks == 3 && fixture.shared.refused_blocks == 2);
	spool__tick(fixture.spool, SECOND_NS);
	spool__stats(fixture.spool, &stats);
	CU_ASSERT(stats.emitted == 5 * ROW_CNT && stats.lost == 2 * ROW_CNT);
	CU_ASSERT_EQUAL(count_lines(end(&fixture), "is dropped, with 10 intervals: the collector refuses it"), 2);
}

/* The collector does not say which one it is: it is found all the same. */
static void a_block_at_fault_is_found(void)
{
	static const struct answer script[] = {
		{400, "", "{\"error\": \"?\", \"frame\": null, \"seq\": null}"}, /* 0-4 */
		{200, "", "{}"},                                                 /* 0 */
		{400, "", "what?"},                                              /* 1-4 */
		{400, "", ""},                                                   /* 1 */
	};
	const struct request *requests;
	struct fixture fixture;

	begin(&fixture, script, 4, 5);
	requests = fixture.server.requests;
	for (int i = 0; i < 12; i++)
		uploader__pass(fixture.uploader);
	CU_ASSERT(requests[0].frame_cnt == 5 && requests[1].frame_cnt == 1 && requests[2].frame_cnt == 4 &&
		  requests[3].frame_cnt == 1 && requests[3].seqs[0] == 1);
	CU_ASSERT(fixture.shared.sent_blocks == 4 && fixture.shared.refused_blocks == 1);
	end(&fixture);
}

static void a_body_too_large_is_halved(void)
{
	static const struct answer script[] = {{413, "", ""}, {413, "", ""}, {413, "", ""}};
	const struct request *requests;
	struct fixture fixture;

	begin(&fixture, script, 3, 8);
	requests = fixture.server.requests;
	for (int i = 0; i < 12; i++)
		uploader__pass(fixture.uploader);
	CU_ASSERT(requests[0].frame_cnt == 8 && requests[1].frame_cnt == 4 && requests[2].frame_cnt == 2);
	CU_ASSERT(requests[3].frame_cnt == 1);
	CU_ASSERT(fixture.shared.sent_blocks == 8 && !fixture.shared.refused_blocks);
	end(&fixture);
}

/* --- what the user gives ------------------------------------------------------------------------------------------ */

static void urls_are_judged(void)
{
	static const struct {
		const char *url;
		bool insecure, good;
	} urls[] = {
		{"https://collector.example:9443", false, true},
		{"https://10.0.0.1", false, true},
		{"https://[2001:db8::1]:443/prefix/", false, true},
		{"http://127.0.0.1:80", false, true},
		{"http://127.1.2.3", false, true},
		{"http://127.evil.example", false, false},
		{"http://127.0.0.1.evil.example", false, false},
		{"http://localhost.evil.example", false, false},
		{"http://[::1:2]", false, false},
		{"http://localhost:80", false, true},
		{"http://[::1]:80", false, true},
		{"http://10.0.0.1:80", false, false},
		{"http://10.0.0.1:80", true, true},
		{"", false, false},
		{"collector:9443", false, false},
		{"https://", false, false},
		{"https://host:port", false, false},
		{"https://host:99999", false, false},
		{"ftp://host", false, false},
		{"file:///etc/passwd", false, false},
		{"https://user:secret@host", false, false},
		{"https://host/?a=b", false, false},
		{"https://host/#part", false, false},
	};

	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		const char *wrong = upload_url_check(urls[i].url, urls[i].insecure);

		CU_ASSERT_EQUAL(!wrong, urls[i].good);
	}
}

static void files_that_are_no_good_are_named(void)
{
	struct upload_client_opts opts = {.url = "https://host"};
	struct test_dir dir;
	const char *what;
	char path[128];

	test_dir__make(&dir);
	snprintf(path, sizeof(path), "%s/token", dir.path);
	opts.token_path = path;
	CU_ASSERT(!upload_client__new(&opts, &what) && errno == ENOENT && what == path);
	test_file__write(path, (const uint8_t *)"short\n", 6);
	CU_ASSERT(!upload_client__new(&opts, &what) && errno == EBADMSG && what == path);
	test_file__write(path, (const uint8_t *)"0123456789abcdef 0123\n", 22);
	CU_ASSERT(!upload_client__new(&opts, &what) && errno == EBADMSG);
	test_file__write(path, NULL, 0);
	CU_ASSERT(!upload_client__new(&opts, &what) && errno == ENODATA);
	opts.token_path = NULL;
	opts.cert_path = dir.path;
	CU_ASSERT(!upload_client__new(&opts, &what) && errno == EISDIR && what == dir.path);
	unlink(path);
	test_dir__remove(&dir);
}

/* Not the copy in memory, which libcurl opens. */
static void a_certificate_that_is_no_good_is_named(void)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t sz = sizeof(any);
	char url[64], path[128];
	struct upload_client_opts opts = {.url = url, .ca_path = path};
	struct upload_answer answer;
	struct upload_client *client;
	struct test_dir dir;
	const char *what;

	test_dir__make(&dir);
	snprintf(path, sizeof(path), "%s/authority", dir.path);
	test_file__write(path, (const uint8_t *)"-----BEGIN CERTIFICATE-----\nnone\n-----END CERTIFICATE-----\n", 59);
	CU_ASSERT_FATAL(!bind(listener, (struct sockaddr *)&any, sz) && !listen(listener, 4) &&
			!getsockname(listener, (struct sockaddr *)&any, &sz));
	snprintf(url, sizeof(url), "https://127.0.0.1:%d", ntohs(any.sin_port));
	client = upload_client__new(&opts, &what);
	CU_ASSERT_PTR_NOT_NULL_FATAL(client);
	upload_client__post(client, "/v1/blocks", "", 0, &answer);
	CU_ASSERT(!answer.status && answer.error);
	CU_ASSERT_PTR_NOT_NULL(strstr(answer.text, path));
	CU_ASSERT_PTR_NULL(strstr(answer.text, "/proc/self/fd"));
	upload_client__free(client);
	close(listener);
	unlink(path);
	test_dir__remove(&dir);
}

/* A collector that is gone: blocks go to the next one at once; a quota is no reason to go elsewhere. */
static void another_collector_takes_them(void)
{
	static const struct answer script[] = {{429, "Retry-After: 1\r\n", "{\"error\": \"too many\"}"},
					       {503, "", "{\"error\": \"stopping\"}"}};
	uint64_t begin_ts = monotonic_ns();
	struct upload_client_opts opts = {.url = NULL};
	struct upload_client *client;
	struct fixture fixture;
	struct server second;
	const char *what, *said;
	char url[64];

	begin(&fixture, script, 2, 3);
	server_start(&second, NULL, 0);
	snprintf(url, sizeof(url), "http://127.0.0.1:%d", second.port);
	opts.url = url;
	client = upload_client__new(&opts, &what);
	CU_ASSERT_PTR_NOT_NULL_FATAL(client);
	uploader__add(fixture.uploader, client, url);
	uploader__pass(fixture.uploader);
	CU_ASSERT(fixture.server.request_cnt == 1 && !second.request_cnt);
	while (fixture.shared.used_bytes && monotonic_ns() < begin_ts + 20 * SECOND_NS) {
		uploader__pass(fixture.uploader);
		usleep(10000);
	}
	CU_ASSERT(fixture.server.request_cnt == 2 && second.request_cnt == 1 && second.requests[0].frame_cnt == 3);
	CU_ASSERT(fixture.shared.sent_blocks == 3 && !fixture.shared.used_bytes);
	said = end(&fixture);
	CU_ASSERT_EQUAL(count_lines(said, "blocks go to"), 1);
	server_stop(&second);
	upload_client__free(client);
}

static void hosts_spread_over_collectors(void)
{
	static const char three[] = "https://a:7700,https://b:7700,https://c:7700";
	unsigned firsts[3] = {0}, moved = 0;

	for (unsigned h = 0; h < 3000; h++) {
		struct collectors all, other, fewer;
		char host[16];

		snprintf(host, sizeof(host), "host-%u", h);
		CU_ASSERT_EQUAL_FATAL(collectors__parse(&all, three, host), 0);
		CU_ASSERT_EQUAL_FATAL(collectors__parse(&other, "https://c:7700,https://a:7700,https://b:7700", host),
				      0);
		CU_ASSERT_EQUAL_FATAL(collectors__parse(&fewer, "https://a:7700,https://c:7700", host), 0);
		for (size_t i = 0; i < 3; i++)
			CU_ASSERT(!strcmp(all.urls[i], other.urls[i]));
		firsts[all.urls[0][8] - 'a']++;
		/* Without b, only its hosts go elsewhere, and to their second choice. */
		moved += strcmp(all.urls[0], fewer.urls[0]) != 0;
		CU_ASSERT(!strcmp(fewer.urls[0], all.urls[all.urls[0][8] == 'b']));
		collectors__free(&all);
		collectors__free(&other);
		collectors__free(&fewer);
	}
	for (size_t i = 0; i < 3; i++)
		CU_ASSERT(firsts[i] > 850 && firsts[i] < 1150);
	CU_ASSERT_EQUAL(moved, firsts[1]);
}

static void lists_of_collectors_are_checked(void)
{
	struct collectors collectors;

	CU_ASSERT_EQUAL(collectors__parse(&collectors, "", "h"), -EINVAL);
	CU_ASSERT_EQUAL(collectors__parse(&collectors, "https://a,,https://b", "h"), -EINVAL);
	CU_ASSERT_EQUAL(collectors__parse(&collectors, "a,b,c,d,e,f,g,h,i", "h"), -E2BIG);
	CU_ASSERT_EQUAL(collectors__parse(&collectors, "a,b,c,d,e,f,g,h", "h"), 0);
	CU_ASSERT_EQUAL(collectors.cnt, COLLECTORS_MAX);
	collectors__free(&collectors);
}

int suite_upload(void)
{
	static const struct unit_test tests[] = {
		{"waits grow, are capped and differ", waits_grow_are_capped_and_differ},
		{"what was asked for is waited", what_was_asked_for_is_waited},
		{"all go at once and are forgotten", all_go_at_once_and_are_forgotten},
		{"plain HTTP passes no proxy", plain_http_passes_no_proxy},
		{"an answer is bounded", an_answer_is_bounded},
		{"what fails for now is sent again", what_fails_for_now_is_sent_again},
		{"the same trouble is said once", the_same_trouble_is_said_once},
		{"a block that is refused is counted", a_block_that_is_refused_is_counted},
		{"a block at fault is found", a_block_at_fault_is_found},
		{"a body too large is halved", a_body_too_large_is_halved},
		{"urls are judged", urls_are_judged},
		{"files that are no good are named", files_that_are_no_good_are_named},
		{"a certificate that is no good is named", a_certificate_that_is_no_good_is_named},
		{"another collector takes them", another_collector_takes_them},
		{"hosts spread over collectors", hosts_spread_over_collectors},
		{"lists of collectors are checked", lists_of_collectors_are_checked},
	};

	return unit_suite("upload", tests, sizeof(tests) / sizeof(tests[0]));
}
