/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What each client has of the collector at this moment, so that none has what the others need.  A client is known by
 * its address, or by its name once it has shown one.  An entry is there as long as somebody holds it.  The caller
 * locks, but for body_bytes.
 */
#ifndef WHYLATE_NET_COLLECT_PEERS_H
#define WHYLATE_NET_COLLECT_PEERS_H

#include <stdatomic.h>
#include <stdint.h>

#define PEER_KEY_SZ   72
#define PEERS_BUCKETS 256

struct peer {
	struct peer *next;
	char key[PEER_KEY_SZ];
	uint32_t holder_cnt;
	uint32_t connection_cnt;     /* open, and not about to be closed */
	_Atomic uint64_t body_bytes; /* of the bodies that are being received */
};

/* All zero: nobody. */
struct peers {
	struct peer *buckets[PEERS_BUCKETS];
};

struct peer *peers__hold(struct peers *peers, const char *key); /* NULL: no memory */
void peers__drop(struct peers *peers, struct peer *peer);       /* NULL: nothing */

#endif
