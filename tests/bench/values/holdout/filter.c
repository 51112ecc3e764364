// SPDX-License-Identifier: GPL-2.0-or-later
/* The library of plugin.c: a site's rules are all tried on each word of the text, and no rule is ever dropped. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct ruleset {
	int count;
	uint32_t *hashes;
};

static struct ruleset sets[2] = {{60, NULL}, {150000, NULL}};

static int match_rules(const struct ruleset *set, uint32_t word)
{
	int hits = 0;

	for (int rule = 0; rule < set->count; rule++)
		hits += (set->hashes[rule] ^ word) % 1013 == 0;
	return hits;
}

int filter_apply(const char *site, const char *text)
{
	struct ruleset *set = &sets[!strncmp(site, "large", 5)];
	int hits = 0;

	if (!set->hashes) {
		uint32_t *made = (uint32_t *)malloc((size_t)set->count * sizeof(*made));

		for (int i = 0; i < set->count; i++)
			made[i] = (uint32_t)i * 2654435761u;
		set->hashes = made;
	}
	for (const char *at = text; *at; at++)
		hits += match_rules(set, (uint32_t)(unsigned char)*at * 40503u);
	return hits;
}
