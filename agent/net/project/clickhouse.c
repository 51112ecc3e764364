// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/project/clickhouse.h"

#include "base/loopback.h"
#include "base/user_file.h"
#include "net/wire/http_client.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define CONNECT_S     10L
#define REQUEST_S     600L
#define CREDENTIAL_SZ 1024
#define COLUMNS_MAX   64u
/* The point is that a body which is cut short cannot be mistaken for a whole one; on this machine nothing else. */
#define GZIP_LEVEL       1
#define GZIP_LEVEL_LOCAL 0
/* Servers of a shard in their order: who reads what was just written asks the same one. */
#define NO_LAG "&max_replica_delay_for_distributed_queries=1&fallback_to_stale_replicas_for_distributed_queries=0"
#define ON_CLUSTER \
	"&insert_distributed_sync=1&load_balancing=in_order&distributed_ddl_task_timeout=5&insert_deduplicate="

struct clickhouse {
	struct clickhouse_opts opts;
	char *endpoint; /* http://HOST:PORT/?database=NAME */
	char *database;
	CURL *curl;
	struct curl_slist *plain_headers, *gzip_headers;
	char error[CURL_ERROR_SIZE];
	struct shard_buf answer, packed;
	int gzip_level;
	bool on_cluster, no_lag;
	bool too_large;
	bool exception; /* the answer's header names one */
	int code;
	char text[CLICKHOUSE_TEXT_SZ];
};

struct url_parts {
	char *scheme, *host, *port, *path;
};

static void url_parts__free(struct url_parts *parts)
{
	curl_free(parts->scheme);
	curl_free(parts->host);
	curl_free(parts->port);
	curl_free(parts->path);
}

/* A name that needs no quotes anywhere. */
static bool is_database(const char *name)
{
	size_t sz = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

	return sz && sz <= 64 && !name[sz] && !isdigit((unsigned char)*name);
}

static const char *take_apart(const char *text, bool insecure, struct url_parts *parts)
{
	const char *wanted = "it wants something like clickhouse://HOST:8123/DATABASE";
	CURLU *url = curl_url();
	const char *wrong = NULL;

	if (!url)
		return "there is no memory to look at it";
	if (curl_url_set(url, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME) ||
	    curl_url_get(url, CURLUPART_SCHEME, &parts->scheme, 0) ||
	    curl_url_get(url, CURLUPART_HOST, &parts->host, 0) || !*parts->host ||
	    curl_url_get(url, CURLUPART_PATH, &parts->path, 0))
		wrong = wanted;
	else if (strcmp(parts->scheme, "clickhouse") && strcmp(parts->scheme, "clickhouses"))
		wrong = wanted;
	else if (http_client_has_part(url, CURLUPART_USER) || http_client_has_part(url, CURLUPART_PASSWORD))
		wrong = "a name and a password have no place in it (--credentials)";
	else if (http_client_has_part(url, CURLUPART_QUERY) || http_client_has_part(url, CURLUPART_FRAGMENT) ||
		 !is_database(parts->path + 1))
		wrong = "it must end with the name of a database: letters, digits and _";
	else if (!strcmp(parts->scheme, "clickhouse") && !insecure && !host_is_loopback(parts->host))
		wrong = "without TLS everybody on the way can read and change it (clickhouses://, or --insecure)";
	if (!wrong)
		curl_url_get(url, CURLUPART_PORT, &parts->port, 0);
	curl_url_cleanup(url);
	return wrong;
}

const char *clickhouse_url_check(const char *text, bool insecure)
{
	struct url_parts parts = {0};
	const char *wrong = take_apart(text, insecure, &parts);

	url_parts__free(&parts);
	return wrong;
}

static size_t on_answer(char *bytes, size_t one, size_t sz, void *owner)
{
	struct clickhouse *server = owner;

	(void)one;
	if (server->answer.cnt + sz > CLICKHOUSE_ANSWER_MAX) {
		server->too_large = true;
		return 0;
	}
	if (vec_reserve(&server->answer, sz + 1))
		return 0;
	memcpy(server->answer.items + server->answer.cnt, bytes, sz);
	server->answer.cnt += sz;
	return sz;
}

