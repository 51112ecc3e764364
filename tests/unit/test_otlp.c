// SPDX-License-Identifier: GPL-2.0-or-later
/* Spans: as protoc reads them by docs/otlp.proto, and what becomes of them at a collector's. */
#include "base/clock.h"
#include "net/send/otlp_send.h"
#include "row_writer.h"
#include "test_shard_util.h"
#include "unit.h"
#include "view/export_otlp.h"
#include "view/otlp_follow.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WALL_NS 1795471120000000000ULL
#define MS      1000000ULL

/* Request 2 waits in the queue behind request 1, both of thread 7; in trace mode with what the thread did. */
static void write_recording(const char *dir, bool traced, bool anchors)
{
	struct row_writer to;
	char text[32];

	row_writer_open(&to, dir, "web-1", 77, 5);
	row_put_session(&to, "comm", "server");
	row_put_session(&to, "host", "web-1");
	row_put_session(&to, "pid", "5");
	if (anchors) {
		snprintf(text, sizeof(text), "%llu", (unsigned long long)WALL_NS);
		row_put_session(&to, "mono_anchor_ns", "1000000");
		row_put_session(&to, "wall_anchor_ns", text);
	}
	if (traced) {
		row_put_thread(&to, 5, 7, "worker");
		row_put_segment(&to, 7, 1 * MS, 2 * MS, "blocked.poll", 0);
		row_put_segment(&to, 7, 2 * MS, 5 * MS, "running", 1);
		row_put_segment(&to, 7, 5 * MS, 6 * MS, "running", 2);
	}
	row_put_interval(&to, 1, 7, "GET \xff/a", 2 * MS, 5 * MS, 0, 0);
	row_begin_interval(&to, 2, 7, "GET /b", 3 * MS, 6 * MS, 0, 0);
	row_set_u64(&to, INTERVAL_PICKUP_TS, 5 * MS);
	row_set_u64(&to, INTERVAL_QUEUE_SID, 1);
	row_end(&to, SHARD_TABLE_INTERVAL);
	row_writer_close(&to);
}

static int put_file(void *owner, const void *bytes, size_t sz, size_t span_cnt)
{
	CU_ASSERT(span_cnt > 0);
	return fwrite(bytes, 1, sz, owner) == sz ? 0 : -EIO;
}

static int export_to(const char *dir, const char *path, struct otlp_stats *stats)
{
	struct shard_reader *reader = test_reader__open(dir);
	struct traces traces;
	int found = traces_load(&traces, reader), err;
	FILE *out = fopen(path, "we");

	CU_ASSERT_FATAL(out && found >= 0);
	err = export_otlp(reader, found ? &traces : NULL, NULL, put_file, out, stats);
	fclose(out);
	if (found)
		traces_free(&traces);
	shard_reader__free(reader);
	return err;
}

/* protoc's text, to be freed; NULL: it is not there, which is said. */
static char *decode_as(const char *message, const char *path)
{
	char command[512], *text = calloc(1, 1 << 20);
	FILE *in;
	size_t sz;
	int status;

	if (system("command -v protoc >/dev/null 2>&1")) {
		printf("\n    skipped: protoc is not installed ");
		free(text);
		return NULL;
	}
	snprintf(command, sizeof(command),
		 "protoc -I docs --decode=opentelemetry.proto.collector.trace.v1.%s otlp.proto <%s 2>&1", message,
		 path);
	in = popen(command, "r");
	CU_ASSERT_FATAL(in && text);
	sz = fread(text, 1, (1 << 20) - 1, in);
	text[sz] = '\0';
	status = pclose(in);
	CU_ASSERT_EQUAL(status, 0);
	if (status)
		fprintf(stderr, "protoc: %.300s\n", text);
	return text;
}

static char *decode(const char *path)
{
	return decode_as("ExportTraceServiceRequest", path);
}

static unsigned count(const char *text, const char *part)
{
	unsigned cnt = 0;

	for (; (text = strstr(text, part)); text += strlen(part))
		cnt++;
	return cnt;
}

/* A field that our description lacks is printed by its number. */
static bool has_unknown_field(const char *text)
{
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += strspn(line, "\n ");
		if (*line >= '0' && *line <= '9')
			return true;
	}
	return false;
}

/* --- while they are recorded -------------------------------------------------------------------------------------- */

