// SPDX-License-Identifier: GPL-2.0-or-later
/* The collector among good, bad and hostile clients, and on disks that fill up and go away. */
#include "collector.h"
#include "net.h"
#include "servers.h"
#include "session.h"
#include "shard/pack.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK_CNT 60

static struct path certs(const char *name)
{
	return temp_path("certs/%s", name);
}

/* An authority, its server and clients a and b, one of its that has expired, and one of somebody else's. */
static const char make_certs[] =
	"set -e; mkdir -p \"$1\"; cd \"$1\"; exec 2>openssl.log\n"
	"key() { openssl ecparam -name prime256v1 -genkey -noout -out $1.key; }\n"
	"ca() { key $1; openssl req -x509 -new -key $1.key -subj /CN=$1 -days 2 -out $1.pem; }\n"
	"cert() { key $1; openssl req -new -key $1.key -subj /CN=$2 -out $1.csr; printf \"$3\" >$1.ext\n"
	"  openssl x509 -req -in $1.csr -CA $4.pem -CAkey $4.key -CAcreateserial $5 -extfile $1.ext -out $1.pem; "
	"}\n"
	"ca ca; ca other-ca; expired='-days -1'\n"
	/* Since OpenSSL 3.4, days cannot be negative, and dates can be given. */
	"if openssl x509 -help 2>&1 | grep -q -e -not_after; then\n"
	"  expired='-not_before 20200101000000Z -not_after 20200201000000Z'\n"
	"fi\n"
	"cert server localhost 'subjectAltName=DNS:localhost,IP:127.0.0.1\\n' ca '-days 2'\n"
	"cert a host-a '' ca '-days 2'\n"
	"cert b ignored 'subjectAltName=DNS:host-b\\n' ca '-days 2'\n"
	"cert old host-a '' ca \"$expired\"\n"
	"cert foreign host-a '' other-ca '-days 2'\n"
	"cert serving host-a 'extendedKeyUsage=serverAuth\\n' ca '-days 2'\n"
	"printf '# who may write\\nhost-c token-of-host-c-0123456789\\nhost-d token-of-host-d-0123456789\\n' >tokens\n"
	"printf '[ca]\ndefault_ca=d\n[d]\ndatabase=index.txt\ncrlnumber=crlnumber\ndefault_md=sha256\n"
	"default_crl_days=2\ncertificate=ca.pem\nprivate_key=ca.key\n' >ca.conf; : >index.txt; echo 01 >crlnumber\n"
	"openssl ca -config ca.conf -gencrl -out none.crl\n"
	"openssl ca -config ca.conf -revoke b.pem; openssl ca -config ca.conf -gencrl -out b.crl\n"
	"cp none.crl live.crl; cp tokens live.tokens\n"
	"chmod 600 *.key *tokens; chown nobody *.key *tokens\n";

static bool have_certs(void)
{
	struct path dir = temp_path("certs");
	const char *argv[] = {"sh", "-c", make_certs, "sh", dir.s, NULL};
	struct process sh;
	bool good;

	if (is_there(dir.s))
		return true;
	good = !process_launch_argv(&sh, NULL, argv) && CHECK(process_wait(&sh, 60) == 0);
	process_end(&sh);
	return good;
}

static bool start_tls(struct collector *collector, const char *store, const char *more)
{
	return have_certs() && collector_start(collector, store, "--tls-cert %s --tls-key %s --client-ca %s %s",
					       certs("server.pem").s, certs("server.key").s, certs("ca.pem").s, more);
}

