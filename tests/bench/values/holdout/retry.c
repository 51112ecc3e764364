// SPDX-License-Identifier: GPL-2.0-or-later
/* A retry counter: a write to a shard that is read-only is tried again as if it were busy. */
#include "serve.h"

enum outcome { STORED, BUSY, READ_ONLY };

struct shard {
	int read_only;
	unsigned writes;
	unsigned char log[4096];
};

static struct shard shards[8];

static __attribute__((noinline)) enum outcome try_store(struct shard *shard, const char *record, size_t len)
{
	unsigned sum = 0;

	for (int pass = 0; pass < 100; pass++)
		for (size_t i = 0; i < len; i++)
			sum = sum * 31 + (unsigned char)record[i];
	if (shard->read_only)
		return READ_ONLY;
	shard->log[shard->writes % sizeof(shard->log)] = (unsigned char)sum;
	return ++shard->writes % 5 ? STORED : BUSY;
}

static __attribute__((noinline)) int store_record(struct shard *shard, const char *record, size_t len)
{
	int attempt;

	for (attempt = 1; attempt <= 1000; attempt++) {
		enum outcome outcome = try_store(shard, record, len);

		if (outcome == STORED)
			break;
	}
	return attempt;
}

static size_t answer(const char *path, char *body)
{
	struct shard *shard = &shards[path[1] & 7];
	char record[128];

	memset(record, path[1], sizeof(record));
	return (size_t)sprintf(body, "attempts %d\n", store_record(shard, record, sizeof(record)));
}

int main(int argc, char **argv)
{
	shards[7].read_only = 1;
	return serve(argc, argv, answer);
}