struct receiver {
	size_t requests, spans;
	int err; /* that it answers with */
};

static int receive(void *owner, const void *bytes, size_t sz, size_t span_cnt)
{
	struct receiver *receiver = owner;

	CU_ASSERT(bytes && sz > 0);
	if (receiver->err)
		return receiver->err;
	receiver->requests++;
	receiver->spans += span_cnt;
	return 0;
}

static void put_come(struct row_writer *to, uint64_t sid)
{
	row_put_interval(to, sid, 7, "t", sid * MS, sid * MS + MS, 0, 0);
	CU_ASSERT_FATAL(!shard_writer__flush(to->writer, false));
}

/* Each turn exports the blocks that were stored since the last one; after a failed post the next turn exports them
 * again. */
static void requests_are_sent_as_they_come(void)
{
	struct receiver receiver = {.err = 0};
	const char *path;
	struct otlp_follow_opts opts = {.paths = &path, .path_cnt = 1, .behind_ns = UINT64_MAX};
	struct otlp_follow *follow;
	struct row_writer to;
	struct test_dir dir;
	char text[32];

	test_dir__make(&dir);
	path = dir.path;
	row_writer_open(&to, dir.path, "a", 5, 100);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)WALL_NS);
	row_put_session(&to, "mono_anchor_ns", "1000000");
	row_put_session(&to, "wall_anchor_ns", text);
	follow = otlp_follow__new(&opts);
	CU_ASSERT_PTR_NOT_NULL_FATAL(follow);
	CU_ASSERT_EQUAL(otlp_follow__turn(follow, false, receive, &receiver), 0);
	CU_ASSERT_EQUAL(receiver.spans, 0);
	put_come(&to, 1);
	CU_ASSERT_EQUAL(otlp_follow__turn(follow, false, receive, &receiver), 0);
	CU_ASSERT_EQUAL(otlp_follow__turn(follow, false, receive, &receiver), 0);
	CU_ASSERT_EQUAL(receiver.spans, 1);
	receiver.err = -EHOSTDOWN;
	put_come(&to, 2);
	put_come(&to, 3);
	CU_ASSERT_EQUAL(otlp_follow__turn(follow, false, receive, &receiver), -EHOSTDOWN);
	CU_ASSERT_EQUAL(otlp_follow__stats(follow)->waiting_requests, 2);
	receiver.err = 0;
	CU_ASSERT_EQUAL(otlp_follow__turn(follow, false, receive, &receiver), 0);
	CU_ASSERT(receiver.spans == 3 && receiver.requests == 2);
	CU_ASSERT(!otlp_follow__has_ended(follow));
	row_put_session(&to, "end_ts", "9000000");
	put_come(&to, 4);
	row_writer_close(&to);
	CU_ASSERT_EQUAL(otlp_follow__turn(follow, false, receive, &receiver), 0);
	CU_ASSERT(receiver.spans == 4 && otlp_follow__has_ended(follow));
	CU_ASSERT(otlp_follow__stats(follow)->requests == 4 && !otlp_follow__stats(follow)->dropped_requests);
	otlp_follow__free(follow);
	test_dir__remove(&dir);
}

/* What belongs to a request is there when it goes out; one that waits for too long is counted, and goes nowhere. */
static void requests_wait_within_limits(void)
{
	struct receiver receiver = {.err = -EHOSTDOWN};
	const char *path;
	struct otlp_follow_opts opts = {
		.paths = &path, .path_cnt = 1, .settle_ns = 1000 * 1000 * MS, .behind_ns = UINT64_MAX};
	struct otlp_follow *follow;
	struct test_dir dir;

	test_dir__make(&dir);
	path = dir.path;
	write_recording(dir.path, true, true);
	follow = otlp_follow__new(&opts);
	CU_ASSERT_PTR_NOT_NULL_FATAL(follow);
	CU_ASSERT_EQUAL(otlp_follow__turn(follow, false, receive, &receiver), 0);
	CU_ASSERT_EQUAL(otlp_follow__stats(follow)->waiting_requests, 2);
	CU_ASSERT_EQUAL(otlp_follow__turn(follow, true, receive, &receiver), -EHOSTDOWN);
	receiver.err = 0;
	CU_ASSERT_EQUAL(otlp_follow__turn(follow, true, receive, &receiver), 0);
	/* With the steps of their critical paths. */
	CU_ASSERT(otlp_follow__stats(follow)->requests == 2 && receiver.spans > 2);
	otlp_follow__free(follow);

	opts.behind_ns = 0;
	follow = otlp_follow__new(&opts);
	CU_ASSERT_PTR_NOT_NULL_FATAL(follow);
	receiver.spans = 0;
	CU_ASSERT_EQUAL(otlp_follow__turn(follow, false, receive, &receiver), 0);
	sleep_ns(MS);
	CU_ASSERT_EQUAL(otlp_follow__turn(follow, false, receive, &receiver), 0);
	CU_ASSERT(otlp_follow__stats(follow)->dropped_requests == 2 && !otlp_follow__stats(follow)->waiting_requests);
	CU_ASSERT_EQUAL(receiver.spans, 0);
	otlp_follow__free(follow);
	test_dir__remove(&dir);
}

