/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What all that this program asks of HTTP servers has in common: libcurl's options, headers, and text of an answer. */
#ifndef WHYLATE_NET_WIRE_HTTP_CLIENT_H
#define WHYLATE_NET_WIRE_HTTP_CLIENT_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>

/* The beginning of an answer, as much as there is room for. */
struct http_answer {
	char *bytes;
	size_t room, sz;
	size_t received; /* of the whole answer, so far */
};

struct http_client_opts {
	long connect_s, request_s; /* at most */
	char *error;               /* CURL_ERROR_SIZE */
	curl_write_callback on_answer;
	void *owner; /* of on_answer */
};

/*
 * on_answer; its owner is a struct http_answer.  An answer of over 1 MiB ends the request: the rest would be received
 * for as long as the server likes.
 */
size_t http_answer_take(char *bytes, size_t one, size_t sz, void *answer);
/* Whether a URL has that part. */
bool http_client_has_part(CURLU *url, CURLUPart part);
/* HTTP and HTTPS only, from TLS 1.2 on, without signals. */
bool http_client_options(CURL *curl, const struct http_client_opts *opts);
/*
 * Of the next request.  Without TLS it goes to that machine itself, whatever http_proxy and all_proxy say: a token for
 * loopback must not leave the machine in the clear.
 */
bool http_client_url(CURL *curl, const char *url);
/* That authority and no other; NULL: those of the system. */
bool http_client_authority(CURL *curl, const char *path);
/* False: out of memory, and the headers are as before. */
bool http_client_header(struct curl_slist **headers, const char *header);
/* The first line of a text, as far as there is room; a byte that is no printable ASCII becomes '?'. */
void http_client_line(char *line, size_t room, const char *text);

#endif
