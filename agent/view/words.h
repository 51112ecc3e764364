/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The English that the text and the HTML share. */
#ifndef WHYLATE_VIEW_WORDS_H
#define WHYLATE_VIEW_WORDS_H

#include "analysis/results.h"

/* Completes "41 % …": how the root reached the interval. */
const char *words_way(const struct cause *cause, const struct cause_way *way);
/* Completes "look at: …"; of a cause with a root. */
const char *words_advice(const struct report *report, const struct cause *cause);

#endif
