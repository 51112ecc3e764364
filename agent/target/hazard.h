/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lists of hazard.def. */
#ifndef WHYLATE_TARGET_HAZARD_H
#define WHYLATE_TARGET_HAZARD_H

#include <stdbool.h>

enum hazard {
	HAZARD_ENDS_PROCESS,
	HAZARD_CONTINUES_ELSEWHERE,
	HAZARD_PROMISED,
	HAZARD_CANCELLATION_POINT,
	HAZARD_HOST,
	HAZARD_ALONE,
	HAZARD_REMEMBERS_CALLER,
	HAZARD_RUNTIME,
	HAZARD_OFFERS_MEANS,
	HAZARD_OFFERS_SWITCHES,
};

/* True if `name` is in the list of that kind. */
bool hazard_is(enum hazard kind, const char *name);
/* True if `name` begins with a name in the list of that kind. */
bool hazard_begins(enum hazard kind, const char *name);

#endif
