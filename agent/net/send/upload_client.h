/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One HTTPS client for one collector (docs/PROTOCOL.md): posts bodies, says what became of them.  libcurl stays in
 * here. */
#ifndef WHYLATE_NET_SEND_UPLOAD_CLIENT_H
#define WHYLATE_NET_SEND_UPLOAD_CLIENT_H

#include "shard/format.h"

#include <stdbool.h>

/* Files are read by upload_client__new(), while we may still read them. */
struct upload_client_opts {
	const char *url;        /* checked by upload_url_check() */
	const char *cert_path;  /* PEM; with its key, or key_path */
	const char *key_path;   /* PEM */
	const char *ca_path;    /* PEM: trust these only; NULL: the system's */
	const char *token_path; /* a bearer token */
	/* Asked several times a second while a request is under way: true ends it. */
	bool (*should_stop)(void *owner);
	void *owner;
};

struct upload_answer {
	long status;             /* 0: there was none, and `text` says why */
	int error;               /* libcurl's number for why not */
	uint64_t retry_after_ns; /* 0: not said */
	int64_t frame;           /* the index of the frame at fault, -1: not said */
	uint64_t duplicate_cnt;
	char text[256]; /* the collector's words, printable, or libcurl's */
};

/* Takes frame, duplicate_cnt and text from what a collector answered, which may be anything. */
void upload_answer__parse(struct upload_answer *answer, const char *text);

struct upload_client;

/*
 * Whether a URL can be streamed to: NULL, or what is wrong with it.  https, or http to this machine (loopback) or where
 * `insecure`; no user, query or fragment.
 */
const char *upload_url_check(const char *url, bool insecure);

/* NULL and errno; `what` is then what could not be read or used. */
struct upload_client *upload_client__new(const struct upload_client_opts *opts, const char **what);
void upload_client__post(struct upload_client *client, const char *path, const void *body, size_t sz,
			 struct upload_answer *answer);
void upload_client__free(struct upload_client *client);

#endif
