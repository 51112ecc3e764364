/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who a client of the collector is: by its certificate, by its token, or by neither.  Read-only once loaded. */
#ifndef WHYLATE_NET_COLLECT_IDENTITY_H
#define WHYLATE_NET_COLLECT_IDENTITY_H

#include "net/wire/protocol.h"

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

struct identity_token {
	char host[SHARD_HOST_MAX + 1];
	uint8_t digest[32]; /* SHA-256: equally long, whatever the token */
};

struct identity_tokens {
	struct identity_token *items;
	size_t cnt;
	size_t room;
};

/*
 * A file of lines `HOST TOKEN`; blank ones and those that begin with # do not count, a host may have several.  0;
 * -errno; -EKEYREJECTED: everybody may read it; -EINVAL with *line, the number of one that is not understood.
 */
int identity_tokens__load(struct identity_tokens *tokens, const char *path, unsigned *line);
void identity_tokens__clear(struct identity_tokens *tokens);

enum identity_verdict {
	IDENTITY_FITS,
	IDENTITY_NONE,    /* nothing was shown */
	IDENTITY_UNKNOWN, /* a token that nobody has, a certificate that is not good */
	IDENTITY_OTHER,   /* good, but of another host */
};

/* `Authorization: Bearer TOKEN`, or NULL.  In time that does not depend on which characters are right. */
enum identity_verdict identity_tokens__judge(const struct identity_tokens *tokens, const char *authorization,
					     const char *host);

/*
 * Whom certificates of clients must come from, and which of them were revoked: PEM, the latter or NULL.  NULL and *why,
 * a static string.
 */
gnutls_x509_trust_list_t identity_trust_new(const char *ca_pem, const char *crl_pem, const char **why);
void identity_trust_free(gnutls_x509_trust_list_t trust); /* NULL-safe */

#define IDENTITY_NAMES_SZ 1024

/*
 * What a peer's certificate says: IDENTITY_FITS with its names in `names`, one a line; IDENTITY_NONE; or
 * IDENTITY_UNKNOWN with *why, a static string.  To be judged once per connection.
 */
enum identity_verdict identity_certificate(gnutls_session_t session, gnutls_x509_trust_list_t trust,
					   char names[IDENTITY_NAMES_SZ], const char **why);
/* Whether the host is one of the names. */
bool identity_names_have(const char *names, const char *host);

#endif
