// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/hazard.h"

#include <stddef.h>
#include <string.h>

static const struct {
	enum hazard kind;
	const char *name;
} hazards[] = {
#define HAZARD(kind, name) {HAZARD_##kind, name},
#include "target/hazard.def"
};

#define HAZARD_CNT (sizeof(hazards) / sizeof(hazards[0]))

bool hazard_is(enum hazard kind, const char *name)
{
	for (size_t i = 0; i < HAZARD_CNT; i++)
		if (hazards[i].kind == kind && !strcmp(name, hazards[i].name))
			return true;
	return false;
}

bool hazard_begins(enum hazard kind, const char *name)
{
	for (size_t i = 0; i < HAZARD_CNT; i++)
		if (hazards[i].kind == kind && !strncmp(name, hazards[i].name, strlen(hazards[i].name)))
			return true;
	return false;
}
