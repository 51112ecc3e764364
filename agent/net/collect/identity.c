// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/collect/identity.h"

#include "base/user_file.h"
#include "base/vec.h"

#include <errno.h>
#include <gnutls/crypto.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define BLANKS " \t\r\n"
#define BEARER "Bearer "

static int digest_of(const char *token, uint8_t digest[32])
{
	return gnutls_hash_fast(GNUTLS_DIG_SHA256, token, strlen(token), digest) ? -EIO : 0;
}

static int tokens__take(struct identity_tokens *tokens, char *line)
{
	struct identity_token item = {0};
	char *rest, *host = strtok_r(line, BLANKS, &rest), *token = host ? strtok_r(NULL, BLANKS, &rest) : NULL;

	if (!host || *host == '#')
		return 0;
	if (!token || strtok_r(NULL, BLANKS, &rest) || !protocol_host_is_valid(host) || !protocol_token_is_valid(token))
		return -EINVAL;
	strcpy(item.host, host);
	if (digest_of(token, item.digest))
		return -EIO;
	return vec_push(tokens, item);
}

int identity_tokens__load(struct identity_tokens *tokens, const char *path, unsigned *line)
{
	int fd = user_file_open_secret(path), err = 0;
	FILE *in = fd < 0 ? NULL : fdopen(fd, "re");
	char *text = NULL;
	size_t room = 0;

	*line = 0;
	if (!in) {
		err = fd < 0 ? fd : -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	while (!err && (errno = 0, getline(&text, &room, in) >= 0)) {
		(*line)++;
		err = tokens__take(tokens, text);
	}
	if (!err && ferror(in))
		err = errno ? -errno : -EIO;
	if (text)
		explicit_bzero(text, room);
	free(text);
	fclose(in);
	if (err)
		identity_tokens__clear(tokens);
	return err;
}

void identity_tokens__clear(struct identity_tokens *tokens)
{
	vec_free(tokens);
}

enum identity_verdict identity_tokens__judge(const struct identity_tokens *tokens, const char *authorization,
					     const char *host)
{
	enum identity_verdict verdict = IDENTITY_UNKNOWN;
	uint8_t digest[32];

	if (!authorization || !tokens->cnt)
		return IDENTITY_NONE;
	if (strncasecmp(authorization, BEARER, strlen(BEARER)) ||
	    !protocol_token_is_valid(authorization + strlen(BEARER)) ||
	    digest_of(authorization + strlen(BEARER), digest))
		return IDENTITY_UNKNOWN;
	for (size_t i = 0; i < tokens->cnt; i++) {
		if (gnutls_memcmp(tokens->items[i].digest, digest, sizeof(digest)))
			continue;
		if (!strcmp(tokens->items[i].host, host))
			verdict = IDENTITY_FITS;
		else if (verdict != IDENTITY_FITS)
			verdict = IDENTITY_OTHER;
	}
	return verdict;
}

static void add_name(char names[IDENTITY_NAMES_SZ], const char *name, size_t sz)
{
	size_t len = strlen(names);

	/* A NUL within would make it seem another one. */
	if (memchr(name, 0, sz) || memchr(name, '\n', sz) || len + sz + 2 > IDENTITY_NAMES_SZ)
		return;
	memcpy(names + len, name, sz);
	names[len + sz] = '\n';
	names[len + sz + 1] = 0;
}

static void add_names(gnutls_x509_crt_t crt, char names[IDENTITY_NAMES_SZ])
{
	char name[256];
	size_t sz = sizeof(name);
	bool any = false;
	int type;

	for (unsigned i = 0;
	     (sz = sizeof(name), type = gnutls_x509_crt_get_subject_alt_name(crt, i, name, &sz, NULL)) !=
	     GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE;
	     i++) {
		if (type < 0 && type != GNUTLS_E_SHORT_MEMORY_BUFFER)
			break;
		if (type != GNUTLS_SAN_DNSNAME)
			continue;
		any = true;
		add_name(names, name, sz);
	}
	sz = sizeof(name);
	if (!any && !gnutls_x509_crt_get_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, 0, name, &sz))
		add_name(names, name, sz);
}