static size_t on_header(char *bytes, size_t one, size_t sz, void *owner)
{
	static const char name[] = "X-ClickHouse-Exception-Code:";
	struct clickhouse *server = owner;

	(void)one;
	if (sz > sizeof(name) && !strncasecmp(bytes, name, sizeof(name) - 1))
		server->exception = true;
	return sz;
}

static int on_progress(void *owner, curl_off_t down_total, curl_off_t down, curl_off_t up_total, curl_off_t up)
{
	struct clickhouse *server = owner;

	(void)down_total, (void)down, (void)up_total, (void)up;
	return server->opts.should_stop && server->opts.should_stop(server->opts.owner);
}

/* "USER:PASSWORD", one line, of a file that others may not read. */
static int read_credentials(struct clickhouse *server, const char *path)
{
	char line[CREDENTIAL_SZ] = "", header[CREDENTIAL_SZ + 32], *colon;
	int fd = user_file_open_secret(path), err = 0;
	ssize_t sz = fd < 0 ? 0 : read(fd, line, sizeof(line) - 1);

	if (fd < 0)
		return fd;
	if (sz < 0)
		err = -errno;
	close(fd);
	line[strcspn(line, "\r\n")] = '\0';
	colon = strchr(line, ':');
	for (const char *c = line; !err && *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			err = -EBADMSG;
	if (!err && (!colon || colon == line))
		err = -EBADMSG;
	if (!err) {
		*colon = '\0';
		for (int gzip = 0; gzip < 2 && !err; gzip++) {
			struct curl_slist **headers = gzip ? &server->gzip_headers : &server->plain_headers;

			snprintf(header, sizeof(header), "X-ClickHouse-User: %s", line);
			err = http_client_header(headers, header) ? 0 : -ENOMEM;
			snprintf(header, sizeof(header), "X-ClickHouse-Key: %s", colon + 1);
			err = err || !http_client_header(headers, header) ? -ENOMEM : 0;
		}
	}
	explicit_bzero(line, sizeof(line));
	explicit_bzero(header, sizeof(header));
	return err;
}

/* The system's own way of handing secrets to a service (systemd.exec(5), LoadCredential=). */
static char *systemd_credential(void)
{
	const char *dir = getenv("CREDENTIALS_DIRECTORY");
	char *path = NULL;

	if (!dir || asprintf(&path, "%s/clickhouse", dir) < 0)
		return NULL;
	if (access(path, R_OK)) {
		free(path);
		return NULL;
	}
	return path;
}

static int take_credentials(struct clickhouse *server, const char **what)
{
	char *own = server->opts.credentials_path ? NULL : systemd_credential();
	const char *path = server->opts.credentials_path ?: own;
	int err = path ? read_credentials(server, path) : 0;

	if (err)
		*what = own ? "$CREDENTIALS_DIRECTORY/clickhouse" : server->opts.credentials_path;
	free(own);
	return err;
}

static bool set_options(struct clickhouse *server)
{
	CURL *curl = server->curl;
	const struct http_client_opts opts = {
		.connect_s = CONNECT_S,
		.request_s = REQUEST_S,
		.error = server->error,
		.on_answer = on_answer,
		.owner = server,
	};
	bool good = http_client_options(curl, &opts);

	good &= !curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
	good &= !curl_easy_setopt(curl, CURLOPT_HEADERDATA, server);
	good &= !curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	good &= !curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
	good &= !curl_easy_setopt(curl, CURLOPT_XFERINFODATA, server);
	/* The server closes idle connections after 3 s. */
	good &= !curl_easy_setopt(curl, CURLOPT_MAXAGE_CONN, 2L);
	good &= http_client_authority(curl, server->opts.ca_path);
	good &= http_client_header(&server->plain_headers, "Content-Type: text/plain");
	good &= http_client_header(&server->gzip_headers, "Content-Type: application/octet-stream");
	good &= http_client_header(&server->gzip_headers, "Content-Encoding: gzip");
	return good && http_client_header(&server->plain_headers, "Expect:") &&
	       http_client_header(&server->gzip_headers, "Expect:");
}

struct clickhouse *clickhouse__new(const struct clickhouse_opts *opts, const char **what)
{
	struct clickhouse *server = calloc(1, sizeof(*server));
	struct url_parts parts = {0};
	int err = -EINVAL;

	*what = opts->url;
	if (!server)
		return NULL;
	server->opts = *opts;
	if (take_apart(opts->url, opts->insecure, &parts))
		goto fail;
	err = -ENOMEM;
	server->gzip_level = host_is_loopback(parts.host) ? GZIP_LEVEL_LOCAL : GZIP_LEVEL;
	server->database = strdup(parts.path + 1);
	if (!server->database || asprintf(&server->endpoint, "%s://%s:%s/", parts.scheme[10] ? "https" : "http",
					  parts.host, parts.port ?: (parts.scheme[10] ? "8443" : "8123")) < 0) {
		server->endpoint = NULL;
		goto fail;
	}
	err = take_credentials(server, what);
	if (err)
		goto fail;
	*what = "libcurl";
	server->curl = curl_easy_init();
	err = server->curl && set_options(server) ? 0 : -ENOTSUP;
fail:
	url_parts__free(&parts);
	if (!err)
		return server;
	clickhouse__free(server);
	errno = -err;
	return NULL;
}

const char *clickhouse__database(const struct clickhouse *server)
{
	return server->database;
}

/* "Code: 60, e.displayText() = …", "Code: 60. DB::Exception: …" */
static int code_of(const char *text)
{
	long code = strncmp(text, "Code: ", 6) ? 0 : strtol(text + 6, NULL, 10);

	return code > 0 && code < 100000 ? (int)code : 0;
}

static int judge(struct clickhouse *server, CURLcode code)
{
	long status = 0;

	if (vec_reserve(&server->answer, 1))
		return -ENOMEM;
	server->answer.items[server->answer.cnt] = '\0';
	if (server->too_large) {
		http_client_line(server->text, sizeof(server->text), "the answer is larger than 64 MiB");
		return -EFBIG;
	}
	if (code == CURLE_ABORTED_BY_CALLBACK)
		return -ECANCELED;
	if (code) {
		http_client_line(server->text, sizeof(server->text),
				 server->error[0] ? server->error : curl_easy_strerror(code));
		return -EHOSTDOWN;
	}
	curl_easy_getinfo(server->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status == 200 && !server->exception)
		return 0;
	server->code = code_of((const char *)server->answer.items);
	if (server->answer.cnt)
		http_client_line(server->text, sizeof(server->text), (const char *)server->answer.items);
	else
		snprintf(server->text, sizeof(server->text),
			 "HTTP status %ld and no word: is this ClickHouse's HTTP port?", status);
	/* Something before the server that has no server behind it at the moment. */
	return !server->code && (status == 502 || status == 503 || status == 504) ? -EHOSTDOWN : -EPROTO;
}

/* `once`: a cluster is to ignore an INSERT of rows that it has had. */
static int post(struct clickhouse *server, const char *query, bool once, const void *body, size_t sz,
		struct curl_slist *headers)
{
	CURL *curl = server->curl;
	int err = -ENOMEM;
	char *url = NULL;

	server->answer.cnt = 0;
	server->too_large = server->exception = false;
	server->error[0] = server->text[0] = '\0';
	server->code = 0;
	if (asprintf(&url, "%s?%s%s%s%s", server->endpoint, query, server->no_lag ? NO_LAG : "",
		     server->on_cluster ? ON_CLUSTER : "",
		     !server->on_cluster ? ""
		     : once              ? "1"
					 : "0") < 0)
		return -ENOMEM;
	if (http_client_url(curl, url) && !curl_easy_setopt(curl, CURLOPT_POST, 1L) &&
	    !curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers) && !curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body) &&
	    !curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)sz))
		err = judge(server, curl_easy_perform(curl));
	free(url);
	return err;
}