static void test_identities(void)
{
	static const struct {
		const char *cert, *host;
		int status;
		const char *why;
	} cases[] = {
		{"a", "host-a", 200, "\"stored\": 2"},
		{"b", "host-b", 200, "\"stored\": 2"},
		{"a", "host-b", 403, "the certificate belongs to another host"},
		{"b", "ignored", 403, "the certificate belongs to another host"},
		{"old", "host-a", 401, "the certificate has expired"},
		{"foreign", "host-a", 401, "the certificate is of another authority"},
		{"serving", "host-a", 401, "the certificate is not meant for clients"},
	};
	struct collector collector;
	struct stream stream;
	char answer[ANSWER_SZ];
	struct path body;

	if (!stream_make(&stream, 2) || !start_tls(&collector, "identities", ""))
		return;
	body = stream_body(&stream, 0, 2, "body");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char key[32], pem[32];

		snprintf(key, sizeof(key), "%s.key", cases[i].cert);
		snprintf(pem, sizeof(pem), "%s.pem", cases[i].cert);
		collector_expect(&collector,
				 collector_post(&collector, answer, cases[i].host, body.s,
						"--cacert %s --cert %s --key %s", certs("ca.pem").s, certs(pem).s,
						certs(key).s),
				 cases[i].status, answer, cases[i].why);
	}
	collector_expect(&collector,
			 collector_post(&collector, answer, "host-a", body.s, "--cacert %s", certs("ca.pem").s), 401,
			 answer, "no certificate");
	/* Old protocols and plain text get nowhere. */
	CHECK(collector_post(&collector, answer, "host-a", body.s, "-k --tls-max 1.1") == 0);
	collector.tls = false;
	CHECK(collector_post(&collector, answer, "host-a", body.s, " ") == 0);
	collector.tls = true;
	CHECK(collector_metric(&collector, "blocks_total") == 4);
	CHECK(collector_stop(&collector) == 0);
	collector_end(&collector);
	stream_free(&stream);
}

/* Puts the file in the place of another, and tells the collector. */
static bool replace(struct collector *collector, const char *from, const char *to, const char *says)
{
	struct process cp;

	process_start(&cp, "cp %s %s", certs(from).s, certs(to).s);
	CHECK(process_wait(&cp, 5) == 0);
	process_end(&cp);
	kill(collector->process.pid, SIGHUP);
	return CHECKF(process_says(&collector->process, true, says, NULL, 10), "%s", process_err(&collector->process));
}

static int post_as(struct collector *collector, const char *who, const char *host, const struct path *body,
		   char answer[ANSWER_SZ])
{
	char key[32], pem[32];

	snprintf(key, sizeof(key), "%s.key", who);
	snprintf(pem, sizeof(pem), "%s.pem", who);
	return collector_post(collector, answer, host, body->s, "--cacert %s --cert %s --key %s", certs("ca.pem").s,
			      certs(pem).s, certs(key).s);
}

/* SIGHUP: what is in the files then holds from then on; what cannot be used changes nothing. */
static void test_reload(void)
{
	static const char header[] = "Authorization: Bearer token-of-host-c-0123456789";
	struct path header_path = temp_path("reload-header"), body;
	struct collector collector;
	struct stream stream;
	char answer[ANSWER_SZ], more[1100];

	if (!have_certs() || !stream_make(&stream, 2))
		return;
	snprintf(more, sizeof(more), "--crl %s --tokens %s", certs("live.crl").s, certs("live.tokens").s);
	if (!start_tls(&collector, "reload", more))
		return;
	body = stream_body(&stream, 0, 2, "body");
	CHECK(!file_write(header_path.s, header, strlen(header)));
	CHECKF(post_as(&collector, "b", "host-b", &body, answer) == 200, "%s", answer);
	CHECK(replace(&collector, "b.crl", "live.crl", "are read again"));
	collector_expect(&collector, post_as(&collector, "b", "host-b", &body, answer), 401, answer,
			 "the certificate was revoked");
	CHECKF(post_as(&collector, "a", "host-a", &body, answer) == 200, "%s", answer);
	CHECKF(collector_post(&collector, answer, "host-c", body.s, "--cacert %s -H @%s", certs("ca.pem").s,
			      header_path.s) == 200,
	       "%s", answer);
	/* Not a list of tokens, and one that everybody may read. */
	CHECK(replace(&collector, "ca.pem", "live.tokens", "stay as they were"));
	CHECK(!chmod(certs("live.tokens").s, 0644));
	kill(collector.process.pid, SIGHUP);
	CHECKF(process_says(&collector.process, true, "everybody may read it", NULL, 10), "%s",
	       process_err(&collector.process));
	CHECKF(post_as(&collector, "a", "host-a", &body, answer) == 200, "%s", answer);
	CHECK(!chmod(certs("live.tokens").s, 0600));
	CHECK(collector_stop(&collector) == 0);
	collector_end(&collector);
	stream_free(&stream);
}