static void requests_are_spans(void)
{
	struct otlp_stats stats;
	struct test_dir dir;
	char path[128], *text, *again;

	test_dir__make(&dir);
	write_recording(dir.path, false, true);
	snprintf(path, sizeof(path), "%s/spans", dir.path);
	CU_ASSERT_EQUAL(export_to(dir.path, path, &stats), 0);
	CU_ASSERT(stats.requests == 2 && stats.spans == 2 && !stats.without_clock);
	text = decode(path);
	if (text) {
		CU_ASSERT(count(text, "    spans {") == 2 && !count(text, "parent_span_id") &&
			  count(text, "links {") == 1);
		/* 1 ms on its clock was WALL_NS. */
		CU_ASSERT(strstr(text, "start_time_unix_nano: 1795471120001000000") &&
			  strstr(text, "end_time_unix_nano: 1795471120004000000"));
		CU_ASSERT(strstr(text, "\"web-1\"") && strstr(text, "\"server\"") && strstr(text, "name: \"GET /b\""));
		CU_ASSERT(count(text, "SPAN_KIND_SERVER") == 2 && !has_unknown_field(text));
		/* The same numbers again. */
		CU_ASSERT_EQUAL(export_to(dir.path, path, &stats), 0);
		again = decode(path);
		CU_ASSERT(again && !strcmp(text, again));
		free(again);
	}
	free(text);
	test_dir__remove(&dir);
}

static void paths_are_children(void)
{
	struct otlp_stats stats;
	struct test_dir dir;
	char path[128], *text;

	test_dir__make(&dir);
	write_recording(dir.path, true, true);
	snprintf(path, sizeof(path), "%s/spans", dir.path);
	CU_ASSERT_EQUAL(export_to(dir.path, path, &stats), 0);
	CU_ASSERT(stats.requests == 2 && stats.spans >= 5);
	text = decode(path);
	if (text) {
		CU_ASSERT_EQUAL(count(text, "    spans {"), stats.spans);
		CU_ASSERT_EQUAL(count(text, "parent_span_id"), stats.spans - 2);
		CU_ASSERT_EQUAL(count(text, "SPAN_KIND_INTERNAL"), stats.spans - 2);
		/* What request 2 waited for. */
		CU_ASSERT(count(text, "links {") >= 1 && strstr(text, "string_value: \"queue\""));
		CU_ASSERT_FALSE(has_unknown_field(text));
	}
	free(text);
	test_dir__remove(&dir);
}

static void without_a_clock_there_is_no_span(void)
{
	struct otlp_stats stats;
	struct test_dir dir;
	char path[128];

	test_dir__make(&dir);
	write_recording(dir.path, false, false);
	snprintf(path, sizeof(path), "%s/spans", dir.path);
	CU_ASSERT_EQUAL(export_to(dir.path, path, &stats), 0);
	CU_ASSERT(!stats.spans && stats.without_clock == 2);
	test_dir__remove(&dir);
}

