/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the tests of streaming stand on: certificates, a collector to be killed, and the raw blocks of directories of
 * shards, to be compared byte for byte.
 */
#ifndef WHYLATE_TESTS_STREAM_KIT_H
#define WHYLATE_TESTS_STREAM_KIT_H

#include "harness.h"
#include "session.h"

#define STREAM_HOST "web-1"

struct certs {
	struct path dir;
	char client[2200]; /* the options of `record` for a client that is STREAM_HOST */
	char server[2200]; /* the options of `collect` */
};

/* A CA, a server's certificate for 127.0.0.1 and `ip`, a client's for STREAM_HOST.  False after a failed check. */
bool certs_make(struct certs *certs, const char *ip);

/* The options of `record` for a client that is that host, with a certificate of the same authority. */
bool certs_client(const struct certs *certs, const char *host, char options[2200]);

struct stream_collector {
	struct process process;
	struct path store;
	char address[64];
	char command[4096];
};

/* In that network namespace (NULL: ours).  The port of an address without one is chosen. */
bool stream_collector_start(struct stream_collector *collector, const struct certs *certs, const char *netns,
			    const char *ip, const char *store_name);
bool stream_collector_again(struct stream_collector *collector);

/* One block of rows as it lies in a file. */
struct raw_block {
	uint64_t digest;
	uint64_t sz;
	char table[24];
};

struct raw_blocks {
	struct raw_block *items;
	size_t cnt, room;
};

/* All blocks of rows below a directory, sorted; the collector's own accounts are left out. */
bool raw_blocks_read(struct raw_blocks *blocks, const char *dir);
/*
 * Every block of `written` is in `stored` exactly once, nothing is there twice, and what is there besides is of table
 * `loss` (the spool's own counts) but for `more_max` blocks.
 */
bool raw_blocks_check(const struct raw_blocks *written, const struct raw_blocks *stored, size_t more_max);
/* Reads both and checks. */
bool stored_once(const char *written_dir, const char *store, size_t more_max);

#endif