static void test_tokens(void)
{
	static const struct {
		const char *token, *host;
		int status;
		const char *why;
	} cases[] = {
		{"token-of-host-c-0123456789", "host-c", 200, "\"stored\": 2"},
		{"token-of-host-d-0123456789", "host-d", 200, "\"stored\": 2"},
		{"token-of-host-c-0123456789", "host-d", 403, "the token belongs to another host"},
		{"token-of-host-c-0123456780", "host-c", 401, "the token is not known"},
		{"token-of-host-c", "host-c", 401, "the token is not known"},
	};
	struct collector collector;
	struct stream stream;
	char answer[ANSWER_SZ], more[600];
	struct path body, header = temp_path("header");

	if (!have_certs() || !stream_make(&stream, 2))
		return;
	snprintf(more, sizeof(more), "--tokens %s", certs("tokens").s);
	if (!start_tls(&collector, "tokens", more))
		return;
	body = stream_body(&stream, 0, 2, "body");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[200];

		snprintf(text, sizeof(text), "Authorization: Bearer %s", cases[i].token);
		CHECK(!file_write(header.s, text, strlen(text)));
		collector_expect(&collector,
				 collector_post(&collector, answer, cases[i].host, body.s, "--cacert %s -H @%s",
						certs("ca.pem").s, header.s),
				 cases[i].status, answer, cases[i].why);
	}
	collector_expect(&collector,
			 collector_post(&collector, answer, "host-c", body.s, "--cacert %s", certs("ca.pem").s), 401,
			 answer, "neither a certificate nor a token");
	/* A token is as good as a certificate. */
	collector_expect(&collector,
			 collector_post(&collector, answer, "host-a", body.s, "--cacert %s --cert %s --key %s",
					certs("ca.pem").s, certs("a.pem").s, certs("a.key").s),
			 200, answer, "\"stored\": 2");
	collector_end(&collector);
	stream_free(&stream);
}

/* Posts these bytes, which must be refused and leave nothing behind. */
static void expect_refused(struct collector *collector, const struct shard_buf *body, int expected, const char *why)
{
	struct path path = temp_path("bad-body");
	char answer[ANSWER_SZ];

	CHECK(!file_write(path.s, body->items, body->cnt));
	collector_expect(collector, collector_post(collector, answer, "host-a", path.s, " "), expected, answer, why);
}

static void test_malformed_bodies(void)
{
	static const uint8_t text[] =
		"this is no block, and it is longer than the header of one, so it is looked at whole: no.";
	struct collector collector;
	struct stream stream;
	struct shard_buf body = {0}, other = {0};
	char answer[ANSWER_SZ];
	struct path path;

	if (!stream_make(&stream, 3) || !collector_start(&collector, "malformed", "--max-requests 1000"))
		return;
	body_put(&body, PROTOCOL_BLOCK, 0, stream.blocks[0].items, stream.blocks[0].cnt);
	body_put(&body, PROTOCOL_BLOCK, 1, stream.blocks[1].items, stream.blocks[1].cnt);
	body.items[body.cnt - 5] ^= 1;
	expect_refused(&collector, &body, 400, "its checksum is wrong");
	body.items[body.cnt - 5] ^= 1;
	body.items[9] ^= 1;
	expect_refused(&collector, &body, 400, "its checksum is wrong");
	body.items[9] ^= 1;
	body.items[0] ^= 1;
	expect_refused(&collector, &body, 400, "no frame begins");
	body.items[0] ^= 1;
	body.cnt -= 7;
	expect_refused(&collector, &body, 400, "the body ends within a frame");
	body.cnt = 0;
	expect_refused(&collector, &body, 400, "no frame in it");
	body_put(&body, PROTOCOL_BLOCK, 0, text, sizeof(text));
	expect_refused(&collector, &body, 400, "does not hold a block");
	body.cnt = 0;
	body_put(&body, PROTOCOL_BLOCK, 0, stream.blocks[0].items, stream.blocks[0].cnt - 1);
	expect_refused(&collector, &body, 400, "its size is not that of its block");
	/* The frame is right, the block in it is not. */
	CHECK(!vec_reserve(&other, stream.blocks[0].cnt));
	memcpy(other.items, stream.blocks[0].items, stream.blocks[0].cnt);
	other.items[stream.blocks[0].cnt - 9] ^= 1;
	body.cnt = 0;
	body_put(&body, PROTOCOL_BLOCK, 0, stream.blocks[1].items, stream.blocks[1].cnt);
	body_put(&body, PROTOCOL_BLOCK, 5, other.items, stream.blocks[0].cnt);
	expect_refused(&collector, &body, 400, "its block's checksum is wrong");
	path = temp_path("bad-body");
	CHECK(collector_post(&collector, answer, "host-a", path.s, " ") == 400 && strstr(answer, "\"frame\": 1") &&
	      strstr(answer, "\"seq\": 5"));
	/* Too much of everything. */
	body.cnt = 0;
	for (uint64_t i = 0; i <= PROTOCOL_FRAMES_MAX; i++)
		body_put(&body, PROTOCOL_END, i, NULL, 0);
	expect_refused(&collector, &body, 413, "too many frames");
	CHECK(!vec_reserve(&body, PROTOCOL_BODY_MAX + 1));
	memset(body.items, 0, PROTOCOL_BODY_MAX + 1);
	body.cnt = PROTOCOL_BODY_MAX + 1;
	expect_refused(&collector, &body, 413, "larger than 8 MiB");
	/* Another session's block. */
	path = stream_body(&stream, 0, 1, "body");
	collector_expect(&collector,
			 collector_ask(&collector, answer, "/v1/hosts/host-a/sessions/0123456789abcdee/blocks",
				       "--data-binary @%s", path.s),
			 400, answer, "of another session");
	CHECK(collector_metric(&collector, "blocks_total") == 0);
	CHECK(collector_metric(&collector, "store_files") == 0);
	CHECK(collector_ask(&collector, answer, "/healthz", " ") == 200 && !strcmp(answer, "ok\n"));
	collector_end(&collector);
	vec_free(&body);
	vec_free(&other);
	stream_free(&stream);
}