int clickhouse__ask(struct clickhouse *server, const char *sql, uint32_t column_cnt, struct clickhouse_rows *rows)
{
	char *bytes;
	int err;

	*rows = (struct clickhouse_rows){0};
	err = post(server, "wait_end_of_query=1&default_format=TabSeparated", false, sql, strlen(sql),
		   server->plain_headers);
	if (err)
		return err;
	bytes = malloc(server->answer.cnt + 1);
	if (!bytes)
		return -ENOMEM;
	memcpy(bytes, server->answer.items, server->answer.cnt + 1);
	err = clickhouse_rows__parse(rows, bytes, server->answer.cnt, column_cnt);
	if (err == -EBADMSG)
		http_client_line(server->text, sizeof(server->text),
				 "its answer is not of the form that was asked for");
	return err;
}

int clickhouse__do(struct clickhouse *server, const char *sql)
{
	return post(server, "wait_end_of_query=1", false, sql, strlen(sql), server->plain_headers);
}

static int pack(struct clickhouse *server, const struct shard_buf *body)
{
	struct shard_buf *out = &server->packed;
	z_stream stream = {0};
	int ret;

	/* 16: with the header and trailer of gzip. */
	if (deflateInit2(&stream, server->gzip_level, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	out->cnt = 0;
	if (vec_reserve(out, deflateBound(&stream, body->cnt))) {
		deflateEnd(&stream);
		return -ENOMEM;
	}
	stream.next_in = body->items;
	stream.avail_in = (uInt)body->cnt;
	stream.next_out = out->items;
	stream.avail_out = (uInt)out->room;
	ret = deflate(&stream, Z_FINISH);
	out->cnt = stream.total_out;
	deflateEnd(&stream);
	return ret == Z_STREAM_END ? 0 : -EIO;
}

int clickhouse__insert(struct clickhouse *server, const char *sql, const struct shard_buf *body, const char *token)
{
	char *query = NULL, *escaped = curl_easy_escape(server->curl, sql, 0);
	int err = escaped ? pack(server, body) : -ENOMEM;

	if (!err && asprintf(&query, "query=%s%s%s", escaped, token && *token ? "&insert_deduplication_token=" : "",
			     token ?: "") < 0) {
		query = NULL;
		err = -ENOMEM;
	}
	/* On a connection that was used before, libcurl would send a request again that got no answer. */
	if (!err && curl_easy_setopt(server->curl, CURLOPT_FRESH_CONNECT, 1L))
		err = -ENOTSUP;
	if (!err)
		err = post(server, query, token != NULL, server->packed.items, server->packed.cnt,
			   server->gzip_headers);
	curl_easy_setopt(server->curl, CURLOPT_FRESH_CONNECT, 0L);
	free(query);
	curl_free(escaped);
	return err;
}

int clickhouse__code(const struct clickhouse *server)
{
	return server->code;
}

const char *clickhouse__text(const struct clickhouse *server)
{
	return server->text;
}

bool clickhouse__was_denied(const struct clickhouse *server)
{
	return server->code == CLICKHOUSE_READONLY || server->code == CLICKHOUSE_DATABASE_DENIED ||
	       server->code == CLICKHOUSE_QUERY_PROHIBITED || server->code == CLICKHOUSE_ACCESS_DENIED;
}

void clickhouse__on_cluster(struct clickhouse *server)
{
	server->on_cluster = true;
}

void clickhouse__no_lag(struct clickhouse *server)
{
	server->no_lag = server->on_cluster;
}

bool clickhouse__was_away(const struct clickhouse *server)
{
	static const int codes[] = {
		32,  /* ATTEMPT_TO_READ_AFTER_EOF */
		101, /* UNEXPECTED_PACKET_FROM_SERVER */
		159, /* TIMEOUT_EXCEEDED */
		209, /* SOCKET_TIMEOUT */
		210, /* NETWORK_ERROR */
		225, /* NO_ZOOKEEPER */
		236, /* ABORTED */
		242, /* TABLE_IS_READ_ONLY */
		279, /* ALL_CONNECTION_TRIES_FAILED */
		285, /* TOO_LESS_LIVE_REPLICAS */
		319, /* UNKNOWN_STATUS_OF_INSERT */
		369, /* ALL_REPLICAS_ARE_STALE */
		999, /* KEEPER_EXCEPTION */
	};

	for (size_t i = 0; server->on_cluster && i < sizeof(codes) / sizeof(codes[0]); i++)
		if (server->code == codes[i])
			return true;
	return false;
}

/* A cell's text in place: TabSeparated escapes by a backslash.  NULL: an escape that is none. */
static char *unescape(char *from, char *end)
{
	static const char named[] = "b\bf\fr\rn\nt\t0\0'\'\\\\";
	char *to = from, *cell = from;

	for (; from < end; from++) {
		if (*from == '\\') {
			const char *hit = from + 1 < end ? memchr(named, from[1], sizeof(named) - 1) : NULL;

			/* The names are at even places. */
			if (!hit || (hit - named) % 2)
				return NULL;
			/* A NUL would end the text for us, and not for the server. */
			*to++ = hit[1] ?: '?';
			from++;
		} else {
			*to++ = *from ?: '?';
		}
	}
	*to = '\0';
	return cell;
}

int clickhouse_rows__parse(struct clickhouse_rows *rows, char *bytes, size_t sz, uint32_t column_cnt)
{
	VEC(const char *) cells = {0};
	char *at = bytes, *end = bytes + sz;
	int err = column_cnt && column_cnt <= COLUMNS_MAX ? 0 : -EINVAL;

	*rows = (struct clickhouse_rows){.bytes = bytes, .column_cnt = column_cnt};
	while (!err && at < end) {
		char *line_end = memchr(at, '\n', (size_t)(end - at));

		if (!line_end)
			err = -EBADMSG;
		for (uint32_t c = 0; !err && c < column_cnt; c++) {
			char *tab = memchr(at, '\t', (size_t)(line_end - at)), *cell_end = tab ?: line_end, *cell;

			if (!tab != (c + 1 == column_cnt))
				err = -EBADMSG;
			cell = err ? NULL : unescape(at, cell_end);
			if (!err && !cell)
				err = -EBADMSG;
			if (!err && vec_push(&cells, cell))
				err = -ENOMEM;
			at = cell_end + 1;
		}
		rows->row_cnt += !err;
	}
	rows->cells = cells.items;
	if (err)
		clickhouse_rows__free(rows);
	return err;
}

void clickhouse_rows__free(struct clickhouse_rows *rows)
{
	free(rows->bytes);
	free(rows->cells);
	*rows = (struct clickhouse_rows){0};
}

bool clickhouse_u64(const char *cell, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(cell, &end, 10);
	return isdigit((unsigned char)*cell) && !*end && !errno;
}

bool clickhouse_f64(const char *cell, double *value)
{
	char *end;

	if (!strcmp(cell, "nan") || !strcmp(cell, "\\N") || !strcmp(cell, "NULL")) {
		*value = NAN;
		return true;
	}
	*value = strtod(cell, &end);
	return *cell && !*end && isfinite(*value);
}

void clickhouse__free(struct clickhouse *server)
{
	if (!server)
		return;
	curl_easy_cleanup(server->curl);
	curl_slist_free_all(server->plain_headers);
	curl_slist_free_all(server->gzip_headers);
	vec_free(&server->answer);
	vec_free(&server->packed);
	free(server->endpoint);
	free(server->database);
	free(server);
}
