// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/send/upload_client.h"

#include "base/loopback.h"
#include "base/user_file.h"
#include "net/wire/http_client.h"
#include "net/wire/protocol.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SECRET_MAX    (1 << 20)
#define ANSWER_MAX    4096
#define CONNECT_S     10L
#define STALL_S       15L /* so long without a byte: the connection is dead */
#define REQUEST_S     120L
#define RETRY_AFTER_S 86400L
#define FD_PATH_SZ    40

struct upload_client {
	struct upload_client_opts opts;
	char *url;
	struct shard_buf cert, key, ca;
	int fds[3]; /* … as files in memory, -1: none */
	bool has_files;
	char token[PROTOCOL_TOKEN_MAX + 1];
	CURL *curl;
	struct curl_slist *headers;
	char error[CURL_ERROR_SIZE];
	char answer_bytes[ANSWER_MAX + 1];
	struct http_answer answer; /* of the last request, in these */
};

const char *upload_url_check(const char *text, bool insecure)
{
	char *scheme = NULL, *host = NULL;
	CURLU *url = curl_url();
	const char *wrong = NULL;

	if (!url)
		return "there is no memory to look at it";
	if (!strstr(text, "://") || curl_url_set(url, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME) ||
	    curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) || curl_url_get(url, CURLUPART_HOST, &host, 0) || !*host)
		wrong = "it wants something like https://HOST:PORT";
	else if (strcmp(scheme, "https") && strcmp(scheme, "http"))
		wrong = "only https is spoken";
	else if (http_client_has_part(url, CURLUPART_USER) || http_client_has_part(url, CURLUPART_PASSWORD))
		wrong = "a name and a password have no place in it (--stream-token)";
	else if (http_client_has_part(url, CURLUPART_QUERY) || http_client_has_part(url, CURLUPART_FRAGMENT))
		wrong = "it must end with the path";
	else if (!strcmp(scheme, "http") && !insecure && !host_is_loopback(host))
		wrong = "without TLS everybody on the way can read and change it (https, or --stream-insecure)";
	curl_free(scheme);
	curl_free(host);
	curl_url_cleanup(url);
	return wrong;
}

static int read_file(const char *path, bool is_secret, struct shard_buf *out)
{
	int fd = is_secret ? user_file_open_secret(path) : user_file_open(path), err = 0;
	ssize_t got = 1;

	if (fd < 0)
		return fd;
	while (!err && got > 0 && out->cnt < SECRET_MAX) {
		err = vec_reserve(out, 4096);
		got = err ? 0 : read(fd, out->items + out->cnt, 4096);
		if (got < 0)
			err = -errno;
		else
			out->cnt += got;
	}
	close(fd);
	if (!err && out->cnt >= SECRET_MAX)
		err = -EFBIG;
	return !err && !out->cnt ? -ENODATA : err;
}

static int read_token(struct upload_client *client, const char *path)
{
	struct shard_buf bytes = {0};
	int err = read_file(path, true, &bytes);

	if (!err) {
		while (bytes.cnt && strchr(" \t\r\n", bytes.items[bytes.cnt - 1]))
			bytes.cnt--;
		if (bytes.cnt > PROTOCOL_TOKEN_MAX)
			err = -EBADMSG;
		else
			memcpy(client->token, bytes.items, bytes.cnt);
	}
	if (!err && !protocol_token_is_valid(client->token))
		err = -EBADMSG;
	vec_free(&bytes);
	return err;
}

static int read_secrets(struct upload_client *client, const char **what)
{
	const struct upload_client_opts *opts = &client->opts;
	int err = 0;

	if (opts->cert_path) {
		*what = opts->cert_path;
		err = read_file(opts->cert_path, !opts->key_path, &client->cert);
	}
	if (!err && (opts->key_path || opts->cert_path)) {
		*what = opts->key_path ? opts->key_path : opts->cert_path;
		err = read_file(*what, true, &client->key);
	}
	if (!err && opts->ca_path) {
		*what = opts->ca_path;
		err = read_file(opts->ca_path, false, &client->ca);
	}
	if (!err && opts->token_path) {
		*what = opts->token_path;
		err = read_token(client, opts->token_path);
	}
	return err;
}

