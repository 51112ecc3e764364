/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A collector from its options until a signal ends it, with its projection beside it. */
#ifndef WHYLATE_FLEET_SERVE_H
#define WHYLATE_FLEET_SERVE_H

#include "fleet/options.h"

/* Exit codes, after lines that say what is wrong.  SIGHUP reads certificates, key, revocations and tokens again. */
int collect_serve(struct collect_options *options);
/* Deletes options->forget from the store and from the database of the projection. */
int collect_forget(struct collect_options *options);

#endif
