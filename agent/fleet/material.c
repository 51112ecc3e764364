// SPDX-License-Identifier: GPL-2.0-or-later
#include "fleet/material.h"

#include "base/log.h"
#include "base/user_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PEM_MAX (1u << 20)

/* The file as text, to be freed; NULL after a line that says why. */
static char *read_pem(const char *path, bool is_secret)
{
	int fd = is_secret ? user_file_open_secret(path) : user_file_open(path);
	FILE *in = fd < 0 ? NULL : fdopen(fd, "re");
	char *text = in ? calloc(1, PEM_MAX + 1) : NULL;
	size_t sz = text ? fread(text, 1, PEM_MAX + 1, in) : 0;
	bool bad = !text || ferror(in);

	if (bad)
		log_error("cannot read '%s': %s", path, user_file_why(fd < 0 ? fd : -errno));
	else if (sz > PEM_MAX)
		log_error("'%s' is too large for a certificate or key", path);
	if (in)
		fclose(in);
	if (!bad && sz <= PEM_MAX)
		return text;
	free(text);
	return NULL;
}

static void free_pem(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
}

void material__clear(struct material *material)
{
	free_pem(material->cert);
	free_pem(material->key);
	free_pem(material->ca);
	free_pem(material->crl);
	identity_tokens__clear(&material->tokens);
	*material = (struct material){0};
}

struct collector_material material__of(const struct material *material)
{
	return (struct collector_material){
		.cert_pem = material->cert,
		.key_pem = material->key,
		.client_ca_pem = material->ca,
		.crl_pem = material->crl,
		.tokens = &material->tokens,
	};
}

int material__read(struct material *material, const struct collect_options *options)
{
	unsigned line;
	int err = 0;

	*material = (struct material){0};
	if ((options->cert && !(material->cert = read_pem(options->cert, false))) ||
	    (options->key && !(material->key = read_pem(options->key, true))) ||
	    (options->ca && !(material->ca = read_pem(options->ca, false))) ||
	    (options->crl && !(material->crl = read_pem(options->crl, false))))
		err = -EINVAL;
	if (!err && options->tokens) {
		err = identity_tokens__load(&material->tokens, options->tokens, &line);
		if (err == -EINVAL)
			log_error("'%s', line %u: it wants HOST TOKEN, a token of %d to %d printable characters",
				  options->tokens, line, PROTOCOL_TOKEN_MIN, PROTOCOL_TOKEN_MAX);
		else if (err)
			log_error("cannot read '%s': %s", options->tokens, user_file_why(err));
		else if (!material->tokens.cnt)
			log_error("there is no token in '%s'", options->tokens);
		if (!err && !material->tokens.cnt)
			err = -EINVAL;
	}
	if (err)
		material__clear(material);
	return err ? -EINVAL : 0;
}
