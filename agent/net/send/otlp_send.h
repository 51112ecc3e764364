/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Posts OTLP requests (protobuf over HTTP) to a collector, one after the other.  A request that it may take later is
 * tried again with backoff, for as long as `patience_ns` without a success; one that it refuses, and what it rejects of
 * one that it takes, is counted as dropped.  libcurl stays in here.
 */
#ifndef WHYLATE_NET_SEND_OTLP_SEND_H
#define WHYLATE_NET_SEND_OTLP_SEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct otlp_send_opts {
	const char *url;          /* http://HOST:4318/v1/traces; without TLS to this machine only, unless `insecure` */
	const char *headers_path; /* lines "Name: value", of a file that others may not read; NULL: none */
	const char *ca_path;      /* PEM; NULL: the system's */
	bool insecure;
	uint64_t patience_ns;
};

struct otlp_send_stats {
	uint64_t requests, spans, retries;
	uint64_t dropped_spans; /* refused, or rejected */
	uint64_t untaken_spans; /* of posts that nobody took within the patience */
	char why[256];          /* the last refusal, printable */
};

struct otlp_send;

/* NULL, or what is wrong with the URL. */
const char *otlp_url_check(const char *url, bool insecure);
/* NULL and errno; *what is then what could not be read or used. */
struct otlp_send *otlp_send__new(const struct otlp_send_opts *opts, const char **what);
/* 0, taken or dropped; -EHOSTDOWN: nobody took it within the patience; -ENOMEM. */
int otlp_send__post(struct otlp_send *send, const void *bytes, size_t sz, size_t span_cnt);
const struct otlp_send_stats *otlp_send__stats(const struct otlp_send *send);
void otlp_send__free(struct otlp_send *send);

/* The number of rejected spans in an ExportTraceServiceResponse; 0 where it says none, or is none. */
uint64_t otlp_rejected(const uint8_t *bytes, size_t sz);

#endif
