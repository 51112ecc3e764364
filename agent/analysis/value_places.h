/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A variable has other values at other places of its function: is it those, or the time spent at each, that differ? */
#ifndef WHYLATE_ANALYSIS_VALUE_PLACES_H
#define WHYLATE_ANALYSIS_VALUE_PLACES_H

#include "analysis/value_facts.h"

/*
 * The rows are those of one variable in late and typical requests of one run.  A late request spends its time at fewer
 * places, and what is the same there in all requests is no difference of the variable.  1: at each place slow profiles
 * have the values that normal ones have there, and are at some places for longer; 0; -ENOMEM.
 */
int value_differs_by_place(const struct value_input *input, const struct value_row *rows, size_t cnt);

#endif