static int on_progress(void *owner, curl_off_t down_total, curl_off_t down, curl_off_t up_total, curl_off_t up)
{
	struct upload_client *client = owner;

	(void)down_total, (void)down, (void)up_total, (void)up;
	return client->opts.should_stop && client->opts.should_stop(client->opts.owner);
}

static int fd_path(int fd, char path[FD_PATH_SZ])
{
	return snprintf(path, FD_PATH_SZ, "/proc/self/fd/%d", fd);
}

/*
 * By name, since not every flavour of libcurl takes certificates from memory; it opens them again for each connection,
 * which a process may always do with what it has open itself, whatever its user.
 */
static int set_file(CURL *curl, CURLoption option, const struct shard_buf *bytes, int *fd)
{
	char path[FD_PATH_SZ];

	if (!bytes->cnt)
		return 0;
	*fd = memfd_create("certificate", MFD_CLOEXEC);
	if (*fd < 0)
		return -errno;
	if (write(*fd, bytes->items, bytes->cnt) != (ssize_t)bytes->cnt)
		return -EIO;
	fd_path(*fd, path);
	return curl_easy_setopt(curl, option, path) ? -ENOTSUP : 0;
}

/* By who sends: descriptors do not survive the way there. */
static int set_files(struct upload_client *client)
{
	int err = 0;

	if (client->has_files)
		return 0;
	client->has_files = true;
	err = set_file(client->curl, CURLOPT_SSLCERT, &client->cert, &client->fds[0]);
	if (!err)
		err = set_file(client->curl, CURLOPT_SSLKEY, &client->key, &client->fds[1]);
	if (!err)
		err = set_file(client->curl, CURLOPT_CAINFO, &client->ca, &client->fds[2]);
	/* That authority and no other: those of the system would be trusted besides, and read for each connection. */
	if (!err && client->ca.cnt && curl_easy_setopt(client->curl, CURLOPT_CAPATH, NULL))
		err = -ENOTSUP;
	return err;
}

/* What holds for every request.  Proxies of HTTPS are libcurl's affair: it reads https_proxy, no_proxy and their like.
 */
static bool set_options(struct upload_client *client)
{
	CURL *curl = client->curl;
	const struct http_client_opts opts = {
		.connect_s = CONNECT_S,
		.request_s = REQUEST_S,
		.error = client->error,
		.on_answer = http_answer_take,
		.owner = &client->answer,
	};
	bool good = http_client_options(curl, &opts);

	good &= !curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	good &= !curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
	good &= !curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, STALL_S);
	good &= !curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	good &= !curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
	good &= !curl_easy_setopt(curl, CURLOPT_XFERINFODATA, client);
	return good;
}

static bool set_headers(struct upload_client *client)
{
	char bearer[PROTOCOL_TOKEN_MAX + 32];
	bool good = http_client_header(&client->headers, "Content-Type: application/octet-stream");

	/* Nobody asks whether he may send: it would cost a round trip each time. */
	good &= http_client_header(&client->headers, "Expect:");
	if (client->token[0]) {
		snprintf(bearer, sizeof(bearer), "Authorization: Bearer %s", client->token);
		good &= http_client_header(&client->headers, bearer);
	}
	return good && !curl_easy_setopt(client->curl, CURLOPT_HTTPHEADER, client->headers) &&
	       !curl_easy_setopt(client->curl, CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE);
}

/* libcurl names the file in memory, or none: the text has the user's own name of it. */
static void name_files(const struct upload_client *client, CURLcode code, char *text, size_t sz)
{
	const struct upload_client_opts *opts = &client->opts;
	const char *const names[] = {opts->cert_path, opts->key_path ? opts->key_path : opts->cert_path, opts->ca_path};
	const char *bad = code == CURLE_SSL_CACERT_BADFILE ? names[2] : code == CURLE_SSL_CERTPROBLEM ? names[0] : NULL;
	char path[FD_PATH_SZ], after[CURL_ERROR_SIZE];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t len = (size_t)fd_path(client->fds[i], path);
		char *found = client->fds[i] >= 0 && names[i] ? strstr(text, path) : NULL;

		/* The path of descriptor 1 begins that of 10. */
		if (!found || (found[len] >= '0' && found[len] <= '9'))
			continue;
		snprintf(after, sizeof(after), "%s", found + len);
		snprintf(found, sz - (size_t)(found - text), "%s%s", names[i], after);
		bad = NULL;
	}
	if (bad)
		snprintf(text + strlen(text), sz - strlen(text), ": %s", bad);
}

