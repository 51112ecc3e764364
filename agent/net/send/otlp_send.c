// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/send/otlp_send.h"

#include "base/clock.h"
#include "base/loopback.h"
#include "base/user_file.h"
#include "net/send/backoff.h"
#include "net/wire/http_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_MAX    65536
#define CONNECT_S     10L
#define REQUEST_S     60L
#define LINE_SZ       4096
#define HEADERS_MAX   64
#define RETRY_AFTER_S 900

struct otlp_send {
	struct otlp_send_opts opts;
	struct otlp_send_stats stats;
	CURL *curl;
	struct curl_slist *headers;
	char error[CURL_ERROR_SIZE];
	char answer_bytes[ANSWER_MAX];
	struct http_answer answer; /* of the last request, in these */
	struct backoff backoff;
};

const char *otlp_url_check(const char *text, bool insecure)
{
	char *scheme = NULL, *host = NULL;
	CURLU *url = curl_url();
	const char *wrong = NULL;

	if (!url)
		return "there is no memory to look at it";
	if (!strstr(text, "://") || curl_url_set(url, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME) ||
	    curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) || curl_url_get(url, CURLUPART_HOST, &host, 0) || !*host ||
	    (strcmp(scheme, "https") && strcmp(scheme, "http")))
		wrong = "it wants something like http://localhost:4318/v1/traces";
	else if (http_client_has_part(url, CURLUPART_USER))
		wrong = "a name and a password have no place in it (--headers FILE)";
	else if (!strcmp(scheme, "http") && !insecure && !host_is_loopback(host))
		wrong = "without TLS everybody on the way can read it (https, or --insecure)";
	curl_free(scheme);
	curl_free(host);
	curl_url_cleanup(url);
	return wrong;
}

static int read_headers(struct otlp_send *send, const char *path)
{
	int fd = user_file_open_secret(path), err = fd < 0 ? fd : 0;
	FILE *in = err ? NULL : fdopen(fd, "re");
	char line[LINE_SZ];

	for (int n = 0; in && !err && fgets(line, sizeof(line), in); n++) {
		size_t sz = strcspn(line, "\r\n");

		/* A line that is longer, or no header, would be sent as something else. */
		if (n >= HEADERS_MAX || !line[sz])
			err = -EBADMSG;
		line[sz] = '\0';
		if (!err && *line && (!strchr(line, ':') || strpbrk(line, "\x7f\x1b")))
			err = -EBADMSG;
		if (!err && *line && !http_client_header(&send->headers, line))
			err = -ENOMEM;
	}
	explicit_bzero(line, sizeof(line));
	if (in)
		fclose(in);
	return err;
}

static bool set_options(struct otlp_send *send)
{
	CURL *curl = send->curl;
	const struct http_client_opts opts = {
		.connect_s = CONNECT_S,
		.request_s = REQUEST_S,
		.error = send->error,
		.on_answer = http_answer_take,
		.owner = &send->answer,
	};
	bool good = http_client_options(curl, &opts);

	good &= http_client_url(curl, send->opts.url);
	good &= !curl_easy_setopt(curl, CURLOPT_POST, 1L);
	good &= http_client_authority(curl, send->opts.ca_path);
	good &= http_client_header(&send->headers, "Content-Type: application/x-protobuf");
	good &= http_client_header(&send->headers, "Expect:");
	return good && !curl_easy_setopt(curl, CURLOPT_HTTPHEADER, send->headers);
}

struct otlp_send *otlp_send__new(const struct otlp_send_opts *opts, const char **what)
{
	struct otlp_send *send = calloc(1, sizeof(*send));
	int err = -ENOTSUP;

	*what = "libcurl";
	if (!send)
		return NULL;
	send->opts = *opts;
	backoff__init(&send->backoff, monotonic_ns());
	send->curl = curl_easy_init();
	if (send->curl && opts->headers_path) {
		*what = opts->headers_path;
		err = read_headers(send, opts->headers_path);
	} else if (send->curl) {
		err = 0;
	}
	if (!err && !set_options(send)) {
		*what = "libcurl";
		err = -ENOTSUP;
	}
	if (!err)
		return send;
	otlp_send__free(send);
	errno = -err;
	return NULL;
}

