// SPDX-License-Identifier: GPL-2.0-or-later
#include "view/handed_on.h"

#include "base/names.h"

#include <stdio.h>
#include <string.h>

/* Frames of a hand-off that are told, the innermost ones. */
#define HANDOFF_FRAMES 5

/* Where the hand-off came from, without what all of them have in common. */
static void add_handoff(char *buf, size_t sz, const struct context_chains *chains, const struct context_chain *chain)
{
	const char *frames = chain->frames + (*chain->frames ? chains->prefix : 0);
	size_t len = strlen(buf), cnt = 1;

	for (const char *at = frames; *at; at++)
		cnt += *at == ';';
	for (; cnt > HANDOFF_FRAMES; cnt--)
		frames = strchr(frames, ';') + 1;
	len += (size_t)snprintf(buf + len, sz - len, "%s%s", handoff_name(chain->kind), *frames ? " asked by " : "");
	for (; *frames && len + 4 < sz; frames++)
		len += (size_t)snprintf(buf + len, sz - len, *frames == ';' ? " > " : "%c", *frames);
}

const char *view_handed_on(char *buf, size_t sz, const struct context_chains *chains, uint32_t chain)
{
	const struct context_chain *at = &chains->items.items[chain];
	size_t len;

	if (chain <= CONTEXT_CHAIN_OTHER) {
		snprintf(buf, sz, "%s", chain == CONTEXT_CHAIN_NONE ? "as it came in" : "other contexts");
		return buf;
	}
	buf[0] = '\0';
	if (at->parent != CONTEXT_CHAIN_NONE) {
		view_handed_on(buf, sz, chains, at->parent);
		len = strlen(buf);
		snprintf(buf + len, sz - len, "; then ");
	} else {
		snprintf(buf, sz, "after ");
	}
	if (strlen(buf) + 1 < sz)
		add_handoff(buf, sz, chains, at);
	return buf;
}
