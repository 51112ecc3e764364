// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/collect/limiter.h"

#include "shard/crc32c.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BURST_S  2
#define WAIT_MAX 60
#define PROBES   16 /* slots that a client may be in */

struct limiter_slot {
	char client[LIMITER_KEY_SZ]; /* "": free */
	uint64_t used_ns;
	double requests, bytes, rows; /* left */
};

int limiter__init(struct limiter *limiter, double requests_per_s, double bytes_per_s, double rows_per_s)
{
	limiter->requests_per_s = requests_per_s;
	limiter->bytes_per_s = bytes_per_s;
	limiter->rows_per_s = rows_per_s;
	limiter->slots = calloc(LIMITER_SLOTS, sizeof(*limiter->slots));
	if (!limiter->slots)
		return -ENOMEM;
	pthread_mutex_init(&limiter->lock, NULL);
	return 0;
}

static struct limiter_slot *limiter__slot(struct limiter *limiter, const char *client, uint64_t now_ns)
{
	uint32_t at = crc32c(0, client, strlen(client));
	struct limiter_slot *oldest = NULL;

	for (uint32_t i = 0; i < PROBES; i++) {
		struct limiter_slot *slot = &limiter->slots[(at + i) % LIMITER_SLOTS];

		if (!strcmp(slot->client, client))
			return slot;
		if (!oldest || slot->used_ns < oldest->used_ns)
			oldest = slot;
	}
	*oldest = (struct limiter_slot){
		.used_ns = now_ns,
		.requests = BURST_S * limiter->requests_per_s,
		.bytes = BURST_S * limiter->bytes_per_s,
		.rows = BURST_S * limiter->rows_per_s,
	};
	snprintf(oldest->client, sizeof(oldest->client), "%s", client);
	return oldest;
}

unsigned limiter__take(struct limiter *limiter, const char *client, uint64_t bytes, uint64_t now_ns)
{
	struct limiter_slot *slot;
	double elapsed_s, wait_s = 0;

	pthread_mutex_lock(&limiter->lock);
	slot = limiter__slot(limiter, client, now_ns);
	elapsed_s = now_ns > slot->used_ns ? (double)(now_ns - slot->used_ns) / 1e9 : 0;
	slot->used_ns = now_ns;
	slot->requests = fmin(slot->requests + elapsed_s * limiter->requests_per_s, BURST_S * limiter->requests_per_s);
	slot->bytes = fmin(slot->bytes + elapsed_s * limiter->bytes_per_s, BURST_S * limiter->bytes_per_s);
	slot->rows = fmin(slot->rows + elapsed_s * limiter->rows_per_s, BURST_S * limiter->rows_per_s);
	if (slot->requests < 1)
		wait_s = (1 - slot->requests) / limiter->requests_per_s;
	if (slot->bytes <= 0)
		wait_s = fmax(wait_s, -slot->bytes / limiter->bytes_per_s);
	if (limiter->rows_per_s > 0 && slot->rows <= 0)
		wait_s = fmax(wait_s, -slot->rows / limiter->rows_per_s);
	if (slot->requests >= 1 && slot->bytes > 0 && (limiter->rows_per_s <= 0 || slot->rows > 0)) {
		slot->requests--;
		slot->bytes -= (double)bytes;
		wait_s = -1;
	}
	pthread_mutex_unlock(&limiter->lock);
	return wait_s < 0 ? 0 : (unsigned)fmin(fmax(ceil(wait_s), 1), WAIT_MAX);
}

void limiter__take_rows(struct limiter *limiter, const char *client, uint64_t rows, uint64_t now_ns)
{
	if (limiter->rows_per_s <= 0 || !rows)
		return;
	pthread_mutex_lock(&limiter->lock);
	limiter__slot(limiter, client, now_ns)->rows -= (double)rows;
	pthread_mutex_unlock(&limiter->lock);
}

void limiter__clear(struct limiter *limiter)
{
	if (!limiter->slots)
		return;
	free(limiter->slots);
	limiter->slots = NULL;
	pthread_mutex_destroy(&limiter->lock);
}