/* Blocks that are whole, of tables that nobody may send. */
static void test_wrong_tables(void)
{
	static const struct shard_column columns[] = {{"pid", SHARD_STR, SHARD_UNIT_NONE, false}};
	static const struct {
		struct shard_table table;
		const char *why;
	} cases[] = {
		{{"interval", columns, 1}, "contradicts its table"},
		{{"received", columns, 1}, "a name that no table may have"},
		{{"../x", columns, 1}, "a name that no table may have"},
	};
	struct shard_packer packer = {0};
	struct shard_row row = {.values[0].str = "x"};
	struct collector collector;

	if (!collector_start(&collector, "tables", " "))
		return;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct shard_block_header header = {
			.kind = SHARD_BLOCK_ROWS, .codec = SHARD_CODEC_ZSTD, .session_id = SESSION_ID};
		struct shard_stage *stage = shard_stage__new(&cases[i].table, 1);
		struct shard_buf block = {0}, body = {0};

		if (CHECK(stage && !shard_stage__append(stage, &row) &&
			  !shard_packer__pack(&packer, stage, &header, &block))) {
			body_put(&body, PROTOCOL_BLOCK, 0, block.items, block.cnt);
			expect_refused(&collector, &body, 400, cases[i].why);
		}
		vec_free(&body);
		vec_free(&block);
		shard_stage__free(stage);
	}
	CHECK(collector_metric(&collector, "store_files") == 0);
	collector_end(&collector);
	shard_packer__clear(&packer);
}

