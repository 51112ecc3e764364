/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The collector: takes frames from agents over HTTP (docs/PROTOCOL.md) and keeps them in a store.  A few threads of
 * libmicrohttpd receive and check, one thread owns the store and syncs whatever came in meanwhile at once, and the
 * caller's thread runs collector__tick() every second.
 */
#ifndef WHYLATE_NET_COLLECT_COLLECTOR_H
#define WHYLATE_NET_COLLECT_COLLECTOR_H

#include "net/collect/store.h"

/* Who we are and whom we believe: the caller's, and to be kept until others take their place. */
struct collector_material {
	const char *cert_pem, *key_pem; /* NULL: no TLS */
	const char *client_ca_pem;      /* NULL: certificates of clients are not asked for */
	const char *crl_pem;            /* NULL: none of them was revoked */
	const struct identity_tokens *tokens;
};

struct collector_opts {
	struct store_opts store;
	int listen_fd; /* consumed */
	struct collector_material material;
	bool allow_values; /* blocks with values of the target's variables are taken */
	uint32_t max_connections;
	uint64_t max_memory;   /* for bodies */
	uint64_t max_rate;     /* bytes per client and second */
	uint64_t max_rows;     /* of the table interval, per client and second; 0: no limit */
	uint32_t max_requests; /* per client and second */
	uint64_t timeout_ns;   /* for a request's header, and a body's first 64 KiB/s; for an idle connection */
};

struct collector;

/* NULL and errno after a line that says why. */
struct collector *collector__start(const struct collector_opts *opts);
/* Closes what is too slow or idle too long; to be called about once a second. */
void collector__tick(struct collector *collector);
/*
 * Goes on with other certificates and tokens.  What is under way is answered, connections are closed, the store stays.
 * 0; -EINVAL after a line that says what is wrong with them: nothing has changed then; -errno: it does not listen any
 * more.
 */
int collector__reload(struct collector *collector, const struct collector_material *material);
/* Lets what is under way end, then closes everything.  NULL-safe. */
void collector__stop(struct collector *collector);

#endif
