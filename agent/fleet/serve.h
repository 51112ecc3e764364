/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A collector from its options until a signal ends it, with its projection beside it. */
#ifndef WHYLATE_FLEET_SERVE_H
#define WHYLATE_FLEET_SERVE_H

#include "fleet/projection.h"
#include "net/collect/collector.h"

struct collect_options {
	const char *listen, *store, *cert, *key, *ca, *crl, *tokens, *user, *forget;
	bool insecure;
	struct collector_opts collector;
	struct project_options projection; /* database.url NULL: none */
};

/* Exit codes, after lines that say what is wrong.  SIGHUP reads certificates, key, revocations and tokens again. */
int collect_serve(struct collect_options *options);
/* Deletes options->forget from the store and from the database of the projection. */
int collect_forget(struct collect_options *options);

#endif