static void test_requests(void)
{
	static const struct {
		const char *path, *more;
		int status;
		const char *why;
	} cases[] = {
		{"/", "", 404, "no such path"},
		{"/v1/hosts/h/sessions/" SESSION_TEXT, "", 404, "no such path"},
		{"/v1/hosts/../sessions/" SESSION_TEXT "/blocks", "-d x", 400, "not well-formed"},
		{"/v1/hosts/..%2f..%2fetc/sessions/" SESSION_TEXT "/blocks", "-d x", 400, "not well-formed"},
		{"/v1/hosts/a%00b/sessions/" SESSION_TEXT "/blocks", "-d x", 400, "not well-formed"},
		{"/v1/hosts/%2e%2e/sessions/" SESSION_TEXT "/blocks", "-d x", 400, "not well-formed"},
		{"/v1/hosts/../../etc/passwd", "-d x", 404, "no such path"},
		{"/v1/hosts/.hidden/sessions/" SESSION_TEXT "/blocks", "-d x", 400, "not well-formed"},
		{"/v1/hosts/h/sessions/../blocks", "-d x", 400, "not well-formed"},
		{"/v1/hosts/h/sessions/" SESSION_TEXT "/blocks", "-X GET", 405, "method"},
		{"/v1/hosts/h/sessions/" SESSION_TEXT "/blocks", "-X PUT -d x", 405, "method"},
		{"/v1/hosts/h/sessions/" SESSION_TEXT "/blocks", "-X DELETE", 405, "method"},
		{"/healthz", "-d x", 405, "method"},
		{"/v1/hosts/h/sessions/" SESSION_TEXT "/blocks", "-d x -H Transfer-Encoding:chunked", 411,
		 "Content-Length"},
		{"/v1/hosts/h/sessions/" SESSION_TEXT "/blocks", "-d x -H Content-Encoding:gzip", 400,
		 "Content-Encoding"},
		{"/v1/hosts/h/sessions/" SESSION_TEXT "/blocks", "-d x", 400, "no frame begins"},
	};
	struct collector collector;
	char answer[ANSWER_SZ];

	if (!collector_start(&collector, "requests", "--max-requests 1000"))
		return;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		collector_expect(&collector, collector_ask(&collector, answer, cases[i].path, "%s", cases[i].more),
				 cases[i].status, answer, cases[i].why);
	CHECK(collector_metric(&collector, "store_files") == 0);
	CHECK(collector_stop(&collector) == 0);
	collector_end(&collector);
}

static void test_repeated_and_reordered(void)
{
	struct collector collector;
	struct stream stream;
	char answer[ANSWER_SZ];
	struct shard_buf body = {0};
	struct path path;

	if (!stream_make(&stream, BLOCK_CNT) || !collector_start(&collector, "repeated", " "))
		return;
	path = stream_body(&stream, 40, 60, "body");
	collector_expect(&collector, collector_post(&collector, answer, "host-a", path.s, " "), 200, answer,
			 "{\"stored\": 20, \"duplicates\": 0}");
	path = stream_body(&stream, 0, 50, "body");
	collector_expect(&collector, collector_post(&collector, answer, "host-a", path.s, " "), 200, answer,
			 "{\"stored\": 40, \"duplicates\": 10}");
	collector_expect(&collector, collector_post(&collector, answer, "host-a", path.s, " "), 200, answer,
			 "{\"stored\": 0, \"duplicates\": 50}");
	/* The same numbers with other blocks. */
	body_put(&body, PROTOCOL_BLOCK, 100, stream.blocks[0].items, stream.blocks[0].cnt);
	body_put(&body, PROTOCOL_BLOCK, 7, stream.blocks[8].items, stream.blocks[8].cnt);
	expect_refused(&collector, &body, 409, "stored with other bytes");
	body.cnt = 0;
	body_put(&body, PROTOCOL_END, 60, NULL, 0);
	path = temp_path("end");
	CHECK(!file_write(path.s, body.items, body.cnt));
	collector_expect(&collector, collector_post(&collector, answer, "host-a", path.s, " "), 200, answer,
			 "\"stored\": 1");
	stream_is_stored(&stream, collector.store.s, NULL);
	CHECK(collector_metric(&collector, "duplicates_total") == 60);
	CHECK(collector_metric(&collector, "host_blocks_total{host=\"host-a\"}") == 61);
	CHECK(collector_metric(&collector, "refusals_total{reason=\"conflict\",status=\"409\"}") == 1);
	CHECK(collector_stop(&collector) == 0);
	stream_is_stored(&stream, collector.store.s, NULL);
	collector_end(&collector);
	vec_free(&body);
	stream_free(&stream);
}

