// SPDX-License-Identifier: GPL-2.0-or-later
/* The type of a request by its first bytes: what they are, torn, mixed up, or none of a request at all. */
#include "unit.h"

#include "model/request_types.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT(bytes) (const uint8_t *)(bytes), sizeof(bytes) - 1

/* A copy that ends where the bytes end, so that the sanitizer sees a look beyond. */
static bool parse(enum request_protocol protocol, const void *bytes, size_t len, uint64_t total, bool cut,
		  struct request_parsed *parsed)
{
	uint8_t *copy = malloc(len ? len : 1);
	struct request_bytes request = {.bytes = copy, .len = len, .total = total, .cut = cut};
	bool found;

	memcpy(copy, bytes, len);
	found = request_parse(protocol, &request, parsed);
	free(copy);
	return found;
}

static bool is_sound(const struct request_parsed *parsed)
{
	size_t len = strnlen(parsed->text, REQUEST_TEXT_MAX);

	if (len >= REQUEST_TEXT_MAX || memchr(parsed->statement, 0, REQUEST_STATEMENT_MAX) == NULL)
		return false;
	for (size_t i = 0; i < len; i++)
		if (parsed->text[i] < ' ' || parsed->text[i] > '~')
			return false;
	return len || parsed->prepared == REQUEST_EXECUTES;
}

struct example {
	enum request_protocol protocol;
	const char *bytes;
	size_t len;
	const char *text;
	const char *secret; /* part of the request that the text must not have; NULL: none */
};
#define EXAMPLE(protocol, bytes, text, secret) {REQUEST_##protocol, bytes, sizeof(bytes) - 1, text, secret}

