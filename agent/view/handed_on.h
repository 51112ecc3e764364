/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A context (analysis/context_chains.h) in words. */
#ifndef WHYLATE_VIEW_HANDED_ON_H
#define WHYLATE_VIEW_HANDED_ON_H

#include "analysis/context_chains.h"

/* "as it came in", "after socket asked by f > g > send", in buf. */
const char *view_handed_on(char *buf, size_t sz, const struct context_chains *chains, uint32_t chain);

#endif