/* Sends what is left of the stream, five blocks at a time, as an agent does: until it was acknowledged. */
static void test_killed_in_mid_stream(void)
{
	struct collector collector;
	struct stream stream;
	char answer[ANSWER_SZ];
	bool acknowledged[BLOCK_CNT] = {false};
	struct process process;
	json_object *root;

	if (!stream_make(&stream, BLOCK_CNT) || !collector_start(&collector, "killed", " "))
		return;
	for (size_t from = 0; from < BLOCK_CNT; from += 5) {
		struct path body = stream_body(&stream, from, from + 5, "body");
		int status = collector_post(&collector, answer, "host-a", body.s, " ");

		CHECKF(status == 200, "%d %s", status, answer);
		for (size_t i = from; i < from + 5; i++)
			acknowledged[i] = true;
		if (from % 3)
			continue;
		/* At any moment: also while a request is under way whose answer nobody gets. */
		if (from + 10 <= BLOCK_CNT) {
			struct path next = stream_body(&stream, from + 5, from + 10, "next");

			process_start(&process,
				      "curl -s -o /dev/null --limit-rate 200k --data-binary @%s "
				      "http://127.0.0.1:%d/v1/hosts/host-a/sessions/" SESSION_TEXT "/blocks",
				      next.s, collector.port);
			sleep_ms((unsigned)from % 7 * 5);
			process_signal(&collector.process, SIGKILL);
			process_end(&process);
		}
		process_signal(&collector.process, SIGKILL);
		process_wait(&collector.process, 5);
		stream_is_stored(&stream, collector.store.s, acknowledged);
		if (!collector_restart(&collector, " "))
			return;
	}
	CHECK(collector_stop(&collector) == 0);
	stream_is_stored(&stream, collector.store.s, NULL);
	/* And it reads like any recording. */
	root = report_read(collector.store.s, NULL);
	CHECKF(json_number(root, "session.intervals_kept") == BLOCK_CNT * ROWS_PER_BLOCK, "%g intervals",
	       json_number(root, "session.intervals_kept"));
	CHECKF(!json_at(root, "damage.0"), "%s", json_text(root, "damage.0.what"));
	json_object_put(root);
	collector_end(&collector);
	stream_free(&stream);
}

static void test_full_store(void)
{
	struct collector collector;
	struct stream stream;
	struct path body, mount_point = temp_path("stores/full");
	char answer[ANSWER_SZ];
	bool acknowledged[BLOCK_CNT] = {false};
	bool was_full = false;

	mkdir(temp_path("stores").s, 0755);
	mkdir(mount_point.s, 0755);
	if (mount("whylate-test", mount_point.s, "tmpfs", 0, "size=64k,mode=777"))
		return skip("full_store", "no tmpfs can be mounted");
	if (!stream_make(&stream, BLOCK_CNT) || !collector_start(&collector, "full", "--max-requests 1000"))
		goto cleanup;
	for (size_t from = 0; from < BLOCK_CNT; from += 5) {
		int status;

		body = stream_body(&stream, from, from + 5, "body");
		status = collector_post(&collector, answer, "host-a", body.s, " ");
		CHECKF(status == 200 || status == 507, "%d %s", status, answer);
		was_full |= status == 507;
		for (size_t i = from; i < from + 5; i++)
			acknowledged[i] = status == 200;
	}
	CHECK(was_full);
	collector_expect(&collector, collector_post(&collector, answer, "host-a", body.s, " "), 507, answer,
			 "the disk is full");
	CHECK(collector_turns(&collector, 503, ""));
	stream_is_stored(&stream, collector.store.s, acknowledged);
	/* Room again. */
	CHECK(!mount("whylate-test", mount_point.s, "tmpfs", MS_REMOUNT, "size=16m"));
	body = stream_body(&stream, 0, BLOCK_CNT, "body");
	CHECK(collector_post(&collector, answer, "host-a", body.s, " ") == 200);
	CHECK(collector_turns(&collector, 200, "ok"));
	CHECK(collector_stop(&collector) == 0);
	stream_is_stored(&stream, collector.store.s, NULL);
	collector_end(&collector);
cleanup:
	CHECK(!umount(mount_point.s));
	stream_free(&stream);
}

static void test_vanished_store(void)
{
	struct collector collector;
	struct stream stream;
	struct path body, moved = temp_path("moved");
	char answer[ANSWER_SZ];

	if (!stream_make(&stream, 10) || !collector_start(&collector, "vanishing", " "))
		return;
	body = stream_body(&stream, 0, 5, "body");
	CHECK(collector_post(&collector, answer, "host-a", body.s, " ") == 200);
	CHECK(!rename(collector.store.s, moved.s));
	body = stream_body(&stream, 0, 10, "body");
	collector_expect(&collector, collector_post(&collector, answer, "host-a", body.s, " "), 503, answer,
			 "directory is gone");
	CHECK(collector_turns(&collector, 503, "No such file"));
	CHECK(!rename(moved.s, collector.store.s));
	collector_expect(&collector, collector_post(&collector, answer, "host-a", body.s, " "), 200, answer,
			 "{\"stored\": 5, \"duplicates\": 5}");
	CHECK(strstr(process_err(&collector.process), "is there again") != NULL);
	CHECK(collector_stop(&collector) == 0);
	stream_is_stored(&stream, collector.store.s, NULL);
	collector_end(&collector);
	stream_free(&stream);
}

