// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/collect/peers.h"

#include "shard/crc32c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct peer **peers__at(struct peers *peers, const char *key)
{
	struct peer **at = &peers->buckets[crc32c(0, key, strlen(key)) % PEERS_BUCKETS];

	while (*at && strcmp((*at)->key, key) != 0)
		at = &(*at)->next;
	return at;
}

struct peer *peers__hold(struct peers *peers, const char *key)
{
	char cut[PEER_KEY_SZ];
	struct peer **at;

	snprintf(cut, sizeof(cut), "%s", key);
	at = peers__at(peers, cut);
	if (!*at) {
		*at = calloc(1, sizeof(**at));
		if (!*at)
			return NULL;
		strcpy((*at)->key, cut);
	}
	(*at)->holder_cnt++;
	return *at;
}

void peers__drop(struct peers *peers, struct peer *peer)
{
	struct peer **at;

	if (!peer || --peer->holder_cnt)
		return;
	at = peers__at(peers, peer->key);
	*at = peer->next;
	free(peer);
}
