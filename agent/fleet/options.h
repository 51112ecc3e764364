/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a collector is told: filled in from the command line. */
#ifndef WHYLATE_FLEET_OPTIONS_H
#define WHYLATE_FLEET_OPTIONS_H

#include "fleet/projection.h"
#include "net/collect/collector.h"

struct collect_options {
	const char *listen, *store, *cert, *key, *ca, *crl, *tokens, *user, *forget;
	bool insecure;
	struct collector_opts collector;
	struct project_options projection; /* database.url NULL: none */
};

#endif