static void test_command_line(void)
{
	static const struct {
		const char *args;
		int code;
		const char *says;
	} cases[] = {
		{"", 2, "--listen"},
		{"--listen 127.0.0.1:0", 2, "--store"},
		{"--listen 127.0.0.1:0 --store x y", 2, "'y'"},
		{"--listen 127.0.0.1:0 --store x --tls-cert c", 2, "--tls-key"},
		{"--listen 127.0.0.1:0 --store x --client-ca c", 2, "--client-ca"},
		{"--listen 127.0.0.1:0 --store x --keep soon", 2, "soon"},
		{"--listen 127.0.0.1:0 --store x --max-bytes much", 2, "much"},
		{"--listen 127.0.0.1:0 --store /nonexistent/x", 1, "/nonexistent/x"},
		{"--listen 127.0.0.1:0 --store /dev/null", 1, "/dev/null"},
		{"--listen 127.0.0.1 --store /tmp/x", 1, "ADDRESS:PORT"},
		{"--listen 127.0.0.1:99999 --store /tmp/x", 1, "127.0.0.1:99999"},
		{"--listen ::1:7700 --store /tmp/x", 1, "::1:7700"},
		{"--listen 192.0.2.1:7700 --store /tmp/x", 1, "192.0.2.1:7700"},
		{"--listen 0.0.0.0:0 --store /tmp/x", 1, "without TLS"},
		{"--listen 127.0.0.1:0 --store /tmp/x --tokens /nonexistent/t", 1, "/nonexistent/t"},
		{"--listen 127.0.0.1:0 --store /tmp/x --tokens /etc/passwd", 1, "everybody may read it"},
		{"--listen 127.0.0.1:0 --store /tmp/x --tls-cert /etc/passwd --tls-key /etc/passwd", 1,
		 "everybody may read it"},
	};
	struct process process;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int code = whylate_as(&process, "nobody", 10, "collect %s", cases[i].args);

		CHECKF(code == cases[i].code, "collect %s: %d, %s", cases[i].args, code, process_err(&process));
		said_one_line(&process, cases[i].says, NULL);
		process_end(&process);
	}
}

/* Sends the bytes and reads the first answer: its status, 0: there was none. */
static int ask_raw(const struct collector *collector, const char *bytes, size_t sz)
{
	const struct timeval patience = {.tv_sec = 5};
	int fd = port_connect(collector->port), status = 0;
	char answer[ANSWER_SZ] = "";

	if (!CHECK(fd >= 0))
		return 0;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (send(fd, bytes, sz, MSG_NOSIGNAL) == (ssize_t)sz && recv(fd, answer, sizeof(answer) - 1, 0) > 0)
		sscanf(answer, "HTTP/1.%*d %d", &status);
	close(fd);
	return status;
}

