// SPDX-License-Identifier: GPL-2.0-or-later
/* A wrong limit: some writers' batches end after that many bytes, not kilobytes, and each record is packed alone. */
#include "serve.h"

struct writer {
	unsigned pending, limit, batches;
	unsigned char block[4096];
};

static struct writer writers[8];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static __attribute__((noinline)) unsigned pack_block(const struct writer *writer)
{
	unsigned low = 1, high = 0;

	for (int pass = 0; pass < 4; pass++)
		for (size_t i = 0; i < sizeof(writer->block); i++) {
			low = (low + writer->block[i]) % 65521;
			high = (high + low) % 65521;
		}
	return high << 16 | low;
}

static __attribute__((noinline)) unsigned add_records(struct writer *writer, int cnt, unsigned len)
{
	unsigned sum = 0;

	for (int i = 0; i < cnt; i++) {
		memset(writer->block + writer->pending % 3800, i, len);
		writer->pending += len;
		if (writer->pending >= writer->limit) {
			sum ^= pack_block(writer);
			writer->batches++;
			writer->pending = 0;
		}
	}
	return sum;
}

static size_t answer(const char *path, char *body)
{
	unsigned sum;

	pthread_mutex_lock(&lock);
	sum = add_records(&writers[path[1] & 7], 300, 64);
	pthread_mutex_unlock(&lock);
	return (size_t)sprintf(body, "%08x\n", sum);
}

int main(int argc, char **argv)
{
	for (int i = 0; i < 8; i++)
		writers[i].limit = i < 6 ? 3584 : 3;
	return serve(argc, argv, answer);
}
