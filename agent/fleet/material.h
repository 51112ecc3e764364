/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The certificates, key, revocations and tokens of a collector, as text. */
#ifndef WHYLATE_FLEET_MATERIAL_H
#define WHYLATE_FLEET_MATERIAL_H

#include "fleet/options.h"
#include "net/collect/identity.h"

/* What the files hold, as it was read at the start or at the last SIGHUP. */
struct material {
	char *cert, *key, *ca, *crl;
	struct identity_tokens tokens;
};

/* 0, or -EINVAL after a line that says why; the material is empty then. */
int material__read(struct material *material, const struct collect_options *options);
void material__clear(struct material *material);
/* Refers to the material. */
struct collector_material material__of(const struct material *material);

#endif