/* A varint at *at: false where there is none. */
static bool read_varint(const uint8_t *bytes, size_t sz, size_t *at, uint64_t *value)
{
	*value = 0;
	for (unsigned shift = 0; shift < 64 && *at < sz; shift += 7) {
		uint8_t byte = bytes[(*at)++];

		*value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/*
 * The field of that number, the last one holds: a varint's value, or where the bytes of a message are.  False: there is
 * none, or the message is malformed.
 */
static bool find_field(const uint8_t *bytes, size_t sz, uint64_t number, uint64_t *value, size_t *from)
{
	uint64_t tag, length;
	bool found = false;

	for (size_t at = 0; at < sz;) {
		if (!read_varint(bytes, sz, &at, &tag))
			return false;
		switch (tag & 7) {
		case 0:
			if (!read_varint(bytes, sz, &at, &length))
				return false;
			if (tag >> 3 == number) {
				*value = length;
				found = true;
			}
			break;
		case 1:
		case 5:
			length = (tag & 7) == 1 ? 8 : 4;
			if (length > sz - at)
				return false;
			at += length;
			break;
		case 2:
			if (!read_varint(bytes, sz, &at, &length) || length > sz - at)
				return false;
			if (tag >> 3 == number) {
				*value = length;
				*from = at;
				found = true;
			}
			at += length;
			break;
		default:
			return false;
		}
	}
	return found;
}

uint64_t otlp_rejected(const uint8_t *bytes, size_t sz)
{
	uint64_t partial_sz, rejected;
	size_t from = 0, none = 0;

	/* A varint where a message belongs leaves `from` at 0. */
	if (!find_field(bytes, sz, 1, &partial_sz, &from) || !from || partial_sz > sz - from)
		return 0;
	return find_field(bytes + from, partial_sz, 1, &rejected, &none) && !none && rejected <= INT64_MAX ? rejected
													   : 0;
}

static void say_why(struct otlp_send *send, const char *text)
{
	http_client_line(send->stats.why, sizeof(send->stats.why), text);
}

static bool may_come_again(long status)
{
	/* The specification's list (OTLP/HTTP, Retryable Response Codes). */
	return status == 429 || status == 502 || status == 503 || status == 504;
}

static void drop(struct otlp_send *send, uint64_t span_cnt, long status)
{
	char text[160];

	send->stats.dropped_spans += span_cnt;
	snprintf(text, sizeof(text), "status %ld%s%.*s", status, send->answer.sz ? ": " : "",
		 (int)(send->answer.sz < 120 ? send->answer.sz : 120), send->answer.bytes);
	say_why(send, text);
}

static void rest_until(uint64_t ts)
{
	uint64_t now = monotonic_ns();

	sleep_ns(ts > now ? ts - now : 0);
}

/* One try: 0; -EAGAIN: later; -ENOMEM. */
static int try_once(struct otlp_send *send, const void *bytes, size_t sz, size_t span_cnt, uint64_t *asked_ns)
{
	curl_off_t retry_after = 0;
	uint64_t rejected;
	long status = 0;
	CURLcode code;

	*asked_ns = 0;
	send->answer = (struct http_answer){.bytes = send->answer_bytes, .room = sizeof(send->answer_bytes)};
	send->error[0] = '\0';
	if (curl_easy_setopt(send->curl, CURLOPT_POSTFIELDS, bytes) ||
	    curl_easy_setopt(send->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)sz))
		return -ENOMEM;
	code = curl_easy_perform(send->curl);
	if (code) {
		say_why(send, send->error[0] ? send->error : curl_easy_strerror(code));
		return -EAGAIN;
	}
	curl_easy_getinfo(send->curl, CURLINFO_RESPONSE_CODE, &status);
	if (may_come_again(status)) {
		if (!curl_easy_getinfo(send->curl, CURLINFO_RETRY_AFTER, &retry_after) && retry_after > 0)
			*asked_ns = (uint64_t)(retry_after < RETRY_AFTER_S ? retry_after : RETRY_AFTER_S) * 1000000000;
		say_why(send, "it asked to come again later");
		return -EAGAIN;
	}
	if (status < 200 || status > 299) {
		drop(send, span_cnt, status);
		return 0;
	}
	rejected = otlp_rejected((const uint8_t *)send->answer.bytes, send->answer.sz);
	rejected = rejected < span_cnt ? rejected : span_cnt;
	send->stats.requests++;
	send->stats.spans += span_cnt - rejected;
	if (rejected) {
		send->answer.sz = 0;
		drop(send, rejected, status);
	}
	return 0;
}

int otlp_send__post(struct otlp_send *send, const void *bytes, size_t sz, size_t span_cnt)
{
	uint64_t give_up_ts = monotonic_ns() + send->opts.patience_ns, asked_ns;
	int err;

	while ((err = try_once(send, bytes, sz, span_cnt, &asked_ns)) == -EAGAIN) {
		backoff__fail(&send->backoff, monotonic_ns(), asked_ns);
		if (send->backoff.until_ts > give_up_ts) {
			send->stats.untaken_spans += span_cnt;
			return -EHOSTDOWN;
		}
		send->stats.retries++;
		rest_until(send->backoff.until_ts);
	}
	backoff__succeed(&send->backoff);
	return err;
}

const struct otlp_send_stats *otlp_send__stats(const struct otlp_send *send)
{
	return &send->stats;
}

void otlp_send__free(struct otlp_send *send)
{
	if (!send)
		return;
	curl_easy_cleanup(send->curl);
	curl_slist_free_all(send->headers);
	free(send);
}
