/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How much each client may send: a bucket of requests, one of bytes and one of rows, refilled by the second, two
 * seconds' worth of room.  What is taken may exceed what is there, and is owed then.  A fixed table: where it is full,
 * whoever has been quiet longest is forgotten.  Any thread.
 */
#ifndef WHYLATE_NET_COLLECT_LIMITER_H
#define WHYLATE_NET_COLLECT_LIMITER_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#define LIMITER_SLOTS  4096
#define LIMITER_KEY_SZ 72

struct limiter {
	double requests_per_s, bytes_per_s, rows_per_s; /* rows: 0: any number */
	pthread_mutex_t lock;
	struct limiter_slot *slots;
};

/* 0 or -ENOMEM */
int limiter__init(struct limiter *limiter, double requests_per_s, double bytes_per_s, double rows_per_s);
/* One request of so many bytes: 0, or in how many seconds (1 or more) there is room for it again. */
unsigned limiter__take(struct limiter *limiter, const char *client, uint64_t bytes, uint64_t now_ns);
/* What it turned out to hold: of rows that are owed, the next request has to wait. */
void limiter__take_rows(struct limiter *limiter, const char *client, uint64_t rows, uint64_t now_ns);
void limiter__clear(struct limiter *limiter);

#endif