static const struct example examples[] = {
	EXAMPLE(HTTP, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET /", "Host"),
	EXAMPLE(HTTP, "GET /users/4711/orders?token=hush HTTP/1.1\r\n", "GET /users/*/orders", "hush"),
	EXAMPLE(HTTP, "DELETE /v1/item/3b12f1df-5232-4804-897e-917bf397618a HTTP/1.0\r\n", "DELETE /v1/item/*", "3b12"),
	EXAMPLE(HTTP, "POST /a/deadbeef01/page123.html;jsessionid=hush HTTP/1.1\r\n", "POST /a/*/page*.html", "hush"),
	EXAMPLE(HTTP, "GET /s/thisisaverylongwordthatnobodywouldcallaroute HTTP/1.1\r\n", "GET /s/*", "verylong"),
	EXAMPLE(HTTP, "GET /q/caf%C3%A9/a=b HTTP/1.1\r\n", "GET /q/*/*", "caf"),
	EXAMPLE(HTTP, "GET http://example.org:80/x/7 HTTP/1.1\r\n", "GET /x/*", "example"),
	EXAMPLE(HTTP, "GET http://me:hush@example.org/x HTTP/1.0\r\n\r\n", "GET /x", "hush"),
	EXAMPLE(HTTP, "OPTIONS * HTTP/1.1\r\n", "OPTIONS *", NULL),
	EXAMPLE(HTTP, "GET /v/hush5W9wXcQ HTTP/1.1\r\n", "GET /v/*", "hush"),
	EXAMPLE(HTTP, "GET /MyApp2/getOauth2Token/v1 HTTP/1.1\r\n", "GET /MyApp2/getOauth2Token/v1", NULL),
	EXAMPLE(HTTP, "GET /Customers('hush')/Orders(Id=hush)/Items HTTP/1.1\r\n", "GET /Customers(*)/Orders(*)/Items",
		"hush"),
	EXAMPLE(HTTP, "GET /caf\xc3\xa9/hush\xf0\x9f\x98\x80 HTTP/1.1\r\n", "GET /*/*", "hush"),
	EXAMPLE(HTTP, "GET /a HTTP/1.1\r\n\r\nGET /hush HTTP/1.1\r\n\r\n", "GET /a", "hush"),
	EXAMPLE(HTTP, "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhush\r\n", "POST /a", "hush"),
	EXAMPLE(HTTP, "CONNECT hush.org:443 HTTP/1.1\r\n", "CONNECT", "hush"),
	EXAMPLE(HTTP, "GET /a/b/c/d/e/f/g/h/i/j/k/l/hush/hush HTTP/1.1\r\n", "GET /a/b/c/d/e/f/g/h/i/j/k/l/*", "hush"),
	EXAMPLE(HTTP, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/2", NULL),
	EXAMPLE(REDIS, "*2\r\n$3\r\nGET\r\n$4\r\nhush\r\n", "GET", "hush"),
	EXAMPLE(REDIS, "*3\r\n$3\r\nset\r\n$4\r\nhush\r\n$1\r\n1\r\n", "SET", "hush"),
	EXAMPLE(REDIS, "*3\r\n$6\r\nCONFIG\r\n$3\r\nget\r\n$4\r\nhush\r\n", "CONFIG GET", "hush"),
	EXAMPLE(REDIS, "*1\r\n$4\r\nPING\r\n*2\r\n$3\r\nGET\r\n$1\r\na\r\n", "PING", NULL),
	EXAMPLE(REDIS, "*2\r\n$7\r\nFT.INFO\r\n$1\r\na\r\n", "FT.INFO", NULL),
	EXAMPLE(REDIS, "ping\r\n", "PING", NULL),
	EXAMPLE(REDIS, "*5\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$2\r\nme\r\n$4\r\nhush\r\n", "HELLO", "hush"),
	EXAMPLE(MEMCACHED, "get hush\r\n", "get", "hush"),
	EXAMPLE(MEMCACHED, "get a b c\r\n", "get", "a b"),
	EXAMPLE(MEMCACHED, "set hush 0 60 4\r\nhush\r\n", "set", "hush"),
	EXAMPLE(MEMCACHED, "cas k 0 -1 4 99 noreply\r\nhush\r\n", "cas", "hush"),
	EXAMPLE(MEMCACHED, "incr k 5\r\n", "incr", NULL),
	EXAMPLE(MEMCACHED, "stats\r\n", "stats", NULL),
	EXAMPLE(MEMCACHED, "mg hush v t\r\n", "mg", "hush"),
	EXAMPLE(MEMCACHED, "ms hush 4 T60\r\nhush\r\n", "ms", "hush"),
	EXAMPLE(MEMCACHED, "mn\r\n", "mn", NULL),
	EXAMPLE(MEMCACHED, "get hush\n", "get", "hush"),
	EXAMPLE(MEMCACHED, "\x80\x01\0\4\x08\0\0\0\0\0\0\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0hushhush", "set",
		"hush"),
	EXAMPLE(POSTGRES, "Q\0\0\0\x1aSELECT 1 FROM t7 x;\0", "SELECT ? FROM t7 x", " 1 "),
	EXAMPLE(POSTGRES, "Q\0\0\0\x2eUPDATE a SET b = b + -12 WHERE c = 'hush'\0",
		"UPDATE a SET b = b + ? WHERE c = ?", "hush"),
	EXAMPLE(POSTGRES, "P\0\0\0\x1as1\0SELECT $1 + 12345\0\0\0", "SELECT ? + ?", "123"),
	EXAMPLE(POSTGRES, "C\0\0\0\x6S\0S\0\0\0\4P\0\0\0\x10\0SELECT 1\0\0\0", "SELECT ?", NULL),
	EXAMPLE(POSTGRES, "\0\0\0\x10\0\3\0\0user\0me\0", "startup", "user"),
	EXAMPLE(POSTGRES, "\0\0\0\x8\4\xd2\x16\x2f", "SSL request", NULL),
	EXAMPLE(POSTGRES, "X\0\0\0\4", "Terminate", NULL),
	EXAMPLE(MYSQL, "\x21\0\0\0\x03SELECT c FROM sbtest1 WHERE id=12", "SELECT c FROM sbtest1 WHERE id=?", "12"),
	EXAMPLE(MYSQL, "\x1a\0\0\0\x03SELECT \"hush\", 'hu''s\\'h'", "SELECT ?", "hush"),
	EXAMPLE(MYSQL, "\x1a\0\0\0\x16SELECT a FROM b WHERE c=?", "PREPARE SELECT a FROM b WHERE c=?", NULL),
	EXAMPLE(MYSQL, "\x0b\0\0\0\x03\0\1SELECT 1", "SELECT ?", NULL),
	EXAMPLE(MYSQL, "\x01\0\0\0\x0e", "PING", NULL),
	EXAMPLE(MYSQL, "\x22\0\0\0\x03\2\1\0\1\xfe\0\1a\x08\0\1b\4hush\1\2\3\4\5\6\7\x08SELECT 1", "SELECT ?", "hush"),
	EXAMPLE(MYSQL, "\x11\0\0\0\x03\1\1\1\1\xfe\0\1aSELECT 1", "SELECT ?", NULL),
	EXAMPLE(FASTCGI,
		"\1\1\0\1\0\x08\0\0\0\1\1\0\0\0\0\0\1\4\0\1\0\x38\0\0"
		"\x0e\3REQUEST_METHODGET\x0b\x18REQUEST_URI/app/12/view?token=hush12",
		"GET /app/*/view", "hush"),
	EXAMPLE(UWSGI,
		"\0\x33\0\0"
		"\x0e\0REQUEST_METHOD\4\0POST\x0b\0REQUEST_URI\x0e\0/a/99?b=hushhu",
		"POST /a/*", "hush"),
	EXAMPLE(NATS, "PUB orders.new.4711 5\r\nhushh\r\n", "PUB orders.new.*", "hush"),
	EXAMPLE(NATS, "PUB price _INBOX.hush.7 2\r\nhu\r\n", "PUB price reply-to", "hush"),
	EXAMPLE(NATS, "PUB _INBOX.hush.7 2\r\nok\r\n", "PUB _INBOX.*", "hush"),
	EXAMPLE(NATS, "HPUB price _INBOX.hush.7 12 14\r\nNATS/1.0\r\n\r\nhu\r\n", "PUB price reply-to", "hush"),
	EXAMPLE(NATS, "SUB _INBOX.hush.* 1\r\nPUB price _INBOX.hush.7 0\r\n\r\n", "PUB price reply-to", "hush"),
	EXAMPLE(NATS, "SUB price workers 12\r\n", "SUB", "price"),
	EXAMPLE(NATS, "CONNECT {\"pass\":\"hush\"}\r\nPING\r\n", "PING", "hush"),
	EXAMPLE(NATS, "PING\r\n", "PING", NULL),
	EXAMPLE(TLS, "\x17\3\3\0\x20hushhushhushhushhushhushhushhush", "TLS", "hush"),
};
#define EXAMPLE_CNT (sizeof(examples) / sizeof(examples[0]))

static void requests_have_types(void)
{
	struct request_parsed parsed;

	for (size_t i = 0; i < EXAMPLE_CNT; i++) {
		const struct example *example = &examples[i];
		bool found = parse(example->protocol, example->bytes, example->len, example->len, false, &parsed);

		if (!found || strcmp(parsed.text, example->text))
			fprintf(stderr, "%s: '%s' is not '%s'\n", request_protocol_name(example->protocol),
				found ? parsed.text : "(none)", example->text);
		CU_ASSERT(found);
		CU_ASSERT_STRING_EQUAL(parsed.text, example->text);
		CU_ASSERT(is_sound(&parsed));
	}
}

/* Whatever the first bytes end in, nothing of a value gets into the text, and the text is what can be shown. */
static void torn_requests_tell_no_values(void)
{
	struct request_parsed parsed;

	for (size_t i = 0; i < EXAMPLE_CNT; i++)
		for (size_t len = 0; len <= examples[i].len; len++)
			for (int cut = 0; cut < 2; cut++) {
				const struct example *example = &examples[i];

				if (!parse(example->protocol, example->bytes, len, cut ? example->len : len, cut,
					   &parsed))
					continue;
				CU_ASSERT(is_sound(&parsed));
				CU_ASSERT(!example->secret || !strstr(parsed.text, example->secret));
			}
}

/* The form of one protocol is that of no other one, or weakly so. */
static void protocols_are_told_apart(void)
{
	struct request_parsed parsed;

	for (size_t i = 0; i < EXAMPLE_CNT; i++)
		for (int p = REQUEST_NONE; p < REQUEST_PROTOCOL_CNT; p++) {
			const struct example *example = &examples[i];

			if (p == (int)example->protocol || !parse((enum request_protocol)p, example->bytes,
								  example->len, example->len, false, &parsed))
				continue;
			if (!parsed.weak)
				fprintf(stderr, "'%s' of %s is one of %s, too\n", example->text,
					request_protocol_name(example->protocol),
					request_protocol_name((enum request_protocol)p));
			CU_ASSERT(parsed.weak);
		}
}

static uint64_t draw(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 33;
}

/* Random bytes, and requests of which some bytes are others. */
static void any_bytes_are_bounded(void)
{
	struct request_parsed parsed;
	uint64_t seed = 7;
	uint8_t bytes[WL_FIRST_MAX];

	for (int round = 0; round < 20000; round++) {
		const struct example *example = &examples[draw(&seed) % EXAMPLE_CNT];
		size_t len = example->len;
		bool random = !(round % 3);

		if (random)
			len = draw(&seed) % (sizeof(bytes) + 1);
		for (size_t i = 0; i < len; i++)
			bytes[i] = random ? (uint8_t)draw(&seed) : (uint8_t)example->bytes[i];
		for (int changes = (int)(draw(&seed) % 4); changes && len; changes--)
			bytes[draw(&seed) % len] = (uint8_t)draw(&seed);
		for (int p = REQUEST_NONE; p < REQUEST_PROTOCOL_CNT; p++)
			if (parse((enum request_protocol)p, bytes, len, len + draw(&seed) % 3, draw(&seed) % 2,
				  &parsed))
				CU_ASSERT(is_sound(&parsed));
	}
}

static void statement_is(const char *sql, bool mysql, const char *want)
{
	uint8_t bytes[WL_FIRST_MAX] = {0};
	struct request_parsed parsed;
	size_t len = strlen(sql);

	bytes[0] = (uint8_t)(len + 1);
	bytes[4] = 3;
	if (!mysql) {
		bytes[0] = 'Q';
		bytes[4] = (uint8_t)(len + 5);
	}
	memcpy(bytes + 5, sql, len);
	CU_ASSERT(parse(mysql ? REQUEST_MYSQL : REQUEST_POSTGRES, bytes, 5 + len + !mysql, 5 + len + !mysql, false,
			&parsed));
	CU_ASSERT_STRING_EQUAL(parsed.text, want);
}

static void statements_lose_their_literals(void)
{
	statement_is("select * from t where a in (1, 2,3 , 'x')", false, "select * from t where a in (? , ?)");
	statement_is("select * from t where a in (1, 2, 3)", false, "select * from t where a in (?)");
	statement_is("insert into t values (1,'a'), (2,'b'),(3,'c')", false, "insert into t values (?)");
	statement_is("select 1.5e-3, .5, 0xFF, -7", false, "select ?");
	statement_is("select a-1, b - 1", false, "select a-?, b - ?");
	statement_is("select $fn$it's$fn$, $$x$$", false, "select ?");
	statement_is("/* trace=hush */ select /* x */ 1 -- hush", false, "select ?");
	statement_is("select \"Col 1\" from \"t\"", false, "select \"Col 1\" from \"t\"");
	statement_is("select $t1$hush$t1$, $hush$x$hush$, 1_000_000, 0x_f", false, "select ?");
	statement_is("select /* a /* b */ hush */ 1", false, "select ?");
	statement_is("select /* a /* b */ c", true, "select c");
	statement_is("select N'a\\', 'hush'", false, "select ?");
	statement_is("select E'a\\'hush', x'ff', N'hush'", false, "select ?");
	statement_is("select `col` # hush", true, "select `col`");
	statement_is("  begin ; ", false, "begin");
	statement_is("", false, "(empty)");
	statement_is("update pgbench_accounts set abalance = abalance + -4 where aid = 5;", false,
		     "update pgbench_accounts set abalance = abalance + ? where aid = ?");
}

/* Wherever the bytes end within a literal. */
static void cut_statements_tell_no_literal(void)
{
	static const char sql[] = "SELECT a FROM t WHERE b = 'hush' AND c = \"hush\" AND d = $x$hush$x$ AND e = 987654";
	struct request_parsed parsed;
	uint8_t bytes[WL_FIRST_MAX] = "\xff\0\0\0\x03";

	memcpy(bytes + 5, sql, sizeof(sql) - 1);
	for (size_t len = 5; len < 5 + sizeof(sql) - 1; len++) {
		CU_ASSERT(parse(REQUEST_MYSQL, bytes, len, len, true, &parsed));
		CU_ASSERT_PTR_NULL(strstr(parsed.text, "hu"));
		CU_ASSERT_PTR_NULL(strpbrk(parsed.text, "0123456789"));
		CU_ASSERT(strlen(parsed.text) >= 3 && !strcmp(parsed.text + strlen(parsed.text) - 3, "..."));
	}
}

/* --- of a whole recording ----------------------------------------------------------------------------------------- */

static bool last_is_early, again; /* again: the request before it is handed over a second time */
static uint64_t last_sid;

static uint32_t take(struct request_types *types, uint32_t type, uint64_t conn, const uint8_t *bytes, size_t len)
{
	struct wl_brief_record record = {
		.sid = (last_sid += !again) << 12,
		.type = type,
		.conn = conn,
		.first_len = (uint32_t)(len < WL_FIRST_MAX ? len : WL_FIRST_MAX),
		.first_total = (uint32_t)len,
	};
	uint32_t named = request_types__take(types, &record, bytes, &last_is_early);

	CU_ASSERT_EQUAL(request_types__of(types, record.sid, type), len ? named : type);
	CU_ASSERT_EQUAL(request_types__of(NULL, record.sid, type), type);
	CU_ASSERT_EQUAL(named & ((1U << WL_TYPE_NAME_SHIFT) - 1), type);
	return named;
}

static const char *name_of(struct request_types *types, uint32_t type, uint64_t conn, const uint8_t *bytes, size_t len)
{
	const char *text = request_types__text(types, take(types, type, conn, bytes, len));

	return text ? text : "";
}

#define TCP(port) (WL_SOURCE_TCP << 16 | (port))

static void a_listener_speaks_one_protocol(void)
{
	struct request_types *types = request_types__new(REQUEST_NONE);

	CU_ASSERT_PTR_NOT_NULL_FATAL(types);
	CU_ASSERT_STRING_EQUAL(name_of(types, TCP(80), 1, TEXT("GET /a HTTP/1.1\r\n\r\n")), "GET /a");
	CU_ASSERT_STRING_EQUAL(name_of(types, TCP(6379), 2, TEXT("*1\r\n$4\r\nPING\r\n")), "PING");
	/* What people type is a command where commands are what comes, and nothing elsewhere. */
	CU_ASSERT_STRING_EQUAL(name_of(types, TCP(6379), 2, TEXT("INFO\r\n")), "INFO");
	CU_ASSERT_STRING_EQUAL(name_of(types, TCP(80), 2, TEXT("INFO\r\n")), "");
	CU_ASSERT_STRING_EQUAL(name_of(types, TCP(9999), 3, TEXT("INFO\r\n")), "");
	CU_ASSERT_EQUAL(request_types__protocol(types, TCP(80)), REQUEST_HTTP);
	CU_ASSERT_EQUAL(request_types__protocol(types, TCP(6379)), REQUEST_REDIS);
	/* In parts, of which the kernel side takes enough. */
	{
		static const uint8_t torn[] =
			"GET /torn?0123456789012345678901234567890123456789012345678901234567890123";

		CU_ASSERT_STRING_EQUAL(name_of(types, TCP(80), 1, torn, WL_FIRST_ENOUGH + 1), "GET /torn");
	}
	/* The rest of a value. */
	CU_ASSERT_STRING_EQUAL(name_of(types, TCP(6379), 2, TEXT("hush\r\n")), "");
	CU_ASSERT_EQUAL(request_types__protocol(types, TCP(9999)), REQUEST_NONE);
	CU_ASSERT_EQUAL(request_types__listener(types, 0), TCP(80));
	CU_ASSERT_EQUAL(request_types__listener(types, 3), 0);
	CU_ASSERT_EQUAL(take(types, TCP(80), 1, NULL, 0), TCP(80));
	request_types__free(types);
}

/* It has HTTP's form now and then, and is none. */
static void what_looks_like_http_is_not(void)
{
	struct request_types *types = request_types__new(REQUEST_NONE);
	unsigned named = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(types);
	for (int i = 0; i < 1000; i++) {
		if (i % 10)
			named += *name_of(types, TCP(1), 1, TEXT("GET /no version\n")) != '\0';
		else
			named += *name_of(types, TCP(1), 1, TEXT("GET /a HTTP/1.1\n")) != '\0';
	}
	/* Only the first, when nothing else had been seen. */
	CU_ASSERT_EQUAL(named, 1);
	CU_ASSERT_EQUAL(request_types__protocol(types, TCP(1)), REQUEST_NONE);
	request_types__free(types);
}

static void routes_are_bounded(void)
{
	struct request_types *types = request_types__new(REQUEST_HTTP);
	unsigned other = 0;
	char request[64];

	CU_ASSERT_PTR_NOT_NULL_FATAL(types);
	for (unsigned port = 1; port <= 30; port++)
		for (unsigned i = 0; i < 300; i++) {
			int len = snprintf(request, sizeof(request), "GET /%c%c%c HTTP/1.1\r\n", 'a' + port % 26,
					   'a' + i / 26, 'a' + i % 26);

			other += !strcmp(name_of(types, TCP(port), 1, (uint8_t *)request, (size_t)len), REQUEST_OTHER);
		}
	CU_ASSERT(other >= 30 * 100);
	/* Those that were first keep their names. */
	CU_ASSERT_STRING_EQUAL(name_of(types, TCP(1), 1, TEXT("GET /baa HTTP/1.1\r\n")), "GET /baa");
	request_types__free(types);
}

static void prepared_statements_have_texts(void)
{
	static const uint8_t prepare[] = "P\0\0\0\x13s1\0SELECT 12\0\0\0", bind[] = "B\0\0\0\x10\0s1\0\0\0\0\0\0\0\0E",
			     other[] = "P\0\0\0\x13s1\0DELETE 12\0\0\0";
	struct request_types *types = request_types__new(REQUEST_NONE);
	uint32_t type = TCP(5432);

	CU_ASSERT_PTR_NOT_NULL_FATAL(types);
	CU_ASSERT_STRING_EQUAL(name_of(types, type, 1, bind, 17), "EXECUTE s1 (text not seen)");
	CU_ASSERT(last_is_early);
	CU_ASSERT_STRING_EQUAL(name_of(types, type, 1, prepare, 20), "SELECT ?");
	CU_ASSERT(!last_is_early);
	CU_ASSERT_STRING_EQUAL(name_of(types, type, 1, bind, 17), "SELECT ?");
	CU_ASSERT(!last_is_early);
	/* Prepared unseen, on another connection: as long as all that were seen agree. */
	CU_ASSERT_STRING_EQUAL(name_of(types, type, 2, bind, 17), "SELECT ?");
	CU_ASSERT_STRING_EQUAL(name_of(types, type, 3, other, 20), "DELETE ?");
	CU_ASSERT_STRING_EQUAL(name_of(types, type, 3, bind, 17), "DELETE ?");
	CU_ASSERT_STRING_EQUAL(name_of(types, type, 1, bind, 17), "SELECT ?");
	CU_ASSERT_STRING_EQUAL(name_of(types, type, 2, bind, 17), "EXECUTE s1 (text not seen)");
	request_types__free(types);
}

/* MySQL numbers statements of each connection from 1 on. */
static void numbered_statements_have_texts(void)
{
	static const uint8_t plain[] = "\x09\0\0\0\x03SELECT 7", unknown[] = "\x09\0\0\0\x16SELECT ?",
			     prepared[] = "\x02\0\0\0\xffSELECT 12", execute[] = "\x0a\0\0\0\x17\2\0\0\0\0\1\0\0\0",
			     other[] = "\x02\0\0\0\xff"
				       "DELETE 12",
			     torn[] = "\x0a\0\0\0\x17\2\0";
	struct request_types *types = request_types__new(REQUEST_NONE);
	uint32_t type = TCP(3306);

	CU_ASSERT_PTR_NOT_NULL_FATAL(types);
	/* A client may prepare before it does anything else; what only looks like it tells no protocol. */
	CU_ASSERT_STRING_EQUAL(name_of(types, TCP(1), 9, TEXT(prepared)), "PREPARE SELECT ?");
	CU_ASSERT_STRING_EQUAL(name_of(types, TCP(1), 9, TEXT(execute)), "SELECT ?");
	CU_ASSERT_STRING_EQUAL(name_of(types, TCP(2), 1,
				       TEXT("abcd\xff"
					    "efgh")),
			       "");
	CU_ASSERT_STRING_EQUAL(name_of(types, type, 1, TEXT(plain)), "SELECT ?");
	CU_ASSERT(!last_is_early);
	CU_ASSERT_STRING_EQUAL(name_of(types, type, 1, TEXT(execute)), "EXECUTE (text not seen)");
	CU_ASSERT(last_is_early);
	CU_ASSERT_STRING_EQUAL(name_of(types, type, 1, TEXT(prepared)), "PREPARE SELECT ?");
	CU_ASSERT_STRING_EQUAL(name_of(types, type, 1, TEXT(execute)), "SELECT ?");
	CU_ASSERT_STRING_EQUAL(name_of(types, type, 1, TEXT(unknown)), "PREPARE SELECT ?");
	{
		uint8_t login[40] = {36, 0, 0, 1, 0x85, 0xa6};

		CU_ASSERT_STRING_EQUAL(name_of(types, TCP(3), 1, login, sizeof(login)), "login");
		login[20] = 1;
		CU_ASSERT_STRING_EQUAL(name_of(types, TCP(4), 1, login, sizeof(login)), "");
	}
	/* Another connection's number is another statement's, or nobody knows whose. */
	CU_ASSERT_STRING_EQUAL(name_of(types, type, 2, TEXT(execute)), "EXECUTE (text not seen)");
	CU_ASSERT_STRING_EQUAL(name_of(types, type, 2, TEXT(other)), "PREPARE DELETE ?");
	CU_ASSERT_STRING_EQUAL(name_of(types, type, 2, TEXT(execute)), "DELETE ?");
	CU_ASSERT_STRING_EQUAL(name_of(types, type, 1, TEXT(execute)), "SELECT ?");
	CU_ASSERT_STRING_EQUAL(name_of(types, type, 1, TEXT(torn)), "EXECUTE");
	request_types__free(types);
}

/* Prepared before the recording, or while none was selected: one is waited for, and then no other. */
static void unseen_statements_are_taken_once(void)
{
	static const uint8_t plain[] = "\x09\0\0\0\x03SELECT 7", execute[] = "\x0a\0\0\0\x17\2\0\0\0\0\1\0\0\0",
			     prepared[] = "\x02\0\0\0\xffSELECT 12", bind[] = "B\0\0\0\x10\0s1\0\0\0\0\0\0\0\0E",
			     prepare[] = "P\0\0\0\x13s1\0SELECT 12\0\0\0";
	struct request_types *types = request_types__new(REQUEST_NONE);
	uint32_t mysql = TCP(3306), postgres = TCP(5432);

	CU_ASSERT_PTR_NOT_NULL_FATAL(types);
	name_of(types, mysql, 1, TEXT(plain));
	CU_ASSERT_STRING_EQUAL(name_of(types, mysql, 1, TEXT(execute)), "EXECUTE (text not seen)");
	CU_ASSERT(last_is_early);
	again = true;
	CU_ASSERT_STRING_EQUAL(name_of(types, mysql, 1, TEXT(execute)), "EXECUTE (text not seen)");
	CU_ASSERT(!last_is_early);
	again = false;
	CU_ASSERT_STRING_EQUAL(name_of(types, mysql, 1, TEXT(execute)), "EXECUTE (text not seen)");
	CU_ASSERT(!last_is_early);
	CU_ASSERT_STRING_EQUAL(name_of(types, mysql, 2, TEXT(execute)), "EXECUTE (text not seen)");
	CU_ASSERT(last_is_early);
	name_of(types, mysql, 1, TEXT(prepared));
	CU_ASSERT_STRING_EQUAL(name_of(types, mysql, 1, TEXT(execute)), "SELECT ?");
	/* Another connection's preparation tells the text of that name, after all. */
	name_of(types, postgres, 1, bind, 17);
	again = true;
	CU_ASSERT_STRING_EQUAL(name_of(types, postgres, 1, bind, 17), "EXECUTE s1 (text not seen)");
	again = false;
	name_of(types, postgres, 2, prepare, 20);
	CU_ASSERT_STRING_EQUAL(name_of(types, postgres, 1, bind, 17), "SELECT ?");
	request_types__free(types);
}

/* What a symbol list's type= says. */
static void values_are_types(void)
{
	struct request_types *types = request_types__new(REQUEST_NONE);
	uint32_t type = WL_SOURCE_FUNCTION << 16 | 3;
	int64_t number = -5;

	CU_ASSERT_PTR_NOT_NULL_FATAL(types);
	CU_ASSERT_STRING_EQUAL(name_of(types, type, WL_FIRST_NUMBER, (uint8_t *)&number, sizeof(number)), "-5");
	CU_ASSERT_STRING_EQUAL(name_of(types, type, WL_FIRST_NUMBER, (uint8_t *)&number, 4), "");
	CU_ASSERT_STRING_EQUAL(name_of(types, type, WL_FIRST_STRING, TEXT("SELECT 5 FROM t1")), "SELECT ? FROM t1");
	CU_ASSERT_STRING_EQUAL(name_of(types, type, WL_FIRST_STRING, TEXT("\x1b[31m")), "?[?");
	/* Of whose dialect it is nothing is known. */
	CU_ASSERT_STRING_EQUAL(name_of(types, type, WL_FIRST_STRING, TEXT("SELECT \"hush\", a")), "SELECT ?, a");
	CU_ASSERT_STRING_EQUAL(name_of(types, type, WL_FIRST_STRING, TEXT("SELECT 'a\\', 'hush' b")), "SELECT ?...");
	CU_ASSERT_STRING_EQUAL(name_of(types, type, WL_FIRST_STRING, TEXT("SELECT 'a\\' hush' b")), "SELECT ?...");
	CU_ASSERT_STRING_EQUAL(name_of(types, type, WL_FIRST_NOTHING, TEXT("GET / HTTP/1.1\r\n")), "");
	CU_ASSERT_EQUAL(request_types__protocol(types, type), REQUEST_NONE);
	request_types__free(types);
}

int suite_request(void)
{
	static const struct unit_test tests[] = {
		{"requests have types", requests_have_types},
		{"torn requests tell no values", torn_requests_tell_no_values},
		{"protocols are told apart", protocols_are_told_apart},
		{"any bytes are bounded", any_bytes_are_bounded},
		{"statements lose their literals", statements_lose_their_literals},
		{"cut statements tell no literal", cut_statements_tell_no_literal},
		{"a listener speaks one protocol", a_listener_speaks_one_protocol},
		{"what looks like HTTP is not", what_looks_like_http_is_not},
		{"routes are bounded", routes_are_bounded},
		{"prepared statements have texts", prepared_statements_have_texts},
		{"numbered statements have texts", numbered_statements_have_texts},
		{"unseen statements are taken once", unseen_statements_are_taken_once},
		{"values are types", values_are_types},
	};

	return unit_suite("types of requests", tests, sizeof(tests) / sizeof(tests[0]));
}