static const char *why_not(unsigned status)
{
	if (status & GNUTLS_CERT_EXPIRED)
		return "the certificate has expired";
	if (status & GNUTLS_CERT_NOT_ACTIVATED)
		return "the certificate is not valid yet";
	if (status & GNUTLS_CERT_REVOKED)
		return "the certificate was revoked";
	if (status & (GNUTLS_CERT_REVOCATION_DATA_SUPERSEDED | GNUTLS_CERT_REVOCATION_DATA_ISSUED_IN_FUTURE))
		return "the list of revoked certificates is not of today";
	if (status & GNUTLS_CERT_PURPOSE_MISMATCH)
		return "the certificate is not meant for clients";
	if (status & GNUTLS_CERT_SIGNER_NOT_FOUND)
		return "the certificate is of another authority";
	return "the certificate is not good";
}

gnutls_x509_trust_list_t identity_trust_new(const char *ca_pem, const char *crl_pem, const char **why)
{
	gnutls_datum_t ca = {(unsigned char *)ca_pem, (unsigned)strlen(ca_pem)}, crl = {0};
	gnutls_x509_trust_list_t trust;

	*why = "no memory";
	if (gnutls_x509_trust_list_init(&trust, 0))
		return NULL;
	*why = "there is no certificate of an authority in it";
	if (gnutls_x509_trust_list_add_trust_mem(trust, &ca, NULL, GNUTLS_X509_FMT_PEM, 0, 0) <= 0)
		goto fail;
	if (crl_pem) {
		*why = "there is no list of revoked certificates in it";
		crl = (gnutls_datum_t){(unsigned char *)crl_pem, (unsigned)strlen(crl_pem)};
		if (gnutls_x509_trust_list_add_trust_mem(trust, NULL, &crl, GNUTLS_X509_FMT_PEM, 0, 0) <= 0)
			goto fail;
	}
	return trust;
fail:
	gnutls_x509_trust_list_deinit(trust, 1);
	return NULL;
}

void identity_trust_free(gnutls_x509_trust_list_t trust)
{
	if (trust)
		gnutls_x509_trust_list_deinit(trust, 1);
}

#define CHAIN_MAX 8

/* GNUTLS_CERT_… of the chain, and its first certificate's names. */
static int verify(gnutls_x509_trust_list_t trust, const gnutls_datum_t *chain, unsigned cnt, unsigned *status,
		  char names[IDENTITY_NAMES_SZ])
{
	gnutls_typed_vdata_st purpose = {GNUTLS_DT_KEY_PURPOSE_OID, (unsigned char *)GNUTLS_KP_TLS_WWW_CLIENT, 0};
	gnutls_x509_crt_t crts[CHAIN_MAX];
	unsigned have = 0;
	int err = 0;

	for (; !err && have < cnt; have++) {
		err = gnutls_x509_crt_init(&crts[have]);
		if (err)
			break;
		err = gnutls_x509_crt_import(crts[have], &chain[have], GNUTLS_X509_FMT_DER);
	}
	if (!err)
		err = gnutls_x509_trust_list_verify_crt2(trust, crts, have, &purpose, 1, 0, status, NULL);
	if (!err && !*status)
		add_names(crts[0], names);
	while (have)
		gnutls_x509_crt_deinit(crts[--have]);
	return err;
}

enum identity_verdict identity_certificate(gnutls_session_t session, gnutls_x509_trust_list_t trust,
					   char names[IDENTITY_NAMES_SZ], const char **why)
{
	unsigned cnt = 0, status = 0;
	const gnutls_datum_t *chain = gnutls_certificate_get_peers(session, &cnt);

	names[0] = 0;
	if (!chain || !cnt)
		return IDENTITY_NONE;
	*why = "the certificate is not good";
	if (cnt > CHAIN_MAX || verify(trust, chain, cnt, &status, names))
		return IDENTITY_UNKNOWN;
	if (!status)
		return IDENTITY_FITS;
	*why = why_not(status);
	return IDENTITY_UNKNOWN;
}

bool identity_names_have(const char *names, const char *host)
{
	size_t sz = strlen(host);

	for (; *names; names = strchr(names, '\n') + 1)
		if (!strncmp(names, host, sz) && names[sz] == '\n')
			return true;
	return false;
}