static void rejections_are_read_whatever_they_are(void)
{
	static const uint8_t three[] = {0x0a, 0x07, 0x08, 0x03, 0x12, 0x03, 'b', 'a', 'd'};
	static const uint8_t unknown_first[] = {0x10, 0x05, 0x1d, 1, 2, 3, 4, 0x0a, 0x02, 0x08, 0x07};
	static const uint8_t not_a_message[] = {0x08, 0x05};
	static const uint8_t too_long[] = {0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
	struct test_rng rng = {2};

	CU_ASSERT_EQUAL(otlp_rejected(three, sizeof(three)), 3);
	CU_ASSERT_EQUAL(otlp_rejected(unknown_first, sizeof(unknown_first)), 7);
	CU_ASSERT_EQUAL(otlp_rejected(not_a_message, sizeof(not_a_message)), 0);
	CU_ASSERT_EQUAL(otlp_rejected(too_long, sizeof(too_long)), 0);
	CU_ASSERT_EQUAL(otlp_rejected(NULL, 0), 0);
	for (size_t sz = 0; sz < sizeof(three); sz++)
		CU_ASSERT(otlp_rejected(three, sz) == 0);
	for (int i = 0; i < 20000; i++) {
		size_t sz = test_rng__below(&rng, 24);
		uint8_t *bytes = malloc(sz + 1);

		for (size_t b = 0; b < sz; b++)
			bytes[b] = (uint8_t)test_rng__below(&rng, test_rng__below(&rng, 2) ? 256 : 16);
		otlp_rejected(bytes, sz);
		free(bytes);
	}
}

/* Answers one request after the other with these. */
struct answers {
	const char *const *texts;
	const size_t *sizes;
	size_t cnt, body_bytes;
	int fd, port;
	pthread_t thread;
};

static void serve_one(struct answers *answers, size_t no)
{
	int fd = accept(answers->fd, NULL, NULL);
	char head[4096] = "";
	size_t sz = 0, length = 0;
	char *end = NULL;

	while (!end && sz < sizeof(head) - 1) {
		ssize_t got = read(fd, head + sz, sizeof(head) - 1 - sz);

		if (got <= 0)
			break;
		sz += (size_t)got;
		head[sz] = '\0';
		end = strstr(head, "\r\n\r\n");
	}
	if (end && strcasestr(head, "content-length:"))
		length = strtoul(strcasestr(head, "content-length:") + 15, NULL, 10);
	for (size_t left = end ? length - (sz - (size_t)(end + 4 - head)) : 0; left;) {
		ssize_t got = read(fd, head, left < sizeof(head) ? left : sizeof(head));

		if (got <= 0)
			break;
		left -= (size_t)got;
	}
	answers->body_bytes += length;
	if (write(fd, answers->texts[no], answers->sizes[no]) < 0)
		perror("write");
	close(fd);
}

static void *serve(void *owner)
{
	struct answers *answers = owner;

	for (size_t i = 0; i < answers->cnt; i++)
		serve_one(answers, i);
	return NULL;
}

static void answers_begin(struct answers *answers)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t sz = sizeof(address);

	answers->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CU_ASSERT_FATAL(!bind(answers->fd, (struct sockaddr *)&address, sizeof(address)) && !listen(answers->fd, 8) &&
			!getsockname(answers->fd, (struct sockaddr *)&address, &sz));
	answers->port = ntohs(address.sin_port);
	CU_ASSERT_FATAL(!pthread_create(&answers->thread, NULL, serve, answers));
}

#define CLOSE "Connection: close\r\nContent-Length: "

static void what_a_collector_takes_is_counted(void)
{
	static const char *const texts[] = {
		"HTTP/1.1 503 Busy\r\n" CLOSE "0\r\n\r\n",
		"HTTP/1.1 200 OK\r\n" CLOSE "0\r\n\r\n",
		"HTTP/1.1 200 OK\r\n" CLOSE "4\r\n\r\n\x0a\x02\x08\x03",
		"HTTP/1.1 400 Bad\r\n" CLOSE "5\r\n\r\nno\x1b[m",
	};
	size_t sizes[4];
	struct answers answers = {.texts = texts, .sizes = sizes, .cnt = 4};
	const struct otlp_send_stats *stats;
	struct otlp_send_opts opts = {.patience_ns = 5000000000ULL};
	struct otlp_send *send;
	const char *what;
	char url[64];

	for (size_t i = 0; i < 4; i++)
		sizes[i] = strlen(texts[i]);
	answers_begin(&answers);
	snprintf(url, sizeof(url), "http://127.0.0.1:%d/v1/traces", answers.port);
	opts.url = url;
	send = otlp_send__new(&opts, &what);
	CU_ASSERT_PTR_NOT_NULL_FATAL(send);
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(otlp_send__post(send, "0123456789", 10, 10), 0);
	pthread_join(answers.thread, NULL);
	close(answers.fd);
	stats = otlp_send__stats(send);
	CU_ASSERT(stats->retries == 1 && stats->requests == 2 && stats->spans == 17 && stats->dropped_spans == 13);
	CU_ASSERT(strstr(stats->why, "status 400") && !strchr(stats->why, '\x1b'));
	CU_ASSERT_EQUAL(answers.body_bytes, 40);
	otlp_send__free(send);
	/* Nobody is there any more. */
	opts.patience_ns = 1;
	send = otlp_send__new(&opts, &what);
	CU_ASSERT_EQUAL(otlp_send__post(send, "x", 1, 4), -EHOSTDOWN);
	CU_ASSERT(otlp_send__stats(send)->untaken_spans == 4 && !otlp_send__stats(send)->dropped_spans);
	otlp_send__free(send);
}

