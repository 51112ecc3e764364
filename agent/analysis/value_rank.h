/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ranks functions by what their variables say: see value_facts.h. */
#ifndef WHYLATE_ANALYSIS_VALUE_RANK_H
#define WHYLATE_ANALYSIS_VALUE_RANK_H

#include "analysis/value_facts.h"
#include "base/arena.h"

/* 0 or -ENOMEM; the ranking belongs to the arena. */
int value_rank(struct value_ranking *ranking, struct value_input *input, struct arena *arena);

#endif