/* What a proxy in front may read in another way than we do is refused, and only that. */
static void test_strict_headers(void)
{
#define POST "POST /v1/hosts/h/sessions/" SESSION_TEXT "/blocks HTTP/1.1\r\nHost: x\r\n"
	static const struct {
		const char *name;
		int status;
		const char *text;
		size_t sz;
	} cases[] = {
#define CASE(name, status, text) {name, status, text, sizeof(text) - 1}
		CASE("plain", 200, "GET /healthz HTTP/1.1\r\nHost: x\r\nAccept:*/*\r\nX:   a b\r\n\r\n"),
		CASE("HTTP/1.0", 200, "GET /healthz HTTP/1.0\r\n\r\n"),
		CASE("no Host", 400, "GET /healthz HTTP/1.1\r\n\r\n"),
		CASE("two Hosts", 400, "GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n"),
		CASE("NUL in the path", 400, "GET /healthz\0/x HTTP/1.1\r\nHost: x\r\n\r\n"),
		CASE("NUL in a header", 400, "GET /healthz HTTP/1.1\r\nHost: x\0y\r\n\r\n"),
		CASE("a query", 400, "GET /healthz?x HTTP/1.1\r\nHost: x\r\n\r\n"),
		CASE("bare LF", 400, "GET /healthz HTTP/1.1\nHost: x\n\n"),
		CASE("bare LF in a header", 400, "GET /healthz HTTP/1.1\r\nHost: x\nX: y\r\n\r\n"),
		CASE("bare LF made up for", 400, "GET /healthz HTTP/1.1\r\nHost: x \nX: y\r\n\r\n"),
		CASE("bare LF at the end", 400, "GET /healthz HTTP/1.1\r\nHost: x\r\n\n"),
		CASE("bare CR", 400, "GET /healthz HTTP/1.1\r\nHost: x\rX: y\r\n\r\n"),
		CASE("a folded line", 400, "GET /healthz HTTP/1.1\r\nHost: x\r\nX: a\r\n b\r\n\r\n"),
		CASE("a blank before a colon", 400, "GET /healthz HTTP/1.1\r\nHost : x\r\nHost: x\r\n\r\n"),
		CASE("two blanks", 400, "GET  /healthz HTTP/1.1\r\nHost: x\r\n\r\n"),
		CASE("two lengths", 400, POST "Content-Length: 3\r\nContent-Length: 5\r\n\r\nabcde"),
		CASE("a length and chunks", 411,
		     POST "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n"),
#undef CASE
	};
#undef POST
	struct collector collector;

	if (!collector_start(&collector, "strict", " "))
		return;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int status = ask_raw(&collector, cases[i].text, cases[i].sz);

		CHECKF(status == cases[i].status, "%s: %d", cases[i].name, status);
	}
	CHECK(collector_stop(&collector) == 0);
	collector_end(&collector);
}

/* Root's collector becomes another user before it reads what comes from the network, and is confined. */
static void test_confined(void)
{
	struct process process;
	struct path store = temp_path("store-of-root");
	char path[64], *text;
	struct stat st;

	CHECK(whylate(&process, 10, "collect --listen 127.0.0.1:0 --store %s", store.s) == 2);
	said_one_line(&process, "does not run as root", "--user");
	process_end(&process);
	CHECK(whylate(&process, 10, "collect --user root --listen 127.0.0.1:0 --store %s", store.s) == 1);
	said_one_line(&process, "'root' is root", NULL);
	process_end(&process);
	process_start(&process, "%s collect --user nobody --listen 127.0.0.1:0 --store %s", whylate_path(), store.s);
	if (!CHECKF(process_says(&process, true, "listening on", NULL, 10), "%s", process_err(&process)))
		goto cleanup;
	CHECK(!stat(store.s, &st) && st.st_uid == 65534);
	snprintf(path, sizeof(path), "/proc/%d/status", (int)process.pid);
	text = file_read(path, NULL);
	CHECKF(text && strstr(text, "\nUid:\t65534\t65534\t65534\t65534\n") &&
		       strstr(text, "\nCapPrm:\t0000000000000000\n") && strstr(text, "\nNoNewPrivs:\t1\n") &&
		       (is_sanitized() || strstr(text, "\nSeccomp:\t2\n")),
	       "%s", text);
	free(text);
cleanup:
	process_end(&process);
}

static const struct live_test tests[] = {
	{"collector_confined", test_confined, SHORT},
	{"collect_command_line", test_command_line, SHORT},
	{"identities", test_identities, SHORT},
	{"tokens", test_tokens, SHORT},
	{"reload", test_reload, SHORT},
	{"requests", test_requests, SHORT},
	{"strict_headers", test_strict_headers, SHORT},
	{"malformed_bodies", test_malformed_bodies, SHORT},
	{"wrong_tables", test_wrong_tables, SHORT},
	{"repeated_and_reordered", test_repeated_and_reordered, SHORT},
	{"killed_in_mid_stream", test_killed_in_mid_stream, SHORT},
	{"full_store", test_full_store, SHORT},
	{"vanished_store", test_vanished_store, SHORT},
};

int suite_collect(void)
{
	return live_suite("collect", tests, sizeof(tests) / sizeof(tests[0]));
}