static void only_safe_urls_are_taken(void)
{
	CU_ASSERT_PTR_NULL(otlp_url_check("http://localhost:4318/v1/traces", false));
	CU_ASSERT_PTR_NULL(otlp_url_check("https://otel.example/v1/traces", false));
	CU_ASSERT_PTR_NULL(otlp_url_check("http://otel.example/v1/traces", true));
	CU_ASSERT_PTR_NOT_NULL(otlp_url_check("http://otel.example/v1/traces", false));
	CU_ASSERT_PTR_NOT_NULL(otlp_url_check("http://127.0.0.1.example/", false));
	CU_ASSERT_PTR_NOT_NULL(otlp_url_check("https://me:secret@otel.example/", false));
	CU_ASSERT_PTR_NOT_NULL(otlp_url_check("file:///etc/passwd", false));
	CU_ASSERT_PTR_NOT_NULL(otlp_url_check("localhost:4318", false));
}

static void latencies_are_exponential_histograms(void)
{
	struct shard_reader *reader;
	struct otlp_stats stats;
	struct test_dir dir;
	char path[128], *text;
	FILE *out;

	test_dir__make(&dir);
	write_recording(dir.path, false, true);
	snprintf(path, sizeof(path), "%s/metrics", dir.path);
	out = fopen(path, "we");
	reader = test_reader__open(dir.path);
	CU_ASSERT_FATAL(out && !export_otlp_metrics(reader, put_file, out, &stats));
	fclose(out);
	shard_reader__free(reader);
	CU_ASSERT(stats.requests == 2 && !stats.without_clock);
	text = decode_as("ExportMetricsServiceRequest", path);
	if (text) {
		CU_ASSERT(strstr(text, "\"whylate.request.duration\"") && strstr(text, "\"web-1\"") &&
			  strstr(text, "AGGREGATION_TEMPORALITY_CUMULATIVE") && !has_unknown_field(text));
		/* Both took 3 ms: 2^(-68/8) = 2.76 ms is below, 2^(-67/8) = 3.01 ms above. */
		CU_ASSERT(count(text, "offset: -68\n") == 2 && count(text, "bucket_counts: 1\n") == 2);
		CU_ASSERT(count(text, "count: 1\n") >= 2 && count(text, "sum: 0.003\n") == 2 &&
			  count(text, "scale: 3\n") == 2 && count(text, "max: 0.003\n") == 2);
		CU_ASSERT(strstr(text, "start_time_unix_nano: 1795471120001000000") &&
			  strstr(text, "time_unix_nano: 1795471120005000000"));
		free(text);
	}
	test_dir__remove(&dir);
}

int suite_otlp(void)
{
	static const struct unit_test tests[] = {
		{"requests are sent as they come", requests_are_sent_as_they_come},
		{"requests wait within limits", requests_wait_within_limits},
		{"requests are spans", requests_are_spans},
		{"paths are children", paths_are_children},
		{"without a clock there is no span", without_a_clock_there_is_no_span},
		{"rejections are read whatever they are", rejections_are_read_whatever_they_are},
		{"what a collector takes is counted", what_a_collector_takes_is_counted},
		{"only safe URLs are taken", only_safe_urls_are_taken},
		{"latencies are exponential histograms", latencies_are_exponential_histograms},
	};

	return unit_suite("otlp", tests, sizeof(tests) / sizeof(tests[0]));
}