struct upload_client *upload_client__new(const struct upload_client_opts *opts, const char **what)
{
	struct upload_client *client = calloc(1, sizeof(*client));
	size_t sz = strlen(opts->url);
	int err = -ENOMEM;

	*what = opts->url;
	if (!client)
		return NULL;
	client->opts = *opts;
	client->fds[0] = client->fds[1] = client->fds[2] = -1;
	client->url = strdup(opts->url);
	if (!client->url)
		goto fail;
	while (sz && client->url[sz - 1] == '/')
		client->url[--sz] = '\0';
	err = read_secrets(client, what);
	if (err)
		goto fail;
	*what = "libcurl";
	client->curl = curl_easy_init();
	if (client->curl && set_options(client) && set_headers(client))
		return client;
	err = -ENOTSUP;
fail:
	upload_client__free(client);
	errno = -err;
	return NULL;
}

void upload_answer__parse(struct upload_answer *answer, const char *text)
{
	struct json_object *root = json_tokener_parse(text), *value;

	if (json_object_is_type(root, json_type_object)) {
		if (json_object_object_get_ex(root, "error", &value) && json_object_is_type(value, json_type_string))
			http_client_line(answer->text, sizeof(answer->text), json_object_get_string(value));
		if (json_object_object_get_ex(root, "frame", &value) && json_object_is_type(value, json_type_int))
			answer->frame = json_object_get_int64(value);
		if (json_object_object_get_ex(root, "duplicates", &value) && json_object_is_type(value, json_type_int))
			answer->duplicate_cnt = json_object_get_int64(value) > 0 ? json_object_get_int64(value) : 0;
	}
	json_object_put(root);
}

void upload_client__post(struct upload_client *client, const char *path, const void *body, size_t sz,
			 struct upload_answer *answer)
{
	CURL *curl = client->curl;
	curl_off_t retry_after = 0;
	CURLcode code = CURLE_OUT_OF_MEMORY;
	char *url;

	*answer = (struct upload_answer){.frame = -1};
	client->answer = (struct http_answer){.bytes = client->answer_bytes, .room = ANSWER_MAX};
	client->error[0] = '\0';
	if (asprintf(&url, "%s%s", client->url, path) < 0)
		url = NULL;
	if (url && !set_files(client) && http_client_url(curl, url) && !curl_easy_setopt(curl, CURLOPT_POST, 1L) &&
	    !curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body) &&
	    !curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)sz))
		code = curl_easy_perform(curl);
	free(url);
	client->answer_bytes[client->answer.sz] = '\0';
	if (code) {
		answer->error = code;
		if (!client->error[0])
			snprintf(client->error, sizeof(client->error), "%s", curl_easy_strerror(code));
		name_files(client, code, client->error, sizeof(client->error));
		http_client_line(answer->text, sizeof(answer->text), client->error);
		return;
	}
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer->status);
	if (!curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &retry_after) && retry_after > 0)
		answer->retry_after_ns =
			(uint64_t)(retry_after < RETRY_AFTER_S ? retry_after : RETRY_AFTER_S) * 1000000000ULL;
	upload_answer__parse(answer, client->answer_bytes);
}

void upload_client__free(struct upload_client *client)
{
	if (!client)
		return;
	curl_easy_cleanup(client->curl);
	curl_slist_free_all(client->headers);
	for (size_t i = 0; i < 3; i++)
		if (client->fds[i] >= 0)
			close(client->fds[i]);
	vec_free(&client->cert);
	vec_free(&client->key);
	vec_free(&client->ca);
	free(client->url);
	free(client);
}
